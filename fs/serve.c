/* SPDX-License-Identifier: MIT */
#include "fs/serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/keeper.h"
#include "fs/mount.h"
#include "fs/probe.h"
#include "fs/snapshot.h"
#include "fs/why.h"

struct report {
  int32_t error;
  char why[508];
};

static bool is_empty(const char *dir)
{
  cleanup_closedir DIR *d = opendir(dir);
  struct dirent *e;
  while (d && (e = readdir(d)))
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      return false;
  return true;
}

/* A mount whose server died hides the directory: it goes first. */
static int clear_dead(const char *dir, char **ret_why)
{
  struct cfs_place place;
  int r = cfs_place_find(dir, &place);
  if (r < 0)
    return r == -ENODEV ? 0 : cfs_why(ret_why, r, "%s", r == -ENOTDIR ? "it is not a directory" : strerror(-r));
  if (place.ours && place.is_root) {
    if (cfs_place_answers(place.path))
      r = cfs_why(ret_why, -EALREADY, "a cudafs mount is there already");
    else
      r = cfs_mount_detach(place.path, place.dev_major, place.dev_minor, true, NULL);
    if (r < 0 && r != -EALREADY)
      cfs_why(ret_why, r, "a dead mount is in the way and cannot be taken off: %s", strerror(-r));
  }
  cfs_place_done(&place);
  return r;
}

static int check_mountpoint(const char *dir, const struct cfs_mount_options *o, char **ret_path, char **ret_why)
{
  struct stat st;
  int r = clear_dead(dir, ret_why);
  if (r < 0)
    return r;
  cleanup_free char *path = realpath(dir, NULL);
  if (!path || stat(path, &st) < 0)
    return cfs_why(ret_why, -errno, "%s", strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return cfs_why(ret_why, -ENOTDIR, "it is not a directory");
  if (!o->nonempty && !is_empty(path))
    return cfs_why(ret_why, -ENOTEMPTY, "the directory is not empty (the option nonempty mounts over what it holds)");
  *ret_path = TAKE_PTR(path);
  return 0;
}

static int check_tree(int tree_fd, char **ret_why)
{
  cfs_snapshot *s;
  int r = cfs_snapshot_open(tree_fd, &s);
  if (r < 0)
    return cfs_why(ret_why, r, "the tree is not a valid snapshot");
  cfs_snapshot_close(s);
  return 0;
}

static void close_others(int a, int b)
{
  unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
  if (low > 3)
    syscall(SYS_close_range, 3u, low - 1, 0u);
  if (high > low + 1)
    syscall(SYS_close_range, low + 1, high - 1, 0u);
  syscall(SYS_close_range, high + 1, ~0u, 0u);
}

static void report_to_parent(void *data, int error, const char *why)
{
  int *fd = data;
  struct report report = {.error = error};
  snprintf(report.why, sizeof(report.why), "%s", why ? why : "");
  ssize_t written = write(*fd, &report, sizeof(report));
  (void)written; /* when it fails, nobody waits any longer */
  close(TAKE_FD(*fd));
}

static _Noreturn void become_daemon(struct cfs_keeper_setup *setup, int report)
{
  setsid();
  /* A second fork: the keeper is no session leader, so it can never get a terminal. */
  pid_t pid = fork();
  if (pid != 0)
    _exit(pid < 0);
  umask(022);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; null >= 0 && fd < 3; fd++)
    dup2(null, fd);
  close_others(setup->tree_fd, report);
  if (chdir("/") < 0)
    _exit(1);
  setup->report = report_to_parent;
  setup->report_data = &report;
  _exit(cfs_keeper_run(setup) < 0);
}

static int read_report(int fd, struct report *ret)
{
  size_t done = 0;
  while (done < sizeof(*ret)) {
    ssize_t n = read(fd, (char *)ret + done, sizeof(*ret) - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return -EPIPE;
    done += (size_t)n;
  }
  ret->why[sizeof(ret->why) - 1] = '\0';
  return 0;
}

static int serve_in_background(struct cfs_keeper_setup *setup, char **ret_why)
{
  struct report report;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return cfs_why(ret_why, -errno, "%s", strerror(errno));
  cleanup_close int in = ends[0];
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0)
    become_daemon(setup, ends[1]);
  close(ends[1]);
  if (pid < 0)
    return cfs_why(ret_why, -EAGAIN, "no process can be started");
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  if (read_report(in, &report) < 0)
    return cfs_why(ret_why, -EPIPE, "the server died while it was starting");
  return report.error < 0 ? cfs_why(ret_why, report.error, "%s", report.why) : 0;
}

struct foreground {
  const struct cfs_serve_options *options;
  char **ret_why;
};

static void report_here(void *data, int error, const char *why)
{
  const struct foreground *f = data;
  if (error < 0)
    cfs_why(f->ret_why, error, "%s", why ? why : strerror(-error));
  else if (f->options->on_ready)
    f->options->on_ready(f->options->on_ready_data);
}

static int serve_in_foreground(const struct cfs_keeper_setup *common, const struct cfs_serve_options *options,
                               char **ret_why)
{
  struct foreground f = {.options = options, .ret_why = ret_why};
  struct cfs_keeper_setup setup = *common;
  setup.report = report_here;
  setup.report_data = &f;
  close_others(setup.tree_fd, setup.tree_fd);
  if (chdir("/") < 0)
    return cfs_why(ret_why, -errno, "%s", strerror(errno));
  return cfs_keeper_run(&setup);
}

int cfs_serve(int tree_fd, const struct cfs_serve_options *options, char **ret_why)
{
  cleanup_free char *path = NULL;
  struct cfs_keeper_setup setup = {.label = options->label, .label_size = options->label_size};
  int r = options->label_size > CFS_LABEL_MAX ? cfs_why(ret_why, -EFBIG, "the label is too long") : 0;
  if (r == 0)
    r = cfs_mount_options_parse(options->fuse_options, &setup.options, ret_why);
  if (r == 0)
    r = check_tree(tree_fd, ret_why);
  if (r == 0)
    r = check_mountpoint(options->mountpoint, &setup.options, &path, ret_why);
  if (r < 0)
    return r;
  setup.mountpoint = path;
  /* Above stdin, stdout and stderr, which a daemon replaces. */
  setup.tree_fd = fcntl(tree_fd, F_DUPFD_CLOEXEC, 3);
  if (setup.tree_fd < 0)
    return cfs_why(ret_why, -errno, "%s", strerror(errno));
  if (options->foreground)
    return serve_in_foreground(&setup, options, ret_why);
  r = serve_in_background(&setup, ret_why);
  close(setup.tree_fd);
  return r;
}
