/* SPDX-License-Identifier: MIT */
#include "fs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/mountinfo.h"
#include "fs/why.h"

bool cfs_mount_may_allow_other(void)
{
  char line[256];
  cleanup_fclose FILE *f = fopen("/etc/fuse.conf", "re");
  while (f && fgets(line, sizeof(line), f)) {
    char *word = line + strspn(line, " \t");
    word[strcspn(word, " \t\n#")] = '\0';
    if (strcmp(word, "user_allow_other") == 0)
      return true;
  }
  return false;
}

static bool wants_allow_other(const struct cfs_mount_options *o, bool direct)
{
  if (o->allow_other == CFS_ALLOW_AUTO)
    return direct || cfs_mount_may_allow_other();
  return o->allow_other == CFS_ALLOW_YES;
}

static int mount_direct(cfs_mount *m, const struct cfs_mount_options *o)
{
  char data[256];
  cleanup_close int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions%s", fd,
           (unsigned)geteuid(), (unsigned)getegid(), wants_allow_other(o, true) ? ",allow_other" : "");
  if (mount(o->fsname, m->path, CFS_MOUNT_TYPE, MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME, data) < 0)
    return -errno;
  m->device = TAKE_FD(fd);
  m->direct = true;
  return 0;
}

/* In the child: stderr is collected, nothing else is passed on but the socket that fusermount3 sends the
 * connection over. */
static void exec_fusermount(char *const *argv, int socket, int err)
{
  char number[16];
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (socket >= 0) {
    snprintf(number, sizeof(number), "%d", socket);
    setenv("_FUSE_COMMFD", number, 1);
    fcntl(socket, F_SETFD, 0);
  }
  if (err >= 0)
    dup2(err, STDERR_FILENO);
  execvp(argv[0], argv);
  _exit(127);
}

static int receive_fd(int socket)
{
  char byte, control[CMSG_SPACE(sizeof(int))];
  struct iovec iov = {.iov_base = &byte, .iov_len = 1};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  ssize_t n;
  do
    n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
  int fd = -1;
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
  return fd;
}

