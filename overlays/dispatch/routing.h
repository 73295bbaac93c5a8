/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_ROUTING_H
#define CUDAFS_DISPATCH_ROUTING_H

/* The trailer of one served copy, read and checked (the format stands in trailer.h). */

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"

struct cfs_ptx_version {
  int major, minor; /* 0.0: none */
};

struct cfs_route {
  char *release; /* "13.0" */
  int major, minor;
  char *version; /* of the tool, NULL for a hint */
  struct cfs_ptx_version ptx;
  char *can;         /* letters of c, a, l; NULL for a hint: it is not here */
  cfs_strings archs; /* without "sm_" */
};

struct cfs_avoid {
  char *release;
  cfs_strings archs; /* "*": any */
  char *text;
};

typedef struct cfs_routing {
  char *tool, *id, *root, *face;
  struct cfs_route *routes; /* the face first */
  size_t n_routes;
  struct cfs_avoid *avoids;
  size_t n_avoids;
  struct cfs_route *hints;
  size_t n_hints;
} cfs_routing;

/* Parses the text of a trailer. Returns 0, or -EINVAL with *ret_why saying what is wrong with it
 * (a constant). The caller frees *ret with cfs_routing_done in either case. */
int cfs_routing_parse(const char *text, size_t size, cfs_routing *ret, const char **ret_why);

/* Finds the trailer at the end of the open file fd and parses it. As above; also -errno of reading. */
int cfs_routing_read(int fd, cfs_routing *ret, const char **ret_why);

/* "8.70" is 8, 70. False when text is not of that form throughout. */
bool cfs_version_parse(const char *text, int *ret_major, int *ret_minor);

void cfs_routing_done(cfs_routing *r);
#define cleanup_routing __attribute__((cleanup(cfs_routing_done)))

#endif
