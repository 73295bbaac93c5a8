/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_MOUNT_H
#define CUDAFS_FS_MOUNT_H

/* Attaching a FUSE connection to a directory and taking it off again: by mount(2) where that is allowed,
 * else through fusermount3. */

#include <stdbool.h>
#include <stdint.h>

#include "fs/options.h"

typedef struct cfs_mount {
  char *path;
  int device;      /* the connection; owned */
  bool direct;     /* by mount(2) */
  bool owner_only; /* mounted without allow_other because that was not permitted */
  uint32_t dev_major, dev_minor;
} cfs_mount;

/* Mounts at path (absolute, resolved). Returns 0, or a negative errno with *ret_why. */
int cfs_mount_attach(cfs_mount *m, const char *path, const struct cfs_mount_options *options, char **ret_why);
/* Closes the connection and forgets the path; unmounts nothing. */
void cfs_mount_done(cfs_mount *m);

/* Takes the filesystem off path, once; only if it is what path shows in the mount table. Returns 0, or a negative
 * errno with *ret_why (which may be NULL): -ENOENT when path shows something else, -EBUSY, -EPERM. */
int cfs_mount_detach(const char *path, uint32_t dev_major, uint32_t dev_minor, bool lazy, char **ret_why);

/* Widens the kernel's read-ahead on the mount; needs root, and a worker that answers. Best effort. */
void cfs_mount_read_ahead(const cfs_mount *m, unsigned kb);

/* Whether an ordinary user may say allow_other (user_allow_other in /etc/fuse.conf). */
bool cfs_mount_may_allow_other(void);

#endif
