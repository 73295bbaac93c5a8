/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fs/format.h"
#include "fs/snapshot.h"
#include "fs/tree.h"

static const struct cfs_backing_id id_a = {.device = 1, .inode = 10, .size = 100, .mtime_sec = 1000, .mtime_nsec = 5};
static const struct cfs_backing_id id_b = {.device = 1, .inode = 11, .size = 200, .mtime_sec = 2000};
static const struct timespec blob_time = {.tv_sec = 1500};

static void fill(cfs_tree_builder *b, bool backwards)
{
  for (int i = 0; i < 6; i++) {
    switch (backwards ? 5 - i : i) {
    case 0:
      assert_int_equal(cfs_tree_builder_add_file(b, "bin/nvcc", "/src/nvcc", &id_a, true), 0);
      break;
    case 1:
      assert_int_equal(cfs_tree_builder_add_file(b, "include/cuda.h", "/src/cuda.h", &id_b, false), 0);
      break;
    case 2:
      assert_int_equal(cfs_tree_builder_add_link(b, "lib64", "targets/lib"), 0);
      break;
    case 3:
      assert_int_equal(cfs_tree_builder_add_blob(b, "version.json", "{}", 2, false, blob_time), 0);
      break;
    case 4:
      assert_int_equal(cfs_tree_builder_add_dir(b, "targets/lib"), 0);
      break;
    default:
      assert_int_equal(cfs_tree_builder_add_file(b, ".cudafs/toolchains/13.0/bin/nvcc", "/src/nvcc", &id_a, true), 0);
    }
  }
  assert_int_equal(cfs_tree_builder_hide(b, ".cudafs"), 0);
  assert_int_equal(cfs_tree_builder_warm(b, "bin/nvcc"), 0);
}

static cfs_snapshot *sealed(cfs_tree_builder *b)
{
  cfs_snapshot *s = NULL;
  int fd = cfs_tree_builder_seal(b);
  assert_true(fd >= 0);
  assert_int_equal(cfs_snapshot_open(fd, &s), 0);
  close(fd);
  return s;
}

static struct stat stat_of(const cfs_snapshot *s, const char *path)
{
  struct stat st;
  uint32_t entry = cfs_snapshot_resolve(s, path);
  assert_int_not_equal(entry, CFS_ENTRY_NONE);
  cfs_snapshot_stat(s, entry, &st);
  return st;
}

static void reads_back(void **state)
{
  (void)state;
  cfs_tree_builder *b = cfs_tree_builder_new();
  fill(b, false);
  cfs_snapshot *s = sealed(b);
  size_t size;
  uint32_t first, warm;
  char path[64];

  assert_int_equal(stat_of(s, "").st_mode, S_IFDIR | 0555);
  assert_int_equal(stat_of(s, "bin/nvcc").st_mode, S_IFREG | 0555);
  assert_int_equal(stat_of(s, "include/cuda.h").st_mode, S_IFREG | 0444);
  assert_int_equal(stat_of(s, "include/cuda.h").st_size, 200);
  assert_int_equal(stat_of(s, "bin/nvcc").st_mtim.tv_nsec, 5);
  assert_string_equal(cfs_snapshot_target(s, cfs_snapshot_resolve(s, "lib64")), "targets/lib");
  assert_memory_equal(cfs_snapshot_blob(s, cfs_snapshot_resolve(s, "version.json"), &size), "{}", 2);
  assert_int_equal(size, 2);
  uint32_t nvcc = cfs_snapshot_resolve(s, "bin/nvcc");
  assert_string_equal(cfs_snapshot_backing_path(s, cfs_snapshot_backing(s, nvcc)), "/src/nvcc");
  assert_int_equal(cfs_snapshot_backing_id(s, cfs_snapshot_backing(s, nvcc)).inode, 10);
  assert_true(cfs_snapshot_hidden(s, cfs_snapshot_resolve(s, ".cudafs")));
  assert_false(cfs_snapshot_hidden(s, nvcc));
  assert_int_equal(cfs_snapshot_path(s, cfs_snapshot_resolve(s, ".cudafs/toolchains/13.0/bin"), path, sizeof(path)), 0);
  assert_string_equal(path, ".cudafs/toolchains/13.0/bin");
  assert_int_equal(cfs_snapshot_path(s, nvcc, path, 8), -ENAMETOOLONG);
  assert_int_equal(cfs_snapshot_warm(s, &warm)[0], nvcc);
  assert_int_equal(warm, 1);

  uint32_t count = cfs_snapshot_children(s, CFS_ENTRY_ROOT, &first);
  assert_int_equal(count, 6);
  for (uint32_t i = first + 1; i < first + count; i++)
    assert_true(strcmp(cfs_snapshot_name(s, i - 1), cfs_snapshot_name(s, i)) < 0);
  assert_int_equal(cfs_snapshot_resolve(s, "bin/absent"), CFS_ENTRY_NONE);
  assert_int_equal(cfs_snapshot_resolve(s, "bin/nvcc/below"), CFS_ENTRY_NONE);
  cfs_snapshot_close(s);
  cfs_tree_builder_free(b);
}

