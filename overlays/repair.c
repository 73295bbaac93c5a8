/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/advice.h"
#include "overlays/resolve_private.h"

/* The releases that a repair could aim at: every one of which some required part is there. */
static void repairable_releases(const struct resolving *r, cfs_strings *ret)
{
  for (size_t i = 0; i < r->in.n_sources; i++)
    for (size_t j = 0; j < r->in.sources[i]->n_parts; j++) {
      const cfs_part *part = &r->in.sources[i]->parts[j];
      const cfs_release_info *info = part->release ? cfs_tables_release(r->in.tables, part->release) : NULL;
      /* Only releases whose compiler can be had as wheels: cu12 has none. */
      if (part->info->required && info && cfs_release_pin(info, "libnvvm") &&
          cfs_requirement_admits(r->wanted, part->release) && !cfs_strings_has(ret, part->release))
        cfs_strings_add(ret, part->release);
    }
  for (size_t i = r->in.tables->n_releases; !ret->count && i-- > 0;)
    if (cfs_requirement_admits(r->wanted, r->in.tables->releases[i].release))
      cfs_strings_add(ret, r->in.tables->releases[i].release);
}

static bool installing_mends(const cfs_problem *p)
{
  return strcmp(p->code, "compiler-unit-split") == 0 || strcmp(p->code, "headers-release-mismatch") == 0 ||
         strcmp(p->code, "component-missing") == 0;
}

static void keep_repair(cfs_plan *plan, cfs_repair *repair)
{
  if (!repair->fix.count) {
    free(repair->release);
    return;
  }
  plan->repairs = cfs_grow(plan->repairs, plan->n_repairs + 1, sizeof(*repair));
  plan->repairs[plan->n_repairs++] = *repair;
}

/* A face was found, and something else that was asked for was not. */
static void add_repair_beside_face(cfs_plan *plan)
{
  cfs_repair repair = {.release = cfs_strdup(plan->release)};
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    for (size_t j = 0; p->severity == CFS_PROBLEM && j < p->fix.count; j++)
      cfs_strings_add(&repair.fix, p->fix.items[j]);
    repair.changes += p->severity == CFS_PROBLEM;
  }
  keep_repair(plan, &repair);
}

static void add_repair(struct resolving *r, const char *release)
{
  cfs_candidate c;
  cleanup_strings cfs_strings wanted = {0};
  cfs_repair repair = {.release = cfs_strdup(release)};
  cfs_resolve_compose(r, release, &c);
  for (size_t i = 0; i < c.problems.count; i++) {
    const cfs_problem *p = &c.problems.items[i];
    if (p->severity == CFS_PROBLEM && installing_mends(p) && p->component && !cfs_strings_has(&wanted, p->component))
      cfs_strings_add(&wanted, p->component);
  }
  for (size_t i = 0; i < c.problems.count; i++) {
    const cfs_problem *p = &c.problems.items[i];
    /* What is replaced by another version need not be put in order first. */
    if (p->severity != CFS_PROBLEM || (p->component && cfs_strings_has(&wanted, p->component)))
      continue;
    for (size_t j = 0; j < p->fix.count; j++)
      if (!cfs_strings_has(&repair.fix, p->fix.items[j]))
        cfs_strings_add(&repair.fix, p->fix.items[j]);
  }
  repair.changes = wanted.count + repair.fix.count;
  if (wanted.count)
    cfs_advice_install(r->in.tables, c.anchor, release, &wanted, &repair.fix);
  cfs_candidate_done(&c);
  keep_repair(r->plan, &repair);
}
static int compare_repairs(const void *a, const void *b)
{
  const cfs_repair *p = a, *q = b;
  if (p->changes != q->changes)
    return p->changes < q->changes ? -1 : 1;
  return -cfs_version_compare(p->release, q->release);
}

/* A problem of the whole composition is mended by the smallest repair. */
static void fill_fixes(cfs_plan *plan)
{
  for (size_t i = 0; plan->n_repairs && i < plan->problems.count; i++) {
    cfs_problem *p = &plan->problems.items[i];
    for (size_t j = 0; p->severity == CFS_PROBLEM && !p->release && j < plan->repairs[0].fix.count; j++)
      if (!cfs_strings_has(&p->fix, plan->repairs[0].fix.items[j]))
        cfs_strings_add(&p->fix, plan->repairs[0].fix.items[j]);
  }
}

void cfs_repairs_add(struct resolving *r)
{
  cleanup_strings cfs_strings releases = {0};
  if (r->plan->release) {
    add_repair_beside_face(r->plan);
    fill_fixes(r->plan);
    return;
  }
  repairable_releases(r, &releases);
  for (size_t i = 0; i < releases.count; i++)
    add_repair(r, releases.items[i]);
  if (r->plan->n_repairs > 1)
    qsort(r->plan->repairs, r->plan->n_repairs, sizeof(cfs_repair), compare_repairs);
  fill_fixes(r->plan);
}
