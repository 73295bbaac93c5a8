/* SPDX-License-Identifier: MIT */
#include "overlays/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/trailer.h"

enum {
  GATE_PAUSE_MS = 1, /* the gate is held for microseconds at a time; a slow poll would miss every gap */
  LEASE_PAUSE_MS = 20,
  TELL_MS = 1000,
};

static long long now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct waiting {
  const struct cfs_lease_wait *how;
  long long started, told;
};

static void tell(struct waiting *w)
{
  long long now = now_ms();
  if (!w->how->waiting || now - w->told < TELL_MS)
    return;
  w->told = now;
  w->how->waiting(w->how->data, (unsigned)((now - w->started) / 1000));
}

/* flock cannot be given a time limit without signals, hence the polling. */
static int lock(int fd, struct waiting *w, int pause_ms)
{
  while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return -errno;
    if (w->how->stop && *w->how->stop)
      return -EINTR;
    if (now_ms() - w->started >= (long long)w->how->seconds * 1000)
      return -ETIMEDOUT;
    tell(w);
    nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000L}, NULL);
  }
  return 0;
}

static int open_and_lock(const char *root, const char *name, struct waiting *w, int pause_ms, int *ret_fd)
{
  cleanup_free char *path = cfs_path_join(root, name);
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  int r = lock(fd, w, pause_ms);
  if (r == 0)
    *ret_fd = TAKE_FD(fd);
  return r;
}

int cfs_lease_take(const char *root, const struct cfs_lease_wait *wait, struct cfs_lease *ret, cfs_error **err)
{
  cleanup_lease struct cfs_lease held = {-1, -1};
  long long start = now_ms();
  struct waiting w = {wait, start, start};
  int r = open_and_lock(root, CFS_GATE_PATH, &w, GATE_PAUSE_MS, &held.gate);
  if (r == 0)
    r = open_and_lock(root, CFS_LEASE_PATH, &w, LEASE_PAUSE_MS, &held.lease);
  if (r == -ETIMEDOUT)
    return cfs_error_set(err, CFS_FAILED, ETIMEDOUT, root,
                         "wait longer with --wait SECONDS, or change the tree under them with --now",
                         "compilers still run in it after %u s", wait->seconds);
  if (r == -EINTR)
    return cfs_error_set(err, CFS_FAILED, EINTR, root, NULL, "interrupted while waiting for running compilers");
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, root, NULL, "its locks cannot be taken (%s)", strerror(-r));
  *ret = (struct cfs_lease){.gate = TAKE_FD(held.gate), .lease = TAKE_FD(held.lease)};
  return 0;
}

void cfs_lease_release(struct cfs_lease *lease)
{
  /* The lease first: a compiler that waits at the gate must not find the lease taken behind it. */
  cfs_cleanup_close(&lease->lease);
  cfs_cleanup_close(&lease->gate);
  lease->lease = lease->gate = -1;
}
