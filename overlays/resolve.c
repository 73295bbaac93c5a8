/* SPDX-License-Identifier: MIT */
#include "overlays/resolve_private.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/advice.h"
#include "overlays/header.h"
#include "overlays/host.h"
#include "overlays/probe.h"

static int load_needs(struct cfs_composing *in, cfs_error **err)
{
  cleanup_free char *file = cfs_path_join(in->tables->dir, "layouts.json");
  json_error_t why;
  json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &why);
  if (!root)
    return cfs_error_set(err, CFS_FAILED, 0, file, "reinstall cudafs", "%s (line %d)", why.text, why.line);
  const json_t *needs = json_object_get(root, "compiler-needs");
  in->needs = cfs_zalloc(json_array_size(needs) * sizeof(*in->needs));
  for (size_t i = 0; i < json_array_size(needs); i++) {
    const char *face = json_string_value(json_array_get(needs, i));
    if (face)
      in->needs[in->n_needs++] = (struct cfs_need){cfs_strdup(face), cfs_tables_component_of_path(in->tables, face)};
  }
  json_decref(root);
  return in->n_needs ? 0 : cfs_error_set(err, CFS_FAILED, 0, file, "reinstall cudafs", "it names no compiler-needs");
}

static void free_needs(struct cfs_composing *in)
{
  for (size_t i = 0; i < in->n_needs; i++)
    free(in->needs[i].face);
  free(in->needs);
}

static void collect_universe(const cfs_tables *tables, cfs_strings *ret)
{
  for (size_t i = 0; i < tables->n_releases; i++)
    for (size_t j = 0; j < tables->releases[i].targets.count; j++)
      if (!cfs_strings_has(ret, tables->releases[i].targets.items[j]))
        cfs_strings_add(ret, tables->releases[i].targets.items[j]);
}

/* "torch" means the release that the sources' torch was built with. */
static int find_wanted(struct resolving *r, cfs_error **err)
{
  const cfs_manifest *m = r->in.manifest;
  const char *text = m->release;
  const char *where = m->path ? m->path : "the request";
  if (strcmp(text, "torch") == 0) {
    text = NULL;
    for (size_t i = 0; !text && i < r->in.n_sources; i++)
      text = r->in.sources[i]->torch_release;
    if (!text)
      return cfs_error_set(err, CFS_REFUSED, ENOENT, where,
                           "install torch in one of the sources, or name a release in \"release\"",
                           "release \"torch\" is asked for, but no source holds a torch built with CUDA");
  }
  r->wanted_text = cfs_strdup(text);
  return cfs_requirement_parse(text, &r->wanted, err);
}

/* What the tool itself says goes before the table; the table serves where the tool cannot run here. */
static void measure(const struct resolving *r, cfs_toolchain *t)
{
  const cfs_file *ptxas = cfs_toolchain_file(t, "bin/ptxas", NULL);
  const cfs_release_info *info = cfs_tables_release(r->in.tables, t->release);
  struct cfs_probe *probe = NULL;
  if (!ptxas || t->max_ptx)
    return;
  if (cfs_probe_ptxas(ptxas->path, &r->universe, NULL, &probe, NULL) == 0) {
    t->max_ptx = cfs_strdup(probe->max_ptx);
    for (size_t i = 0; i < probe->targets.count; i++)
      cfs_strings_add(&t->targets, probe->targets.items[i]);
    cfs_probe_free(probe);
  } else if (info) {
    t->max_ptx = cfs_strdup(info->max_ptx);
    for (size_t i = 0; i < info->targets.count; i++)
      cfs_strings_add(&t->targets, info->targets.items[i]);
  }
}

static cfs_problem *against(cfs_candidate *c, cfs_problem *p)
{
  if (!p->release)
    p->release = cfs_strdup(c->toolchain.release);
  return p;
}

static const char *release_for_target(const cfs_tables *tables, const char *target)
{
  for (size_t i = 0; i < tables->n_releases; i++)
    if (cfs_strings_has(&tables->releases[i].targets, target))
      return tables->releases[i].release;
  return NULL;
}

static void check_targets(const struct resolving *r, cfs_candidate *c)
{
  const cfs_manifest *m = r->in.manifest;
  for (size_t i = 0; i < m->targets.count; i++) {
    const char *target = m->targets.items[i];
    if (cfs_strings_has(&c->toolchain.targets, target))
      continue;
    const char *first = release_for_target(r->in.tables, target);
    cfs_problem *p = cfs_problems_add(
        &c->problems, "target-unsupported", cfs_policy_severity(m, "target-unsupported"), "cuda_nvcc",
        "CUDA %s does not compile for %s; %s%s", c->toolchain.release, target,
        first ? "the first release that does is " : "no release in the tables does", first ? first : "");
    if (first)
      cfs_strings_take(&p->fix, cfs_format("# add a source that holds CUDA %s or newer", first));
    against(c, p);
  }
}

