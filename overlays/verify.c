/* SPDX-License-Identifier: MIT */
/* The list of tests and the two threads that work it off. */

#include "overlays/verify.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/verify_private.h"

enum { WORKERS = 2, OPEN_DIRECTORIES = 16 };

struct job {
  cfs_trial_run run;
  const struct cfs_verify_toolchain *toolchain;
  struct cfs_test_result result;
};

struct work {
  const cfs_subject *subject;
  const struct cfs_verify_options *options;
  const char *folder;
  cfs_strings environment;
  struct job *jobs;
  size_t n_jobs;
  pthread_mutex_t lock;
  size_t next, done; /* under the lock */
};

const char *cfs_test_status_name(enum cfs_test_status s)
{
  static const char *const names[] = {"pass", "fail", "skip"};
  return names[s];
}

static void add_job(struct work *w, cfs_trial_run run, char *name, const char *target,
                    const struct cfs_verify_toolchain *toolchain)
{
  w->jobs = cfs_grow(w->jobs, w->n_jobs + 1, sizeof(*w->jobs));
  w->jobs[w->n_jobs++] =
      (struct job){run, toolchain, {.name = name, .target = cfs_strdup(target), .status = CFS_TEST_FAIL}};
}

static void list_jobs(struct work *w)
{
  const cfs_subject *s = w->subject;
  for (size_t i = 0; i < s->targets.count; i++)
    for (size_t k = 0; k < cfs_trial_kind_count; k++)
      if (i == 0 || !cfs_trial_kinds[k].once)
        add_job(w, cfs_trial_kinds[k].run, cfs_strdup(cfs_trial_kinds[k].name), s->targets.items[i], NULL);
  for (size_t i = 0; i < s->n_toolchains; i++)
    add_job(w, cfs_trial_toolchain, cfs_format("toolchain-%s", s->toolchains[i].release), s->toolchains[i].target,
            &s->toolchains[i]);
}

static void run_job(struct work *w, size_t index)
{
  struct job *job = &w->jobs[index];
  cleanup_free char *folder = cfs_format("%s/%02zu-%s-%s", w->folder, index, job->result.name, job->result.target);
  struct cfs_trial trial = {w->subject, w->options, &w->environment, folder, &job->result, job->toolchain};
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  int r = cfs_mkdir_all(folder, 0700);
  if (r < 0)
    cfs_trial_settle(&trial, CFS_TEST_FAIL, "%s cannot be made (%s)", folder, strerror(-r));
  else
    job->run(&trial);
  cfs_trial_settle(&trial, CFS_TEST_FAIL, "interrupted");
  clock_gettime(CLOCK_MONOTONIC, &end);
  job->result.seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  if (!job->result.command)
    job->result.command = cfs_strdup("");
}

static bool is_stopped(const struct work *w)
{
  return w->options->stop && *w->options->stop;
}

static void *work_off(void *data)
{
  struct work *w = data;
  pthread_mutex_lock(&w->lock);
  while (w->next < w->n_jobs && !is_stopped(w)) {
    size_t index = w->next++;
    const struct cfs_test_result *r = &w->jobs[index].result;
    if (w->options->progress)
      w->options->progress(w->options->data, r->name, r->target, w->done, w->n_jobs);
    pthread_mutex_unlock(&w->lock);
    run_job(w, index);
    pthread_mutex_lock(&w->lock);
    w->done++;
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static void run_all(struct work *w)
{
  pthread_t threads[WORKERS];
  size_t started = 0;
  pthread_mutex_init(&w->lock, NULL);
  while (started < WORKERS && started < w->n_jobs && pthread_create(&threads[started], NULL, work_off, w) == 0)
    started++;
  if (!started)
    work_off(w);
  for (size_t i = 0; i < started; i++)
    pthread_join(threads[i], NULL);
  pthread_mutex_destroy(&w->lock);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
  (void)st, (void)type, (void)at;
  remove(path);
  return 0;
}

/* Nothing of the caller's environment: a compiler flag or a search path in it would be tested instead. */
static void make_environment(struct work *w)
{
  cfs_strings_add(&w->environment, "PATH=/usr/bin:/bin");
  cfs_strings_add(&w->environment, "LC_ALL=C");
  cfs_strings_take(&w->environment, cfs_format("HOME=%s", w->folder));
  cfs_strings_take(&w->environment, cfs_format("TMPDIR=%s", w->folder));
  const char *data = getenv("CUDAFS_DATA");
  if (data)
    cfs_strings_take(&w->environment, cfs_format("CUDAFS_DATA=%s", data));
}

static char *make_folder(cfs_error **err)
{
  const char *base = getenv("TMPDIR");
  cleanup_free char *folder = cfs_path_join(base && *base ? base : "/tmp", "cudafs-verify-XXXXXX");
  if (!mkdtemp(folder)) {
    cfs_error_set(err, CFS_FAILED, errno, folder, "set TMPDIR to a folder that can be written",
                  "no temporary folder can be made (%s)", strerror(errno));
    return NULL;
  }
  return TAKE_PTR(folder);
}

static void give_report(struct work *w, cfs_verify_report *ret)
{
  ret->tests = cfs_zalloc((w->n_jobs + 1) * sizeof(*ret->tests));
  ret->n_tests = w->n_jobs;
  for (size_t i = 0; i < w->n_jobs; i++)
    ret->tests[i] = w->jobs[i].result;
}

int cfs_verify(const cfs_subject *subject, const struct cfs_verify_options *options, cfs_verify_report *ret,
               cfs_error **err)
{
  cleanup_free char *folder = make_folder(err);
  if (!folder)
    return -EIO;
  struct work w = {.subject = subject, .options = options, .folder = folder};
  make_environment(&w);
  list_jobs(&w);
  run_all(&w);
  give_report(&w, ret);
  free(w.jobs);
  cfs_strings_done(&w.environment);
  if (options->ret_kept)
    *options->ret_kept = TAKE_PTR(folder);
  else
    nftw(folder, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
  if (!is_stopped(&w))
    return 0;
  cfs_verify_report_done(ret);
  return cfs_error_set(err, CFS_FAILED, EINTR, subject->root, NULL, "interrupted");
}

size_t cfs_verify_count(const cfs_verify_report *report, enum cfs_test_status status)
{
  size_t n = 0;
  for (size_t i = 0; i < report->n_tests; i++)
    n += report->tests[i].status == status;
  return n;
}

void cfs_verify_report_done(cfs_verify_report *report)
{
  for (size_t i = 0; i < report->n_tests; i++) {
    free(report->tests[i].name);
    free(report->tests[i].target);
    free(report->tests[i].command);
    free(report->tests[i].detail);
  }
  free(report->tests);
  *report = (cfs_verify_report){0};
}
