/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/matrix.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/table.h"

static const struct cfs_usage usage = {
    .name = "plan",
    .synopsis = "[MANIFEST]",
    .summary = "show what would be mounted, and why",
    .help = "Shows which component is taken from which source, which toolchains that makes, and what is wrong.\n"
            "Without a manifest, of what cudafs scan finds. The exit status is 3 when no coherent set exists.",
    .least = 0,
    .most = 1,
};

static int number_of(const char *target)
{
  return cfs_leading_number(target + strcspn(target, "0123456789"));
}

/* "25, sm_75 to sm_121f"; the caller owns the result. */
static char *targets_text(const cfs_strings *targets)
{
  const char *low = NULL, *high = NULL;
  for (size_t i = 0; i < targets->count; i++) {
    const char *t = targets->items[i];
    if (!low || number_of(t) < number_of(low))
      low = t;
    if (!high || number_of(t) > number_of(high) || (number_of(t) == number_of(high) && strcmp(t, high) > 0))
      high = t;
  }
  return low ? cfs_format("%zu, %s to %s", targets->count, low, high) : cfs_strdup("none known");
}

static void print_toolchains(const cfs_plan *plan)
{
  static const struct cfs_column columns[] = {{"toolchain", 0, false},
                                              {"role", 0, false},
                                              {"tools", 0, false},
                                              {"PTX up to", 0, false},
                                              {"targets", 10, false}};
  cleanup_table cfs_table table = {.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0])};
  for (size_t i = 0; i < plan->n_toolchains; i++) {
    const cfs_toolchain *t = &plan->toolchains[i];
    enum cfs_style style = t->primary ? CFS_BOLD : CFS_PLAIN;
    cfs_table_add(&table, style, cfs_format("CUDA %s", t->release));
    cfs_table_add(&table, style,
                  cfs_format("%s%s", t->primary ? "face, " : "", t->compiles ? "compiles" : "assembles"));
    cfs_table_add(&table, style, cfs_strdup(t->tool_version ? t->tool_version : "?"));
    cfs_table_add(&table, style, cfs_strdup(t->max_ptx ? t->max_ptx : "?"));
    cfs_table_add(&table, style, targets_text(&t->targets));
  }
  cfs_table_print(&table, stdout);
}

static void print_sources(const cfs_plan *plan)
{
  static const struct cfs_column columns[] = {{"source", 12, true}, {"kind", 0, false}, {"path", 20, true}};
  cleanup_table cfs_table table = {.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0])};
  for (size_t i = 0; i < plan->n_sources; i++) {
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(plan->sources[i]->id));
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(cfs_source_kind_name(plan->sources[i]->kind)));
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(plan->sources[i]->path));
  }
  cfs_table_print(&table, stdout);
}

static void print_problem(const cfs_problem *p)
{
  static const enum cfs_style styles[] = {CFS_DIM, CFS_YELLOW, CFS_RED};
  fputs("  ", stdout);
  cfs_put_format(stdout, styles[p->severity], "%-7s", cfs_severity_name(p->severity));
  size_t at = 10;
  fputc(' ', stdout);
  if (p->release) {
    printf("CUDA %s: ", p->release);
    at += strlen(p->release) + 7;
  }
  printf("%s: ", p->code);
  cfs_put_wrapped(stdout, p->message, at + strlen(p->code) + 2, 10);
  for (size_t i = 0; i < p->fix.count; i++) {
    fputs("            ", stdout);
    cfs_put(stdout, CFS_BOLD, p->fix.items[i]);
    fputc('\n', stdout);
  }
}

/* Worst first. The errors of a refused plan are told on stderr, with what mends the whole. */
static void print_problems(const cfs_plan *plan)
{
  bool any = false;
  for (int severity = plan->coherent ? CFS_PROBLEM : CFS_WARNING; severity >= CFS_NOTE; severity--)
    for (size_t i = 0; i < plan->problems.count; i++) {
      if ((int)plan->problems.items[i].severity != severity)
        continue;
      if (!any)
        fputc('\n', stdout);
      any = true;
      print_problem(&plan->problems.items[i]);
    }
}

static void print_files(const cfs_plan *plan)
{
  static const char *const kinds[] = {"file", "link", "made", "dispatcher", "directory"};
  fputc('\n', stdout);
  for (size_t i = 0; i < plan->n_entries; i++) {
    const cfs_entry *e = &plan->entries[i];
    const char *of = e->file ? e->file->path : e->kind == CFS_ENTRY_LINK ? e->link : e->why ? e->why : "";
    printf("%s\t%s\t%s\n", e->path, kinds[e->kind], of);
  }
}

static void print_verdict(const cfs_plan *plan)
{
  fputc('\n', stdout);
  if (!plan->coherent) {
    cfs_put(stdout, CFS_RED, "refused");
    fputs(": no coherent set\n", stdout);
    return;
  }
  size_t warnings = 0;
  for (size_t i = 0; i < plan->problems.count; i++)
    warnings += plan->problems.items[i].severity == CFS_WARNING;
  cfs_put(stdout, CFS_GREEN, "coherent");
  printf(": CUDA %s, %zu components, %zu paths, plan %.12s", plan->release, plan->toolchains[0].n_choices,
         plan->n_entries, plan->digest);
  if (warnings)
    printf(", %zu warning%s", warnings, warnings == 1 ? "" : "s");
  fputc('\n', stdout);
}

static void print(const cfs_build *build, bool files)
{
  const cfs_plan *plan = build->plan;
  print_sources(plan);
  fputc('\n', stdout);
  cfs_matrix_print(plan, build->tables, stdout);
  cfs_put(stdout, CFS_DIM, plan->coherent ? "  * in the face   + in another toolchain\n" : "  ! in the way\n");
  if (plan->n_toolchains) {
    fputc('\n', stdout);
    print_toolchains(plan);
  }
  print_problems(plan);
  if (files)
    print_files(plan);
  print_verdict(plan);
}

static int run(int argc, char *const *argv)
{
  bool json = false, files = false;
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {
      {"json", 0, NULL, "print one JSON object", &json},
      {"files", 0, NULL, "show every path and where its bytes come from", &files},
  };
  int code = cfs_arguments(&usage, options, sizeof(options) / sizeof(options[0]), argc, argv, &words);
  cfs_build *build = NULL;
  if (code < 0)
    code = cfs_session_build(words.count ? words.items[0] : NULL, &build);
  if (code >= 0)
    return code;
  if (json)
    code = cfs_print_json(cfs_plan_to_json(build->plan, files));
  else
    print(build, files);
  if (!build->plan->coherent)
    code = cfs_session_refuse(build);
  cfs_build_free(build);
  return code < 0 ? 0 : code;
}

const struct cfs_command cfs_command_plan = {&usage, run};
