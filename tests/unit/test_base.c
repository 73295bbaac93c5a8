/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"

static void expect_text(char *got, const char *wanted)
{
  cleanup_free char *owned = got;
  if (wanted)
    assert_string_equal(owned, wanted);
  else
    assert_null(owned);
}

static void test_paths(void **state)
{
  (void)state;
  expect_text(cfs_path_normalise("/a//b/./c/"), "/a/b/c");
  expect_text(cfs_path_normalise("a/../b"), "b");
  expect_text(cfs_path_normalise("/"), "/");
  expect_text(cfs_path_normalise("../a"), NULL);
  expect_text(cfs_path_normalise("a/../../b"), NULL);
  expect_text(cfs_path_join("/a/", "/b"), "/a/b");
  expect_text(cfs_path_join("/", "b"), "/b");
  expect_text(cfs_path_join("a", "b/"), "a/b/");
}

static void test_shell_words(void **state)
{
  (void)state;
  expect_text(cfs_shell_quote("it's $HOME"), "'it'\\''s $HOME'");
  expect_text(cfs_shell_word("/usr/bin/nvcc"), "/usr/bin/nvcc");
  expect_text(cfs_shell_word("a b"), "'a b'");
  expect_text(cfs_shell_word(""), "''");
}

static void test_lists(void **state)
{
  (void)state;
  cleanup_strings cfs_strings s = {0};
  expect_text(cfs_strings_join(&s, ","), "");
  cfs_strings_split(&s, " b  a\tc ", " \t");
  assert_int_equal(s.count, 3);
  cfs_strings_sort(&s);
  expect_text(cfs_strings_join(&s, ","), "a,b,c");
  assert_true(cfs_strings_has(&s, "b"));
  assert_false(cfs_strings_has(&s, "d"));
  assert_true(cfs_has_suffix("libcudart.so", ".so"));
  assert_false(cfs_has_suffix("so", ".so"));
}

static void test_numbers(void **state)
{
  (void)state;
  assert_int_equal(cfs_leading_number("120a"), 120);
  assert_int_equal(cfs_leading_number("007.5"), 7);
  assert_int_equal(cfs_leading_number("-3"), -3);
  assert_int_equal(cfs_leading_number(""), 0);
  assert_int_equal(cfs_leading_number("sm_120"), 0);
  assert_int_equal(cfs_leading_number("99999999999999999999"), INT_MAX);
  assert_int_equal(cfs_leading_number("-4294967297"), INT_MIN);
}

static void test_files(void **state)
{
  (void)state;
  char dir[] = "/tmp/cudafs-test-base-XXXXXX";
  assert_non_null(mkdtemp(dir));
  cleanup_free char *deep = cfs_path_join(dir, "a/b"), *path = cfs_path_join(deep, "file");
  assert_int_equal(cfs_mkdir_all(deep, 0700), 0);
  assert_int_equal(cfs_mkdir_all(deep, 0700), 0);
  assert_int_equal(cfs_file_write(path, "hello", 5), 0);
  assert_int_equal(cfs_file_write(path, "he\0lo", 5), 0);
  cleanup_free char *data = NULL;
  size_t size = 0;
  assert_int_equal(cfs_file_read(path, 5, &data, &size), 0);
  assert_int_equal(size, 5);
  assert_memory_equal(data, "he\0lo", 6);
  char *none = NULL;
  assert_int_equal(cfs_file_read(path, 4, &none, NULL), -EFBIG);
  assert_int_equal(cfs_file_read(deep, 4, &none, NULL), -EISDIR);
  assert_int_equal(cfs_file_read("/no/such/file", 4, &none, NULL), -ENOENT);
  assert_int_equal(cfs_mkdir_all(path, 0700), -ENOTDIR);
  assert_null(none);
  cleanup_free char *a = cfs_path_join(dir, "a");
  assert_int_equal(unlink(path) | rmdir(deep) | rmdir(a) | rmdir(dir), 0); /* and no temporary file is left */
}

static void test_errors(void **state)
{
  (void)state;
  cfs_error *err = NULL;
  assert_int_equal(cfs_error_set(&err, CFS_REFUSED, ENOENT, "what", "fix", "why %d", 1), -ENOENT);
  assert_int_equal(cfs_error_set(&err, CFS_FAILED, 0, "later", NULL, "another"), -EINVAL);
  assert_string_equal(err->why, "why 1"); /* the first cause is kept */
  cfs_error_prefix(err, "while %s", "testing");
  assert_string_equal(err->why, "while testing: why 1");
  cfs_error_free(err);
  assert_int_equal(cfs_error_set(NULL, CFS_FAILED, EIO, "nobody", NULL, "cares"), -EIO);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_paths),   cmocka_unit_test(test_shell_words), cmocka_unit_test(test_lists),
      cmocka_unit_test(test_numbers), cmocka_unit_test(test_files),       cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
