/* SPDX-License-Identifier: MIT */

/* What is mounted where, without being held up by a server that does not answer. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/probe.h"

#define ANSWER_MS 3000

void cfs_place_done(struct cfs_place *p)
{
  free(p->path);
  *p = (struct cfs_place){0};
}

/* The path made absolute; links are resolved as far as that is possible without entering a dead mount. */
static char *absolute(const char *dir)
{
  char *whole = realpath(dir, NULL);
  if (whole || errno == ENOENT || errno == ENOTDIR)
    return whole;
  cleanup_free char *copy = strdup(dir);
  size_t n = copy ? strlen(copy) : 0;
  while (n > 1 && copy[n - 1] == '/')
    copy[--n] = '\0';
  char *slash = copy ? strrchr(copy, '/') : NULL;
  if (!slash)
    return NULL;
  *slash = '\0';
  cleanup_free char *parent = absolute(copy[0] ? copy : "/");
  if (!parent || asprintf(&whole, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, slash + 1) < 0)
    return NULL;
  return whole;
}

static bool lies_in(const char *path, const char *root)
{
  size_t n = strlen(root);
  return n == 1 || (strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

static int keep_place(struct cfs_place *p, const struct cfs_mountinfo *m)
{
  char *path = strdup(m->path);
  if (!path)
    return -ENOMEM;
  free(p->path);
  *p = (struct cfs_place){
      .path = path,
      .ours = cfs_mountinfo_is_ours(m),
      .dev_major = m->dev_major,
      .dev_minor = m->dev_minor,
      .user = m->user,
  };
  return 0;
}

/* The mount that the path lies in: the deepest whose path begins it, the last mounted of those. When the
 * device is known it must be that one. */
static int find_place(const char *path, const struct statx *st, struct cfs_place *ret)
{
  cleanup_mountinfo struct cfs_mountinfo_reader reader = {0};
  struct cfs_mountinfo m;
  int r = cfs_mountinfo_open(&reader);
  while (r == 0 && cfs_mountinfo_next(&reader, &m) > 0) {
    if (!lies_in(path, m.path) || (ret->path && strlen(m.path) < strlen(ret->path)))
      continue;
    if (st && (m.dev_major != st->stx_dev_major || m.dev_minor != st->stx_dev_minor))
      continue;
    r = keep_place(ret, &m);
  }
  return r < 0 ? r : ret->path ? 0 : -ENODEV;
}

int cfs_place_find(const char *dir, struct cfs_place *ret)
{
  struct statx st;
  *ret = (struct cfs_place){0};
  /* DONT_SYNC is answered from the cache, whether or not a server answers. */
  bool known = statx(AT_FDCWD, dir, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) == 0;
  if (!known && (errno == ENOENT || errno == ENOTDIR))
    return -errno;
  if (known && !S_ISDIR(st.stx_mode) && (st.stx_mask & STATX_TYPE))
    return -ENOTDIR;
  cleanup_free char *path = absolute(dir);
  if (!path)
    return -ENOENT;
  int r = find_place(path, known ? &st : NULL, ret);
  if (r == 0)
    ret->is_root = strcmp(ret->path, path) == 0;
  return r;
}

static _Noreturn void ask_server(const char *path, int answer)
{
  struct statfs fs;
  int error = statfs(path, &fs) < 0 ? errno : 0;
  if (write(answer, &error, sizeof(error)) < 0)
    _exit(1);
  _exit(0);
}

/* statfs is never answered from a cache. In a child, which may be left behind when the server hangs. */
bool cfs_place_answers(const char *path)
{
  int ends[2], error = 0;
  if (pipe2(ends, O_CLOEXEC) < 0)
    return false;
  cleanup_close int in = ends[0];
  /* Twice, so that init and not the caller waits for it. */
  pid_t pid = fork();
  if (pid == 0) {
    if (fork() == 0)
      ask_server(path, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  struct pollfd p = {.fd = in, .events = POLLIN};
  if (pid < 0 || poll(&p, 1, ANSWER_MS) <= 0 || read(in, &error, sizeof(error)) != (ssize_t)sizeof(error))
    return false;
  return error != ENOTCONN && error != ECONNABORTED;
}

int cfs_mount_probe(const char *dir, enum cfs_mount_state *ret_state, char **ret_root)
{
  struct cfs_place place;
  int r = cfs_place_find(dir, &place);
  if (r < 0)
    return r;
  if (!place.ours)
    *ret_state = place.is_root ? CFS_MOUNT_FOREIGN : CFS_MOUNT_NONE;
  else
    *ret_state = cfs_place_answers(place.path) ? CFS_MOUNT_HEALTHY : CFS_MOUNT_DEAD;
  if (ret_root)
    *ret_root = *ret_state == CFS_MOUNT_NONE ? NULL : TAKE_PTR(place.path);
  cfs_place_done(&place);
  return 0;
}

static int add_mount(struct cfs_mount_entry **entries, int count, const struct cfs_mountinfo *m)
{
  struct cfs_mount_entry *wider = reallocarray(*entries, (size_t)count + 1, sizeof(*wider));
  if (!wider)
    return -ENOMEM;
  *entries = wider;
  wider[count] = (struct cfs_mount_entry){
      .path = strdup(m->path),
      .dev_major = m->dev_major,
      .dev_minor = m->dev_minor,
      .user = m->user,
  };
  return wider[count].path ? 0 : -ENOMEM;
}

static bool is_listed(const struct cfs_mount_entry *entries, int count, const struct cfs_mountinfo *m)
{
  for (int i = 0; i < count; i++)
    if (entries[i].dev_major == m->dev_major && entries[i].dev_minor == m->dev_minor)
      return true;
  return false;
}

int cfs_mount_list(struct cfs_mount_entry **ret_entries)
{
  cleanup_mountinfo struct cfs_mountinfo_reader reader = {0};
  struct cfs_mount_entry *entries = NULL;
  struct cfs_mountinfo m;
  int count = 0, r = cfs_mountinfo_open(&reader);
  while (r == 0 && cfs_mountinfo_next(&reader, &m) > 0) {
    if (!cfs_mountinfo_is_ours(&m) || is_listed(entries, count, &m))
      continue;
    r = add_mount(&entries, count, &m);
    count += r == 0;
  }
  if (r < 0) {
    cfs_mount_list_free(entries, count);
    return r;
  }
  for (int i = 0; i < count; i++)
    entries[i].state = cfs_place_answers(entries[i].path) ? CFS_MOUNT_HEALTHY : CFS_MOUNT_DEAD;
  *ret_entries = entries;
  return count;
}

void cfs_mount_list_free(struct cfs_mount_entry *entries, int count)
{
  for (int i = 0; i < count; i++)
    free(entries[i].path);
  free(entries);
}
