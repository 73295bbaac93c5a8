/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "toy.h"

static const struct toy_set all_132 = {"13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86"};
static const struct toy_set all_130 = {"13.0.88", "13.0.88", "13.0.88", "13.0.96", "13.0.85", "13.0.88"};

static void venv(struct toy_world *w, const char *name, struct toy_set set)
{
  cleanup_free char *dir = cfs_path_join(w->dir, name);
  free(toy_venv(dir, &set));
}

static cfs_plan *plan_of(struct toy_world *w, const char *text)
{
  return toy_plan(w->tables, w->dir, text);
}

static const char *source_of(const cfs_plan *plan, const char *component)
{
  const cfs_choice *c = cfs_toolchain_choice(&plan->toolchains[0], component);
  return c ? c->source->id : NULL;
}

static void expect_refused(struct toy_world *w, const char *text, const char *code)
{
  cfs_plan *plan = plan_of(w, text);
  assert_false(plan->coherent);
  assert_null(plan->digest);
  assert_true(toy_has_problem(plan, code, CFS_PROBLEM));
  assert_true(plan->n_repairs > 0);
  assert_true(plan->repairs[0].fix.count > 0);
  cfs_plan_free(plan);
}

static void expect_release(struct toy_world *w, const char *text, const char *release)
{
  cfs_plan *plan = plan_of(w, text);
  assert_true(plan->coherent);
  assert_string_equal(plan->release, release);
  cfs_plan_free(plan);
}

static void test_one_whole_venv(void **state)
{
  struct toy_world *w = *state;
  venv(w, "v", all_132);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}");
  assert_true(plan->coherent);
  assert_string_equal(plan->release, "13.2");
  assert_true(plan->toolchains[0].compiles && plan->toolchains[0].assembles && plan->toolchains[0].links);
  assert_string_equal(plan->toolchains[0].tool_version, "13.2.86");
  /* The toy ptxas cannot run, so the table speaks for it. */
  assert_string_equal(plan->toolchains[0].max_ptx, "9.2");
  cfs_plan_free(plan);
}

static void test_headers_of_another_release(void **state)
{
  struct toy_world *w = *state;
  struct toy_set set = all_132;
  set.runtime = "13.0.96";
  venv(w, "v", set);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}");
  assert_false(plan->coherent);
  assert_true(toy_has_problem(plan, "headers-release-mismatch", CFS_PROBLEM));
  assert_string_equal(plan->repairs[0].release, "13.2");
  assert_int_equal(plan->repairs[0].changes, 1);
  assert_non_null(strstr(plan->repairs[0].fix.items[0], "v/bin/python' -m pip install"));
  assert_non_null(strstr(plan->repairs[0].fix.items[0], "'nvidia-cuda-runtime==13.2.86.*'"));
  cfs_plan_free(plan);
}

static void test_split_compiler_unit(void **state)
{
  struct toy_world *w = *state;
  struct toy_set set = all_130;
  set.nvvm = "13.2.86";
  venv(w, "v", set);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}", "compiler-unit-split");
  set = all_130;
  set.crt = "13.2.86";
  venv(w, "u", set);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/u\"]}", "compiler-unit-split");
}

static void test_policy_lowers_a_named_problem_only(void **state)
{
  struct toy_world *w = *state;
  struct toy_set set = all_132;
  set.runtime = "13.0.96";
  venv(w, "v", set);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],"
                              "\"policy\":{\"allow\":[\"headers-release-mismatch\"]}}");
  assert_true(plan->coherent);
  assert_true(toy_has_problem(plan, "headers-release-mismatch", CFS_WARNING));
  cfs_plan_free(plan);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],\"policy\":{\"allow\":[\"compiler-unit-split\"]}}",
                 "headers-release-mismatch");
}