static void one_backing_is_one_inode(void **state)
{
  (void)state;
  cfs_tree_builder *b = cfs_tree_builder_new();
  fill(b, false);
  assert_int_equal(cfs_tree_builder_add_file(b, "plain", "/src/nvcc", &id_a, false), 0);
  cfs_snapshot *s = sealed(b);
  struct stat face = stat_of(s, "bin/nvcc"), view = stat_of(s, ".cudafs/toolchains/13.0/bin/nvcc");
  assert_int_equal(face.st_ino, view.st_ino);
  assert_int_equal(face.st_nlink, 2);
  assert_int_equal(view.st_nlink, 2);
  assert_int_not_equal(stat_of(s, "plain").st_ino, face.st_ino); /* another mode is another inode */
  assert_int_not_equal(stat_of(s, "bin").st_ino, stat_of(s, ".cudafs/toolchains/13.0/bin").st_ino);
  cfs_snapshot_close(s);
  cfs_tree_builder_free(b);
}

static void directory_is_as_new_as_its_newest(void **state)
{
  (void)state;
  cfs_tree_builder *b = cfs_tree_builder_new();
  fill(b, false);
  cfs_snapshot *s = sealed(b);
  assert_int_equal(stat_of(s, "bin").st_mtim.tv_sec, 1000);
  assert_int_equal(stat_of(s, "include").st_mtim.tv_sec, 2000);
  assert_int_equal(stat_of(s, "").st_mtim.tv_sec, 2000);
  assert_int_equal(stat_of(s, "lib64").st_mtim.tv_sec, 2000);
  cfs_snapshot_close(s);
  cfs_tree_builder_free(b);
}

static size_t bytes_of(const cfs_tree_builder *b, char **ret)
{
  struct stat st;
  int fd = cfs_tree_builder_seal(b);
  assert_true(fd >= 0);
  assert_int_equal(fstat(fd, &st), 0);
  *ret = malloc((size_t)st.st_size);
  assert_int_equal(pread(fd, *ret, (size_t)st.st_size, 0), st.st_size);
  close(fd);
  return (size_t)st.st_size;
}

static void order_does_not_matter(void **state)
{
  (void)state;
  cfs_tree_builder *a = cfs_tree_builder_new(), *b = cfs_tree_builder_new();
  cleanup_free char *x = NULL, *y = NULL;
  fill(a, false);
  fill(b, true);
  size_t n = bytes_of(a, &x), m = bytes_of(b, &y);
  assert_int_equal(n, m);
  assert_memory_equal(x, y, n);
  cfs_tree_builder_free(a);
  cfs_tree_builder_free(b);
}

static void many_entries(void **state)
{
  (void)state;
  cfs_tree_builder *b = cfs_tree_builder_new();
  char path[64], backing[64];
  for (int i = 0; i < 20000; i++) {
    struct cfs_backing_id id = {.device = 1, .inode = (uint64_t)i + 1, .size = (uint64_t)i};
    snprintf(path, sizeof(path), "d%d/e%d/f%d", i % 7, i % 31, i);
    snprintf(backing, sizeof(backing), "/b/%d", i);
    assert_int_equal(cfs_tree_builder_add_file(b, path, backing, &id, i & 1), 0);
  }
  cfs_snapshot *s = sealed(b);
  for (int i = 0; i < 20000; i += 97) {
    snprintf(path, sizeof(path), "d%d/e%d/f%d", i % 7, i % 31, i);
    assert_int_equal(stat_of(s, path).st_size, i);
  }
  cleanup_free char *bytes = NULL;
  size_t names = 20000 * (sizeof("f12345") + sizeof("/b/12345"));
  assert_true(bytes_of(b, &bytes) <= names + cfs_snapshot_count(s) * 160);
  cfs_snapshot_close(s);
  cfs_tree_builder_free(b);
}

