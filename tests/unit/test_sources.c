/* SPDX-License-Identifier: MIT */
/* Reading sources: layouts, records, and everything that may be wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dist_info.h"
#include "overlays/remap.h"
#include "overlays/source.h"
#include "toy.h"

static const struct toy_set all_132 = {"13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86"};

static int read_source(struct toy_world *w, enum cfs_source_kind kind, const char *name, cfs_inventory **ret,
                       cfs_error **err)
{
  cleanup_free char *path = cfs_path_join(w->dir, name);
  char id[] = "id";
  const struct cfs_manifest_source source = {.id = id, .kind = kind, .path = path};
  return cfs_source_read(&source, NULL, w->tables, ret, err);
}

static const cfs_part *part_of(const cfs_inventory *inv, const char *component)
{
  for (size_t i = 0; i < inv->n_parts; i++)
    if (strcmp(inv->parts[i].info->name, component) == 0)
      return &inv->parts[i];
  return NULL;
}

static bool has_problem(const cfs_inventory *inv, const char *code)
{
  for (size_t i = 0; i < inv->problems.count; i++)
    if (strcmp(inv->problems.items[i].code, code) == 0)
      return true;
  return false;
}

static void expect_face(const cfs_remap *r, const char *path, const char *face)
{
  cleanup_free char *got = cfs_remap_face(r, path);
  if (face)
    assert_string_equal(got, face);
  else
    assert_null(got);
}

static void test_remap_rules(void **state)
{
  struct toy_world *w = *state;
  cfs_remap *r = NULL;
  assert_int_equal(cfs_remap_load(w->tables->dir, "wheel", &r, NULL), 0);
  expect_face(r, "nvidia/cu13/bin/nvcc", "bin/nvcc");
  expect_face(r, "nvidia/cuda_nvcc/bin/ptxas", "bin/ptxas");
  expect_face(r, "nvidia/cu13/lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so.4");
  expect_face(r, "nvidia/cu13/include/nvvm.h", "nvvm/include/nvvm.h");
  expect_face(r, "nvidia/cu13/include/nvvm.hpp", "include/nvvm.hpp");
  expect_face(r, "nvidia/cu13/cccl/lib/cmake/cub/cub-config.cmake", "lib/cmake/cub/cub-config.cmake");
  expect_face(r, "nvidia/cu13/.metadata/x", NULL);
  expect_face(r, "nvidia/__init__.py", NULL);
  expect_face(r, "nvidia_cuda_nvcc-13.2.86.dist-info/RECORD", NULL);
  cfs_remap_free(r);
  cfs_error *err = NULL;
  assert_int_equal(cfs_remap_load(w->tables->dir, "no-such-layout", &r, &err), -EINVAL);
  assert_non_null(strstr(err->why, "no-such-layout"));
  cfs_error_free(err);
}

static void test_dist_info_names(void **state)
{
  (void)state;
  cleanup_free char *name = NULL, *version = NULL;
  assert_true(cfs_dist_info_split("nvidia_cuda_nvcc-13.2.78.dist-info", &name, &version));
  assert_string_equal(name, "nvidia-cuda-nvcc");
  assert_string_equal(version, "13.2.78");
  assert_false(cfs_dist_info_split("nvidia_cuda_nvcc.dist-info", &name, &version));
  assert_false(cfs_dist_info_split("-1.dist-info", &name, &version));
  assert_false(cfs_dist_info_split("nvidia_cuda_nvcc-13.2.78.egg-info", &name, &version));
}

static void test_record_lines(void **state)
{
  struct toy_world *w = *state;
  toy_write(w->dir, "a-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\r\nName: A\r\nVersion: 1.0\r\n\r\nVersion: 9\r\n");
  toy_write(w->dir, "a-1.0.dist-info/RECORD",
            "nvidia/x,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n"
            "\"with, comma and \"\"quote\"\"\",,\n"
            "../../outside,,1\n/absolute,,1\nshort,sha256=AAAA,12x\n,,\n\nplain\n");
  cleanup_free char *path = cfs_path_join(w->dir, "a-1.0.dist-info");
  cfs_dist_info *d = NULL;
  assert_int_equal(cfs_dist_info_read(path, &d, NULL), 0);
  assert_string_equal(d->name, "A");
  assert_string_equal(d->version, "1.0");
  assert_int_equal(d->n_record, 6);
  assert_string_equal(d->record[0].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert_int_equal(d->record[0].size, 3);
  assert_string_equal(d->record[1].path, "with, comma and \"quote\"");
  assert_int_equal(d->record[1].size, -1);
  assert_null(d->record[2].path);
  assert_null(d->record[3].path);
  assert_null(d->record[4].sha256);
  assert_int_equal(d->record[4].size, -1);
  cfs_dist_info_free(d);
}

static void test_venv_and_site_are_the_same(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *dir = cfs_path_join(w->dir, "v"), *site = toy_venv(dir, &all_132);
  cfs_inventory *a = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "v", &a, NULL), 0);
  assert_int_equal(a->kind, CFS_SOURCE_SITE_PACKAGES);
  assert_string_equal(a->path, site);
  assert_non_null(strstr(a->python, "/v/bin/python"));
  assert_string_equal(a->installer, "pip");
  assert_string_equal(part_of(a, "libnvvm")->content, "13.2.86");
  assert_string_equal(part_of(a, "cuda_cudart")->release, "13.2");
  assert_string_equal(part_of(a, "cuda_crt")->release, "13.2");
  assert_true(cfs_part_file(part_of(a, "cuda_nvcc"), "bin/nvcc")->executable);
  assert_false(cfs_part_file(part_of(a, "cuda_cudart"), "include/cuda.h")->executable);
  cfs_inventory_free(a);
}

static void test_hostile_record(void **state)
{
  struct toy_world *w = *state;
  toy_write(w->dir, "secret", "s");
  cleanup_free char *site = cfs_path_join(w->dir, "site");
  toy_wheels(site, &all_132);
  toy_write(site, "nvidia_cuda_runtime-13.2.86.dist-info/RECORD",
            "../secret,,1\nnvidia/cu13/include/cuda.h,,5\nnvidia/cu13/include/cuda_runtime_api.h,,\nnvidia/cu13/"
            "include,,1\n");
  cfs_inventory *inv = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "site", &inv, NULL), 0);
  assert_true(has_problem(inv, "record-mismatch"));
  for (size_t i = 0; i < inv->n_parts; i++)
    for (size_t j = 0; j < inv->parts[i].n_files; j++)
      assert_null(strstr(inv->parts[i].files[j].path, "secret"));
  cfs_inventory_free(inv);
}

static void test_two_records_of_one_package(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *site = cfs_path_join(w->dir, "site");
  toy_wheels(site, &all_132);
  toy_write(site, "nvidia_nvvm-13.0.88.dist-info/METADATA", "Name: nvidia-nvvm\nVersion: 13.0.88\n\n");
  toy_write(site, "nvidia_nvvm-13.0.88.dist-info/RECORD", "nvidia/cu13/nvvm/bin/cicc,,999999\n");
  cfs_inventory *inv = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "site", &inv, NULL), 0);
  assert_string_equal(part_of(inv, "libnvvm")->package_version, "13.2.86");
  assert_true(has_problem(inv, "record-mismatch"));
  cfs_inventory_free(inv);
}

static void test_file_of_two_packages(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *site = cfs_path_join(w->dir, "site");
  toy_wheels(site, &all_132);
  cleanup_strings cfs_strings paths = {0};
  cfs_strings_add(&paths, "nvidia/cu13/include/nvvm.h");
  toy_record(site, "nvidia-cuda-profiler-api", "13.2.86", &paths);
  cfs_inventory *inv = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "site", &inv, NULL), 0);
  assert_true(has_problem(inv, "ownership-conflict"));
  cfs_inventory_free(inv);
}

static void test_toolkit_layouts(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *dir = cfs_path_join(w->dir, "cuda-13.2");
  toy_toolkit(dir, "13.2.86", NULL);
  /* The runfile's own form: real folders below targets/, links above, and a link to itself. */
  cleanup_free char *targets = cfs_path_join(dir, "targets/x86_64-linux");
  cleanup_free char *from = cfs_path_join(dir, "include"), *to = cfs_path_join(targets, "include");
  assert_int_equal(cfs_mkdir_all(targets, 0755), 0);
  assert_int_equal(rename(from, to), 0);
  assert_int_equal(symlink("targets/x86_64-linux/include", from), 0);
  cleanup_free char *loop = cfs_path_join(to, "loop"), *link = cfs_path_join(dir, "lib/libcudart.so");
  assert_int_equal(symlink("..", loop), 0);
  assert_int_equal(symlink("libcudart.so.13", link), 0);
  toy_write(dir, "version.json", "{\"cuda_cudart\":{\"name\":\"CUDA Runtime\",\"version\":\"13.2.75\"}}");
  cfs_inventory *inv = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "cuda-13.2", &inv, NULL), 0);
  assert_int_equal(inv->kind, CFS_SOURCE_TOOLKIT);
  const cfs_part *runtime = part_of(inv, "cuda_cudart");
  assert_string_equal(runtime->release, "13.2");
  assert_string_equal(runtime->version, "13.2.75");
  assert_string_equal(cfs_part_file(runtime, "lib/libcudart.so")->link, "libcudart.so.13");
  assert_string_equal(part_of(inv, "cuda_crt")->release, "13.2");
  cfs_inventory_free(inv);
}

