/* SPDX-License-Identifier: MIT */
#include "fs/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void cfs_control_reply_add(struct cfs_control_reply *reply, const char *text)
{
  size_t n = strlen(text) + 1;
  if (n > CFS_CONTROL_TEXT_MAX - reply->text_size)
    return;
  memcpy(reply->text + reply->text_size, text, n);
  reply->text_size += (uint32_t)n;
}

size_t cfs_control_reply_size(const struct cfs_control_reply *reply)
{
  return offsetof(struct cfs_control_reply, text) + reply->text_size;
}

static void take_fds(struct msghdr *m, int ret_fds[2])
{
  int count = 0;
  ret_fds[0] = ret_fds[1] = -1;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
      if (count < 2)
        ret_fds[count++] = fd;
      else
        close(fd);
    }
  }
}

int cfs_control_receive(int socket, struct cfs_control_request *ret, int ret_fds[2])
{
  char control[CMSG_SPACE(2 * sizeof(int))];
  struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  ret_fds[0] = ret_fds[1] = -1;
  ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0)
    return -errno;
  take_fds(&m, ret_fds);
  return n == sizeof(*ret) && !(m.msg_flags & MSG_TRUNC) && ret->magic == CFS_CONTROL_MAGIC ? 0 : -EPROTO;
}

int cfs_control_send(int socket, const struct cfs_control_reply *reply)
{
  return send(socket, reply, cfs_control_reply_size(reply), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

bool cfs_control_may_change(int socket)
{
  struct ucred peer;
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

int cfs_control_ask(int socket, const struct cfs_control_request *request, const int *fds, int fd_count,
                    struct cfs_control_reply *ret)
{
  char control[CMSG_SPACE(2 * sizeof(int))] = {0};
  struct iovec iov = {.iov_base = (void *)request, .iov_len = sizeof(*request)};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
  ssize_t n;
  if (fd_count) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int))};
    memcpy(CMSG_DATA(c), fds, (size_t)fd_count * sizeof(int));
  }
  if (sendmsg(socket, &m, MSG_NOSIGNAL) < 0)
    return -errno;
  do
    n = recv(socket, ret, sizeof(*ret), 0);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return -errno;
  if (n == 0)
    return -ECONNRESET;
  bool whole = (size_t)n >= offsetof(struct cfs_control_reply, text) && ret->magic == CFS_CONTROL_MAGIC &&
               ret->text_size <= CFS_CONTROL_TEXT_MAX && (size_t)n == cfs_control_reply_size(ret) &&
               (!ret->text_size || !ret->text[ret->text_size - 1]);
  return whole ? 0 : -EPROTO;
}
