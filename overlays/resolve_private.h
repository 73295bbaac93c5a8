/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_RESOLVE_PRIVATE_H
#define CUDAFS_OVERLAYS_RESOLVE_PRIVATE_H

/* What resolve.c (the choice) and repair.c (the way out of a refusal) share. */

#include "manifests/version.h"
#include "overlays/compose.h"
#include "overlays/resolve.h"

struct resolving {
  struct cfs_composing in;
  cfs_requirement *wanted; /* of the face's release */
  char *wanted_text;
  cfs_strings universe; /* every target that the tables know */
  cfs_plan *plan;
};

/* The candidate of one release, measured, with everything that the manifest holds against it. */
void cfs_resolve_compose(const struct resolving *r, const char *release, cfs_candidate *c);

/* For a plan that is refused: what to run so that it is not, the least change first. */
void cfs_repairs_add(struct resolving *r);

#endif
