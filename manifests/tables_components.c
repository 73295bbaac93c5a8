/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/tables_internal.h"
#include "manifests/version.h"

static int read_divisors(const cfs_json_at *at, struct cfs_identify *rule, cfs_error **err)
{
  cfs_json_at list;
  size_t n;
  int r = cfs_json_get_array(at, "divisors", true, &list, &n, err);
  if (r < 0)
    return r;
  if (n < 2 || n > 3)
    return cfs_json_expected(&list, err, "two or three divisors");
  for (size_t i = 0; i < n; i++) {
    cfs_json_at element = cfs_json_element(&list, i);
    json_int_t d = json_integer_value(element.value);
    if (d < 1 || d > 100000000)
      return cfs_json_expected(&element, err, "a divisor of at least 1");
    rule->divisor[i] = (int)d;
  }
  return 0;
}

static int read_macros(const cfs_json_at *at, struct cfs_identify *rule, cfs_error **err)
{
  int r = cfs_json_get_strings(at, "macros", true, &rule->macros, err);
  if (r < 0)
    return r;
  cfs_json_at macros = cfs_json_member(at, "macros");
  if (rule->macros.count == 0)
    return cfs_json_expected(&macros, err, "at least one macro");
  if (rule->macros.count == 1)
    return read_divisors(at, rule, err);
  cfs_json_at divisors = cfs_json_member(at, "divisors");
  return divisors.value ? cfs_json_fail(&divisors, err, NULL, "only one packed macro is divided") : 0;
}

static int read_identify(const cfs_json_at *at, struct cfs_identify *rule, cfs_error **err)
{
  static const char *const keys[] = {"tool", "header", "macros", "divisors", "package", NULL};
  bool package = false;
  char *tool = NULL;
  int r = cfs_json_is_object(at, err);
  if (r < 0 || (r = cfs_json_known_keys(at, keys, err)) < 0 ||
      (r = cfs_json_get_string(at, "tool", false, &tool, err)) < 0 ||
      (r = cfs_json_get_string(at, "header", false, &rule->file, err)) < 0 ||
      (r = cfs_json_get_bool(at, "package", &package, err)) < 0) {
    free(tool);
    return r;
  }
  if ((tool != NULL) + (rule->file != NULL) + package != 1) {
    free(tool);
    return cfs_json_fail(at, err, NULL, "expected exactly one of \"tool\", \"header\" and \"package\": true");
  }
  rule->kind = tool ? CFS_IDENTIFY_TOOL : rule->file ? CFS_IDENTIFY_MACROS : CFS_IDENTIFY_PACKAGE;
  if (tool)
    rule->file = tool;
  return rule->kind == CFS_IDENTIFY_MACROS ? read_macros(at, rule, err) : 0;
}

static int read_rules(cfs_component_info *c, const cfs_json_at *at, cfs_error **err)
{
  cfs_json_at list;
  size_t n;
  int r = cfs_json_get_array(at, "identify", true, &list, &n, err);
  if (r < 0 || n == 0)
    return r;
  c->identify = cfs_zalloc(n * sizeof(*c->identify));
  c->n_identify = n;
  for (size_t i = 0; i < n && r == 0; i++) {
    cfs_json_at element = cfs_json_element(&list, i);
    r = read_identify(&element, &c->identify[i], err);
  }
  return r;
}

/* A name that means two components would make lookups depend on file order. */
static int check_names_new(const cfs_tables *t, const cfs_component_info *c, const cfs_json_at *at, cfs_error **err)
{
  cfs_json_at name = cfs_json_member(at, "name");
  if (cfs_tables_component(t, c->name))
    return cfs_json_fail(&name, err, NULL, "\"%s\" already names a component", c->name);
  cfs_json_at aliases = cfs_json_member(at, "aliases");
  for (size_t i = 0; i < c->aliases.count; i++)
    if (cfs_tables_component(t, c->aliases.items[i]))
      return cfs_json_fail(&aliases, err, NULL, "\"%s\" already names a component", c->aliases.items[i]);
  return 0;
}

static int fill_component(cfs_tables *t, const cfs_json_at *at, cfs_error **err)
{
  static const char *const keys[] = {"name", "title",   "aliases",  "wheels", "debs",  "paths",  "identify",
                                     "unit", "runtime", "required", "since",  "until", "within", NULL};
  cfs_component_info c = {0};
  int r = cfs_json_known_keys(at, keys, err);
  if (r == 0 && (r = cfs_json_get_string(at, "name", true, &c.name, err)) == 0 &&
      (r = cfs_json_get_string(at, "title", true, &c.title, err)) == 0 &&
      (r = cfs_json_get_strings(at, "aliases", false, &c.aliases, err)) == 0 &&
      (r = cfs_json_get_strings(at, "wheels", false, &c.wheels, err)) == 0 &&
      (r = cfs_json_get_strings(at, "debs", false, &c.debs, err)) == 0 &&
      (r = cfs_json_get_strings(at, "paths", true, &c.paths, err)) == 0 &&
      (r = cfs_json_get_bool(at, "unit", &c.unit, err)) == 0 &&
      (r = cfs_json_get_bool(at, "runtime", &c.runtime, err)) == 0 &&
      (r = cfs_json_get_bool(at, "required", &c.required, err)) == 0 &&
      (r = cfs_json_get_string(at, "since", false, &c.since, err)) == 0 &&
      (r = cfs_json_get_string(at, "until", false, &c.until, err)) == 0 &&
      (r = cfs_json_get_string(at, "within", false, &c.within, err)) == 0 && (r = read_rules(&c, at, err)) == 0)
    r = check_names_new(t, &c, at, err);
  /* Added even when it is half read: the tables then own, and free, what there is of it. */
  t->components = cfs_grow(t->components, t->n_components + 1, sizeof(c));
  t->components[t->n_components++] = c;
  return r;
}

