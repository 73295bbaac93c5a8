/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_INVENTORY_H
#define CUDAFS_OVERLAYS_INVENTORY_H

/* What one source holds, in the same words whatever kind of source it is: parts, each one installed
 * component with its version as its files tell it, and the files under the paths that the mounted
 * tree gives them ("face paths": bin/, nvvm/, include/, lib/). Reading never executes anything. */

#include "base/error.h"
#include "base/strings.h"
#include "fs/tree.h"
#include "manifests/manifest.h"
#include "manifests/tables.h"
#include "overlays/problem.h"

typedef struct cfs_file {
  char *face; /* "include/cuda.h" */
  char *path; /* where the bytes are */
  struct cfs_backing_id id;
  bool executable;
  char *link;   /* name of a file in the same folder that this one is a link to, or NULL */
  char *sha256; /* as the package's own record says, hex, or NULL */
} cfs_file;

typedef struct cfs_part {
  const cfs_component_info *info;
  char *version;         /* the package's, else what the files say; NULL if neither is known */
  char *content;         /* the version that the files themselves say, or NULL */
  char *release;         /* CUDA X.Y: by content, else by the pins, else NULL */
  char *package;         /* "nvidia-cuda-nvcc", or NULL */
  char *package_version; /* or NULL */
  cfs_file *files;
  size_t n_files;
} cfs_part;

typedef struct cfs_inventory {
  char *id; /* the source's id in the manifest */
  enum cfs_source_kind kind;
  char *path;          /* the source's place */
  char *installer;     /* "pip", "uv", "conda", "runfile", ...: who can mend it */
  char *python;        /* the interpreter that a wheel source belongs to, or NULL */
  char *torch_release; /* CUDA release that the torch installed there was built with, or NULL */
  cfs_part *parts;
  size_t n_parts;
  cfs_problems problems;
} cfs_inventory;

cfs_inventory *cfs_inventory_new(const char *id, enum cfs_source_kind kind, const char *path);
void cfs_inventory_free(cfs_inventory *inv);

/* Adds an empty part and returns it, valid until the next add. */
cfs_part *cfs_inventory_add_part(cfs_inventory *inv, const cfs_component_info *info);
/* The part of that component without a package (made if missing): for sources that have files only. */
cfs_part *cfs_inventory_loose_part(cfs_inventory *inv, const cfs_component_info *info);
/* Adds a file that exists; takes ownership of face and path. Returns 0, or a negative errno when it
 * cannot be looked at (nothing is added then), is no regular file (-EINVAL), or may not be read by
 * everyone who would see it in a mount (-EACCES: by this user, or for root by all). */
int cfs_part_add_file(cfs_part *part, char *face, char *path);
const cfs_file *cfs_part_file(const cfs_part *part, const char *face); /* or NULL */
/* Sorts parts and files, reads each part's identity (identify.h), drops parts without files. */
void cfs_inventory_finish(cfs_inventory *inv, const cfs_tables *tables);

#endif
