/* SPDX-License-Identifier: MIT */
#include "fs/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sanitizer.h"

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(futex),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(sched_yield),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(tgkill),
    SCMP_SYS(rseq),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(getrandom),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(prlimit64),
};

static int add_rules(scmp_filter_ctx ctx)
{
  int r = 0;
  for (size_t i = 0; r == 0 && i < sizeof(allowed) / sizeof(*allowed); i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
  /* Reading only, whatever the path. */
  if (r == 0)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                         SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY));
  /* Threads, no processes. clone3 hides its flags from a filter; ENOSYS makes libc use clone. */
  if (r == 0)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                         SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  if (r == 0)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  return r;
}

static int export_filter(scmp_filter_ctx ctx, cfs_sandbox *s)
{
  struct stat st;
  cleanup_close int fd = memfd_create("filter", MFD_CLOEXEC);
  if (fd < 0)
    return -errno;
  int r = seccomp_export_bpf(ctx, fd);
  if (r < 0 || fstat(fd, &st) < 0)
    return r < 0 ? r : -errno;
  size_t size = (size_t)st.st_size;
  s->filter = malloc(size + 1);
  if (!s->filter)
    return -ENOMEM;
  if (pread(fd, s->filter, size, 0) != (ssize_t)size)
    return -EIO;
  s->length = (unsigned short)(size / sizeof(struct sock_filter));
  return 0;
}

int cfs_sandbox_prepare(cfs_sandbox *s)
{
  *s = (cfs_sandbox){0};
  if (CFS_INSTRUMENTED)
    return 0;
  /* An error, not death: a libc that needs a call we did not think of must not turn into a crash loop. */
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (!ctx)
    return -ENOMEM;
  int r = add_rules(ctx);
  if (r == 0)
    r = export_filter(ctx, s);
  seccomp_release(ctx);
  if (r < 0)
    cfs_sandbox_done(s);
  return r;
}

void cfs_sandbox_done(cfs_sandbox *s)
{
  free(s->filter);
  *s = (cfs_sandbox){0};
}

static void keep_capabilities(uint64_t keep)
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  if (syscall(SYS_capget, &header, data) < 0)
    return;
  for (int i = 0; i < 2; i++) {
    uint32_t mask = (uint32_t)(keep >> (32 * i));
    data[i].permitted &= mask;
    data[i].effective &= mask;
    data[i].inheritable = 0;
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  syscall(SYS_capset, &header, data);
}

#define CAP(x) (UINT64_C(1) << (x))

void cfs_sandbox_enter_keeper(bool keeps_fusermount)
{
  /* fusermount3 is set-user-id, which no_new_privs would disable. */
  if (!keeps_fusermount)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  keep_capabilities(CAP(CAP_SYS_ADMIN) | CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_SYS_PTRACE));
}

/* No rule is added: everything that is handled is denied everywhere. Reading is left alone, because a file
 * that is pinned may have been renamed to any place since. */
static void deny_changes(void)
{
  struct landlock_ruleset_attr attr = {
      .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
                           LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                           LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                           LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                           LANDLOCK_ACCESS_FS_MAKE_SYM,
  };
  cleanup_close int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
  if (fd >= 0)
    syscall(SYS_landlock_restrict_self, fd, 0);
}

void cfs_sandbox_enter_worker(const cfs_sandbox *s)
{
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  keep_capabilities(CAP(CAP_DAC_READ_SEARCH));
  if (!CFS_INSTRUMENTED)
    deny_changes();
  struct sock_fprog program = {.len = s->length, .filter = s->filter};
  if (s->length)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
