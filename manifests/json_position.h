/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_JSON_POSITION_H
#define CUDAFS_MANIFESTS_JSON_POSITION_H

#include <stdbool.h>
#include <stddef.h>

/* jansson forgets where a value stood. This walks the text again, only when an error is about to be
 * told, and finds the line of a key path. The text must be one that jansson accepted. */

/* One step down: into an object by key, or into an array by index when key is NULL. */
struct cfs_json_step {
  const char *key;
  size_t index;
};

struct cfs_json_position {
  int line;   /* from 1 */
  int column; /* from 1, in bytes */
};

/* Where the last step stands: its key for a member, its value for an array element; the root value
 * when n is 0. When the path ends early (a missing key), *ret is the last step that does exist and the
 * result is false. */
bool cfs_json_position_find(const char *text, size_t size, const struct cfs_json_step *steps, size_t n,
                            struct cfs_json_position *ret);

#endif
