/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_BUILD_H
#define CUDAFS_OVERLAYS_BUILD_H

/* The whole way from a manifest to a sealed plan, in one call: read the sources, resolve, lay out,
 * seal. What every subcommand starts with. */

#include "overlays/layout.h"
#include "overlays/resolve.h"

typedef struct cfs_build {
  cfs_tables *tables;
  cfs_manifest *manifest; /* owned */
  cfs_plan *plan;
  void *dispatcher;
  size_t dispatcher_size;
} cfs_build;

/* Plans a manifest file. A refused plan is success with plan->coherent false. On success *ret is the caller's. */
int cfs_build_manifest(const char *manifest_path, cfs_build **ret, cfs_error **err);
/* Plans whatever `scan` finds on this machine. */
int cfs_build_scan(cfs_build **ret, cfs_error **err);
/* Plans the given places as if they were a manifest's string sources. */
int cfs_build_paths(const char *const *paths, size_t n, cfs_build **ret, cfs_error **err);
void cfs_build_free(cfs_build *b);

#endif
