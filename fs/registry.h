/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_REGISTRY_H
#define CUDAFS_FS_REGISTRY_H

/* Everything a mount serves: its generations (trees) and the backing files they name. The keeper changes
 * it between workers; a worker inherits it by fork and only reads it.
 *
 * Node ids, as the kernel sees them, are never given to something else:
 *   1                          the root: of the current generation, whichever that is
 *   generation << 32 | entry+1 a directory, link or blob of that generation
 *   FILE | serial << 32 | slot a backing file. One that a reload finds unchanged keeps its id, and so the
 *                              kernel keeps its cached pages.
 *   KEPT | inode number        an entry that outlives generations */

#include "fs/pins.h"
#include "fs/shared.h"
#include "fs/snapshot.h"

#define CFS_NODE_ROOT UINT64_C(1)
#define CFS_NODE_KEPT (UINT64_C(1) << 62)
#define CFS_NODE_FILE (UINT64_C(1) << 61)
#define CFS_NO_FILE   UINT32_MAX

struct cfs_generation {
  uint32_t number; /* 0: free */
  cfs_snapshot *snapshot;
  uint32_t *file_of; /* slot of backing and mode: [backing * 2 + executable], or CFS_NO_FILE */
};

struct cfs_file {
  uint32_t serial;     /* 0: free */
  uint32_t generation; /* index of the newest generation that has it */
  uint32_t entry;
  uint32_t pin;
};

typedef struct cfs_registry {
  struct cfs_shared *shared;
  struct cfs_generation generations[CFS_GENERATIONS_MAX]; /* at number % CFS_GENERATIONS_MAX */
  uint32_t current;                                       /* index */
  struct cfs_file *files;
  uint32_t file_count, file_room, file_free; /* file_free: slots below file_count that are free */
  uint32_t serial;
  cfs_pins pins;
} cfs_registry;

int cfs_registry_init(cfs_registry *r, struct cfs_shared *shared, uint32_t pin_limit);
void cfs_registry_done(cfs_registry *r);

/* Makes the snapshot the next generation and pins its files; takes ownership of it on success. On failure
 * nothing has changed. -ENOSPC: too many generations or files are still in use. */
int cfs_registry_publish(cfs_registry *r, cfs_snapshot *snapshot);
/* Lets go of every generation and file that neither the current tree nor the kernel uses. */
void cfs_registry_sweep(cfs_registry *r);

uint32_t cfs_registry_generation(const cfs_registry *r); /* number of the current one */
uint32_t cfs_registry_held(const cfs_registry *r);       /* how many are in memory */

struct cfs_node {
  const cfs_snapshot *snapshot;
  uint32_t generation; /* index */
  uint32_t entry;
};

/* What a node id stands for; -ESTALE if nothing. */
int cfs_registry_resolve(const cfs_registry *r, uint64_t id, struct cfs_node *ret);
uint64_t cfs_registry_id(const cfs_registry *r, uint32_t generation, uint32_t entry);
/* The slot of a file entry. */
uint32_t cfs_registry_file(const cfs_registry *r, const struct cfs_node *node);
/* Changes the kernel's lookup count of a node. */
void cfs_registry_count(const cfs_registry *r, uint64_t id, int64_t change);

/* Descriptor to reopen the file by, or -1; its path; what it must be. */
int cfs_registry_pin(const cfs_registry *r, uint32_t file);
const char *cfs_registry_path(const cfs_registry *r, uint32_t file);
struct cfs_backing_id cfs_registry_backing_id(const cfs_registry *r, uint32_t file);

#endif
