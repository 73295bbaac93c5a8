/* SPDX-License-Identifier: MIT */
#include "manifests/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

/* The digits at *at, without leading zeros, so that any length can be compared without overflow. */
struct number {
  const char *digits;
  size_t count;
};

static bool next_number(const char **at, struct number *ret)
{
  const char *s = *at;
  if (!isdigit((unsigned char)*s))
    return false;
  while (*s == '0' && isdigit((unsigned char)s[1]))
    s++;
  ret->digits = s;
  while (isdigit((unsigned char)*s))
    s++;
  ret->count = (size_t)(s - ret->digits);
  *at = s[0] == '.' && isdigit((unsigned char)s[1]) ? s + 1 : s;
  return true;
}

static int compare_numbers(const struct number *a, const struct number *b)
{
  if (a->count != b->count)
    return a->count < b->count ? -1 : 1;
  return memcmp(a->digits, b->digits, a->count);
}

int cfs_version_compare(const char *a, const char *b)
{
  const struct number zero = {"0", 1};
  for (;;) {
    struct number x = zero, y = zero;
    bool more_a = next_number(&a, &x), more_b = next_number(&b, &y);
    if (!more_a && !more_b)
      return strcmp(a, b);
    int c = compare_numbers(&x, &y);
    if (c)
      return c;
  }
}

/* The length of "13.2" in "13.2.78", 0 if there are not two numbers. */
static size_t release_length(const char *version)
{
  size_t major = strspn(version, "0123456789");
  if (!major || version[major] != '.')
    return 0;
  size_t minor = strspn(version + major + 1, "0123456789");
  return minor ? major + 1 + minor : 0;
}

char *cfs_version_release(const char *version)
{
  size_t n = release_length(version);
  return n ? cfs_strndup(version, n) : NULL;
}

int cfs_version_major(const char *version)
{
  size_t n = strspn(version, "0123456789");
  return n && n < 9 ? cfs_leading_number(version) : -1;
}

bool cfs_version_in_release(const char *version, const char *release)
{
  cleanup_free char *a = cfs_version_release(version);
  cleanup_free char *b = cfs_version_release(release);
  return a && b && cfs_version_compare(a, b) == 0;
}

enum comparison { PREFIX, NOT_PREFIX, EQUAL, NOT_EQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW };

struct clause {
  enum comparison comparison;
  char *version;
};

struct cfs_requirement {
  struct clause *clauses;
  size_t count; /* 0: "newest", which admits all */
};

void cfs_requirement_free(cfs_requirement *r)
{
  if (!r)
    return;
  for (size_t i = 0; i < r->count; i++)
    free(r->clauses[i].version);
  free(r->clauses);
  free(r);
}

static const char *skip_space(const char *s)
{
  return s + strspn(s, " \t");
}

static const char *take_comparison(const char *s, enum comparison *ret)
{
  static const struct {
    const char *text;
    enum comparison comparison;
  } operators[] = {{"==", EQUAL}, {"!=", NOT_EQUAL}, {">=", AT_LEAST}, {"<=", AT_MOST}, {">", ABOVE}, {"<", BELOW}};
  for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
    if (cfs_has_prefix(s, operators[i].text)) {
      *ret = operators[i].comparison;
      return s + strlen(operators[i].text);
    }
  }
  *ret = PREFIX;
  return s;
}

/* Numbers with single dots between; NULL where there are none. */
static const char *take_version(const char *s, char **ret)
{
  const char *end = s;
  do {
    size_t n = strspn(end, "0123456789");
    if (!n)
      return NULL;
    end += n;
  } while (end[0] == '.' && isdigit((unsigned char)end[1]) && end++);
  *ret = cfs_strndup(s, (size_t)(end - s));
  return end;
}

/* Reads one clause and returns what follows it, or NULL. */
static const char *take_clause(const char *s, struct clause *c)
{
  s = skip_space(take_comparison(skip_space(s), &c->comparison));
  s = take_version(s, &c->version);
  if (s && cfs_has_prefix(s, ".*")) {
    if (c->comparison == EQUAL || c->comparison == PREFIX)
      c->comparison = PREFIX;
    else if (c->comparison == NOT_EQUAL)
      c->comparison = NOT_PREFIX;
    else
      return NULL;
    s += 2;
  }
  return s ? skip_space(s) : NULL;
}

int cfs_requirement_parse(const char *text, cfs_requirement **ret, cfs_error **err)
{
  cfs_requirement *r = cfs_zalloc(sizeof(*r));
  const char *s = strcmp(text, "newest") == 0 ? NULL : text;
  bool good = true;
  while (s && good) {
    struct clause c = {0};
    s = take_clause(s, &c);
    good = s && (*s == '\0' || *s == ',');
    r->clauses = cfs_grow(r->clauses, r->count + 1, sizeof(c));
    r->clauses[r->count++] = c;
    s = good && *s == ',' ? s + 1 : NULL;
  }
  if (!good) {
    cfs_requirement_free(r);
    return cfs_error_set(err, CFS_INVALID, 0, text, NULL,
                         "expected a release or a range such as \"13.2\", \">=12.9,<14\" or \"newest\", got \"%s\"",
                         text);
  }
  *ret = r;
  return 0;
}

/* Does version begin with all the numbers of prefix? "13.2.78" does with "13.2", "13.20" does not. */
static bool has_prefix(const char *version, const char *prefix)
{
  struct number x, y;
  while (next_number(&prefix, &y)) {
    if (!next_number(&version, &x))
      x = (struct number){"0", 1};
    if (compare_numbers(&x, &y) != 0)
      return false;
  }
  return true;
}

static bool clause_admits(const struct clause *c, const char *version)
{
  int order = cfs_version_compare(version, c->version);
  switch (c->comparison) {
  case PREFIX:
    return has_prefix(version, c->version);
  case NOT_PREFIX:
    return !has_prefix(version, c->version);
  case EQUAL:
    return order == 0;
  case NOT_EQUAL:
    return order != 0;
  case AT_LEAST:
    return order >= 0;
  case AT_MOST:
    return order <= 0;
  case ABOVE:
    return order > 0;
  case BELOW:
    return order < 0;
  }
  return false;
}

bool cfs_requirement_admits(const cfs_requirement *r, const char *version)
{
  for (size_t i = 0; i < r->count; i++)
    if (!clause_admits(&r->clauses[i], version))
      return false;
  return true;
}
