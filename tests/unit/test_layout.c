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
#include "overlays/dispatch/trailer.h"
#include "overlays/layout.h"
#include "overlays/routes.h"
#include "toy.h"

static const struct toy_set all_132 = {"13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86", "13.2.86"};
static const char image[] = "the dispatcher's bytes";

static int make_world(void **state)
{
  toy_world_make(state);
  struct toy_world *w = *state;
  cleanup_free char *dir = cfs_path_join(w->dir, "v"), *toolkit = cfs_path_join(w->dir, "cuda-13.0");
  free(toy_venv(dir, &all_132));
  toy_toolkit(toolkit, "13.0.88", NULL);
  return 0;
}

#define BOTH "{\"cudafs\":1,\"sources\":[\"TOY/v\",\"TOY/cuda-13.0\"]}"

static cfs_plan *sealed_plan(struct toy_world *w, const char *text)
{
  cfs_plan *plan = toy_plan(w->tables, w->dir, text);
  assert_true(plan->coherent);
  assert_int_equal(cfs_layout_plan(plan, w->tables, NULL), 0);
  assert_int_equal(cfs_plan_seal(plan, w->tables, image, sizeof(image), NULL), 0);
  return plan;
}

static void expect_entry(const cfs_plan *plan, const char *path, enum cfs_entry_kind kind, const char *link)
{
  const cfs_entry *e = cfs_plan_entry(plan, path);
  if (!e)
    fail_msg("%s is not in the tree", path);
  assert_int_equal(e->kind, kind);
  if (link)
    assert_string_equal(e->link, link);
}

static void test_face(void **state)
{
  cfs_plan *plan = sealed_plan(*state, BOTH);
  expect_entry(plan, "bin/nvcc", CFS_ENTRY_DISPATCHER, "nvcc");
  expect_entry(plan, "bin/ptxas", CFS_ENTRY_DISPATCHER, "ptxas");
  expect_entry(plan, "bin/nvlink", CFS_ENTRY_DISPATCHER, "nvlink");
  expect_entry(plan, "bin/cudafe++", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "bin/crt/link.stub", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "nvvm/lib64/libnvvm.so.4", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "nvvm/lib64/libnvvm.so", CFS_ENTRY_LINK, "libnvvm.so.4");
  expect_entry(plan, "nvvm/include/nvvm.h", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "include", CFS_ENTRY_LINK, "targets/x86_64-linux/include");
  expect_entry(plan, "lib64", CFS_ENTRY_LINK, "targets/x86_64-linux/lib");
  expect_entry(plan, "lib", CFS_ENTRY_LINK, "targets/x86_64-linux/lib");
  expect_entry(plan, "targets/x86_64-linux/include/cccl/cuda/std/version", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "targets/x86_64-linux/lib/libcudart.so", CFS_ENTRY_LINK, "libcudart.so.13");
  expect_entry(plan, "targets/x86_64-linux/lib/cmake/cccl/cccl-config.cmake", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, "targets/x86_64-linux/lib/stubs/libcuda.so", CFS_ENTRY_BLOB, NULL);
  expect_entry(plan, "targets/x86_64-linux/lib/pkgconfig/cudart-13.2.pc", CFS_ENTRY_BLOB, NULL);
  expect_entry(plan, "targets/x86_64-linux/lib/pkgconfig/cudart.pc", CFS_ENTRY_LINK, "cudart-13.2.pc");
  expect_entry(plan, "version.json", CFS_ENTRY_BLOB, NULL);
  assert_non_null(strstr(cfs_plan_entry(plan, "version.json")->data, "\"version\": \"13.2.86\""));
  assert_null(cfs_plan_entry(plan, "targets/x86_64-linux/lib/libcuda.so.1"));
  assert_null(cfs_plan_entry(plan, "targets/x86_64-linux/lib/stubs/libnvidia-ml.so")); /* no nvml.h */
  cfs_plan_free(plan);
}

static void test_views(void **state)
{
  cfs_plan *plan = sealed_plan(*state, BOTH);
  expect_entry(plan, ".cudafs/toolchains/13.2/bin/nvcc", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, ".cudafs/toolchains/13.0/bin/nvcc", CFS_ENTRY_FILE, NULL);
  expect_entry(plan, ".cudafs/toolchains/13.0/include", CFS_ENTRY_LINK, "targets/x86_64-linux/include");
  expect_entry(plan, ".cudafs/toolchains/13.0/targets/x86_64-linux/include/cuda.h", CFS_ENTRY_FILE, NULL);
  const cfs_entry *face = cfs_plan_entry(plan, "targets/x86_64-linux/include/cuda.h");
  const cfs_entry *view = cfs_plan_entry(plan, ".cudafs/toolchains/13.2/targets/x86_64-linux/include/cuda.h");
  assert_ptr_equal(face->file, view->file);
  assert_string_equal(cfs_plan_entry(plan, ".cudafs/toolchains/13.0/bin/nvcc")->choice->source->id, "cuda-13.0");
  cfs_plan_free(plan);
}

