/* SPDX-License-Identifier: MIT */
#include "cli/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/output.h"

int cfs_session_build(const char *manifest, cfs_build **ret)
{
  cfs_error *err = NULL;
  cfs_progress("reading the sources...");
  int r = manifest ? cfs_build_manifest(manifest, ret, &err) : cfs_build_scan(ret, &err);
  cfs_progress_clear();
  return r < 0 ? cfs_report(err) : -1;
}

static const char *subject_of(const cfs_build *b)
{
  return b->manifest->path ? b->manifest->path : "this machine";
}

static void put_problem(const cfs_problem *p)
{
  size_t at = 2;
  fputs("  ", stderr);
  if (p->release) {
    fprintf(stderr, "CUDA %s: ", p->release);
    at += strlen(p->release) + 7;
  }
  cfs_put(stderr, CFS_RED, p->code);
  fputs(": ", stderr);
  cfs_put_wrapped(stderr, p->message, at + strlen(p->code) + 2, 4);
}

static void put_problems(const cfs_plan *plan, const char *best, bool of_best)
{
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    bool is_best = !p->release || !best || strcmp(p->release, best) == 0;
    if (p->severity == CFS_PROBLEM && is_best == of_best)
      put_problem(p);
  }
}

static void put_fix(const cfs_strings *fix)
{
  for (size_t i = 0; i < fix->count; i++) {
    fputs("    ", stderr);
    cfs_put(stderr, CFS_BOLD, fix->items[i]);
    fputc('\n', stderr);
  }
}

/* Without a repair for the whole: each problem's own mend. */
static void put_single_fixes(const cfs_plan *plan)
{
  cleanup_strings cfs_strings all = {0};
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    for (size_t j = 0; p->severity == CFS_PROBLEM && j < p->fix.count; j++)
      if (!cfs_strings_has(&all, p->fix.items[j]))
        cfs_strings_add(&all, p->fix.items[j]);
  }
  if (all.count)
    fputs("  to mend it:\n", stderr);
  put_fix(&all);
}

/* A warning may be the very cause: a placeholder that stands where a wheel should. */
static void put_related_warnings(const cfs_plan *plan)
{
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    for (size_t j = 0; p->severity == CFS_WARNING && p->component && j < plan->problems.count; j++) {
      const cfs_problem *q = &plan->problems.items[j];
      if (q->severity != CFS_PROBLEM || !q->component || strcmp(p->component, q->component) != 0)
        continue;
      put_problem(p);
      break;
    }
  }
}

int cfs_session_refuse(const cfs_build *build)
{
  const cfs_plan *plan = build->plan;
  const cfs_repair *best = plan->n_repairs ? &plan->repairs[0] : NULL;
  fflush(stdout);
  cfs_report_format(CFS_REFUSED, subject_of(build), NULL, "no coherent CUDA toolkit can be made of what is there");
  put_related_warnings(plan);
  put_problems(plan, best ? best->release : NULL, false);
  put_problems(plan, best ? best->release : NULL, true);
  if (best && best->fix.count) {
    fprintf(stderr, "  to have CUDA %s:\n", best->release);
    put_fix(&best->fix);
  } else {
    put_single_fixes(plan);
  }
  return CFS_REFUSED;
}

/* The nth warning of that code is counted, the first one told. */
static bool is_first_of_code(const cfs_plan *plan, size_t at, size_t *ret_more)
{
  *ret_more = 0;
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    if (p->severity != CFS_WARNING || strcmp(p->code, plan->problems.items[at].code) != 0 || i == at)
      continue;
    if (i < at)
      return false;
    ++*ret_more;
  }
  return true;
}

void cfs_session_warn(const cfs_plan *plan)
{
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    size_t more = 0;
    if (p->severity != CFS_WARNING || !is_first_of_code(plan, i, &more))
      continue;
    cleanup_free char *text =
        more ? cfs_format("%s (and %zu more such; see cudafs plan)", p->message, more) : cfs_strdup(p->message);
    cfs_put(stderr, CFS_YELLOW, "warning:");
    fprintf(stderr, " %s: ", p->code);
    cfs_put_wrapped(stderr, text, strlen(p->code) + 11, 4);
  }
}

int cfs_session_tree(const cfs_build *build, const char *mountpoint)
{
  cfs_error *err = NULL;
  int fd = cfs_layout_tree(build->plan, build->tables, mountpoint, build->dispatcher, build->dispatcher_size, &err);
  return fd < 0 ? -cfs_report(err) : fd;
}

static json_t *warnings_of(const cfs_plan *plan)
{
  json_t *list = json_array();
  for (size_t i = 0; i < plan->problems.count; i++) {
    const cfs_problem *p = &plan->problems.items[i];
    if (p->severity == CFS_WARNING)
      json_array_append_new(list, json_pack("{s:s, s:o}", "code", p->code, "message", cfs_json_text(p->message)));
  }
  return list;
}

char *cfs_session_label(const cfs_build *build)
{
  const cfs_plan *plan = build->plan;
  cleanup_free char *manifest = build->manifest->path ? cfs_session_absolute(build->manifest->path) : NULL;
  json_t *root = json_object();
  json_object_set_new(root, "cudafs", json_integer(1));
  json_object_set_new(root, "release", cfs_json_text(plan->release));
  json_object_set_new(root, "digest", cfs_json_text(plan->digest));
  json_object_set_new(root, "manifest", cfs_json_text(manifest));
  json_object_set_new(root, "name", cfs_json_text(plan->name));
  json_object_set_new(root, "warnings", warnings_of(plan));
  json_object_set_new(root, "plan", cfs_plan_to_json(plan, false));
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text;
}

json_t *cfs_session_label_read(const struct cfs_status *status)
{
  json_t *root = status->label ? json_loadb(status->label, status->label_size, 0, NULL) : NULL;
  if (root && json_integer_value(json_object_get(root, "cudafs")) == 1)
    return root;
  json_decref(root);
  return NULL;
}

char *cfs_session_absolute(const char *path)
{
  char *real = realpath(path, NULL);
  if (real)
    return real;
  cleanup_free char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
  cleanup_free char *joined = here ? cfs_path_join(here, path) : cfs_strdup(path);
  cleanup_free char *plain = cfs_path_normalise(joined);
  char *slash = plain ? strrchr(plain, '/') : NULL;
  if (!slash || !slash[1])
    return cfs_strdup(plain && *plain ? plain : joined);
  cleanup_free char *parent = slash == plain ? cfs_strdup("/") : cfs_strndup(plain, (size_t)(slash - plain));
  cleanup_free char *real_parent = realpath(parent, NULL);
  return cfs_path_join(real_parent ? real_parent : parent, slash + 1);
}

/* Written by the handler alone. */
static volatile sig_atomic_t caught;

static void on_signal(int signal_number)
{
  (void)signal_number;
  caught = 1;
}

const volatile sig_atomic_t *cfs_session_catch_signals(void)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
    sigaction(signals[i], &action, NULL);
  return &caught;
}
