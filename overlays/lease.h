/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_LEASE_H
#define CUDAFS_OVERLAYS_LEASE_H

/* The other side of what the dispatchers do: each running compiler holds .cudafs/lease shared, and
 * takes .cudafs/gate shared for a moment before it. Whoever changes the tree takes the gate first, so
 * that no further compiler starts, and then the lease, which is free when the last one has ended. Both
 * files keep their identity over every generation, so the locks outlast the change that they guard. */

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

struct cfs_lease {
  int gate, lease; /* descriptors, -1 when not held */
};

struct cfs_lease_wait {
  unsigned seconds;                                     /* how long to wait for running compilers; 0: do not */
  const volatile sig_atomic_t *stop;                    /* or NULL */
  void (*waiting)(void *data, unsigned seconds_waited); /* now and then while waiting; or NULL */
  void *data;
};

/* Takes both for the mount at root. -ETIMEDOUT when compilers still run after that time, -EINTR when
 * stopped; nothing is held then. */
int cfs_lease_take(const char *root, const struct cfs_lease_wait *wait, struct cfs_lease *ret, cfs_error **err);
void cfs_lease_release(struct cfs_lease *lease);
#define cleanup_lease __attribute__((cleanup(cfs_lease_release)))

#endif
