/* SPDX-License-Identifier: MIT */
#include "overlays/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum {
  OUTPUT_LIMIT = 1024 * 1024,
  REAP_PAUSE_NS = 200 * 1000,
};

struct process {
  pid_t pid;
  int out; /* read end of its output, -1 once it has been read to the end */
  cfs_buffer output;
  int status;
};

static int64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Ends what still runs; nothing to do for a process that was reaped. */
static void process_done(struct process *process)
{
  if (process->pid > 0) {
    kill(-process->pid, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  cfs_cleanup_close(&process->out);
  cfs_buffer_done(&process->output);
}

static void processes_done(struct process (*processes)[CFS_RUN_MAX])
{
  for (size_t i = 0; i < CFS_RUN_MAX; i++)
    process_done(&(*processes)[i]);
}
#define cleanup_processes __attribute__((cleanup(processes_done)))

static void set_attributes(posix_spawnattr_t *attributes)
{
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setpgroup(attributes, 0); /* so that its children can be killed with it */
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int spawn(const char *path, const char *const *argv, int out, pid_t *ret_pid)
{
  char *const environment[] = {NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
  set_attributes(&attributes);
  int r = posix_spawn(ret_pid, path, &files, &attributes, (char *const *)argv, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return -r;
}

static int start(struct process *process, const char *path, const char *const *argv)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  process->out = ends[0];
  cleanup_close int in = ends[1];
  pid_t pid;
  int r = spawn(path, argv, in, &pid);
  if (r == 0)
    process->pid = pid;
  return r;
}

static int read_some(struct process *process)
{
  char chunk[16384];
  ssize_t n = read(process->out, chunk, sizeof(chunk));
  if (n < 0)
    return errno == EINTR || errno == EAGAIN ? 0 : -errno;
  if (n == 0) {
    close(process->out);
    process->out = -1;
    return 0;
  }
  if (process->output.size + (size_t)n > OUTPUT_LIMIT)
    return -EFBIG;
  cfs_buffer_add(&process->output, chunk, (size_t)n);
  return 0;
}

static int read_all(struct process *processes, size_t count, int64_t deadline)
{
  for (;;) {
    struct pollfd polled[CFS_RUN_MAX];
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
      polled[i] = (struct pollfd){.fd = processes[i].out, .events = POLLIN};
      open += processes[i].out >= 0;
    }
    if (!open)
      return 0;
    int64_t left = deadline - now_ms();
    if (left <= 0)
      return -ETIMEDOUT;
    if (poll(polled, count, (int)left) < 0 && errno != EINTR)
      return -errno;
    for (size_t i = 0; i < count; i++) {
      int r = polled[i].revents ? read_some(&processes[i]) : 0;
      if (r < 0)
        return r;
    }
  }
}

/* A tool can close its output and live on, so that waiting for it needs the deadline as well. */
static int reap(struct process *process, int64_t deadline)
{
  for (;;) {
    int status;
    pid_t pid = waitpid(process->pid, &status, WNOHANG);
    if (pid < 0 && errno != EINTR)
      return -errno;
    if (pid > 0) {
      process->pid = 0;
      process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return 0;
    }
    if (now_ms() >= deadline)
      return -ETIMEDOUT;
    nanosleep(&(struct timespec){.tv_nsec = REAP_PAUSE_NS}, NULL);
  }
}

/* Where vfork is emulated by fork (valgrind, qemu-user), posix_spawn cannot tell that exec failed: the
 * child ends with 127 and has said nothing. */
static bool was_not_executed(const struct process *process)
{
  return process->status == 127 && !process->output.size;
}

int cfs_run(const char *path, struct cfs_call *calls, size_t count, unsigned timeout_ms)
{
  cleanup_processes struct process processes[CFS_RUN_MAX] = {{.out = -1}, {.out = -1}};
  if (count > CFS_RUN_MAX)
    return -EINVAL;
  int64_t deadline = now_ms() + timeout_ms;
  int r = 0;
  for (size_t i = 0; i < count && r == 0; i++)
    r = start(&processes[i], path, calls[i].argv);
  if (r == 0)
    r = read_all(processes, count, deadline);
  for (size_t i = 0; i < count && r == 0; i++)
    r = reap(&processes[i], deadline);
  for (size_t i = 0; i < count && r == 0; i++)
    r = was_not_executed(&processes[i]) ? -EACCES : 0;
  for (size_t i = 0; i < count && r == 0; i++) {
    cfs_buffer_text(&processes[i].output, "");
    calls[i].output = TAKE_PTR(processes[i].output.data);
    calls[i].status = processes[i].status;
  }
  return r;
}

static int memory_file(const char *name)
{
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
  if (fd < 0 && errno == EINVAL) /* before Linux 6.3, when every memfd was executable */
    fd = memfd_create(name, MFD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int cfs_run_copy(const char *path, int *ret_fd, char **ret_path)
{
  cleanup_close int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (from < 0)
    return -errno;
  cleanup_close int to = memory_file("cudafs-tool");
  if (to < 0)
    return to;
  ssize_t n;
  while ((n = sendfile(to, from, NULL, 1 << 30)) > 0)
    ;
  if (n < 0)
    return -errno;
  *ret_path = cfs_format("/proc/self/fd/%d", to);
  *ret_fd = TAKE_FD(to);
  return 0;
}
