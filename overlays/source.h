/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_SOURCE_H
#define CUDAFS_OVERLAYS_SOURCE_H

/* The kinds of source. Each is one file with one descriptor; all yield the same inventory. */

#include "overlays/inventory.h"

typedef struct cfs_source_ops {
  enum cfs_source_kind kind;
  /* Is the place of this kind? The caller owns *ret_path, the root that take_inventory wants (a venv's
   * site-packages, say), when the answer is yes. */
  bool (*recognise)(const char *path, char **ret_path);
  /* Fills the inventory from inv->path. What is wrong with single files or packages becomes a
   * problem of the inventory; only a place that cannot be read at all is an error. */
  int (*take_inventory)(cfs_inventory *inv, const cfs_tables *tables, cfs_error **err);
  /* Or NULL: completes what can only be said once every part's own identity is known. */
  void (*after_identify)(cfs_inventory *inv);
} cfs_source_ops;

extern const cfs_source_ops cfs_source_site_packages;
extern const cfs_source_ops cfs_source_toolkit;

/* Reads one source of a manifest. Errors (CFS_REFUSED: the place is missing, unreadable or holds no
 * CUDA; CFS_INVALID: the kind is not supported) name the place and the manifest's line. */
int cfs_source_read(const struct cfs_manifest_source *source, const char *manifest_path, const cfs_tables *tables,
                    cfs_inventory **ret, cfs_error **err);

/* The kind that recognises the place and the root it found, or CFS_SOURCE_ANY. */
enum cfs_source_kind cfs_source_recognise(const char *path, char **ret_path);

#endif
