/* SPDX-License-Identifier: MIT */

/* The command line's side of a live mount: status and reload over its control socket. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/client.h"
#include "fs/control.h"
#include "fs/why.h"

#define ASK_TRIES 5

int cfs_client_ask(const struct cfs_place *place, const struct cfs_control_request *request, const int *fds,
                   int fd_count, struct cfs_control_reply *ret, cfs_state *ret_state)
{
  cfs_state state = CFS_STATE_EMPTY;
  int r = cfs_state_find(place->dev_major, place->dev_minor, place->user, &state);
  if (r < 0)
    return r;
  /* A keeper that dies while it answers is succeeded by its spare, which can be asked again. */
  r = -ECONNRESET;
  for (int tries = 0; r == -ECONNRESET && tries < ASK_TRIES; tries++) {
    cleanup_close int socket = cfs_state_connect(&state);
    r = socket < 0 ? socket : cfs_control_ask(socket, request, fds, fd_count, ret);
    if (r == -EPIPE)
      r = -ECONNRESET;
  }
  if (r == -ECONNREFUSED || r == -ENOENT || r == -ECONNRESET)
    r = -ENOTCONN;
  if (r == -EAGAIN)
    r = -ETIMEDOUT;
  if (ret_state)
    *ret_state = state;
  else
    cfs_state_done(&state);
  return r;
}

static int find_ours(const char *dir, struct cfs_place *ret)
{
  int r = cfs_place_find(dir, ret);
  if (r == 0 && !ret->ours) {
    cfs_place_done(ret);
    r = -ENODEV;
  }
  return r;
}

static int fill_texts(const struct cfs_control_reply *reply, struct cfs_status *ret)
{
  const char *text = reply->text, *end = text + reply->text_size;
  if (text < end) {
    ret->mountpoint = strdup(text);
    if (!ret->mountpoint)
      return -ENOMEM;
    text += strlen(text) + 1;
  }
  for (size_t i = 0; text < end && i < CFS_DRIFT_SHOWN; i++) {
    ret->drift[i] = strdup(text);
    if (!ret->drift[i])
      return -ENOMEM;
    text += strlen(text) + 1;
  }
  return 0;
}

static int fill_status(const struct cfs_control_reply *reply, struct cfs_status *ret)
{
  ret->keeper = reply->keeper;
  ret->worker = reply->worker;
  ret->spare = reply->spare;
  ret->generation = reply->generation;
  ret->generations_held = reply->held;
  ret->restarts = reply->restarts;
  ret->started = reply->started;
  memcpy(ret->requests, reply->requests, sizeof(ret->requests));
  ret->bytes_read = reply->bytes_read;
  ret->files = reply->files;
  ret->pinned = reply->pinned;
  ret->drift_count = reply->drift_count;
  ret->owner_only = reply->owner_only;
  return fill_texts(reply, ret);
}

int cfs_status_read(const char *dir, struct cfs_status *ret)
{
  struct cfs_place place;
  cfs_state state = CFS_STATE_EMPTY;
  struct cfs_control_request request = {.magic = CFS_CONTROL_MAGIC, .verb = CFS_CONTROL_STATUS};
  cleanup_free struct cfs_control_reply *reply = malloc(sizeof(*reply));
  *ret = (struct cfs_status){0};
  int r = reply ? find_ours(dir, &place) : -ENOMEM;
  if (r < 0)
    return r;
  r = cfs_client_ask(&place, &request, NULL, 0, reply, &state);
  if (r == 0)
    r = reply->error ? reply->error : fill_status(reply, ret);
  else if (r == -ENOTCONN && state.dir)
    cfs_state_read(&state, &ret->mountpoint, &ret->keeper);
  else if (r == -ENOENT && !cfs_place_answers(place.path))
    r = -ENOTCONN; /* dead, and its directory went with a reboot of /run or a cleaner */
  if (state.dir && (r == 0 || r == -ENOTCONN))
    cfs_state_read_label(&state, &ret->label, &ret->label_size);
  cfs_state_done(&state);
  cfs_place_done(&place);
  return r;
}

void cfs_status_done(struct cfs_status *status)
{
  for (size_t i = 0; i < CFS_DRIFT_SHOWN; i++)
    free(status->drift[i]);
  free(status->mountpoint);
  free(status->label);
  *status = (struct cfs_status){0};
}

static int label_file(const void *label, size_t size)
{
  if (size > CFS_LABEL_MAX)
    return -EFBIG;
  cleanup_close int fd = memfd_create("cudafs-label", MFD_CLOEXEC);
  if (fd < 0)
    return -errno;
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, (const char *)label + done, size - done);
    if (n < 0 && errno != EINTR)
      return -errno;
    done += n > 0 ? (size_t)n : 0;
  }
  return TAKE_FD(fd);
}

static int explain(int r, char **ret_why)
{
  switch (r) {
  case -ENODEV:
    return cfs_why(ret_why, r, "it is not a cudafs mount");
  case -ENOTCONN:
    return cfs_why(ret_why, r, "the mount is dead: nobody serves it");
  case -EACCES:
    return cfs_why(ret_why, r, "the mount belongs to another user");
  case -ENOENT:
    return cfs_why(ret_why, r, "its control socket is not visible from here");
  default:
    return cfs_why(ret_why, r, "%s", strerror(-r));
  }
}

int cfs_reload(const char *dir, int tree_fd, const void *label, size_t label_size, uint32_t *ret_generation,
               char **ret_why)
{
  struct cfs_place place;
  struct cfs_control_request request = {
      .magic = CFS_CONTROL_MAGIC, .verb = CFS_CONTROL_RELOAD, .label_size = label_size};
  cleanup_free struct cfs_control_reply *reply = malloc(sizeof(*reply));
  if (!reply)
    return -ENOMEM;
  int r = find_ours(dir, &place);
  if (r < 0)
    return explain(r, ret_why);
  cleanup_close int label_fd = label_file(label, label_size);
  if (label_fd < 0) {
    cfs_place_done(&place);
    return explain(label_fd, ret_why);
  }
  int fds[2] = {tree_fd, label_fd};
  r = cfs_client_ask(&place, &request, fds, 2, reply, NULL);
  cfs_place_done(&place);
  if (r < 0)
    return explain(r, ret_why);
  if (reply->error < 0 && reply->text_size)
    return cfs_why(ret_why, reply->error, "%s", reply->text);
  if (reply->error < 0)
    return explain(reply->error, ret_why);
  if (ret_generation)
    *ret_generation = reply->generation;
  return 0;
}
