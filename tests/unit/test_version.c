/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "manifests/version.h"

static int sign(int n)
{
  return (n > 0) - (n < 0);
}

static void assert_order(const char *low, const char *high)
{
  if (sign(cfs_version_compare(low, high)) != -1 || sign(cfs_version_compare(high, low)) != 1)
    fail_msg("%s is not below %s", low, high);
}

static void test_compare_is_numeric(void **state)
{
  (void)state;
  assert_order("13.2", "13.10");
  assert_order("12.9.86", "13.0.48");
  assert_order("13.3.3.4.1", "13.3.5.0.6");
  assert_order("9.9", "10.0");
  assert_order("13", "13.0.1");
  assert_order("12.6.77", "12.6.85");
}

static void test_compare_missing_elements_count_as_zero(void **state)
{
  (void)state;
  assert_int_equal(cfs_version_compare("13", "13.0.0"), 0);
  assert_int_equal(cfs_version_compare("13.2.0", "13.2"), 0);
  assert_int_equal(cfs_version_compare("013.02", "13.2"), 0);
}

static void test_compare_text_comes_last(void **state)
{
  (void)state;
  assert_order("0.0.1", "0.0.1.dev5");
  assert_order("0.0.1.dev4", "0.0.1.dev5");
  assert_order("0.0.1.dev5", "0.0.2");
  assert_order("0.0.0a0", "0.0.1");
}

static void test_compare_has_no_largest_number(void **state)
{
  (void)state;
  assert_order("99999999999999999999998", "99999999999999999999999");
  assert_order("99999999999999999999999", "100000000000000000000000");
}

static void assert_release(const char *version, const char *wanted)
{
  cleanup_free char *got = cfs_version_release(version);
  if (wanted)
    assert_string_equal(got, wanted);
  else
    assert_null(got);
}

static void test_release(void **state)
{
  (void)state;
  assert_release("13.2.78", "13.2");
  assert_release("13.2", "13.2");
  assert_release("13.3.5.0.6", "13.3");
  assert_release("13", NULL);
  assert_release("13.", NULL);
  assert_release(".2", NULL);
  assert_release("", NULL);
  assert_release("newest", NULL);
}

static void test_major(void **state)
{
  (void)state;
  assert_int_equal(cfs_version_major("13.2"), 13);
  assert_int_equal(cfs_version_major("9"), 9);
  assert_int_equal(cfs_version_major("v13"), -1);
  assert_int_equal(cfs_version_major(""), -1);
  assert_int_equal(cfs_version_major("99999999999"), -1);
}

static void test_in_release(void **state)
{
  (void)state;
  assert_true(cfs_version_in_release("13.2.78", "13.2"));
  assert_true(cfs_version_in_release("13.2", "13.2"));
  assert_false(cfs_version_in_release("13.20.1", "13.2"));
  assert_false(cfs_version_in_release("13", "13.0"));
}

static bool admits(const char *requirement, const char *version)
{
  cfs_requirement *r = NULL;
  assert_int_equal(cfs_requirement_parse(requirement, &r, NULL), 0);
  bool yes = cfs_requirement_admits(r, version);
  cfs_requirement_free(r);
  return yes;
}

static void test_requirement_release(void **state)
{
  (void)state;
  assert_true(admits("13.2", "13.2"));
  assert_true(admits("13.2", "13.2.78"));
  assert_false(admits("13.2", "13.20"));
  assert_false(admits("13.2", "13"));
  assert_true(admits("13.0", "13"));
  assert_true(admits("==13.2.*", "13.2.78"));
  assert_false(admits("==13.2.*", "13.3"));
  assert_true(admits("13.*", "13.5.37"));
  assert_true(admits("newest", "1.0"));
}

static void test_requirement_range(void **state)
{
  (void)state;
  assert_true(admits(">=12.9,<14", "13.5"));
  assert_true(admits(">=12.9,<14", "12.9"));
  assert_false(admits(">=12.9,<14", "14.0"));
  assert_false(admits(">=12.9,<14", "12.8"));
  assert_true(admits(" >= 12.9 , != 13.1.* ", "13.2"));
  assert_false(admits(" >= 12.9 , != 13.1.* ", "13.1.115"));
  assert_true(admits(">=12.0,<12.6.85", "12.6.77"));
  assert_false(admits(">=12.0,<12.6.85", "12.6.85"));
  assert_true(admits("==12.3.103", "12.3.103"));
  assert_false(admits("==12.3.103", "12.3.107"));
  assert_true(admits("<=13.0", "13.0"));
  assert_false(admits(">13.0", "13.0"));
  assert_true(admits("!=13.0", "13.1"));
}

static void test_requirement_refuses_nonsense(void **state)
{
  static const char *const texts[] = {"",       "latest", ">=",    "13.",   "13.2,", ",13.2",   "13.2 13.3", "~=13.2",
                                      ">=13.*", "13.2.x", "=13.2", "13..2", "-1",    ">=13.2;", "newest,13"};
  (void)state;
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
    cfs_requirement *r = NULL;
    cleanup_error cfs_error *err = NULL;
    if (cfs_requirement_parse(texts[i], &r, &err) == 0)
      fail_msg("\"%s\" was taken for a requirement", texts[i]);
    assert_null(r);
    assert_non_null(strstr(err->why, "expected a release or a range"));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compare_is_numeric),
      cmocka_unit_test(test_compare_missing_elements_count_as_zero),
      cmocka_unit_test(test_compare_text_comes_last),
      cmocka_unit_test(test_compare_has_no_largest_number),
      cmocka_unit_test(test_release),
      cmocka_unit_test(test_major),
      cmocka_unit_test(test_in_release),
      cmocka_unit_test(test_requirement_release),
      cmocka_unit_test(test_requirement_range),
      cmocka_unit_test(test_requirement_refuses_nonsense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
