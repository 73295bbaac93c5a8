/* SPDX-License-Identifier: MIT */

/* A filesystem of one file, "file", whose reads never end: a stand-in for a broken disk or network.
 *
 *   hanging_fs -f DIR */

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse.h>
#include <string.h>
#include <unistd.h>

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
  (void)fi;
  memset(st, 0, sizeof(*st));
  st->st_mode = S_IFDIR | 0755;
  st->st_nlink = 1;
  if (strcmp(path, "/") == 0)
    return 0;
  st->st_mode = S_IFREG | 0444;
  st->st_size = 4096;
  return strcmp(path, "/file") == 0 ? 0 : -ENOENT;
}

static int list(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi,
                enum fuse_readdir_flags flags)
{
  (void)path, (void)offset, (void)fi, (void)flags;
  return fill(buffer, "file", NULL, 0, 0);
}

static int read_for_ever(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *fi)
{
  (void)path, (void)buffer, (void)size, (void)offset, (void)fi;
  while (sleep(1000) == 0)
    ;
  return -EIO;
}

int main(int argc, char **argv)
{
  static const struct fuse_operations operations = {.getattr = get_attributes, .readdir = list, .read = read_for_ever};
  return fuse_main(argc, argv, &operations, NULL);
}
