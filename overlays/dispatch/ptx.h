/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_PTX_H
#define CUDAFS_DISPATCH_PTX_H

/* The head of a PTX module, read as ptxas itself reads it: .version, then .target, before anything else. */

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"
#include "overlays/dispatch/routing.h"

/* How much of an input is looked at; comments may go on for longer, then it is undecidable. */
#define CFS_PTX_HEAD (1024 * 1024)

/* Reads the version, and adds the first name of .target to targets. False when the text does not begin
 * with a complete head: wrong, binary, or longer than what was given. *ret_version is then untouched
 * or set, targets unchanged. */
bool cfs_ptx_head(const char *text, size_t size, struct cfs_ptx_version *ret_version, cfs_strings *targets);

#endif
