/* SPDX-License-Identifier: MIT */
#include "overlays/compose.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "manifests/version.h"
#include "overlays/advice.h"

/* How well a part fits the release, best first. */
enum fit {
  FIT_EXACT, /* of the release, or the very version that it pins */
  FIT_NEAR,  /* same major, measured or documented to work */
  FIT_OLDER, /* same major, older than the release pins */
  FIT_WRONG, /* taken only to show what is in the way, or when the policy allows it */
  FIT_NEVER, /* not to be considered */
};

struct pick {
  const cfs_inventory *source;
  const cfs_part *part;
  enum fit fit;
  bool lacking; /* without a file that compiling needs: a half-installed package */
  bool anchored;
  long patch_distance;
};

enum cfs_severity cfs_policy_severity(const cfs_manifest *m, const char *code)
{
  return cfs_strings_has(&m->allow, code) ? CFS_WARNING : CFS_PROBLEM;
}

void cfs_candidate_done(cfs_candidate *c)
{
  cfs_toolchain_done(&c->toolchain);
  cfs_problems_done(&c->problems);
  *c = (cfs_candidate){0};
}

static bool is_compiler(const cfs_component_info *info)
{
  return strcmp(info->name, "cuda_nvcc") == 0;
}

static int compare_releases(const void *a, const void *b)
{
  return cfs_version_compare(*(char *const *)a, *(char *const *)b);
}

void cfs_compose_releases(const struct cfs_composing *in, bool any_tool, cfs_strings *ret)
{
  for (size_t i = 0; i < in->n_sources; i++)
    for (size_t j = 0; j < in->sources[i]->n_parts; j++) {
      const cfs_part *part = &in->sources[i]->parts[j];
      bool nvcc = cfs_part_file(part, "bin/nvcc") != NULL, ptxas = cfs_part_file(part, "bin/ptxas") != NULL;
      if (part->release && (nvcc || (any_tool && ptxas)) && !cfs_strings_has(ret, part->release))
        cfs_strings_add(ret, part->release);
    }
  if (ret->count > 1)
    qsort(ret->items, ret->count, sizeof(char *), compare_releases);
}

/* The CUDA major that a package names in its suffix ("-cu12"), or -1. */
static int suffix_major(const cfs_part *part)
{
  const char *suffix = part->package ? strstr(part->package, "-cu1") : NULL;
  return suffix ? cfs_leading_number(suffix + 3) : -1;
}

static int cuda_major(const cfs_part *part)
{
  if (part->release)
    return cfs_version_major(part->release);
  return suffix_major(part);
}

static enum fit fit_by_release(const cfs_part *part, const char *release)
{
  return part->release && strcmp(part->release, release) == 0 ? FIT_EXACT : FIT_WRONG;
}

/* Libraries and tools outside the unit: by NVIDIA's pins for the release. A newer NVRTC or reader emits
 * or reports what the rest of the release does not know, so newer counts only where the pin is a range. */
static enum fit fit_by_pin(const struct cfs_composing *in, const cfs_part *part, const char *release)
{
  int major = cuda_major(part);
  if (major >= 0 && major != cfs_version_major(release))
    return FIT_NEVER;
  if (part->release && strcmp(part->release, release) == 0)
    return FIT_EXACT;
  const cfs_release_info *info = cfs_tables_release(in->tables, release);
  const struct cfs_pin *pin = info ? cfs_release_pin(info, part->info->name) : NULL;
  if (!pin || !part->version)
    return major >= 0 || !pin ? FIT_NEAR : FIT_NEVER;
  if (cfs_version_major(pin->version) != cfs_version_major(part->version))
    return FIT_NEVER;
  int c = cfs_version_compare(part->version, pin->version);
  if (c == 0 || (c > 0 && !pin->exact))
    return FIT_EXACT;
  if (strcmp(part->info->name, "cccl") == 0)
    return FIT_NEAR;
  bool carries_release = part->content && part->release && pin->exact && part->info->n_identify &&
                         part->info->identify[0].kind == CFS_IDENTIFY_TOOL;
  if (c > 0)
    return carries_release ? FIT_NEVER : FIT_NEAR;
  return FIT_OLDER;
}

