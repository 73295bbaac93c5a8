/* SPDX-License-Identifier: MIT */
#include "overlays/probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/probe_cache.h"
#include "overlays/runner.h"

/* What is asked, the same on every release from 12.8 to 13.5:
 *  - PTX that claims .version 99.0 is refused with the newest version the tool takes;
 *  - --help lists the targets (--list-arch, since 13.1, does so without their a and f variants);
 *  - every -arch is checked, even before --version is obeyed, and the first that is refused is named. So
 *    one call confirms any number of targets, and each refused one costs one call more, of some 5 ms. */

enum { CALL_LIMIT_MS = 10 * 1000 };

/* /proc/self/fd/0 is /dev/null under a name that cannot be removed: should a tool clean up its output
 * after an error, root keeps a /dev/null. */
static const char *const ask_ptx[] = {"ptxas", "-ias", ".version 99.0\n.target sm_75\n", "-o", "/proc/self/fd/0", NULL};
static const char *const ask_help[] = {"ptxas", "--help", NULL};

struct tool {
  const char *path; /* for people */
  char *run;        /* what is executed: path or a copy in memory */
  int copy;
  cfs_error **err;
};

static void tool_done(struct tool *tool)
{
  free(tool->run);
  cfs_cleanup_close(&tool->copy);
}
#define cleanup_tool __attribute__((cleanup(tool_done)))

static int not_runnable(const struct tool *tool, int r)
{
  return cfs_error_set(tool->err, CFS_FAILED, ENOEXEC, tool->path, NULL, "this machine cannot run it: %s",
                       strerror(-r));
}

static int not_ptxas(const struct tool *tool, const char *asked)
{
  return cfs_error_set(tool->err, CFS_FAILED, ENODATA, tool->path, "reinstall the package it came from",
                       "its answer to %s is not that of a ptxas", asked);
}

static int run(struct tool *tool, struct cfs_call *calls, size_t count)
{
  int r = cfs_run(tool->run, calls, count, CALL_LIMIT_MS);
  if ((r == -EACCES || r == -EPERM) && tool->copy < 0) {
    free(TAKE_PTR(tool->run));
    int copied = cfs_run_copy(tool->path, &tool->copy, &tool->run);
    if (copied < 0)
      return not_runnable(tool, copied);
    r = cfs_run(tool->run, calls, count, CALL_LIMIT_MS);
  }
  switch (r) {
  case 0:
    return 0;
  case -ETIMEDOUT:
    return cfs_error_set(tool->err, CFS_FAILED, ETIMEDOUT, tool->path, NULL, "it did not answer within %d seconds",
                         CALL_LIMIT_MS / 1000);
  case -EFBIG:
    return not_ptxas(tool, "a question");
  default:
    /* ENOEXEC: another machine's; ENOENT: its loader is missing; EACCES, EPERM: not even the copy may run. */
    return not_runnable(tool, r);
  }
}

static bool is_target(const char *name, size_t n)
{
  if (n < 4 || strncmp(name, "sm_", 3) != 0)
    return false;
  size_t digits = strspn(name + 3, "0123456789");
  size_t end = 3 + digits;
  if (end < n && name[end] >= 'a' && name[end] <= 'z')
    end++;
  return digits && end == n;
}

/* Adds every quoted 'sm_100a' of the text. */
static void add_quoted_targets(const char *text, cfs_strings *targets)
{
  for (const char *p = strchr(text, '\''); p; p = strchr(p, '\'')) {
    size_t n = strcspn(++p, "'\n");
    if (p[n] == '\'' && is_target(p, n))
      cfs_strings_take(targets, cfs_strndup(p, n));
  }
}

static void sort_unique(cfs_strings *s)
{
  size_t kept = 0;
  cfs_strings_sort(s);
  for (size_t i = 0; i < s->count; i++) {
    if (kept && strcmp(s->items[i], s->items[kept - 1]) == 0)
      free(s->items[i]);
    else
      s->items[kept++] = s->items[i];
  }
  s->count = kept;
}