static void test_digest_follows_the_composition(void **state)
{
  struct toy_world *w = *state;
  cfs_plan *a = sealed_plan(w, BOTH), *b = sealed_plan(w, BOTH);
  assert_string_equal(a->digest, b->digest);
  cfs_plan *c = sealed_plan(w, "{\"cudafs\":1,\"sources\":[\"TOY/v\"]}");
  assert_string_not_equal(a->digest, c->digest);
  assert_int_equal(cfs_plan_seal(b, w->tables, "another", 7, NULL), 0);
  assert_string_not_equal(a->digest, b->digest);
  toy_write(w->dir, "v/lib/python3.12/site-packages/nvidia/cu13/include/cuda_runtime.h", "\n");
  cfs_plan *d = sealed_plan(w, BOTH);
  assert_string_not_equal(a->digest, d->digest); /* same size, later time */
  cfs_plan_free(a);
  cfs_plan_free(b);
  cfs_plan_free(c);
  cfs_plan_free(d);
}

static void test_routes(void **state)
{
  struct toy_world *w = *state;
  cfs_plan *plan = sealed_plan(w, BOTH);
  cleanup_free char *text = cfs_routes_text(plan, w->tables, "ptxas", "/opt/cuda virtual");
  assert_true(cfs_has_prefix(text, "tool ptxas\nid "));
  assert_non_null(strstr(text, "\nroot /opt/cuda virtual\nface 13.2\nroute 13.2 13.2.86 9.2 cal "));
  assert_non_null(strstr(text, "\nroute 13.0 13.0.88 9.0 cal "));
  assert_non_null(strstr(text, "\nhint 13.5 9.5 "));
  assert_null(strstr(text, "\nhint 13.0 "));
  void *out = NULL;
  size_t size = 0;
  cfs_routes_image(image, sizeof(image), plan->digest, text, &out, &size);
  const unsigned char *bytes = out;
  assert_memory_equal(bytes, image, sizeof(image));
  assert_memory_equal(bytes + size - CFS_TRAILER_MAGIC_SIZE, CFS_TRAILER_MAGIC, CFS_TRAILER_MAGIC_SIZE);
  size_t length = bytes[size - 16] | (size_t)bytes[size - 15] << 8;
  assert_int_equal(length, strlen(text));
  assert_memory_equal(bytes + size - CFS_TRAILER_FOOTER_SIZE - length, text, length);
  free(out);
  cfs_plan_free(plan);
}

static void test_tree_takes_every_entry(void **state)
{
  struct toy_world *w = *state;
  cfs_plan *plan = sealed_plan(w, BOTH);
  cfs_error *err = NULL;
  int fd = cfs_layout_tree(plan, w->tables, "/opt/cuda", image, sizeof(image), &err);
  assert_null(err);
  assert_true(fd >= 0);
  int again = cfs_layout_tree(plan, w->tables, "/opt/cuda", image, sizeof(image), &err);
  off_t size = lseek(fd, 0, SEEK_END);
  assert_int_equal(size, lseek(again, 0, SEEK_END));
  close(fd);
  close(again);
  cfs_plan_free(plan);
}

static void test_env_quotes_the_path(void **state)
{
  (void)state;
  cleanup_free char *text = cfs_layout_env("/opt/it's here");
  assert_non_null(strstr(text, "export CUDA_HOME='/opt/it'\\''s here'\n"));
  assert_non_null(strstr(text, "export CUDA_PATH='/opt/it'\\''s here'\n"));
  assert_non_null(strstr(text, "export CUDACXX='/opt/it'\\''s here'/bin/nvcc\n"));
}

static void test_json_fields(void **state)
{
  cfs_plan *plan = sealed_plan(*state, BOTH);
  json_t *j = cfs_plan_to_json(plan, true);
  assert_string_equal(json_string_value(json_object_get(j, "verdict")), "coherent");
  assert_string_equal(json_string_value(json_object_get(j, "digest")), plan->digest);
  json_t *first = json_array_get(json_object_get(j, "toolchains"), 0);
  assert_true(json_is_true(json_object_get(first, "primary")));
  assert_int_equal(json_array_size(json_object_get(first, "can")), 2);
  json_t *file = json_object_get(json_object_get(j, "files"), "targets/x86_64-linux/include/cuda.h");
  assert_string_equal(json_string_value(json_object_get(file, "component")), "cuda_cudart");
  assert_string_equal(json_string_value(json_object_get(file, "source")), "v");
  json_decref(j);
  cfs_plan_free(plan);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_world, toy_world_end)
      TEST(test_face),
      TEST(test_views),
      TEST(test_digest_follows_the_composition),
      TEST(test_routes),
      TEST(test_tree_takes_every_entry),
      TEST(test_env_quotes_the_path),
      TEST(test_json_fields),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
