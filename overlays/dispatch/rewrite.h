/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_REWRITE_H
#define CUDAFS_DISPATCH_REWRITE_H

/* Moving a command from the face to the complete view of another release: every path that is read from and
 * lies under the root, however it is spelt, is to lie under the view. One that stayed would mix the headers of
 * two releases, silently or with CCCL's "compiler and headers are incompatible". Paths that are written (-o,
 * -MF, -odir), names (-MT, -D) and run-time paths (-rpath) stay. */

#include <stdbool.h>
#include <sys/types.h>

#include "overlays/dispatch/command.h"

struct cfs_rewrite {
  const char *view; /* below the root: ".cudafs/toolchains/13.5" */
  dev_t dev;        /* of the root */
  ino_t ino;
};

/* Returns 0, or the negative errno of looking at root. view must outlive *ret. */
int cfs_rewrite_init(struct cfs_rewrite *ret, const char *root, const char *view);

/* The same place in the view, or NULL when path is not under the root, already is in a view, or is missing
 * there. The user's spelling of the root is kept. The caller owns the result. */
char *cfs_rewrite_path(const struct cfs_rewrite *rw, const char *path);

/* Every element of list, parted by separator; NULL when none changes. The caller owns the result. */
char *cfs_rewrite_list(const struct cfs_rewrite *rw, const char *list, char separator);

/* All words of the command, in place. */
void cfs_rewrite_command(const struct cfs_rewrite *rw, cfs_command *c);

#endif
