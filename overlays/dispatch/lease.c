/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/trailer.h"

/* Out of the way of scripts, which like to number their descriptors 3 to 9. */
#define LOW_LIMIT 100

static int lock(int fd, int operation)
{
  int r;
  do
    r = flock(fd, operation);
  while (r < 0 && errno == EINTR);
  return r < 0 ? -errno : 0;
}

/* The variable may be stale, or name what is by now another file. */
static bool is_inherited(const char *text, const char *path)
{
  struct stat mine, lease;
  char *end;
  errno = 0;
  long fd = strtol(text, &end, 10);
  if (end == text || *end || errno || fd < 3 || fd > 1 << 20)
    return false;
  return fstat((int)fd, &mine) == 0 && stat(path, &lease) == 0 && mine.st_dev == lease.st_dev &&
         mine.st_ino == lease.st_ino;
}

static int open_lease(const char *path)
{
  cleanup_close int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  int high = fcntl(fd, F_DUPFD, LOW_LIMIT);
  if (high >= 0)
    return high;
  /* A low RLIMIT_NOFILE: any descriptor will do. */
  high = dup(fd);
  return high < 0 ? -errno : high;
}

static void announce(int fd)
{
  char text[16];
  snprintf(text, sizeof(text), "%d", fd);
  setenv(CFS_LEASE_VARIABLE, text, 1);
}

void cfs_lease_take(const char *root)
{
  cleanup_free char *lease_path = cfs_path_join(root, CFS_LEASE_PATH);
  cleanup_free char *gate_path = cfs_path_join(root, CFS_GATE_PATH);
  const char *above = getenv(CFS_LEASE_VARIABLE);
  if (above && is_inherited(above, lease_path))
    return;
  cleanup_close int lease = open_lease(lease_path);
  if (lease < 0)
    return;
  /* A process between closed the descriptor. The one above still holds the lease if a shared lock is to be
   * had at once; waiting at the gate would then wait for ourselves. */
  if (above && lock(lease, LOCK_SH | LOCK_NB) == 0) {
    announce(TAKE_FD(lease));
    return;
  }
  cleanup_close int gate = open(gate_path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (gate >= 0)
    lock(gate, LOCK_SH);
  if (lock(lease, LOCK_SH) == 0)
    announce(TAKE_FD(lease));
}
