/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/manifest_internal.h"
#include "manifests/suggest.h"
#include "manifests/version.h"

/* Checks one string of a list; it fails with an error about at. */
typedef int (*check_item)(struct cfs_manifest_reader *r, const cfs_json_at *at, const char *item);

static int read_list(struct cfs_manifest_reader *r, const cfs_json_at *object, const char *key, check_item check,
                     cfs_strings *ret)
{
  cfs_json_at list;
  size_t n;
  int result = cfs_json_get_array(object, key, false, &list, &n, r->err);
  for (size_t i = 0; i < n && result == 0; i++) {
    cfs_json_at at = cfs_json_element(&list, i);
    const char *item = json_string_value(at.value);
    if (!item)
      return cfs_json_expected(&at, r->err, "a string");
    if (cfs_strings_has(ret, item))
      return cfs_json_fail(&at, r->err, "remove one of the two", "\"%s\" is there twice", item);
    result = check(r, &at, item);
    if (result == 0)
      cfs_strings_add(ret, item);
  }
  return result;
}

static bool is_target(const char *text)
{
  if (!cfs_has_prefix(text, "sm_"))
    return false;
  const char *digits = text + 3;
  size_t n = strspn(digits, "0123456789");
  if (n < 2 || n > 4)
    return false;
  const char *suffix = digits + n;
  return *suffix == '\0' || strcmp(suffix, "a") == 0 || strcmp(suffix, "f") == 0;
}

/* "12.0", "compute_120a" and "120" name targets in other programs; say how they are written here. */
static char *respell_target(const char *item)
{
  const char *digits = item + strcspn(item, "0123456789");
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "sm_");
  for (; *digits; digits++)
    if (isdigit((unsigned char)*digits) || (strchr("af", *digits) && !digits[1]))
      cfs_buffer_add(&b, digits, 1);
  return TAKE_PTR(b.data);
}

static bool target_known(const cfs_tables *t, const char *target)
{
  for (size_t i = 0; i < t->n_releases; i++)
    if (cfs_release_has_target(&t->releases[i], target))
      return true;
  return false;
}

static int check_target(struct cfs_manifest_reader *r, const cfs_json_at *at, const char *item)
{
  if (is_target(item) && target_known(r->tables, item))
    return 0;
  cleanup_free char *spelt = cfs_has_prefix(item, "sm_") ? cfs_strdup(item) : respell_target(item);
  cfs_suggestion s = {.word = spelt};
  for (size_t i = 0; i < r->tables->n_releases; i++)
    for (size_t k = 0; k < r->tables->releases[i].targets.count; k++)
      cfs_suggestion_offer(&s, r->tables->releases[i].targets.items[k]);
  cleanup_free char *fix = cfs_suggestion_text(&s, "name a target as in \"sm_90\" or \"sm_120a\"");
  if (!is_target(item))
    return cfs_json_fail(at, r->err, fix, "expected a target such as \"sm_120\", got \"%s\"", item);
  return cfs_json_fail(at, r->err, fix, "no known release compiles for \"%s\"", item);
}

int cfs_manifest_read_targets(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  return read_list(r, root, "targets", check_target, &r->m->targets);
}

static int check_consumer(struct cfs_manifest_reader *r, const cfs_json_at *at, const char *item)
{
  if (cfs_tables_consumer(r->tables, item))
    return 0;
  cfs_suggestion s = {.word = item};
  cleanup_strings cfs_strings names = {0};
  for (size_t i = 0; i < r->tables->n_consumers; i++) {
    cfs_suggestion_offer(&s, r->tables->consumers[i].name);
    cfs_strings_add(&names, r->tables->consumers[i].name);
  }
  cleanup_free char *list = cfs_strings_join(&names, ", ");
  cleanup_free char *known = cfs_format("known consumers: %s", list);
  cleanup_free char *fix = cfs_suggestion_text(&s, known);
  return cfs_json_fail(at, r->err, fix, "no consumer is called \"%s\"", item);
}

int cfs_manifest_read_consumers(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  return read_list(r, root, "consumers", check_consumer, &r->m->consumers);
}

static int check_toolchain(struct cfs_manifest_reader *r, const cfs_json_at *at, const char *item)
{
  cleanup_free char *release = cfs_version_release(item);
  return release && strcmp(release, item) == 0 ? 0 : cfs_json_expected(at, r->err, "a release such as \"12.9\"");
}

static int check_release(struct cfs_manifest_reader *r, const cfs_json_at *at)
{
  const char *text = json_string_value(at->value);
  if (text && strcmp(text, "torch") == 0)
    return 0;
  cfs_requirement *parsed = NULL;
  if (!text || cfs_requirement_parse(text, &parsed, NULL) < 0)
    return cfs_json_expected(at, r->err, "\"newest\", \"torch\", a release (\"13.2\") or a range (\">=12.9,<14\")");
  cfs_requirement_free(parsed);
  return 0;
}

int cfs_manifest_read_releases(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  cfs_json_at release = cfs_json_member(root, "release");
  int result = release.value ? check_release(r, &release) : 0;
  if (result < 0)
    return result;
  r->m->release = cfs_strdup(release.value ? json_string_value(release.value) : "newest");
  r->m->toolchains_given = json_object_get(root->value, "toolchains") != NULL;
  return read_list(r, root, "toolchains", check_toolchain, &r->m->toolchains);
}

static int unknown_component(struct cfs_manifest_reader *r, const cfs_json_at *at)
{
  cfs_suggestion s = {.word = at->key};
  for (size_t i = 0; i < r->tables->n_components; i++) {
    const cfs_component_info *c = &r->tables->components[i];
    cfs_suggestion_offer(&s, c->name);
    for (size_t k = 0; k < c->aliases.count; k++)
      cfs_suggestion_offer(&s, c->aliases.items[k]);
  }
  cleanup_free char *fix = cfs_suggestion_text(&s, "components are named as in NVIDIA's redistributable list, "
                                                   "such as \"cuda_nvcc\" or \"libcublas\"");
  return cfs_json_fail(at, r->err, fix, "no component is called so");
}

