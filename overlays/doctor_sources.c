/* SPDX-License-Identifier: MIT */
/* Which of the places with CUDA is a coherent toolkit by itself, and whether all of them make one. */

#include <string.h>

#include "base/memory.h"
#include "overlays/advice.h"
#include "overlays/doctor_private.h"

static const cfs_problem *first_error(const cfs_plan *plan)
{
  for (size_t i = 0; i < plan->problems.count; i++)
    if (plan->problems.items[i].severity == CFS_PROBLEM)
      return &plan->problems.items[i];
  return NULL;
}

static void add_fix(struct cfs_check *c, const cfs_plan *plan, const cfs_problem *p)
{
  const cfs_strings *fix = plan->n_repairs && plan->repairs[0].fix.count ? &plan->repairs[0].fix : p ? &p->fix : NULL;
  for (size_t i = 0; fix && i < fix->count; i++)
    cfs_strings_add(&c->fix, fix->items[i]);
}

static void report_plan(struct cfs_examination *x, const char *what, const cfs_plan *plan, enum cfs_check_status bad)
{
  const cfs_problem *p = first_error(plan);
  if (plan->coherent) {
    cfs_check_add(x, "coherent", CFS_CHECK_OK, "%s: a coherent CUDA %s", what, plan->release);
    return;
  }
  struct cfs_check *c =
      cfs_check_add(x, p ? p->code : "component-missing", bad, "%s: %s", what, p ? p->message : "no coherent set");
  add_fix(c, plan, p);
}

/* One place may lack what another has, so alone it only gets a warning. */
static void check_place(struct cfs_examination *x, const struct cfs_found *found)
{
  const char *path = found->path;
  cfs_build *build = NULL;
  cfs_error *err = NULL;
  if (cfs_build_paths(&path, 1, &build, &err) < 0) {
    cfs_check_add(x, "source-unreadable", CFS_CHECK_WARNING, "%s: %s", path, err ? err->why : "it cannot be read");
    cfs_error_free(err);
    return;
  }
  report_plan(x, path, build->plan, CFS_CHECK_WARNING);
  cfs_build_free(build);
}

static void check_all(struct cfs_examination *x)
{
  cfs_build *build = NULL;
  cfs_error *err = NULL;
  if (x->n_found < 2)
    return;
  if (cfs_build_scan(&build, &err) == 0)
    report_plan(x, "all of it together", build->plan, CFS_CHECK_ERROR);
  cfs_build_free(build);
  cfs_error_free(err);
}

static void report_wheel_problems(struct cfs_examination *x)
{
  for (size_t i = 0; i < x->n_wheels; i++)
    for (size_t j = 0; j < x->wheels[i]->problems.count; j++) {
      const cfs_problem *p = &x->wheels[i]->problems.items[j];
      struct cfs_check *c = cfs_check_add(x, p->code, p->severity == CFS_NOTE ? CFS_CHECK_NOTE : CFS_CHECK_WARNING,
                                          "%s: %s", x->wheels[i]->path, p->message);
      for (size_t k = 0; k < p->fix.count; k++)
        cfs_strings_add(&c->fix, p->fix.items[k]);
    }
}

/* A whole compiler of the newest release: its packages float apart unless each is pinned. */
static void advise_install(const cfs_tables *tables, cfs_strings *fix)
{
  const char *newest = tables->n_releases ? tables->releases[tables->n_releases - 1].release : NULL;
  cleanup_strings cfs_strings wanted = {0};
  for (size_t i = 0; i < tables->n_components; i++)
    if (tables->components[i].required)
      cfs_strings_add(&wanted, tables->components[i].name);
  if (newest)
    cfs_advice_install(tables, NULL, newest, &wanted, fix);
}

void cfs_examine_sources(struct cfs_examination *x)
{
  const cfs_build *build = x->request->build;
  report_wheel_problems(x);
  if (build) {
    report_plan(x, build->manifest->path ? build->manifest->path : "the composition", build->plan, CFS_CHECK_ERROR);
    return;
  }
  if (x->request->dir)
    return;
  if (!x->n_found) {
    struct cfs_check *c = cfs_check_add(x, "no-cuda", CFS_CHECK_ERROR, "no CUDA was found on this machine");
    advise_install(x->tables, &c->fix);
  }
  for (size_t i = 0; i < x->n_found; i++)
    check_place(x, &x->found[i]);
  check_all(x);
}
