/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_HEADER_H
#define CUDAFS_OVERLAYS_HEADER_H

/* What C headers say, read as text: no preprocessor runs and #if is ignored, which holds for the
 * plain numbers NVIDIA's headers state once. All return 0 or a negative errno: -ENODATA when the
 * header does not say, else what reading it gave; err names the file. Outputs are set only on
 * success. */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The header's text with comments blanked and continued lines joined (lines keep no number then);
 * the caller owns it. -EFBIG beyond 16 MiB. */
int cfs_header_read(const char *path, char **ret_text, cfs_error **err);

/* For going through such a text: where the next line starts, or NULL; and the text behind the
 * `#KEYWORD ` that the line starts with, or NULL. */
const char *cfs_header_next_line(const char *line);
const char *cfs_header_directive(const char *line, const char *keyword);

/* The value of the first `#define MACRO 123` (decimal or 0x, brackets and U/L suffixes allowed)
 * that stands at the start of a line. -ENODATA when there is none that is a plain number. */
int cfs_header_macro(const char *path, const char *macro, long *ret_value, cfs_error **err);

struct cfs_macro {
  const char *name; /* in */
  bool found;       /* out */
  long value;       /* out, when found */
};

/* Likewise for several macros, reading the file once. A missing one is no error: see found. */
int cfs_header_macros(const char *path, struct cfs_macro *macros, size_t count, cfs_error **err);

struct cfs_host_limits {
  int gcc_max;     /* newest gcc major that is accepted: 15 */
  int clang_limit; /* first clang major that is refused: 22 */
};

/* What crt/host_config.h accepts as host compilers. Either number is 0 when the header does not
 * say it; -ENODATA when it says neither. */
int cfs_header_host_limits(const char *path, struct cfs_host_limits *ret_limits, cfs_error **err);

#endif
