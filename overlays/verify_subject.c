/* SPDX-License-Identifier: MIT */
/* What a CUDA_HOME is, and which targets are worth compiling for. */

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "manifests/version.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/probe.h"
#include "overlays/verify.h"

static const char preferred_target[] = "sm_120a";

static void strings_of_json(const json_t *array, cfs_strings *ret)
{
  size_t i;
  json_t *item;
  json_array_foreach(array, i, item) if (json_is_string(item)) cfs_strings_add(ret, json_string_value(item));
}

/* By number; of one number the architecture's own code ("a") before the family's and the common one. */
static int compare_targets(const char *a, const char *b)
{
  static const char digits[] = "0123456789";
  int c = cfs_leading_number(a + strcspn(a, digits)) - cfs_leading_number(b + strcspn(b, digits));
  return c ? c : (int)cfs_has_suffix(a, "a") - (int)cfs_has_suffix(b, "a");
}

static const char *newest_target(const cfs_strings *targets)
{
  const char *newest = NULL;
  for (size_t i = 0; i < targets->count; i++)
    if (!newest || compare_targets(targets->items[i], newest) > 0)
      newest = targets->items[i];
  return newest;
}

static void default_target(cfs_subject *s)
{
  if (s->targets.count)
    return;
  const char *newest = newest_target(&s->archs);
  if (!newest || cfs_strings_has(&s->archs, preferred_target))
    newest = preferred_target;
  cfs_strings_add(&s->targets, newest);
}

static void add_toolchain(cfs_subject *s, const json_t *toolchain)
{
  const char *release = json_string_value(json_object_get(toolchain, "release"));
  const char *max_ptx = json_string_value(json_object_get(toolchain, "max_ptx"));
  cleanup_strings cfs_strings archs = {0};
  strings_of_json(json_object_get(toolchain, "archs"), &archs);
  if (json_is_true(json_object_get(toolchain, "primary"))) {
    strings_of_json(json_object_get(toolchain, "archs"), &s->archs);
    s->max_ptx = max_ptx ? cfs_strdup(max_ptx) : NULL;
    return;
  }
  const char *target = newest_target(&archs);
  if (!release || !max_ptx || !target)
    return;
  s->toolchains = cfs_grow(s->toolchains, s->n_toolchains + 1, sizeof(*s->toolchains));
  s->toolchains[s->n_toolchains++] =
      (struct cfs_verify_toolchain){cfs_strdup(release), cfs_strdup(max_ptx), cfs_strdup(target)};
}

static int read_plan(const char *path, cfs_subject *s, cfs_error **err)
{
  json_error_t problem;
  json_t *plan = json_load_file(path, 0, &problem);
  if (!plan)
    return cfs_error_set(err, CFS_FAILED, EIO, path, NULL, "the plan of the mount cannot be read (%s)", problem.text);
  const char *release = json_string_value(json_object_get(plan, "release"));
  s->release = release ? cfs_strdup(release) : NULL;
  strings_of_json(json_object_get(plan, "targets"), &s->targets);
  size_t i;
  json_t *toolchain;
  json_array_foreach(json_object_get(plan, "toolchains"), i, toolchain) add_toolchain(s, toolchain);
  json_decref(plan);
  return 0;
}

static int ask_ptxas(cfs_subject *s, cfs_error **err)
{
  cleanup_free char *nvcc = cfs_path_join(s->root, "bin/nvcc"), *ptxas = cfs_path_join(s->root, "bin/ptxas");
  if (!cfs_path_exists(nvcc) && !cfs_path_exists(ptxas))
    return cfs_error_set(err, CFS_FAILED, ENOENT, s->root, "name a CUDA_HOME, a cudafs mount or a manifest",
                         "there is no CUDA toolkit in it (no bin/nvcc, no bin/ptxas)");
  cleanup_probe struct cfs_probe *probe = NULL;
  if (cfs_probe_ptxas(ptxas, NULL, NULL, &probe, NULL) < 0)
    return 0; /* the tests will say what is wrong with it */
  s->release = cfs_version_release(probe->version);
  s->max_ptx = cfs_strdup(probe->max_ptx);
  for (size_t i = 0; i < probe->targets.count; i++)
    cfs_strings_add(&s->archs, probe->targets.items[i]);
  return 0;
}

int cfs_subject_read(const char *root, cfs_subject *ret, cfs_error **err)
{
  cfs_subject s = {0};
  cleanup_free char *absolute = realpath(root, NULL);
  if (!absolute || !cfs_path_is_dir(absolute))
    return cfs_error_set(err, CFS_FAILED, absolute ? ENOTDIR : errno, root, NULL, "%s",
                         absolute ? "it is no directory" : strerror(errno));
  cleanup_free char *plan = cfs_path_join(absolute, CFS_DOT_DIR "/plan.json");
  s.root = TAKE_PTR(absolute);
  int r = cfs_path_exists(plan) ? read_plan(plan, &s, err) : ask_ptxas(&s, err);
  if (r < 0) {
    cfs_subject_done(&s);
    return r;
  }
  default_target(&s);
  *ret = s;
  return 0;
}

void cfs_subject_done(cfs_subject *s)
{
  free(s->root);
  free(s->release);
  free(s->max_ptx);
  cfs_strings_done(&s->targets);
  cfs_strings_done(&s->archs);
  for (size_t i = 0; i < s->n_toolchains; i++) {
    free(s->toolchains[i].release);
    free(s->toolchains[i].max_ptx);
    free(s->toolchains[i].target);
  }
  free(s->toolchains);
  *s = (cfs_subject){0};
}
