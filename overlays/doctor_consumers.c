/* SPDX-License-Identifier: MIT */
/* For each program that uses CUDA: which one it finds, whether that has what it needs, and whether the
 * program's own rules let it use that. */

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/doctor_private.h"
#include "overlays/host.h"
#include "overlays/layout.h"

struct subject {
  struct cfs_examination *x;
  const cfs_consumer_info *info;
  cfs_cuda_home home;
  bool found;
  char *by; /* "CUDA_HOME", "nvcc on the PATH" */
};

static bool is_tool(const char *path)
{
  return cfs_path_is_file(path);
}

/* What a step of its search says when everything leads to the directory that was named. */
static char *value_in(const char *dir, const char *step)
{
  static const struct {
    const char *step, *below;
  } values[] = {{"CUDA_HOME", ""},
                {"CUDA_PATH", ""},
                {"CUDA_ROOT", ""},
                {"CUDAToolkit_ROOT", ""},
                {"CUDA_TOOLKIT_ROOT", ""},
                {"CUDACXX", "bin/nvcc"},
                {"PATH:nvcc", "bin/nvcc"},
                {"PATH:ptxas", "bin/ptxas"},
                {"TRITON_PTXAS_PATH", "bin/ptxas"},
                {"TRITON_PTXAS_BLACKWELL_PATH", "bin/ptxas"}};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
    if (strcmp(values[i].step, step) == 0)
      return *values[i].below ? cfs_path_join(dir, values[i].below) : cfs_strdup(dir);
  return NULL;
}

/* One that searches nowhere but where a variable leads uses what it brought itself. */
static bool brings_its_own(const struct subject *s)
{
  for (size_t i = 0; i < s->info->env.count; i++)
    if (strchr(s->info->env.items[i], ':') || s->info->env.items[i][0] == '/')
      return false;
  return cfs_strings_has(&s->info->shadowed_by, s->info->name);
}

/* The place that one step of its search gives, or NULL; the caller owns it. */
static char *value_of(const struct cfs_examination *x, const char *step)
{
  if (x->request->dir)
    return value_in(x->request->dir, step);
  if (step[0] == '/')
    return cfs_path_exists(step) ? cfs_strdup(step) : NULL;
  if (cfs_has_prefix(step, "PATH:"))
    return cfs_path_search(getenv("PATH"), step + strlen("PATH:"));
  const char *value = getenv(step);
  return value && *value ? cfs_strdup(value) : NULL;
}

static void search(struct subject *s)
{
  for (size_t i = 0; !s->found && i < s->info->env.count; i++) {
    const char *step = s->info->env.items[i];
    cleanup_free char *value = value_of(s->x, step);
    if (!value)
      continue;
    if (is_tool(value))
      cfs_cuda_home_of_tool(value, &s->home);
    else
      cfs_cuda_home_read(value, &s->home);
    s->found = true;
    s->by = cfs_has_prefix(step, "PATH:") ? cfs_format("%s on the PATH", step + strlen("PATH:")) : cfs_strdup(step);
  }
}

static const char *release_of(const struct subject *s)
{
  const cfs_build *build = s->x->request->build;
  return build ? build->plan->release : s->home.release;
}

/* The tree's own place for a face path. */
static bool plan_has(const cfs_plan *plan, const char *face)
{
  cleanup_free char *target = cfs_format("targets/%s/%s", cfs_layout_platform(), face);
  return cfs_plan_entry(plan, face) || cfs_plan_entry(plan, target);
}

static void missing_of(const struct subject *s, cfs_strings *ret)
{
  const cfs_build *build = s->x->request->build;
  for (size_t i = 0; i < s->info->needs.count; i++) {
    const char *need = s->info->needs.items[i];
    if (build ? !plan_has(build->plan, need) : !cfs_cuda_home_has(s->home.path, need))
      cfs_strings_add(ret, need);
  }
}

static const cfs_strings *targets_of(const struct subject *s)
{
  return s->x->request->build ? &s->x->request->build->plan->targets : NULL;
}

/* Is the rule about what was asked for? Without targets, every rule is worth a word and none a verdict. */
static bool is_asked(const struct subject *s, const struct cfs_consumer_rule *rule)
{
  const cfs_strings *targets = targets_of(s);
  if (strcmp(rule->target, "*") == 0)
    return true;
  for (size_t i = 0; targets && i < targets->count; i++)
    if (fnmatch(rule->target, targets->items[i], 0) == 0)
      return true;
  return false;
}

static bool is_broken(const struct cfs_consumer_rule *rule, const char *release)
{
  return (rule->min_release && cfs_version_compare(release, rule->min_release) < 0) ||
         (rule->max_release && cfs_version_compare(release, rule->max_release) >= 0);
}

static char *rule_text(const struct cfs_consumer_rule *rule)
{
  bool least = rule->min_release;
  return cfs_format("for %s it wants CUDA %s%s: %s", strcmp(rule->target, "*") == 0 ? "any target" : rule->target,
                    least ? "" : "older than ", least ? rule->min_release : rule->max_release,
                    rule->reason ? rule->reason : "its own policy");
}

