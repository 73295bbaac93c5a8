/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_MANIFEST_H
#define CUDAFS_MANIFESTS_MANIFEST_H

/* What the user asked for. Parsing checks everything that needs no look at a source: names, types,
 * ranges, known consumers and problem codes, relative paths made absolute (against the manifest's
 * folder), "~" not expanded. Every error says file:line:, the key by its path
 * ("sources[1].toolkit"), and what was expected; unknown keys get a "did you mean". */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"
#include "manifests/tables.h"

enum cfs_source_kind {
  CFS_SOURCE_ANY, /* a string source: recognised by what it holds */
  CFS_SOURCE_TOOLKIT,
  CFS_SOURCE_SITE_PACKAGES,
  CFS_SOURCE_DEBIAN,
  CFS_SOURCE_CONDA,
  CFS_SOURCE_HPCSDK,
  CFS_SOURCE_REDIST,
  CFS_SOURCE_ARCHIVE,
  CFS_SOURCE_IMAGE,
};
/* The manifest's key for the kind ("site-packages"), "source" for CFS_SOURCE_ANY. Static. */
const char *cfs_source_kind_name(enum cfs_source_kind kind);

struct cfs_manifest_source {
  char *id; /* unique; given, or made from the kind and the place ("venv", "cuda-13.0", ...) */
  enum cfs_source_kind kind;
  char *path;   /* absolute, not resolved; may hold glob characters for archives */
  char *sha256; /* or NULL */
  int line;     /* in the manifest; 0 when there is none */
};

struct cfs_manifest_component {
  char *name; /* canonical component id */
  char *from; /* source id, or NULL */
  bool omit;
};

enum cfs_on_drift { CFS_DRIFT_SERVE_PINNED, CFS_DRIFT_RELOAD, CFS_DRIFT_STOP };
enum cfs_policy_mode { CFS_POLICY_CHECK, CFS_POLICY_WARN, CFS_POLICY_IGNORE };

typedef struct cfs_manifest {
  char *path; /* where it was read, or NULL when made from a scan */
  char *name; /* or NULL */
  struct cfs_manifest_source *sources;
  size_t n_sources;
  char *release;       /* as written: "newest", "torch", a release or a range */
  cfs_strings targets; /* "sm_120a" */
  cfs_strings consumers;
  struct cfs_manifest_component *components;
  size_t n_components;
  cfs_strings toolchains; /* releases asked for beside the face */
  bool toolchains_given;  /* false: all that the sources hold */
  enum cfs_on_drift on_drift;
  enum cfs_policy_mode host_compiler; /* "check" (default), "warn", "ignore" */
  enum cfs_policy_mode advisories;    /* "refuse" (default), "warn", "ignore" */
  cfs_strings allow;                  /* problem codes lowered to warnings */
  bool snapshot;                      /* "snapshot": true; default false */
} cfs_manifest;

/* Reads and checks the manifest at path, of at most 1 MiB. *ret is the caller's; every error is
 * CFS_INVALID. */
int cfs_manifest_load(const char *path, const cfs_tables *tables, cfs_manifest **ret, cfs_error **err);
/* Likewise from memory. name stands for the file in errors; relative paths are made absolute against
 * base, which must be absolute; the result's path is NULL. */
int cfs_manifest_parse(const char *text, size_t size, const char *name, const char *base, const cfs_tables *tables,
                       cfs_manifest **ret, cfs_error **err);
/* A manifest of string sources with every default, as if written {"cudafs":1,"sources":[...]};
 * paths are made absolute against the working directory. */
cfs_manifest *cfs_manifest_from_paths(const char *const *paths, size_t n);
const struct cfs_manifest_component *cfs_manifest_component(const cfs_manifest *m, const char *name); /* or NULL */
void cfs_manifest_free(cfs_manifest *m);

#endif
