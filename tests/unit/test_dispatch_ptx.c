/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "overlays/dispatch/ptx.h"

/* What ptxas 13.0 and 13.5 do with each was asked of them. */
static const struct {
  const char *text;
  int major, minor;
  const char *target; /* NULL: no head */
} heads[] = {
    {".version 8.0\n.target sm_90\n", 8, 0, "90"},
    {".version 9.4\n.target sm_107a, debug\n", 9, 4, "107a"},
    {".version 8.70\n.target sm_90\n", 8, 70, "90"},
    {".version 09.0 .target compute_90\n", 9, 0, "90"},
    {".version\t8.0.target sm_120f\r\n", 8, 0, "120f"},
    {".version\f8.0\f\n.target/**/sm_90\n", 8, 0, "90"},
    {"//x .version 9.9\\\n.version 8.0//y\n.target\n\n sm_90/**/\n", 8, 0, "90"},
    {"/* /* .version 9.9 */.version 8.0\n.target sm_90\n", 8, 0, "90"},
    {"# 1 \"f/*\"\n#line 3 \"f\" 2\n.version 8.0 # 1 \"f\"\n.target # 1 \"\" 2 3\nsm_90\n", 8, 0, "90"},
    {" #1 \"f\"\r\n.version 8.0\n.target sm_90\n", 8, 0, "90"},
    {"#line 3\n.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"# 1 \"f\" // c\n.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"# 1 \"f\n.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"#pragma once\n.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"\v.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"\xef\xbb\xbf.version 8.0\n.target sm_90\n", 0, 0, NULL},
    {".version /**/ 8.0\n.target sm_90\n", 0, 0, NULL},
    {".version\n8.0\n.target sm_90\n", 0, 0, NULL},
    {".version8.0\n.target sm_90\n", 0, 0, NULL},
    {".version 8 .0\n.target sm_90\n", 0, 0, NULL},
    {".version 8.0;\n.target sm_90\n", 0, 0, NULL},
    {".version 8.0\n.targetsm_90\n", 0, 0, NULL},
    {".version 8.0\n.target SM_90\n", 0, 0, NULL},
    {".version 8.0\n.target debug, sm_90\n", 0, 0, NULL},
    {".version 8.0\n.target sm_9", 0, 0, NULL},
    {".version 8.0", 0, 0, NULL},
    {"/* open .version 8.0\n.target sm_90\n", 0, 0, NULL},
    {"/*", 0, 0, NULL},
    {"/", 0, 0, NULL},
    {"#", 0, 0, NULL},
    {"", 0, 0, NULL},
};

static void test_heads(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
    struct cfs_ptx_version v = {0};
    cleanup_strings cfs_strings targets = {0};
    bool found = cfs_ptx_head(heads[i].text, strlen(heads[i].text), &v, &targets);
    if (found != (heads[i].target != NULL))
      fail_msg("%s: %s", found ? "has a head" : "has none", heads[i].text);
    if (!found) {
      assert_int_equal(targets.count, 0);
      continue;
    }
    assert_int_equal(v.major, heads[i].major);
    assert_int_equal(v.minor, heads[i].minor);
    assert_int_equal(targets.count, 1);
    assert_string_equal(targets.items[0], heads[i].target);
  }
}

/* Cut anywhere, with one byte changed, in a buffer without room behind it: the address sanitizer watches. */
static void test_nothing_is_read_beyond_the_end(void **state)
{
  (void)state;
  srand(1);
  for (int round = 0; round < 20000; round++) {
    const char *text = heads[(size_t)rand() % (sizeof(heads) / sizeof(heads[0]))].text;
    size_t size = strlen(text) ? (size_t)rand() % (strlen(text) + 1) : 0;
    cleanup_free char *copy = malloc(size ? size : 1);
    struct cfs_ptx_version v = {0};
    cleanup_strings cfs_strings targets = {0};
    memcpy(copy, text, size);
    if (size)
      copy[(size_t)rand() % size] = (char)rand();
    cfs_ptx_head(copy, size, &v, &targets);
  }
}

static void test_huge_numbers_do_not_wrap(void **state)
{
  (void)state;
  struct cfs_ptx_version v = {0};
  cleanup_strings cfs_strings targets = {0};
  const char text[] = ".version 99999999999999999999.99999999999999999999\n.target sm_90\n";
  assert_true(cfs_ptx_head(text, strlen(text), &v, &targets));
  assert_true(v.major > 1000 && v.minor > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_heads),
      cmocka_unit_test(test_nothing_is_read_beyond_the_end),
      cmocka_unit_test(test_huge_numbers_do_not_wrap),
  };
  return cmocka_run_group_tests_name("dispatch_ptx", tests, NULL, NULL);
}
