/* SPDX-License-Identifier: MIT */
#include "fs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "fs/serve.h"

enum { ANSWER_SECONDS = 10 };

static const char *const file_names[] = {"state", "label", "control", "state.new", "label.new"};

/* The three numbers of a line of uid_map. */
static bool read_mapping(const char *line, unsigned long numbers[3])
{
  for (int i = 0; i < 3; i++) {
    char *end;
    numbers[i] = strtoul(line, &end, 10);
    if (end == line)
      return false;
    line = end;
  }
  return true;
}

/* A user namespace calls its owner root; outside it has a name of its own, and /tmp is shared. */
static uid_t outer_user(uid_t user)
{
  unsigned long map[3]; /* inside, outside, count */
  char line[128];
  cleanup_fclose FILE *f = fopen("/proc/self/uid_map", "re");
  while (f && fgets(line, sizeof(line), f) && read_mapping(line, map))
    if (user >= map[0] && user - map[0] < map[2])
      return (uid_t)(map[1] + (user - map[0]));
  return user;
}

/* The places where a mount of that user may keep its directories, best first; each call gives the next. */
static int base_directory(unsigned which, uid_t user, char **ret)
{
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  int n = -1;
  *ret = NULL;
  switch (which) {
  case 0:
    if (user == 0)
      n = asprintf(ret, "/run/cudafs");
    break;
  case 1:
    if (runtime && runtime[0] == '/' && user == geteuid())
      n = asprintf(ret, "%s/cudafs", runtime);
    break;
  case 2:
    n = asprintf(ret, "/run/user/%u/cudafs", (unsigned)user);
    break;
  case 3:
    n = asprintf(ret, "/tmp/cudafs-%u", (unsigned)outer_user(user));
    break;
  default:
    return -ENOENT;
  }
  if (n < 0)
    *ret = NULL;
  return 0;
}

/* Nobody else may have put it there, or may put anything into it. */
static bool is_trusted(const char *dir, uid_t user)
{
  struct stat st;
  return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_uid == user || st.st_uid == 0) &&
         (st.st_mode & 022) == 0;
}

static void sweep(const char *dir)
{
  char path[512];
  for (size_t i = 0; i < sizeof(file_names) / sizeof(*file_names); i++)
    if (snprintf(path, sizeof(path), "%s/%s", dir, file_names[i]) < (int)sizeof(path))
      unlink(path);
}

/* Makers and removers of directories in one base take turns: the kernel gives the device number of a mount
 * that has just gone to the next one while the old keeper is still cleaning up. */
static int lock_base(const char *base)
{
  cleanup_close int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX) < 0)
    return -errno;
  return TAKE_FD(fd);
}

static int replace_directory(cfs_state *s, const char *base, const char *dir, mode_t mode)
{
  cleanup_close int lock = lock_base(base);
  if (lock < 0)
    return lock;
  if (is_trusted(dir, geteuid())) {
    sweep(dir);
    rmdir(dir);
  }
  if (mkdir(dir, mode) < 0)
    return -errno;
  s->fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return s->fd < 0 ? -errno : 0;
}

int cfs_state_create(cfs_state *s, uint32_t dev_major, uint32_t dev_minor)
{
  /* Others may ask for the status of root's mounts, which they can use. */
  mode_t mode = geteuid() == 0 ? 0755 : 0700;
  for (unsigned i = 0;; i++) {
    cleanup_free char *base = NULL, *dir = NULL;
    if (base_directory(i, geteuid(), &base) < 0)
      return -EACCES;
    if (!base || (mkdir(base, mode) < 0 && errno != EEXIST) || !is_trusted(base, geteuid()))
      continue;
    if (asprintf(&dir, "%s/%u:%u", base, dev_major, dev_minor) < 0)
      return -ENOMEM;
    if (replace_directory(s, base, dir, mode) == 0) {
      s->dir = TAKE_PTR(dir);
      return 0;
    }
  }
}

static int write_file(const cfs_state *s, const char *name, const void *data, size_t size)
{
  cleanup_free char *path = NULL, *temporary = NULL;
  if (asprintf(&path, "%s/%s", s->dir, name) < 0 || asprintf(&temporary, "%s/%s.new", s->dir, name) < 0)
    return -ENOMEM;
  cleanup_close int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0)
    return -errno;
  int r = 0;
  for (size_t done = 0; r == 0 && done < size;) {
    ssize_t n = write(fd, (const char *)data + done, size - done);
    if (n < 0 && errno != EINTR)
      r = -errno;
    done += n > 0 ? (size_t)n : 0;
  }
  if (r == 0 && rename(temporary, path) < 0)
    r = -errno;
  if (r < 0)
    unlink(temporary);
  return r;
}

