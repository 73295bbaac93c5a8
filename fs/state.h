/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_STATE_H
#define CUDAFS_FS_STATE_H

/* The directory that a live mount keeps: /run/cudafs/MAJOR:MINOR for root, $XDG_RUNTIME_DIR/cudafs/... or
 * /tmp/cudafs-UID/... for others. It is named by the mount's device number, so that every path and bind mount
 * of a mount leads to it. In it: `state` (text), `label` (opaque) and the socket `control`. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cfs_state {
  char *dir;
  int fd; /* of the directory that was made, in its keeper; tells it from one that took its place */
} cfs_state;

#define CFS_STATE_EMPTY ((cfs_state){.fd = -1})

/* Makes the directory, sweeping out what a dead mount of the same number left. */
int cfs_state_create(cfs_state *s, uint32_t dev_major, uint32_t dev_minor);
int cfs_state_write(const cfs_state *s, const char *mountpoint, pid_t keeper);
int cfs_state_write_label(const cfs_state *s, const void *label, size_t size);
/* The listening socket; the caller owns it. */
int cfs_state_listen(const cfs_state *s);
/* Removes it, unless a new mount that was given the same device number has replaced it meanwhile. */
void cfs_state_remove(cfs_state *s);
void cfs_state_done(cfs_state *s); /* removes nothing */

/* For clients: the directory of a mount made by that user, if it is visible here and belongs to that user or
 * to root. -ENOENT. */
int cfs_state_find(uint32_t dev_major, uint32_t dev_minor, uid_t user, cfs_state *ret);
/* A connected socket. -ECONNREFUSED or -ENOENT: nobody listens. */
int cfs_state_connect(const cfs_state *s);
int cfs_state_read(const cfs_state *s, char **ret_mountpoint, pid_t *ret_keeper);
int cfs_state_read_label(const cfs_state *s, char **ret_label, size_t *ret_size);

#endif
