/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_MOUNTINFO_H
#define CUDAFS_FS_MOUNTINFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* One line of /proc/self/mountinfo (proc(5)). The strings lie in the line that was parsed. */
struct cfs_mountinfo {
  unsigned id, parent;
  uint32_t dev_major, dev_minor;
  char *root;   /* which directory of the filesystem is mounted: "/" unless it is a bind mount of a part */
  char *path;   /* where */
  char *type;   /* "fuse.cudafs" for ours */
  char *source; /* fsname= */
  uid_t user;   /* user_id= of a FUSE mount, else 0 */
};

#define CFS_MOUNT_TYPE "fuse.cudafs"

/* Parses one line in place, decoding octal escapes. -EINVAL if it is not such a line. */
int cfs_mountinfo_parse(char *line, struct cfs_mountinfo *ret);

/* "MAJOR:MINOR" as proc(5)'s files give a device, in that base. False when text does not begin with one. */
bool cfs_device_parse(const char *text, int base, uint32_t *ret_major, uint32_t *ret_minor);

/* Reading the table of this process: open, then next until it returns 0 (1 is an entry, which is valid
 * until the next call), then close. */
struct cfs_mountinfo_reader {
  FILE *file;
  char *line;
  size_t room;
};
int cfs_mountinfo_open(struct cfs_mountinfo_reader *r);
int cfs_mountinfo_next(struct cfs_mountinfo_reader *r, struct cfs_mountinfo *ret);
void cfs_mountinfo_close(struct cfs_mountinfo_reader *r);
#define cleanup_mountinfo __attribute__((cleanup(cfs_mountinfo_close)))

bool cfs_mountinfo_is_ours(const struct cfs_mountinfo *m);

#endif
