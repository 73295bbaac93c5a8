/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/lease.h"
#include "overlays/dispatch/trailer.h"

static char folder[] = "/tmp/cudafs-lease-XXXXXX";

static int enter(void **state)
{
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) < 0 || cfs_mkdir_all(CFS_DOT_DIR, 0755) < 0)
    return -1;
  return cfs_file_write(CFS_GATE_PATH, "", 0) || cfs_file_write(CFS_LEASE_PATH, "", 0);
}

static int leave(void **state)
{
  (void)state;
  unlink(CFS_GATE_PATH);
  unlink(CFS_LEASE_PATH);
  rmdir(CFS_DOT_DIR);
  return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* What another process would get: 0 or EWOULDBLOCK. */
static int try_exclusive(const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC), r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
  close(fd);
  return r;
}

static void pause_briefly(void)
{
  nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
}

/* Takes the lease in a child, which then waits for a byte, or for good when it must not get that far. */
static pid_t take_in_child(int *ret_stop, bool *ret_taken)
{
  int stop[2], taken[2];
  char byte;
  assert_true(pipe(stop) == 0 && pipe(taken) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    cfs_lease_take(".");
    _exit(write(taken[1], "x", 1) == 1 && (close(stop[1]), read(stop[0], &byte, 1)) >= 0 ? 0 : 1);
  }
  close(stop[0]);
  close(taken[1]);
  pause_briefly();
  assert_int_equal(fcntl(taken[0], F_SETFL, O_NONBLOCK), 0);
  *ret_taken = read(taken[0], &byte, 1) == 1;
  *ret_stop = stop[1];
  close(taken[0]);
  return pid;
}

static void end_child(pid_t pid, int stop)
{
  close(stop);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_it_is_shared_and_ends_with_the_process(void **state)
{
  (void)state;
  int stop;
  bool taken;
  pid_t pid = take_in_child(&stop, &taken);
  assert_true(taken);
  assert_int_equal(try_exclusive(CFS_LEASE_PATH), EWOULDBLOCK);
  assert_int_equal(try_exclusive(CFS_GATE_PATH), 0);
  end_child(pid, stop);
  assert_int_equal(try_exclusive(CFS_LEASE_PATH), 0);
}

static void test_a_closed_gate_holds_new_ones_back(void **state)
{
  (void)state;
  int stop;
  bool taken;
  cleanup_close int gate = open(CFS_GATE_PATH, O_RDONLY | O_CLOEXEC);
  assert_int_equal(flock(gate, LOCK_EX), 0);
  unsetenv(CFS_LEASE_VARIABLE);
  pid_t pid = take_in_child(&stop, &taken);
  assert_false(taken);
  assert_int_equal(flock(gate, LOCK_UN), 0);
  pause_briefly();
  assert_int_equal(try_exclusive(CFS_LEASE_PATH), EWOULDBLOCK);
  end_child(pid, stop);
}

/* The lease in this process, the gate shut: what is started below must not wait. */
static void test_below_a_holder_the_gate_is_passed(void **state)
{
  (void)state;
  int stop;
  bool taken;
  cfs_lease_take(".");
  int fd = atoi(getenv(CFS_LEASE_VARIABLE));
  assert_int_equal(fcntl(fd, F_GETFD), 0);
  cleanup_close int gate = open(CFS_GATE_PATH, O_RDONLY | O_CLOEXEC);
  assert_int_equal(flock(gate, LOCK_EX), 0);
  pid_t pid = take_in_child(&stop, &taken);
  assert_true(taken);
  end_child(pid, stop);
  /* Something between closed the descriptor, or opened another file there. */
  cleanup_free char *kept = cfs_strdup(getenv(CFS_LEASE_VARIABLE));
  setenv(CFS_LEASE_VARIABLE, "987654", 1);
  pid = take_in_child(&stop, &taken);
  assert_true(taken);
  end_child(pid, stop);
  setenv(CFS_LEASE_VARIABLE, kept, 1);
  close(fd);
  unsetenv(CFS_LEASE_VARIABLE);
}

/* A stale variable and nobody who holds the lease: that must not pass a reload by. */
static void test_a_stale_variable_waits(void **state)
{
  (void)state;
  int stop;
  bool taken;
  cleanup_close int gate = open(CFS_GATE_PATH, O_RDONLY | O_CLOEXEC);
  cleanup_close int lease = open(CFS_LEASE_PATH, O_RDONLY | O_CLOEXEC);
  assert_int_equal(flock(gate, LOCK_EX), 0);
  assert_int_equal(flock(lease, LOCK_EX), 0);
  setenv(CFS_LEASE_VARIABLE, "987654", 1);
  pid_t pid = take_in_child(&stop, &taken);
  assert_false(taken);
  flock(lease, LOCK_UN);
  flock(gate, LOCK_UN);
  end_child(pid, stop);
  unsetenv(CFS_LEASE_VARIABLE);
}

static void test_a_tree_without_lease_is_fine(void **state)
{
  (void)state;
  unsetenv(CFS_LEASE_VARIABLE);
  cfs_lease_take("/nonexistent");
  assert_null(getenv(CFS_LEASE_VARIABLE));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_is_shared_and_ends_with_the_process),
      cmocka_unit_test(test_a_closed_gate_holds_new_ones_back),
      cmocka_unit_test(test_below_a_holder_the_gate_is_passed),
      cmocka_unit_test(test_a_stale_variable_waits),
      cmocka_unit_test(test_a_tree_without_lease_is_fine),
  };
  return cmocka_run_group_tests_name("dispatch_lease", tests, enter, leave);
}
