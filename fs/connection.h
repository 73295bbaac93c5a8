/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_CONNECTION_H
#define CUDAFS_FS_CONNECTION_H

/* What is said to the kernel outside libfuse: reading INIT once for all workers to come, and notifications,
 * some of which libfuse 3.14 and its kernel header do not know. All return 0 or a negative errno. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set in the unique of a request that is sent again; the reply must carry it. */
#define CFS_UNIQUE_RESENT (UINT64_C(1) << 63)

/* Reads the first request of a new connection. The caller owns *ret_bytes. */
int cfs_connection_read_init(int device, void **ret_bytes, size_t *ret_size);

/* Asks the kernel to send again what a dead worker had read and not answered (Linux 6.9). -EINVAL before. */
int cfs_connection_resend(int device);

/* Makes every cached name be looked up again (Linux 6.16), and drops what is cached of the root: its
 * attributes and its listing, which the first alone leaves stale. -EINVAL if the kernel cannot. */
int cfs_connection_expire(int device);
/* For older kernels: one name in the root. Only while a worker serves: it takes the root's lock, which a
 * client waiting for an answer may hold. */
int cfs_connection_expire_name(int device, const char *name);
int cfs_connection_expire_root(int device);

/* Answers a request with an error, unless it is of a kind that takes no answer. */
int cfs_connection_fail(int device, uint64_t unique, uint32_t opcode, int error);

bool cfs_connection_gone(int device);    /* unmounted or aborted */
bool cfs_connection_waiting(int device); /* a request lies unread */

#endif
