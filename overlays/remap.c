/* SPDX-License-Identifier: MIT */
#include "overlays/remap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

struct rule {
  char *from;
  char *to; /* NULL: not shown */
  bool whole;
};

struct cfs_remap {
  struct rule *rules;
  size_t count;
};

void cfs_remap_free(cfs_remap *r)
{
  if (!r)
    return;
  for (size_t i = 0; i < r->count; i++) {
    free(r->rules[i].from);
    free(r->rules[i].to);
  }
  free(r->rules);
  free(r);
}

static int add_rule(cfs_remap *r, const json_t *pair, const char *file, cfs_error **err)
{
  const char *from = json_string_value(json_array_get(pair, 0));
  const json_t *to = json_array_get(pair, 1);
  if (json_array_size(pair) != 2 || !from || !*from || !(json_is_string(to) || json_is_null(to)))
    return cfs_error_set(err, CFS_FAILED, 0, file, NULL, "rule %zu is not [prefix, prefix or null]", r->count + 1);
  size_t n = strlen(from);
  bool whole = from[n - 1] == '$';
  r->rules = cfs_grow(r->rules, r->count + 1, sizeof(*r->rules));
  r->rules[r->count++] = (struct rule){
      .from = cfs_strndup(from, whole ? n - 1 : n),
      .to = json_is_string(to) ? cfs_strdup(json_string_value(to)) : NULL,
      .whole = whole,
  };
  return 0;
}

int cfs_remap_load(const char *data_dir, const char *layout, cfs_remap **ret, cfs_error **err)
{
  cleanup_free char *file = cfs_path_join(data_dir, "layouts.json");
  json_error_t why;
  json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &why);
  if (!root)
    return cfs_error_set(err, CFS_FAILED, 0, file, "reinstall cudafs", "%s (line %d)", why.text, why.line);
  const json_t *rules = json_object_get(root, layout);
  cfs_remap *r = cfs_zalloc(sizeof(*r));
  int result = 0;
  if (!json_is_array(rules))
    result = cfs_error_set(err, CFS_FAILED, 0, file, NULL, "it has no rules for \"%s\"", layout);
  for (size_t i = 0; result == 0 && i < json_array_size(rules); i++)
    result = add_rule(r, json_array_get(rules, i), file, err);
  json_decref(root);
  if (result < 0) {
    cfs_remap_free(r);
    return result;
  }
  *ret = r;
  return 0;
}

/* How much of path the pattern covers, or 0. */
static size_t match_prefix(const char *pattern, const char *path)
{
  const char *p = path;
  for (; *pattern; pattern++) {
    if (*pattern == '*') {
      size_t n = strcspn(p, "/");
      if (!n)
        return 0;
      p += n;
    } else if (*pattern != *p++) {
      return 0;
    }
  }
  return (size_t)(p - path);
}

char *cfs_remap_face(const cfs_remap *r, const char *path)
{
  for (size_t i = 0; i < r->count; i++) {
    const struct rule *rule = &r->rules[i];
    size_t n = match_prefix(rule->from, path);
    if (!n || (rule->whole && path[n]))
      continue;
    return rule->to ? cfs_format("%s%s", rule->to, path + n) : NULL;
  }
  return NULL;
}
