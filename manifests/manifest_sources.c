/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/manifest_internal.h"

/* Ids are compared with each other; a list this long is a mistake, not a toolkit. */
#define MOST_SOURCES 1000
#define LONGEST_ID   64

static const struct {
  enum cfs_source_kind kind;
  const char *key;
} kinds[] = {
    {CFS_SOURCE_SITE_PACKAGES, "site-packages"},
    {CFS_SOURCE_TOOLKIT, "toolkit"},
    {CFS_SOURCE_DEBIAN, "debian"},
    {CFS_SOURCE_CONDA, "conda"},
    {CFS_SOURCE_HPCSDK, "hpcsdk"},
    {CFS_SOURCE_REDIST, "redist"},
    {CFS_SOURCE_ARCHIVE, "archive"},
    {CFS_SOURCE_IMAGE, "image"},
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))
#define KIND_LIST \
  "\"site-packages\", \"toolkit\", \"debian\", \"conda\", \"hpcsdk\", \"redist\", \"archive\" and \"image\""

const char *cfs_source_kind_name(enum cfs_source_kind kind)
{
  for (size_t i = 0; i < N_KINDS; i++)
    if (kinds[i].kind == kind)
      return kinds[i].key;
  return "source";
}

char *cfs_manifest_absolute(const char *base, const char *path)
{
  cleanup_free char *joined = *path == '/' ? cfs_strdup(path) : cfs_format("%s/%s", base, path);
  cleanup_strings cfs_strings elements = {0};
  cfs_strings_split(&elements, joined, "/");
  cleanup_buffer cfs_buffer b = {0};
  for (size_t i = 0; i < elements.count; i++)
    if (strcmp(elements.items[i], ".") != 0)
      cfs_buffer_format(&b, "/%s", elements.items[i]);
  return b.size ? cfs_strdup(b.data) : cfs_strdup("/");
}

static bool is_pattern(const char *path)
{
  return strpbrk(path, "*?[") != NULL;
}

/* A pattern is relative to a folder whose own name may hold the characters of patterns. */
static char *escape_pattern(const char *text)
{
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  for (; *text; text++) {
    if (strchr("*?[\\", *text))
      cfs_buffer_text(&b, "\\");
    cfs_buffer_add(&b, text, 1);
  }
  return TAKE_PTR(b.data);
}

static int read_path(struct cfs_manifest_reader *r, const cfs_json_at *at, struct cfs_manifest_source *s)
{
  const char *path = json_string_value(at->value);
  if (!path || !*path)
    return cfs_json_expected(at, r->err, "a path");
  if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
    return cfs_json_fail(at, r->err, "write the home directory out", "\"~\" is not expanded in a manifest");
  bool pattern = s->kind == CFS_SOURCE_ARCHIVE && is_pattern(path);
  cleanup_free char *base = pattern ? escape_pattern(r->base) : cfs_strdup(r->base);
  s->path = cfs_manifest_absolute(base, path);
  return 0;
}

static bool is_id(const char *id)
{
  size_t n = strlen(id);
  if (n == 0 || n > LONGEST_ID || !isalnum((unsigned char)id[0]))
    return false;
  for (size_t i = 0; i < n; i++)
    if (!isalnum((unsigned char)id[i]) && !strchr("._+-", id[i]))
      return false;
  return true;
}

static bool has_id(const cfs_manifest *m, const char *id)
{
  for (size_t i = 0; i < m->n_sources; i++)
    if (m->sources[i].id && strcmp(m->sources[i].id, id) == 0)
      return true;
  return false;
}

static int read_id(struct cfs_manifest_reader *r, const cfs_json_at *source, struct cfs_manifest_source *s)
{
  cfs_json_at at = cfs_json_member(source, "id");
  if (!at.value)
    return 0;
  const char *id = json_string_value(at.value);
  if (!id || !is_id(id))
    return cfs_json_expected(&at, r->err, "a name of letters, digits and \"._+-\"");
  if (has_id(r->m, id))
    return cfs_json_fail(&at, r->err, "give one of the two another id", "another source has the id \"%s\"", id);
  s->id = cfs_strdup(id);
  return 0;
}

static int read_sha256(struct cfs_manifest_reader *r, const cfs_json_at *source, struct cfs_manifest_source *s)
{
  cfs_json_at at = cfs_json_member(source, "sha256");
  if (!at.value)
    return 0;
  if (s->kind != CFS_SOURCE_ARCHIVE)
    return cfs_json_fail(&at, r->err, "remove it", "only an \"archive\" has one checksum");
  const char *sum = json_string_value(at.value);
  if (!sum || strlen(sum) != 64 || strspn(sum, "0123456789abcdefABCDEF") != 64)
    return cfs_json_expected(&at, r->err, "64 hexadecimal digits");
  s->sha256 = cfs_strdup(sum);
  for (char *c = s->sha256; *c; c++)
    *c = (char)tolower((unsigned char)*c);
  return 0;
}

