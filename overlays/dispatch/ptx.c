/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/ptx.h"

#include <string.h>

#include "overlays/dispatch/arch.h"

struct cursor {
  const char *at, *end;
};

static bool at_text(const struct cursor *c, const char *text)
{
  size_t n = strlen(text);
  return (size_t)(c->end - c->at) >= n && memcmp(c->at, text, n) == 0;
}

static void skip_line(struct cursor *c)
{
  const char *newline = memchr(c->at, '\n', (size_t)(c->end - c->at));
  c->at = newline ? newline : c->end;
}

static bool skip_blanks(struct cursor *c)
{
  static const char blanks[] = {' ', '\t', '\f', '\r'};
  const char *start = c->at;
  while (c->at < c->end && memchr(blanks, *c->at, sizeof(blanks)))
    c->at++;
  return c->at > start;
}

static bool skip_digits(struct cursor *c)
{
  const char *start = c->at;
  while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
    c->at++;
  return c->at > start;
}

static void skip_comment(struct cursor *c)
{
  const char *close = memmem(c->at + 2, (size_t)(c->end - c->at) - 2, "*/", 2);
  c->at = close ? close + 2 : c->end;
}

/* # 3 "file" and #line 3 "file", with flags after the name as cpp writes them. ptxas takes no other word and
 * no comment on such a line. */
static bool skip_marker(struct cursor *c)
{
  struct cursor m = {c->at + 1, c->end};
  skip_blanks(&m);
  if (at_text(&m, "line"))
    m.at += strlen("line");
  skip_blanks(&m);
  if (!skip_digits(&m) || !skip_blanks(&m) || !at_text(&m, "\""))
    return false;
  m.at++;
  while (m.at < m.end && *m.at != '"' && *m.at != '\n')
    m.at++;
  if (!at_text(&m, "\""))
    return false;
  m.at++;
  while (skip_blanks(&m) && skip_digits(&m))
    ;
  if (!at_text(&m, "\n"))
    return false;
  c->at = m.at;
  return true;
}

/* Blanks, comments and line markers. A vertical tab is none to ptxas, a backslash does not continue a
 * // comment, and a comment does not nest. */
static void skip_space(struct cursor *c)
{
  while (c->at < c->end) {
    if (*c->at == '\n' || skip_blanks(c))
      c->at += c->at < c->end && *c->at == '\n';
    else if (at_text(c, "//"))
      skip_line(c);
    else if (at_text(c, "/*"))
      skip_comment(c);
    else if (*c->at != '#' || !skip_marker(c))
      return;
  }
}

static bool take_number(struct cursor *c, int *ret)
{
  const char *start = c->at;
  int n = 0;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    n = n > 99999 ? n : n * 10 + (*c->at - '0');
  *ret = n;
  return c->at > start;
}

/* The number stands on the line of .version, with no comment before it. */
static bool take_version(struct cursor *c, struct cfs_ptx_version *ret)
{
  if (!at_text(c, ".version"))
    return false;
  c->at += strlen(".version");
  if (!skip_blanks(c) || !take_number(c, &ret->major) || c->at == c->end || *c->at != '.')
    return false;
  c->at++;
  return take_number(c, &ret->minor) && c->at < c->end;
}

static bool is_name(char ch)
{
  return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
}

static bool take_target(struct cursor *c, cfs_strings *targets)
{
  if (!at_text(c, ".target"))
    return false;
  c->at += strlen(".target");
  const char *blank = c->at;
  skip_space(c);
  if (c->at == blank)
    return false;
  const char *name = c->at;
  while (c->at < c->end && is_name(*c->at))
    c->at++;
  /* A name that reaches the end of what was read may be cut short. */
  return c->at < c->end && cfs_arch_add(targets, name, (size_t)(c->at - name));
}

bool cfs_ptx_head(const char *text, size_t size, struct cfs_ptx_version *ret_version, cfs_strings *targets)
{
  struct cursor c = {text, text + size};
  skip_space(&c);
  if (!take_version(&c, ret_version))
    return false;
  skip_space(&c);
  return take_target(&c, targets);
}
