/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "overlays/lease.h"

enum { WAIT_SECONDS = 600 };

static const struct cfs_usage usage = {
    .name = "reload",
    .synopsis = "DIR [MANIFEST]",
    .summary = "exchange what a mount serves, in place",
    .help = "Composes anew what the mount on DIR was made of, or the manifest given, and serves that instead. New\n"
            "compilers are held back and running ones awaited first, so that none sees two toolkits. When the\n"
            "new plan is refused, the old one stays and the exit status is 3.",
    .least = 1,
    .most = 2,
};

struct request {
  bool now, json;
  char *wait;
  char *root;
  const char *manifest; /* or NULL: what the mount was made of */
};

static void tell_waiting(void *data, unsigned seconds)
{
  (void)data;
  cfs_progress("waiting for running compilers to end... %u s", seconds);
}

static int take_seconds(const char *text, unsigned *ret)
{
  char *end = NULL;
  errno = 0;
  unsigned long n = text ? strtoul(text, &end, 10) : WAIT_SECONDS;
  if (text && (errno || *end || end == text || *text == '-' || n > INT_MAX))
    return cfs_report_format(CFS_INVALID, "reload: --wait", "give seconds, such as --wait 60", "\"%s\" is no number",
                             text);
  *ret = (unsigned)n;
  return -1;
}

static int say(const struct request *q, const cfs_build *build, bool changed, unsigned generation)
{
  if (q->json)
    return cfs_print_json(json_pack("{s:s, s:b, s:s, s:s, s:i}", "path", q->root, "changed", (int)changed, "release",
                                    build->plan->release, "digest", build->plan->digest, "generation",
                                    (int)generation));
  if (changed)
    printf("%s now serves CUDA %s (generation %u)\n", q->root, build->plan->release, generation);
  else
    printf("unchanged: CUDA %s on %s\n", build->plan->release, q->root);
  return 0;
}

static int exchange(const struct request *q, const cfs_build *build)
{
  unsigned seconds = 0, generation = 0;
  int code = take_seconds(q->wait, &seconds);
  if (code >= 0)
    return code;
  cleanup_close int tree = cfs_session_tree(build, q->root);
  if (tree < 0)
    return -tree;
  cleanup_lease struct cfs_lease lease = {-1, -1};
  cfs_error *err = NULL;
  struct cfs_lease_wait wait = {seconds, cfs_session_catch_signals(), tell_waiting, NULL};
  int r = q->now ? 0 : cfs_lease_take(q->root, &wait, &lease, &err);
  cfs_progress_clear();
  if (r < 0)
    return cfs_report(err);
  cleanup_free char *label = cfs_session_label(build), *why = NULL;
  uint32_t number = 0;
  r = cfs_reload(q->root, tree, label, label ? strlen(label) : 0, &number, &why);
  generation = number;
  if (r < 0)
    return cfs_report_format(CFS_FAILED, q->root, "the old toolkit is still served", "it cannot be exchanged: %s",
                             why ? why : strerror(-r));
  cfs_lease_release(&lease);
  return say(q, build, true, generation);
}

static int reload(const struct request *q, const struct cfs_status *status, const json_t *label)
{
  const char *made_of = cfs_json_string_of(label, "manifest"), *digest = cfs_json_string_of(label, "digest");
  cfs_build *build = NULL;
  int code = cfs_session_build(q->manifest ? q->manifest : made_of, &build);
  if (code >= 0)
    return code;
  if (!build->plan->coherent) {
    code = cfs_session_refuse(build);
    const char *release = cfs_json_string_of(label, "release");
    fprintf(stderr, "  %s still serves%s %s\n", q->root, release ? " CUDA" : "", release ? release : "what it did");
  } else {
    cfs_session_warn(build->plan);
    if (digest && strcmp(digest, build->plan->digest) == 0)
      code = say(q, build, false, status->generation);
    else
      code = exchange(q, build);
  }
  cfs_build_free(build);
  return code;
}

static int find_mount(const char *dir, char **ret_root, struct cfs_status *ret)
{
  cleanup_free char *path = cfs_session_absolute(dir);
  int r = cfs_status_read(path, ret);
  if (r == -ENODEV || r == -ENOENT || r == -ENOTDIR)
    return cfs_report_format(CFS_FAILED, path, "cudafs status lists the mounts", "no cudafs is mounted there");
  if (r == -ENOTCONN)
    return cfs_report_format(CFS_FAILED, path, "mount it again: cudafs mount cleans it away first",
                             "the mount is dead");
  if (r < 0)
    return cfs_report_format(CFS_FAILED, path, "run cudafs as the user who mounted it", "%s", strerror(-r));
  *ret_root = ret->mountpoint ? cfs_strdup(ret->mountpoint) : TAKE_PTR(path);
  return -1;
}

static int run(int argc, char *const *argv)
{
  struct request q = {0};
  struct cfs_status status = {0};
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {
      {"now", 0, NULL, "do not wait for running compilers", &q.now},
      {"wait", 0, "SECONDS", "wait so long for them at most (600)", NULL, &q.wait},
      {"json", 0, NULL, "print one JSON object", &q.json},
  };
  int code = cfs_arguments(&usage, options, sizeof(options) / sizeof(options[0]), argc, argv, &words);
  if (code < 0)
    code = find_mount(words.items[0], &q.root, &status);
  if (code < 0) {
    q.manifest = words.count == 2 ? words.items[1] : NULL;
    json_t *label = cfs_session_label_read(&status);
    code = reload(&q, &status, label);
    json_decref(label);
  }
  cfs_status_done(&status);
  free(q.wait);
  free(q.root);
  return code;
}

const struct cfs_command cfs_command_reload = {&usage, run};
