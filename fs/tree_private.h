/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_TREE_PRIVATE_H
#define CUDAFS_FS_TREE_PRIVATE_H

/* What the builder collects (tree.c) and the sealer writes out (seal.c). */

#include "fs/tree.h"

struct cfs_tree_node {
  char *path; /* from the root; "" is the root */
  char *data; /* blob bytes or link target, owned */
  uint64_t size;
  struct timespec mtime;
  uint32_t path_size;
  uint32_t name; /* offset of the last element in path */
  uint32_t parent;
  uint32_t backing;
  uint8_t type, flags;
};

struct cfs_tree_backing {
  char *path;
  struct cfs_backing_id id;
};

/* Open addressing; the keys are read from the arrays that the slots point into. */
typedef struct cfs_tree_index {
  uint32_t *slots;
  size_t room;      /* a power of two */
  bool of_backings; /* which array the slots point into */
} cfs_tree_index;

struct cfs_tree_builder {
  struct cfs_tree_node *entries;
  size_t entry_count, entry_room;
  struct cfs_tree_backing *backings;
  size_t backing_count, backing_room;
  uint32_t *warm;
  size_t warm_count, warm_room;
  cfs_tree_index paths, backing_paths;
};

uint64_t cfs_tree_hash(const char *s, size_t size);

#endif
