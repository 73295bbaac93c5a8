/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/content.h"
#include "fs/registry.h"

struct lab {
  char dir[64];
  struct cfs_shared *shared;
  cfs_registry registry;
};

static void path_of(const struct lab *lab, const char *name, char *ret, size_t size)
{
  assert_true(snprintf(ret, size, "%s/%s", lab->dir, name) < (int)size);
}

/* By rename, like a package manager: another inode each time. */
static void put(const struct lab *lab, const char *name, const char *text)
{
  char path[128], temporary[128];
  path_of(lab, name, path, sizeof(path));
  path_of(lab, "temporary", temporary, sizeof(temporary));
  int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  assert_int_equal(rename(temporary, path), 0);
}

static void add(cfs_tree_builder *b, const struct lab *lab, const char *inside, const char *name)
{
  char path[128];
  struct stat st;
  path_of(lab, name, path, sizeof(path));
  assert_int_equal(stat(path, &st), 0);
  struct cfs_backing_id id = {
      .device = st.st_dev,
      .inode = st.st_ino,
      .size = (uint64_t)st.st_size,
      .mtime_sec = st.st_mtim.tv_sec,
      .mtime_nsec = (uint32_t)st.st_mtim.tv_nsec,
  };
  assert_int_equal(cfs_tree_builder_add_file(b, inside, path, &id, false), 0);
}

/* Publishes include/a.h and include/b.h and a kept blob. */
static void publish(struct lab *lab)
{
  cfs_snapshot *s;
  cfs_tree_builder *b = cfs_tree_builder_new();
  add(b, lab, "include/a.h", "a");
  add(b, lab, "include/b.h", "b");
  assert_int_equal(cfs_tree_builder_add_blob(b, ".cudafs/gate", "", 0, false, (struct timespec){.tv_sec = 1}), 0);
  assert_int_equal(cfs_tree_builder_keep_identity(b, ".cudafs/gate"), 0);
  int fd = cfs_tree_builder_seal(b);
  assert_true(fd >= 0);
  assert_int_equal(cfs_snapshot_open(fd, &s), 0);
  close(fd);
  cfs_tree_builder_free(b);
  assert_int_equal(cfs_registry_publish(&lab->registry, s), 0);
}

static uint64_t id_of(const struct lab *lab, const char *path)
{
  struct cfs_node root;
  assert_int_equal(cfs_registry_resolve(&lab->registry, CFS_NODE_ROOT, &root), 0);
  return cfs_registry_id(&lab->registry, root.generation, cfs_snapshot_resolve(root.snapshot, path));
}

static int set_up_limited(void **state, uint32_t pins)
{
  struct lab *lab = calloc(1, sizeof(*lab));
  strcpy(lab->dir, "/tmp/cudafs-unit-XXXXXX");
  assert_non_null(mkdtemp(lab->dir));
  lab->shared = cfs_shared_new();
  assert_non_null(lab->shared);
  assert_int_equal(cfs_registry_init(&lab->registry, lab->shared, pins), 0);
  put(lab, "a", "first a");
  put(lab, "b", "first b");
  publish(lab);
  *state = lab;
  return 0;
}

static int set_up(void **state)
{
  return set_up_limited(state, 100);
}

static int set_up_one_pin(void **state)
{
  return set_up_limited(state, 1);
}

static int tear_down(void **state)
{
  struct lab *lab = *state;
  char path[128];
  static const char *const names[] = {"a", "b"};
  for (size_t i = 0; i < 2; i++) {
    path_of(lab, names[i], path, sizeof(path));
    unlink(path);
  }
  rmdir(lab->dir);
  cfs_registry_done(&lab->registry);
  cfs_shared_free(lab->shared);
  free(lab);
  return 0;
}

static ssize_t read_text(const struct lab *lab, uint64_t id, char *text, size_t size)
{
  cfs_content content;
  struct cfs_node node;
  memset(text, 0, size);
  assert_int_equal(cfs_registry_resolve(&lab->registry, id, &node), 0);
  assert_int_equal(cfs_content_init(&content, &lab->registry, 1), 0);
  ssize_t n = cfs_content_read(&content, cfs_registry_file(&lab->registry, &node), text, size - 1, 0);
  for (uint32_t i = 0; i < lab->registry.file_count; i++)
    if (content.files[i].fd >= 0)
      close(content.files[i].fd);
  free(content.files);
  pthread_mutex_destroy(&content.lock);
  return n;
}

static void ids_follow_identity(void **state)
{
  struct lab *lab = *state;
  uint64_t a = id_of(lab, "include/a.h"), b = id_of(lab, "include/b.h"), dir = id_of(lab, "include");
  uint64_t gate = id_of(lab, ".cudafs/gate");
  put(lab, "b", "second b");
  publish(lab);
  assert_int_equal(cfs_registry_generation(&lab->registry), 2);
  assert_true(id_of(lab, "include/a.h") == a);     /* unchanged: the same node, with its pages */
  assert_true(id_of(lab, "include/b.h") != b);     /* changed: another */
  assert_true(id_of(lab, "include") != dir);       /* directories are of their generation */
  assert_true(id_of(lab, ".cudafs/gate") == gate); /* kept */
  assert_true(id_of(lab, "") == CFS_NODE_ROOT);
}

