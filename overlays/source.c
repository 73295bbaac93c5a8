/* SPDX-License-Identifier: MIT */
#include "overlays/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/trailer.h"

static const cfs_source_ops *const kinds[] = {&cfs_source_site_packages, &cfs_source_toolkit};

enum cfs_source_kind cfs_source_recognise(const char *path, char **ret_path)
{
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if (kinds[i]->recognise(path, ret_path))
      return kinds[i]->kind;
  return CFS_SOURCE_ANY;
}

static const cfs_source_ops *ops_of(enum cfs_source_kind kind)
{
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if (kinds[i]->kind == kind)
      return kinds[i];
  return NULL;
}

static char *where(const struct cfs_manifest_source *s, const char *manifest_path)
{
  if (!manifest_path || !s->line)
    return cfs_strdup(s->path);
  return cfs_format("%s:%d: source \"%s\" (%s)", manifest_path, s->line, s->id, s->path);
}

static int check_place(const struct cfs_manifest_source *s, const char *what, cfs_error **err)
{
  if (access(s->path, F_OK) < 0)
    return cfs_error_set(err, CFS_REFUSED, errno, what,
                         "correct the path, or install CUDA there; `cudafs scan` lists what this machine has",
                         "the source does not exist (%s)", strerror(errno));
  if (access(s->path, R_OK) < 0)
    return cfs_error_set(err, CFS_REFUSED, errno, what, "run cudafs as a user who may read it, or mend its mode",
                         "the source cannot be read (%s)", strerror(errno));
  return 0;
}

/* A mount as source would wait for itself, at once or round a corner; what it is made of is the source. */
static int check_not_ours(const struct cfs_manifest_source *s, const char *what, cfs_error **err)
{
  char *up = realpath(s->path, NULL);
  bool ours = false;
  while (up && !ours) {
    cleanup_free char *id = cfs_path_join(up, CFS_ID_PATH);
    ours = cfs_path_exists(id);
    char *slash = strrchr(up, '/');
    if (!slash || slash == up)
      break;
    *slash = '\0';
  }
  free(up);
  if (!ours)
    return 0;
  return cfs_error_set(err, CFS_REFUSED, ELOOP, what, "name the places that the mount is made of: cudafs status",
                       "the source lies in a cudafs mount");
}

static const cfs_source_ops *find_ops(const struct cfs_manifest_source *s, const char *what, char **ret_path,
                                      cfs_error **err)
{
  enum cfs_source_kind kind = cfs_source_recognise(s->path, ret_path);
  if (s->kind == CFS_SOURCE_ANY && kind == CFS_SOURCE_ANY) {
    cfs_error_set(err, CFS_REFUSED, ENOENT, what,
                  "name a virtual environment, a site-packages folder or a toolkit such as /usr/local/cuda-13.0",
                  "there is no CUDA in it that cudafs knows how to read");
    return NULL;
  }
  if (s->kind == CFS_SOURCE_ANY || s->kind == kind)
    return ops_of(kind);
  const cfs_source_ops *ops = ops_of(s->kind);
  if (!ops) {
    cfs_error_set(err, CFS_INVALID, ENOTSUP, what, "use a source of kind site-packages or toolkit",
                  "sources of kind \"%s\" cannot be read by this version", cfs_source_kind_name(s->kind));
    return NULL;
  }
  free(*ret_path);
  *ret_path = NULL;
  cfs_error_set(err, CFS_REFUSED, ENOENT, what,
                kind == CFS_SOURCE_ANY ? "correct the path" : "give it as the kind that it is", "it is not a %s%s%s",
                cfs_source_kind_name(s->kind), kind == CFS_SOURCE_ANY ? "" : " but a ",
                kind == CFS_SOURCE_ANY ? "" : cfs_source_kind_name(kind));
  return NULL;
}

int cfs_source_read(const struct cfs_manifest_source *source, const char *manifest_path, const cfs_tables *tables,
                    cfs_inventory **ret, cfs_error **err)
{
  cleanup_free char *what = where(source, manifest_path), *path = NULL;
  int r = check_place(source, what, err);
  if (r == 0)
    r = check_not_ours(source, what, err);
  if (r < 0)
    return r;
  const cfs_source_ops *ops = find_ops(source, what, &path, err);
  if (!ops)
    return -ENOENT;
  cfs_inventory *inv = cfs_inventory_new(source->id, ops->kind, path);
  r = ops->take_inventory(inv, tables, err);
  if (r < 0) {
    cfs_inventory_free(inv);
    return r;
  }
  cfs_inventory_finish(inv, tables);
  if (ops->after_identify)
    ops->after_identify(inv);
  for (size_t i = 0; i < inv->problems.count; i++)
    if (!inv->problems.items[i].source)
      inv->problems.items[i].source = cfs_strdup(inv->id);
  *ret = inv;
  return 0;
}
