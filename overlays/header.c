/* SPDX-License-Identifier: MIT */
#include "overlays/header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"

enum { HEADER_LIMIT = 16 * 1024 * 1024 };

/* Where the string or character literal that opens at p ends: behind its quote, or at the line's end
 * (an apostrophe in an #error line opens nothing). */
static const char *skip_literal(const char *p)
{
  const char quote = *p++;
  while (*p && *p != quote && *p != '\n')
    p += p[0] == '\\' && p[1] && p[1] != '\n' ? 2 : 1;
  return *p == quote ? p + 1 : p;
}

/* Behind the comment that opens at p, or NULL when none does. */
static const char *skip_comment(const char *p)
{
  if (p[0] != '/' || (p[1] != '*' && p[1] != '/'))
    return NULL;
  if (p[1] == '/')
    return p + strcspn(p, "\n");
  const char *end = strstr(p + 2, "*/");
  return end ? end + 2 : p + strlen(p);
}

static void join_lines(char *text)
{
  char *to = text;
  for (const char *p = text; *p;) {
    if (p[0] == '\\' && p[1] == '\n')
      p += 2;
    else if (p[0] == '\\' && p[1] == '\r' && p[2] == '\n')
      p += 3;
    else
      *to++ = *p++;
  }
  *to = '\0';
}

static void blank_comments(char *text)
{
  char *to = text;
  for (const char *p = text; *p;) {
    const char *behind = skip_comment(p);
    if (behind) {
      *to++ = ' ';
    } else {
      behind = *p == '"' || *p == '\'' ? skip_literal(p) : p + 1;
      memmove(to, p, (size_t)(behind - p));
      to += behind - p;
    }
    p = behind;
  }
  *to = '\0';
}

int cfs_header_read(const char *path, char **ret_text, cfs_error **err)
{
  char *text = NULL;
  int r = cfs_file_read(path, HEADER_LIMIT, &text, NULL);
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, path, NULL, "cannot read the header: %s", strerror(-r));
  join_lines(text);
  blank_comments(text);
  *ret_text = text;
  return 0;
}

static const char *skip_blanks(const char *p)
{
  return p + strspn(p, " \t");
}

static bool is_word(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *cfs_header_directive(const char *line, const char *keyword)
{
  const char *p = skip_blanks(line);
  if (*p != '#')
    return NULL;
  p = skip_blanks(p + 1);
  size_t n = strlen(keyword);
  return cfs_has_prefix(p, keyword) && !is_word(p[n]) ? skip_blanks(p + n) : NULL;
}

/* The rest of the line behind `#define MACRO`, when that is what the line says. */
static const char *defines(const char *line, const char *macro)
{
  const char *p = cfs_header_directive(line, "define");
  size_t n = strlen(macro);
  /* A bracket at once behind the name makes it a macro with arguments. */
  if (!p || !cfs_has_prefix(p, macro) || is_word(p[n]) || p[n] == '(')
    return NULL;
  return p + n;
}

/* A plain number, up to the end of the line. */
static bool parse_number(const char *p, long *ret)
{
  size_t open = 0;
  for (p = skip_blanks(p); *p == '('; p = skip_blanks(p + 1))
    open++;
  if (*p < '0' || *p > '9')
    return false;
  char *end;
  errno = 0;
  /* Base 0 would read 08 as broken octal; no version is octal. */
  long value = strtol(p, &end, p[0] == '0' && (p[1] | 32) == 'x' ? 16 : 10);
  if (errno)
    return false;
  end += strspn(end, "uUlL");
  for (p = skip_blanks(end); *p == ')' && open; p = skip_blanks(p + 1))
    open--;
  if (open || (*p && *p != '\n' && *p != '\r'))
    return false;
  *ret = value;
  return true;
}

const char *cfs_header_next_line(const char *line)
{
  const char *end = strchr(line, '\n');
  return end ? end + 1 : NULL;
}

static void look_up(const char *text, struct cfs_macro *macro)
{
  macro->found = false;
  for (const char *line = text; line && !macro->found; line = cfs_header_next_line(line)) {
    const char *value = defines(line, macro->name);
    if (value)
      macro->found = parse_number(value, &macro->value);
  }
}

int cfs_header_macros(const char *path, struct cfs_macro *macros, size_t count, cfs_error **err)
{
  cleanup_free char *text = NULL;
  int r = cfs_header_read(path, &text, err);
  if (r < 0)
    return r;
  for (size_t i = 0; i < count; i++)
    look_up(text, &macros[i]);
  return 0;
}

int cfs_header_macro(const char *path, const char *macro, long *ret_value, cfs_error **err)
{
  struct cfs_macro one = {.name = macro};
  int r = cfs_header_macros(path, &one, 1, err);
  if (r < 0)
    return r;
  if (!one.found)
    return cfs_error_set(err, CFS_FAILED, ENODATA, path, NULL, "it does not define %s as a number", macro);
  *ret_value = one.value;
  return 0;
}

/* The N of "OPERAND N" where condition holds that before its end, else 0. */
static int compared_with(const char *condition, const char *operand)
{
  const char *p = strstr(condition, operand);
  if (!p || p >= condition + strcspn(condition, "\n"))
    return 0;
  p = skip_blanks(p + strlen(operand));
  return *p >= '1' && *p <= '9' ? cfs_leading_number(p) : 0;
}

struct limits_scan {
  struct cfs_host_limits limits;
  int depth;
  int clang_depth; /* of the #if that holds for the clang of ordinary systems, 0 outside */
};

static void scan_condition(struct limits_scan *scan, const char *condition)
{
  scan->depth++;
  if (!scan->limits.gcc_max)
    scan->limits.gcc_max = compared_with(condition, "__GNUC__ >");
  /* Vendors' clangs (__HORIZON__, Grace) have limits of their own, which differ from release to release. */
  if (!scan->clang_depth && cfs_has_prefix(condition, "defined(__clang__)"))
    scan->clang_depth = scan->depth;
  if (scan->clang_depth && !scan->limits.clang_limit)
    scan->limits.clang_limit = compared_with(condition, "__clang_major__ >=");
}

static void scan_line(struct limits_scan *scan, const char *line)
{
  const char *condition = cfs_header_directive(line, "if");
  if (condition) {
    scan_condition(scan, condition);
  } else if (cfs_header_directive(line, "ifdef") || cfs_header_directive(line, "ifndef")) {
    scan->depth++;
  } else if (cfs_header_directive(line, "endif")) {
    if (scan->clang_depth == scan->depth)
      scan->clang_depth = 0;
    scan->depth--;
  }
}

int cfs_header_host_limits(const char *path, struct cfs_host_limits *ret_limits, cfs_error **err)
{
  cleanup_free char *text = NULL;
  int r = cfs_header_read(path, &text, err);
  if (r < 0)
    return r;
  struct limits_scan scan = {0};
  for (const char *line = text; line; line = cfs_header_next_line(line))
    scan_line(&scan, line);
  if (!scan.limits.gcc_max && !scan.limits.clang_limit)
    return cfs_error_set(err, CFS_FAILED, ENODATA, path, NULL, "it names no host compiler limits");
  *ret_limits = scan.limits;
  return 0;
}
