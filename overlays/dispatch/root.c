/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/trailer.h"

#define MAX_LINKS 40
#define DELETED   " (deleted)"

static const char *started_path(void)
{
  return (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr): the auxiliary vector holds a pointer
}

int cfs_root_open_self(void)
{
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0 && started_path())
    fd = open(started_path(), O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

static char *read_link(const char *path)
{
  char target[PATH_MAX];
  ssize_t n = readlink(path, target, sizeof(target));
  return n <= 0 || (size_t)n == sizeof(target) ? NULL : cfs_strndup(target, (size_t)n);
}

/* All before the last slash: "/" of "/a", "." of "a". */
static char *folder_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash)
    return cfs_strdup(".");
  return slash == path ? cfs_strdup("/") : cfs_strndup(path, (size_t)(slash - path));
}

/* The kernel's own name of a folder, by going there and back: works without /proc. */
static char *name_folder(const char *path)
{
  char name[PATH_MAX];
  cleanup_close int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (here < 0 || chdir(path) < 0)
    return NULL;
  /* Outside of the process's root it reads "(unreachable)/...". */
  char *found = getcwd(name, sizeof(name)) && name[0] == '/' ? cfs_strdup(name) : NULL;
  if (fchdir(here) < 0)
    return free(found), NULL;
  return found;
}

char *cfs_root_resolve(const char *path)
{
  char *at = cfs_strdup(path);
  for (int links = 0; links <= MAX_LINKS; links++) {
    cleanup_free char *folder = folder_of(at);
    cleanup_free char *target = read_link(at);
    if (!target) {
      cleanup_free char *real = name_folder(folder);
      const char *slash = strrchr(at, '/');
      char *whole = real ? cfs_path_join(real, slash ? slash + 1 : at) : NULL;
      free(at);
      return whole;
    }
    char *next = target[0] == '/' ? cfs_strdup(target) : cfs_path_join(folder, target);
    free(at);
    at = next;
  }
  free(at);
  return NULL;
}

/* /proc/self/exe says " (deleted)" as soon as the kernel drops the entry, which a reload makes it do. */
static char *executable_path(void)
{
  char *path = read_link("/proc/self/exe");
  struct stat st;
  size_t size = path ? strlen(path) : 0, cut = strlen(DELETED);
  if (size > cut && strcmp(path + size - cut, DELETED) == 0 && lstat(path, &st) < 0)
    path[size - cut] = '\0';
  return path;
}

static char *candidate(const cfs_routing *r, int which)
{
  if (which == 2)
    return cfs_strdup(r->root);
  cleanup_free char *tool = which == 0 ? executable_path() : started_path() ? cfs_root_resolve(started_path()) : NULL;
  if (!tool || tool[0] != '/')
    return NULL;
  cleanup_free char *bin = folder_of(tool);
  return folder_of(bin);
}

/* One line of 64 hex digits. */
static bool read_id(const char *path, char id[65])
{
  char text[66];
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return false;
  ssize_t n = read(fd, text, sizeof(text));
  if (n != 65 || text[64] != '\n')
    return false;
  memcpy(id, text, 64);
  id[64] = '\0';
  return strspn(id, "0123456789abcdef") == 64;
}

enum cfs_root_state cfs_root_check(const cfs_routing *r, int self, const char *root)
{
  char id[65];
  struct stat mine, there;
  cleanup_free char *path = cfs_path_join(root, CFS_ID_PATH);
  if (!read_id(path, id))
    return CFS_ROOT_NONE;
  if (strcmp(id, r->id) == 0)
    return CFS_ROOT_HERE;
  /* Another tree altogether lies on another device: never run its tools. */
  if (fstat(self, &mine) < 0 || stat(path, &there) < 0 || mine.st_dev != there.st_dev)
    return CFS_ROOT_NONE;
  return CFS_ROOT_CHANGED;
}

enum cfs_root_state cfs_root_find(const cfs_routing *r, int self, char **ret_root)
{
  cleanup_free char *changed = NULL;
  *ret_root = NULL;
  for (int which = 0; which < 3; which++) {
    char *root = candidate(r, which);
    if (!root)
      continue;
    enum cfs_root_state state = cfs_root_check(r, self, root);
    if (state == CFS_ROOT_HERE) {
      *ret_root = root;
      return state;
    }
    if (state == CFS_ROOT_CHANGED && !changed)
      changed = TAKE_PTR(root);
    free(root);
  }
  *ret_root = TAKE_PTR(changed);
  return *ret_root ? CFS_ROOT_CHANGED : CFS_ROOT_NONE;
}
