/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_NVRTC_H
#define CUDAFS_OVERLAYS_NVRTC_H

/* Compiles one source with the NVRTC of a toolkit, loaded by dlopen. The library runs in the calling
 * process, so the caller is a child made for it, with limits: `cudafs __nvrtc`. */

#include "base/error.h"
#include "base/strings.h"

#define CFS_NVRTC_COMMAND "__nvrtc"

struct cfs_nvrtc_request {
  const char *library; /* ".../lib64/libnvrtc.so.13" */
  const char *root;    /* the toolkit: every NVRTC file that gets loaded must lie in it */
  const char *source;  /* file to compile */
  const char *output;  /* file for the PTX */
  cfs_strings options; /* "--gpu-architecture=compute_120a" ... */
};

/* *ret_version is "13.2", the caller's. The error holds the compiler's own log. */
int cfs_nvrtc_compile(const struct cfs_nvrtc_request *request, char **ret_version, cfs_error **err);

#endif
