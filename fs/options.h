/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_OPTIONS_H
#define CUDAFS_FS_OPTIONS_H

#include <stdbool.h>

enum cfs_allow_other {
  CFS_ALLOW_AUTO, /* where it is permitted */
  CFS_ALLOW_YES,
  CFS_ALLOW_NO,
};

#define CFS_THREADS_MAX 64u

struct cfs_mount_options {
  enum cfs_allow_other allow_other;
  bool nonempty;
  unsigned threads;       /* 0: as many as fit the machine */
  unsigned read_ahead_kb; /* 0: leave it as it is */
  char fsname[64];
};

/* Reads the comma list of `-o` (NULL is empty). -EINVAL, with a sentence that names the option. */
int cfs_mount_options_parse(const char *text, struct cfs_mount_options *ret, char **ret_why);

#endif
