/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_LAYOUT_H
#define CUDAFS_OVERLAYS_LAYOUT_H

/* From a plan's toolchains to the paths of the tree: NVIDIA's runfile layout at the root for the face,
 * and the same under .cudafs/toolchains/<release>/ for every toolchain, the face included. */

#include "overlays/plan.h"

/* Fills plan->entries (all but what depends on the mount point). */
int cfs_layout_plan(cfs_plan *plan, const cfs_tables *tables, cfs_error **err);

/* The tree of a sealed plan as a sealed memfd for fs/, with what depends on the mount point added:
 * dispatchers with their trailers and .cudafs/env. Returns a descriptor that the caller owns. */
int cfs_layout_tree(const cfs_plan *plan, const cfs_tables *tables, const char *mountpoint, const void *dispatcher,
                    size_t dispatcher_size, cfs_error **err);

/* The shell lines of .cudafs/env: everything that CUDA programs look at, pointing at the mount. The
 * caller owns the result. */
char *cfs_layout_env(const char *mountpoint);

/* The platform's folder name under targets/: "x86_64-linux", or "sbsa-linux" on 64-bit ARM. Static. */
const char *cfs_layout_platform(void);

/* Reads the installed dispatcher: $CUDAFS_DISPATCH, else the installed file, else the build's. The
 * caller owns *ret. */
int cfs_dispatcher_load(void **ret, size_t *ret_size, cfs_error **err);

#endif
