/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "overlays/dispatch/choose.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char routes[] =
    "id " ID "\nroot /opt/cuda\nface 13.0\n"
    "route 13.0 13.0.88 9.0 cal 75,90,90a,100,110\nroute 12.9 12.9.86 8.8 a 50,75,90,90a,100,101\n"
    "route 13.1 13.1.115 9.1 cal 75,90,90a,100,110\nroute 13.2 13.2.78 9.2 cal 75,90,90a,100,110\n"
    "route 13.4 13.4.92 9.4 cal 75,90,90a,100,107,107a,110\n";

/* archs, targets: commas; ptx: "9.2" or NULL. expected: the release. Returns the advice. */
static char *choose(const char *tool, const char *more, const char *archs, const char *targets, const char *ptx,
                    const char *expected)
{
  cleanup_free char *text = cfs_format("tool %s\n%s%s", tool, routes, more);
  cleanup_routing cfs_routing r = {0};
  cleanup_request cfs_request q = {0};
  struct cfs_choice choice;
  const char *why;
  assert_int_equal(cfs_routing_parse(text, strlen(text), &r, &why), 0);
  cfs_strings_split(&q.archs, archs, ",");
  cfs_strings_split(&q.targets, targets, ",");
  if (ptx)
    assert_true(cfs_version_parse(ptx, &q.ptx.major, &q.ptx.minor));
  assert_int_equal(cfs_choose(&r, &q, NULL, &choice), 0);
  assert_string_equal(choice.route->release, expected);
  return choice.advice;
}

static void assert_silent(const char *tool, const char *archs, const char *targets, const char *ptx,
                          const char *expected)
{
  assert_null(choose(tool, "", archs, targets, ptx, expected));
}

static void test_the_face_goes_first(void **state)
{
  (void)state;
  assert_silent("nvcc", "", "", NULL, "13.0");
  assert_silent("nvcc", "75,90a", "", NULL, "13.0");
  assert_silent("ptxas", "90", "90", "9.0", "13.0");
}

static void test_then_the_oldest_that_can(void **state)
{
  (void)state;
  assert_silent("nvcc", "107a", "", NULL, "13.4");
  assert_silent("nvcc", "75,107", "", NULL, "13.4");
  assert_silent("ptxas", "90", "90", "9.1", "13.1");
  assert_silent("ptxas", "90", "90", "9.2", "13.2");
  assert_silent("ptxas", "90", "107", "9.0", "13.4");
  assert_silent("ptxas", "50", "50", "8.0", "12.9");
  /* 12.9 is a ptxas alone. */
  assert_silent("nvcc", "50", "", NULL, "13.0");
}

static void test_old_targets_go_on_being_read(void **state)
{
  (void)state;
  assert_silent("ptxas", "100", "50", "8.0", "13.0");
  assert_silent("ptxas", "100", "101", "8.8", "13.0");
  /* Known to none: any tool may have the last word. */
  assert_silent("ptxas", "100", "30", "6.0", "13.0");
}

static void test_nvlink_is_the_newest(void **state)
{
  (void)state;
  assert_silent("nvlink", "90", "", NULL, "13.4");
  assert_silent("nvlink", "", "", NULL, "13.4");
}

static void test_advisories_are_kept(void **state)
{
  (void)state;
  assert_null(choose("ptxas", "avoid 13.2 90 bad\n", "90", "", "9.2", "13.4"));
  assert_null(choose("ptxas", "avoid 13.2 100 bad\n", "90", "", "9.2", "13.2"));
  assert_null(choose("nvcc", "avoid 13.0 * bad\n", "90", "", NULL, "13.1"));
  cleanup_free char *advice = choose("nvcc", "avoid 13.4 107a it miscompiles\n", "107a", "", NULL, "13.0");
  assert_string_equal(advice, "CUDA 13.4 is known to be bad for sm_107a: it miscompiles");
}

static void test_advice(void **state)
{
  (void)state;
  cleanup_free char *hint = choose("ptxas", "hint 13.5 9.5 75,90\n", "90", "90", "9.5", "13.0");
  assert_string_equal(hint, "sm_90 with PTX ISA 9.5 needs CUDA 13.5, which is not here: add its wheels or "
                            "toolkit to \"sources\" and reload");
  cleanup_free char *parts = choose("nvcc", "hint 12.8 8.7 50,75\n", "107a,50,90", "", NULL, "13.0");
  assert_string_equal(
      parts, "no single release does sm_107a, sm_50 and sm_90: CUDA 13.4 does sm_107a and sm_90, CUDA 12.8 does "
             "sm_50 (not here: add it to \"sources\"); compile them apart");
  assert_null(choose("nvcc", "hint 13.5 9.5 75,90\n", "999", "", NULL, "13.0"));
  assert_null(choose("nvcc", "", "999,90", "", NULL, "13.0"));
}

static void test_force_and_undecided(void **state)
{
  (void)state;
  cleanup_free char *text = cfs_format("tool ptxas\n%s", routes);
  cleanup_routing cfs_routing r = {0};
  cleanup_request cfs_request q = {0};
  struct cfs_choice choice;
  const char *why;
  assert_int_equal(cfs_routing_parse(text, strlen(text), &r, &why), 0);
  q.undecided = true;
  cfs_strings_add(&q.archs, "50");
  assert_int_equal(cfs_choose(&r, &q, "", &choice), 0);
  assert_string_equal(choice.route->release, "12.9");
  q.report = true;
  assert_int_equal(cfs_choose(&r, &q, NULL, &choice), 0);
  assert_string_equal(choice.route->release, "13.0");
  assert_int_equal(cfs_choose(&r, &q, "13.2", &choice), 0);
  assert_string_equal(choice.route->release, "13.2");
  assert_int_equal(cfs_choose(&r, &q, "13.3", &choice), -ENOENT);
  cleanup_free char *list = cfs_choose_list(&r);
  assert_string_equal(list, "13.0, 12.9, 13.1, 13.2, 13.4");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_face_goes_first),          cmocka_unit_test(test_then_the_oldest_that_can),
      cmocka_unit_test(test_old_targets_go_on_being_read), cmocka_unit_test(test_nvlink_is_the_newest),
      cmocka_unit_test(test_advisories_are_kept),          cmocka_unit_test(test_advice),
      cmocka_unit_test(test_force_and_undecided),
  };
  return cmocka_run_group_tests_name("dispatch_choose", tests, NULL, NULL);
}
