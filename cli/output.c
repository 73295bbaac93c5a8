/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"

enum { COLUMNS_WITHOUT_TERMINAL = 100, COLUMNS_LEAST = 40 };

bool cfs_can_colour(FILE *to)
{
  const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
  return isatty(fileno(to)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

size_t cfs_columns(FILE *to)
{
  struct winsize size;
  if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col < COLUMNS_LEAST ? COLUMNS_LEAST : size.ws_col;
  const char *columns = getenv("COLUMNS");
  int n = columns ? cfs_leading_number(columns) : 0;
  return n >= COLUMNS_LEAST ? (size_t)n : COLUMNS_WITHOUT_TERMINAL;
}

bool cfs_is_utf8(void)
{
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static const char *escape_of(enum cfs_style style)
{
  static const char *const escapes[] = {"", "\033[1m", "\033[2m", "\033[1;31m", "\033[1;32m", "\033[33m", "\033[36m"};
  return escapes[style];
}

/* Names come from manifests and folders of other people's: none of their bytes may command the terminal. */
static void put_char(FILE *to, char c, bool terminal)
{
  unsigned char byte = (unsigned char)c;
  if (terminal && byte != '\n' && byte != '\t' && (byte < 0x20 || byte == 0x7f))
    fprintf(to, "\\x%02x", byte);
  else
    fputc(c, to);
}

static void put_text(FILE *to, const char *text)
{
  bool terminal = isatty(fileno(to));
  for (; *text; text++)
    put_char(to, *text, terminal);
}

void cfs_put(FILE *to, enum cfs_style style, const char *text)
{
  bool coloured = style != CFS_PLAIN && cfs_can_colour(to);
  if (coloured)
    fputs(escape_of(style), to);
  put_text(to, text);
  if (coloured)
    fputs("\033[0m", to);
}

void cfs_put_format(FILE *to, enum cfs_style style, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  cleanup_free char *text = cfs_vformat(format, ap);
  va_end(ap);
  cfs_put(to, style, text);
}

static bool is_continuation(char c)
{
  return ((unsigned char)c & 0xc0) == 0x80;
}

size_t cfs_text_width(const char *text)
{
  size_t n = 0;
  for (; *text; text++)
    n += !is_continuation(*text);
  return n;
}

/* The first `columns` characters end where the result points. */
static const char *skip_columns(const char *text, size_t columns)
{
  for (; *text; text++) {
    if (!is_continuation(*text) && columns-- == 0)
      break;
  }
  return text;
}

char *cfs_text_shorten(const char *text, size_t columns, bool keep_end)
{
  size_t width = cfs_text_width(text);
  if (width <= columns)
    return cfs_strdup(text);
  const char *dots = cfs_is_utf8() ? "\xe2\x80\xa6" : "..";
  size_t room = columns > cfs_text_width(dots) ? columns - cfs_text_width(dots) : 0;
  if (keep_end)
    return cfs_format("%s%s", dots, skip_columns(text, width - room));
  return cfs_format("%.*s%s", (int)(skip_columns(text, room) - text), text, dots);
}

void cfs_put_wrapped(FILE *to, const char *text, size_t at, size_t indent)
{
  size_t columns = cfs_columns(to), column = at;
  bool terminal = isatty(fileno(to));
  cleanup_strings cfs_strings words = {0};
  cfs_strings_split(&words, text, " \n");
  for (size_t i = 0; i < words.count; i++) {
    size_t width = cfs_text_width(words.items[i]);
    if (i && column + 1 + width > columns && column > indent) {
      fprintf(to, "\n%*s", (int)indent, "");
      column = indent;
    } else if (i) {
      fputc(' ', to);
      column++;
    }
    for (char *c = words.items[i]; *c; c++)
      put_char(to, *c == '\t' ? ' ' : *c, terminal);
    column += width;
  }
  fputc('\n', to);
}

static void report(const char *what, const char *why, const char *fix)
{
  fflush(stdout);
  cfs_progress_clear();
  cfs_put(stderr, CFS_RED, "cudafs:");
  if (what)
    cfs_put_format(stderr, CFS_PLAIN, " %s:", what);
  cfs_put_format(stderr, CFS_PLAIN, " %s\n", why);
  if (fix)
    cfs_put_format(stderr, CFS_PLAIN, "  %s\n", fix);
}

int cfs_report(cfs_error *err)
{
  if (!err) {
    report(NULL, "failed without saying why", NULL);
    return CFS_FAILED;
  }
  int code = err->kind;
  report(err->what, err->why, err->fix);
  cfs_error_free(err);
  return code;
}

int cfs_report_format(enum cfs_error_kind kind, const char *what, const char *fix, const char *why_format, ...)
{
  va_list ap;
  va_start(ap, why_format);
  cleanup_free char *why = cfs_vformat(why_format, ap);
  va_end(ap);
  report(what, why, fix);
  return kind;
}

int cfs_print_json(json_t *root)
{
  int r = json_dumpf(root, stdout, JSON_INDENT(2));
  json_decref(root);
  if (r < 0 || fputc('\n', stdout) == EOF || fflush(stdout) == EOF)
    return cfs_report_format(CFS_FAILED, "standard output", NULL, "cannot be written");
  return 0;
}

json_t *cfs_json_text(const char *s)
{
  if (!s)
    return json_null();
  json_t *value = json_string(s);
  if (value)
    return value;
  cleanup_free char *plain = cfs_strdup(s);
  for (char *c = plain; *c; c++)
    if ((unsigned char)*c >= 0x80)
      *c = '?';
  return json_string(plain);
}

json_t *cfs_json_strings(const cfs_strings *s)
{
  json_t *array = json_array();
  for (size_t i = 0; i < s->count; i++)
    json_array_append_new(array, cfs_json_text(s->items[i]));
  return array;
}

const char *cfs_json_string_of(const json_t *object, const char *key)
{
  return json_string_value(json_object_get(object, key));
}

void cfs_progress(const char *format, ...)
{
  if (!isatty(STDERR_FILENO))
    return;
  va_list ap;
  va_start(ap, format);
  cleanup_free char *text = cfs_vformat(format, ap);
  va_end(ap);
  cleanup_free char *line = cfs_text_shorten(text, cfs_columns(stderr) - 1, false);
  fputs("\r\033[K", stderr);
  put_text(stderr, line);
  fflush(stderr);
}

void cfs_progress_clear(void)
{
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
}
