/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_TREE_H
#define CUDAFS_FS_TREE_H

/* The immutable snapshot that a mount serves. It knows nothing of CUDA: directories, regular files
 * whose bytes lie in a backing file or in the snapshot itself, and symbolic links.
 *
 * A builder collects entries; sealing writes them into a sealed memfd (offsets, no pointers), which
 * any number of processes map read-only. Forking a worker therefore copies no page of it, and a wild
 * write faults instead of changing what is served. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What a backing file was when the snapshot was made. ctime is left out on purpose: making another
 * hard link changes it, and package managers do that. */
struct cfs_backing_id {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t mtime_sec;
  uint32_t mtime_nsec;
};

typedef struct cfs_tree_builder cfs_tree_builder;

cfs_tree_builder *cfs_tree_builder_new(void);
void cfs_tree_builder_free(cfs_tree_builder *b);

/* Paths are relative to the root, normalised, without a leading slash ("bin/nvcc"). Missing parent
 * directories are made. Errors: -EEXIST (that path has an entry of another kind or content),
 * -EINVAL (empty, "." or ".." element, absolute), -ENOTDIR (an element is not a directory),
 * -ENAMETOOLONG. */
int cfs_tree_builder_add_dir(cfs_tree_builder *b, const char *path);
/* A regular file of a backing file's bytes; executable decides between r-xr-xr-x and r--r--r--. The
 * same backing path added twice shares one inode number and one page cache. */
int cfs_tree_builder_add_file(cfs_tree_builder *b, const char *path, const char *backing,
                              const struct cfs_backing_id *id, bool executable);
/* A regular file whose bytes are copied into the snapshot. */
int cfs_tree_builder_add_blob(cfs_tree_builder *b, const char *path, const void *data, size_t size, bool executable,
                              struct timespec mtime);
int cfs_tree_builder_add_link(cfs_tree_builder *b, const char *path, const char *target);
/* Marks an existing entry as served by name but left out of listings. -ENOENT if it is not there. */
int cfs_tree_builder_hide(cfs_tree_builder *b, const char *path);
/* Marks an existing file as one whose node id and inode outlive every generation. */
int cfs_tree_builder_keep_identity(cfs_tree_builder *b, const char *path);

/* Asks for an existing file of a backing file's bytes to be read in the background once the tree is
 * mounted; in the order of asking. -ENOENT, or -EINVAL for anything else. */
int cfs_tree_builder_warm(cfs_tree_builder *b, const char *path);

/* Writes the snapshot and seals it. The builder stays usable. Returns a descriptor (CLOEXEC) that the
 * caller owns, or a negative errno. Equal entries give equal bytes, whatever the order of adding. */
int cfs_tree_builder_seal(const cfs_tree_builder *b);

#endif
