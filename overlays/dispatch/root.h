/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_ROOT_H
#define CUDAFS_DISPATCH_ROOT_H

/* Where the tree lies that this executable belongs to. */

#include "overlays/dispatch/routing.h"

enum cfs_root_state {
  CFS_ROOT_NONE,    /* no candidate is the tree of this executable */
  CFS_ROOT_HERE,    /* <root>/.cudafs/id says what the trailer says */
  CFS_ROOT_CHANGED, /* the same file system, with another plan: it was reloaded under this process */
};

/* Opens the executable of this process, or returns a negative errno. */
int cfs_root_open_self(void);

/* Tries /proc/self/exe, then the path this process was started by, then the path of the trailer. self is
 * the executable's descriptor. *ret_root is absolute, the caller owns it; NULL with CFS_ROOT_NONE. */
enum cfs_root_state cfs_root_find(const cfs_routing *r, int self, char **ret_root);

/* Asks again of a root that was found. */
enum cfs_root_state cfs_root_check(const cfs_routing *r, int self, const char *root);

/* Follows the links of path, the way the kernel did when it started it, without /proc; absolute and
 * without . and .. on return. NULL when it leads nowhere. The caller owns the result. */
char *cfs_root_resolve(const char *path);

#endif
