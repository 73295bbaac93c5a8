/* SPDX-License-Identifier: MIT */
#include "overlays/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "overlays/scan.h"
#include "overlays/source.h"

void cfs_build_free(cfs_build *b)
{
  if (!b)
    return;
  cfs_plan_free(b->plan);
  cfs_manifest_free(b->manifest);
  cfs_tables_free(b->tables);
  free(b->dispatcher);
  free(b);
}

static void free_inventories(cfs_inventory **all, size_t n)
{
  for (size_t i = 0; i < n; i++)
    cfs_inventory_free(all[i]);
  free(all);
}

static int read_sources(cfs_build *b, bool forgiving, cfs_inventory ***ret, size_t *ret_n, cfs_error **err)
{
  const cfs_manifest *m = b->manifest;
  cfs_inventory **all = cfs_zalloc(m->n_sources * sizeof(cfs_inventory *));
  size_t n = 0;
  for (size_t i = 0; i < m->n_sources; i++) {
    cfs_error *why = NULL;
    int r = cfs_source_read(&m->sources[i], m->path, b->tables, &all[n], &why);
    if (r == 0) {
      n++;
      continue;
    }
    /* What a scan turned up by itself may well hold nothing; what a user wrote down must not. */
    if (forgiving) {
      cfs_error_free(why);
      continue;
    }
    free_inventories(all, n);
    if (err)
      *err = why;
    else
      cfs_error_free(why);
    return r;
  }
  *ret = all;
  *ret_n = n;
  return 0;
}

/* Words that a manifest may hold and this version cannot keep are refused, not passed over. */
static int check_kept(const cfs_manifest *m, cfs_error **err)
{
  const char *where = m->path ? m->path : "the manifest";
  if (m->on_drift != CFS_DRIFT_SERVE_PINNED)
    return cfs_error_set(err, CFS_INVALID, ENOTSUP, where, "leave it out, or say \"serve-pinned\"",
                         "on-drift: this version knows only \"serve-pinned\"");
  if (m->snapshot)
    return cfs_error_set(err, CFS_INVALID, ENOTSUP, where, "leave it out",
                         "snapshot: this version keeps no copies of the sources");
  return 0;
}

static int finish(cfs_build *b, bool forgiving, cfs_error **err)
{
  cfs_inventory **sources = NULL;
  size_t n = 0;
  int r = check_kept(b->manifest, err);
  if (r == 0)
    r = read_sources(b, forgiving, &sources, &n, err);
  if (r < 0)
    return r;
  if (!n) {
    free(sources);
    return cfs_error_set(err, CFS_REFUSED, ENOENT, "this machine",
                         "install the wheels of one release, or name your sources in a manifest",
                         "no CUDA was found on it");
  }
  r = cfs_resolve(b->manifest, b->tables, sources, n, &b->plan, err);
  if (r == 0)
    r = cfs_dispatcher_load(&b->dispatcher, &b->dispatcher_size, err);
  if (r == 0 && b->plan->coherent)
    r = cfs_layout_plan(b->plan, b->tables, err);
  if (r == 0 && b->plan->coherent)
    r = cfs_plan_seal(b->plan, b->tables, b->dispatcher, b->dispatcher_size, err);
  return r;
}

static int complete(cfs_build *b, int r, bool forgiving, cfs_build **ret, cfs_error **err)
{
  if (r == 0)
    r = finish(b, forgiving, err);
  if (r < 0) {
    cfs_build_free(b);
    return r;
  }
  *ret = b;
  return 0;
}

int cfs_build_manifest(const char *manifest_path, cfs_build **ret, cfs_error **err)
{
  cfs_build *b = cfs_zalloc(sizeof(*b));
  int r = cfs_tables_load(&b->tables, err);
  if (r == 0)
    r = cfs_manifest_load(manifest_path, b->tables, &b->manifest, err);
  return complete(b, r, false, ret, err);
}

int cfs_build_paths(const char *const *paths, size_t n, cfs_build **ret, cfs_error **err)
{
  cfs_build *b = cfs_zalloc(sizeof(*b));
  int r = cfs_tables_load(&b->tables, err);
  if (r == 0)
    b->manifest = cfs_manifest_from_paths(paths, n);
  return complete(b, r, false, ret, err);
}

int cfs_build_scan(cfs_build **ret, cfs_error **err)
{
  cfs_build *b = cfs_zalloc(sizeof(*b));
  int r = cfs_tables_load(&b->tables, err);
  struct cfs_found *found = NULL;
  size_t n = 0;
  if (r == 0) {
    cfs_scan(NULL, 0, &found, &n);
    cleanup_free const char **paths = cfs_zalloc(n * sizeof(char *));
    for (size_t i = 0; i < n; i++)
      paths[i] = found[i].path;
    b->manifest = cfs_manifest_from_paths(paths, n);
    cfs_found_free(found, n);
  }
  return complete(b, r, true, ret, err);
}
