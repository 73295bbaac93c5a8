/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_HOST_H
#define CUDAFS_OVERLAYS_HOST_H

/* The host compiler that nvcc will call. */

#include <stdbool.h>

#include "base/error.h"

struct cfs_host_compiler {
  char *path;
  bool clang;
  int major;     /* 12 */
  char *version; /* "12.2.0" */
};

/* The compiler that nvcc takes: command (an NVCC_CCBIN, a path or name) or, when NULL, g++ on the PATH.
 * -ENOENT when there is none, -ENODATA when it does not say its version. */
int cfs_host_compiler_find(const char *command, struct cfs_host_compiler *ret, cfs_error **err);
void cfs_host_compiler_done(struct cfs_host_compiler *c);

/* The first executable regular file of that name on a PATH-like list; the caller owns it. NULL if none. */
char *cfs_path_search(const char *list, const char *name);

#endif
