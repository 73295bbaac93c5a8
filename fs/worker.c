/* SPDX-License-Identifier: MIT */
#include "fs/worker.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fs/connection.h"
#include "fs/ops.h"

#define THREAD_STACK ((size_t)256 << 10)

struct worker {
  const struct cfs_worker_setup *setup;
  struct fuse_session *session;
  struct cfs_ops ops;
  cfs_content content;
};

struct thread {
  struct worker *worker;
  struct cfs_shared_thread *shared;
};

/* The keeper's death must be ours; if it died before the request took effect, we would not hear of it. */
static void follow_keeper(pid_t keeper)
{
  sigset_t none;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper)
    _exit(1);
  prctl(PR_SET_NAME, "cudafs-worker");
  setpgid(0, 0); /* a terminal's signals are for the keeper */
  /* A core dump would delay the death notice by tens of milliseconds, and every client waits for it. */
  prctl(PR_SET_DUMPABLE, 0);
  for (int s = 1; s < _NSIG; s++)
    signal(s, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A session that believes it has just been mounted: it reads INIT from memory. Only the first worker's
 * answer counts; the kernel refuses later ones with ENOENT, which libfuse ignores. */
static int open_session(struct worker *w)
{
  char name[] = "cudafs", path[32];
  char *argv[] = {name, NULL};
  struct fuse_args args = FUSE_ARGS_INIT(1, argv);
  w->session = fuse_session_new(&args, cfs_ops_table(), sizeof(struct fuse_lowlevel_ops), &w->ops);
  if (!w->session)
    return -EIO;
  snprintf(path, sizeof(path), "/dev/fd/%d", w->setup->device);
  if (fuse_session_mount(w->session, path) < 0)
    return -EIO;
  void *copy = malloc(w->setup->init_size);
  if (!copy)
    return -ENOMEM;
  memcpy(copy, w->setup->init, w->setup->init_size);
  struct fuse_buf buf = {.mem = copy, .size = w->setup->init_size};
  fuse_session_process_buf(w->session, &buf);
  free(copy);
  return fuse_session_exited(w->session) ? -EPROTO : 0;
}

static bool is_poisoned(const struct cfs_shared *s, uint64_t unique)
{
  for (size_t i = 0; i < CFS_POISONED_MAX; i++)
    if (atomic_load_explicit(&s->poisoned[i], memory_order_relaxed) == unique)
      return true;
  return false;
}

static void serve_one(struct thread *t, const struct fuse_buf *buf)
{
  const struct fuse_in_header *header = buf->mem;
  uint64_t unique = header->unique & ~CFS_UNIQUE_RESENT;
  struct worker *w = t->worker;
  atomic_fetch_add_explicit(&w->setup->shared->taken, 1, memory_order_relaxed);
  atomic_store_explicit(&t->shared->since, cfs_now(), memory_order_relaxed);
  atomic_store_explicit(&t->shared->unique, unique, memory_order_release);
  if (is_poisoned(w->setup->shared, unique))
    cfs_connection_fail(w->setup->device, header->unique, header->opcode, EIO);
  else
    fuse_session_process_buf(w->session, buf);
  atomic_store_explicit(&t->shared->unique, 0, memory_order_release);
}

static void *serve(void *data)
{
  struct thread *t = data;
  struct fuse_buf buf = {.mem = NULL};
  for (;;) {
    int n = fuse_session_receive_buf(t->worker->session, &buf);
    if (n == -EINTR || n == -EAGAIN)
      continue;
    if (n <= 0)
      _exit(n == 0 ? 0 : 1);
    serve_one(t, &buf);
  }
  return NULL;
}

static struct thread thread_of(struct worker *w, unsigned i)
{
  return (struct thread){.worker = w, .shared = &w->setup->shared->threads[i]};
}

/* All but the first, which is the caller's own. */
static int start_threads(struct worker *w, struct thread *threads)
{
  pthread_attr_t attr;
  pthread_t id;
  int r = pthread_attr_init(&attr);
  if (r == 0)
    r = pthread_attr_setstacksize(&attr, THREAD_STACK);
  for (unsigned i = 1; r == 0 && i < w->setup->threads; i++) {
    threads[i] = thread_of(w, i);
    r = pthread_create(&id, &attr, serve, &threads[i]);
  }
  return -r;
}

_Noreturn void cfs_worker_run(const struct cfs_worker_setup *setup)
{
  struct thread threads[CFS_THREADS_MAX];
  struct worker w = {.setup = setup};
  follow_keeper(setup->keeper);
  w.ops = (struct cfs_ops){.registry = setup->registry, .shared = setup->shared, .content = &w.content};
  if (cfs_content_init(&w.content, setup->registry, setup->open_files) < 0 || open_session(&w) < 0)
    _exit(2);
  /* Before the threads: a request that is sent again must find a session that has seen INIT. Older kernels
   * answer EINVAL, and then what the last worker had read is lost to its client. */
  cfs_connection_resend(setup->device);
  cfs_sandbox_enter_worker(setup->sandbox);
  threads[0] = thread_of(&w, 0);
  if (start_threads(&w, threads) < 0)
    _exit(2);
  if (write(setup->ready, "r", 1) < 0)
    _exit(2);
  serve(&threads[0]);
  _exit(0);
}
