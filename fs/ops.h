/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_OPS_H
#define CUDAFS_FS_OPS_H

/* The FUSE operations. Each decodes its request, asks the registry or the content, and replies once. */

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#include <fuse_lowlevel.h>

#include "fs/content.h"

struct cfs_ops {
  const cfs_registry *registry;
  struct cfs_shared *shared;
  cfs_content *content;
};

/* For fuse_session_new; its userdata is a struct cfs_ops. */
const struct fuse_lowlevel_ops *cfs_ops_table(void);

#endif
