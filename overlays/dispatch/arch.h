/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_ARCH_H
#define CUDAFS_DISPATCH_ARCH_H

/* Target names. A trailer and a request hold them without prefix ("100a"): a release that knows
 * sm_100a knows compute_100a and lto_100a as well. */

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"

/* Takes sm_, compute_ or lto_ off word and adds the rest to archs (once). False when word is no
 * target name, as "native" or "all". */
bool cfs_arch_add(cfs_strings *archs, const char *word, size_t size);

/* Adds every target name that stands in text between commas, blanks, quotes, brackets and '='. */
void cfs_arch_add_all(cfs_strings *archs, const char *text);

/* "sm_90 and sm_100a"; the caller owns the result. */
char *cfs_arch_list(const cfs_strings *archs);

#endif
