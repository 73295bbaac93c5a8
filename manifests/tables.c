/* SPDX-License-Identifier: MIT */
#include "manifests/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/tables_internal.h"

/* Far above any real table; a wrong CUDAFS_DATA must not eat the memory. */
#define LARGEST_TABLE (16u << 20)

int cfs_tables_open(const cfs_tables *t, const char *name, const char *const *keys, cfs_json_doc **ret, cfs_error **err)
{
  cleanup_free char *path = cfs_path_join(t->dir, name);
  cfs_json_doc *doc = NULL;
  int r = cfs_json_doc_load(path, LARGEST_TABLE, CFS_FAILED, &doc, err);
  if (r < 0)
    return r;
  cfs_json_at root = cfs_json_root(doc);
  if ((r = cfs_json_is_object(&root, err)) < 0 || (r = cfs_json_known_keys(&root, keys, err)) < 0) {
    cfs_json_doc_free(doc);
    return r;
  }
  *ret = doc;
  return 0;
}

int cfs_tables_each(cfs_tables *t, const cfs_json_doc *doc, const char *key, cfs_tables_fill fill, cfs_error **err)
{
  cfs_json_at root = cfs_json_root(doc), list;
  size_t n;
  int r = cfs_json_get_array(&root, key, true, &list, &n, err);
  for (size_t i = 0; i < n && r == 0; i++) {
    cfs_json_at at = cfs_json_element(&list, i);
    r = cfs_json_is_object(&at, err);
    if (r == 0)
      r = fill(t, &at, err);
  }
  return r;
}

static bool holds_tables(const char *dir)
{
  cleanup_free char *path = cfs_path_join(dir, "components.json");
  return cfs_path_is_file(path);
}

/* $CUDAFS_DATA is taken as it is: falling through to other tables would hide a typing mistake in it. */
static int find_data(char **ret, cfs_error **err)
{
  static const char *const compiled_in[] = {
#ifdef CUDAFS_DATA_DIR
      CUDAFS_DATA_DIR,
#endif
#ifdef CUDAFS_SOURCE_DATA_DIR
      CUDAFS_SOURCE_DATA_DIR,
#endif
      NULL};
  const char *given = getenv("CUDAFS_DATA");
  if (given && *given) {
    *ret = cfs_strdup(given);
    return 0;
  }
  for (size_t i = 0; compiled_in[i]; i++) {
    if (holds_tables(compiled_in[i])) {
      *ret = cfs_strdup(compiled_in[i]);
      return 0;
    }
  }
  const char *expected = compiled_in[0] ? compiled_in[0] : "the data tables";
  return cfs_error_set(err, CFS_FAILED, 0, expected, "install the data files, or set CUDAFS_DATA to their folder",
                       "no data tables are there");
}

int cfs_tables_load(cfs_tables **ret, cfs_error **err)
{
  cfs_tables *t = cfs_zalloc(sizeof(*t));
  int r = find_data(&t->dir, err);
  if (r < 0 || (r = cfs_tables_load_components(t, err)) < 0 || (r = cfs_tables_load_releases(t, err)) < 0 ||
      (r = cfs_tables_load_pins(t, err)) < 0 || (r = cfs_tables_load_advisories(t, err)) < 0 ||
      (r = cfs_tables_load_consumers(t, err)) < 0 || (r = cfs_tables_load_problems(t, err)) < 0) {
    cfs_tables_free(t);
    return r;
  }
  *ret = t;
  return 0;
}

void cfs_tables_free(cfs_tables *t)
{
  if (!t)
    return;
  cfs_tables_free_components(t);
  cfs_tables_free_releases(t);
  cfs_tables_free_policies(t);
  free(t->dir);
  free(t);
}