static void test_a_foreign_nvcc_in_a_toolkit(void **state)
{
  struct toy_world *w = *state;
  cleanup_free char *dir = cfs_path_join(w->dir, "cuda-13.0");
  toy_toolkit(dir, "13.0.88", NULL);
  toy_tool(dir, "bin/nvcc", "13.2.86");
  cfs_inventory *inv = NULL;
  assert_int_equal(read_source(w, CFS_SOURCE_ANY, "cuda-13.0", &inv, NULL), 0);
  assert_true(has_problem(inv, "compiler-unit-split"));
  /* crt has no version of its own: it belongs to the headers beside it. */
  assert_string_equal(part_of(inv, "cuda_crt")->release, "13.0");
  cfs_inventory_free(inv);
}

static void expect_error(struct toy_world *w, enum cfs_source_kind kind, const char *name, const char *why)
{
  cfs_inventory *inv = NULL;
  cfs_error *err = NULL;
  assert_true(read_source(w, kind, name, &inv, &err) < 0);
  assert_null(inv);
  assert_non_null(strstr(err->what, name));
  assert_non_null(strstr(err->why, why));
  assert_non_null(err->fix);
  cfs_error_free(err);
}

static void test_places_that_are_no_source(void **state)
{
  struct toy_world *w = *state;
  toy_write(w->dir, "empty/readme", "");
  toy_write(w->dir, "pure/six-1.16.0.dist-info/RECORD", "six.py,,\n");
  toy_write(w->dir, "file", "");
  expect_error(w, CFS_SOURCE_ANY, "nowhere", "does not exist");
  expect_error(w, CFS_SOURCE_ANY, "empty", "no CUDA");
  expect_error(w, CFS_SOURCE_ANY, "file", "no CUDA");
  expect_error(w, CFS_SOURCE_ANY, "pure", "no CUDA wheel");
  expect_error(w, CFS_SOURCE_TOOLKIT, "pure", "not a toolkit");
  expect_error(w, CFS_SOURCE_CONDA, "empty", "cannot be read by this version");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, toy_world_make, toy_world_end)
      TEST(test_remap_rules),
      TEST(test_dist_info_names),
      TEST(test_record_lines),
      TEST(test_venv_and_site_are_the_same),
      TEST(test_hostile_record),
      TEST(test_two_records_of_one_package),
      TEST(test_file_of_two_packages),
      TEST(test_toolkit_layouts),
      TEST(test_a_foreign_nvcc_in_a_toolkit),
      TEST(test_places_that_are_no_source),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
