/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_PINS_H
#define CUDAFS_FS_PINS_H

/* O_PATH descriptors that hold backing files, so that replacing or unlinking one changes nothing for a
 * tree that is being served. One descriptor per (device, inode), counted. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/tree.h"

#define CFS_PIN_NONE UINT32_MAX

struct cfs_pin {
  uint64_t device, inode;
  int fd; /* -1: free */
  uint32_t references;
  uint32_t next; /* in the bucket, or in the list of free ones */
};

typedef struct cfs_pins {
  struct cfs_pin *pins;
  uint32_t count, room, free_list, used, limit;
  uint32_t *buckets;
  uint32_t bucket_count; /* a power of two */
} cfs_pins;

/* At most limit descriptors at a time. */
int cfs_pins_init(cfs_pins *p, uint32_t limit);
void cfs_pins_done(cfs_pins *p);

/* Takes a reference on the file at path if it is still the one described. Returns 0 with the pin, or
 * with CFS_PIN_NONE when there are no descriptors left; -ESTALE when it is another file or was changed;
 * a negative errno when it cannot be opened. */
int cfs_pins_take(cfs_pins *p, const char *path, const struct cfs_backing_id *id, uint32_t *ret_pin);
void cfs_pins_reference(cfs_pins *p, uint32_t pin);
void cfs_pins_release(cfs_pins *p, uint32_t pin);

/* Whether st is the file that id describes. ctime and link count do not matter: package managers make
 * further hard links. Nor does the device number, which may change when a filesystem is mounted anew. */
bool cfs_backing_matches(const struct cfs_backing_id *id, const struct stat *st);

#endif
