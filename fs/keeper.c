/* SPDX-License-Identifier: MIT */
#include "fs/keeper_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/connection.h"
#include "fs/why.h"

#define SWEEP_EVERY_MS     2000
#define READY_TIMEOUT_MS   10000
#define START_DEATHS_LIMIT 8u

void cfs_keeper_close_private(struct cfs_keeper *k)
{
  if (k->signals >= 0)
    close(k->signals);
  if (k->listener >= 0)
    close(k->listener);
  if (k->worker_ready >= 0)
    close(k->worker_ready);
  if (k->lock >= 0)
    close(k->lock);
  cfs_doorman_dismiss_all(k);
}

/* A child that uses the mount like any other program: it must hold nothing of the keeper, least of all the
 * connection, which would keep a mount alive that nobody serves. */
static pid_t fork_helper(const char *name)
{
  sigset_t none;
  pid_t pid = fork();
  if (pid != 0)
    return pid > 0 ? pid : 0;
  prctl(PR_SET_NAME, name);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  syscall(SYS_close_range, 3u, ~0u, 0u);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  return -1;
}

static _Noreturn void probe_mount(const char *path)
{
  struct statfs fs;
  struct stat st;
  alarm(READY_TIMEOUT_MS / 1000);
  _exit(statfs(path, &fs) == 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : 1);
}

static void lower_priority(void)
{
  enum { ioprio_who_process = 1, ioprio_class_idle = 3 << 13 };
  setpriority(PRIO_PROCESS, 0, 19);
  syscall(SYS_ioprio_set, ioprio_who_process, 0, ioprio_class_idle);
}

/* Reading through the mount fills its own page cache, which is what the first compile needs. */
static void read_through(const char *path, char *buffer, size_t size)
{
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && read(fd, buffer, size) > 0)
    ;
}

static _Noreturn void warm_up(const struct cfs_keeper *k)
{
  const cfs_snapshot *s = k->registry.generations[k->registry.current].snapshot;
  uint32_t count;
  const uint32_t *warm = cfs_snapshot_warm(s, &count);
  size_t size = (size_t)1 << 20;
  char *buffer = malloc(size), inside[PATH_MAX], path[2 * PATH_MAX];
  lower_priority();
  for (uint32_t i = 0; buffer && i < count; i++) {
    if (cfs_snapshot_path(s, warm[i], inside, sizeof(inside)) < 0)
      continue;
    snprintf(path, sizeof(path), "%s/%s", k->mount.path, inside);
    read_through(path, buffer, size);
  }
  _exit(0);
}

static void start_warmer(struct cfs_keeper *k)
{
  uint32_t count;
  cfs_snapshot_warm(k->registry.generations[k->registry.current].snapshot, &count);
  if (!count || k->warmer || k->stopping)
    return;
  k->warmer = fork_helper("cudafs-warm");
  if (k->warmer < 0)
    warm_up(k);
}

static void end_helper(pid_t *pid)
{
  if (*pid <= 0)
    return;
  kill(*pid, SIGKILL);
  while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
    ;
  *pid = 0;
}

void cfs_keeper_end_helpers(struct cfs_keeper *k)
{
  end_helper(&k->warmer);
}

static void fail(struct cfs_keeper *k, int error, const char *why)
{
  if (k->result == 0) {
    k->result = error;
    cfs_why(&k->why, 0, "%s", why);
  }
  k->done = true;
}

static void start_prober(struct cfs_keeper *k)
{
  k->prober = fork_helper("cudafs-probe");
  if (k->prober < 0)
    probe_mount(k->mount.path);
  if (!k->prober)
    fail(k, -EAGAIN, "no process can be started");
}

static void announce(struct cfs_keeper *k, int status)
{
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(k, -EIO, "the new mount does not answer");
    return;
  }
  /* The server answers by now: writing this attribute earlier could wait for it. */
  if (k->options.read_ahead_kb)
    cfs_mount_read_ahead(&k->mount, k->options.read_ahead_kb);
  k->announced = true;
  k->setup->report(k->setup->report_data, 0, NULL);
  cfs_spare_start(k);
  start_warmer(k);
}

static void reap(struct cfs_keeper *k)
{
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status)) {
      /* It may hold requests that it has read: they are sent again to the next one. */
      if (pid == k->worker)
        kill(pid, SIGKILL);
      continue;
    }
    if (pid == k->worker)
      cfs_nursery_bury(k, false);
    else if (pid == k->prober) {
      k->prober = 0;
      announce(k, status);
    } else if (pid == k->warmer)
      k->warmer = 0;
    else if (pid == k->spare)
      cfs_spare_bury(k);
  }
  if (!k->announced && k->quick_deaths >= START_DEATHS_LIMIT)
    fail(k, -EIO, "the serving process dies again and again");
}

/* Programs that still use the mount keep it alive, out of sight, until they end: a compiler that runs is not
 * robbed of its headers. A second signal ends it all the same. */
