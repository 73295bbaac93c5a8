/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fs/mountinfo.h"
#include "fs/options.h"
#include "fs/serve.h"

static void options_have_defaults(void **state)
{
  (void)state;
  struct cfs_mount_options o;
  assert_int_equal(cfs_mount_options_parse(NULL, &o, NULL), 0);
  assert_int_equal(o.allow_other, CFS_ALLOW_AUTO);
  assert_int_equal(o.read_ahead_kb, 1024);
  assert_string_equal(o.fsname, "cudafs");
  assert_int_equal(cfs_mount_options_parse(",,ro,", &o, NULL), 0);
}

static void options_are_read(void **state)
{
  (void)state;
  struct cfs_mount_options o;
  const char *text = "ro,nosuid,nodev,noallow_other,nonempty,threads=3,read_ahead_kb=256,fsname=sm120,subtype=cudafs";
  assert_int_equal(cfs_mount_options_parse(text, &o, NULL), 0);
  assert_int_equal(o.allow_other, CFS_ALLOW_NO);
  assert_true(o.nonempty);
  assert_int_equal(o.threads, 3);
  assert_int_equal(o.read_ahead_kb, 256);
  assert_string_equal(o.fsname, "sm120");
}

static void bad_options_are_named(void **state)
{
  (void)state;
  static const struct {
    const char *text, *named;
  } cases[] = {
      {"rw", "rw"},
      {"ro,suid", "suid"},
      {"dev", "dev"},
      {"passthrough", "passthrough"},
      {"frobnicate", "frobnicate"},
      {"threads=0", "threads"},
      {"threads=65", "threads"},
      {"threads=-1", "threads"},
      {"threads=4x", "threads"},
      {"threads", "threads"},
      {"read_ahead_kb=", "read_ahead_kb"},
      {"fsname=", "fsname"},
      {"fsname=a b", "fsname"},
      {"subtype=other", "subtype=other"},
      {"fd=3", "fd=3"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    cleanup_free char *why = NULL;
    assert_int_equal(cfs_mount_options_check(cases[i].text, &why), -EINVAL);
    assert_non_null(why);
    assert_non_null(strstr(why, cases[i].named));
  }
  char word[400];
  memset(word, 'x', sizeof(word) - 1);
  word[sizeof(word) - 1] = '\0';
  assert_int_equal(cfs_mount_options_check(word, NULL), -EINVAL);
}

static void mountinfo_is_parsed(void **state)
{
  (void)state;
  struct cfs_mountinfo m;
  char line[] = "66 27 0:42 / /srv/a\\040b\\134c\\011d ro,nosuid shared:1 master:2 - fuse.cudafs my\\040fs "
                "ro,user_id=1000,group_id=1000,default_permissions\n";
  assert_int_equal(cfs_mountinfo_parse(line, &m), 0);
  assert_int_equal(m.id, 66);
  assert_int_equal(m.parent, 27);
  assert_int_equal(m.dev_minor, 42);
  assert_string_equal(m.root, "/");
  assert_string_equal(m.path, "/srv/a b\\c\td");
  assert_string_equal(m.source, "my fs");
  assert_int_equal(m.user, 1000);
  assert_true(cfs_mountinfo_is_ours(&m));

  char plain[] = "22 27 8:1 /sub /mnt rw - ext4 /dev/sda1 rw,xuser_id=7";
  assert_int_equal(cfs_mountinfo_parse(plain, &m), 0);
  assert_string_equal(m.root, "/sub");
  assert_int_equal(m.user, 0);
  assert_false(cfs_mountinfo_is_ours(&m));
}

static void half_escapes_are_kept(void **state)
{
  (void)state;
  struct cfs_mountinfo m;
  char line[] = "1 2 0:3 / /a\\04 rw - tmpfs x\\9 rw";
  assert_int_equal(cfs_mountinfo_parse(line, &m), 0);
  assert_string_equal(m.path, "/a\\04");
  assert_string_equal(m.source, "x\\9");
}

static void broken_lines_are_refused(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "",
      "\n",
      "1 2 0:3 / /a",
      "1 2 0:3 / /a rw",
      "1 2 0:3 / /a rw shared:1",
      "1 2 0:3 / /a rw - tmpfs",
      "1 2 0:3 / /a rw - tmpfs none",
      "x 2 0:3 / /a rw - tmpfs none rw",
      "1 2 03 / /a rw - tmpfs none rw",
  };
  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    struct cfs_mountinfo m;
    cleanup_free char *line = strdup(lines[i]);
    assert_int_equal(cfs_mountinfo_parse(line, &m), -EINVAL);
  }
}

static void plain_directories_are_no_mounts(void **state)
{
  (void)state;
  enum cfs_mount_state what = CFS_MOUNT_DEAD;
  cleanup_free char *root = NULL;
  char dir[] = "/tmp/cudafs-unit-XXXXXX";
  assert_non_null(mkdtemp(dir));
  assert_int_equal(cfs_mount_probe(dir, &what, &root), 0);
  assert_int_equal(what, CFS_MOUNT_NONE);
  assert_null(root);
  rmdir(dir);
  assert_int_equal(cfs_mount_probe(dir, &what, NULL), -ENOENT);
  assert_int_equal(cfs_mount_probe("/etc/passwd", &what, NULL), -ENOTDIR);
  assert_int_equal(cfs_mount_probe("/proc", &what, &root), 0);
  assert_int_equal(what, CFS_MOUNT_FOREIGN);
  struct cfs_status status;
  assert_int_equal(cfs_status_read("/proc", &status), -ENODEV);
  assert_int_equal(cfs_umount("/proc", false, NULL), -EINVAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_have_defaults),           cmocka_unit_test(options_are_read),
      cmocka_unit_test(bad_options_are_named),           cmocka_unit_test(mountinfo_is_parsed),
      cmocka_unit_test(half_escapes_are_kept),           cmocka_unit_test(broken_lines_are_refused),
      cmocka_unit_test(plain_directories_are_no_mounts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
