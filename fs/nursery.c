/* SPDX-License-Identifier: MIT */

/* Workers: forking the next, noticing that one died or hangs, and keeping a request that kills whoever
 * touches it from doing so for ever. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/connection.h"
#include "fs/keeper_private.h"
#include "fs/worker.h"

#define QUICK_LIFE        (1000 * CFS_MS)
#define QUICK_FREE        5u /* so many quick deaths in a row are mended at once */
#define QUICK_FREE_SERVED 100u
#define BACKOFF_FIRST     (10 * CFS_MS)
#define BACKOFF_MAX       (1000 * CFS_MS)
#define BACKOFF_SERVED    (20 * CFS_MS)
#define DEATHS_ALLOWED    3u
#define DYING_MAX_MS      1000
#define CHECK_EVERY       (2000 * CFS_MS)
#define QUIET_MAX         (6000 * CFS_MS)   /* requests lie unread, threads are free, and none is taken */
#define BUSY_MAX          (120000 * CFS_MS) /* one request; backing files may lie on a slow network */

static unsigned thread_count(const struct cfs_keeper *k)
{
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (k->options.threads)
    return k->options.threads;
  /* More than processors, because a read may wait for a disk. */
  return cpus < 4 ? 4 : cpus > 16 ? 16 : (unsigned)cpus;
}

static _Noreturn void become_worker(struct cfs_keeper *k, pid_t keeper, int ready)
{
  struct cfs_worker_setup setup = {
      .registry = &k->registry,
      .shared = k->shared,
      .sandbox = &k->sandbox,
      .device = k->mount.device,
      .init = k->init,
      .init_size = k->init_size,
      .threads = thread_count(k),
      .open_files = k->open_files,
      .keeper = keeper,
      .ready = ready,
  };
  cfs_keeper_close_private(k);
  cfs_worker_run(&setup);
}

/* One that died before it served will most likely do so again. One that served may have been killed by
 * anything, and every client waits for the next; only a long row of those is slowed down. */
static void delay_next(struct cfs_keeper *k, bool served)
{
  unsigned free = served ? QUICK_FREE_SERVED : QUICK_FREE;
  uint64_t wait = 0;
  if (k->quick_deaths > free) {
    unsigned doublings = k->quick_deaths - free - 1;
    wait = doublings > 7 ? BACKOFF_MAX : BACKOFF_FIRST << doublings;
    if (wait > BACKOFF_MAX)
      wait = BACKOFF_MAX;
    if (served && wait > BACKOFF_SERVED)
      wait = BACKOFF_SERVED;
  }
  k->next_start = cfs_now() + wait;
}

static void note_failure(struct cfs_keeper *k)
{
  k->quick_deaths++;
  delay_next(k, false);
}

void cfs_nursery_start(struct cfs_keeper *k)
{
  int ends[2];
  pid_t keeper = getpid();
  /* An unmounted connection would kill every worker at once: it must not be taken for a crash. */
  if (cfs_connection_gone(k->mount.device)) {
    k->done = true;
    return;
  }
  if (pipe2(ends, O_CLOEXEC) < 0) {
    note_failure(k);
    return;
  }
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    become_worker(k, keeper, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    note_failure(k);
    return;
  }
  k->worker = pid;
  k->worker_ready = ends[0];
  k->worker_start = k->quiet_since = cfs_now();
  k->next_check = k->worker_start + CHECK_EVERY;
  atomic_store(&k->shared->worker, pid);
}

int cfs_nursery_await(struct cfs_keeper *k, int ms)
{
  char byte;
  struct pollfd p = {.fd = k->worker_ready, .events = POLLIN};
  if (!k->worker)
    return -EPIPE;
  int r;
  do
    r = poll(&p, 1, ms);
  while (r < 0 && errno == EINTR);
  if (r <= 0)
    return r == 0 ? -ETIMEDOUT : -errno;
  ssize_t n = read(k->worker_ready, &byte, 1);
  close(TAKE_FD(k->worker_ready));
  return n == 1 ? 0 : -EPIPE;
}

static void poison(struct cfs_keeper *k, uint64_t unique)
{
  for (size_t i = 0; i < CFS_POISONED_MAX; i++) {
    uint64_t none = 0;
    if (atomic_compare_exchange_strong(&k->shared->poisoned[i], &none, unique))
      return;
  }
  atomic_store(&k->shared->poisoned[unique % CFS_POISONED_MAX], unique);
}

