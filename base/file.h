/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_FILE_H
#define CUDAFS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a whole file, NUL-terminated; at most limit bytes (-EFBIG beyond). The caller owns
 * *ret_data; ret_size may be NULL. Returns 0 or a negative errno. */
int cfs_file_read(const char *path, size_t limit, char **ret_data, size_t *ret_size);

/* Writes data to path by a temporary file beside it and rename, so that a reader sees the old or
 * the new file and never a part. Returns 0 or a negative errno. */
int cfs_file_write(const char *path, const void *data, size_t size);

/* write(2) until all is written. Returns 0 or a negative errno. */
int cfs_write_all(int fd, const void *data, size_t size);

bool cfs_path_exists(const char *path);
bool cfs_path_is_dir(const char *path);
bool cfs_path_is_file(const char *path);

/* a/b with exactly one slash between; the caller owns the result. */
char *cfs_path_join(const char *a, const char *b);

/* Removes "." and ".." and doubled slashes by text alone. NULL when ".." climbs above the start:
 * such a path is hostile or broken, never useful here. The caller owns the result. */
char *cfs_path_normalise(const char *path);

/* mkdir -p. Returns 0 or a negative errno. */
int cfs_mkdir_all(const char *path, unsigned mode);

#endif
