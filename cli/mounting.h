/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_MOUNTING_H
#define CUDAFS_CLI_MOUNTING_H

/* From a planned build to a mount, with errors that say what to do on this machine. */

#include "cli/session.h"

struct cfs_mounting {
  const char *mountpoint; /* absolute */
  const char *options;    /* of -o, or NULL */
  bool foreground;
};

/* Serves the build's tree. Returns 0, or the exit code of an error that was told. */
int cfs_mounting_serve(const cfs_build *build, const struct cfs_mounting *m);

/* A private mount that lasts as long as its user. */
struct cfs_private_mount {
  char *path; /* NULL: there is none */
};
int cfs_private_mount_make(const cfs_build *build, struct cfs_private_mount *ret);
void cfs_private_mount_remove(struct cfs_private_mount *m);
#define cleanup_private_mount __attribute__((cleanup(cfs_private_mount_remove)))

#endif