static int read_kind(struct cfs_manifest_reader *r, const cfs_json_at *source, struct cfs_manifest_source *s)
{
  const char *found = NULL;
  for (size_t i = 0; i < N_KINDS; i++) {
    cfs_json_at at = cfs_json_member(source, kinds[i].key);
    if (!at.value)
      continue;
    if (found)
      return cfs_json_fail(&at, r->err, "make it two sources", "a source is one place, but \"%s\" is given too", found);
    found = kinds[i].key;
    s->kind = kinds[i].kind;
    int result = read_path(r, &at, s);
    if (result < 0)
      return result;
  }
  if (!found)
    return cfs_json_fail(source, r->err, "name its kind and its place, as in { \"toolkit\": \"/usr/local/cuda\" }",
                         "expected exactly one of " KIND_LIST);
  return 0;
}

static int read_object(struct cfs_manifest_reader *r, const cfs_json_at *source, struct cfs_manifest_source *s)
{
  const char *keys[N_KINDS + 3] = {"id", "sha256"};
  for (size_t i = 0; i < N_KINDS; i++)
    keys[2 + i] = kinds[i].key;
  int result = cfs_json_known_keys(source, keys, r->err);
  if (result == 0 && (result = read_kind(r, source, s)) == 0 && (result = read_sha256(r, source, s)) == 0)
    result = read_id(r, source, s);
  return result;
}

static int read_source(struct cfs_manifest_reader *r, const cfs_json_at *source)
{
  struct cfs_manifest_source s = {.line = cfs_json_line(source)};
  int result;
  if (json_is_string(source->value))
    result = read_path(r, source, &s);
  else if (json_is_object(source->value))
    result = read_object(r, source, &s);
  else
    result = cfs_json_expected(source, r->err, "a path or an object");
  r->m->sources[r->m->n_sources++] = s;
  return result;
}

int cfs_manifest_read_sources(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  cfs_json_at list;
  size_t n;
  int result = cfs_json_get_array(root, "sources", true, &list, &n, r->err);
  if (result < 0)
    return result;
  if (n == 0)
    return cfs_json_fail(&list, r->err, "name a toolkit, a virtual environment or an archive",
                         "expected at least one source");
  if (n > MOST_SOURCES)
    return cfs_json_fail(&list, r->err, NULL, "expected at most %d sources, got %zu", MOST_SOURCES, n);
  r->m->sources = cfs_zalloc(n * sizeof(*r->m->sources));
  for (size_t i = 0; i < n && result == 0; i++) {
    cfs_json_at source = cfs_json_element(&list, i);
    result = read_source(r, &source);
  }
  if (result == 0)
    cfs_manifest_name_sources(r->m);
  return result;
}

/* Elements that say where in a tree something lies, not which tree it is. */
static bool is_generic(const char *element)
{
  static const char *const words[] = {"site-packages", "dist-packages", "lib", "lib64", "nvidia", "..", NULL};
  for (size_t i = 0; words[i]; i++)
    if (strcmp(element, words[i]) == 0)
      return true;
  return cfs_has_prefix(element, "python") && strspn(element + 6, "0123456789.") == strlen(element + 6);
}

/* Only what an id may hold; no archive suffix, and nothing odd at either end. */
static char *clean_id(const char *element)
{
  static const char *const suffixes[] = {".whl", ".deb", ".conda", ".tar.xz", ".tar.gz", ".tar.bz2", ".zip", NULL};
  size_t n = strlen(element);
  for (size_t i = 0; suffixes[i]; i++)
    if (cfs_has_suffix(element, suffixes[i]))
      n -= strlen(suffixes[i]);
  while (n && !isalnum((unsigned char)*element))
    element++, n--;
  char *id = cfs_strndup(element, n < LONGEST_ID - 8 ? n : LONGEST_ID - 8);
  for (char *c = id; *c; c++)
    if (!isalnum((unsigned char)*c) && !strchr("._+-", *c))
      *c = '-';
  for (n = strlen(id); n && !isalnum((unsigned char)id[n - 1]); n--)
    id[n - 1] = '\0';
  return id;
}

static char *make_id(const struct cfs_manifest_source *s)
{
  cleanup_strings cfs_strings elements = {0};
  cfs_strings_split(&elements, s->path, "/");
  size_t last = elements.count;
  while (last > 1 && is_generic(elements.items[last - 1]))
    last--;
  char *id = last ? clean_id(elements.items[last - 1]) : cfs_strdup("");
  if (*id)
    return id;
  free(id);
  return cfs_strdup(cfs_source_kind_name(s->kind));
}

void cfs_manifest_name_sources(cfs_manifest *m)
{
  for (size_t i = 0; i < m->n_sources; i++) {
    struct cfs_manifest_source *s = &m->sources[i];
    if (s->id)
      continue;
    cleanup_free char *stem = make_id(s);
    char *id = cfs_strdup(stem);
    for (int n = 2; has_id(m, id); n++) {
      free(id);
      id = cfs_format("%s-%d", stem, n);
    }
    s->id = id;
  }
}
