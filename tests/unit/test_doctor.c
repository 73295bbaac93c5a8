/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/doctor.h"
#include "toy.h"

static const char *const variables[] = {"CUDA_HOME",        "CUDA_PATH",   "CUDA_ROOT",
                                        "CUDAToolkit_ROOT", "VIRTUAL_ENV", "LIBRARY_PATH",
                                        "LD_LIBRARY_PATH",  "CUDACXX",     "TRITON_PTXAS_PATH"};
static char *dir, *old_path;
static cfs_diagnosis diagnosis;

static int setup(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
    unsetenv(variables[i]);
  old_path = cfs_strdup(getenv("PATH"));
  setenv("PATH", "/usr/bin:/bin", 1);
  dir = toy_dir();
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
    unsetenv(variables[i]);
  setenv("PATH", old_path, 1);
  free(old_path);
  cfs_diagnosis_done(&diagnosis);
  toy_remove(dir);
  return 0;
}

static void examine(const char *named, const char *consumer)
{
  cleanup_strings cfs_strings consumers = {0};
  cleanup_error cfs_error *err = NULL;
  if (consumer)
    cfs_strings_add(&consumers, consumer);
  struct cfs_doctor_request request = {.dir = named, .consumers = &consumers};
  assert_int_equal(cfs_doctor(&request, &diagnosis, &err), 0);
}

static const struct cfs_check *find(const char *code, const char *word)
{
  for (size_t i = 0; i < diagnosis.n_checks; i++)
    if (strcmp(diagnosis.checks[i].code, code) == 0 && strstr(diagnosis.checks[i].message, word))
      return &diagnosis.checks[i];
  return NULL;
}

static void test_variables_that_lead_nowhere(void **state)
{
  (void)state;
  setenv("CUDA_HOME", "/no/such/cuda", 1);
  setenv("CUDA_PATH", "", 1);
  examine(NULL, "torch");
  const struct cfs_check *missing = find("variable-missing", "CUDA_HOME"), *empty = find("variable-empty", "CUDA_PATH");
  assert_non_null(missing);
  assert_int_equal(missing->status, CFS_CHECK_ERROR);
  assert_int_equal(missing->fix.count, 1);
  assert_non_null(empty);
  assert_string_equal(empty->fix.items[0], "unset CUDA_PATH");
  assert_int_equal(diagnosis.consumers[0].verdict, CFS_VERDICT_NONE);
}

static void test_two_variables_two_releases(void **state)
{
  (void)state;
  cleanup_free char *a = cfs_path_join(dir, "cuda-13.0"), *b = cfs_path_join(dir, "cuda-13.2");
  toy_toolkit(a, "13.0.88", NULL);
  toy_toolkit(b, "13.2.78", NULL);
  setenv("CUDA_HOME", a, 1);
  setenv("CUDA_PATH", b, 1);
  examine(NULL, "cupy");
  assert_non_null(find("variable", "leads to CUDA 13.0.88"));
  assert_non_null(find("variable", "leads to CUDA 13.2.78"));
  assert_non_null(find("variables-disagree", "CUDA_PATH"));
  assert_string_equal(diagnosis.consumers[0].cuda_home, b); /* CuPy asks CUDA_PATH first */
  assert_string_equal(diagnosis.consumers[0].version, "13.2.78");
}

static void test_a_library_path_with_cuda_in_it(void **state)
{
  (void)state;
  toy_write(dir, "lib64/libcudart.so", "");
  cleanup_free char *list = cfs_format("/usr/lib::%s/lib64", dir);
  setenv("LIBRARY_PATH", list, 1);
  examine(NULL, "torch");
  const struct cfs_check *c = find("search-path", "LIBRARY_PATH leads to");
  assert_non_null(c);
  assert_int_equal(c->status, CFS_CHECK_WARNING);
  assert_non_null(find("variable-empty", "LIBRARY_PATH"));
}

static void test_what_a_consumer_needs(void **state)
{
  (void)state;
  cleanup_free char *home = cfs_path_join(dir, "cuda");
  toy_toolkit(home, "13.2.78", "lib/libcudart");
  examine(home, "flashinfer");
  assert_int_equal(diagnosis.n_consumers, 1);
  assert_int_equal(diagnosis.consumers[0].verdict, CFS_VERDICT_INCOMPLETE);
  assert_non_null(strstr(diagnosis.consumers[0].reason, "lib/libcudart.so"));
  assert_string_equal(diagnosis.consumers[0].version, "13.2.78");
}

/* FlashInfer wants 12.9 for SM120; nothing was asked for, so that is a word and no verdict against it. */
static void test_rules_without_targets_only_limit(void **state)
{
  (void)state;
  cleanup_free char *home = cfs_path_join(dir, "cuda");
  toy_toolkit(home, "12.8.93", NULL);
  examine(home, "tvm-ffi");
  examine(home, "xformers");
  for (size_t i = 0; i < diagnosis.n_consumers; i++)
    assert_int_not_equal(diagnosis.consumers[i].verdict, CFS_VERDICT_UNMET);
}

static void test_a_program_with_tools_of_its_own(void **state)
{
  (void)state;
  examine(NULL, "triton");
  assert_int_equal(diagnosis.consumers[0].verdict, CFS_VERDICT_OK);
  assert_null(diagnosis.consumers[0].cuda_home);
}

static void test_wheels_of_another_release_go_first(void **state)
{
  (void)state;
  static const struct toy_set wheels = {"13.0.88", "13.0.88", "13.0.88", "13.0.96", "13.0.85", "13.0.88"};
  cleanup_free char *home = cfs_path_join(dir, "cuda"), *env = cfs_path_join(dir, "env");
  cfs_mkdir_all(env, 0755);
  free(toy_venv(env, &wheels));
  toy_toolkit(home, "13.2.78", NULL);
  setenv("VIRTUAL_ENV", env, 1);
  examine(home, "cuda-pathfinder");
  const struct cfs_consumer_report *r = &diagnosis.consumers[0];
  assert_true(r->verdict == CFS_VERDICT_SHADOWED || r->verdict == CFS_VERDICT_INCOMPLETE);
  if (r->verdict == CFS_VERDICT_SHADOWED)
    assert_non_null(strstr(r->reason, "13.0"));
}

static void test_an_unknown_consumer(void **state)
{
  (void)state;
  cleanup_strings cfs_strings consumers = {0};
  cleanup_error cfs_error *err = NULL;
  cfs_strings_add(&consumers, "flashinfre");
  struct cfs_doctor_request request = {.consumers = &consumers};
  assert_int_equal(cfs_doctor(&request, &diagnosis, &err), -ENOENT);
  assert_int_equal(err->kind, CFS_INVALID);
  assert_non_null(strstr(err->fix, "flashinfer"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_variables_that_lead_nowhere, setup, teardown),
      cmocka_unit_test_setup_teardown(test_two_variables_two_releases, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_library_path_with_cuda_in_it, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_a_consumer_needs, setup, teardown),
      cmocka_unit_test_setup_teardown(test_rules_without_targets_only_limit, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_program_with_tools_of_its_own, setup, teardown),
      cmocka_unit_test_setup_teardown(test_wheels_of_another_release_go_first, setup, teardown),
      cmocka_unit_test_setup_teardown(test_an_unknown_consumer, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