static enum fit fit_of(const struct cfs_composing *in, const cfs_part *part, const char *release, bool compiler)
{
  if (is_compiler(part->info) && compiler && !cfs_part_file(part, "bin/nvcc"))
    return FIT_NEVER;
  if (part->info->unit || part->info->runtime)
    return fit_by_release(part, release);
  return fit_by_pin(in, part, release);
}

/* Nothing that a compiler needs is an empty file: a copy that broke off, or a full disk, leaves those. */
static bool has_bytes(const cfs_file *file)
{
  return file && file->id.size > 0;
}

static bool is_lacking(const struct cfs_composing *in, const cfs_part *part)
{
  for (size_t i = 0; i < in->n_needs; i++)
    if (in->needs[i].owner == part->info && !has_bytes(cfs_part_file(part, in->needs[i].face)))
      return true;
  return false;
}

/* Distance of the third version element: within one release the nearest patch level is wanted. */
static long patch_of(const char *version)
{
  const char *dot = version ? strchr(version, '.') : NULL;
  dot = dot ? strchr(dot + 1, '.') : NULL;
  return dot ? strtol(dot + 1, NULL, 10) : 0;
}

static int compare_picks(const struct pick *a, const struct pick *b)
{
  if (a->fit != b->fit)
    return (int)a->fit - (int)b->fit;
  if (a->lacking != b->lacking)
    return a->lacking ? 1 : -1;
  if (a->anchored != b->anchored)
    return a->anchored ? -1 : 1;
  if (a->patch_distance != b->patch_distance)
    return a->patch_distance < b->patch_distance ? -1 : 1;
  /* Libraries have no place in the unit to be near to: of those that fit alike the newest is wanted. What
   * is still equal keeps the order of the sources. */
  bool versions = !a->part->info->unit && !a->part->info->runtime && a->part->version && b->part->version;
  return versions ? cfs_version_compare(b->part->version, a->part->version) : 0;
}

static struct pick pick_part(const struct cfs_composing *in, const cfs_component_info *info, const char *release,
                             const cfs_inventory *anchor, const char *anchor_version, bool compiler)
{
  const struct cfs_manifest_component *rule = cfs_manifest_component(in->manifest, info->name);
  struct pick best = {.fit = FIT_NEVER};
  for (size_t i = 0; i < in->n_sources; i++) {
    const cfs_inventory *source = in->sources[i];
    if (rule && rule->from && strcmp(rule->from, source->id) != 0)
      continue;
    for (size_t j = 0; j < source->n_parts; j++) {
      const cfs_part *part = &source->parts[j];
      if (part->info != info)
        continue;
      struct pick p = {.source = source,
                       .part = part,
                       .fit = fit_of(in, part, release, compiler),
                       .lacking = compiler && is_lacking(in, part),
                       .anchored = source == anchor,
                       .patch_distance =
                           info->unit || info->runtime ? labs(patch_of(part->version) - patch_of(anchor_version)) : 0};
      if (p.fit != FIT_NEVER && (!best.part || compare_picks(&p, &best) < 0))
        best = p;
    }
  }
  return best;
}

/* How many required parts of the release a source has; ret_tool receives its compiler, or NULL. */
static int anchor_score(const struct cfs_composing *in, const cfs_inventory *source, const char *release, bool compiler,
                        const cfs_part **ret_tool)
{
  int score = 0;
  *ret_tool = NULL;
  for (size_t i = 0; i < source->n_parts; i++) {
    const cfs_part *part = &source->parts[i];
    if (!part->info->required || !part->release || strcmp(part->release, release) != 0)
      continue;
    score += !compiler || !is_lacking(in, part);
    if (is_compiler(part->info) && (!compiler || cfs_part_file(part, "bin/nvcc")))
      *ret_tool = part;
  }
  return score;
}