static bool rule_applies(const cfs_manifest *m, const struct cfs_consumer_rule *rule)
{
  if (strcmp(rule->target, "*") == 0)
    return true;
  for (size_t i = 0; i < m->targets.count; i++)
    if (fnmatch(rule->target, m->targets.items[i], 0) == 0)
      return true;
  return false;
}

static void check_rule(const struct resolving *r, cfs_candidate *c, const cfs_consumer_info *consumer,
                       const struct cfs_consumer_rule *rule)
{
  const char *release = c->toolchain.release;
  bool too_old = rule->min_release && cfs_version_compare(release, rule->min_release) < 0;
  bool too_new = rule->max_release && cfs_version_compare(release, rule->max_release) >= 0;
  if (!rule_applies(r->in.manifest, rule) || (!too_old && !too_new))
    return;
  cfs_problem *p = cfs_problems_add(
      &c->problems, "policy-unmet", cfs_policy_severity(r->in.manifest, "policy-unmet"), NULL,
      "%s wants CUDA %s %s for %s: %s", consumer->title, too_old ? "at least" : "older than",
      too_old ? rule->min_release : rule->max_release, rule->target, rule->reason ? rule->reason : "its own policy");
  cfs_strings_take(&p->fix,
                   cfs_format("# add a source that holds CUDA %s%s", too_old ? rule->min_release : "older than ",
                              too_old ? " or newer" : rule->max_release));
  against(c, p);
}

static void check_consumers(const struct resolving *r, cfs_candidate *c)
{
  const cfs_manifest *m = r->in.manifest;
  for (size_t i = 0; i < m->consumers.count; i++) {
    const cfs_consumer_info *consumer = cfs_tables_consumer(r->in.tables, m->consumers.items[i]);
    for (size_t j = 0; consumer && j < consumer->n_rules; j++)
      check_rule(r, c, consumer, &consumer->rules[j]);
  }
}

static bool concerns_targets(const struct cfs_advisory *a, const cfs_manifest *m)
{
  for (size_t i = 0; i < a->targets.count; i++)
    if (cfs_strings_has(&m->targets, a->targets.items[i]))
      return true;
  return !a->targets.count || !m->targets.count;
}

static void check_advisory(const struct resolving *r, cfs_candidate *c, const struct cfs_advisory *a)
{
  enum cfs_policy_mode mode = r->in.manifest->advisories;
  const cfs_choice *choice = cfs_toolchain_choice(&c->toolchain, a->component);
  cfs_requirement *bad = NULL;
  cleanup_error cfs_error *why = NULL;
  if (mode == CFS_POLICY_IGNORE || !choice || !choice->part->version || !concerns_targets(a, r->in.manifest) ||
      cfs_requirement_parse(a->versions, &bad, &why) < 0)
    return;
  if (cfs_requirement_admits(bad, choice->part->version)) {
    enum cfs_severity severity =
        mode == CFS_POLICY_WARN ? CFS_WARNING : cfs_policy_severity(r->in.manifest, "known-bad-build");
    against(c, cfs_problems_add(&c->problems, "known-bad-build", severity, a->component, "%s %s: %s (%s)", a->component,
                                choice->part->version, a->summary, a->reference));
  }
  cfs_requirement_free(bad);
}

/* What nvcc would call by default, against what the composed crt/host_config.h takes. */
static void check_host(const struct resolving *r, cfs_candidate *c)
{
  enum cfs_policy_mode mode = r->in.manifest->host_compiler;
  const cfs_file *header = cfs_toolchain_file(&c->toolchain, "include/crt/host_config.h", NULL);
  struct cfs_host_limits limits = {0};
  struct cfs_host_compiler host = {0};
  if (mode == CFS_POLICY_IGNORE || !header || cfs_header_host_limits(header->path, &limits, NULL) < 0 ||
      cfs_host_compiler_find(getenv("NVCC_CCBIN"), &host, NULL) < 0)
    return;
  bool too_new = host.clang ? limits.clang_limit && host.major >= limits.clang_limit
                            : limits.gcc_max && host.major > limits.gcc_max;
  if (too_new) {
    cfs_problem *p = cfs_problems_add(
        &c->problems, "host-compiler-unsupported",
        mode == CFS_POLICY_WARN ? CFS_WARNING : cfs_policy_severity(r->in.manifest, "host-compiler-unsupported"), NULL,
        "%s is %s %s; CUDA %s takes %s before %d", host.path, host.clang ? "clang" : "gcc", host.version,
        c->toolchain.release, host.clang ? "clang" : "gcc", host.clang ? limits.clang_limit : limits.gcc_max + 1);
    if (!host.clang)
      cfs_strings_take(
          &p->fix, cfs_format("apt-get install g++-%d && export NVCC_CCBIN=g++-%d", limits.gcc_max, limits.gcc_max));
    against(c, p);
  }
  cfs_host_compiler_done(&host);
}

