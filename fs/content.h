/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_CONTENT_H
#define CUDAFS_FS_CONTENT_H

/* Reading backing files in a worker: a bounded set of open descriptors over the registry's files. Bytes are
 * handed out only if the file was, before and after reading them, the one that the tree describes. */

#include <pthread.h>

#include "fs/registry.h"

struct cfs_content_file {
  int fd;
  uint32_t users;
  bool recent;
};

typedef struct cfs_content {
  const cfs_registry *registry;
  pthread_mutex_t lock;
  struct cfs_content_file *files; /* by the registry's slots */
  uint32_t open, limit, hand;
} cfs_content;

int cfs_content_init(cfs_content *c, const cfs_registry *registry, uint32_t limit);

/* Reads like pread, but a short read is the end of the file. -EIO when the file is not what it was. */
ssize_t cfs_content_read(cfs_content *c, uint32_t file, void *buffer, size_t size, off_t offset);

#endif
