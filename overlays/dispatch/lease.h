/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_LEASE_H
#define CUDAFS_DISPATCH_LEASE_H

/* The shared lease that keeps a tree from being reloaded under a running compiler. */

/* Names the descriptor of the lease to the processes below. */
#define CFS_LEASE_VARIABLE "CUDAFS_LEASE"

/* Takes the lease of root, waiting while a reload is under way, and leaves it open across exec. Below a
 * process that holds it already nothing is waited for: that reload is itself waiting for the process above.
 * A tree without a lease, or a system without flock, is none of a compiler's concern: silence. */
void cfs_lease_take(const char *root);

#endif
