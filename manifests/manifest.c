/* SPDX-License-Identifier: MIT */
#include "manifests/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/manifest_internal.h"

#define FORMAT           1
#define LARGEST_MANIFEST (1u << 20)

static void source_done(struct cfs_manifest_source *s)
{
  free(s->id);
  free(s->path);
  free(s->sha256);
}

void cfs_manifest_free(cfs_manifest *m)
{
  if (!m)
    return;
  for (size_t i = 0; i < m->n_sources; i++)
    source_done(&m->sources[i]);
  for (size_t i = 0; i < m->n_components; i++) {
    free(m->components[i].name);
    free(m->components[i].from);
  }
  free(m->sources);
  free(m->components);
  free(m->path);
  free(m->name);
  free(m->release);
  cfs_strings_done(&m->targets);
  cfs_strings_done(&m->consumers);
  cfs_strings_done(&m->toolchains);
  cfs_strings_done(&m->allow);
  free(m);
}

const struct cfs_manifest_component *cfs_manifest_component(const cfs_manifest *m, const char *name)
{
  for (size_t i = 0; i < m->n_components; i++)
    if (strcmp(m->components[i].name, name) == 0)
      return &m->components[i];
  return NULL;
}

/* Asked first: a file of another kind should hear that, not about its first unknown key. */
static int check_format(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  cfs_json_at format = cfs_json_member(root, "cudafs");
  if (!format.value)
    return cfs_json_fail(&format, r->err, "write \"cudafs\": 1 as the first key", "expected 1, the format's number");
  if (!json_is_integer(format.value) || json_integer_value(format.value) < FORMAT)
    return cfs_json_expected(&format, r->err, "1, the format's number");
  if (json_integer_value(format.value) > FORMAT)
    return cfs_json_fail(&format, r->err, "use a newer cudafs", "expected 1, the only format known here, got %lld",
                         (long long)json_integer_value(format.value));
  return 0;
}

static int read_root(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  static const char *const keys[] = {"cudafs",    "name",       "sources",    "release",  "targets",
                                     "consumers", "components", "toolchains", "on-drift", "policy",
                                     "snapshot",  "$schema",    NULL};
  char *schema = NULL;
  int result = cfs_json_is_object(root, r->err);
  if (result == 0 && (result = check_format(r, root)) == 0 && (result = cfs_json_known_keys(root, keys, r->err)) == 0 &&
      (result = cfs_json_get_string(root, "$schema", false, &schema, r->err)) == 0 &&
      (result = cfs_json_get_string(root, "name", false, &r->m->name, r->err)) == 0 &&
      (result = cfs_json_get_bool(root, "snapshot", &r->m->snapshot, r->err)) == 0 &&
      (result = cfs_manifest_read_sources(r, root)) == 0 && (result = cfs_manifest_read_releases(r, root)) == 0 &&
      (result = cfs_manifest_read_targets(r, root)) == 0 && (result = cfs_manifest_read_consumers(r, root)) == 0 &&
      (result = cfs_manifest_read_components(r, root)) == 0)
    result = cfs_manifest_read_policy(r, root);
  free(schema);
  return result;
}

static int read_doc(const cfs_json_doc *doc, const char *base, const cfs_tables *tables, cfs_manifest **ret,
                    cfs_error **err)
{
  cfs_manifest *m = cfs_zalloc(sizeof(*m));
  struct cfs_manifest_reader r = {.m = m, .base = base, .tables = tables, .err = err};
  cfs_json_at root = cfs_json_root(doc);
  int result = read_root(&r, &root);
  if (result < 0) {
    cfs_manifest_free(m);
    return result;
  }
  *ret = m;
  return 0;
}

int cfs_manifest_parse(const char *text, size_t size, const char *name, const char *base, const cfs_tables *tables,
                       cfs_manifest **ret, cfs_error **err)
{
  if (size > LARGEST_MANIFEST)
    return cfs_error_set(err, CFS_INVALID, EFBIG, name, NULL, "is larger than %u KiB", LARGEST_MANIFEST / 1024);
  cfs_json_doc *doc = NULL;
  int r = cfs_json_doc_parse(name, text, size, CFS_INVALID, &doc, err);
  if (r == 0)
    r = read_doc(doc, base, tables, ret, err);
  cfs_json_doc_free(doc);
  return r;
}

/* The working directory, or "/" when it is gone: absolute paths then still work. */
static char *working_directory(void)
{
  char *cwd = getcwd(NULL, 0);
  return cwd && *cwd == '/' ? cwd : (free(cwd), cfs_strdup("/"));
}

int cfs_manifest_load(const char *path, const cfs_tables *tables, cfs_manifest **ret, cfs_error **err)
{
  cfs_json_doc *doc = NULL;
  int r = cfs_json_doc_load(path, LARGEST_MANIFEST, CFS_INVALID, &doc, err);
  if (r < 0)
    return r;
  cleanup_free char *cwd = working_directory();
  cleanup_free char *absolute = cfs_manifest_absolute(cwd, path);
  cleanup_free char *base = cfs_strndup(absolute, (size_t)(strrchr(absolute, '/') - absolute) + 1);
  r = read_doc(doc, base, tables, ret, err);
  if (r == 0)
    (*ret)->path = TAKE_PTR(absolute);
  cfs_json_doc_free(doc);
  return r;
}

cfs_manifest *cfs_manifest_from_paths(const char *const *paths, size_t n)
{
  cleanup_free char *cwd = working_directory();
  cfs_manifest *m = cfs_zalloc(sizeof(*m));
  m->release = cfs_strdup("newest");
  m->sources = cfs_zalloc((n + 1) * sizeof(*m->sources));
  m->n_sources = n;
  for (size_t i = 0; i < n; i++)
    m->sources[i].path = cfs_manifest_absolute(cwd, paths[i]);
  cfs_manifest_name_sources(m);
  return m;
}