static void test_a_whole_toolkit_beside_a_broken_venv(void **state)
{
  struct toy_world *w = *state;
  struct toy_set set = all_132;
  set.runtime = "13.0.96";
  venv(w, "v", set);
  cleanup_free char *toolkit = cfs_path_join(w->dir, "cuda-13.0");
  toy_toolkit(toolkit, "13.0.88", NULL);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\",\"TOY/cuda-13.0\"]}");
  assert_true(plan->coherent);
  assert_string_equal(plan->release, "13.0");
  assert_string_equal(source_of(plan, "cuda_nvcc"), "cuda-13.0");
  assert_int_equal(plan->n_toolchains, 2);
  assert_string_equal(plan->toolchains[1].release, "13.2");
  assert_false(plan->toolchains[1].compiles);
  assert_true(plan->toolchains[1].assembles);
  cfs_plan_free(plan);
}

static void test_one_release_of_three_sources(void **state)
{
  struct toy_world *w = *state;
  venv(w, "tools", (struct toy_set){.nvcc = "13.2.86", .crt = "13.2.86", .nvvm = "13.2.86"});
  venv(w, "headers", (struct toy_set){.runtime = "13.2.86", .cccl = "13.2.86"});
  venv(w, "nvrtc", (struct toy_set){.nvrtc = "13.2.86"});
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/tools\",\"TOY/headers\",\"TOY/nvrtc\"]}");
  assert_true(plan->coherent);
  assert_string_equal(source_of(plan, "libnvvm"), "tools");
  assert_string_equal(source_of(plan, "cuda_cudart"), "headers");
  assert_string_equal(source_of(plan, "cccl"), "headers");
  assert_string_equal(source_of(plan, "cuda_nvrtc"), "nvrtc");
  cfs_plan_free(plan);
}

static void test_half_a_toolkit_is_completed(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *toolkit = cfs_path_join(w->dir, "cuda-13.2");
  toy_toolkit(toolkit, "13.2.86", "nvvm/");
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/cuda-13.2\"]}", "component-missing");
  venv(w, "v", all_132);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/cuda-13.2\",\"TOY/v\"],"
                              "\"components\":{\"cuda_nvcc\":{\"from\":\"cuda-13.2\"}}}");
  assert_true(plan->coherent);
  assert_string_equal(source_of(plan, "cuda_nvcc"), "cuda-13.2");
  cfs_plan_free(plan);
}

static void test_newest_that_meets_the_wish(void **state)
{
  struct toy_world *w = *state;
  venv(w, "a", all_130);
  venv(w, "b", all_132);
  expect_release(w, "{\"cudafs\":1,\"sources\":[\"TOY/a\",\"TOY/b\"]}", "13.2");
  expect_release(w, "{\"cudafs\":1,\"sources\":[\"TOY/a\",\"TOY/b\"],\"release\":\"13.0\"}", "13.0");
  expect_release(w, "{\"cudafs\":1,\"sources\":[\"TOY/a\",\"TOY/b\"],\"release\":\">=12.9,<13.1\"}", "13.0");
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/a\",\"TOY/b\"],\"release\":\"13.5\"}", "policy-unmet");
}

static void test_release_of_torch(void **state)
{
  struct toy_world *w = *state;
  venv(w, "a", all_130);
  venv(w, "b", all_132);
  toy_write(w->dir, "a/lib/python3.12/site-packages/torch/version.py",
            "from typing import Optional\n__version__ = '2.9.0+cu130'\ncuda: Optional[str] = '13.0'\n");
  expect_release(w, "{\"cudafs\":1,\"sources\":[\"TOY/a\",\"TOY/b\"],\"release\":\"torch\"}", "13.0");
}

static void test_targets_and_consumers(void **state)
{
  struct toy_world *w = *state;
  venv(w, "v", all_132);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],\"targets\":[\"sm_107a\"]}", "target-unsupported");
  expect_release(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],\"targets\":[\"sm_120f\"],\"consumers\":[\"flashinfer\"]}",
                 "13.2");
}

