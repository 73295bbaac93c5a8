/* SPDX-License-Identifier: MIT */

/* The spare: a sleeping copy of the keeper that becomes the keeper when that one dies. POSIX locks are not
 * inherited by fork, and the kernel gives a dead process's lock to exactly one waiter, so the lock alone says
 * who the keeper is. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/connection.h"
#include "fs/keeper_private.h"

#define SPARE_NAME     "cudafs-spare"
#define WORKER_NAME    "cudafs-worker"
#define RESPAWN_DELAY  (200 * CFS_MS)
#define DEATH_PATIENCE 5000

static int take_lock(int fd, int command)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  int r;
  do
    r = fcntl(fd, command, &lock);
  while (r < 0 && errno == EINTR);
  return r < 0 ? -errno : 0;
}

int cfs_spare_prepare(struct cfs_keeper *k)
{
  k->lock = memfd_create("cudafs-keeper", MFD_CLOEXEC);
  return k->lock < 0 ? -errno : take_lock(k->lock, F_SETLK);
}

/* A number may belong to somebody else by now. */
static bool has_name(pid_t pid, const char *name)
{
  char path[32], comm[32] = "";
  snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
  return n > 0 && strncmp(comm, name, strlen(name)) == 0 && comm[strlen(name)] == '\n';
}

/* Ends a process that is not our child, and waits until it is dead: two workers must never serve at once. */
static void end_stranger(pid_t pid, const char *name)
{
  cleanup_close int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
  if (fd < 0 || !has_name(pid, name))
    return;
  syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  while (poll(&p, 1, DEATH_PATIENCE) < 0 && errno == EINTR)
    ;
}

static void take_over(struct cfs_keeper *k)
{
  uint64_t present = atomic_load(&k->shared->succession);
  if (k->succession < present)
    _exit(1);
  /* Two steps: a keeper that died in the middle of a replacement may have left a spare that is one ahead. */
  k->succession = (k->succession > present ? k->succession : present) + 2;
  atomic_store(&k->shared->succession, k->succession);
  prctl(PR_SET_NAME, "cudafs-keeper");
  for (size_t i = 0; i < 2; i++) {
    pid_t other = atomic_exchange(&k->shared->spares[i], 0);
    if (other != getpid())
      end_stranger(other, SPARE_NAME);
  }
  /* Its parent's death kills it too, but perhaps not yet. */
  end_stranger(atomic_load(&k->shared->worker), WORKER_NAME);
  cfs_nursery_bury(k, false);
  atomic_store(&k->shared->keeper, getpid());
  cfs_state_write(&k->state, k->mount.path, getpid());
  /* The dead keeper may have been in the middle of a reload. */
  if (cfs_connection_expire(k->mount.device) < 0)
    cfs_connection_expire_root(k->mount.device);
}

static _Noreturn void become_spare(struct cfs_keeper *k)
{
  prctl(PR_SET_NAME, SPARE_NAME);
  setpgid(0, 0); /* a terminal's signals are for the keeper */
  cfs_doorman_dismiss_all(k);
  if (k->worker_ready >= 0)
    close(TAKE_FD(k->worker_ready));
  k->worker = k->spare = k->warmer = k->prober = 0;
  if (take_lock(k->lock, F_SETLKW) < 0)
    _exit(1);
  take_over(k);
  _exit(cfs_keeper_live(k) < 0);
}

static pid_t fork_spare(struct cfs_keeper *k, size_t place, uint64_t succession)
{
  pid_t pid = fork();
  if (pid == 0) {
    k->succession = succession;
    become_spare(k);
  }
  if (pid > 0)
    atomic_store(&k->shared->spares[place], pid);
  return pid > 0 ? pid : 0;
}

static void end_child(pid_t pid)
{
  if (pid <= 0)
    return;
  kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
}

void cfs_spare_start(struct cfs_keeper *k)
{
  if (k->spare || k->stopping || k->done || !k->announced || cfs_now() < k->spare_due)
    return;
  k->spare = fork_spare(k, 0, k->succession);
  k->spare_due = cfs_now() + RESPAWN_DELAY;
}

void cfs_spare_replace(struct cfs_keeper *k)
{
  pid_t old = k->spare;
  /* The new one first: at no moment is there none. Whoever inherits ends the other. */
  k->spare = 0;
  pid_t new = fork_spare(k, 1, k->succession + 1);
  k->succession++;
  atomic_store(&k->shared->succession, k->succession);
  end_child(old);
  atomic_store(&k->shared->spares[0], new);
  atomic_store(&k->shared->spares[1], 0);
  k->spare = new;
}

void cfs_spare_bury(struct cfs_keeper *k)
{
  k->spare = 0;
  atomic_store(&k->shared->spares[0], 0);
  /* Not at once, so that whoever ends all processes of a mount one by one succeeds. */
  k->spare_due = cfs_now() + RESPAWN_DELAY;
}

void cfs_spare_end(struct cfs_keeper *k)
{
  end_child(k->spare);
  k->spare = 0;
  atomic_store(&k->shared->spares[0], 0);
}
