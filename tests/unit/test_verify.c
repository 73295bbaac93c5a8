/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/verify_private.h"
#include "toy.h"

static char *dir, *home;

static int setup(void **state)
{
  (void)state;
  char *made = toy_dir();
  dir = realpath(made, NULL);
  free(made);
  home = cfs_path_join(dir, "cuda");
  toy_write(home, "include/cuda_fp16.h", "");
  toy_write(home, "include/cccl/cub/cub.cuh", "");
  toy_write(home, "lib64/libcudart.so", "");
  toy_write(home, "lib64/libcurand.so", "");
  setenv("TMPDIR", dir, 1);
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  unsetenv("TMPDIR");
  free(home);
  toy_remove(dir);
  return 0;
}

static char *origin_of_headers(const char *format_of_other)
{
  cleanup_free char *depfile = cfs_path_join(dir, "test.d");
  cleanup_free char *text = cfs_format("test.o : test.cu \\\n    %s/bin/../include/cuda_fp16.h \\\n"
                                       "    %s/include/cccl/cub/cub.cuh \\\n    /usr/include/stdio.h \\\n    %s\n",
                                       home, home, format_of_other);
  toy_write(home, "bin/nvcc.profile", "");
  assert_int_equal(cfs_file_write(depfile, text, strlen(text)), 0);
  return cfs_origin_of_headers(home, depfile);
}

static void test_headers_of_the_toolkit_and_the_system_are_fine(void **state)
{
  (void)state;
  cleanup_free char *found = origin_of_headers("/usr/include/c++/12/functional");
  assert_null(found);
}

/* Both kinds: one that the toolkit has itself, and one that only CUDA can mean. */
static void test_stray_headers_are_named(void **state)
{
  (void)state;
  static const char *const strays[] = {"stray/include/cuda_fp16.h",        "stray/include/cub/cub.cuh",
                                       "stray/include/cuda_runtime_api.h", "stray/include/crt/host_config.h",
                                       "stray/include/thrust/sort.h",      "stray/include/nvtx3/nvtx3.hpp"};
  for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++) {
    toy_write(dir, strays[i], "");
    cleanup_free char *path = cfs_path_join(dir, strays[i]);
    cleanup_free char *found = origin_of_headers(path);
    assert_non_null(found);
    assert_true(cfs_has_prefix(found, "shadowed by "));
    assert_true(cfs_has_suffix(found, strays[i]));
  }
}

static void test_no_depfile_is_no_proof(void **state)
{
  (void)state;
  cleanup_free char *found = cfs_origin_of_headers(home, "/no/such/file");
  assert_non_null(found);
}

static void test_libraries(void **state)
{
  (void)state;
  toy_write(dir, "stray/libcurand.so", "");
  toy_write(dir, "stray/libcudadevrt.a", "");
  cleanup_free char *fine =
      cfs_format("/lib/x86_64-linux-gnu/libc.so.6\n%s/bin/../lib64/libcudart.so\n(%s/lib64/x.a)y.o\n"
                 "/tmp/tmpxft_1.o\n",
                 home, home);
  cleanup_free char *one = cfs_format("%s%s/stray/libcurand.so\n", fine, dir);
  cleanup_free char *member = cfs_format("%s(%s/stray/libcudadevrt.a)cuda_device_runtime.o\n", fine, dir);
  cleanup_free char *none = cfs_origin_of_libraries(home, fine), *first = cfs_origin_of_libraries(home, one);
  cleanup_free char *second = cfs_origin_of_libraries(home, member);
  assert_null(none);
  assert_non_null(first);
  assert_true(cfs_has_suffix(first, "stray/libcurand.so"));
  assert_non_null(second);
  assert_true(cfs_has_suffix(second, "stray/libcudadevrt.a"));
}

static void test_needed_libraries_of_a_program(void **state)
{
  (void)state;
  cleanup_strings cfs_strings needed = {0};
  assert_int_equal(cfs_origin_needed("/proc/self/exe", &needed), 0);
  bool found = false;
  for (size_t i = 0; i < needed.count; i++)
    found = found || cfs_has_prefix(needed.items[i], "libcmocka.so");
  assert_true(found);
  assert_true(cfs_origin_needed("/no/such/file", &needed) < 0);
}

