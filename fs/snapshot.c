/* SPDX-License-Identifier: MIT */
#include "fs/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fs/format.h"

struct cfs_snapshot {
  const struct cfs_format_header *header; /* the mapping */
  const struct cfs_format_entry *entries;
  const struct cfs_format_backing *backings;
  const uint32_t *warm;
  const char *strings, *blobs;
};

/* A string of that size lies at the offset, and ends there. */
static bool string_valid(const cfs_snapshot *s, uint32_t offset, uint64_t size)
{
  return (uint64_t)offset + size < s->header->strings && !memchr(s->strings + offset, '\0', size) &&
         s->strings[offset + size] == '\0';
}

static bool name_valid(const cfs_snapshot *s, const struct cfs_format_entry *e)
{
  if (!e->name_size || e->name_size > NAME_MAX || !string_valid(s, e->name, e->name_size))
    return false;
  const char *name = s->strings + e->name;
  return !memchr(name, '/', e->name_size) && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool file_valid(const cfs_snapshot *s, uint32_t i)
{
  const struct cfs_format_entry *e = &s->entries[i];
  if (e->data >= s->header->backings || e->extra > i || e->size != s->backings[e->data].size)
    return false;
  const struct cfs_format_entry *shared = &s->entries[e->extra];
  return shared->type == CFS_FORMAT_FILE && shared->data == e->data && shared->extra == e->extra &&
         shared->ino == e->ino && ((shared->flags ^ e->flags) & CFS_FORMAT_EXECUTABLE) == 0;
}

/* next is where the children of the next directory must begin: since every entry but the root is a
 * child exactly once and lies behind its parent, what passes is a tree. */
static bool directory_valid(const cfs_snapshot *s, uint32_t i, uint32_t *next)
{
  const struct cfs_format_entry *e = &s->entries[i];
  if (!e->extra)
    return true;
  if (e->data != *next || e->data <= i || e->extra > s->header->entries - *next)
    return false;
  *next += e->extra;
  for (uint32_t k = e->data; k < e->data + e->extra; k++) {
    if (s->entries[k].parent != i || !name_valid(s, &s->entries[k]))
      return false;
    if (k > e->data && strcmp(s->strings + s->entries[k - 1].name, s->strings + s->entries[k].name) >= 0)
      return false;
  }
  return true;
}

static bool entry_valid(const cfs_snapshot *s, uint32_t i, uint32_t *next)
{
  const struct cfs_format_entry *e = &s->entries[i];
  if (!e->ino || e->ino > CFS_FORMAT_INO_MAX + s->header->entries || e->size > INT64_MAX || e->mtime_nsec > 999999999)
    return false;
  if ((e->flags & CFS_FORMAT_KEPT) && e->type != CFS_FORMAT_BLOB && e->type != CFS_FORMAT_FILE)
    return false;
  switch (e->type) {
  case CFS_FORMAT_DIR:
    return directory_valid(s, i, next);
  case CFS_FORMAT_FILE:
    return file_valid(s, i);
  case CFS_FORMAT_BLOB:
    return e->size <= s->header->blobs && e->data <= s->header->blobs - e->size;
  case CFS_FORMAT_LINK:
    return e->size && e->size < PATH_MAX && string_valid(s, e->data, e->size);
  default:
    return false;
  }
}

static bool snapshot_valid(const cfs_snapshot *s)
{
  uint32_t next = 1;
  if (s->entries[0].type != CFS_FORMAT_DIR || s->entries[0].parent != 0 || s->entries[0].ino != 1 ||
      s->entries[0].flags || !string_valid(s, s->entries[0].name, 0))
    return false;
  for (uint32_t i = 0; i < s->header->backings; i++) {
    const struct cfs_format_backing *f = &s->backings[i];
    if (f->path_size >= PATH_MAX || !string_valid(s, f->path, f->path_size) || s->strings[f->path] != '/' ||
        f->size > INT64_MAX)
      return false;
  }
  for (uint32_t i = 0; i < s->header->entries; i++)
    if (!entry_valid(s, i, &next))
      return false;
  for (uint32_t i = 0; i < s->header->warm; i++)
    if (s->warm[i] >= s->header->entries || s->entries[s->warm[i]].type != CFS_FORMAT_FILE)
      return false;
  return next == s->header->entries;
}

static bool header_valid(const struct cfs_format_header *h, uint64_t size)
{
  if (h->magic != CFS_FORMAT_MAGIC || h->size != size || !h->entries || h->entries == CFS_FORMAT_NONE || !h->strings)
    return false;
  /* No term can overflow: each is a 32-bit count times a small constant. */
  return size == sizeof(*h) + (uint64_t)h->entries * sizeof(struct cfs_format_entry) +
                     (uint64_t)h->backings * sizeof(struct cfs_format_backing) + (uint64_t)h->warm * sizeof(uint32_t) +
                     h->strings + h->blobs;
}

static void snapshot_point(cfs_snapshot *s, const struct cfs_format_header *h)
{
  s->header = h;
  s->entries = (const struct cfs_format_entry *)(h + 1);
  s->backings = (const struct cfs_format_backing *)(s->entries + h->entries);
  s->warm = (const uint32_t *)(s->backings + h->backings);
  s->strings = (const char *)(s->warm + h->warm);
  s->blobs = s->strings + h->strings;
}

int cfs_snapshot_open(int fd, cfs_snapshot **ret)
{
  struct stat st;
  int seals = fcntl(fd, F_GET_SEALS);
  /* Without these the sender could change the bytes after the check, or shrink them into a SIGBUS. */
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != (F_SEAL_SHRINK | F_SEAL_WRITE))
    return -EINVAL;
  if (fstat(fd, &st) < 0)
    return -errno;
  if (st.st_size < (off_t)sizeof(struct cfs_format_header))
    return -EINVAL;
  cfs_snapshot *s = calloc(1, sizeof(*s));
  if (!s)
    return -ENOMEM;
  /* MAP_PRIVATE: kernels before 6.7 refuse MAP_SHARED on a write-sealed memfd even for reading. */
  void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) {
    int r = -errno;
    free(s);
    return r;
  }
  if (!header_valid(map, (uint64_t)st.st_size)) {
    munmap(map, (size_t)st.st_size);
    free(s);
    return -EINVAL;
  }
  snapshot_point(s, map);
  if (!snapshot_valid(s)) {
    cfs_snapshot_close(s);
    return -EINVAL;
  }
  *ret = s;
  return 0;
}