static int check_from(struct cfs_manifest_reader *r, const cfs_json_at *component, const char *from)
{
  cfs_suggestion s = {.word = from};
  for (size_t i = 0; i < r->m->n_sources; i++) {
    if (strcmp(r->m->sources[i].id, from) == 0)
      return 0;
    cfs_suggestion_offer(&s, r->m->sources[i].id);
  }
  cfs_json_at at = cfs_json_member(component, "from");
  cleanup_free char *fix = cfs_suggestion_text(&s, "give the source that is meant an \"id\"");
  return cfs_json_fail(&at, r->err, fix, "no source has the id \"%s\"", from);
}

static int read_component(struct cfs_manifest_reader *r, const cfs_json_at *at, struct cfs_manifest_component *c)
{
  static const char *const keys[] = {"from", "omit", NULL};
  int result = cfs_json_is_object(at, r->err);
  if (result < 0 || (result = cfs_json_known_keys(at, keys, r->err)) < 0 ||
      (result = cfs_json_get_string(at, "from", false, &c->from, r->err)) < 0 ||
      (result = cfs_json_get_bool(at, "omit", &c->omit, r->err)) < 0)
    return result;
  if (c->from && c->omit)
    return cfs_json_fail(at, r->err, "keep one of the two", "\"from\" and \"omit\" exclude each other");
  if (!c->from && !c->omit)
    return cfs_json_fail(at, r->err, NULL, "expected \"from\": \"SOURCE\" or \"omit\": true");
  return c->from ? check_from(r, at, c->from) : 0;
}

static int add_component(struct cfs_manifest_reader *r, const cfs_json_at *at)
{
  const cfs_component_info *info = cfs_tables_component(r->tables, at->key);
  if (!info)
    return unknown_component(r, at);
  if (cfs_manifest_component(r->m, info->name))
    return cfs_json_fail(at, r->err, "remove one of the two", "\"%s\" is another name of a component that is there",
                         at->key);
  struct cfs_manifest_component c = {.name = cfs_strdup(info->name)};
  int result = read_component(r, at, &c);
  r->m->components = cfs_grow(r->m->components, r->m->n_components + 1, sizeof(c));
  r->m->components[r->m->n_components++] = c;
  return result;
}

int cfs_manifest_read_components(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  cfs_json_at components = cfs_json_member(root, "components");
  if (!components.value)
    return 0;
  int result = cfs_json_is_object(&components, r->err);
  const char *key;
  json_t *value;
  if (result == 0)
    json_object_foreach(components.value, key, value)
    {
      cfs_json_at at = cfs_json_member(&components, key);
      if ((result = add_component(r, &at)) < 0)
        break;
    }
  return result;
}

/* The member as one of the words, by its index; *ret stays when it is not there. */
static int read_word(struct cfs_manifest_reader *r, const cfs_json_at *object, const char *key,
                     const char *const *words, unsigned *ret)
{
  cfs_json_at at = cfs_json_member(object, key);
  if (!at.value)
    return 0;
  const char *text = json_string_value(at.value);
  cleanup_buffer cfs_buffer expected = {0};
  cfs_buffer_text(&expected, "one of");
  for (unsigned i = 0; words[i]; i++) {
    if (text && strcmp(words[i], text) == 0) {
      *ret = i;
      return 0;
    }
    cfs_buffer_format(&expected, "%s \"%s\"", i ? "," : "", words[i]);
  }
  return cfs_json_expected(&at, r->err, expected.data);
}

static int check_code(struct cfs_manifest_reader *r, const cfs_json_at *at, const char *item)
{
  if (cfs_strings_has(&r->tables->problem_codes, item))
    return 0;
  cfs_suggestion s = {.word = item};
  for (size_t i = 0; i < r->tables->problem_codes.count; i++)
    cfs_suggestion_offer(&s, r->tables->problem_codes.items[i]);
  cleanup_free char *fix = cfs_suggestion_text(&s, "the codes are those that \"cudafs plan\" prints");
  return cfs_json_fail(at, r->err, fix, "no problem has the code \"%s\"", item);
}

int cfs_manifest_read_policy(struct cfs_manifest_reader *r, const cfs_json_at *root)
{
  static const char *const drifts[] = {"serve-pinned", "reload", "stop", NULL};
  static const char *const checks[] = {"check", "warn", "ignore", NULL};
  static const char *const refusals[] = {"refuse", "warn", "ignore", NULL};
  static const char *const keys[] = {"host-compiler", "advisories", "allow", NULL};
  unsigned drift = CFS_DRIFT_SERVE_PINNED, host = CFS_POLICY_CHECK, advisories = CFS_POLICY_CHECK;
  int result = read_word(r, root, "on-drift", drifts, &drift);
  cfs_json_at policy = cfs_json_member(root, "policy");
  if (result == 0 && policy.value && (result = cfs_json_is_object(&policy, r->err)) == 0 &&
      (result = cfs_json_known_keys(&policy, keys, r->err)) == 0 &&
      (result = read_word(r, &policy, "host-compiler", checks, &host)) == 0 &&
      (result = read_word(r, &policy, "advisories", refusals, &advisories)) == 0)
    result = read_list(r, &policy, "allow", check_code, &r->m->allow);
  r->m->on_drift = (enum cfs_on_drift)drift;
  r->m->host_compiler = (enum cfs_policy_mode)host;
  r->m->advisories = (enum cfs_policy_mode)advisories;
  return result;
}