/* Only once all are read can a component name a later one. */
static int check_within(const cfs_tables *t, const cfs_json_doc *doc, cfs_error **err)
{
  cfs_json_at root = cfs_json_root(doc), list = cfs_json_member(&root, "components");
  for (size_t i = 0; i < t->n_components; i++) {
    const cfs_component_info *c = &t->components[i];
    if (!c->within || cfs_tables_component(t, c->within))
      continue;
    cfs_json_at element = cfs_json_element(&list, i), within = cfs_json_member(&element, "within");
    return cfs_json_fail(&within, err, NULL, "\"%s\" is no component", c->within);
  }
  return 0;
}

int cfs_tables_load_components(cfs_tables *t, cfs_error **err)
{
  static const char *const keys[] = {"components", "placeholder-versions", NULL};
  cfs_json_doc *doc = NULL;
  int r = cfs_tables_open(t, "components.json", keys, &doc, err);
  if (r < 0)
    return r;
  cfs_json_at root = cfs_json_root(doc);
  r = cfs_json_get_strings(&root, "placeholder-versions", true, &t->placeholder_versions, err);
  if (r == 0 && (r = cfs_tables_each(t, doc, "components", fill_component, err)) == 0)
    r = check_within(t, doc, err);
  cfs_json_doc_free(doc);
  return r;
}

static void component_done(cfs_component_info *c)
{
  free(c->name);
  free(c->title);
  free(c->since);
  free(c->until);
  free(c->within);
  cfs_strings_done(&c->aliases);
  cfs_strings_done(&c->wheels);
  cfs_strings_done(&c->debs);
  cfs_strings_done(&c->paths);
  for (size_t i = 0; i < c->n_identify; i++) {
    free(c->identify[i].file);
    cfs_strings_done(&c->identify[i].macros);
  }
  free(c->identify);
}

void cfs_tables_free_components(cfs_tables *t)
{
  for (size_t i = 0; i < t->n_components; i++)
    component_done(&t->components[i]);
  free(t->components);
  cfs_strings_done(&t->placeholder_versions);
}

const cfs_component_info *cfs_tables_component(const cfs_tables *t, const char *name_or_alias)
{
  for (size_t i = 0; i < t->n_components; i++) {
    const cfs_component_info *c = &t->components[i];
    if (c->name && (strcmp(c->name, name_or_alias) == 0 || cfs_strings_has(&c->aliases, name_or_alias)))
      return c;
  }
  return NULL;
}

char *cfs_wheel_name_normalise(const char *distribution)
{
  size_t n = strlen(distribution), used = 0;
  char *name = cfs_zalloc(n + 1);
  for (size_t i = 0; i < n; i++) {
    char c = distribution[i];
    if (strchr("-_.", c)) {
      if (used == 0 || name[used - 1] == '-')
        continue;
      c = '-';
    }
    name[used++] = (char)tolower((unsigned char)c);
  }
  size_t digits = used;
  while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
    digits--;
  if (digits < used && digits >= 3 && memcmp(name + digits - 3, "-cu", 3) == 0)
    used = digits - 3;
  name[used] = '\0';
  return name;
}

const cfs_component_info *cfs_tables_component_of_wheel(const cfs_tables *t, const char *distribution)
{
  cleanup_free char *name = cfs_wheel_name_normalise(distribution);
  for (size_t i = 0; i < t->n_components; i++)
    if (cfs_strings_has(&t->components[i].wheels, name))
      return &t->components[i];
  return NULL;
}

const cfs_component_info *cfs_tables_component_of_path(const cfs_tables *t, const char *face_path)
{
  for (size_t i = 0; i < t->n_components; i++) {
    const cfs_strings *globs = &t->components[i].paths;
    for (size_t k = 0; k < globs->count; k++)
      if (fnmatch(globs->items[k], face_path, 0) == 0)
        return &t->components[i];
  }
  return NULL;
}

const cfs_component_info *cfs_tables_component_in_release(const cfs_tables *t, const char *name, const char *release)
{
  const cfs_component_info *c = cfs_tables_component(t, name);
  if (!c || !c->within)
    return c;
  bool alone = (!c->since || cfs_version_compare(release, c->since) >= 0) &&
               (!c->until || cfs_version_compare(release, c->until) < 0);
  return alone ? c : cfs_tables_component(t, c->within);
}

static char *packed_version(const int *divisor, long n)
{
  if (!divisor[0] || !divisor[1])
    return NULL;
  long major = n / divisor[0], minor = n % divisor[0] / divisor[1];
  if (!divisor[2])
    return cfs_format("%ld.%ld", major, minor);
  return cfs_format("%ld.%ld.%ld", major, minor, n % divisor[1] / divisor[2]);
}

char *cfs_identify_version(const struct cfs_identify *rule, const long *values, size_t n)
{
  if (rule->kind != CFS_IDENTIFY_MACROS || n != rule->macros.count)
    return NULL;
  cleanup_buffer cfs_buffer b = {0};
  for (size_t i = 0; i < n; i++) {
    if (values[i] < 0)
      return NULL;
    cfs_buffer_format(&b, "%s%ld", i ? "." : "", values[i]);
  }
  return n == 1 ? packed_version(rule->divisor, values[0]) : cfs_strdup(b.data);
}