/* The source to build on: the one with an nvcc of the release and the most other required parts of it;
 * where none has an nvcc, the one that lacks least. */
static const cfs_inventory *find_anchor(const struct cfs_composing *in, const char *release, bool compiler,
                                        const char **ret_version)
{
  const cfs_inventory *best = NULL;
  bool best_has_tool = false;
  int best_score = 0;
  for (size_t i = 0; i < in->n_sources; i++) {
    const cfs_part *tool = NULL;
    int score = anchor_score(in, in->sources[i], release, compiler, &tool);
    if (!score || (best_has_tool && !tool))
      continue;
    if (score <= best_score && best_has_tool == (tool != NULL))
      continue;
    best = in->sources[i];
    best_score = score;
    best_has_tool = tool != NULL;
    *ret_version = tool ? tool->version : NULL;
  }
  return best;
}

static char *reason_of(const struct pick *p, const char *release, const cfs_inventory *anchor)
{
  switch (p->fit) {
  case FIT_EXACT:
    if (!p->part->release || strcmp(p->part->release, release) != 0)
      return cfs_format("within what release %s asks for", release);
    if (p->anchored || !anchor)
      return cfs_format("of release %s, like the compiler beside it", release);
    return cfs_format("of release %s; \"%s\", which gives the compiler, has none", release, anchor->id);
  case FIT_NEAR:
    return cfs_format("not the version that %s pins, but of the same major, which works", release);
  case FIT_OLDER:
    return cfs_format("older than what %s pins, the nearest there is", release);
  default:
    return cfs_format("not of release %s: taken because nothing else is there", release);
  }
}

static void add_choice(cfs_candidate *c, const struct pick *p)
{
  cfs_toolchain *t = &c->toolchain;
  t->choices = cfs_grow(t->choices, t->n_choices + 1, sizeof(*t->choices));
  t->choices[t->n_choices++] = (cfs_choice){p->source, p->part, reason_of(p, t->release, c->anchor)};
}

/* Is the component expected on its own in that release, and needed there? */
static bool is_required(const cfs_component_info *info, const char *release)
{
  return info->required && !(info->since && cfs_version_compare(release, info->since) < 0) &&
         !(info->until && cfs_version_compare(release, info->until) > 0);
}

static void finish_problem(cfs_candidate *c, cfs_problem *p)
{
  if (!p->release)
    p->release = cfs_strdup(c->toolchain.release);
}

static void report_wrong(const struct cfs_composing *in, cfs_candidate *c, const struct pick *p)
{
  const cfs_component_info *info = p->part->info;
  const char *code = info->unit ? "compiler-unit-split" : "headers-release-mismatch";
  const char *title = info->unit ? "one release, as NVIDIA builds and tests it" : "the release of the compiler";
  cfs_problem *q = cfs_problems_add(&c->problems, code, cfs_policy_severity(in->manifest, code), info->name,
                                    "nvcc is %s but %s in \"%s\" is %s (CUDA %s); it must be %s", c->toolchain.release,
                                    info->name, p->source->id, p->part->version ? p->part->version : "unknown",
                                    p->part->release ? p->part->release : "unknown", title);
  q->source = cfs_strdup(p->source->id);
  cfs_strings wanted = {0};
  cfs_strings_add(&wanted, info->name);
  cfs_advice_install(in->tables, c->anchor ? c->anchor : p->source, c->toolchain.release, &wanted, &q->fix);
  cfs_strings_done(&wanted);
  finish_problem(c, q);
}

