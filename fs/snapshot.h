/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_SNAPSHOT_H
#define CUDAFS_FS_SNAPSHOT_H

/* Reading a sealed snapshot. Opening checks every offset in it, because it may have come over a socket;
 * afterwards an entry number below the count is all that these functions ask for. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/tree.h"

typedef struct cfs_snapshot cfs_snapshot;

#define CFS_ENTRY_NONE UINT32_MAX
#define CFS_ENTRY_ROOT 0u

enum cfs_entry_kind { CFS_ENTRY_DIR, CFS_ENTRY_FILE, CFS_ENTRY_BLOB, CFS_ENTRY_LINK };

/* Maps the snapshot; the descriptor stays the caller's and may be closed. -EINVAL for anything that is
 * not a whole, sealed, consistent snapshot. */
int cfs_snapshot_open(int fd, cfs_snapshot **ret);
void cfs_snapshot_close(cfs_snapshot *s);

uint32_t cfs_snapshot_count(const cfs_snapshot *s);
uint32_t cfs_snapshot_backing_count(const cfs_snapshot *s);

/* The child of that name, or CFS_ENTRY_NONE; dir must be a directory. */
uint32_t cfs_snapshot_lookup(const cfs_snapshot *s, uint32_t dir, const char *name);
/* The entry at a path relative to the root ("" is the root), or CFS_ENTRY_NONE. Follows no links. */
uint32_t cfs_snapshot_resolve(const cfs_snapshot *s, const char *path);
/* The children of a directory are *ret_first .. *ret_first + count - 1. Returns the count. */
uint32_t cfs_snapshot_children(const cfs_snapshot *s, uint32_t dir, uint32_t *ret_first);

enum cfs_entry_kind cfs_snapshot_kind(const cfs_snapshot *s, uint32_t entry);
const char *cfs_snapshot_name(const cfs_snapshot *s, uint32_t entry);
uint32_t cfs_snapshot_parent(const cfs_snapshot *s, uint32_t entry);
bool cfs_snapshot_hidden(const cfs_snapshot *s, uint32_t entry);
bool cfs_snapshot_kept(const cfs_snapshot *s, uint32_t entry);
void cfs_snapshot_stat(const cfs_snapshot *s, uint32_t entry, struct stat *ret);

const char *cfs_snapshot_target(const cfs_snapshot *s, uint32_t link);
const void *cfs_snapshot_blob(const cfs_snapshot *s, uint32_t blob, size_t *ret_size);
uint32_t cfs_snapshot_backing(const cfs_snapshot *s, uint32_t file);
/* The first entry with the same backing file and mode: the one inode of them all. */
uint32_t cfs_snapshot_shared(const cfs_snapshot *s, uint32_t file);

const char *cfs_snapshot_backing_path(const cfs_snapshot *s, uint32_t backing);
struct cfs_backing_id cfs_snapshot_backing_id(const cfs_snapshot *s, uint32_t backing);

/* The entries to be read in the background, in order. */
const uint32_t *cfs_snapshot_warm(const cfs_snapshot *s, uint32_t *ret_count);

/* Writes the entry's path from the root, without a leading slash. -ENAMETOOLONG. */
int cfs_snapshot_path(const cfs_snapshot *s, uint32_t entry, char *buffer, size_t size);

#endif
