/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"

/* The descriptor that path names, or -1 when it is a path like any other. */
static int named_descriptor(const char *path)
{
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0)
    return STDIN_FILENO;
  for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
    const char *digits = path + strlen(folders[i]);
    if (!cfs_has_prefix(path, folders[i]) || *digits < '0' || *digits > '9')
      continue;
    char *end;
    long n = strtol(digits, &end, 10);
    if (*end == '\0' && n >= 0 && n < 1 << 20)
      return (int)n;
  }
  return -1;
}

int cfs_input_memory(const void *data, size_t size)
{
  cleanup_close int fd = memfd_create("cudafs", 0);
  if (fd < 0)
    return -errno;
  int r = cfs_write_all(fd, data, size);
  if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
    r = -errno;
  return r < 0 ? r : TAKE_FD(fd);
}

/* A writer may have set the shared description to O_NONBLOCK; what was read by then must not be lost. */
static ssize_t read_waiting(int fd, char *data, size_t size)
{
  for (;;) {
    ssize_t n = read(fd, data, size);
    if (n >= 0)
      return n;
    if (errno == EAGAIN)
      poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
    else if (errno != EINTR)
      return -errno;
  }
}

/* Reads the pipe fd to its end and puts a file of the same bytes in its place. */
static int keep_pipe(int fd)
{
  char chunk[65536];
  cleanup_close int memory = cfs_input_memory("", 0);
  if (memory < 0)
    return memory;
  for (;;) {
    ssize_t n = read_waiting(fd, chunk, sizeof(chunk));
    if (n < 0)
      return (int)n;
    if (n == 0)
      break;
    int r = cfs_write_all(memory, chunk, (size_t)n);
    if (r < 0)
      return r;
  }
  if (lseek(memory, 0, SEEK_SET) < 0 || dup2(memory, fd) < 0)
    return -errno;
  return 0;
}

static int read_from(int fd, off_t offset, size_t limit, char **ret_data, size_t *ret_size)
{
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  char chunk[65536];
  while (b.size < limit) {
    size_t want = limit - b.size < sizeof(chunk) ? limit - b.size : sizeof(chunk);
    ssize_t n = pread(fd, chunk, want, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    if (n == 0)
      break;
    cfs_buffer_add(&b, chunk, (size_t)n);
    offset += n;
  }
  *ret_size = b.size;
  *ret_data = TAKE_PTR(b.data);
  return 0;
}

static int read_descriptor(const char *path, int fd, size_t limit, char **ret_data, size_t *ret_size)
{
  struct stat st;
  if (fstat(fd, &st) < 0)
    return -errno;
  if (!S_ISREG(st.st_mode)) {
    int r = keep_pipe(fd);
    if (r < 0)
      return r;
  }
  /* "-" is read from where the descriptor stands; the names under /dev open the file anew. */
  off_t offset = strcmp(path, "-") == 0 ? lseek(fd, 0, SEEK_CUR) : 0;
  return read_from(fd, offset < 0 ? 0 : offset, limit, ret_data, ret_size);
}

int cfs_input_read(const char *path, size_t limit, char **ret_data, size_t *ret_size)
{
  int inherited = named_descriptor(path);
  if (inherited >= 0)
    return read_descriptor(path, inherited, limit, ret_data, ret_size);
  /* Opening a named pipe would already disturb its writer, so look first. */
  struct stat st;
  if (stat(path, &st) < 0)
    return -errno;
  if (!S_ISREG(st.st_mode))
    return S_ISDIR(st.st_mode) ? -EISDIR : -ESPIPE;
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0)
    return -errno;
  return read_from(fd, 0, limit, ret_data, ret_size);
}
