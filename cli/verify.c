/* SPDX-License-Identifier: MIT */
#include "overlays/verify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/mounting.h"
#include "cli/output.h"
#include "cli/table.h"

static const struct cfs_usage usage = {
    .name = "verify",
    .synopsis = "[DIR|MANIFEST]",
    .summary = "compile through a toolkit, every stage of it",
    .help = "Compiles small programs with nvcc (object, CCCL, static and shared runtime, relocatable device code,\n"
            "device LTO), links the driver stubs, and compiles with NVRTC, for each target. Every CUDA header and\n"
            "library that was read must have come from the toolkit itself. No GPU is needed.\n\n"
            "DIR is a mount or any other CUDA_HOME; a manifest (or, without a word, what cudafs scan finds) is\n"
            "mounted in a temporary place for the time of the test. The exit status is 0 when no test failed and\n"
            "at least one passed.",
    .least = 0,
    .most = 1,
};

struct request {
  bool json, keep;
  cfs_strings targets;
  const volatile sig_atomic_t *stop;
};

/* "120a" and "sm_120a" alike; NULL when it is neither. The caller owns the result. */
static char *target_of(const char *text)
{
  const char *number = cfs_has_prefix(text, "sm_") ? text + 3 : text;
  size_t digits = strspn(number, "0123456789");
  const char *suffix = number + digits;
  bool good = digits >= 2 && digits <= 4 && (!*suffix || ((*suffix == 'a' || *suffix == 'f') && !suffix[1]));
  return good ? cfs_format("sm_%s", number) : NULL;
}

static int take_targets(const cfs_strings *given, cfs_subject *s)
{
  if (!given->count)
    return -1;
  cfs_strings_done(&s->targets);
  for (size_t i = 0; i < given->count; i++) {
    char *target = target_of(given->items[i]);
    if (!target)
      return cfs_report_format(CFS_INVALID, given->items[i], "name one such as sm_120a", "it is no target");
    cfs_strings_take(&s->targets, target);
  }
  return -1;
}

static void show_progress(void *data, const char *name, const char *target, size_t done, size_t total)
{
  (void)data;
  cfs_progress("[%zu/%zu] %s %s", done, total, name, target);
}

static json_t *report_to_json(const cfs_subject *s, const cfs_verify_report *report, const char *kept)
{
  json_t *root = json_object(), *tests = json_array();
  for (size_t i = 0; i < report->n_tests; i++) {
    const struct cfs_test_result *t = &report->tests[i];
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(t->name));
    json_object_set_new(o, "target", json_string(t->target));
    json_object_set_new(o, "status", json_string(cfs_test_status_name(t->status)));
    json_object_set_new(o, "command", cfs_json_text(t->command));
    json_object_set_new(o, "detail", cfs_json_text(t->detail));
    json_object_set_new(o, "seconds", json_real(t->seconds));
    json_array_append_new(tests, o);
  }
  json_object_set_new(root, "path", cfs_json_text(s->root));
  json_object_set_new(root, "release", cfs_json_text(s->release));
  json_object_set_new(root, "tests", tests);
  if (kept)
    json_object_set_new(root, "kept", cfs_json_text(kept));
  return root;
}

static void print_report(const cfs_subject *s, const cfs_verify_report *report)
{
  static const struct cfs_column columns[] = {
      {"test", 0, false}, {"target", 0, false}, {"", 0, false}, {"seconds", 0, false}, {"", 20, false}};
  static const enum cfs_style styles[] = {CFS_GREEN, CFS_RED, CFS_YELLOW};
  cleanup_table cfs_table table = {.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0])};
  for (size_t i = 0; i < report->n_tests; i++) {
    const struct cfs_test_result *t = &report->tests[i];
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(t->name));
    cfs_table_add(&table, CFS_PLAIN, cfs_strdup(t->target));
    cfs_table_add(&table, styles[t->status], cfs_strdup(cfs_test_status_name(t->status)));
    cfs_table_add(&table, CFS_DIM, cfs_format("%7.1f", t->seconds));
    cfs_table_add(&table, t->status == CFS_TEST_PASS ? CFS_DIM : CFS_PLAIN, cfs_strdup(t->detail));
  }
  cfs_put_format(stdout, CFS_BOLD, "%s%s%s\n", s->root, s->release ? ", CUDA " : "", s->release ? s->release : "");
  cfs_table_print(&table, stdout);
}