void cfs_snapshot_close(cfs_snapshot *s)
{
  if (!s)
    return;
  munmap((void *)s->header, s->header->size);
  free(s);
}

uint32_t cfs_snapshot_count(const cfs_snapshot *s)
{
  return s->header->entries;
}

uint32_t cfs_snapshot_backing_count(const cfs_snapshot *s)
{
  return s->header->backings;
}

uint32_t cfs_snapshot_lookup(const cfs_snapshot *s, uint32_t dir, const char *name)
{
  uint32_t low = s->entries[dir].data, high = low + s->entries[dir].extra;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int c = strcmp(name, s->strings + s->entries[middle].name);
    if (c == 0)
      return middle;
    if (c < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return CFS_ENTRY_NONE;
}

uint32_t cfs_snapshot_resolve(const cfs_snapshot *s, const char *path)
{
  char name[NAME_MAX + 1];
  uint32_t entry = CFS_ENTRY_ROOT;
  while (*path) {
    size_t n = strcspn(path, "/");
    if (n > NAME_MAX || s->entries[entry].type != CFS_FORMAT_DIR)
      return CFS_ENTRY_NONE;
    memcpy(name, path, n);
    name[n] = '\0';
    entry = cfs_snapshot_lookup(s, entry, name);
    if (entry == CFS_ENTRY_NONE)
      return entry;
    path += n;
    path += *path == '/';
  }
  return entry;
}

uint32_t cfs_snapshot_children(const cfs_snapshot *s, uint32_t dir, uint32_t *ret_first)
{
  *ret_first = s->entries[dir].data;
  return s->entries[dir].extra;
}

enum cfs_entry_kind cfs_snapshot_kind(const cfs_snapshot *s, uint32_t entry)
{
  return (enum cfs_entry_kind)(s->entries[entry].type - CFS_FORMAT_DIR);
}

const char *cfs_snapshot_name(const cfs_snapshot *s, uint32_t entry)
{
  return s->strings + s->entries[entry].name;
}

uint32_t cfs_snapshot_parent(const cfs_snapshot *s, uint32_t entry)
{
  return s->entries[entry].parent;
}

bool cfs_snapshot_hidden(const cfs_snapshot *s, uint32_t entry)
{
  return s->entries[entry].flags & CFS_FORMAT_HIDDEN;
}

bool cfs_snapshot_kept(const cfs_snapshot *s, uint32_t entry)
{
  return s->entries[entry].flags & CFS_FORMAT_KEPT;
}

static mode_t entry_mode(const struct cfs_format_entry *e)
{
  switch (e->type) {
  case CFS_FORMAT_DIR:
    return S_IFDIR | 0555;
  case CFS_FORMAT_LINK:
    return S_IFLNK | 0777;
  default:
    return S_IFREG | (e->flags & CFS_FORMAT_EXECUTABLE ? 0555 : 0444);
  }
}

void cfs_snapshot_stat(const cfs_snapshot *s, uint32_t entry, struct stat *ret)
{
  const struct cfs_format_entry *e = &s->entries[entry];
  struct timespec time = {.tv_sec = e->mtime_sec, .tv_nsec = e->mtime_nsec};
  *ret = (struct stat){
      .st_ino = e->ino,
      .st_mode = entry_mode(e),
      .st_nlink = e->links,
      .st_size = e->type == CFS_FORMAT_DIR ? 4096 : (off_t)e->size,
      .st_blksize = 4096,
      .st_blocks = e->type == CFS_FORMAT_DIR || e->type == CFS_FORMAT_LINK ? 0 : (blkcnt_t)((e->size + 511) / 512),
      .st_atim = time,
      .st_mtim = time,
      .st_ctim = time,
  };
}

const char *cfs_snapshot_target(const cfs_snapshot *s, uint32_t link)
{
  return s->strings + s->entries[link].data;
}

const void *cfs_snapshot_blob(const cfs_snapshot *s, uint32_t blob, size_t *ret_size)
{
  *ret_size = s->entries[blob].size;
  return s->blobs + s->entries[blob].data;
}

uint32_t cfs_snapshot_backing(const cfs_snapshot *s, uint32_t file)
{
  return s->entries[file].data;
}

uint32_t cfs_snapshot_shared(const cfs_snapshot *s, uint32_t file)
{
  return s->entries[file].extra;
}

const char *cfs_snapshot_backing_path(const cfs_snapshot *s, uint32_t backing)
{
  return s->strings + s->backings[backing].path;
}

struct cfs_backing_id cfs_snapshot_backing_id(const cfs_snapshot *s, uint32_t backing)
{
  const struct cfs_format_backing *f = &s->backings[backing];
  return (struct cfs_backing_id){
      .device = f->device,
      .inode = f->inode,
      .size = f->size,
      .mtime_sec = f->mtime_sec,
      .mtime_nsec = f->mtime_nsec,
  };
}

const uint32_t *cfs_snapshot_warm(const cfs_snapshot *s, uint32_t *ret_count)
{
  *ret_count = s->header->warm;
  return s->warm;
}

int cfs_snapshot_path(const cfs_snapshot *s, uint32_t entry, char *buffer, size_t size)
{
  size_t at = size;
  if (!size)
    return -ENAMETOOLONG;
  buffer[--at] = '\0';
  for (; entry != CFS_ENTRY_ROOT; entry = s->entries[entry].parent) {
    size_t n = s->entries[entry].name_size, slash = at != size - 1;
    if (n + slash > at)
      return -ENAMETOOLONG;
    if (slash)
      buffer[--at] = '/';
    at -= n;
    memcpy(buffer + at, s->strings + s->entries[entry].name, n);
  }
  memmove(buffer, buffer + at, size - at);
  return 0;
}
