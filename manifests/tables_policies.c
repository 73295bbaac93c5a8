/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/tables_internal.h"
#include "manifests/version.h"

/* A requirement that does not parse would silently admit nothing. */
static int check_requirement(const cfs_json_at *object, const char *key, const char *text, cfs_error **err)
{
  cfs_json_at at = cfs_json_member(object, key);
  cfs_requirement *parsed = NULL;
  cleanup_error cfs_error *cause = NULL;
  if (cfs_requirement_parse(text, &parsed, &cause) < 0)
    return cfs_json_fail(&at, err, NULL, "%s", cause->why);
  cfs_requirement_free(parsed);
  return 0;
}

static int fill_advisory(cfs_tables *t, const cfs_json_at *at, cfs_error **err)
{
  static const char *const keys[] = {"id", "component", "versions", "targets", "summary", "reference", NULL};
  struct cfs_advisory a = {0};
  int r = cfs_json_known_keys(at, keys, err);
  if (r == 0 && (r = cfs_json_get_string(at, "id", true, &a.id, err)) == 0 &&
      (r = cfs_json_get_string(at, "component", true, &a.component, err)) == 0 &&
      (r = cfs_json_get_string(at, "versions", true, &a.versions, err)) == 0 &&
      (r = cfs_json_get_strings(at, "targets", false, &a.targets, err)) == 0 &&
      (r = cfs_json_get_string(at, "summary", true, &a.summary, err)) == 0 &&
      (r = cfs_json_get_string(at, "reference", true, &a.reference, err)) == 0)
    r = check_requirement(at, "versions", a.versions, err);
  t->advisories = cfs_grow(t->advisories, t->n_advisories + 1, sizeof(a));
  t->advisories[t->n_advisories++] = a;
  if (r == 0 && !cfs_tables_component(t, a.component)) {
    cfs_json_at component = cfs_json_member(at, "component");
    r = cfs_json_fail(&component, err, NULL, "\"%s\" is no component", a.component);
  }
  return r;
}

int cfs_tables_load_advisories(cfs_tables *t, cfs_error **err)
{
  static const char *const keys[] = {"advisories", NULL};
  cfs_json_doc *doc = NULL;
  int r = cfs_tables_open(t, "advisories.json", keys, &doc, err);
  if (r == 0)
    r = cfs_tables_each(t, doc, "advisories", fill_advisory, err);
  cfs_json_doc_free(doc);
  return r;
}

static int fill_problem(cfs_tables *t, const cfs_json_at *at, cfs_error **err)
{
  static const char *const keys[] = {"code", "title", "explanation", NULL};
  struct cfs_problem_info p = {0};
  int r = cfs_json_known_keys(at, keys, err);
  if (r == 0 && (r = cfs_json_get_string(at, "code", true, &p.code, err)) == 0 &&
      (r = cfs_json_get_string(at, "title", true, &p.title, err)) == 0 &&
      (r = cfs_json_get_string(at, "explanation", true, &p.explanation, err)) == 0 &&
      cfs_strings_has(&t->problem_codes, p.code))
    r = cfs_json_fail(at, err, NULL, "code \"%s\" is there twice", p.code);
  t->problems = cfs_grow(t->problems, t->n_problems + 1, sizeof(p));
  t->problems[t->n_problems++] = p;
  if (r == 0)
    cfs_strings_add(&t->problem_codes, p.code);
  return r;
}

int cfs_tables_load_problems(cfs_tables *t, cfs_error **err)
{
  static const char *const keys[] = {"problems", NULL};
  cfs_json_doc *doc = NULL;
  int r = cfs_tables_open(t, "problem-codes.json", keys, &doc, err);
  if (r == 0)
    r = cfs_tables_each(t, doc, "problems", fill_problem, err);
  cfs_json_doc_free(doc);
  return r;
}

static int read_rule(struct cfs_consumer_rule *rule, const cfs_json_at *at, cfs_error **err)
{
  static const char *const keys[] = {"target", "min-release", "max-release", "reason", NULL};
  int r = cfs_json_is_object(at, err);
  if (r < 0 || (r = cfs_json_known_keys(at, keys, err)) < 0 ||
      (r = cfs_json_get_string(at, "target", true, &rule->target, err)) < 0 ||
      (r = cfs_json_get_string(at, "min-release", false, &rule->min_release, err)) < 0 ||
      (r = cfs_json_get_string(at, "max-release", false, &rule->max_release, err)) < 0)
    return r;
  if (!rule->min_release && !rule->max_release)
    return cfs_json_fail(at, err, NULL, "expected \"min-release\" or \"max-release\"");
  return cfs_json_get_string(at, "reason", true, &rule->reason, err);
}

