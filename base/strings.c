/* SPDX-License-Identifier: MIT */
#include "base/strings.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void cfs_strings_take(cfs_strings *s, char *item)
{
  /* Doubling at powers of two keeps the growth amortised without a separate capacity field. */
  if ((s->count & (s->count - 1)) == 0)
    s->items = cfs_grow(s->items, s->count ? s->count * 2 : 1, sizeof(char *));
  s->items[s->count++] = item;
}

void cfs_strings_add(cfs_strings *s, const char *item)
{
  cfs_strings_take(s, cfs_strdup(item));
}

bool cfs_strings_has(const cfs_strings *s, const char *item)
{
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->items[i], item) == 0)
      return true;
  return false;
}

static int compare_strings(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void cfs_strings_sort(cfs_strings *s)
{
  if (s->count > 1)
    qsort(s->items, s->count, sizeof(char *), compare_strings);
}

char *cfs_strings_join(const cfs_strings *s, const char *separator)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  for (size_t i = 0; i < s->count; i++) {
    if (i)
      cfs_buffer_text(&b, separator);
    cfs_buffer_text(&b, s->items[i]);
  }
  return b.data;
}

void cfs_strings_split(cfs_strings *s, const char *text, const char *separators)
{
  for (;;) {
    text += strspn(text, separators);
    size_t n = strcspn(text, separators);
    if (!n)
      return;
    cfs_strings_take(s, cfs_strndup(text, n));
    text += n;
  }
}

void cfs_strings_done(cfs_strings *s)
{
  for (size_t i = 0; i < s->count; i++)
    free(s->items[i]);
  free(s->items);
  *s = (cfs_strings){0};
}

bool cfs_has_prefix(const char *s, const char *prefix)
{
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool cfs_has_suffix(const char *s, const char *suffix)
{
  size_t n = strlen(s), m = strlen(suffix);
  return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

void cfs_buffer_add(cfs_buffer *b, const void *data, size_t size)
{
  if (b->room - b->size <= size) {
    size_t room = b->room * 2 > b->size + size + 1 ? b->room * 2 : b->size + size + 1;
    b->data = cfs_grow(b->data, room, 1);
    b->room = room;
  }
  if (size)
    memcpy(b->data + b->size, data, size);
  b->size += size;
  b->data[b->size] = '\0';
}

void cfs_buffer_text(cfs_buffer *b, const char *text)
{
  cfs_buffer_add(b, text, strlen(text));
}

void cfs_buffer_format(cfs_buffer *b, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  cleanup_free char *text = cfs_vformat(format, ap);
  va_end(ap);
  cfs_buffer_text(b, text);
}

void cfs_buffer_done(cfs_buffer *b)
{
  free(b->data);
  *b = (cfs_buffer){0};
}

int cfs_leading_number(const char *s)
{
  long n = strtol(s, NULL, 10);
  return n > INT_MAX ? INT_MAX : n < INT_MIN ? INT_MIN : (int)n;
}

char *cfs_shell_quote(const char *word)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "'");
  for (; *word; word++) {
    if (*word == '\'')
      cfs_buffer_text(&b, "'\\''");
    else
      cfs_buffer_add(&b, word, 1);
  }
  cfs_buffer_text(&b, "'");
  return b.data;
}

char *cfs_shell_word(const char *word)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
  return *word && word[strspn(word, plain)] == '\0' ? cfs_strdup(word) : cfs_shell_quote(word);
}
