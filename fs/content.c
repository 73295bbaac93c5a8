/* SPDX-License-Identifier: MIT */
#include "fs/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

int cfs_content_init(cfs_content *c, const cfs_registry *registry, uint32_t limit)
{
  *c = (cfs_content){.registry = registry, .limit = limit ? limit : 1};
  c->files = malloc(((size_t)registry->file_count + 1) * sizeof(*c->files));
  if (!c->files)
    return -ENOMEM;
  for (uint32_t i = 0; i < registry->file_count; i++)
    c->files[i] = (struct cfs_content_file){.fd = -1};
  return -pthread_mutex_init(&c->lock, NULL);
}

static bool unchanged(const cfs_content *c, uint32_t file, int fd)
{
  struct stat st;
  struct cfs_backing_id id = cfs_registry_backing_id(c->registry, file);
  if (fstat(fd, &st) == 0 && cfs_backing_matches(&id, &st))
    return true;
  atomic_store(&c->registry->shared->files[file].drifted, 1);
  return false;
}

static int open_backing(const cfs_content *c, uint32_t file)
{
  char name[32];
  const char *path = name;
  int pin = cfs_registry_pin(c->registry, file);
  if (pin >= 0)
    snprintf(name, sizeof(name), "/proc/self/fd/%d", pin);
  else
    path = cfs_registry_path(c->registry, file);
  /* O_NONBLOCK: an unpinned path may by now be a fifo, which must not hang the worker. */
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE)
      atomic_store(&c->registry->shared->files[file].drifted, 1);
    return -EIO;
  }
  return unchanged(c, file, fd) ? TAKE_FD(fd) : -EIO;
}

/* Second chance over the slots; called with the lock held. */
static void close_one(cfs_content *c)
{
  for (uint32_t tries = c->registry->file_count * 2; tries; tries--) {
    struct cfs_content_file *f = &c->files[c->hand];
    c->hand = (c->hand + 1) % c->registry->file_count;
    if (f->fd < 0 || f->users)
      continue;
    if (f->recent) {
      f->recent = false;
      continue;
    }
    close(f->fd);
    f->fd = -1;
    c->open--;
    return;
  }
}

static int take(cfs_content *c, uint32_t file)
{
  struct cfs_content_file *f = &c->files[file];
  pthread_mutex_lock(&c->lock);
  if (f->fd < 0) {
    if (c->open >= c->limit)
      close_one(c);
    /* Not under the lock: a slow filesystem would hold up every thread. */
    pthread_mutex_unlock(&c->lock);
    int fd = open_backing(c, file);
    if (fd < 0)
      return fd;
    pthread_mutex_lock(&c->lock);
    if (f->fd < 0) {
      f->fd = fd;
      c->open++;
    } else {
      close(fd); /* another thread was faster */
    }
  }
  int fd = f->fd;
  f->users++;
  f->recent = true;
  pthread_mutex_unlock(&c->lock);
  return fd;
}

static void give_back(cfs_content *c, uint32_t file)
{
  pthread_mutex_lock(&c->lock);
  c->files[file].users--;
  pthread_mutex_unlock(&c->lock);
}

static ssize_t read_fully(int fd, char *buffer, size_t size, off_t offset)
{
  size_t done = 0;
  while (done < size) {
    ssize_t n = pread(fd, buffer + done, size - done, offset + (off_t)done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -EIO;
    if (n == 0)
      break;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

ssize_t cfs_content_read(cfs_content *c, uint32_t file, void *buffer, size_t size, off_t offset)
{
  uint64_t end = cfs_registry_backing_id(c->registry, file).size;
  if (offset < 0 || (uint64_t)offset >= end)
    return 0;
  if (size > end - (uint64_t)offset)
    size = end - (uint64_t)offset;
  int fd = take(c, file);
  if (fd < 0)
    return fd;
  ssize_t n = read_fully(fd, buffer, size, offset);
  /* Afterwards, so that bytes written in place meanwhile are noticed too. */
  if (n >= 0 && ((size_t)n != size || !unchanged(c, file, fd)))
    n = -EIO;
  give_back(c, file);
  return n;
}
