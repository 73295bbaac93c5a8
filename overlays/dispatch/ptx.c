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

static void skip_comment(struct cursor *c)
{
  const char *close = memmem(c->at + 2, (size_t)(c->end - c->at) - 2, "*/", 2);
  c->at = close ? close + 2 : c->end;
}

/* Blanks, comments and #line lines. A vertical tab is none to ptxas, a backslash does not continue a
 * // comment, and a comment does not nest. */
static void skip_space(struct cursor *c)
{
  while (c->at < c->end) {
    if (memchr(" \t\r\n\f", *c->at, 5))
      c->at++;
    else if (at_text(c, "//") || *c->at == '#')
      skip_line(c);
    else if (at_text(c, "/*"))
      skip_comment(c);
    else
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
  const char *blank = c->at;
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
    c->at++;
  if (c->at == blank || !take_number(c, &ret->major) || c->at == c->end || *c->at != '.')
    return false;
  c->at++;
  return take_number(c, &ret->minor) && c->at < c->end;
}

static bool is_name(char ch)
{
  return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
}

static bool take_target(struct cursor *c, cfs_strings *archs)
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
  return c->at < c->end && cfs_arch_add(archs, name, (size_t)(c->at - name));
}

bool cfs_ptx_head(const char *text, size_t size, struct cfs_ptx_version *ret_version, cfs_strings *archs)
{
  struct cursor c = {text, text + size};
  skip_space(&c);
  if (!take_version(&c, ret_version))
    return false;
  skip_space(&c);
  return take_target(&c, archs);
}
