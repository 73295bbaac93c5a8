/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "overlays/dispatch/routing.h"
#include "overlays/dispatch/trailer.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char good[] = "tool nvcc\nid " ID "\nroot /opt/my cuda\nface 13.0\n"
                           "route 13.0 13.0.88 9.0 cal 75,90,90a\nroute 12.9 12.9.86 8.8 a 50,75\n"
                           "avoid 13.1 100,100a miscompiles\nhint 13.4 9.4 107,107a\nfuture line\n";

static int parse(const char *text, const char **why)
{
  cleanup_routing cfs_routing r = {0};
  return cfs_routing_parse(text, strlen(text), &r, why);
}

static void test_every_line_is_read(void **state)
{
  (void)state;
  cleanup_routing cfs_routing r = {0};
  const char *why;
  assert_int_equal(cfs_routing_parse(good, strlen(good), &r, &why), 0);
  assert_string_equal(r.tool, "nvcc");
  assert_string_equal(r.root, "/opt/my cuda");
  assert_int_equal(r.n_routes, 2);
  assert_string_equal(r.routes[0].version, "13.0.88");
  assert_int_equal(r.routes[0].ptx.major, 9);
  assert_true(cfs_strings_has(&r.routes[0].archs, "90a"));
  assert_int_equal(r.routes[1].minor, 9);
  assert_string_equal(r.routes[1].can, "a");
  assert_string_equal(r.avoids[0].text, "miscompiles");
  assert_true(cfs_strings_has(&r.hints[0].archs, "107a"));
}

static void test_damage_is_refused(void **state)
{
  (void)state;
  static const char *const bad[] = {
      "",
      "tool gcc\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75\n",
      "tool nvcc\nid 12\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75\n",
      "tool nvcc\nid " ID "\nroot a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75\n",
      "tool nvcc\nid " ID "\nroot /a\nface 13.0\n",
      "tool nvcc\nid " ID "\nroot /a\nface 13.0\nroute 13.1 13.1.88 9.0 cal 75\n",
      "tool nvcc\nid " ID "\nroot /a\nface ../x\nroute ../x 13.0.88 9.0 cal 75\n",
      "tool nvcc\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9 cal 75\n",
      "tool nvcc\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal\n",
      "tool nvcc\ntool nvcc\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75\n",
      "tool nvcc\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75",
      "tool nvcc\n\nid " ID "\nroot /a\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75\n",
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    const char *why = NULL;
    if (parse(bad[i], &why) == 0 || !why)
      fail_msg("taken as sound: %s", bad[i]);
  }
}

static int file_of(const void *text, size_t size, uint64_t length, const char *magic)
{
  int fd = memfd_create("trailer", 0);
  unsigned char footer[8];
  for (int i = 0; i < 8; i++)
    footer[i] = (unsigned char)(length >> (8 * i));
  assert_true(fd >= 0 && write(fd, "ELF", 3) == 3 && write(fd, text, size) == (ssize_t)size);
  assert_true(write(fd, footer, 8) == 8 && write(fd, magic, 8) == 8);
  return fd;
}

static int read_file(int fd, const char **why)
{
  cleanup_routing cfs_routing r = {0};
  int result = cfs_routing_read(fd, &r, why);
  close(fd);
  return result;
}

static void test_the_footer_is_checked(void **state)
{
  (void)state;
  size_t size = strlen(good);
  const char *why;
  assert_int_equal(read_file(file_of(good, size, size, CFS_TRAILER_MAGIC), &why), 0);
  assert_true(read_file(file_of(good, size, size, "CUDAFS02"), &why) < 0);
  assert_non_null(strstr(why, "no trailer"));
  static const uint64_t lengths[] = {0, 1, UINT64_MAX, INT64_MAX, CFS_TRAILER_MAX + 1};
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
    assert_true(read_file(file_of(good, size, lengths[i], CFS_TRAILER_MAGIC), &why) < 0);
  assert_true(read_file(memfd_create("empty", 0), &why) < 0);
}

/* One byte after the other is changed and cut: nothing may crash, and the result is sound or an error. */
static void test_no_damage_crashes(void **state)
{
  (void)state;
  size_t size = strlen(good);
  const char *why;
  for (size_t i = 0; i < size; i++) {
    cleanup_free char *text = cfs_strdup(good);
    for (int c = 0; c < 256; c += 5) {
      cleanup_routing cfs_routing r = {0}, cut = {0};
      text[i] = (char)c;
      cfs_routing_parse(text, size, &r, &why);
      cfs_routing_parse(text, i, &cut, &why);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_line_is_read),
      cmocka_unit_test(test_damage_is_refused),
      cmocka_unit_test(test_the_footer_is_checked),
      cmocka_unit_test(test_no_damage_crashes),
  };
  return cmocka_run_group_tests_name("dispatch_routing", tests, NULL, NULL);
}
