/* SPDX-License-Identifier: MIT */
#include "manifests/json_reader.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/json_position.h"
#include "manifests/suggest.h"

cfs_json_at cfs_json_root(const cfs_json_doc *doc)
{
  return (cfs_json_at){.doc = doc, .value = doc->root};
}

cfs_json_at cfs_json_member(const cfs_json_at *object, const char *key)
{
  return (cfs_json_at){.doc = object->doc, .up = object, .key = key, .value = json_object_get(object->value, key)};
}

cfs_json_at cfs_json_element(const cfs_json_at *array, size_t index)
{
  return (cfs_json_at){.doc = array->doc, .up = array, .index = index, .value = json_array_get(array->value, index)};
}

static size_t depth_of(const cfs_json_at *at)
{
  size_t n = 0;
  for (; at->up; at = at->up)
    n++;
  return n;
}

int cfs_json_line(const cfs_json_at *at)
{
  size_t n = depth_of(at);
  cleanup_free struct cfs_json_step *steps = cfs_zalloc((n + 1) * sizeof(*steps));
  for (const cfs_json_at *a = at; a->up; a = a->up)
    steps[--n] = (struct cfs_json_step){a->key, a->index};
  struct cfs_json_position p;
  cfs_json_position_find(at->doc->text, at->doc->size, steps, depth_of(at), &p);
  return p.line;
}

static void add_path(cfs_buffer *b, const cfs_json_at *at)
{
  if (!at->up)
    return;
  add_path(b, at->up);
  if (at->key)
    cfs_buffer_format(b, "%s%s", b->size ? "." : "", at->key);
  else
    cfs_buffer_format(b, "[%zu]", at->index);
}

int cfs_json_fail(const cfs_json_at *at, cfs_error **err, const char *fix, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  cleanup_free char *why = cfs_vformat(format, ap);
  va_end(ap);
  cleanup_buffer cfs_buffer path = {0};
  cfs_buffer_text(&path, "");
  add_path(&path, at);
  cleanup_free char *what = cfs_format("%s:%d", at->doc->name, cfs_json_line(at));
  return cfs_error_set(err, at->doc->kind, 0, what, fix, "%s%s%s", path.data, path.size ? ": " : "", why);
}

/* Long values are cut: the line number is there to find the rest. */
static char *show_value(const json_t *value)
{
  if (!value)
    return cfs_strdup("nothing");
  if (json_is_object(value))
    return cfs_strdup("an object");
  if (json_is_array(value))
    return cfs_strdup("a list");
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  char *shown = text ? cfs_format("%.60s%s", text, strlen(text) > 60 ? "..." : "") : cfs_strdup("a value");
  free(text);
  return shown;
}

int cfs_json_expected(const cfs_json_at *at, cfs_error **err, const char *what)
{
  cleanup_free char *shown = show_value(at->value);
  return cfs_json_fail(at, err, NULL, "expected %s, got %s", what, shown);
}

int cfs_json_is_object(const cfs_json_at *at, cfs_error **err)
{
  return json_is_object(at->value) ? 0 : cfs_json_expected(at, err, "an object");
}

int cfs_json_is_array(const cfs_json_at *at, cfs_error **err)
{
  return json_is_array(at->value) ? 0 : cfs_json_expected(at, err, "a list");
}

int cfs_json_known_keys(const cfs_json_at *object, const char *const *keys, cfs_error **err)
{
  const char *key;
  json_t *value;
  json_object_foreach(object->value, key, value)
  {
    cfs_suggestion s = {.word = key};
    size_t i = 0;
    for (; keys[i] && strcmp(keys[i], key) != 0; i++)
      cfs_suggestion_offer(&s, keys[i]);
    if (keys[i])
      continue;
    cleanup_strings cfs_strings all = {0};
    for (i = 0; keys[i]; i++)
      cfs_strings_add(&all, keys[i]);
    cleanup_free char *list = cfs_strings_join(&all, ", ");
    cleanup_free char *known = cfs_format("known keys here: %s", list);
    cleanup_free char *fix = cfs_suggestion_text(&s, known);
    cfs_json_at at = cfs_json_member(object, key);
    return cfs_json_fail(&at, err, fix, "unknown key");
  }
  return 0;
}

static int check_string(const cfs_json_at *at, cfs_error **err)
{
  return json_string_length(at->value) ? 0 : cfs_json_expected(at, err, "a string that is not empty");
}

int cfs_json_get_string(const cfs_json_at *object, const char *key, bool required, char **ret, cfs_error **err)
{
  cfs_json_at at = cfs_json_member(object, key);
  if (!at.value && !required)
    return 0;
  int r = check_string(&at, err);
  if (r == 0) {
    free(*ret);
    *ret = cfs_strdup(json_string_value(at.value));
  }
  return r;
}

int cfs_json_get_array(const cfs_json_at *object, const char *key, bool required, cfs_json_at *ret, size_t *ret_count,
                       cfs_error **err)
{
  *ret = cfs_json_member(object, key);
  *ret_count = 0;
  if (!ret->value && !required)
    return 0;
  int r = cfs_json_is_array(ret, err);
  if (r == 0)
    *ret_count = json_array_size(ret->value);
  return r;
}

int cfs_json_get_strings(const cfs_json_at *object, const char *key, bool required, cfs_strings *ret, cfs_error **err)
{
  cfs_json_at array;
  size_t n;
  int r = cfs_json_get_array(object, key, required, &array, &n, err);
  for (size_t i = 0; i < n && r == 0; i++) {
    cfs_json_at at = cfs_json_element(&array, i);
    r = check_string(&at, err);
    if (r == 0)
      cfs_strings_add(ret, json_string_value(at.value));
  }
  return r;
}

int cfs_json_get_bool(const cfs_json_at *object, const char *key, bool *ret, cfs_error **err)
{
  cfs_json_at at = cfs_json_member(object, key);
  if (!at.value)
    return 0;
  if (!json_is_boolean(at.value))
    return cfs_json_expected(&at, err, "true or false");
  *ret = json_is_true(at.value);
  return 0;
}

int cfs_json_get_int(const cfs_json_at *object, const char *key, bool required, int *ret, cfs_error **err)
{
  cfs_json_at at = cfs_json_member(object, key);
  if (!at.value && !required)
    return 0;
  json_int_t n = json_integer_value(at.value);
  if (!json_is_integer(at.value) || n < 0 || n > INT_MAX)
    return cfs_json_expected(&at, err, "a whole number");
  *ret = (int)n;
  return 0;
}
