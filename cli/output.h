/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_OUTPUT_H
#define CUDAFS_CLI_OUTPUT_H

/* Everything that people and scripts read: styled text, errors with the next thing to do, JSON. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"

enum cfs_style { CFS_PLAIN, CFS_BOLD, CFS_DIM, CFS_RED, CFS_GREEN, CFS_YELLOW, CFS_CYAN };

/* May colour be written there? A terminal that is not "dumb", and NO_COLOR is not set. */
bool cfs_can_colour(FILE *to);
/* Columns of the terminal; $COLUMNS, else 100, where there is none. */
size_t cfs_columns(FILE *to);
/* Can the locale show more than ASCII? */
bool cfs_is_utf8(void);

/* Writes text in that style where colour is possible, plainly elsewhere. To a terminal control characters in it
 * are shown as \xNN. */
void cfs_put(FILE *to, enum cfs_style style, const char *text);
void cfs_put_format(FILE *to, enum cfs_style style, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Columns that a UTF-8 text takes; every character counts as one. */
size_t cfs_text_width(const char *text);
/* The text in at most that many columns. What is left out is told by an ellipsis: at the end, or (for
 * paths, whose end matters most) at the start. The caller owns the result. */
char *cfs_text_shorten(const char *text, size_t columns, bool keep_end);
/* Writes text broken at blanks to the width, every line but the first indented. The first one starts at
 * column `at`. A tab is a blank that the line is not broken at. */
void cfs_put_wrapped(FILE *to, const char *text, size_t at, size_t indent);

/* "cudafs: WHAT: WHY" and, on the next line, what to do. Frees the error and returns the exit code. */
int cfs_report(cfs_error *err);
/* The same from its parts; fix may be NULL. Returns the kind as exit code. */
int cfs_report_format(enum cfs_error_kind kind, const char *what, const char *fix, const char *why_format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes one object to stdout and lets go of it. Returns 0, or CFS_FAILED when stdout is gone. */
int cfs_print_json(json_t *root);

json_t *cfs_json_text(const char *s); /* null for NULL; bytes that are no UTF-8 become '?' */
json_t *cfs_json_strings(const cfs_strings *s);
/* The string member, or NULL. Borrowed. */
const char *cfs_json_string_of(const json_t *object, const char *key);

/* One line on a terminal's stderr that the next one replaces; nothing elsewhere. */
void cfs_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cfs_progress_clear(void);

#endif