void cfs_resolve_compose(const struct resolving *r, const char *release, cfs_candidate *c)
{
  cfs_compose(&r->in, release, true, c);
  measure(r, &c->toolchain);
  check_targets(r, c);
  check_consumers(r, c);
  check_host(r, c);
  for (size_t i = 0; i < r->in.tables->n_advisories; i++)
    check_advisory(r, c, &r->in.tables->advisories[i]);
}

static void add_toolchain(cfs_plan *plan, cfs_toolchain *t)
{
  plan->toolchains = cfs_grow(plan->toolchains, plan->n_toolchains + 1, sizeof(*plan->toolchains));
  plan->toolchains[plan->n_toolchains++] = *t;
  *t = (cfs_toolchain){0};
}

static void copy_problems(cfs_plan *plan, const cfs_problems *from)
{
  for (size_t i = 0; i < from->count; i++)
    cfs_problems_copy(&plan->problems, &from->items[i]);
}

/* A further toolchain: as a compiler where its set is coherent, else as an assembler where it has a ptxas. */
static void add_further(struct resolving *r, const char *release)
{
  cfs_candidate c;
  cfs_compose(&r->in, release, true, &c);
  if (cfs_problems_errors(&c.problems) || !c.toolchain.compiles) {
    cfs_candidate assembler;
    cfs_compose(&r->in, release, false, &assembler);
    if (assembler.toolchain.assembles)
      cfs_problems_add(&r->plan->problems, "toolchain-incomplete", CFS_NOTE, NULL,
                       "CUDA %s is not complete here; it serves as an assembler only", release);
    cfs_candidate_done(&c);
    c = assembler;
  }
  if (c.toolchain.assembles) {
    measure(r, &c.toolchain);
    add_toolchain(r->plan, &c.toolchain);
  }
  cfs_candidate_done(&c);
}

static void add_further_toolchains(struct resolving *r)
{
  const cfs_manifest *m = r->in.manifest;
  cleanup_strings cfs_strings releases = {0};
  cfs_compose_releases(&r->in, true, &releases);
  for (size_t i = 0; i < releases.count; i++) {
    if (strcmp(releases.items[i], r->plan->release) == 0)
      continue;
    if (!m->toolchains_given || cfs_strings_has(&m->toolchains, releases.items[i]))
      add_further(r, releases.items[i]);
  }
  for (size_t i = 0; i < m->toolchains.count; i++) {
    const char *asked = m->toolchains.items[i];
    bool there = strcmp(asked, r->plan->release) == 0;
    for (size_t j = 0; j < r->plan->n_toolchains; j++)
      there = there || strcmp(r->plan->toolchains[j].release, asked) == 0;
    if (there)
      continue;
    cfs_problem *p =
        cfs_problems_add(&r->plan->problems, "toolchain-incomplete", cfs_policy_severity(m, "toolchain-incomplete"),
                         NULL, "toolchain %s is asked for, but no source has a ptxas of it", asked);
    cleanup_strings cfs_strings wanted = {0};
    cfs_strings_add(&wanted, "cuda_nvcc");
    cfs_advice_install(r->in.tables, NULL, asked, &wanted, &p->fix);
  }
}

static void accept(struct resolving *r, cfs_candidate *c)
{
  cfs_plan *plan = r->plan;
  plan->release = cfs_strdup(c->toolchain.release);
  c->toolchain.primary = true;
  copy_problems(plan, &c->problems);
  add_toolchain(plan, &c->toolchain);
  add_further_toolchains(r);
  plan->coherent = cfs_problems_errors(&plan->problems) == 0;
}

/* Nothing there compiles: say what there is instead. */
static void report_no_compiler(struct resolving *r, const cfs_strings *with_nvcc)
{
  cleanup_strings cfs_strings tools = {0};
  cfs_compose_releases(&r->in, true, &tools);
  const cfs_manifest *m = r->in.manifest;
  if (with_nvcc->count) {
    cleanup_free char *have = cfs_strings_join(with_nvcc, ", ");
    cfs_problems_add(&r->plan->problems, "policy-unmet", CFS_PROBLEM, NULL,
                     "release \"%s\" is asked for, but the sources hold nvcc of %s only", m->release, have);
  } else if (tools.count) {
    cleanup_free char *have = cfs_strings_join(&tools, ", ");
    cfs_problems_add(&r->plan->problems, "wheel-has-no-compiler", cfs_policy_severity(m, "wheel-has-no-compiler"),
                     "cuda_nvcc", "no source has an nvcc; there is a ptxas of %s, which assembles and does not compile",
                     have);
  } else {
    cfs_problems_add(&r->plan->problems, "component-missing", CFS_PROBLEM, "cuda_nvcc",
                     "no source has an nvcc or a ptxas");
  }
}