static const char plan_text[] =
    "{\"release\": \"13.0\", \"targets\": [\"sm_120f\", \"sm_90a\"], \"toolchains\": [\n"
    " {\"release\": \"13.0\", \"primary\": true, \"max_ptx\": \"9.0\", \"archs\": [\"sm_75\", \"sm_120a\", "
    "\"sm_120f\"]},\n"
    " {\"release\": \"13.4\", \"primary\": false, \"max_ptx\": \"9.4\", \"archs\": [\"sm_107\", \"sm_121a\", "
    "\"sm_121f\"]},\n"
    " {\"release\": \"12.9\", \"primary\": false, \"max_ptx\": null, \"archs\": [\"sm_75\"]}]}\n";

static void test_a_mount_tells_its_targets_and_toolchains(void **state)
{
  (void)state;
  cfs_subject s = {0};
  cleanup_error cfs_error *err = NULL;
  toy_write(home, ".cudafs/plan.json", plan_text);
  assert_int_equal(cfs_subject_read(home, &s, &err), 0);
  assert_string_equal(s.release, "13.0");
  assert_string_equal(s.max_ptx, "9.0");
  assert_int_equal(s.targets.count, 2);
  assert_int_equal(s.archs.count, 3);
  assert_int_equal(s.n_toolchains, 1); /* the other one does not say what it takes */
  assert_string_equal(s.toolchains[0].target, "sm_121a");
  cfs_subject_done(&s);
}

static void test_the_default_target(void **state)
{
  (void)state;
  static const struct {
    const char *archs, *target;
  } cases[] = {{"\"sm_75\", \"sm_120a\", \"sm_121a\"", "sm_120a"}, {"\"sm_75\", \"sm_90\", \"sm_90a\"", "sm_90a"}};
  for (size_t i = 0; i < 2; i++) {
    cfs_subject s = {0};
    cleanup_free char *text =
        cfs_format("{\"release\": \"13.0\", \"targets\": [], \"toolchains\": [{\"release\": \"13.0\","
                   " \"primary\": true, \"archs\": [%s]}]}",
                   cases[i].archs);
    toy_write(home, ".cudafs/plan.json", text);
    assert_int_equal(cfs_subject_read(home, &s, NULL), 0);
    assert_int_equal(s.targets.count, 1);
    assert_string_equal(s.targets.items[0], cases[i].target);
    cfs_subject_done(&s);
  }
}

static void test_a_folder_without_tools_is_no_toolkit(void **state)
{
  (void)state;
  cfs_subject s = {0};
  cleanup_error cfs_error *err = NULL;
  assert_true(cfs_subject_read(home, &s, &err) < 0);
  assert_non_null(err);
  assert_non_null(err->fix);
}

/* An nvcc and a ptxas that tell what they were given: verify must believe neither silence nor luck. */
static void script(const char *path, const char *text)
{
  toy_write_bytes(home, path, text, strlen(text), true);
}

static const struct cfs_test_result *result_of(const cfs_verify_report *r, const char *name)
{
  for (size_t i = 0; i < r->n_tests; i++)
    if (strcmp(r->tests[i].name, name) == 0)
      return &r->tests[i];
  fail_msg("no test %s", name);
  return NULL;
}

static size_t leftovers(void)
{
  cleanup_free char *pattern = cfs_path_join(dir, "cudafs-verify-*");
  glob_t g;
  size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
  if (n)
    globfree(&g);
  return n;
}

static void read_subject(cfs_subject *s)
{
  toy_write(
      home, ".cudafs/plan.json",
      "{\"release\": \"13.0\", \"targets\": [\"sm_120a\"], \"toolchains\": [{\"release\": \"13.0\", \"primary\": true,"
      " \"max_ptx\": \"9.0\", \"archs\": [\"sm_120a\"]}]}");
  assert_int_equal(cfs_subject_read(home, s, NULL), 0);
}