/* The text between before and after (up to the end when that is ""), or NULL. */
static char *between(const char *text, const char *before, const char *after)
{
  const char *p = strstr(text, before);
  if (!p)
    return NULL;
  p += strlen(before);
  const char *end = after[0] ? strstr(p, after) : p + strlen(p);
  return end ? cfs_strndup(p, (size_t)(end - p)) : NULL;
}

static bool is_version(const char *text)
{
  return text && text[0] >= '0' && text[0] <= '9' && strspn(text, "0123456789.") == strlen(text);
}

static void calls_done(struct cfs_call (*calls)[CFS_RUN_MAX])
{
  for (size_t i = 0; i < CFS_RUN_MAX; i++)
    free((*calls)[i].output);
}
#define cleanup_calls __attribute__((cleanup(calls_done)))

/* The PTX limit, and what the tool says that it knows, added to candidates. */
static int ask_first(struct tool *tool, struct cfs_probe *probe, cfs_strings *candidates)
{
  cleanup_calls struct cfs_call calls[CFS_RUN_MAX] = {{.argv = ask_ptx}, {.argv = ask_help}};
  int r = run(tool, calls, 2);
  if (r < 0)
    return r;
  probe->max_ptx = between(calls[0].output, "current version is '", "'");
  if (!is_version(probe->max_ptx))
    return not_ptxas(tool, "PTX of version 99.0");
  add_quoted_targets(calls[1].output, candidates);
  return 0;
}

/* Half of the candidates, less what was refused so far, as the options that ask about them. */
struct inquiry {
  cfs_strings options;
  const char **argv;
  bool settled;
};

static const char arch[] = "-arch=";

static void inquiries_done(struct inquiry (*inquiries)[CFS_RUN_MAX])
{
  for (size_t i = 0; i < CFS_RUN_MAX; i++) {
    cfs_strings_done(&(*inquiries)[i].options);
    free((*inquiries)[i].argv);
  }
}
#define cleanup_inquiries __attribute__((cleanup(inquiries_done)))

static const char *const *inquiry_argv(struct inquiry *inquiry)
{
  size_t n = 0;
  inquiry->argv = cfs_grow(inquiry->argv, inquiry->options.count + 3, sizeof(char *));
  inquiry->argv[n++] = "ptxas";
  for (size_t i = 0; i < inquiry->options.count; i++)
    inquiry->argv[n++] = inquiry->options.items[i];
  inquiry->argv[n++] = "--version";
  inquiry->argv[n] = NULL;
  return inquiry->argv;
}

static bool inquiry_drop(struct inquiry *inquiry, const char *target)
{
  cfs_strings *options = &inquiry->options;
  for (size_t i = 0; i < options->count; i++) {
    if (strcmp(options->items[i] + strlen(arch), target) != 0)
      continue;
    free(options->items[i]);
    options->items[i] = options->items[--options->count];
    return true;
  }
  return false;
}

/* Each answer settles its inquiry or takes one target out of it, so this ends. */
static int inquiry_answer(struct tool *tool, struct inquiry *inquiry, const struct cfs_call *call, char **version)
{
  if (call->status == 0) {
    cleanup_free char *said = between(call->output, "Cuda compilation tools, release ", "\n");
    if (!*version)
      *version = said ? between(said, ", V", "") : NULL;
    inquiry->settled = true;
    return 0;
  }
  cleanup_free char *refused = between(call->output, "Value '", "' is not defined for option 'gpu-name'");
  return refused && inquiry_drop(inquiry, refused) ? 0 : not_ptxas(tool, "-arch");
}

static int ask_round(struct tool *tool, struct inquiry *inquiries, char **version, bool *ret_settled)
{
  cleanup_calls struct cfs_call calls[CFS_RUN_MAX] = {0};
  struct inquiry *open[CFS_RUN_MAX];
  size_t n = 0;
  for (size_t i = 0; i < CFS_RUN_MAX; i++) {
    if (inquiries[i].settled)
      continue;
    open[n] = &inquiries[i];
    calls[n++].argv = inquiry_argv(&inquiries[i]);
  }
  *ret_settled = !n;
  int r = n ? run(tool, calls, n) : 0;
  for (size_t i = 0; i < n && r == 0; i++)
    r = inquiry_answer(tool, open[i], &calls[i], version);
  return r;
}

