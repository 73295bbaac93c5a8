/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_CONTROL_H
#define CUDAFS_FS_CONTROL_H

/* What goes over a mount's control socket: one packet there, one packet back. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/serve.h"

#define CFS_CONTROL_MAGIC    UINT32_C(0x31534643)
#define CFS_CONTROL_TEXT_MAX 32768u

enum cfs_control_verb { CFS_CONTROL_STATUS = 1, CFS_CONTROL_RELOAD, CFS_CONTROL_SETTLE };

/* SETTLE, before an unmount: the keeper ends its own helpers that use the mount. RELOAD carries two descriptors: the
 * sealed tree, and a memfd of the label. */
struct cfs_control_request {
  uint32_t magic;
  uint32_t verb;
  uint64_t label_size;
};

struct cfs_control_reply {
  uint32_t magic;
  int32_t error; /* 0 or a negative errno, then text is why */
  int32_t keeper, worker, spare;
  uint32_t generation, held;
  uint32_t owner_only;
  uint64_t restarts;
  int64_t started;
  uint64_t requests[CFS_OP_COUNT];
  uint64_t bytes_read, files, pinned, drift_count;
  uint32_t text_size;
  /* NUL-terminated strings: the mount point and then paths of drifted files. */
  char text[CFS_CONTROL_TEXT_MAX];
};

void cfs_control_reply_add(struct cfs_control_reply *reply, const char *text);
size_t cfs_control_reply_size(const struct cfs_control_reply *reply);

/* Receives one request; fds are set to -1 where there are none, else they are the caller's. -EPROTO. */
int cfs_control_receive(int socket, struct cfs_control_request *ret, int ret_fds[2]);
int cfs_control_send(int socket, const struct cfs_control_reply *reply);

/* Whether the peer may change the mount: root, or who runs the keeper. */
bool cfs_control_may_change(int socket);

/* The client's side: sends the request, waits for the reply (for ever: a reload may have much to pin). */
int cfs_control_ask(int socket, const struct cfs_control_request *request, const int *fds, int fd_count,
                    struct cfs_control_reply *ret);

#endif
