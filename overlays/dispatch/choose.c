/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/dispatch/arch.h"

static bool has_tool(const cfs_routing *r, const struct cfs_route *route)
{
  char letter = strcmp(r->tool, "nvcc") == 0 ? 'c' : strcmp(r->tool, "ptxas") == 0 ? 'a' : 'l';
  return strchr(route->can, letter) != NULL;
}

static bool knows_archs(const struct cfs_route *route, const cfs_strings *archs)
{
  for (size_t i = 0; i < archs->count; i++)
    if (!cfs_strings_has(&route->archs, archs->items[i]))
      return false;
  return true;
}

static bool is_older(const struct cfs_route *a, const struct cfs_route *b)
{
  return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

/* Some release up to this one compiles for target, or none is known to: ptxas goes on reading the .target
 * of GPUs that it no longer compiles for (13.5 takes .target sm_50 with -arch=sm_90). */
static bool reads_target(const cfs_routing *r, const struct cfs_route *route, const char *target)
{
  bool known = false;
  for (size_t i = 0; i < r->n_routes + r->n_hints; i++) {
    const struct cfs_route *other = i < r->n_routes ? &r->routes[i] : &r->hints[i - r->n_routes];
    if (!cfs_strings_has(&other->archs, target))
      continue;
    if (!is_older(route, other))
      return true;
    known = true;
  }
  return !known;
}

static bool knows(const cfs_routing *r, const struct cfs_route *route, const cfs_request *q)
{
  if (q->ptx.major > route->ptx.major || (q->ptx.major == route->ptx.major && q->ptx.minor > route->ptx.minor))
    return false;
  for (size_t i = 0; i < q->targets.count; i++)
    if (!reads_target(r, route, q->targets.items[i]))
      return false;
  return knows_archs(route, &q->archs);
}

static bool concerns(const struct cfs_avoid *avoid, const cfs_strings *archs)
{
  if (cfs_strings_has(&avoid->archs, "*"))
    return true;
  for (size_t i = 0; i < archs->count; i++)
    if (cfs_strings_has(&avoid->archs, archs->items[i]))
      return true;
  return false;
}

static const struct cfs_avoid *find_avoid(const cfs_routing *r, const struct cfs_route *route, const cfs_strings *archs)
{
  for (size_t i = 0; i < r->n_avoids; i++)
    if (strcmp(r->avoids[i].release, route->release) == 0 && concerns(&r->avoids[i], archs))
      return &r->avoids[i];
  return NULL;
}

static bool is_usable(const cfs_routing *r, const struct cfs_route *route, const cfs_request *q)
{
  return has_tool(r, route) && knows(r, route, q) && !find_avoid(r, route, &q->archs);
}

static const struct cfs_route *find_oldest(const cfs_routing *r, const cfs_request *q)
{
  const struct cfs_route *best = NULL;
  for (size_t i = 0; i < r->n_routes; i++)
    if (is_usable(r, &r->routes[i], q) && (!best || is_older(&r->routes[i], best)))
      best = &r->routes[i];
  return best;
}

static const struct cfs_route *find_newest(const cfs_routing *r, const cfs_request *q)
{
  const struct cfs_route *best = NULL;
  for (size_t i = 0; i < r->n_routes; i++)
    if (is_usable(r, &r->routes[i], q) && (!best || is_older(best, &r->routes[i])))
      best = &r->routes[i];
  return best;
}

/* "sm_107a with PTX ISA 9.4"; the caller owns the result. */
static char *describe(const cfs_request *q)
{
  cleanup_strings cfs_strings all = {0};
  cfs_request_names(q, &all);
  cleanup_free char *archs = cfs_arch_list(&all);
  if (!q->ptx.major)
    return TAKE_PTR(archs);
  return cfs_format("%s%sPTX ISA %d.%d", archs, *archs ? " with " : "", q->ptx.major, q->ptx.minor);
}

/* A release that knows arch alone: one that is here before one that is not. */
static const struct cfs_route *find_part(const cfs_routing *r, const char *arch)
{
  for (size_t i = 0; i < r->n_routes; i++)
    if (has_tool(r, &r->routes[i]) && cfs_strings_has(&r->routes[i].archs, arch))
      return &r->routes[i];
  for (size_t i = 0; i < r->n_hints; i++)
    if (cfs_strings_has(&r->hints[i].archs, arch))
      return &r->hints[i];
  return NULL;
}

/* No release does the whole set: say which part each one does, so that it can be compiled apart. NULL when
 * a name is known to none, for then the tool's own message says all. */
static char *advise_parts(const cfs_routing *r, const cfs_request *q)
{
  cleanup_buffer cfs_buffer b = {0};
  cleanup_strings cfs_strings left = {0};
  for (size_t i = 0; i < q->archs.count; i++)
    cfs_strings_add(&left, q->archs.items[i]);
  while (left.count) {
    const struct cfs_route *part = find_part(r, left.items[0]);
    if (!part)
      return NULL;
    cleanup_strings cfs_strings does = {0}, rest = {0};
    for (size_t i = 0; i < left.count; i++)
      cfs_strings_add(cfs_strings_has(&part->archs, left.items[i]) ? &does : &rest, left.items[i]);
    cleanup_free char *names = cfs_arch_list(&does);
    cfs_buffer_format(&b, "%sCUDA %s does %s", b.size ? ", " : "", part->release, names);
    if (!part->can)
      cfs_buffer_text(&b, " (not here: add it to \"sources\")");
    cfs_strings_done(&left);
    left = rest;
    rest = (cfs_strings){0};
  }
  cleanup_free char *all = cfs_arch_list(&q->archs);
  return cfs_format("no single release does %s: %s; compile them apart", all, b.data);
}

static char *advise(const cfs_routing *r, const cfs_request *q)
{
  cleanup_free char *what = describe(q);
  for (size_t i = 0; i < r->n_routes; i++) {
    const struct cfs_avoid *avoid = find_avoid(r, &r->routes[i], &q->archs);
    if (avoid && has_tool(r, &r->routes[i]) && knows(r, &r->routes[i], q))
      return cfs_format("CUDA %s is known to be bad for %s%s%s", avoid->release, *what ? what : "this",
                        *avoid->text ? ": " : "", avoid->text);
  }
  for (size_t i = 0; i < r->n_hints; i++)
    if (knows(r, &r->hints[i], q))
      return cfs_format("%s needs CUDA %s, which is not here: add its wheels or toolkit to \"sources\" and reload",
                        what, r->hints[i].release);
  return q->archs.count > 1 ? advise_parts(r, q) : NULL;
}

static int choose_forced(const cfs_routing *r, const char *forced, struct cfs_choice *ret)
{
  for (size_t i = 0; i < r->n_routes; i++)
    if (strcmp(r->routes[i].release, forced) == 0 && has_tool(r, &r->routes[i])) {
      ret->route = &r->routes[i];
      ret->reason = "CUDAFS_RELEASE asks for it";
      return 0;
    }
  return -ENOENT;
}

static void choose_newest(const cfs_routing *r, const cfs_request *q, const char *reason, struct cfs_choice *ret)
{
  ret->route = find_newest(r, q);
  ret->reason = reason;
  if (!ret->route) {
    const cfs_request any = {0};
    ret->route = find_newest(r, &any);
    ret->reason = "none here knows the target";
    ret->advice = advise(r, q);
  }
}

static void choose_able(const cfs_routing *r, const cfs_request *q, struct cfs_choice *ret)
{
  ret->route = &r->routes[0];
  ret->reason = "the face can do it";
  if (is_usable(r, ret->route, q))
    return;
  ret->route = find_oldest(r, q);
  ret->reason = "the oldest release here that can do it";
  if (ret->route)
    return;
  ret->route = &r->routes[0];
  ret->reason = "no release here can do it";
  ret->advice = advise(r, q);
}

int cfs_choose(const cfs_routing *r, const cfs_request *request, const char *forced, struct cfs_choice *ret)
{
  *ret = (struct cfs_choice){.route = &r->routes[0]};
  if (forced && *forced)
    return choose_forced(r, forced, ret);
  if (request->report)
    ret->reason = "it only asks about the tool";
  else if (request->broken)
    ret->reason = "the face says what is wrong with the command";
  else if (strcmp(r->tool, "nvlink") == 0)
    choose_newest(r, request, "the newest linker takes what any compiler here made", ret);
  else if (request->undecided)
    choose_newest(r, request, "an input has no readable PTX head: the newest that knows the target", ret);
  else
    choose_able(r, request, ret);
  if (!ret->route)
    ret->route = &r->routes[0];
  return 0;
}

char *cfs_choose_list(const cfs_routing *r)
{
  cleanup_strings cfs_strings releases = {0};
  for (size_t i = 0; i < r->n_routes; i++)
    if (has_tool(r, &r->routes[i]))
      cfs_strings_add(&releases, r->routes[i].release);
  return cfs_strings_join(&releases, ", ");
}
