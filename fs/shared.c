/* SPDX-License-Identifier: MIT */
#include "fs/shared.h"

#include <sys/mman.h>
#include <time.h>

struct cfs_shared *cfs_shared_new(void)
{
  void *p =
      mmap(NULL, sizeof(struct cfs_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void cfs_shared_free(struct cfs_shared *s)
{
  if (s)
    munmap(s, sizeof(*s));
}

void cfs_shared_count(struct cfs_shared *s, enum cfs_op op)
{
  atomic_fetch_add_explicit(&s->requests[op], 1, memory_order_relaxed);
}

uint64_t cfs_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

const char *cfs_op_name(enum cfs_op op)
{
  static const char *const names[CFS_OP_COUNT] = {
      [CFS_OP_LOOKUP] = "lookup",           [CFS_OP_FORGET] = "forget",   [CFS_OP_GETATTR] = "getattr",
      [CFS_OP_READLINK] = "readlink",       [CFS_OP_OPEN] = "open",       [CFS_OP_READ] = "read",
      [CFS_OP_STATFS] = "statfs",           [CFS_OP_OPENDIR] = "opendir", [CFS_OP_READDIR] = "readdir",
      [CFS_OP_READDIRPLUS] = "readdirplus", [CFS_OP_OTHER] = "other",
  };
  return op < CFS_OP_COUNT ? names[op] : "other";
}
