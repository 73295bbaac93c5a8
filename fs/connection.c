/* SPDX-License-Identifier: MIT */
#include "fs/connection.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"

/* From the kernel's header; Debian 12's linux/fuse.h lacks them. */
enum { NOTIFY_RESEND = 7, NOTIFY_INC_EPOCH = 8 };

#define INIT_TIMEOUT_MS 10000

static int wait_readable(int device)
{
  struct pollfd p = {.fd = device, .events = POLLIN};
  int r;
  do
    r = poll(&p, 1, INIT_TIMEOUT_MS);
  while (r < 0 && errno == EINTR);
  if (r < 0)
    return -errno;
  return r == 0 ? -ETIMEDOUT : p.revents & POLLERR ? -ENODEV : 0;
}

int cfs_connection_read_init(int device, void **ret_bytes, size_t *ret_size)
{
  cleanup_free char *buffer = malloc(FUSE_MIN_READ_BUFFER);
  if (!buffer)
    return -ENOMEM;
  int r = wait_readable(device);
  if (r < 0)
    return r;
  ssize_t n;
  do
    n = read(device, buffer, FUSE_MIN_READ_BUFFER);
  while (n < 0 && (errno == EINTR || errno == EAGAIN));
  if (n < 0)
    return -errno;
  const struct fuse_in_header *h = (const struct fuse_in_header *)buffer;
  if ((size_t)n < sizeof(*h) || h->opcode != FUSE_INIT)
    return -EPROTO;
  *ret_size = (size_t)n;
  *ret_bytes = TAKE_PTR(buffer);
  return 0;
}

static int send_message(int device, uint64_t unique, int32_t error, const struct iovec *body, int count)
{
  struct fuse_out_header header = {.len = sizeof(header), .error = error, .unique = unique};
  struct iovec iov[4] = {{.iov_base = &header, .iov_len = sizeof(header)}};
  for (int i = 0; i < count; i++) {
    iov[i + 1] = body[i];
    header.len += (uint32_t)body[i].iov_len;
  }
  ssize_t n;
  do
    n = writev(device, iov, count + 1);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : 0;
}

int cfs_connection_resend(int device)
{
  return send_message(device, 0, NOTIFY_RESEND, NULL, 0);
}

int cfs_connection_expire_root(int device)
{
  struct fuse_notify_inval_inode_out out = {.ino = FUSE_ROOT_ID};
  struct iovec iov = {.iov_base = &out, .iov_len = sizeof(out)};
  int r = send_message(device, 0, FUSE_NOTIFY_INVAL_INODE, &iov, 1);
  return r == -ENOENT ? 0 : r; /* not cached: nothing to drop */
}

int cfs_connection_expire(int device)
{
  int r = send_message(device, 0, NOTIFY_INC_EPOCH, NULL, 0);
  return r < 0 ? r : cfs_connection_expire_root(device);
}

int cfs_connection_expire_name(int device, const char *name)
{
  struct fuse_notify_inval_entry_out out = {.parent = FUSE_ROOT_ID, .namelen = (uint32_t)strlen(name)};
  struct iovec iov[2] = {{.iov_base = &out, .iov_len = sizeof(out)},
                         {.iov_base = (void *)name, .iov_len = strlen(name) + 1}};
  int r = send_message(device, 0, FUSE_NOTIFY_INVAL_ENTRY, iov, 2);
  return r == -ENOENT ? 0 : r;
}

int cfs_connection_fail(int device, uint64_t unique, uint32_t opcode, int error)
{
  if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT)
    return 0;
  return send_message(device, unique, -error, NULL, 0);
}

static short device_events(int device)
{
  struct pollfd p = {.fd = device, .events = POLLIN};
  return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

bool cfs_connection_gone(int device)
{
  return device_events(device) & (POLLERR | POLLNVAL);
}

bool cfs_connection_waiting(int device)
{
  return device_events(device) & POLLIN;
}
