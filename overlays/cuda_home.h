/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_CUDA_HOME_H
#define CUDAFS_OVERLAYS_CUDA_HOME_H

/* A quick look at a directory that somebody calls CUDA_HOME: what its files say they are. */

#include <stdbool.h>

typedef struct cfs_cuda_home {
  char *path;
  bool exists;
  bool mounted;  /* one of ours */
  bool compiles; /* it has a bin/nvcc */
  char *version; /* of nvcc, else of ptxas: "13.2.78"; NULL when neither says it */
  char *release; /* "13.2", or NULL */
  char *headers; /* release of its runtime headers, or NULL */
} cfs_cuda_home;

void cfs_cuda_home_read(const char *path, cfs_cuda_home *ret);
/* The same for the tool at path, an nvcc or ptxas: ret->path is the folder above its bin/. */
void cfs_cuda_home_of_tool(const char *tool, cfs_cuda_home *ret);
void cfs_cuda_home_done(cfs_cuda_home *h);
#define cleanup_cuda_home __attribute__((cleanup(cfs_cuda_home_done)))

/* Is there a file at a face path ("lib/libcudart.so")? Each layout has its own folders for it. */
bool cfs_cuda_home_has(const char *path, const char *face);

#endif