static void stop(struct cfs_keeper *k)
{
  if (k->stopping || !k->announced) {
    k->done = true;
    return;
  }
  k->stopping = true;
  cfs_keeper_end_helpers(k);
  int r = cfs_mount_detach(k->mount.path, k->mount.dev_major, k->mount.dev_minor, false, NULL);
  if (r < 0 && r != -ENOENT)
    cfs_mount_detach(k->mount.path, k->mount.dev_major, k->mount.dev_minor, true, NULL);
}

static void take_signals(struct cfs_keeper *k)
{
  struct signalfd_siginfo info;
  while (read(k->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
      stop(k);
  }
  reap(k);
}

static int open_signals(void)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_SETMASK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); /* an ignored SIGCHLD, inherited, would hide every death */
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

static int poll_timeout(const struct cfs_keeper *k)
{
  uint64_t now = cfs_now();
  if (k->worker && (k->spare || !k->announced || k->stopping))
    return SWEEP_EVERY_MS;
  if (k->worker)
    return k->spare_due <= now ? 0 : (int)((k->spare_due - now) / CFS_MS) + 1;
  return k->next_start <= now ? 0 : (int)((k->next_start - now) / CFS_MS) + 1;
}

static void tend_clients(struct cfs_keeper *k, const struct pollfd *polled)
{
  for (size_t i = 0; i < CFS_CLIENTS_MAX; i++) {
    struct cfs_client *c = &k->clients[i];
    if (c->socket < 0 || c->socket != polled[i].fd)
      continue;
    if (polled[i].revents)
      cfs_doorman_answer(k, c);
    else if (cfs_now() > c->deadline)
      cfs_doorman_dismiss(c);
  }
}

static void turn(struct cfs_keeper *k)
{
  struct pollfd p[3 + CFS_CLIENTS_MAX] = {
      {.fd = k->signals, .events = POLLIN},
      {.fd = k->listener, .events = POLLIN},
      {.fd = k->worker_ready, .events = POLLIN},
  };
  for (size_t i = 0; i < CFS_CLIENTS_MAX; i++)
    p[3 + i] = (struct pollfd){.fd = k->clients[i].socket, .events = POLLIN};
  if (poll(p, 3 + CFS_CLIENTS_MAX, poll_timeout(k)) < 0)
    return;
  if (p[2].revents && cfs_nursery_await(k, 0) == 0 && !k->announced && !k->prober)
    start_prober(k);
  if (p[0].revents)
    take_signals(k);
  if (p[1].revents)
    cfs_doorman_accept(k);
  tend_clients(k, p + 3);
  if (!k->worker && !k->done && k->next_start <= cfs_now())
    cfs_nursery_start(k);
  cfs_spare_start(k);
  if (cfs_now() >= k->next_check)
    cfs_registry_sweep(&k->registry);
  cfs_nursery_check(k);
}

/* Kernels before 6.16 have no epoch: the names in the root, old and new, are expired one by one. */
static void expire_names(struct cfs_keeper *k, const cfs_snapshot *s)
{
  uint32_t first, count = cfs_snapshot_children(s, CFS_ENTRY_ROOT, &first);
  for (uint32_t i = 0; i < count; i++)
    cfs_connection_expire_name(k->mount.device, cfs_snapshot_name(s, first + i));
}

static int switch_generation(struct cfs_keeper *k, const cfs_snapshot *old)
{
  /* While nobody serves, so that no client sees the new tree and then the old one again. */
  cfs_nursery_kill(k);
  bool expired = cfs_connection_expire(k->mount.device) == 0;
  cfs_nursery_start(k);
  int r = k->worker ? cfs_nursery_await(k, READY_TIMEOUT_MS) : 0;
  if (!expired) {
    cfs_connection_expire_root(k->mount.device);
    expire_names(k, old);
    expire_names(k, k->registry.generations[k->registry.current].snapshot);
  }
  return r;
}

int cfs_keeper_reload(struct cfs_keeper *k, int tree_fd, const void *label, size_t label_size, char **ret_why)
{
  cfs_snapshot *snapshot = NULL;
  const cfs_snapshot *old = k->registry.generations[k->registry.current].snapshot;
  if (!k->announced || k->stopping)
    return cfs_why(ret_why, -EBUSY, "the mount is %s", k->stopping ? "being taken away" : "not ready yet");
  int r = cfs_snapshot_open(tree_fd, &snapshot);
  if (r < 0)
    return cfs_why(ret_why, r, "the new tree is not a valid snapshot");
  r = cfs_registry_publish(&k->registry, snapshot);
  if (r < 0) {
    cfs_snapshot_close(snapshot);
    return cfs_why(ret_why, r, "%s", r == -ENOSPC ? "too many earlier trees are still in use" : strerror(-r));
  }
  cfs_state_write_label(&k->state, label, label_size);
  cfs_keeper_end_helpers(k);
  cfs_spare_replace(k);
  switch_generation(k, old);
  start_warmer(k);
  return 0;
}