int cfs_state_write(const cfs_state *s, const char *mountpoint, pid_t keeper)
{
  cleanup_free char *text = NULL;
  int n = asprintf(&text, "keeper %d\nmountpoint %s\n", (int)keeper, mountpoint);
  return n < 0 ? -ENOMEM : write_file(s, "state", text, (size_t)n);
}

int cfs_state_write_label(const cfs_state *s, const void *label, size_t size)
{
  return write_file(s, "label", label, size);
}

/* By way of /proc, because a socket address holds 107 characters and a runtime directory may be longer. */
static int control_address(const cfs_state *s, struct sockaddr_un *ret)
{
  int dir = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return -errno;
  *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
  snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/control", dir);
  return dir;
}

int cfs_state_listen(const cfs_state *s)
{
  struct sockaddr_un address;
  cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return -errno;
  cleanup_close int dir = control_address(s, &address);
  if (dir < 0)
    return dir;
  if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0 ||
      fchmodat(dir, "control", 0666, 0) < 0)
    return -errno;
  return TAKE_FD(fd);
}

static bool still_ours(const cfs_state *s)
{
  struct stat a, b;
  if (s->fd < 0)
    return true; /* a client clears up after a dead keeper */
  return stat(s->dir, &a) == 0 && fstat(s->fd, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

void cfs_state_remove(cfs_state *s)
{
  cleanup_free char *base = s->dir ? strdup(s->dir) : NULL;
  if (!base)
    return;
  *strrchr(base, '/') = '\0';
  cleanup_close int lock = lock_base(base);
  if (lock >= 0 && still_ours(s)) {
    sweep(s->dir);
    rmdir(s->dir);
  }
  cfs_state_done(s);
}

void cfs_state_done(cfs_state *s)
{
  free(s->dir);
  if (s->fd >= 0)
    close(s->fd);
  *s = CFS_STATE_EMPTY;
}

int cfs_state_find(uint32_t dev_major, uint32_t dev_minor, uid_t user, cfs_state *ret)
{
  for (unsigned i = 0;; i++) {
    cleanup_free char *base = NULL, *dir = NULL;
    if (base_directory(i, user, &base) < 0)
      return -ENOENT;
    if (!base)
      continue;
    if (asprintf(&dir, "%s/%u:%u", base, dev_major, dev_minor) < 0)
      return -ENOMEM;
    if (is_trusted(base, user) && is_trusted(dir, user)) {
      *ret = (cfs_state){.dir = TAKE_PTR(dir), .fd = -1};
      return 0;
    }
  }
}

int cfs_state_connect(const cfs_state *s)
{
  struct sockaddr_un address;
  cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -errno;
  /* A stopped keeper accepts by its backlog and never answers: nobody waits for it for ever. */
  const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  cleanup_close int dir = control_address(s, &address);
  if (dir < 0)
    return dir;
  if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
    return -errno;
  return TAKE_FD(fd);
}

static int read_file(const cfs_state *s, const char *name, size_t limit, char **ret, size_t *ret_size)
{
  cleanup_free char *path = NULL;
  if (asprintf(&path, "%s/%s", s->dir, name) < 0)
    return -ENOMEM;
  return cfs_file_read(path, limit, ret, ret_size);
}

int cfs_state_read(const cfs_state *s, char **ret_mountpoint, pid_t *ret_keeper)
{
  static const char first[] = "keeper ", key[] = "\nmountpoint ";
  cleanup_free char *text = NULL;
  size_t size;
  int r = read_file(s, "state", 2 * 4096, &text, &size);
  if (r < 0)
    return r;
  if (strncmp(text, first, strlen(first)) != 0)
    return -EBADMSG;
  char *path = strstr(text, key), *end, *digits = text + strlen(first);
  long keeper = strtol(digits, &end, 10);
  if (end == digits || !path || text[size - 1] != '\n')
    return -EBADMSG;
  text[size - 1] = '\0'; /* a path may hold newlines itself: it goes to the end */
  *ret_mountpoint = strdup(path + strlen(key));
  *ret_keeper = (pid_t)keeper;
  return *ret_mountpoint ? 0 : -ENOMEM;
}

int cfs_state_read_label(const cfs_state *s, char **ret_label, size_t *ret_size)
{
  return read_file(s, "label", CFS_LABEL_MAX, ret_label, ret_size);
}
