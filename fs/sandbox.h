/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_SANDBOX_H
#define CUDAFS_FS_SANDBOX_H

/* What the serving processes give up once they serve. All of it is best effort: an old kernel, or a
 * container that forbids it, only means less protection. */

#include <stdbool.h>
#include <stddef.h>

/* A compiled system call filter: made once by the keeper, since compiling takes longer than a worker's
 * whole start, and applied by each worker. */
typedef struct cfs_sandbox {
  void *filter; /* struct sock_filter[] */
  unsigned short length;
} cfs_sandbox;

int cfs_sandbox_prepare(cfs_sandbox *s);
void cfs_sandbox_done(cfs_sandbox *s);

/* The keeper must still unmount, open backing files of any mode, and start fusermount3 unless the mount was
 * made without it. */
void cfs_sandbox_enter_keeper(bool keeps_fusermount);
/* The worker reads requests and backing files, and nothing else. Before its threads start. */
void cfs_sandbox_enter_worker(const cfs_sandbox *s);

#endif