static void old_trees_serve_old_bytes(void **state)
{
  struct lab *lab = *state;
  char text[32];
  uint64_t old = id_of(lab, "include/b.h");
  put(lab, "b", "second b");
  publish(lab);
  assert_int_equal(read_text(lab, old, text, sizeof(text)), 7);
  assert_string_equal(text, "first b");
  assert_int_equal(read_text(lab, id_of(lab, "include/b.h"), text, sizeof(text)), 8);
  assert_string_equal(text, "second b");
}

static void generations_go_when_unused(void **state)
{
  struct lab *lab = *state;
  struct cfs_node node;
  uint64_t dir = id_of(lab, "include"), old = id_of(lab, "include/b.h");
  cfs_registry_count(&lab->registry, dir, 1);
  put(lab, "b", "second b");
  publish(lab);
  cfs_registry_sweep(&lab->registry);
  assert_int_equal(cfs_registry_held(&lab->registry), 2);
  /* The directory is in use, so what it names must stay resolvable. */
  assert_int_equal(cfs_registry_resolve(&lab->registry, old, &node), 0);
  cfs_registry_count(&lab->registry, dir, -1);
  cfs_registry_count(&lab->registry, old, 1);
  cfs_registry_sweep(&lab->registry);
  assert_int_equal(cfs_registry_held(&lab->registry), 2);
  cfs_registry_count(&lab->registry, old, -1);
  cfs_registry_sweep(&lab->registry);
  assert_int_equal(cfs_registry_held(&lab->registry), 1);
  assert_int_equal(cfs_registry_resolve(&lab->registry, old, &node), -ESTALE);
  assert_int_equal(cfs_registry_resolve(&lab->registry, dir, &node), -ESTALE);
  assert_int_equal(lab->registry.pins.used, 2);
}

static void many_reloads_leak_nothing(void **state)
{
  struct lab *lab = *state;
  for (int i = 0; i < 1000; i++) {
    put(lab, "b", i & 1 ? "odd" : "even!");
    publish(lab);
    cfs_registry_sweep(&lab->registry);
  }
  assert_int_equal(cfs_registry_held(&lab->registry), 1);
  assert_int_equal(lab->registry.pins.used, 2);
  assert_true(lab->registry.file_count <= 4);
}

static void too_many_held_generations_are_refused(void **state)
{
  struct lab *lab = *state;
  for (uint32_t i = 1; i < CFS_GENERATIONS_MAX; i++) {
    cfs_registry_count(&lab->registry, id_of(lab, "include"), 1);
    publish(lab);
  }
  cfs_registry_count(&lab->registry, id_of(lab, "include"), 1);
  cfs_registry_sweep(&lab->registry);
  cfs_tree_builder *b = cfs_tree_builder_new();
  cfs_snapshot *s;
  int fd = cfs_tree_builder_seal(b);
  assert_int_equal(cfs_snapshot_open(fd, &s), 0);
  assert_int_equal(cfs_registry_publish(&lab->registry, s), -ENOSPC);
  cfs_snapshot_close(s);
  close(fd);
  cfs_tree_builder_free(b);
}

static void strange_ids_are_stale(void **state)
{
  struct lab *lab = *state;
  static const uint64_t ids[] = {0,
                                 2,
                                 UINT64_C(1) << 32,
                                 UINT64_C(1) << 32 | 0xffffffff,
                                 UINT64_MAX,
                                 CFS_NODE_KEPT | 5,
                                 CFS_NODE_FILE,
                                 CFS_NODE_FILE | UINT64_C(9) << 32,
                                 UINT64_C(257) << 32 | 1};
  struct cfs_node node;
  for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
    assert_int_equal(cfs_registry_resolve(&lab->registry, ids[i], &node), -ESTALE);
    cfs_registry_count(&lab->registry, ids[i], 1);
  }
}

static void unpinned_files_are_checked(void **state)
{
  struct lab *lab = *state;
  char text[32];
  assert_int_equal(lab->registry.pins.used, 1);
  uint64_t a = id_of(lab, "include/a.h"), b = id_of(lab, "include/b.h");
  assert_int_equal(read_text(lab, b, text, sizeof(text)), 7);
  put(lab, "a", "other a");
  put(lab, "b", "other b");
  assert_int_equal(read_text(lab, a, text, sizeof(text)), 7);
  assert_string_equal(text, "first a");
  assert_int_equal(read_text(lab, b, text, sizeof(text)), -EIO);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ids_follow_identity, set_up, tear_down),
      cmocka_unit_test_setup_teardown(old_trees_serve_old_bytes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(generations_go_when_unused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(many_reloads_leak_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(too_many_held_generations_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(strange_ids_are_stale, set_up, tear_down),
      cmocka_unit_test_setup_teardown(unpinned_files_are_checked, set_up_one_pin, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
