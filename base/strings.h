/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_STRINGS_H
#define CUDAFS_BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

/* A growing list of owned strings. Zero-initialised is empty. */
typedef struct cfs_strings {
  char **items;
  size_t count;
} cfs_strings;

void cfs_strings_add(cfs_strings *s, const char *item);
/* Takes ownership of item. */
void cfs_strings_take(cfs_strings *s, char *item);
bool cfs_strings_has(const cfs_strings *s, const char *item);
void cfs_strings_sort(cfs_strings *s);
/* The items with separator between; the caller owns the result. */
char *cfs_strings_join(const cfs_strings *s, const char *separator);
/* Splits at any character of separators, leaving out empty words. */
void cfs_strings_split(cfs_strings *s, const char *text, const char *separators);
void cfs_strings_done(cfs_strings *s);
#define cleanup_strings __attribute__((cleanup(cfs_strings_done)))

bool cfs_has_prefix(const char *s, const char *prefix);
bool cfs_has_suffix(const char *s, const char *suffix);
/* The decimal number that s begins with, 0 when there is none; one too large for an int becomes the nearest. */
int cfs_leading_number(const char *s);

/* The word between single quotes, as every shell reads it back. The caller owns the result. */
char *cfs_shell_quote(const char *word);
/* Likewise, but as it is when no shell would touch it. */
char *cfs_shell_word(const char *word);

/* A growing byte buffer that is always NUL-terminated. Zero-initialised is empty (data NULL). */
typedef struct cfs_buffer {
  char *data;
  size_t size;
  size_t room;
} cfs_buffer;

void cfs_buffer_add(cfs_buffer *b, const void *data, size_t size);
void cfs_buffer_text(cfs_buffer *b, const char *text);
void cfs_buffer_format(cfs_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cfs_buffer_done(cfs_buffer *b);
#define cleanup_buffer __attribute__((cleanup(cfs_buffer_done)))

#endif
