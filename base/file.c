/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"

static int read_all(int fd, size_t limit, cfs_buffer *b)
{
  char chunk[65536];
  for (;;) {
    ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    if (n == 0)
      return 0;
    if (b->size + (size_t)n > limit)
      return -EFBIG;
    cfs_buffer_add(b, chunk, (size_t)n);
  }
}

int cfs_file_read(const char *path, size_t limit, char **ret_data, size_t *ret_size)
{
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  int r = read_all(fd, limit, &b);
  if (r < 0)
    return r;
  if (ret_size)
    *ret_size = b.size;
  *ret_data = TAKE_PTR(b.data);
  return 0;
}

int cfs_write_all(int fd, const void *bytes, size_t size)
{
  const char *data = bytes;
  while (size) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

int cfs_file_write(const char *path, const void *data, size_t size)
{
  cleanup_free char *temporary = cfs_format("%s.XXXXXX", path);
  cleanup_close int fd = mkostemp(temporary, O_CLOEXEC);
  if (fd < 0)
    return -errno;
  int r = cfs_write_all(fd, data, size);
  if (r == 0 && fchmod(fd, 0644) < 0)
    r = -errno;
  if (r == 0 && rename(temporary, path) < 0)
    r = -errno;
  if (r < 0)
    unlink(temporary);
  return r;
}

bool cfs_path_exists(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0;
}

bool cfs_path_is_dir(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool cfs_path_is_file(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

char *cfs_path_join(const char *a, const char *b)
{
  size_t n = strlen(a);
  while (n > 1 && a[n - 1] == '/')
    n--;
  while (*b == '/')
    b++;
  if (n == 1 && a[0] == '/')
    n = 0;
  return cfs_format("%.*s/%s", (int)n, a, b);
}

char *cfs_path_normalise(const char *path)
{
  cleanup_strings cfs_strings words = {0}, kept = {0};
  cfs_strings_split(&words, path, "/");
  for (size_t i = 0; i < words.count; i++) {
    if (strcmp(words.items[i], ".") == 0)
      continue;
    if (strcmp(words.items[i], "..") != 0) {
      cfs_strings_add(&kept, words.items[i]);
      continue;
    }
    if (!kept.count)
      return NULL;
    free(kept.items[--kept.count]);
  }
  cleanup_free char *joined = cfs_strings_join(&kept, "/");
  return cfs_format("%s%s", path[0] == '/' ? "/" : "", joined);
}

int cfs_mkdir_all(const char *path, unsigned mode)
{
  cleanup_free char *p = cfs_strdup(path);
  for (char *slash = p + 1;; slash++) {
    slash = strchr(slash, '/');
    if (slash)
      *slash = '\0';
    if (mkdir(p, mode) < 0 && errno != EEXIST)
      return -errno;
    if (!slash)
      return cfs_path_is_dir(p) ? 0 : -ENOTDIR;
    *slash = '/';
  }
}
