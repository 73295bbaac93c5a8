/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/request.h"

static void add_names(cfs_strings *names, const cfs_strings *more)
{
  for (size_t i = 0; i < more->count; i++)
    if (!cfs_strings_has(names, more->items[i]))
      cfs_strings_add(names, more->items[i]);
}

void cfs_request_names(const cfs_request *r, cfs_strings *names)
{
  add_names(names, &r->archs);
  add_names(names, &r->targets);
}

void cfs_request_done(cfs_request *r)
{
  cfs_strings_done(&r->archs);
  cfs_strings_done(&r->targets);
  *r = (cfs_request){0};
}
