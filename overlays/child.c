/* SPDX-License-Identifier: MIT */
#include "overlays/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum {
  OUTPUT_LIMIT = 1024 * 1024,
  POLL_MS = 100, /* how late the stop flag may be seen */
};

static int64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void limit(int resource, uint64_t value)
{
  if (value)
    setrlimit((__rlimit_resource_t)resource, &(struct rlimit){value, value});
}

/* Between fork and exec of a process with threads: nothing here may allocate or lock. */
static void become(const struct cfs_child *child, char *const *argv, char *const *environment, int out, int report)
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CPU, child->limits.cpu_s);
  limit(RLIMIT_AS, child->limits.address_space);
  limit(RLIMIT_FSIZE, child->limits.file_size);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  int in = open("/dev/null", O_RDONLY);
  if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0 &&
      (!child->cwd || chdir(child->cwd) == 0))
    execve(argv[0], argv, environment);
  int e = errno;
  (void)!write(report, &e, sizeof(e));
  _exit(127);
}

static char **terminated(const cfs_strings *s)
{
  char **v = cfs_zalloc((s->count + 1) * sizeof(*v));
  for (size_t i = 0; i < s->count; i++)
    v[i] = s->items[i];
  return v;
}

static int start(const struct cfs_child *child, int out, pid_t *ret_pid)
{
  cleanup_free char **argv = terminated(child->argv);
  cleanup_free char **environment = terminated(child->environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  cleanup_close int report_in = ends[0], report_out = ends[1];
  pid_t pid = fork();
  if (pid < 0)
    return -errno;
  if (pid == 0)
    become(child, argv, environment, out, report_out);
  setpgid(pid, pid); /* here too, so that a kill that comes first finds the group */
  close(TAKE_FD(report_out));
  int e;
  ssize_t n;
  while ((n = read(report_in, &e, sizeof(e))) < 0 && errno == EINTR)
    ;
  *ret_pid = pid;
  return n == (ssize_t)sizeof(e) ? -e : 0;
}

static int stopped(const struct cfs_child *child, int64_t deadline)
{
  if (child->stop && *child->stop)
    return -EINTR;
  return now_ms() >= deadline ? -ETIMEDOUT : 0;
}

static int read_output(const struct cfs_child *child, int out, int64_t deadline, cfs_buffer *output)
{
  for (;;) {
    struct pollfd p = {.fd = out, .events = POLLIN};
    int n = poll(&p, 1, POLL_MS);
    int r = stopped(child, deadline);
    if (r < 0)
      return r;
    if (n <= 0)
      continue;
    char chunk[16384];
    ssize_t got = read(out, chunk, sizeof(chunk));
    if (got == 0)
      return 0;
    if (got > 0 && output->size < OUTPUT_LIMIT)
      cfs_buffer_add(output, chunk, (size_t)got);
  }
}

static int wait_for(const struct cfs_child *child, pid_t pid, int64_t deadline, int *ret_status)
{
  for (;;) {
    int status;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) {
      *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return 0;
    }
    int r = stopped(child, deadline);
    if (r < 0)
      return r;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

static void end(pid_t pid)
{
  kill(-pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
}

int cfs_child_run(const struct cfs_child *child, struct cfs_child_result *ret)
{
  int64_t deadline = now_ms() + (int64_t)child->limits.timeout_s * 1000;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  cleanup_close int out = ends[0], in = ends[1];
  cleanup_buffer cfs_buffer output = {0};
  pid_t pid = 0;
  int status = 0;
  int r = start(child, in, &pid);
  close(TAKE_FD(in));
  if (r == 0)
    r = read_output(child, out, deadline, &output);
  if (r == 0)
    r = wait_for(child, pid, deadline, &status);
  if (r < 0 && pid > 0)
    end(pid);
  if (r < 0 && r != -ETIMEDOUT)
    return r;
  cfs_buffer_text(&output, "");
  *ret = (struct cfs_child_result){.status = status, .output = TAKE_PTR(output.data)};
  return r;
}

char *cfs_command_text(const cfs_strings *argv)
{
  cleanup_buffer cfs_buffer b = {0};
  for (size_t i = 0; i < argv->count; i++) {
    if (i)
      cfs_buffer_text(&b, " ");
    cleanup_free char *word = cfs_shell_word(argv->items[i]);
    cfs_buffer_text(&b, word);
  }
  cfs_buffer_text(&b, "");
  return TAKE_PTR(b.data);
}