/* What a table cell had no room for: the whole story of each failure. */
static void print_failures(const cfs_verify_report *report)
{
  for (size_t i = 0; i < report->n_tests; i++) {
    const struct cfs_test_result *t = &report->tests[i];
    if (t->status != CFS_TEST_FAIL)
      continue;
    printf("\n%s %s: %s\n", t->name, t->target, t->detail);
    if (*t->command)
      printf("  $ %s\n", t->command);
  }
}

static int conclude(const cfs_subject *s, const cfs_verify_report *report, bool json, const char *kept)
{
  size_t passed = cfs_verify_count(report, CFS_TEST_PASS), failed = cfs_verify_count(report, CFS_TEST_FAIL);
  size_t skipped = cfs_verify_count(report, CFS_TEST_SKIP);
  int code = failed || !passed ? CFS_FAILED : 0;
  if (json) {
    int r = cfs_print_json(report_to_json(s, report, kept));
    return r ? r : code;
  }
  print_report(s, report);
  print_failures(report);
  putchar('\n');
  cfs_put_format(stdout, code ? CFS_RED : CFS_GREEN, "%zu passed, %zu failed, %zu skipped", passed, failed, skipped);
  putchar('\n');
  if (kept)
    printf("kept in %s\n", kept);
  return code;
}

static int verify(const struct request *q, const char *root)
{
  cfs_subject subject = {0};
  cfs_verify_report report = {0};
  cfs_error *err = NULL;
  cleanup_free char *helper = realpath("/proc/self/exe", NULL), *kept = NULL;
  struct cfs_verify_options options = {.helper = helper, .stop = q->stop, .progress = show_progress};
  if (q->keep)
    options.ret_kept = &kept;
  if (cfs_subject_read(root, &subject, &err) < 0)
    return cfs_report(err);
  int code = take_targets(&q->targets, &subject);
  if (code < 0) {
    int r = cfs_verify(&subject, &options, &report, &err);
    cfs_progress_clear();
    code = r < 0 ? cfs_report(err) : conclude(&subject, &report, q->json, kept);
  }
  cfs_verify_report_done(&report);
  cfs_subject_done(&subject);
  return code;
}

static int verify_manifest(const struct request *q, const char *manifest)
{
  cfs_build *build = NULL;
  int code = cfs_session_build(manifest, &build);
  if (code >= 0)
    return code;
  cleanup_private_mount struct cfs_private_mount mount = {0};
  if (!build->plan->coherent)
    code = cfs_session_refuse(build);
  else
    code = cfs_private_mount_make(build, &mount);
  if (code == 0)
    code = verify(q, mount.path);
  cfs_build_free(build);
  return code;
}

static int run(int argc, char *const *argv)
{
  struct request q = {0};
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {
      {"json", 0, NULL, "print one JSON object", &q.json},
      {"target", 0, "TARGET", "compile for this target (sm_120a); may be given again", NULL, NULL, &q.targets},
      {"keep", 0, NULL, "keep what was compiled, and say where", &q.keep},
  };
  int code = cfs_arguments(&usage, options, sizeof(options) / sizeof(options[0]), argc, argv, &words);
  if (code < 0) {
    q.stop = cfs_session_catch_signals();
    const char *what = words.count ? words.items[0] : NULL;
    code = what && cfs_path_is_dir(what) ? verify(&q, what) : verify_manifest(&q, what);
  }
  cfs_strings_done(&q.targets);
  return code;
}

const struct cfs_command cfs_command_verify = {&usage, run};
