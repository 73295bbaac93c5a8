/* SPDX-License-Identifier: MIT */
#include "overlays/cuda_home.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "manifests/version.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/elf.h"
#include "overlays/header.h"
#include "overlays/layout.h"

static void read_plan(const char *path, cfs_cuda_home *h)
{
  cleanup_free char *file = cfs_path_join(path, CFS_DOT_DIR "/plan.json");
  json_t *plan = json_load_file(file, 0, NULL);
  const char *release = json_string_value(json_object_get(plan, "release"));
  const json_t *face = json_array_get(json_object_get(plan, "toolchains"), 0);
  const char *version = json_string_value(json_object_get(face, "version"));
  h->mounted = plan != NULL;
  h->release = release ? cfs_strdup(release) : NULL;
  h->version = version ? cfs_strdup(version) : NULL;
  json_decref(plan);
}

static void read_tool(const char *path, cfs_cuda_home *h)
{
  if (h->version || cfs_elf_tool_version(path, &h->version, NULL, NULL) < 0)
    return;
  if (!h->release)
    h->release = cfs_version_release(h->version);
}

static void read_headers(const char *path, cfs_cuda_home *h)
{
  cleanup_free char *file = cfs_path_join(path, "include/cuda_runtime_api.h");
  long number = 0;
  if (cfs_header_macro(file, "CUDART_VERSION", &number, NULL) == 0)
    h->headers = cfs_format("%ld.%ld", number / 1000, number % 1000 / 10);
}

void cfs_cuda_home_read(const char *path, cfs_cuda_home *ret)
{
  cleanup_free char *nvcc = cfs_path_join(path, "bin/nvcc"), *ptxas = cfs_path_join(path, "bin/ptxas");
  *ret = (cfs_cuda_home){.path = cfs_strdup(path), .exists = cfs_path_is_dir(path)};
  if (!ret->exists)
    return;
  ret->compiles = cfs_path_is_file(nvcc);
  read_plan(path, ret);
  read_tool(nvcc, ret);
  read_tool(ptxas, ret);
  read_headers(path, ret);
}

void cfs_cuda_home_of_tool(const char *tool, cfs_cuda_home *ret)
{
  cleanup_free char *folder = cfs_strdup(tool);
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(folder, '/');
    if (slash)
      *slash = '\0';
  }
  cfs_cuda_home_read(*folder ? folder : "/", ret);
  /* A tool that was copied out of its toolkit is still what it says it is. */
  cleanup_free char *version = NULL;
  if (!ret->mounted && cfs_elf_tool_version(tool, &version, NULL, NULL) == 0) {
    free(ret->version);
    free(ret->release);
    ret->release = cfs_version_release(version);
    ret->version = TAKE_PTR(version);
  }
}

void cfs_cuda_home_done(cfs_cuda_home *h)
{
  free(h->path);
  free(h->version);
  free(h->release);
  free(h->headers);
  *h = (cfs_cuda_home){0};
}

bool cfs_cuda_home_has(const char *path, const char *face)
{
  cleanup_free char *plain = cfs_path_join(path, face);
  cleanup_free char *target = cfs_format("%s/targets/%s/%s", path, cfs_layout_platform(), face);
  if (cfs_path_exists(plain) || cfs_path_exists(target))
    return true;
  if (!cfs_has_prefix(face, "lib/"))
    return false;
  cleanup_free char *lib64 = cfs_format("%s/lib64/%s", path, face + strlen("lib/"));
  return cfs_path_exists(lib64);
}