/* Which of the candidates the tool takes, and its version. */
static int ask_targets(struct tool *tool, struct cfs_probe *probe, const cfs_strings *candidates)
{
  cleanup_inquiries struct inquiry inquiries[CFS_RUN_MAX] = {0};
  for (size_t i = 0; i < candidates->count; i++)
    cfs_strings_take(&inquiries[i % CFS_RUN_MAX].options, cfs_format("%s%s", arch, candidates->items[i]));
  for (bool settled = false; !settled;) {
    int r = ask_round(tool, inquiries, &probe->version, &settled);
    if (r < 0)
      return r;
  }
  if (!is_version(probe->version))
    return not_ptxas(tool, "--version");
  for (size_t i = 0; i < CFS_RUN_MAX; i++)
    for (size_t k = 0; k < inquiries[i].options.count; k++)
      cfs_strings_add(&probe->targets, inquiries[i].options.items[k] + strlen(arch));
  cfs_strings_sort(&probe->targets);
  return probe->targets.count ? 0 : not_ptxas(tool, "-arch");
}

/* candidates: the universe, to which is added what the tool lists itself. */
static int probe_tool(const char *path, cfs_strings *candidates, struct cfs_probe **ret_probe, cfs_error **err)
{
  cleanup_tool struct tool tool = {.path = path, .run = cfs_strdup(path), .copy = -1, .err = err};
  cleanup_probe struct cfs_probe *probe = cfs_zalloc(sizeof(*probe));
  int r = ask_first(&tool, probe, candidates);
  if (r < 0)
    return r;
  sort_unique(candidates);
  r = ask_targets(&tool, probe, candidates);
  if (r == 0)
    *ret_probe = TAKE_PTR(probe);
  return r;
}

/* A mount made by root reads users' venvs; running a program that its user can replace would hand root to
 * that user. */
static bool others_may_change(const struct stat *st)
{
  return st->st_uid != 0 || (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != 0);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int probe_or_load(const char *path, const struct stat *st, const char *cache_dir, cfs_strings *candidates,
                         struct cfs_probe **ret_probe, cfs_error **err)
{
  struct cfs_probe *kept = cache_dir ? cfs_probe_cache_load(cache_dir, path, st, candidates) : NULL;
  if (kept) {
    *ret_probe = kept;
    return 0;
  }
  if (geteuid() == 0 && others_may_change(st))
    return cfs_error_set(err, CFS_FAILED, ENOEXEC, path, NULL, "root does not run a tool that others may change");
  int r = probe_tool(path, candidates, ret_probe, err);
  struct stat after;
  /* An upgrade in between would file the new tool's answers under the old one's identity. */
  if (r == 0 && cache_dir && stat(path, &after) == 0 && same_file(st, &after))
    cfs_probe_cache_store(cache_dir, path, st, candidates, *ret_probe);
  return r;
}

int cfs_probe_ptxas(const char *path, const cfs_strings *universe, const char *cache_dir, struct cfs_probe **ret_probe,
                    cfs_error **err)
{
  struct stat st;
  if (stat(path, &st) < 0)
    return cfs_error_set(err, CFS_FAILED, errno, path, NULL, "%s", strerror(errno));
  if (!S_ISREG(st.st_mode))
    return cfs_error_set(err, CFS_FAILED, ENOEXEC, path, NULL, "it is not a file");
  cleanup_strings cfs_strings candidates = {0};
  for (size_t i = 0; universe && i < universe->count; i++)
    if (is_target(universe->items[i], strlen(universe->items[i])))
      cfs_strings_add(&candidates, universe->items[i]);
  cleanup_free char *usual = cache_dir ? NULL : cfs_probe_cache_dir();
  return probe_or_load(path, &st, cache_dir ? cache_dir : usual, &candidates, ret_probe, err);
}

void cfs_probe_free(struct cfs_probe *probe)
{
  if (!probe)
    return;
  free(probe->version);
  free(probe->max_ptx);
  cfs_strings_done(&probe->targets);
  free(probe);
}

void cfs_cleanup_probe(void *pp)
{
  cfs_probe_free(*(struct cfs_probe **)pp);
}
