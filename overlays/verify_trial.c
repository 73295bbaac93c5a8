/* SPDX-License-Identifier: MIT */
/* What every test uses: its folder, its commands, its verdict. */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/sanitizer.h"
#include "overlays/child.h"
#include "overlays/verify_private.h"

enum {
  COMMAND_SECONDS = 600, /* a loaded machine is slow; a hung tool is slower */
  HELPER_SECONDS = 120,
  HELPER_CPU_SECONDS = 60,
  DETAIL_LIMIT = 600,
};
static const uint64_t helper_address_space = UINT64_C(8) << 30;
static const uint64_t file_size_limit = UINT64_C(1) << 30;

void cfs_trial_settle(struct cfs_trial *t, enum cfs_test_status status, const char *format, ...)
{
  if (t->result->detail)
    return;
  va_list ap;
  va_start(ap, format);
  t->result->detail = cfs_vformat(format, ap);
  va_end(ap);
  t->result->status = status;
}

bool cfs_trial_write(struct cfs_trial *t, const char *name, const char *text)
{
  cleanup_free char *path = cfs_path_join(t->folder, name);
  int r = cfs_file_write(path, text, strlen(text));
  if (r < 0)
    cfs_trial_settle(t, CFS_TEST_FAIL, "%s cannot be written (%s)", path, strerror(-r));
  return r == 0;
}

static bool tells_an_error(const char *line)
{
  static const char *const words[] = {"error", "fatal", "cannot", "undefined", "not found", "no such", "unsupported"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strcasestr(line, words[i]))
      return true;
  return false;
}

/* The first line that says what is wrong, else the last one. The caller owns the result. */
static char *essence(const char *output)
{
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, output, "\n");
  const char *line = lines.count ? lines.items[lines.count - 1] : "it said nothing";
  for (size_t i = 0; i < lines.count; i++)
    if (tells_an_error(lines.items[i])) {
      line = lines.items[i];
      break;
    }
  return cfs_strndup(line, DETAIL_LIMIT);
}

static void remember(struct cfs_trial *t, const cfs_strings *argv)
{
  cleanup_free char *text = cfs_command_text(argv), *before = TAKE_PTR(t->result->command);
  t->result->command = before ? cfs_format("%s && %s", before, text) : cfs_strdup(text);
}

static bool run(struct cfs_trial *t, cfs_strings *argv, const struct cfs_child_limits *limits, char **ret_output)
{
  struct cfs_child child = {argv, t->environment, t->folder, *limits, t->options->stop};
  struct cfs_child_result result = {0};
  remember(t, argv);
  int r = cfs_child_run(&child, &result);
  cleanup_free char *output = result.output;
  if (r == -ETIMEDOUT) {
    cfs_trial_settle(t, CFS_TEST_FAIL, "it did not end within %u s", limits->timeout_s);
  } else if (r < 0) {
    cfs_trial_settle(t, CFS_TEST_FAIL, "%s cannot be run (%s)", argv->items[0], strerror(-r));
  } else if (result.status != 0) {
    cleanup_free char *line = essence(output);
    cfs_trial_settle(t, CFS_TEST_FAIL, "%s (exit %d)", line, result.status);
  }
  cfs_strings_done(argv);
  bool good = r == 0 && result.status == 0;
  if (good && ret_output)
    *ret_output = TAKE_PTR(output);
  return good;
}

bool cfs_trial_command(struct cfs_trial *t, cfs_strings *argv, char **ret_output)
{
  return run(t, argv, &(struct cfs_child_limits){.timeout_s = COMMAND_SECONDS, .file_size = file_size_limit},
             ret_output);
}

bool cfs_trial_helper(struct cfs_trial *t, cfs_strings *argv, char **ret_output)
{
  return run(t, argv,
             &(struct cfs_child_limits){.timeout_s = HELPER_SECONDS,
                                        .cpu_s = HELPER_CPU_SECONDS,
                                        .address_space = CFS_INSTRUMENTED ? 0 : helper_address_space,
                                        .file_size = file_size_limit},
             ret_output);
}
