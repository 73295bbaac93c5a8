/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_WORDS_H
#define CUDAFS_DISPATCH_WORDS_H

/* Splitting and quoting of words where NVIDIA's rules are not a shell's. */

#include <stddef.h>

#include "base/strings.h"

/* NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS: split at blanks; a double quote protects blanks and stays in the
 * word; a backslash is an error of nvcc's: -EINVAL. Returns 0 otherwise. */
int cfs_words_split_flags(cfs_strings *words, const char *text);

/* An options file: split at blanks and line ends; double quotes group and go, a backslash takes the next
 * character as it is. -EINVAL for a NUL or an open quote. */
int cfs_words_split_file(cfs_strings *words, const char *text, size_t size);

/* Adds word to b so that cfs_words_split_file gives it back. */
void cfs_words_quote(cfs_buffer *b, const char *word);

#endif
