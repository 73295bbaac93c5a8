/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_SCAN_H
#define CUDAFS_OVERLAYS_SCAN_H

/* Where this machine has CUDA: the places that programs and people use, each once by real path. */

#include "manifests/manifest.h"

struct cfs_found {
  enum cfs_source_kind kind;
  char *path; /* absolute */
  char *how;  /* "$CUDA_HOME", "/usr/local/cuda-*", "active virtual environment", "PATH" ... */
};

/* Looks in $CUDA_HOME, $CUDA_PATH, $CUDA_ROOT, $VIRTUAL_ENV, the nvcc and ptxas on PATH, /usr/local/cuda-*,
 * /usr/local/cuda, /opt/cuda*, the user's cudafs cache of fetched releases, .venv and venv in the working
 * directory, and the interpreters' own site-packages; with paths given, only below those. Mounts of
 * cudafs itself are left out. The caller frees the array with cfs_found_free. */
void cfs_scan(const char *const *paths, size_t n_paths, struct cfs_found **ret, size_t *ret_n);
void cfs_found_free(struct cfs_found *found, size_t n);

#endif