static int read_consumer_rules(cfs_consumer_info *c, const cfs_json_at *at, cfs_error **err)
{
  cfs_json_at list;
  size_t n;
  int r = cfs_json_get_array(at, "rules", false, &list, &n, err);
  if (r < 0 || n == 0)
    return r;
  c->rules = cfs_zalloc(n * sizeof(*c->rules));
  c->n_rules = n;
  for (size_t i = 0; i < n && r == 0; i++) {
    cfs_json_at element = cfs_json_element(&list, i);
    r = read_rule(&c->rules[i], &element, err);
  }
  return r;
}

static int fill_consumer(cfs_tables *t, const cfs_json_at *at, const char *file, cfs_error **err)
{
  cfs_consumer_info c = {0};
  int r = cfs_json_get_string(at, "name", true, &c.name, err);
  if (r == 0 && (r = cfs_json_get_string(at, "title", true, &c.title, err)) == 0 &&
      (r = cfs_json_get_strings(at, "env", true, &c.env, err)) == 0 &&
      (r = cfs_json_get_strings(at, "needs", true, &c.needs, err)) == 0 &&
      (r = cfs_json_get_strings(at, "shadowed-by", false, &c.shadowed_by, err)) == 0)
    r = read_consumer_rules(&c, at, err);
  /* One file a consumer, found by its name: so a name cannot be taken twice. */
  cleanup_free char *expected = cfs_format("%s.json", c.name ? c.name : "");
  if (r == 0 && strcmp(expected, file) != 0) {
    cfs_json_at name = cfs_json_member(at, "name");
    r = cfs_json_expected(&name, err, "the name of the file without .json");
  }
  t->consumers = cfs_grow(t->consumers, t->n_consumers + 1, sizeof(c));
  t->consumers[t->n_consumers++] = c;
  return r;
}

static int load_consumer(cfs_tables *t, const char *file, cfs_error **err)
{
  static const char *const keys[] = {"name", "title", "env", "needs", "shadowed-by", "rules", NULL};
  cleanup_free char *relative = cfs_path_join("consumers", file);
  cfs_json_doc *doc = NULL;
  int r = cfs_tables_open(t, relative, keys, &doc, err);
  if (r < 0)
    return r;
  cfs_json_at root = cfs_json_root(doc);
  r = fill_consumer(t, &root, file, err);
  cfs_json_doc_free(doc);
  return r;
}

int cfs_tables_load_consumers(cfs_tables *t, cfs_error **err)
{
  cleanup_free char *path = cfs_path_join(t->dir, "consumers");
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir)
    return cfs_error_set(err, CFS_FAILED, errno, path, NULL, "cannot be read: %s", strerror(errno));
  cleanup_strings cfs_strings files = {0};
  struct dirent *entry;
  while ((entry = readdir(dir)))
    if (entry->d_name[0] != '.' && cfs_has_suffix(entry->d_name, ".json"))
      cfs_strings_add(&files, entry->d_name);
  cfs_strings_sort(&files);
  int r = 0;
  for (size_t i = 0; i < files.count && r == 0; i++)
    r = load_consumer(t, files.items[i], err);
  return r;
}

static void consumer_done(cfs_consumer_info *c)
{
  free(c->name);
  free(c->title);
  cfs_strings_done(&c->env);
  cfs_strings_done(&c->needs);
  cfs_strings_done(&c->shadowed_by);
  for (size_t i = 0; i < c->n_rules; i++) {
    free(c->rules[i].target);
    free(c->rules[i].min_release);
    free(c->rules[i].max_release);
    free(c->rules[i].reason);
  }
  free(c->rules);
}

void cfs_tables_free_policies(cfs_tables *t)
{
  for (size_t i = 0; i < t->n_advisories; i++) {
    struct cfs_advisory *a = &t->advisories[i];
    free(a->id);
    free(a->component);
    free(a->versions);
    free(a->summary);
    free(a->reference);
    cfs_strings_done(&a->targets);
  }
  free(t->advisories);
  for (size_t i = 0; i < t->n_consumers; i++)
    consumer_done(&t->consumers[i]);
  free(t->consumers);
  for (size_t i = 0; i < t->n_problems; i++) {
    free(t->problems[i].code);
    free(t->problems[i].title);
    free(t->problems[i].explanation);
  }
  free(t->problems);
  cfs_strings_done(&t->problem_codes);
}

const cfs_consumer_info *cfs_tables_consumer(const cfs_tables *t, const char *name)
{
  for (size_t i = 0; i < t->n_consumers; i++)
    if (strcmp(t->consumers[i].name, name) == 0)
      return &t->consumers[i];
  return NULL;
}

const struct cfs_problem_info *cfs_tables_problem(const cfs_tables *t, const char *code)
{
  for (size_t i = 0; i < t->n_problems; i++)
    if (strcmp(t->problems[i].code, code) == 0)
      return &t->problems[i];
  return NULL;
}
