/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_SHARED_H
#define CUDAFS_FS_SHARED_H

/* The only memory that the processes of one mount share for writing: counters, and what each worker
 * thread is doing. It outlives workers and keepers; nothing in it can lead to wrong bytes being served. */

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/options.h"
#include "fs/serve.h"

#define CFS_GENERATIONS_MAX 256u
#define CFS_FILES_MAX       (1u << 20)
#define CFS_POISONED_MAX    16u

/* Per backing file: the kernel's lookup count, and whether it was found changed. */
struct cfs_shared_file {
  _Atomic int32_t lookups;
  _Atomic uint32_t drifted;
};

/* unique is 0 while the thread waits for a request. */
struct cfs_shared_thread {
  _Atomic uint64_t unique;
  _Atomic uint64_t since; /* CLOCK_MONOTONIC, nanoseconds */
};

struct cfs_shared {
  _Atomic uint64_t requests[CFS_OP_COUNT];
  _Atomic uint64_t bytes_read;
  _Atomic uint64_t taken; /* requests read from the kernel */
  _Atomic uint64_t restarts;
  _Atomic pid_t keeper, worker;
  _Atomic pid_t spares[2];     /* two only while one replaces the other */
  _Atomic uint64_t succession; /* a spare that is older than this does not know the present trees */
  struct cfs_shared_thread threads[CFS_THREADS_MAX];
  _Atomic uint64_t poisoned[CFS_POISONED_MAX]; /* requests that killed worker after worker: answered EIO */
  _Atomic int64_t generation_lookups[CFS_GENERATIONS_MAX];
  struct cfs_shared_file files[CFS_FILES_MAX];
};

/* The pages are taken from the kernel only as they are touched. NULL with errno on failure. */
struct cfs_shared *cfs_shared_new(void);
void cfs_shared_free(struct cfs_shared *s);

void cfs_shared_count(struct cfs_shared *s, enum cfs_op op);

uint64_t cfs_now(void); /* CLOCK_MONOTONIC, nanoseconds */

#endif
