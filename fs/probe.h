/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_PROBE_H
#define CUDAFS_FS_PROBE_H

#include <stdbool.h>

#include "fs/mountinfo.h"
#include "fs/serve.h"

/* The mount that a directory lies in. */
struct cfs_place {
  char *path; /* its mount point, the one that leads to the directory */
  bool ours, is_root;
  uint32_t dev_major, dev_minor;
  uid_t user;
};

int cfs_place_find(const char *dir, struct cfs_place *ret);
void cfs_place_done(struct cfs_place *p);
/* Whether whoever serves that mount answers within a few seconds. */
bool cfs_place_answers(const char *path);

#endif
