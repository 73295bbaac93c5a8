/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_DIST_INFO_H
#define CUDAFS_OVERLAYS_DIST_INFO_H

/* A wheel's *.dist-info folder as an installer leaves it: who it is and what it put where. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct cfs_record_entry {
  char *path;   /* relative to the site-packages folder, normalised; NULL when it climbs out of it */
  char *sha256; /* hex, or NULL when the record gives none */
  int64_t size; /* -1 when the record gives none */
};

typedef struct cfs_dist_info {
  char *name;      /* as in METADATA: "nvidia-cuda-nvcc" */
  char *version;   /* "13.2.78" */
  char *installer; /* "pip", "uv", ... or NULL */
  struct cfs_record_entry *record;
  size_t n_record;
} cfs_dist_info;

/* Reads the folder `directory` (".../nvidia_cuda_nvcc-13.2.78.dist-info"). The name and version come from
 * METADATA, else from the folder's name. -ENOENT when there is no RECORD. */
int cfs_dist_info_read(const char *directory, cfs_dist_info **ret, cfs_error **err);
void cfs_dist_info_free(cfs_dist_info *d);

/* Splits "nvidia_cuda_nvcc-13.2.78.dist-info"; false when the name is not of that form. The caller
 * owns both. */
bool cfs_dist_info_split(const char *folder, char **ret_name, char **ret_version);

#endif