/* Half of nothing is nothing: small limits leave few pins, and files are then opened by path and checked. */
static uint32_t divide_descriptors(uint32_t *ret_open_files)
{
  enum { reserve = 64 };
  struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  uint64_t all = limit.rlim_cur > CFS_FILES_MAX ? CFS_FILES_MAX : limit.rlim_cur;
  uint64_t open_files = all / 8 < 16 ? 16 : all / 8 > 1024 ? 1024 : all / 8;
  *ret_open_files = (uint32_t)open_files;
  return all > open_files + reserve ? (uint32_t)(all - open_files - reserve) : 0;
}

static int load_tree(struct cfs_keeper *k)
{
  cfs_snapshot *snapshot;
  uint32_t pins = divide_descriptors(&k->open_files);
  k->shared = cfs_shared_new();
  if (!k->shared)
    return cfs_why(&k->why, -ENOMEM, "out of memory");
  int r = cfs_registry_init(&k->registry, k->shared, pins);
  if (r < 0)
    return cfs_why(&k->why, r, "out of memory");
  r = cfs_snapshot_open(k->setup->tree_fd, &snapshot);
  close(k->setup->tree_fd);
  if (r < 0)
    return cfs_why(&k->why, r, "the tree is not a valid snapshot");
  r = cfs_registry_publish(&k->registry, snapshot);
  if (r < 0) {
    cfs_snapshot_close(snapshot);
    return cfs_why(&k->why, r, "the tree cannot be loaded: %s", strerror(-r));
  }
  return 0;
}

static int keep_state(struct cfs_keeper *k)
{
  int r = cfs_state_create(&k->state, k->mount.dev_major, k->mount.dev_minor);
  if (r == 0)
    r = cfs_state_write_label(&k->state, k->setup->label, k->setup->label_size);
  if (r == 0)
    r = cfs_state_write(&k->state, k->mount.path, getpid());
  if (r == 0) {
    k->listener = cfs_state_listen(&k->state);
    r = k->listener < 0 ? k->listener : 0;
  }
  return r < 0 ? cfs_why(&k->why, r, "no directory for the mount's state can be made: %s", strerror(-r)) : 0;
}

static int begin(struct cfs_keeper *k)
{
  k->signals = open_signals();
  if (k->signals < 0)
    return cfs_why(&k->why, k->signals, "%s", strerror(-k->signals));
  prctl(PR_SET_NAME, "cudafs-keeper");
  k->started = time(NULL);
  cfs_sandbox_prepare(&k->sandbox);
  int r = cfs_spare_prepare(k);
  if (r < 0)
    return cfs_why(&k->why, r, "%s", strerror(-r));
  r = load_tree(k);
  if (r == 0)
    r = cfs_mount_attach(&k->mount, k->setup->mountpoint, &k->options, &k->why);
  if (r < 0)
    return r;
  atomic_store(&k->shared->keeper, getpid());
  r = keep_state(k);
  if (r < 0)
    return r;
  r = cfs_connection_read_init(k->mount.device, &k->init, &k->init_size);
  if (r < 0)
    return cfs_why(&k->why, r, "the kernel did not begin to talk: %s", strerror(-r));
  cfs_sandbox_enter_keeper(!k->mount.direct);
  return 0;
}

static void end(struct cfs_keeper *k)
{
  /* The spare first, or it would inherit. */
  cfs_spare_end(k);
  cfs_keeper_end_helpers(k);
  end_helper(&k->prober);
  /* Detached before its server goes, so that nobody meets a dead mount. */
  if (k->mount.device >= 0)
    cfs_mount_detach(k->mount.path, k->mount.dev_major, k->mount.dev_minor, true, NULL);
  cfs_nursery_kill(k);
  cfs_keeper_close_private(k);
  cfs_state_remove(&k->state);
  cfs_mount_done(&k->mount);
  cfs_registry_done(&k->registry);
  cfs_shared_free(k->shared);
  cfs_sandbox_done(&k->sandbox);
  free(k->init);
}

int cfs_keeper_live(struct cfs_keeper *k)
{
  while (k->result == 0 && !k->done)
    turn(k);
  if (k->result == 0 && !k->announced)
    k->result = cfs_why(&k->why, -EINTR, "it was stopped before it was usable");
  end(k);
  return k->result;
}

int cfs_keeper_run(const struct cfs_keeper_setup *setup)
{
  struct cfs_keeper k = {
      .setup = setup,
      .options = setup->options,
      .mount = {.device = -1},
      .state = CFS_STATE_EMPTY,
      .signals = -1,
      .listener = -1,
      .worker_ready = -1,
      .lock = -1,
  };
  for (size_t i = 0; i < CFS_CLIENTS_MAX; i++)
    k.clients[i] = CFS_CLIENT_NONE;
  k.result = begin(&k);
  if (k.result == 0)
    cfs_nursery_start(&k);
  cfs_keeper_live(&k);
  if (!k.announced)
    setup->report(setup->report_data, k.result, k.why);
  free(k.why);
  return k.result;
}
