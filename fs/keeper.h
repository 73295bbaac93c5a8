/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_KEEPER_H
#define CUDAFS_FS_KEEPER_H

/* The process that owns a mount. Single-threaded and without libfuse: it holds the connection, the trees and
 * the pins, and forks workers, one after the other. It has no descriptor, working directory or program inside
 * its own mount, or its exit could wait for itself. */

#include <stddef.h>

#include "fs/options.h"

struct cfs_keeper_setup {
  int tree_fd; /* closed when it has been read */
  const char *mountpoint;
  struct cfs_mount_options options;
  const void *label;
  size_t label_size;
  /* Called once: error 0 when the mount is usable, else a negative errno with the reason. */
  void (*report)(void *data, int error, const char *why);
  void *report_data;
};

/* Mounts and serves until unmounted or told to stop by SIGTERM or SIGINT. Returns 0 then, or a negative errno
 * when it could not begin (which was reported). */
int cfs_keeper_run(const struct cfs_keeper_setup *setup);

#endif