/* With the policy's leave, a face that only assembles. */
static bool accept_assembler(struct resolving *r)
{
  cleanup_strings cfs_strings tools = {0};
  if (cfs_policy_severity(r->in.manifest, "wheel-has-no-compiler") == CFS_PROBLEM)
    return false;
  cfs_compose_releases(&r->in, true, &tools);
  for (size_t i = tools.count; i-- > 0;) {
    cfs_candidate c;
    if (!cfs_requirement_admits(r->wanted, tools.items[i]))
      continue;
    cfs_compose(&r->in, tools.items[i], false, &c);
    bool good = c.toolchain.assembles && !cfs_problems_errors(&c.problems);
    if (good) {
      measure(r, &c.toolchain);
      accept(r, &c);
    }
    cfs_candidate_done(&c);
    if (good)
      return true;
  }
  return false;
}

/* What the inventories found that no candidate took up. Errors of parts that are not used are no
 * reason to refuse. */
static void take_leftover_problems(struct resolving *r)
{
  cfs_plan *plan = r->plan;
  for (size_t i = 0; i < r->in.n_sources; i++)
    for (size_t j = 0; j < r->in.sources[i]->problems.count; j++) {
      const cfs_problem *p = &r->in.sources[i]->problems.items[j];
      bool taken = false;
      for (size_t k = 0; k < plan->problems.count; k++)
        taken = taken || strcmp(plan->problems.items[k].message, p->message) == 0;
      if (taken)
        continue;
      cfs_problems_copy(&plan->problems, p);
      cfs_problem *q = &plan->problems.items[plan->problems.count - 1];
      if (q->severity == CFS_PROBLEM)
        q->severity = CFS_WARNING;
    }
}

static void resolve(struct resolving *r)
{
  cleanup_strings cfs_strings releases = {0};
  cfs_compose_releases(&r->in, false, &releases);
  bool tried = false;
  for (size_t i = releases.count; i-- > 0 && !r->plan->release;) {
    if (!cfs_requirement_admits(r->wanted, releases.items[i]))
      continue;
    cfs_candidate c;
    cfs_resolve_compose(r, releases.items[i], &c);
    tried = true;
    if (cfs_problems_errors(&c.problems) == 0) {
      cfs_problems_done(&r->plan->problems); /* what was wrong with newer ones is not this plan's trouble */
      accept(r, &c);
    } else {
      copy_problems(r->plan, &c.problems);
    }
    cfs_candidate_done(&c);
  }
  if (!r->plan->release && !tried) {
    report_no_compiler(r, &releases);
    if (!releases.count)
      accept_assembler(r);
  }
  take_leftover_problems(r);
  if (!r->plan->coherent)
    cfs_repairs_add(r);
}

int cfs_resolve(const cfs_manifest *manifest, const cfs_tables *tables, cfs_inventory **sources, size_t n_sources,
                cfs_plan **ret, cfs_error **err)
{
  cfs_plan *plan = cfs_zalloc(sizeof(*plan));
  plan->sources = sources;
  plan->n_sources = n_sources;
  plan->name = manifest->name ? cfs_strdup(manifest->name) : NULL;
  for (size_t i = 0; i < manifest->targets.count; i++)
    cfs_strings_add(&plan->targets, manifest->targets.items[i]);
  for (size_t i = 0; i < manifest->consumers.count; i++)
    cfs_strings_add(&plan->consumers, manifest->consumers.items[i]);
  plan->advisories_lifted =
      manifest->advisories != CFS_POLICY_CHECK || cfs_strings_has(&manifest->allow, "known-bad-build");
  struct resolving r = {.in = {.manifest = manifest, .tables = tables, .sources = sources, .n_sources = n_sources},
                        .plan = plan};
  collect_universe(tables, &r.universe);
  int result = load_needs(&r.in, err);
  if (result == 0)
    result = find_wanted(&r, err);
  if (result == 0)
    resolve(&r);
  cfs_requirement_free(r.wanted);
  free(r.wanted_text);
  cfs_strings_done(&r.universe);
  free_needs(&r.in);
  if (result < 0) {
    cfs_plan_free(plan);
    return result;
  }
  *ret = plan;
  return 0;
}