static void test_wheels_without_a_compiler(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *site = cfs_path_join(w->dir, "site");
  cleanup_strings cfs_strings paths = {0};
  toy_tool(site, "nvidia/cuda_nvcc/bin/ptxas", "12.9.86");
  cfs_strings_add(&paths, "nvidia/cuda_nvcc/bin/ptxas");
  toy_record(site, "nvidia-cuda-nvcc-cu12", "12.9.86", &paths);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/site\"]}", "wheel-has-no-compiler");
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/site\"],"
                              "\"policy\":{\"allow\":[\"wheel-has-no-compiler\"]}}");
  assert_true(plan->coherent);
  assert_false(plan->toolchains[0].compiles);
  assert_string_equal(plan->toolchains[0].max_ptx, "8.8");
  cfs_plan_free(plan);
  venv(w, "v", all_132);
  plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\",\"TOY/site\"]}");
  assert_true(plan->coherent);
  assert_int_equal(plan->n_toolchains, 2);
  assert_string_equal(plan->toolchains[1].release, "12.9");
  cfs_plan_free(plan);
}

static void test_placeholder_is_named(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *site = cfs_path_join(w->dir, "site");
  cleanup_strings cfs_strings none = {0};
  toy_record(site, "nvidia-cuda-nvcc-cu13", "0.0.0a0", &none);
  struct toy_set set = all_132;
  set.nvcc = NULL;
  toy_wheels(site, &set);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/site\"]}");
  assert_false(plan->coherent);
  assert_true(toy_has_problem(plan, "placeholder-wheel", CFS_WARNING));
  cfs_plan_free(plan);
}

static void test_files_that_a_record_promises(void **state)
{
  struct toy_world *w = *state;
  venv(w, "v", all_132);
  cleanup_free char *cicc = cfs_path_join(w->dir, "v/lib/python3.12/site-packages/nvidia/cu13/nvvm/bin/cicc");
  assert_int_equal(unlink(cicc), 0);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}");
  assert_false(plan->coherent);
  assert_true(toy_has_problem(plan, "record-mismatch", CFS_PROBLEM));
  bool forced = false;
  for (size_t i = 0; i < plan->repairs[0].fix.count; i++)
    forced = forced || strstr(plan->repairs[0].fix.items[i], "--force-reinstall");
  assert_true(forced);
  cfs_plan_free(plan);
}

static void test_a_tool_copied_over(void **state)
{
  struct toy_world *w = *state;
  venv(w, "v", all_130);
  /* Of the same size, so that the record does not show it. */
  toy_tool(w->dir, "v/lib/python3.12/site-packages/nvidia/cu13/bin/ptxas", "13.2.86");
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}", "compiler-unit-split");
}

static void test_omit_and_missing_toolchain(void **state)
{
  struct toy_world *w = *state;
  venv(w, "v", all_132);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],\"components\":{\"cuda_nvrtc\":{\"omit\":true}}}");
  assert_true(plan->coherent);
  assert_null(source_of(plan, "cuda_nvrtc"));
  cfs_plan_free(plan);
  expect_refused(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"],\"toolchains\":[\"12.9\"]}", "toolchain-incomplete");
}

static void test_newer_nvrtc_is_left_out(void **state)
{
  struct toy_world *w = *state;
  struct toy_set set = all_130;
  set.nvrtc = "13.2.86";
  venv(w, "v", set);
  cfs_plan *plan = plan_of(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}");
  assert_true(plan->coherent);
  assert_null(source_of(plan, "cuda_nvrtc"));
  cfs_plan_free(plan);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, toy_world_make, toy_world_end)
      TEST(test_one_whole_venv),
      TEST(test_headers_of_another_release),
      TEST(test_split_compiler_unit),
      TEST(test_policy_lowers_a_named_problem_only),
      TEST(test_a_whole_toolkit_beside_a_broken_venv),
      TEST(test_one_release_of_three_sources),
      TEST(test_half_a_toolkit_is_completed),
      TEST(test_newest_that_meets_the_wish),
      TEST(test_release_of_torch),
      TEST(test_targets_and_consumers),
      TEST(test_wheels_without_a_compiler),
      TEST(test_placeholder_is_named),
      TEST(test_files_that_a_record_promises),
      TEST(test_a_tool_copied_over),
      TEST(test_omit_and_missing_toolchain),
      TEST(test_newer_nvrtc_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
