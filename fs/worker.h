/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_WORKER_H
#define CUDAFS_FS_WORKER_H

/* The disposable process that answers the kernel. It owns nothing: killing it at any moment loses nothing,
 * because the kernel sends again to the next worker what this one had not answered. */

#include "fs/registry.h"
#include "fs/sandbox.h"

struct cfs_worker_setup {
  const cfs_registry *registry;
  struct cfs_shared *shared;
  const cfs_sandbox *sandbox;
  int device;
  const void *init; /* the INIT request, replayed to libfuse */
  size_t init_size;
  unsigned threads;
  uint32_t open_files; /* at most so many backing files open at a time */
  pid_t keeper;
  int ready; /* gets one byte when requests are being served */
};

/* In a freshly forked child of the keeper; ends with it. Exit status 0: the connection is gone. */
_Noreturn void cfs_worker_run(const struct cfs_worker_setup *setup);

#endif