static void test_failures_are_told_with_their_cause(void **state)
{
  (void)state;
  cfs_subject s = {0};
  cfs_verify_report report = {0};
  cleanup_error cfs_error *err = NULL;
  setenv("NVCC_APPEND_FLAGS", "-poison", 1);
  script("bin/nvcc",
         "#!/bin/sh\necho harmless\necho \"x.cu(1): error: flags=$NVCC_APPEND_FLAGS path=$PATH\" >&2\nexit 2\n");
  script("bin/ptxas", "#!/bin/sh\n: > test.cubin\n");
  read_subject(&s);
  assert_int_equal(cfs_verify(&s, &(struct cfs_verify_options){.helper = "/bin/false"}, &report, &err), 0);
  const struct cfs_test_result *object = result_of(&report, "nvcc-object");
  assert_int_equal(object->status, CFS_TEST_FAIL);
  assert_non_null(strstr(object->detail, "error: flags= path=/usr/bin:/bin"));
  assert_non_null(strstr(object->command, "-gencode arch=compute_120a,code=sm_120a"));
  assert_int_equal(result_of(&report, "ptxas")->status, CFS_TEST_PASS);
  assert_int_equal(result_of(&report, "nvrtc")->status, CFS_TEST_SKIP);
  assert_int_equal(result_of(&report, "driver-stub")->status, CFS_TEST_SKIP);
  assert_int_equal(leftovers(), 0);
  unsetenv("NVCC_APPEND_FLAGS");
  cfs_verify_report_done(&report);
  cfs_subject_done(&s);
}

/* A compiler that does nothing and says it went well. */
static void test_success_without_a_product_is_a_failure(void **state)
{
  (void)state;
  cfs_subject s = {0};
  cfs_verify_report report = {0};
  script("bin/nvcc", "#!/bin/sh\nexit 0\n");
  script("bin/ptxas", "#!/bin/sh\nexit 0\n");
  read_subject(&s);
  assert_int_equal(cfs_verify(&s, &(struct cfs_verify_options){.helper = "/bin/false"}, &report, NULL), 0);
  assert_int_equal(result_of(&report, "nvcc-object")->status, CFS_TEST_FAIL);
  assert_int_equal(result_of(&report, "nvcc-shared")->status, CFS_TEST_FAIL);
  assert_int_equal(result_of(&report, "ptxas")->status, CFS_TEST_FAIL);
  assert_int_equal(cfs_verify_count(&report, CFS_TEST_PASS), 0);
  cfs_verify_report_done(&report);
  cfs_subject_done(&s);
}

static void test_it_can_be_stopped(void **state)
{
  (void)state;
  volatile sig_atomic_t stop = 1;
  cfs_subject s = {0};
  cfs_verify_report report = {0};
  cleanup_error cfs_error *err = NULL;
  script("bin/nvcc", "#!/bin/sh\nsleep 600\n");
  read_subject(&s);
  assert_int_equal(cfs_verify(&s, &(struct cfs_verify_options){.helper = "/bin/false", .stop = &stop}, &report, &err),
                   -EINTR);
  assert_int_equal(leftovers(), 0);
  cfs_subject_done(&s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_headers_of_the_toolkit_and_the_system_are_fine, setup, teardown),
      cmocka_unit_test_setup_teardown(test_stray_headers_are_named, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_depfile_is_no_proof, setup, teardown),
      cmocka_unit_test_setup_teardown(test_libraries, setup, teardown),
      cmocka_unit_test_setup_teardown(test_needed_libraries_of_a_program, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_mount_tells_its_targets_and_toolchains, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_default_target, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_folder_without_tools_is_no_toolkit, setup, teardown),
      cmocka_unit_test_setup_teardown(test_failures_are_told_with_their_cause, setup, teardown),
      cmocka_unit_test_setup_teardown(test_success_without_a_product_is_a_failure, setup, teardown),
      cmocka_unit_test_setup_teardown(test_it_can_be_stopped, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
