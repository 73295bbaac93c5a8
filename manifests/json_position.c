/* SPDX-License-Identifier: MIT */
#include "manifests/json_position.h"

#include <jansson.h>
#include <string.h>

struct scan {
  const char *at;
  const char *end;
};

static void skip_space(struct scan *s)
{
  while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at)
    s->at++;
}

/* Takes one character if it is the next one. */
static bool take(struct scan *s, char c)
{
  skip_space(s);
  if (s->at >= s->end || *s->at != c)
    return false;
  s->at++;
  return true;
}

static void skip_string(struct scan *s)
{
  for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
    if (*s->at == '\\' && s->at + 1 < s->end)
      s->at++;
  if (s->at < s->end)
    s->at++;
}

/* Brackets are counted, not followed by recursion: nesting may be deeper than the stack likes. */
static void skip_value(struct scan *s)
{
  size_t depth = 0;
  skip_space(s);
  while (s->at < s->end) {
    char c = *s->at;
    if (depth == 0 && strchr(",]}", c))
      return;
    if (c == '"') {
      skip_string(s);
    } else {
      if (c == '{' || c == '[')
        depth++;
      else if (c == '}' || c == ']')
        depth--;
      s->at++;
    }
  }
}

/* The key may be spelt with escapes, so it is decoded before it is compared. */
static bool key_is(const char *quoted, size_t size, const char *key)
{
  json_t *decoded = json_loadb(quoted, size, JSON_DECODE_ANY, NULL);
  bool same = json_is_string(decoded) && strcmp(json_string_value(decoded), key) == 0;
  json_decref(decoded);
  return same;
}

/* Leaves s at the value of the key; *ret is where the key itself stands. */
static bool enter_member(struct scan *s, const char *key, const char **ret)
{
  if (!take(s, '{'))
    return false;
  do {
    skip_space(s);
    const char *start = s->at;
    if (start >= s->end || *start != '"')
      return false;
    skip_string(s);
    const char *stop = s->at;
    if (!take(s, ':'))
      return false;
    if (key_is(start, (size_t)(stop - start), key)) {
      *ret = start;
      return true;
    }
    skip_value(s);
  } while (take(s, ','));
  return false;
}

static bool enter_element(struct scan *s, size_t index, const char **ret)
{
  if (!take(s, '['))
    return false;
  for (size_t i = 0; i < index; i++) {
    skip_value(s);
    if (!take(s, ','))
      return false;
  }
  skip_space(s);
  *ret = s->at;
  return s->at < s->end && *s->at != ']';
}

static struct cfs_json_position position_of(const char *text, const char *at)
{
  struct cfs_json_position p = {1, 1};
  for (; text < at; text++) {
    p.column++;
    if (*text == '\n') {
      p.line++;
      p.column = 1;
    }
  }
  return p;
}

bool cfs_json_position_find(const char *text, size_t size, const struct cfs_json_step *steps, size_t n,
                            struct cfs_json_position *ret)
{
  struct scan s = {text, text + size};
  skip_space(&s);
  const char *found = s.at;
  bool complete = true;
  for (size_t i = 0; i < n && complete; i++) {
    const char *next = NULL;
    complete = steps[i].key ? enter_member(&s, steps[i].key, &next) : enter_element(&s, steps[i].index, &next);
    if (complete)
      found = next;
  }
  *ret = position_of(text, found);
  return complete;
}
