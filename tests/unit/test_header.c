/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/header.h"

/* A header in memory; the path stays valid until the next. */
static const char *header(const char *text)
{
  static int fd = -1;
  static char path[64];
  cfs_cleanup_close(&fd);
  fd = memfd_create("header", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  return path;
}

static void assert_macro(const char *text, long expected)
{
  long value = 0;
  assert_int_equal(cfs_header_macro(header(text), "CUDA_VERSION", &value, NULL), 0);
  assert_int_equal(value, expected);
}

static void assert_no_macro(const char *text)
{
  long value = -1;
  cleanup_error cfs_error *err = NULL;
  assert_int_equal(cfs_header_macro(header(text), "CUDA_VERSION", &value, &err), -ENODATA);
  assert_int_equal(value, -1);
  assert_non_null(strstr(err->why, "CUDA_VERSION"));
}

static void test_macro_forms(void **state)
{
  (void)state;
  assert_macro("#define CUDA_VERSION 13020\n", 13020);
  assert_macro("#define CUDA_VERSION 13020", 13020);
  assert_macro("x\n \t# \tdefine\tCUDA_VERSION\t( 13020 )\t\r\n", 13020);
  assert_macro("#define CUDA_VERSION ((0x32DC))\n", 13020);
  assert_macro("#define CUDA_VERSION 13020UL // release 13.2\n", 13020);
  assert_macro("#define CUDA_VERSION /* packed */ 13020 /* 13.2\n  and on */\n", 13020);
  assert_macro("#define CUDA_VERSION \\\n  13020\n", 13020);
  assert_macro("#define CUDA_VERSION 0\n", 0);
  assert_macro("#define CUDA_VERSION 08\n", 8);
}

static void test_first_definition_counts(void **state)
{
  (void)state;
  assert_macro("#define CUDA_VERSION 1\n#undef CUDA_VERSION\n#define CUDA_VERSION 2\n", 1);
  assert_macro("#define CUDA_VERSIONS 1\n#define MY_CUDA_VERSION 2\n#define CUDA_VERSION 3\n", 3);
  assert_macro("#define CUDA_VERSION(x) 1\n#define CUDA_VERSION 3\n", 3);
}

static void test_what_is_no_definition(void **state)
{
  (void)state;
  assert_no_macro("");
  assert_no_macro("#define CUDA_VERSION\n");
  assert_no_macro("#define CUDA_VERSION OTHER\n");
  assert_no_macro("#define CUDA_VERSION (1 + 2)\n");
  assert_no_macro("#define CUDA_VERSION (13020\n");
  assert_no_macro("#define CUDA_VERSION 13020)\n");
  assert_no_macro("#define CUDA_VERSION 99999999999999999999\n");
  assert_no_macro("int x; #define CUDA_VERSION 1\n");
  assert_no_macro("// #define CUDA_VERSION 1\n");
  assert_no_macro("// on \\\n#define CUDA_VERSION 1\n");
  assert_no_macro("/*\n#define CUDA_VERSION 1\n*/\n");
  assert_no_macro("/* never closed\n#define CUDA_VERSION 1\n");
  assert_no_macro("#ifdef CUDA_VERSION\n#undef CUDA_VERSION\n#defined CUDA_VERSION 1\n");
}

static void test_quotes_hide_comments(void **state)
{
  (void)state;
  assert_macro("const char *x = \"/*\";\n#define CUDA_VERSION 5\n", 5);
  assert_macro("const char *x = \"\\\"/*\";\n#define CUDA_VERSION 5\n", 5);
  assert_macro("char q = '\"';\n#define CUDA_VERSION 5 // \"\n", 5);
  assert_macro("#error don't\n#define CUDA_VERSION 5\n", 5);
}

static void test_several_macros_at_once(void **state)
{
  (void)state;
  struct cfs_macro macros[] = {{.name = "MAJOR"}, {.name = "MISSING", .found = true}, {.name = "MINOR"}};
  const char *path = header("#define MINOR 2\n#define MAJOR 13\n");
  assert_int_equal(cfs_header_macros(path, macros, 3, NULL), 0);
  assert_true(macros[0].found);
  assert_int_equal(macros[0].value, 13);
  assert_false(macros[1].found);
  assert_true(macros[2].found);
  assert_int_equal(macros[2].value, 2);
}

static void test_missing_header_is_named(void **state)
{
  (void)state;
  long value;
  cleanup_error cfs_error *err = NULL;
  assert_int_equal(cfs_header_macro("/nonexistent/cuda.h", "CUDA_VERSION", &value, &err), -ENOENT);
  assert_string_equal(err->what, "/nonexistent/cuda.h");
}

/* The shape of crt/host_config.h: vendors' clangs have numbers of their own, before the ordinary ones. */
#define HOST_CONFIG(vendor, gcc, horizon, clang)                                                                  \
  "#if !__NV_NO_HOST_COMPILER_CHECK\n"                                                                            \
  "#if defined(__APPLE__) && !defined(__clang__)\n"                                                               \
  "#endif\n"                                                                                                      \
  "#if (__VENDOR__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > " vendor "))\n#error no\n#endif\n"      \
  "#if defined(__GNUC__)\n" gcc "#if defined(__HORIZON__)\n"                                                      \
  "#if (__clang_major__ >= " horizon ") || (__clang_major__ < 3)\n#error no\n#endif\n#endif\n"                    \
  "#if defined(__clang__) && !defined(__HORIZON__)\n#ifdef X\n#endif\n"                                           \
  "#if (__clang_major__ >= " clang ") || (__clang_major__ < 3)\n#error no\n#endif /* (__clang_major__ >= 9) */\n" \
  "#endif\n#endif\n#endif\n"

static void assert_limits(const char *text, int gcc_max, int clang_limit)
{
  struct cfs_host_limits limits = {0};
  assert_int_equal(cfs_header_host_limits(header(text), &limits, NULL), 0);
  assert_int_equal(limits.gcc_max, gcc_max);
  assert_int_equal(limits.clang_limit, clang_limit);
}

static void test_host_limits(void **state)
{
  (void)state;
  assert_limits(HOST_CONFIG("19", "#if __GNUC__ > 14\n#error no\n#endif /* __GNUC__ > 99 */\n", "20", "20"), 14, 20);
  assert_limits(HOST_CONFIG("22", "#if __GNUC__ > 16\n#error no\n#endif\n", "22", "23"), 16, 23);
  assert_limits(HOST_CONFIG("22", "", "22", "23"), 0, 23);
  assert_limits("#if __GNUC__ > 15\n#endif\n#if defined(__clang__)\n#endif\n#if __clang_major__ >= 9\n#endif\n", 15, 0);
}

static void test_no_host_limits(void **state)
{
  (void)state;
  struct cfs_host_limits limits;
  cleanup_error cfs_error *err = NULL;
  assert_int_equal(cfs_header_host_limits(header("#include \"crt/host_config.h\"\n"), &limits, &err), -ENODATA);
  assert_non_null(err);
}

/* Unbalanced directives and cut-off text must not run past the end. */
static void test_every_prefix_is_harmless(void **state)
{
  (void)state;
  static const char text[] = "#endif\n/* c */ # if defined(__clang__)\n#if __clang_major__ >= 2\\\n3 // '\n"
                             "#define CUDA_VERSION (0x1 'a\\'\"\\\\\" ) \\\r\n/";
  for (size_t n = 0; n < sizeof(text); n++) {
    cleanup_free char *prefix = cfs_strndup(text, n);
    struct cfs_host_limits limits;
    long value;
    const char *path = header(prefix);
    (void)cfs_header_host_limits(path, &limits, NULL);
    (void)cfs_header_macro(path, "CUDA_VERSION", &value, NULL);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_macro_forms),
      cmocka_unit_test(test_first_definition_counts),
      cmocka_unit_test(test_what_is_no_definition),
      cmocka_unit_test(test_quotes_hide_comments),
      cmocka_unit_test(test_several_macros_at_once),
      cmocka_unit_test(test_missing_header_is_named),
      cmocka_unit_test(test_host_limits),
      cmocka_unit_test(test_no_host_limits),
      cmocka_unit_test(test_every_prefix_is_harmless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