static void report_missing(const struct cfs_composing *in, cfs_candidate *c, const cfs_component_info *info)
{
  cfs_problem *q = cfs_problems_add(
      &c->problems, "component-missing", cfs_policy_severity(in->manifest, "component-missing"), info->name,
      "no source has %s (%s) of CUDA %s", info->name, info->title ? info->title : info->name, c->toolchain.release);
  cfs_strings wanted = {0};
  cfs_strings_add(&wanted, info->name);
  cfs_advice_install(in->tables, c->anchor, c->toolchain.release, &wanted, &q->fix);
  cfs_strings_done(&wanted);
  finish_problem(c, q);
}

/* Leaving out what a compiler needs is a wish like any other against a policy: only the policy grants it. */
static void report_omitted(const struct cfs_composing *in, cfs_candidate *c, const cfs_component_info *info)
{
  cfs_problem *q =
      cfs_problems_add(&c->problems, "component-missing", cfs_policy_severity(in->manifest, "component-missing"),
                       info->name, "the manifest leaves out %s, and nothing compiles without it", info->name);
  cfs_strings_take(&q->fix, cfs_format("# take \"omit\" of %s out of the manifest", info->name));
  finish_problem(c, q);
}

static void note_version(const struct cfs_composing *in, cfs_candidate *c, const struct pick *p)
{
  const cfs_release_info *info = cfs_tables_release(in->tables, c->toolchain.release);
  const struct cfs_pin *pin = info ? cfs_release_pin(info, p->part->info->name) : NULL;
  cfs_problem *q = cfs_problems_add(&c->problems, "component-version-note", CFS_NOTE, p->part->info->name,
                                    "%s in \"%s\" is %s; CUDA %s pins %s", p->part->info->name, p->source->id,
                                    p->part->version ? p->part->version : "of unknown version", c->toolchain.release,
                                    pin ? pin->version : "no version of it");
  q->source = cfs_strdup(p->source->id);
  finish_problem(c, q);
}

static void choose_component(const struct cfs_composing *in, cfs_candidate *c, const cfs_component_info *info,
                             const char *anchor_version)
{
  const char *release = c->toolchain.release;
  const struct cfs_manifest_component *rule = cfs_manifest_component(in->manifest, info->name);
  bool required = is_required(info, release);
  if (rule && rule->omit) {
    if (required)
      report_omitted(in, c, info);
    return;
  }
  struct pick p = pick_part(in, info, release, c->anchor, anchor_version, true);
  if (!p.part) {
    if (required)
      report_missing(in, c, info);
    return;
  }
  if (p.fit == FIT_WRONG && !required)
    return; /* a cu13 crt beside a 12.x compiler that carries its own */
  if (p.fit == FIT_WRONG)
    report_wrong(in, c, &p);
  else if (p.fit != FIT_EXACT)
    note_version(in, c, &p);
  add_choice(c, &p);
}

/* What makes a set compile is files, not names of packages: a record may lie, an install may be half. */
static void check_needs(const struct cfs_composing *in, cfs_candidate *c)
{
  for (size_t i = 0; i < in->n_needs; i++) {
    const char *face = in->needs[i].face;
    const cfs_component_info *info = in->needs[i].owner;
    const cfs_file *file = cfs_toolchain_file(&c->toolchain, face, NULL);
    if (has_bytes(file))
      continue;
    const cfs_choice *owner = info ? cfs_toolchain_choice(&c->toolchain, info->name) : NULL;
    const struct cfs_manifest_component *rule = info ? cfs_manifest_component(in->manifest, info->name) : NULL;
    if ((info && is_required(info, c->toolchain.release) && !owner) || (rule && rule->omit))
      continue; /* the whole component is missing: said already */
    cfs_problem *q = cfs_problems_add(&c->problems, "component-missing",
                                      cfs_policy_severity(in->manifest, "component-missing"), info ? info->name : NULL,
                                      "%s is %s: %s in \"%s\" does not hold it", face, file ? "empty" : "missing",
                                      owner && owner->part->package ? owner->part->package
                                      : info                        ? info->name
                                                                    : "the source",
                                      owner       ? owner->source->id
                                      : c->anchor ? c->anchor->id
                                                  : "?");
    cfs_strings wanted = {0};
    if (info)
      cfs_strings_add(&wanted, info->name);
    cfs_advice_install(in->tables, owner ? owner->source : c->anchor, c->toolchain.release, &wanted, &q->fix);
    cfs_strings_done(&wanted);
    finish_problem(c, q);
  }
}

