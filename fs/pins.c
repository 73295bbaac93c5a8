/* SPDX-License-Identifier: MIT */
#include "fs/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

bool cfs_backing_matches(const struct cfs_backing_id *id, const struct stat *st)
{
  return S_ISREG(st->st_mode) && (uint64_t)st->st_ino == id->inode && (uint64_t)st->st_size == id->size &&
         st->st_mtim.tv_sec == id->mtime_sec && (uint64_t)st->st_mtim.tv_nsec == id->mtime_nsec;
}

int cfs_pins_init(cfs_pins *p, uint32_t limit)
{
  *p = (cfs_pins){.limit = limit, .free_list = CFS_PIN_NONE, .bucket_count = 4096};
  p->buckets = malloc(p->bucket_count * sizeof(*p->buckets));
  if (!p->buckets)
    return -ENOMEM;
  memset(p->buckets, 0xff, p->bucket_count * sizeof(*p->buckets));
  return 0;
}

void cfs_pins_done(cfs_pins *p)
{
  for (uint32_t i = 0; i < p->count; i++)
    if (p->pins[i].fd >= 0)
      close(p->pins[i].fd);
  free(p->pins);
  free(p->buckets);
  *p = (cfs_pins){0};
}

static uint32_t *bucket_of(cfs_pins *p, uint64_t device, uint64_t inode)
{
  uint64_t h = (inode ^ device << 40) * UINT64_C(0x9e3779b97f4a7c15);
  return &p->buckets[(h >> 32) & (p->bucket_count - 1)];
}

static int new_pin(cfs_pins *p, uint32_t *ret)
{
  if (p->free_list != CFS_PIN_NONE) {
    *ret = p->free_list;
    p->free_list = p->pins[*ret].next;
    return 0;
  }
  if (p->count == p->room) {
    uint32_t room = p->room ? p->room * 2 : 256;
    struct cfs_pin *wider = reallocarray(p->pins, room, sizeof(*wider));
    if (!wider)
      return -ENOMEM;
    p->pins = wider;
    p->room = room;
  }
  *ret = p->count++;
  p->pins[*ret].fd = -1;
  return 0;
}

/* Opens the file for pinning. 1: there are no descriptors left. */
static int open_pin(const char *path, const struct cfs_backing_id *id, struct stat *st, int *ret_fd)
{
  cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE))
    return 1;
  if (fd < 0 || fstat(fd, st) < 0)
    return -errno;
  if (!cfs_backing_matches(id, st))
    return -ESTALE;
  *ret_fd = TAKE_FD(fd);
  return 0;
}

static int check_unpinned(const char *path, const struct cfs_backing_id *id)
{
  struct stat st;
  if (stat(path, &st) < 0)
    return -errno;
  return cfs_backing_matches(id, &st) ? 0 : -ESTALE;
}

static uint32_t find_pin(cfs_pins *p, const struct stat *st)
{
  uint32_t i = *bucket_of(p, st->st_dev, st->st_ino);
  while (i != CFS_PIN_NONE && (p->pins[i].device != st->st_dev || p->pins[i].inode != st->st_ino))
    i = p->pins[i].next;
  return i;
}

int cfs_pins_take(cfs_pins *p, const char *path, const struct cfs_backing_id *id, uint32_t *ret_pin)
{
  struct stat st = {0};
  cleanup_close int fd = -1;
  *ret_pin = CFS_PIN_NONE;
  if (p->used >= p->limit)
    return check_unpinned(path, id);
  int r = open_pin(path, id, &st, &fd);
  if (r != 0)
    return r < 0 ? r : check_unpinned(path, id);
  uint32_t pin = find_pin(p, &st);
  if (pin == CFS_PIN_NONE) {
    r = new_pin(p, &pin);
    if (r < 0)
      return r;
    uint32_t *bucket = bucket_of(p, st.st_dev, st.st_ino);
    p->pins[pin] = (struct cfs_pin){.device = st.st_dev, .inode = st.st_ino, .fd = TAKE_FD(fd), .next = *bucket};
    *bucket = pin;
    p->used++;
  }
  p->pins[pin].references++;
  *ret_pin = pin;
  return 0;
}

void cfs_pins_reference(cfs_pins *p, uint32_t pin)
{
  if (pin != CFS_PIN_NONE)
    p->pins[pin].references++;
}

void cfs_pins_release(cfs_pins *p, uint32_t pin)
{
  if (pin == CFS_PIN_NONE || --p->pins[pin].references)
    return;
  struct cfs_pin *gone = &p->pins[pin];
  uint32_t *link = bucket_of(p, gone->device, gone->inode);
  while (*link != pin)
    link = &p->pins[*link].next;
  *link = gone->next;
  close(gone->fd);
  gone->fd = -1;
  gone->next = p->free_list;
  p->free_list = pin;
  p->used--;
}
