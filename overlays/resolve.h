/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_RESOLVE_H
#define CUDAFS_OVERLAYS_RESOLVE_H

/* From inventories to the answer: the newest coherent set that meets the manifest, or, for each release
 * that could have been, what stands in its way and the commands that mend it. */

#include "overlays/plan.h"

/* Takes ownership of the inventories (also on error). A refusal is no error: the plan then says so. */
int cfs_resolve(const cfs_manifest *manifest, const cfs_tables *tables, cfs_inventory **sources, size_t n_sources,
                cfs_plan **ret, cfs_error **err);

#endif
