/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/root.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static char folder[] = "/tmp/cudafs-root-XXXXXX";

static int enter(void **state)
{
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) < 0 || cfs_mkdir_all("tree/bin", 0755) < 0 ||
      cfs_mkdir_all("tree/.cudafs", 0755) < 0)
    return -1;
  if (symlink("tree/bin/nvcc", "relative") < 0 || symlink("relative", "twice") < 0 || symlink("loop", "loop") < 0)
    return -1;
  if (symlink("tree", "folder") < 0)
    return -1;
  return cfs_file_write("tree/bin/nvcc", "", 0);
}

static int leave(void **state)
{
  (void)state;
  cleanup_free char *command = cfs_format("rm -rf %s", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static void assert_resolves(const char *path)
{
  cleanup_free char *expected = cfs_format("%s/tree/bin/nvcc", folder);
  cleanup_free char *found = cfs_root_resolve(path);
  assert_string_equal(found ? found : "(nowhere)", expected);
}

static void test_links_are_followed_by_hand(void **state)
{
  (void)state;
  char here[256];
  cleanup_free char *absolute = cfs_format("%s/twice", folder);
  assert_resolves("tree/bin/nvcc");
  assert_resolves("./tree/../tree/bin/./nvcc");
  assert_resolves("folder/bin/nvcc");
  assert_resolves("relative");
  assert_resolves("twice");
  assert_resolves(absolute);
  assert_null(cfs_root_resolve("loop"));
  assert_null(cfs_root_resolve("missing/nvcc"));
  assert_string_equal(getcwd(here, sizeof(here)), folder);
}

static void write_id(const char *text)
{
  assert_int_equal(cfs_file_write("tree/.cudafs/id", text, strlen(text)), 0);
}

static void test_only_the_right_tree_is_taken(void **state)
{
  (void)state;
  cleanup_free char *tree = cfs_format("%s/tree", folder);
  cfs_routing r = {.id = (char *)(uintptr_t)ID, .root = tree};
  cleanup_close int self = open("tree/bin/nvcc", O_RDONLY | O_CLOEXEC);
  cleanup_free char *root = NULL;
  write_id(ID "\n");
  assert_int_equal(cfs_root_check(&r, self, tree), CFS_ROOT_HERE);
  /* Neither candidate before it leads anywhere, so the trailer's path is used. */
  assert_int_equal(cfs_root_find(&r, self, &root), CFS_ROOT_HERE);
  assert_string_equal(root, tree);
  write_id(OTHER "\n");
  assert_int_equal(cfs_root_check(&r, self, tree), CFS_ROOT_CHANGED);
  /* Another file system: another tree. */
  cleanup_close int foreign = open("/proc/version", O_RDONLY | O_CLOEXEC);
  assert_int_equal(cfs_root_check(&r, foreign, tree), CFS_ROOT_NONE);
}

static void test_a_malformed_id_is_none(void **state)
{
  (void)state;
  static const char *const bad[] = {"",
                                    "\n",
                                    ID,
                                    (ID "\n\n"),
                                    ("x" ID),
                                    "0123\n",
                                    "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"};
  cfs_routing r = {.id = (char *)(uintptr_t)ID};
  cleanup_close int self = open("tree/bin/nvcc", O_RDONLY | O_CLOEXEC);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    write_id(bad[i]);
    assert_int_equal(cfs_root_check(&r, self, "tree"), CFS_ROOT_NONE);
  }
  assert_int_equal(cfs_root_check(&r, self, "missing"), CFS_ROOT_NONE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_links_are_followed_by_hand),
      cmocka_unit_test(test_only_the_right_tree_is_taken),
      cmocka_unit_test(test_a_malformed_id_is_none),
  };
  return cmocka_run_group_tests_name("dispatch_root", tests, enter, leave);
}