static void read_message(int fd, char *text, size_t size)
{
  size_t n = 0;
  ssize_t got;
  while (n + 1 < size && ((got = read(fd, text + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
    n += got > 0 ? (size_t)got : 0;
  text[n] = '\0';
  text[strcspn(text, "\n")] = '\0';
}

static int wait_child(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return -errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Without ret_device no connection is expected of it. What it says, on its first line, goes into text. */
static int run_fusermount(char *const *argv, int *ret_device, char *text, size_t text_size)
{
  cleanup_close int ours = -1, theirs = -1, out = -1, in = -1;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    return -errno;
  ours = pair[0], theirs = pair[1];
  if (pipe2(pair, O_CLOEXEC) < 0)
    return -errno;
  out = pair[0], in = pair[1];
  pid_t pid = fork();
  if (pid < 0)
    return -errno;
  if (pid == 0)
    exec_fusermount(argv, theirs, in);
  close(TAKE_FD(theirs));
  close(TAKE_FD(in));
  if (ret_device)
    *ret_device = receive_fd(ours);
  read_message(out, text, text_size);
  int status = wait_child(pid);
  if (status == 127)
    return -ENOENT;
  return status == 0 && (!ret_device || *ret_device >= 0) ? 0 : -EPERM;
}

static int mount_fusermount(cfs_mount *m, const struct cfs_mount_options *o, char **ret_why)
{
  char options[256], text[256] = ""; /* stays empty when fusermount3 cannot be started */
  bool other = wants_allow_other(o, false);
  snprintf(options, sizeof(options), "ro,nosuid,nodev,noatime,default_permissions,fsname=%s,subtype=cudafs%s",
           o->fsname, other ? ",allow_other" : "");
  char *argv[] = {(char *)"fusermount3", (char *)"-o", options, (char *)"--", m->path, NULL};
  int r = run_fusermount(argv, &m->device, text, sizeof(text));
  if (r == -ENOENT)
    return cfs_why(ret_why, r, "fusermount3 is not installed, and mounting without it needs root");
  if (r < 0)
    return cfs_why(ret_why, r, "%s", text[0] ? text : "fusermount3 failed");
  fcntl(m->device, F_SETFD, FD_CLOEXEC);
  m->owner_only = !other;
  return 0;
}

/* DONT_SYNC: answered from what the kernel knows, for nobody serves yet. */
static int find_device(cfs_mount *m)
{
  struct statx st;
  if (statx(AT_FDCWD, m->path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
    return -errno;
  m->dev_major = st.stx_dev_major;
  m->dev_minor = st.stx_dev_minor;
  return 0;
}

int cfs_mount_attach(cfs_mount *m, const char *path, const struct cfs_mount_options *options, char **ret_why)
{
  *m = (cfs_mount){.device = -1, .path = strdup(path)};
  if (!m->path)
    return -ENOMEM;
  int r = mount_direct(m, options);
  if (r == -ENOENT || r == -ENXIO || r == -ENODEV)
    return cfs_why(ret_why, r, "/dev/fuse is not there: the kernel has no FUSE, or this container was not given it");
  if ((r == -EPERM || r == -EACCES) && geteuid() != 0)
    r = mount_fusermount(m, options, ret_why);
  else if (r == -EPERM || r == -EACCES)
    return cfs_why(ret_why, r, "mounting is not permitted here: %s", strerror(-r));
  else if (r < 0)
    return cfs_why(ret_why, r, "%s", strerror(-r));
  return r < 0 ? r : find_device(m);
}

void cfs_mount_done(cfs_mount *m)
{
  if (m->device >= 0)
    close(m->device);
  free(m->path);
  *m = (cfs_mount){.device = -1};
}

/* The entry that the path leads to is the last one mounted there. */
static bool shows(const char *path, uint32_t dev_major, uint32_t dev_minor, uid_t *ret_user)
{
  cleanup_mountinfo struct cfs_mountinfo_reader reader = {0};
  struct cfs_mountinfo m;
  bool found = false;
  if (cfs_mountinfo_open(&reader) < 0)
    return false;
  while (cfs_mountinfo_next(&reader, &m) > 0)
    if (strcmp(m.path, path) == 0) {
      found = m.dev_major == dev_major && m.dev_minor == dev_minor;
      *ret_user = m.user;
    }
  return found;
}

/* fusermount3 tells a busy mount from one that it may not, or cannot, take away by its words alone. */
static int detach_fusermount(const char *path, bool lazy, char **ret_why)
{
  char text[256] = "";
  char *argv[] = {(char *)"fusermount3", (char *)(lazy ? "-uz" : "-u"), (char *)"--", (char *)path, NULL};
  int r = run_fusermount(argv, NULL, text, sizeof(text));
  if (r == 0 || strstr(text, strerror(EBUSY)))
    return r == 0 ? 0 : -EBUSY;
  if (r == -ENOENT)
    return cfs_why(ret_why, -EPERM, "fusermount3 is not installed, and unmounting without it needs root");
  if (access("/etc/mtab", F_OK) < 0)
    return cfs_why(ret_why, -EPERM,
                   "fusermount3 wants /etc/mtab, which is missing here; root makes it with: "
                   "ln -s ../proc/self/mounts /etc/mtab");
  return cfs_why(ret_why, -EPERM, "%s", text[0] ? text : "fusermount3 failed");
}

int cfs_mount_detach(const char *path, uint32_t dev_major, uint32_t dev_minor, bool lazy, char **ret_why)
{
  uid_t owner = 0;
  if (!shows(path, dev_major, dev_minor, &owner))
    return cfs_why(ret_why, -ENOENT, "it is not mounted there");
  if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
    return 0;
  if (errno != EPERM || geteuid() == 0)
    return cfs_why(ret_why, -errno, "%s", strerror(errno));
  if (owner != geteuid())
    return cfs_why(ret_why, -EPERM, "it was mounted by %s", owner == 0 ? "root" : "another user");
  return detach_fusermount(path, lazy, ret_why);
}

void cfs_mount_read_ahead(const cfs_mount *m, unsigned kb)
{
  char path[80], text[16];
  snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", m->dev_major, m->dev_minor);
  cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  int n = snprintf(text, sizeof(text), "%u", kb);
  if (write(fd, text, (size_t)n) < 0)
    return; /* a container with a read-only /sys: only speed is lost */
}
