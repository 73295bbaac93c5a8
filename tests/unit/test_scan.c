/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/scan.h"
#include "toy.h"

static const struct toy_set whole = {"13.2.78", "13.2.78", "13.2.78", "13.2.75", "13.2.75", "13.2.78"};
static char *dir;

static int setup(void **state)
{
  (void)state;
  char *made = toy_dir();
  dir = realpath(made, NULL);
  free(made);
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  toy_remove(dir);
  return 0;
}

struct finding {
  struct cfs_found *found;
  size_t n;
};

static struct finding scan_below(const char *path)
{
  struct finding f = {0};
  cfs_scan(&path, 1, &f.found, &f.n);
  return f;
}

static const struct cfs_found *find(const struct finding *f, const char *path)
{
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->found[i].path, path) == 0)
      return &f->found[i];
  return NULL;
}

static void test_below_a_folder(void **state)
{
  (void)state;
  cleanup_free char *toolkit = cfs_path_join(dir, "cuda-13.0"), *envs = cfs_path_join(dir, "envs/a");
  cfs_mkdir_all(envs, 0755);
  cleanup_free char *site = toy_venv(envs, &whole);
  toy_toolkit(toolkit, "13.0.88", NULL);
  struct finding f = scan_below(dir);
  assert_int_equal(f.n, 2);
  assert_int_equal(f.found[0].kind, CFS_SOURCE_TOOLKIT);
  assert_string_equal(f.found[0].path, toolkit);
  cleanup_free char *real_site = realpath(site, NULL);
  assert_non_null(find(&f, real_site));
  assert_int_equal(find(&f, real_site)->kind, CFS_SOURCE_SITE_PACKAGES);
  cfs_found_free(f.found, f.n);
}

static void test_a_python_without_cuda_is_nothing(void **state)
{
  (void)state;
  toy_write(dir, "lib/python3.11/site-packages/pip-23.0.dist-info/METADATA", "Name: pip\nVersion: 23.0\n");
  struct finding f = scan_below(dir);
  assert_int_equal(f.n, 0);
  cfs_found_free(f.found, f.n);
}

static void test_our_own_mounts_are_left_out(void **state)
{
  (void)state;
  cleanup_free char *mount = cfs_path_join(dir, "mount");
  toy_toolkit(mount, "13.0.88", NULL);
  toy_write(mount, ".cudafs/id", "0\n");
  struct finding f = scan_below(dir);
  assert_int_equal(f.n, 0);
  cfs_found_free(f.found, f.n);
}

/* One place by two ways is found once, and both ways are told. */
static void test_each_place_once_by_its_real_path(void **state)
{
  (void)state;
  cleanup_free char *toolkit = cfs_path_join(dir, "cuda-13.0"), *link = cfs_path_join(dir, "cuda");
  toy_toolkit(toolkit, "13.0.88", NULL);
  assert_int_equal(symlink("cuda-13.0", link), 0);
  setenv("CUDA_HOME", link, 1);
  setenv("CUDA_PATH", toolkit, 1);
  struct finding f = {0};
  cfs_scan(NULL, 0, &f.found, &f.n);
  unsetenv("CUDA_HOME");
  unsetenv("CUDA_PATH");
  const struct cfs_found *found = find(&f, toolkit);
  assert_non_null(found);
  assert_non_null(strstr(found->how, "$CUDA_HOME"));
  assert_non_null(strstr(found->how, "$CUDA_PATH"));
  assert_null(find(&f, link));
  cfs_found_free(f.found, f.n);
}

/* The folder of a wheel's own bin/ looks like a toolkit; its packages know more. */
static void test_inside_of_wheels_is_their_site_packages(void **state)
{
  (void)state;
  cleanup_free char *site = toy_venv(dir, &whole), *inside = cfs_path_join(site, "nvidia/cu13");
  cleanup_free char *real_site = realpath(site, NULL);
  setenv("CUDA_HOME", inside, 1);
  struct finding f = {0};
  cfs_scan(NULL, 0, &f.found, &f.n);
  unsetenv("CUDA_HOME");
  assert_non_null(find(&f, real_site));
  assert_int_equal(find(&f, real_site)->kind, CFS_SOURCE_SITE_PACKAGES);
  cfs_found_free(f.found, f.n);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_below_a_folder, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_python_without_cuda_is_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(test_our_own_mounts_are_left_out, setup, teardown),
      cmocka_unit_test_setup_teardown(test_each_place_once_by_its_real_path, setup, teardown),
      cmocka_unit_test_setup_teardown(test_inside_of_wheels_is_their_site_packages, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
