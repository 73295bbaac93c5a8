/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_INPUT_H
#define CUDAFS_DISPATCH_INPUT_H

/* Reading what the real tool will read again. A pipe can be read once only: what comes through an
 * inherited one is kept in memory and put in its place, under the same descriptor. */

#include <stddef.h>

/* Reads at most limit bytes of path as the tool would see it, "-" being standard input; NUL-terminated.
 * The caller owns *ret_data. Returns 0 or a negative errno; -ESPIPE for a named pipe or device, which
 * is left alone. */
int cfs_input_read(const char *path, size_t limit, char **ret_data, size_t *ret_size);

/* A descriptor of an anonymous file in memory that holds data, open across exec, or a negative errno. */
int cfs_input_memory(const void *data, size_t size);

#endif
