/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_LAUNCH_H
#define CUDAFS_DISPATCH_LAUNCH_H

/* Becoming the real tool. */

#include "overlays/dispatch/choose.h"
#include "overlays/dispatch/command.h"

struct cfs_launch {
  const cfs_routing *routing;
  const char *root;
  const struct cfs_choice *choice;
  cfs_command *command; /* as read; nvcc's is rewritten */
  char **argv;          /* as given */
};

/* The path of the tool that was chosen; the caller owns it. */
char *cfs_launch_path(const struct cfs_launch *l);

/* Executes it. Returns only on failure, a negative errno. */
int cfs_launch(const struct cfs_launch *l);

#endif
