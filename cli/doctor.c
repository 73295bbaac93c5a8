/* SPDX-License-Identifier: MIT */
#include "overlays/doctor.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/table.h"

static const struct cfs_usage usage = {
    .name = "doctor",
    .synopsis = "[DIR|MANIFEST]",
    .summary = "tell what is wrong with CUDA on this machine, and what mends it",
    .help = "Looks where the variables and the PATH lead, for CUDA files in the compilers' and the loader's own\n"
            "places, at the sources, FUSE and the host compiler, and tells for each program that uses CUDA which one\n"
            "it finds and whether that will do. With DIR (a mount or another CUDA_HOME) as if all variables led\n"
            "there; with a manifest for what that composes. Nothing is changed.\n\n"
            "The exit status is 0 when nothing is wrong, 3 when a consumer's own policy refuses what it finds.",
    .least = 0,
    .most = 1,
};

static json_t *to_json(const cfs_diagnosis *d)
{
  json_t *checks = json_array(), *consumers = json_array();
  for (size_t i = 0; i < d->n_checks; i++) {
    const struct cfs_check *c = &d->checks[i];
    json_array_append_new(checks,
                          json_pack("{s:s, s:s, s:o, s:o}", "code", c->code, "status", cfs_check_status_name(c->status),
                                    "message", cfs_json_text(c->message), "fix", cfs_json_strings(&c->fix)));
  }
  for (size_t i = 0; i < d->n_consumers; i++) {
    const struct cfs_consumer_report *r = &d->consumers[i];
    json_array_append_new(consumers,
                          json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", r->name, "verdict",
                                    cfs_verdict_name(r->verdict), "cuda_home", cfs_json_text(r->cuda_home), "version",
                                    cfs_json_text(r->version), "reason", cfs_json_text(r->reason)));
  }
  return json_pack("{s:o, s:o}", "checks", checks, "consumers", consumers);
}

static void print_check(const struct cfs_check *c)
{
  static const enum cfs_style styles[] = {CFS_GREEN, CFS_DIM, CFS_YELLOW, CFS_RED};
  fputs("  ", stdout);
  cfs_put_format(stdout, styles[c->status], "%-7s", cfs_check_status_name(c->status));
  fputc(' ', stdout);
  cfs_put_wrapped(stdout, c->message, 10, 10);
  for (size_t i = 0; i < c->fix.count; i++) {
    fputs("            ", stdout);
    cfs_put(stdout, CFS_BOLD, c->fix.items[i]);
    fputc('\n', stdout);
  }
}

static void print_consumers(const cfs_diagnosis *d)
{
  static const struct cfs_column columns[] = {
      {"consumer", 0, false}, {"verdict", 0, false}, {"CUDA", 0, false}, {"where", 12, true}, {"why", 20, false}};
  cleanup_table cfs_table table = {.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0])};
  for (size_t i = 0; i < d->n_consumers; i++) {
    const struct cfs_consumer_report *r = &d->consumers[i];
    bool fine = r->verdict == CFS_VERDICT_OK, half = r->verdict == CFS_VERDICT_LIMITED;
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(r->name));
    cfs_table_add(&table, fine ? CFS_GREEN : half ? CFS_YELLOW : CFS_RED, cfs_strdup(cfs_verdict_name(r->verdict)));
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(r->version ? r->version : "-"));
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(r->cuda_home ? r->cuda_home : "-"));
    cfs_table_add(&table, CFS_DIM, cfs_strdup(r->reason));
  }
  fputc('\n', stdout);
  cfs_table_print(&table, stdout);
}

static size_t count(const cfs_diagnosis *d, enum cfs_check_status status)
{
  size_t n = 0;
  for (size_t i = 0; i < d->n_checks; i++)
    n += d->checks[i].status == status;
  return n;
}

/* Consumers that nobody asked about are told of, and do not count. */
static int judge(const cfs_diagnosis *d, bool asked)
{
  int code = count(d, CFS_CHECK_ERROR) || count(d, CFS_CHECK_WARNING) ? CFS_FAILED : 0;
  for (size_t i = 0; asked && i < d->n_consumers; i++) {
    enum cfs_verdict v = d->consumers[i].verdict;
    if (v == CFS_VERDICT_UNMET)
      return CFS_REFUSED;
    if (v != CFS_VERDICT_OK && v != CFS_VERDICT_LIMITED)
      code = CFS_FAILED;
  }
  return code;
}

static void print(const cfs_diagnosis *d, int code)
{
  for (int status = CFS_CHECK_ERROR; status >= CFS_CHECK_OK; status--)
    for (size_t i = 0; i < d->n_checks; i++)
      if ((int)d->checks[i].status == status)
        print_check(&d->checks[i]);
  if (d->n_consumers)
    print_consumers(d);
  fputc('\n', stdout);
  size_t errors = count(d, CFS_CHECK_ERROR), warnings = count(d, CFS_CHECK_WARNING);
  if (code == 0)
    cfs_put(stdout, CFS_GREEN, "nothing is wrong");
  else
    cfs_put_format(stdout, CFS_RED, "%zu error%s, %zu warning%s", errors, errors == 1 ? "" : "s", warnings,
                   warnings == 1 ? "" : "s");
  fputc('\n', stdout);
}

static void show_progress(void *data, const char *what)
{
  (void)data;
  cfs_progress("%s", what);
}

static int examine(struct cfs_doctor_request *request, bool asked, bool json)
{
  cfs_diagnosis diagnosis = {0};
  cfs_error *err = NULL;
  request->progress = show_progress;
  int r = cfs_doctor(request, &diagnosis, &err);
  cfs_progress_clear();
  if (r < 0)
    return cfs_report(err);
  int code = judge(&diagnosis, asked);
  if (json) {
    int printed = cfs_print_json(to_json(&diagnosis));
    code = printed ? printed : code;
  } else {
    print(&diagnosis, code);
  }
  cfs_diagnosis_done(&diagnosis);
  return code;
}

static int doctor(const char *what, const cfs_strings *consumers, bool json)
{
  cleanup_free char *dir = what && cfs_path_is_dir(what) ? cfs_session_absolute(what) : NULL;
  cfs_build *build = NULL;
  if (what && !dir) {
    int code = cfs_session_build(what, &build);
    if (code >= 0)
      return code;
  }
  const cfs_strings *asked = build && !consumers->count ? &build->plan->consumers : consumers;
  struct cfs_doctor_request request = {.dir = dir, .build = build, .consumers = asked};
  int code = examine(&request, asked->count > 0, json);
  cfs_build_free(build);
  return code;
}

static int run(int argc, char *const *argv)
{
  bool json = false;
  cleanup_strings cfs_strings words = {0}, consumers = {0};
  const struct cfs_option options[] = {
      {"json", 0, NULL, "print one JSON object", &json},
      {"for", 0, "CONSUMER", "look at this program (flashinfer, torch, ...); may be given again", NULL, NULL,
       &consumers},
  };
  int code = cfs_arguments(&usage, options, sizeof(options) / sizeof(options[0]), argc, argv, &words);
  return code >= 0 ? code : doctor(words.count ? words.items[0] : NULL, &consumers, json);
}

const struct cfs_command cfs_command_doctor = {&usage, run};