static void refuses_bad_entries(void **state)
{
  (void)state;
  static const char *const paths[] = {"", "/bin", "bin/", "a//b", ".", "..", "a/./b", "a/../b", "a/.."};
  char name[300];
  cfs_tree_builder *b = cfs_tree_builder_new();
  for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
    assert_int_equal(cfs_tree_builder_add_dir(b, paths[i]), -EINVAL);
  memset(name, 'x', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  assert_int_equal(cfs_tree_builder_add_dir(b, name), -ENAMETOOLONG);
  fill(b, false);
  assert_int_equal(cfs_tree_builder_add_dir(b, "bin/nvcc"), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_dir(b, "bin/nvcc/x"), -ENOTDIR);
  assert_int_equal(cfs_tree_builder_add_link(b, "lib64", "elsewhere"), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_link(b, "lib64", "targets/lib"), 0);
  assert_int_equal(cfs_tree_builder_add_blob(b, "version.json", "[]", 2, false, blob_time), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_file(b, "bin/nvcc", "/src/nvcc", &id_a, true), 0);
  assert_int_equal(cfs_tree_builder_add_file(b, "bin/nvcc", "/src/nvcc", &id_a, false), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_file(b, "bin/nvcc", "/src/cuda.h", &id_b, true), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_file(b, "other", "/src/nvcc", &id_b, true), -EEXIST);
  assert_int_equal(cfs_tree_builder_add_file(b, "other", "relative", &id_b, true), -EINVAL);
  assert_int_equal(cfs_tree_builder_hide(b, "absent"), -ENOENT);
  assert_int_equal(cfs_tree_builder_keep_identity(b, "absent"), -ENOENT);
  assert_int_equal(cfs_tree_builder_keep_identity(b, "bin"), -EINVAL);
  assert_int_equal(cfs_tree_builder_warm(b, "version.json"), -EINVAL);
  cfs_snapshot_close(sealed(b));
  cfs_tree_builder_free(b);
}

/* A memfd with these bytes, sealed like a real one. */
static int forged(const char *bytes, size_t size, unsigned seals)
{
  int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, size), size);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int open_forged(const char *bytes, size_t size, unsigned seals)
{
  cfs_snapshot *s = NULL;
  int fd = forged(bytes, size, seals);
  int r = cfs_snapshot_open(fd, &s);
  close(fd);
  cfs_snapshot_close(s);
  return r;
}

static void refuses_unsealed_and_truncated(void **state)
{
  (void)state;
  cfs_tree_builder *b = cfs_tree_builder_new();
  cleanup_free char *bytes = NULL;
  fill(b, false);
  size_t size = bytes_of(b, &bytes);
  assert_int_equal(open_forged(bytes, size, ALL_SEALS), 0);
  assert_int_equal(open_forged(bytes, size, F_SEAL_GROW), -EINVAL);
  assert_int_equal(open_forged(bytes, size, F_SEAL_WRITE), -EINVAL);
  for (size_t n = 0; n < size; n += 7)
    assert_int_equal(open_forged(bytes, n, ALL_SEALS), -EINVAL);
  cfs_tree_builder_free(b);
}

/* Reads everything that a worker could be made to read. */
static void walk(const cfs_snapshot *s)
{
  volatile size_t sum = 0;
  char path[4096];
  for (uint32_t i = 0; i < cfs_snapshot_count(s); i++) {
    struct stat st;
    size_t size = 0;
    cfs_snapshot_stat(s, i, &st);
    cfs_snapshot_path(s, i, path, sizeof(path));
    sum += strlen(cfs_snapshot_name(s, i)) + (size_t)st.st_size;
    switch (cfs_snapshot_kind(s, i)) {
    case CFS_ENTRY_DIR:
      cfs_snapshot_lookup(s, i, "nvcc");
      break;
    case CFS_ENTRY_FILE:
      sum += strlen(cfs_snapshot_backing_path(s, cfs_snapshot_backing(s, i))) + cfs_snapshot_shared(s, i);
      break;
    case CFS_ENTRY_BLOB: {
      const char *data = cfs_snapshot_blob(s, i, &size);
      sum += size ? (size_t)data[0] + (size_t)data[size - 1] : 0;
      break;
    }
    case CFS_ENTRY_LINK:
      sum += strlen(cfs_snapshot_target(s, i));
    }
  }
  (void)sum;
}

/* Whatever single field is overwritten, the result is refused or still safe to read in full. */
static void survives_any_overwritten_word(void **state)
{
  (void)state;
  static const uint32_t words[] = {0, 1, 7, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  cfs_tree_builder *b = cfs_tree_builder_new();
  cleanup_free char *bytes = NULL;
  unsigned refused = 0, kept = 0;
  fill(b, false);
  size_t size = bytes_of(b, &bytes);
  for (size_t at = 0; at + 4 <= size; at += 2) {
    uint32_t old;
    memcpy(&old, bytes + at, 4);
    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
      cfs_snapshot *s = NULL;
      memcpy(bytes + at, &words[w], 4);
      int fd = forged(bytes, size, ALL_SEALS);
      int r = cfs_snapshot_open(fd, &s);
      close(fd);
      assert_true(r == 0 || r == -EINVAL);
      if (r == 0)
        walk(s);
      cfs_snapshot_close(s);
      refused += r != 0;
      kept += r == 0;
    }
    memcpy(bytes + at, &old, 4);
  }
  assert_true(refused > 1000 && kept > 0);
  cfs_tree_builder_free(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_back),
      cmocka_unit_test(one_backing_is_one_inode),
      cmocka_unit_test(directory_is_as_new_as_its_newest),
      cmocka_unit_test(order_does_not_matter),
      cmocka_unit_test(many_entries),
      cmocka_unit_test(refuses_bad_entries),
      cmocka_unit_test(refuses_unsealed_and_truncated),
      cmocka_unit_test(survives_any_overwritten_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
