/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_PLAN_H
#define CUDAFS_OVERLAYS_PLAN_H

/* The resolved answer: which toolchains exist, which part of which source makes each, and why; what
 * is wrong otherwise. Immutable once made; the tree, the JSON and the explanations derive from it. */

#include <jansson.h>

#include "overlays/inventory.h"

typedef struct cfs_choice {
  const cfs_inventory *source;
  const cfs_part *part;
  char *reason;
} cfs_choice;

typedef struct cfs_toolchain {
  char *release; /* "13.2" */
  bool primary;  /* the face */
  bool compiles, assembles, links;
  cfs_choice *choices; /* by component, in table order */
  size_t n_choices;
  char *tool_version;  /* of nvcc, or of ptxas where there is no nvcc */
  char *max_ptx;       /* as measured of its ptxas, else by the release table */
  cfs_strings targets; /* "sm_120a", likewise */
} cfs_toolchain;

/* One path of the tree and where its bytes come from. */
enum cfs_entry_kind { CFS_ENTRY_FILE, CFS_ENTRY_LINK, CFS_ENTRY_BLOB, CFS_ENTRY_DISPATCHER, CFS_ENTRY_DIR };
typedef struct cfs_entry {
  enum cfs_entry_kind kind;
  char *path;               /* in the tree, "targets/x86_64-linux/include/cuda.h" */
  const cfs_file *file;     /* FILE */
  const cfs_choice *choice; /* whose file it is, or what it was made from; NULL for the tree's own */
  char *link;               /* LINK: target; DISPATCHER: tool name */
  void *data;               /* BLOB */
  size_t size;
  bool executable;
  const char *why; /* static: how a synthesised entry came to be; NULL for plain files */
} cfs_entry;

/* One way out of a refusal: what to run so that the sources hold that release. */
typedef struct cfs_repair {
  char *release;
  size_t changes; /* components that it brings or exchanges */
  cfs_strings fix;
} cfs_repair;

typedef struct cfs_plan {
  bool coherent;
  bool advisories_lifted;    /* the policy lets known-bad builds be chosen */
  char *name;                /* the manifest's, or NULL */
  char *release;             /* of the face; NULL when refused */
  char *digest;              /* 64 hex digits; NULL when refused */
  cfs_strings targets;       /* asked for */
  cfs_strings consumers;     /* asked for */
  cfs_toolchain *toolchains; /* the face first, then ascending */
  size_t n_toolchains;
  cfs_entry *entries; /* sorted by path */
  size_t n_entries;
  cfs_problems problems;
  cfs_repair *repairs; /* when refused: the least change first */
  size_t n_repairs;
  cfs_inventory **sources; /* owned; choices point into them */
  size_t n_sources;
} cfs_plan;

void cfs_plan_free(cfs_plan *plan);
void cfs_toolchain_done(cfs_toolchain *t);
void cfs_repairs_done(cfs_repair *repairs, size_t n);

const cfs_choice *cfs_toolchain_choice(const cfs_toolchain *t, const char *component); /* or NULL */
/* The file that a toolchain has at a face path ("bin/nvcc"), or NULL; ret_choice may be NULL. */
const cfs_file *cfs_toolchain_file(const cfs_toolchain *t, const char *face, const cfs_choice **ret_choice);
const cfs_entry *cfs_plan_entry(const cfs_plan *plan, const char *path); /* or NULL */

/* The plan as `cudafs plan --json` prints it; with_files adds every path with its source file, which
 * is what `.cudafs/plan.json` holds and what `explain` reads. The caller owns the result. */
json_t *cfs_plan_to_json(const cfs_plan *plan, bool with_files);
/* Computes and sets the digest: SHA-256 over the canonical form (sorted keys, no blanks) of the plan with
 * its files, their sizes and times, the synthesised bytes and the dispatcher's, with the routes and advisories that it
 * is given. */
int cfs_plan_seal(cfs_plan *plan, const cfs_tables *tables, const void *dispatcher, size_t dispatcher_size,
                  cfs_error **err);

#endif
