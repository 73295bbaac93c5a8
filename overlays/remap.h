/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_REMAP_H
#define CUDAFS_OVERLAYS_REMAP_H

/* Where a source's own layout puts a file that the mounted tree shows elsewhere. The rules are data
 * (layouts.json): NVIDIA has moved files between releases before and will again. */

#include "base/error.h"

typedef struct cfs_remap cfs_remap;

/* The rules of one layout ("wheel", "toolkit"). */
int cfs_remap_load(const char *data_dir, const char *layout, cfs_remap **ret, cfs_error **err);
void cfs_remap_free(cfs_remap *r);

/* The face path of a path inside the source, or NULL when the tree does not show it. The caller owns
 * the result. */
char *cfs_remap_face(const cfs_remap *r, const char *path);

#endif
