/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/child.h"

struct call {
  cfs_strings argv, environment;
  struct cfs_child child;
  struct cfs_child_result result;
};

static int run_shell(struct call *c, const char *script)
{
  cfs_strings_add(&c->argv, "/bin/sh");
  cfs_strings_add(&c->argv, "-c");
  cfs_strings_add(&c->argv, script);
  cfs_strings_add(&c->environment, "WORD=given");
  c->child.argv = &c->argv;
  c->child.environment = &c->environment;
  if (!c->child.limits.timeout_s)
    c->child.limits.timeout_s = 30;
  return cfs_child_run(&c->child, &c->result);
}

static void call_done(struct call *c)
{
  cfs_strings_done(&c->argv);
  cfs_strings_done(&c->environment);
  free(c->result.output);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_output_status_folder_environment(void **state)
{
  (void)state;
  struct call c = {.child.cwd = "/usr"};
  setenv("LEAKED", "yes", 1);
  assert_int_equal(run_shell(&c, "pwd; echo \"$WORD$LEAKED\" >&2; cat; exit 7"), 0);
  assert_int_equal(c.result.status, 7);
  assert_string_equal(c.result.output, "/usr\ngiven\n");
  call_done(&c);
}

static void test_a_signal_is_told(void **state)
{
  (void)state;
  struct call c = {0};
  assert_int_equal(run_shell(&c, "kill -SEGV $$"), 0);
  assert_int_equal(c.result.status, 128 + SIGSEGV);
  call_done(&c);
}

static void test_a_program_that_is_not_there(void **state)
{
  (void)state;
  struct call c = {0};
  cfs_strings_add(&c.argv, "/no/such/program");
  c.child = (struct cfs_child){.argv = &c.argv, .environment = &c.environment, .limits.timeout_s = 5};
  assert_int_equal(cfs_child_run(&c.child, &c.result), -ENOENT);
  call_done(&c);
}

/* The grandchild holds the pipe open and must go too. */
static void test_time_limit_ends_the_whole_family(void **state)
{
  (void)state;
  struct call c = {.child.limits.timeout_s = 1};
  double start = now();
  assert_int_equal(run_shell(&c, "echo early; sleep 600 & sleep 600"), -ETIMEDOUT);
  assert_true(now() - start < 10);
  assert_string_equal(c.result.output, "early\n");
  call_done(&c);
}

static void test_file_size_limit(void **state)
{
  (void)state;
  char path[] = "/tmp/cudafs-test-child-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  struct call c = {.child.limits.file_size = 4096};
  cleanup_free char *script = cfs_format("ulimit -c; head -c 100000 /dev/zero > %s", path);
  assert_int_equal(run_shell(&c, script), 0);
  assert_int_not_equal(c.result.status, 0);
  assert_true(cfs_has_prefix(c.result.output, "0\n"));
  unlink(path);
  call_done(&c);
}

static volatile sig_atomic_t stop;

static void *stop_soon(void *data)
{
  (void)data;
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  stop = 1;
  return NULL;
}

static void test_the_stop_flag_ends_it(void **state)
{
  (void)state;
  pthread_t thread;
  struct call c = {.child.stop = &stop};
  double start = now();
  assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
  assert_int_equal(run_shell(&c, "sleep 600"), -EINTR);
  assert_true(now() - start < 10);
  pthread_join(thread, NULL);
  call_done(&c);
}

static void test_much_output_is_cut_and_does_not_block(void **state)
{
  (void)state;
  struct call c = {0};
  assert_int_equal(run_shell(&c, "head -c 5000000 /dev/zero | tr '\\0' x"), 0);
  assert_int_equal(c.result.status, 0);
  assert_true(strlen(c.result.output) >= 1000000 && strlen(c.result.output) < 1100000);
  call_done(&c);
}

static void test_command_text_can_be_pasted(void **state)
{
  (void)state;
  cleanup_strings cfs_strings argv = {0};
  cfs_strings_add(&argv, "/opt/my cuda/bin/nvcc");
  cfs_strings_add(&argv, "-gencode");
  cfs_strings_add(&argv, "arch=compute_120a,code=sm_120a");
  cfs_strings_add(&argv, "it's");
  cfs_strings_add(&argv, "");
  cleanup_free char *text = cfs_command_text(&argv);
  assert_string_equal(text, "'/opt/my cuda/bin/nvcc' -gencode arch=compute_120a,code=sm_120a 'it'\\''s' ''");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_output_status_folder_environment),
      cmocka_unit_test(test_a_signal_is_told),
      cmocka_unit_test(test_a_program_that_is_not_there),
      cmocka_unit_test(test_time_limit_ends_the_whole_family),
      cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_the_stop_flag_ends_it),
      cmocka_unit_test(test_much_output_is_cut_and_does_not_block),
      cmocka_unit_test(test_command_text_can_be_pasted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
