/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_CLIENT_H
#define CUDAFS_FS_CLIENT_H

#include "fs/control.h"
#include "fs/probe.h"
#include "fs/state.h"

/* Asks the keeper of a mount. ret_state, if not NULL, receives its directory, even on failure if there is one.
 * -ENOENT: no directory is visible; -ENOTCONN: nobody listens there. */
int cfs_client_ask(const struct cfs_place *place, const struct cfs_control_request *request, const int *fds,
                   int fd_count, struct cfs_control_reply *ret, cfs_state *ret_state);

#endif
