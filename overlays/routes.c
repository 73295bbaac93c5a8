/* SPDX-License-Identifier: MIT */
#include "overlays/routes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/dispatch/trailer.h"

static char *target_list(const cfs_strings *targets)
{
  cleanup_strings cfs_strings bare = {0};
  for (size_t i = 0; i < targets->count; i++)
    cfs_strings_add(&bare, cfs_has_prefix(targets->items[i], "sm_") ? targets->items[i] + 3 : targets->items[i]);
  return bare.count ? cfs_strings_join(&bare, ",") : cfs_strdup("-");
}

static void add_route(cfs_buffer *b, const cfs_toolchain *t)
{
  cleanup_free char *targets = target_list(&t->targets);
  cfs_buffer_format(b, "route %s %s %s %s%s%s %s\n", t->release, t->tool_version ? t->tool_version : t->release,
                    t->max_ptx ? t->max_ptx : "0.0", t->compiles ? "c" : "", t->assembles ? "a" : "",
                    t->links ? "l" : "", targets);
}

static void add_advisories(cfs_buffer *b, const cfs_toolchain *t, const cfs_tables *tables)
{
  for (size_t i = 0; i < tables->n_advisories; i++) {
    const struct cfs_advisory *a = &tables->advisories[i];
    const cfs_choice *choice = cfs_toolchain_choice(t, a->component);
    cleanup_error cfs_error *why = NULL;
    cfs_requirement *bad = NULL;
    if (!choice || !choice->part->version || cfs_requirement_parse(a->versions, &bad, &why) < 0)
      continue;
    if (cfs_requirement_admits(bad, choice->part->version)) {
      cleanup_free char *targets = a->targets.count ? target_list(&a->targets) : cfs_strdup("*");
      cfs_buffer_format(b, "avoid %s %s %s\n", t->release, targets, a->summary);
    }
    cfs_requirement_free(bad);
  }
}

static bool has_toolchain(const cfs_plan *plan, const char *release)
{
  for (size_t i = 0; i < plan->n_toolchains; i++)
    if (strcmp(plan->toolchains[i].release, release) == 0)
      return true;
  return false;
}

char *cfs_routes_text(const cfs_plan *plan, const cfs_tables *tables, const char *tool, const char *mountpoint)
{
  cfs_buffer b = {0};
  cfs_buffer_format(&b, "tool %s\nid %s\nroot %s\nface %s\n", tool, plan->digest ? plan->digest : "", mountpoint,
                    plan->release);
  for (size_t i = 0; i < plan->n_toolchains; i++)
    add_route(&b, &plan->toolchains[i]);
  for (size_t i = 0; !plan->advisories_lifted && i < plan->n_toolchains; i++)
    add_advisories(&b, &plan->toolchains[i], tables);
  for (size_t i = 0; i < tables->n_releases; i++) {
    const cfs_release_info *r = &tables->releases[i];
    if (has_toolchain(plan, r->release))
      continue;
    cleanup_free char *targets = target_list(&r->targets);
    cfs_buffer_format(&b, "hint %s %s %s\n", r->release, r->max_ptx, targets);
  }
  return b.data;
}

void cfs_routes_image(const void *dispatcher, size_t dispatcher_size, const char *digest, const char *text, void **ret,
                      size_t *ret_size)
{
  cfs_buffer b = {0};
  cfs_buffer_add(&b, dispatcher, dispatcher_size);
  char head[5] = {digest[0], digest[1], digest[2], 0, 0};
  size_t padding = (size_t)strtoul(head, NULL, 16) + 1;
  cleanup_free char *zeros = cfs_zalloc(padding);
  cfs_buffer_add(&b, zeros, padding);
  uint64_t length = strlen(text);
  cfs_buffer_add(&b, text, length);
  unsigned char little_endian[CFS_TRAILER_FOOTER_SIZE - CFS_TRAILER_MAGIC_SIZE];
  for (size_t i = 0; i < sizeof(little_endian); i++)
    little_endian[i] = (unsigned char)(length >> (8 * i));
  cfs_buffer_add(&b, little_endian, sizeof(little_endian));
  cfs_buffer_add(&b, CFS_TRAILER_MAGIC, CFS_TRAILER_MAGIC_SIZE);
  *ret = b.data;
  *ret_size = b.size;
}
