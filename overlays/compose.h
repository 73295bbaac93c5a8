/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_COMPOSE_H
#define CUDAFS_OVERLAYS_COMPOSE_H

/* One candidate: the best toolchain of one release that the sources can make, with all that is wrong
 * with it. */

#include "overlays/plan.h"

typedef struct cfs_candidate {
  cfs_toolchain toolchain;
  cfs_problems problems;
  const cfs_inventory *anchor; /* the source that gives most of the compiler unit, or NULL */
} cfs_candidate;

/* A face path without which a toolchain does not compile, and whose it is. */
struct cfs_need {
  char *face;
  const cfs_component_info *owner; /* or NULL */
};

struct cfs_composing {
  const cfs_manifest *manifest;
  const cfs_tables *tables;
  cfs_inventory *const *sources;
  size_t n_sources;
  struct cfs_need *needs; /* layouts.json */
  size_t n_needs;
};

/* Chooses a part for every component. With compiler false only what an assembler needs is asked for. */
void cfs_compose(const struct cfs_composing *in, const char *release, bool compiler, cfs_candidate *ret);
void cfs_candidate_done(cfs_candidate *c);

/* The releases of which some source has an nvcc, ascending; with any_tool also those with a ptxas only. */
void cfs_compose_releases(const struct cfs_composing *in, bool any_tool, cfs_strings *ret);

/* Severity of a problem under the manifest's policy: CFS_PROBLEM, or CFS_WARNING when it is allowed. */
enum cfs_severity cfs_policy_severity(const cfs_manifest *m, const char *code);

#endif