static void blame(struct cfs_keeper *k, uint64_t unique)
{
  struct cfs_death *place = &k->deaths[0];
  for (size_t i = 0; i < CFS_DEATHS_MAX; i++) {
    struct cfs_death *d = &k->deaths[i];
    if (d->unique == unique) {
      place = d;
      break;
    }
    if (d->unique < place->unique) /* uniques grow: the smallest is the oldest */
      place = d;
  }
  if (place->unique != unique)
    *place = (struct cfs_death){.unique = unique};
  if (++place->count >= DEATHS_ALLOWED)
    poison(k, unique);
}

void cfs_nursery_bury(struct cfs_keeper *k, bool ours)
{
  uint64_t life = cfs_now() - k->worker_start;
  for (size_t i = 0; i < CFS_THREADS_MAX; i++) {
    uint64_t unique = atomic_exchange(&k->shared->threads[i].unique, 0);
    if (unique && !ours)
      blame(k, unique);
  }
  bool served = k->worker_ready < 0;
  k->worker = 0;
  atomic_store(&k->shared->worker, 0);
  if (k->worker_ready >= 0)
    close(TAKE_FD(k->worker_ready));
  if (ours) {
    k->next_start = 0;
    return;
  }
  atomic_fetch_add(&k->shared->restarts, 1);
  k->quick_deaths = life < QUICK_LIFE ? k->quick_deaths + 1 : 0;
  delay_next(k, served);
}

static void end_worker(struct cfs_keeper *k, bool ours)
{
  kill(k->worker, SIGKILL);
  /* A thread that waits for a broken disk may take long to die; it will not answer anything any more, and
   * nobody need wait for it. */
  for (int ms = 0; ms < DYING_MAX_MS && waitpid(k->worker, NULL, WNOHANG) == 0; ms++)
    poll(NULL, 0, 1);
  cfs_nursery_bury(k, ours);
}

void cfs_nursery_kill(struct cfs_keeper *k)
{
  if (k->worker)
    end_worker(k, true);
}

static bool thread_hangs(const struct cfs_keeper *k, uint64_t now)
{
  for (size_t i = 0; i < CFS_THREADS_MAX; i++) {
    const struct cfs_shared_thread *t = &k->shared->threads[i];
    uint64_t since = atomic_load(&t->since);
    if (atomic_load(&t->unique) && now > since && now - since > BUSY_MAX)
      return true;
  }
  return false;
}

/* With every thread at work, on a slow disk perhaps, requests may well lie unread. */
static bool thread_is_free(const struct cfs_keeper *k)
{
  for (unsigned i = 0; i < thread_count(k); i++)
    if (!atomic_load(&k->shared->threads[i].unique))
      return true;
  return false;
}

/* Whether a line of /proc/PID/status says that the process is a zombie, or has SIGKILL coming to it. */
static bool says_dying(const char *line)
{
  static const char zombie[] = "State:\tZ", pending[] = "SigPnd:";
  if (strncmp(line, zombie, strlen(zombie)) == 0)
    return true;
  return strncmp(line, pending, strlen(pending)) == 0 &&
         (strtoull(line + strlen(pending), NULL, 16) & (1ull << (SIGKILL - 1)));
}

/* Killed, but not dead: one of its threads waits for a disk or a server that does not answer. */
static bool is_dying(pid_t pid)
{
  char path[32], line[128];
  bool dying = false;
  snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
  cleanup_fclose FILE *f = fopen(path, "re");
  while (f && !dying && fgets(line, sizeof(line), f))
    dying = says_dying(line);
  return dying;
}

/* A stopped or hung process is not a dead one, so nothing but the lack of progress tells. */
void cfs_nursery_check(struct cfs_keeper *k)
{
  uint64_t now = cfs_now(), taken = atomic_load(&k->shared->taken);
  if (now < k->next_check || !k->worker)
    return;
  k->next_check = now + CHECK_EVERY;
  if (taken != k->last_taken || !thread_is_free(k) || !cfs_connection_waiting(k->mount.device))
    k->quiet_since = now;
  k->last_taken = taken;
  if (!thread_hangs(k, now) && !is_dying(k->worker) && now - k->quiet_since <= QUIET_MAX)
    return;
  end_worker(k, false);
}
