/* SPDX-License-Identifier: MIT */

/* The keeper's end of the control socket. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/keeper_private.h"

#define PATIENCE (1000 * CFS_MS) /* with a client that connected and says nothing */

void cfs_doorman_dismiss(struct cfs_client *client)
{
  int fds[] = {client->socket, client->fds[0], client->fds[1]};
  for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
    if (fds[i] >= 0)
      close(fds[i]);
  *client = CFS_CLIENT_NONE;
}

void cfs_doorman_dismiss_all(struct cfs_keeper *k)
{
  for (size_t i = 0; i < CFS_CLIENTS_MAX; i++)
    cfs_doorman_dismiss(&k->clients[i]);
}

void cfs_doorman_accept(struct cfs_keeper *k)
{
  int socket = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  struct cfs_client *place = &k->clients[0];
  if (socket < 0)
    return;
  for (size_t i = 0; i < CFS_CLIENTS_MAX; i++) {
    if (k->clients[i].socket < 0) {
      place = &k->clients[i];
      break;
    }
    if (k->clients[i].deadline < place->deadline)
      place = &k->clients[i];
  }
  cfs_doorman_dismiss(place);
  place->socket = socket;
  place->deadline = cfs_now() + PATIENCE;
}

static void report_files(const struct cfs_keeper *k, struct cfs_control_reply *reply)
{
  const cfs_registry *r = &k->registry;
  unsigned shown = 0;
  for (uint32_t i = 0; i < r->file_count; i++) {
    if (!r->files[i].serial || r->files[i].generation != r->current)
      continue;
    reply->files++;
    reply->pinned += r->files[i].pin != CFS_PIN_NONE;
    if (!atomic_load(&k->shared->files[i].drifted))
      continue;
    reply->drift_count++;
    if (shown++ < CFS_DRIFT_SHOWN)
      cfs_control_reply_add(reply, cfs_registry_path(r, i));
  }
}

static void answer_status(const struct cfs_keeper *k, struct cfs_control_reply *reply)
{
  reply->keeper = getpid();
  reply->worker = k->worker;
  reply->spare = k->spare;
  reply->generation = cfs_registry_generation(&k->registry);
  reply->held = cfs_registry_held(&k->registry);
  reply->owner_only = k->mount.owner_only;
  reply->restarts = atomic_load(&k->shared->restarts);
  reply->started = k->started;
  reply->bytes_read = atomic_load(&k->shared->bytes_read);
  for (size_t i = 0; i < CFS_OP_COUNT; i++)
    reply->requests[i] = atomic_load(&k->shared->requests[i]);
  cfs_control_reply_add(reply, k->mount.path);
  report_files(k, reply);
}

static int read_label(int fd, size_t size, char **ret)
{
  if (size > CFS_LABEL_MAX)
    return -EFBIG;
  cleanup_free char *label = malloc(size + 1);
  if (!label)
    return -ENOMEM;
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(fd, label + done, size - done, (off_t)done);
    if (n <= 0)
      return -EINVAL;
    done += (size_t)n;
  }
  *ret = TAKE_PTR(label);
  return 0;
}

static void answer_reload(struct cfs_keeper *k, const struct cfs_control_request *request, const int fds[2],
                          struct cfs_control_reply *reply)
{
  cleanup_free char *label = NULL, *why = NULL;
  reply->error = fds[0] < 0 || fds[1] < 0 ? -EPROTO : read_label(fds[1], request->label_size, &label);
  if (reply->error == 0)
    reply->error = cfs_keeper_reload(k, fds[0], label, request->label_size, &why);
  if (why)
    cfs_control_reply_add(reply, why);
  reply->generation = cfs_registry_generation(&k->registry);
}

static void answer(struct cfs_keeper *k, const struct cfs_client *client, const struct cfs_control_request *request,
                   struct cfs_control_reply *reply)
{
  if (request->verb == CFS_CONTROL_STATUS)
    answer_status(k, reply);
  else if (!cfs_control_may_change(client->socket))
    reply->error = -EACCES;
  else if (request->verb == CFS_CONTROL_RELOAD)
    answer_reload(k, request, client->fds, reply);
  else if (request->verb == CFS_CONTROL_SETTLE)
    cfs_keeper_end_helpers(k);
  else
    reply->error = -EOPNOTSUPP;
}

void cfs_doorman_answer(struct cfs_keeper *k, struct cfs_client *client)
{
  struct cfs_control_request request;
  cleanup_free struct cfs_control_reply *reply = calloc(1, sizeof(*reply));
  int r = reply ? cfs_control_receive(client->socket, &request, client->fds) : -ENOMEM;
  if (r == 0) {
    reply->magic = CFS_CONTROL_MAGIC;
    answer(k, client, &request, reply);
    cfs_control_send(client->socket, reply);
  }
  cfs_doorman_dismiss(client); /* also one that is no peer of ours, or went away */
}
