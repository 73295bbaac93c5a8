/* SPDX-License-Identifier: MIT */

/* Taking a mount away from outside its keeper. */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/client.h"
#include "fs/mount.h"
#include "fs/mountinfo.h"
#include "fs/why.h"

#define STEP_MS        10
#define BUSY_PATIENCE  300  /* our own helpers, and clients that are just closing */
#define LEAVE_PATIENCE 5000 /* until the keeper is gone */
#define HOLDERS_SHOWN  5

static void pause_ms(long ms)
{
  struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static bool on_device(int dir, const char *name, const struct cfs_place *place)
{
  struct statx st;
  return statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) == 0 &&
         st.stx_dev_major == place->dev_major && st.stx_dev_minor == place->dev_minor;
}

static bool opens(int process, const struct cfs_place *place)
{
  int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_closedir DIR *d = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *e;
  while (d && (e = readdir(d)))
    if (e->d_name[0] != '.' && on_device(fd, e->d_name, place))
      return true;
  return false;
}

/* A line of maps: ADDRESSES PERMISSIONS OFFSET MAJOR:MINOR INODE PATH */
static bool maps_from(const char *line, const struct cfs_place *place)
{
  uint32_t dev_major, dev_minor;
  for (int i = 0; i < 3; i++) {
    line += strcspn(line, " ");
    line += strspn(line, " ");
  }
  return cfs_device_parse(line, 16, &dev_major, &dev_minor) && dev_major == place->dev_major &&
         dev_minor == place->dev_minor;
}

static bool maps(int process, const struct cfs_place *place)
{
  char line[4352];
  int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
  cleanup_fclose FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
  while (f && fgets(line, sizeof(line), f))
    if (maps_from(line, place))
      return true;
  return false;
}

static bool uses(int process, const struct cfs_place *place)
{
  return on_device(process, "cwd", place) || on_device(process, "exe", place) || on_device(process, "root", place) ||
         opens(process, place) || maps(process, place);
}

static void add_holder(char *text, size_t size, int process, const char *pid)
{
  char name[32] = "?";
  cleanup_close int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
  if (n > 0)
    name[n] = '\0';
  name[strcspn(name, "\n")] = '\0';
  size_t at = strlen(text);
  snprintf(text + at, size - at, "%s%s (%s)", at ? ", " : "", name, pid);
}

/* Who uses the mount, as far as this user may see. */
static void find_holders(const struct cfs_place *place, char *text, size_t size)
{
  cleanup_closedir DIR *proc = opendir("/proc");
  unsigned count = 0;
  struct dirent *e;
  text[0] = '\0';
  while (proc && count < HOLDERS_SHOWN && (e = readdir(proc))) {
    if (!isdigit((unsigned char)e->d_name[0]))
      continue;
    cleanup_close int process = openat(dirfd(proc), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0 || !uses(process, place))
      continue;
    add_holder(text, size, process, e->d_name);
    count++;
  }
}

static int explain_busy(const struct cfs_place *place, char **ret_why)
{
  char holders[512];
  find_holders(place, holders, sizeof(holders));
  if (!holders[0])
    return cfs_why(ret_why, -EBUSY, "it is in use");
  return cfs_why(ret_why, -EBUSY, "it is in use by %s", holders);
}

static int detach(const struct cfs_place *place, bool lazy, char **ret_why)
{
  int r = -EBUSY;
  for (int waited = 0; r == -EBUSY && waited <= BUSY_PATIENCE; waited += STEP_MS) {
    if (waited)
      pause_ms(STEP_MS);
    r = cfs_mount_detach(place->path, place->dev_major, place->dev_minor, lazy, ret_why);
  }
  return r == -EBUSY ? explain_busy(place, ret_why) : r;
}

static bool is_mounted(const struct cfs_place *place)
{
  cleanup_mountinfo struct cfs_mountinfo_reader reader = {0};
  struct cfs_mountinfo m;
  if (cfs_mountinfo_open(&reader) < 0)
    return false;
  while (cfs_mountinfo_next(&reader, &m) > 0)
    if (m.dev_major == place->dev_major && m.dev_minor == place->dev_minor)
      return true;
  return false;
}

/* A bind mount elsewhere keeps the filesystem, and then its keeper has reason to stay. */
static void await_keeper(const struct cfs_place *place, int keeper)
{
  /* A pidfd tells of a zombie too, which may wait long for a slow init. */
  struct pollfd p = {.fd = keeper, .events = POLLIN};
  for (int waited = 0; waited < LEAVE_PATIENCE; waited += STEP_MS)
    if (poll(&p, 1, STEP_MS) != 0 || is_mounted(place))
      return;
}

/* What a keeper that died without cleaning up has left. */
static void clear_state(const struct cfs_place *place, cfs_state *state)
{
  if (!is_mounted(place))
    cfs_state_remove(state);
}

/* A pidfd of the keeper, or -1. */
static int keeper_of(const char *dir)
{
  struct cfs_status status;
  int r = cfs_status_read(dir, &status);
  int fd = r == 0 && status.keeper > 0 ? (int)syscall(SYS_pidfd_open, status.keeper, 0) : -1;
  cfs_status_done(&status);
  return fd;
}

int cfs_umount(const char *dir, bool lazy, char **ret_why)
{
  struct cfs_place place;
  struct cfs_control_request settle = {.magic = CFS_CONTROL_MAGIC, .verb = CFS_CONTROL_SETTLE};
  cleanup_free struct cfs_control_reply *reply = malloc(sizeof(*reply));
  cfs_state state = CFS_STATE_EMPTY;
  int r = reply ? cfs_place_find(dir, &place) : -ENOMEM;
  if (r < 0)
    return cfs_why(ret_why, r, "%s", strerror(-r));
  if (!place.ours || !place.is_root) {
    r = cfs_why(ret_why, -EINVAL, place.ours ? "it lies inside the cudafs mount %s" : "it is not a cudafs mount",
                place.path);
    cfs_place_done(&place);
    return r;
  }
  cleanup_close int keeper = keeper_of(dir);
  bool alive = cfs_client_ask(&place, &settle, NULL, 0, reply, &state) == 0;
  r = detach(&place, lazy || !alive, ret_why);
  if (r == 0 && keeper >= 0 && !lazy)
    await_keeper(&place, keeper);
  if (r == 0 && !alive && state.dir)
    clear_state(&place, &state);
  cfs_state_done(&state);
  cfs_place_done(&place);
  return r;
}
