/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_CHOOSE_H
#define CUDAFS_DISPATCH_CHOOSE_H

/* Which release a request goes to. */

#include "overlays/dispatch/request.h"
#include "overlays/dispatch/routing.h"

struct cfs_choice {
  const struct cfs_route *route; /* inside the routing */
  const char *reason;            /* a constant, for the trace */
  char *advice;                  /* one line when nothing here can do it and something else would; NULL otherwise */
};

/* Chooses; the tool is the routing's. forced is a release or NULL. Returns 0, or -ENOENT when there is no
 * route that is forced and has the tool. The caller frees ret->advice. */
int cfs_choose(const cfs_routing *r, const cfs_request *request, const char *forced, struct cfs_choice *ret);

/* The releases that have the tool, "13.0, 13.5"; the caller owns the result. */
char *cfs_choose_list(const cfs_routing *r);

#endif
