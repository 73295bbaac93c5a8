/* SPDX-License-Identifier: MIT */
#include "manifests/json_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

void cfs_json_doc_free(cfs_json_doc *doc)
{
  if (!doc)
    return;
  json_decref(doc->root);
  free(doc->name);
  free(doc->text);
  free(doc);
}

/* The first byte that jansson could not accept, by its line and column. NULL when it is out of reach. */
static const char *offender(const char *text, size_t size, const json_error_t *e)
{
  size_t at = e->position > 0 ? (size_t)e->position - 1 : 0;
  return at < size ? text + at : NULL;
}

/* The last character before `at` that is not white space, or 0. */
static char before(const char *text, const char *at)
{
  while (at > text && strchr(" \t\r\n", at[-1]))
    at--;
  return at > text ? at[-1] : '\0';
}

/* jansson's messages are right but terse; the mistakes people make by hand get a sentence and a fix. */
static int syntax_error(const cfs_json_doc *doc, const json_error_t *e, cfs_error **err)
{
  cleanup_free char *what = cfs_format("%s:%d", doc->name, e->line > 0 ? e->line : 1);
  const char *at = offender(doc->text, doc->size, e);
  char c = at ? *at : '\0';
  switch (json_error_code(e)) {
  case json_error_duplicate_key:
    return cfs_error_set(err, doc->kind, 0, what, "remove one of the two", "%s", e->text);
  case json_error_invalid_utf8:
    return cfs_error_set(err, doc->kind, 0, what, "save the file as UTF-8", "the text is not UTF-8");
  case json_error_end_of_input_expected:
    return cfs_error_set(err, doc->kind, 0, what, "one JSON object is all that the file may hold",
                         "there is more after the end of the JSON value");
  case json_error_premature_end_of_input:
    return cfs_error_set(err, doc->kind, 0, what, "close what is open: a bracket, a brace or a string",
                         "the text ends in the middle of a value");
  default:
    break;
  }
  if (c == '/' || c == '#')
    return cfs_error_set(err, doc->kind, 0, what, "remove the comment; JSON has none", "a comment is not JSON");
  if (at && (c == '}' || c == ']') && before(doc->text, at) == ',')
    return cfs_error_set(err, doc->kind, 0, what, "remove the comma before it", "a comma stands before \"%c\"", c);
  if (c == '\'')
    return cfs_error_set(err, doc->kind, 0, what, "write strings and keys in double quotes",
                         "a single quote is not JSON");
  return cfs_error_set(err, doc->kind, 0, what, NULL, "not JSON at column %d: %s", e->column, e->text);
}

static bool is_blank(const char *text, size_t size)
{
  static const char blanks[] = {' ', '\t', '\r', '\n'};
  for (size_t i = 0; i < size; i++)
    if (!memchr(blanks, text[i], sizeof(blanks)))
      return false;
  return true;
}

int cfs_json_doc_parse(const char *name, const char *text, size_t size, enum cfs_error_kind kind, cfs_json_doc **ret,
                       cfs_error **err)
{
  if (is_blank(text, size))
    return cfs_error_set(err, kind, 0, name, "the least is { \"cudafs\": 1, \"sources\": [\"/usr/local/cuda\"] }",
                         "the file is empty");
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
    return cfs_error_set(err, kind, 0, name, "save the file without a byte order mark",
                         "the text begins with a byte order mark");
  cfs_json_doc *doc = cfs_zalloc(sizeof(*doc));
  doc->name = cfs_strdup(name);
  doc->text = cfs_grow(NULL, size + 1, 1);
  memcpy(doc->text, text, size);
  doc->text[size] = '\0';
  doc->size = size;
  doc->kind = kind;
  json_error_t e;
  doc->root = json_loadb(doc->text, size, JSON_REJECT_DUPLICATES, &e);
  if (!doc->root) {
    int r = syntax_error(doc, &e, err);
    cfs_json_doc_free(doc);
    return r;
  }
  *ret = doc;
  return 0;
}

int cfs_json_doc_load(const char *path, size_t limit, enum cfs_error_kind kind, cfs_json_doc **ret, cfs_error **err)
{
  /* A FIFO or a device would block or never end, so the kind is looked at before anything is read. */
  struct stat st;
  if (stat(path, &st) < 0)
    return cfs_error_set(err, kind, errno, path, NULL, "cannot be read: %s", strerror(errno));
  if (!S_ISREG(st.st_mode))
    return cfs_error_set(err, kind, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, path, "name the JSON file itself",
                         S_ISDIR(st.st_mode) ? "is a directory, not a file" : "is not a regular file");
  cleanup_free char *text = NULL;
  size_t size = 0;
  int r = cfs_file_read(path, limit, &text, &size);
  if (r == -EFBIG)
    return cfs_error_set(err, kind, EFBIG, path, NULL, "is larger than %zu KiB", limit / 1024);
  if (r < 0)
    return cfs_error_set(err, kind, -r, path, NULL, "cannot be read: %s", strerror(-r));
  return cfs_json_doc_parse(path, text, size, kind, ret, err);
}