/* Findings of the inventories that touch a chosen part stand against the candidate. */
static void take_source_problems(const struct cfs_composing *in, cfs_candidate *c)
{
  for (size_t i = 0; i < c->toolchain.n_choices; i++) {
    const cfs_choice *choice = &c->toolchain.choices[i];
    const cfs_problems *list = &choice->source->problems;
    for (size_t j = 0; j < list->count; j++) {
      const cfs_problem *p = &list->items[j];
      if (p->severity != CFS_PROBLEM || !p->component || strcmp(p->component, choice->part->info->name) != 0)
        continue;
      cfs_problems_copy(&c->problems, p);
      cfs_problem *q = &c->problems.items[c->problems.count - 1];
      q->severity = cfs_policy_severity(in->manifest, q->code);
      finish_problem(c, q);
    }
  }
}

static bool has_patch(const char *version)
{
  const char *dot = version ? strchr(version, '.') : NULL;
  return dot && strchr(dot + 1, '.');
}

static void check_patch_levels(cfs_candidate *c)
{
  const cfs_choice *first = NULL;
  for (size_t i = 0; i < c->toolchain.n_choices; i++) {
    const cfs_choice *choice = &c->toolchain.choices[i];
    if (!choice->part->info->unit || choice->part->release == NULL || !has_patch(choice->part->version) ||
        strcmp(choice->part->release, c->toolchain.release) != 0)
      continue;
    if (!first)
      first = choice;
    else if (cfs_version_compare(first->part->version, choice->part->version) != 0)
      finish_problem(c, cfs_problems_add(&c->problems, "component-version-note", CFS_WARNING, choice->part->info->name,
                                         "patch levels differ inside the compiler unit: %s %s, %s %s",
                                         first->part->info->name, first->part->version, choice->part->info->name,
                                         choice->part->version));
  }
}

static void choose_assembler(const struct cfs_composing *in, cfs_candidate *c, const char *anchor_version)
{
  for (size_t i = 0; i < in->tables->n_components; i++) {
    const cfs_component_info *info = &in->tables->components[i];
    if (!info->unit)
      continue;
    struct pick p = pick_part(in, info, c->toolchain.release, c->anchor, anchor_version, false);
    if (p.part && p.fit == FIT_EXACT)
      add_choice(c, &p);
  }
}

void cfs_compose(const struct cfs_composing *in, const char *release, bool compiler, cfs_candidate *ret)
{
  const char *anchor_version = NULL;
  *ret = (cfs_candidate){.toolchain.release = cfs_strdup(release)};
  ret->anchor = find_anchor(in, release, compiler, &anchor_version);
  if (!compiler) {
    choose_assembler(in, ret, anchor_version);
  } else {
    for (size_t i = 0; i < in->tables->n_components; i++)
      choose_component(in, ret, &in->tables->components[i], anchor_version);
    check_needs(in, ret);
    check_patch_levels(ret);
  }
  take_source_problems(in, ret);
  cfs_toolchain *t = &ret->toolchain;
  t->assembles = cfs_toolchain_file(t, "bin/ptxas", NULL) != NULL;
  t->links = cfs_toolchain_file(t, "bin/nvlink", NULL) != NULL;
  t->compiles = compiler && t->assembles && cfs_toolchain_file(t, "bin/nvcc", NULL);
  const cfs_choice *tool = cfs_toolchain_choice(t, "cuda_nvcc");
  if (tool && tool->part->version)
    t->tool_version = cfs_strdup(tool->part->content ? tool->part->content : tool->part->version);
}
