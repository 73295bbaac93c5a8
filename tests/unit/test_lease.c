/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/lease.h"
#include "toy.h"

static char *root;

static int setup(void **state)
{
  (void)state;
  root = toy_dir();
  toy_write(root, ".cudafs/gate", "");
  toy_write(root, ".cudafs/lease", "");
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  toy_remove(root);
  return 0;
}

static int open_lock(const char *name)
{
  cleanup_free char *path = cfs_format("%s/.cudafs/%s", root, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  return fd;
}

static bool is_free(const char *name)
{
  int fd = open_lock(name);
  bool good = flock(fd, LOCK_SH | LOCK_NB) == 0;
  close(fd);
  return good;
}

static bool is_held(const char *name)
{
  int fd = open_lock(name);
  bool held = flock(fd, LOCK_EX | LOCK_NB) < 0;
  close(fd);
  return held;
}

static void test_both_are_taken_and_released(void **state)
{
  (void)state;
  struct cfs_lease lease = {-1, -1};
  cleanup_error cfs_error *err = NULL;
  assert_int_equal(cfs_lease_take(root, &(struct cfs_lease_wait){.seconds = 1}, &lease, &err), 0);
  assert_false(is_free("gate"));
  assert_false(is_free("lease"));
  cfs_lease_release(&lease);
  assert_true(is_free("gate"));
  assert_true(is_free("lease"));
}

/* While a compiler runs, the gate must be shut (no further one may start), and must open again. */
static void test_a_running_compiler_times_it_out(void **state)
{
  (void)state;
  struct cfs_lease lease = {-1, -1};
  cleanup_error cfs_error *err = NULL;
  int compiler = open_lock("lease");
  assert_int_equal(flock(compiler, LOCK_SH), 0);
  assert_int_equal(cfs_lease_take(root, &(struct cfs_lease_wait){.seconds = 0}, &lease, &err), -ETIMEDOUT);
  assert_non_null(err);
  assert_non_null(err->fix);
  assert_true(is_free("gate"));
  assert_int_equal(lease.gate, -1);
  close(compiler);
}

static bool gate_was_shut;

static void look_at_gate(void *data, unsigned seconds)
{
  (void)data, (void)seconds;
  gate_was_shut = !is_free("gate");
}

static void test_it_waits_for_the_compiler_with_the_gate_shut(void **state)
{
  (void)state;
  struct cfs_lease lease = {-1, -1};
  cleanup_error cfs_error *err = NULL;
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open_lock("lease");
    flock(fd, LOCK_SH);
    usleep(1500000);
    _exit(0);
  }
  while (!is_held("lease"))
    usleep(1000);
  struct cfs_lease_wait wait = {.seconds = 20, .waiting = look_at_gate};
  assert_int_equal(cfs_lease_take(root, &wait, &lease, &err), 0);
  assert_true(gate_was_shut);
  cfs_lease_release(&lease);
  waitpid(pid, NULL, 0);
}

static void test_it_can_be_stopped(void **state)
{
  (void)state;
  volatile sig_atomic_t stop = 1;
  struct cfs_lease lease = {-1, -1};
  cleanup_error cfs_error *err = NULL;
  int compiler = open_lock("lease");
  flock(compiler, LOCK_SH);
  assert_int_equal(cfs_lease_take(root, &(struct cfs_lease_wait){.seconds = 60, .stop = &stop}, &lease, &err), -EINTR);
  close(compiler);
}

static void test_no_locks_there(void **state)
{
  (void)state;
  struct cfs_lease lease = {-1, -1};
  cleanup_error cfs_error *err = NULL;
  assert_int_equal(cfs_lease_take("/proc", &(struct cfs_lease_wait){.seconds = 1}, &lease, &err), -ENOENT);
  assert_non_null(err);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_both_are_taken_and_released, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_running_compiler_times_it_out, setup, teardown),
      cmocka_unit_test_setup_teardown(test_it_waits_for_the_compiler_with_the_gate_shut, setup, teardown),
      cmocka_unit_test_setup_teardown(test_it_can_be_stopped, setup, teardown),
      cmocka_unit_test(test_no_locks_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