static enum cfs_verdict judge_rules(const struct subject *s, char **ret_reason)
{
  const char *release = release_of(s);
  const cfs_strings *targets = targets_of(s);
  enum cfs_verdict verdict = CFS_VERDICT_OK;
  for (size_t i = 0; release && i < s->info->n_rules; i++) {
    const struct cfs_consumer_rule *rule = &s->info->rules[i];
    bool asked = is_asked(s, rule);
    if (!is_broken(rule, release) || (!asked && targets && targets->count))
      continue;
    if (verdict == CFS_VERDICT_OK || asked) {
      free(*ret_reason);
      *ret_reason = rule_text(rule);
      verdict = asked ? CFS_VERDICT_UNMET : CFS_VERDICT_LIMITED;
    }
    if (asked)
      break;
  }
  return verdict;
}

/* A wheel that goes before the CUDA_HOME does no harm while it is of the same release. */
static char *shadow_of(const struct subject *s)
{
  const char *release = release_of(s);
  for (size_t i = 0; i < s->x->n_wheels; i++)
    for (size_t j = 0; j < s->x->wheels[i]->n_parts; j++) {
      const cfs_part *part = &s->x->wheels[i]->parts[j];
      cleanup_free char *name = part->package ? cfs_wheel_name_normalise(part->package) : NULL;
      if (!name || !cfs_strings_has(&s->info->shadowed_by, name))
        continue;
      if (release && part->release && strcmp(release, part->release) != 0)
        return cfs_format("%s %s (CUDA %s) in %s goes before it", part->package,
                          part->package_version ? part->package_version : "", part->release, s->x->wheels[i]->path);
    }
  return NULL;
}

static bool is_empty(const cfs_cuda_home *h)
{
  return !h->version && !h->compiles && !h->headers;
}

static void judge(const struct subject *s, struct cfs_consumer_report *r)
{
  const cfs_build *build = s->x->request->build;
  cleanup_strings cfs_strings missing = {0};
  if (!build && !s->found && brings_its_own(s)) {
    r->verdict = CFS_VERDICT_OK;
    r->reason = cfs_format("%s is not set: it uses the tools that it brings", s->info->env.items[0]);
    return;
  }
  if (build ? !build->plan->coherent : !s->found || !s->home.exists || is_empty(&s->home)) {
    r->verdict = CFS_VERDICT_NONE;
    r->reason = build                ? cfs_strdup("the composition is refused")
                : s->found           ? cfs_format("%s leads to no CUDA", s->by)
                : s->x->request->dir ? cfs_strdup("none of the variables that lead to it counts here")
                                     : cfs_strdup("it finds no CUDA");
    return;
  }
  missing_of(s, &missing);
  r->verdict = judge_rules(s, &r->reason);
  if (r->verdict == CFS_VERDICT_UNMET)
    return;
  cleanup_free char *shadow = shadow_of(s), *names = cfs_strings_join(&missing, ", ");
  if (missing.count || shadow) {
    free(r->reason);
    r->verdict = missing.count ? CFS_VERDICT_INCOMPLETE : CFS_VERDICT_SHADOWED;
    r->reason = missing.count ? cfs_format("it needs %s", names) : TAKE_PTR(shadow);
  }
  if (!r->reason)
    r->reason = s->by ? cfs_format("found by %s", s->by) : cfs_strdup("everything that it needs is there");
}

static void report(struct cfs_examination *x, const cfs_consumer_info *info)
{
  struct subject s = {.x = x, .info = info};
  struct cfs_consumer_report r = {.name = cfs_strdup(info->name)};
  const cfs_build *build = x->request->build;
  if (!build)
    search(&s);
  judge(&s, &r);
  r.cuda_home = s.found ? cfs_strdup(s.home.path) : NULL;
  if (build && build->plan->release)
    r.version = cfs_strdup(build->plan->toolchains[0].tool_version ? build->plan->toolchains[0].tool_version
                                                                   : build->plan->release);
  else if (s.home.version)
    r.version = cfs_strdup(s.home.version);
  cfs_diagnosis *d = x->diagnosis;
  d->consumers = cfs_grow(d->consumers, d->n_consumers + 1, sizeof(*d->consumers));
  d->consumers[d->n_consumers++] = r;
  cfs_cuda_home_done(&s.home);
  free(s.by);
}

static int fail_unknown(const cfs_tables *tables, const char *name, cfs_error **err)
{
  cleanup_buffer cfs_buffer known = {0};
  for (size_t i = 0; i < tables->n_consumers; i++)
    cfs_buffer_format(&known, "%s%s", i ? ", " : "known are ", tables->consumers[i].name);
  return cfs_error_set(err, CFS_INVALID, ENOENT, name, known.data, "no such consumer is known");
}

int cfs_examine_consumers(struct cfs_examination *x, cfs_error **err)
{
  const cfs_strings *asked = x->request->consumers;
  for (size_t i = 0; asked && i < asked->count; i++) {
    const cfs_consumer_info *info = cfs_tables_consumer(x->tables, asked->items[i]);
    if (!info)
      return fail_unknown(x->tables, asked->items[i], err);
    report(x, info);
  }
  for (size_t i = 0; (!asked || !asked->count) && i < x->tables->n_consumers; i++)
    report(x, &x->tables->consumers[i]);
  return 0;
}
