/* SPDX-License-Identifier: MIT */

/* Writing a builder's entries into a sealed memfd. Everything here is a function of the entries alone,
 * never of the order in which they were added, so that equal plans give equal bytes. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/format.h"
#include "fs/tree_private.h"

struct sealer {
  const cfs_tree_builder *b;
  uint32_t count;
  uint32_t *order;    /* builder's number of each sealed entry */
  uint32_t *number;   /* sealed number of each builder's entry */
  uint32_t *first;    /* first child of each builder's entry, in child_list */
  uint32_t *children; /* their number */
  uint32_t *child_list;
  uint32_t *backing_number; /* sealed number of each builder's backing */
  uint32_t *backing_order;
  uint32_t (*sharing)[2]; /* per builder's backing and mode: the first entry, as a sealed number */
  uint32_t backing_count;
  struct cfs_format_entry *entries; /* from here on: pointers into the memfd's mapping */
  struct cfs_format_backing *backings;
  uint32_t *warm;
  char *strings, *blobs;
  uint64_t strings_size, blobs_size, size;
};

static void sealer_done(struct sealer *s)
{
  free(s->order);
  free(s->number);
  free(s->first);
  free(s->children);
  free(s->child_list);
  free(s->backing_number);
  free(s->backing_order);
  free(s->sharing);
}

static int sealer_allocate(struct sealer *s)
{
  size_t n = s->count, m = s->b->backing_count;
  s->order = calloc(n, sizeof(uint32_t));
  s->number = calloc(n, sizeof(uint32_t));
  s->first = calloc(n, sizeof(uint32_t));
  s->children = calloc(n, sizeof(uint32_t));
  s->child_list = calloc(n, sizeof(uint32_t));
  s->backing_number = calloc(m + 1, sizeof(uint32_t));
  s->backing_order = calloc(m + 1, sizeof(uint32_t));
  s->sharing = calloc(m + 1, sizeof(*s->sharing));
  if (!s->order || !s->number || !s->first || !s->children || !s->child_list || !s->backing_number ||
      !s->backing_order || !s->sharing)
    return -ENOMEM;
  memset(s->backing_number, 0xff, (m + 1) * sizeof(uint32_t));
  memset(s->sharing, 0xff, (m + 1) * sizeof(*s->sharing));
  return 0;
}

static int compare_names(const void *a, const void *b, void *data)
{
  const cfs_tree_builder *builder = data;
  const struct cfs_tree_node *x = &builder->entries[*(const uint32_t *)a], *y = &builder->entries[*(const uint32_t *)b];
  return strcmp(x->path + x->name, y->path + y->name);
}

static void sort_children(struct sealer *s)
{
  const cfs_tree_builder *b = s->b;
  for (uint32_t i = 1; i < s->count; i++)
    s->children[b->entries[i].parent]++;
  for (uint32_t i = 1; i < s->count; i++)
    s->first[i] = s->first[i - 1] + s->children[i - 1];
  /* number[] is not needed yet: it counts how much of each bucket is filled. */
  for (uint32_t i = 1; i < s->count; i++) {
    uint32_t parent = b->entries[i].parent;
    s->child_list[s->first[parent] + s->number[parent]++] = i;
  }
  for (uint32_t i = 0; i < s->count; i++)
    if (s->children[i] > 1)
      qsort_r(s->child_list + s->first[i], s->children[i], sizeof(uint32_t), compare_names, (void *)b);
}

static void number_entries(struct sealer *s)
{
  uint32_t filled = 1;
  s->order[0] = s->number[0] = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    uint32_t old = s->order[i];
    for (uint32_t k = 0; k < s->children[old]; k++) {
      uint32_t child = s->child_list[s->first[old] + k];
      s->number[child] = filled;
      s->order[filled++] = child;
    }
  }
}

static void number_backings(struct sealer *s)
{
  for (uint32_t i = 0; i < s->count; i++) {
    const struct cfs_tree_node *e = &s->b->entries[s->order[i]];
    if (e->type != CFS_FORMAT_FILE)
      continue;
    if (s->backing_number[e->backing] == CFS_FORMAT_NONE) {
      s->backing_number[e->backing] = s->backing_count;
      s->backing_order[s->backing_count++] = e->backing;
    }
    uint32_t *sharing = &s->sharing[e->backing][(e->flags & CFS_FORMAT_EXECUTABLE) != 0];
    /* A file whose identity is kept over generations shares it with nothing else. */
    if (*sharing == CFS_FORMAT_NONE && !(e->flags & CFS_FORMAT_KEPT))
      *sharing = i;
  }
}

static int measure(struct sealer *s)
{
  const cfs_tree_builder *b = s->b;
  for (uint32_t i = 0; i < s->count; i++) {
    const struct cfs_tree_node *e = &b->entries[i];
    s->strings_size += e->path_size - e->name + 1;
    if (e->type == CFS_FORMAT_LINK)
      s->strings_size += e->size + 1;
    if (e->type == CFS_FORMAT_BLOB)
      s->blobs_size += e->size;
  }
  for (uint32_t i = 0; i < s->backing_count; i++)
    s->strings_size += strlen(b->backings[s->backing_order[i]].path) + 1;
  if (s->strings_size >= CFS_FORMAT_SIZE || s->blobs_size >= CFS_FORMAT_SIZE)
    return -EFBIG;
  s->size = sizeof(struct cfs_format_header) + s->count * sizeof(struct cfs_format_entry) +
            s->backing_count * sizeof(struct cfs_format_backing) + b->warm_count * sizeof(uint32_t) + s->strings_size +
            s->blobs_size;
  return 0;
}

static void lay_out(struct sealer *s, char *map)
{
  struct cfs_format_header *h = (struct cfs_format_header *)map;
  *h = (struct cfs_format_header){
      .magic = CFS_FORMAT_MAGIC,
      .size = s->size,
      .entries = s->count,
      .backings = s->backing_count,
      .warm = (uint32_t)s->b->warm_count,
      .strings = (uint32_t)s->strings_size,
      .blobs = (uint32_t)s->blobs_size,
  };
  s->entries = (struct cfs_format_entry *)(h + 1);
  s->backings = (struct cfs_format_backing *)(s->entries + s->count);
  s->warm = (uint32_t *)(s->backings + s->backing_count);
  s->strings = (char *)(s->warm + s->b->warm_count);
  s->blobs = s->strings + s->strings_size;
  s->strings_size = s->blobs_size = 0; /* from now on: how much is filled */
}

static uint32_t put_string(struct sealer *s, const char *text, size_t size)
{
  uint32_t offset = (uint32_t)s->strings_size;
  memcpy(s->strings + offset, text, size + 1);
  s->strings_size += size + 1;
  return offset;
}

static uint32_t put_blob(struct sealer *s, const char *data, size_t size)
{
  uint32_t offset = (uint32_t)s->blobs_size;
  if (size)
    memcpy(s->blobs + offset, data, size);
  s->blobs_size += size;
  return offset;
}

static void fill_by_type(struct sealer *s, uint32_t i, const struct cfs_tree_node *e)
{
  struct cfs_format_entry *f = &s->entries[i];
  uint32_t old = s->order[i];
  switch (e->type) {
  case CFS_FORMAT_DIR:
    f->data = s->children[old] ? s->number[s->child_list[s->first[old]]] : 0;
    f->extra = s->children[old];
    f->links += 1;
    if (i)
      s->entries[f->parent].links++;
    break;
  case CFS_FORMAT_FILE:
    f->data = s->backing_number[e->backing];
    f->extra = e->flags & CFS_FORMAT_KEPT ? i : s->sharing[e->backing][(e->flags & CFS_FORMAT_EXECUTABLE) != 0];
    s->entries[f->extra].links += f->extra != i;
    break;
  case CFS_FORMAT_BLOB:
    f->data = put_blob(s, e->data, e->size);
    break;
  default:
    f->data = put_string(s, e->data, e->size);
  }
}

static void fill_entries(struct sealer *s)
{
  for (uint32_t i = 0; i < s->count; i++) {
    const struct cfs_tree_node *e = &s->b->entries[s->order[i]];
    size_t name_size = e->path_size - e->name;
    s->entries[i] = (struct cfs_format_entry){
        .size = e->size,
        .mtime_sec = e->mtime.tv_sec,
        .mtime_nsec = (uint32_t)e->mtime.tv_nsec,
        .name = put_string(s, e->path + e->name, name_size),
        .name_size = (uint16_t)name_size,
        .type = e->type,
        .flags = e->flags,
        .parent = s->number[e->parent],
        .links = 1,
    };
    fill_by_type(s, i, e);
  }
}

static void raise_mtime(struct cfs_format_entry *to, const struct cfs_format_entry *from)
{
  if (from->mtime_sec < to->mtime_sec || (from->mtime_sec == to->mtime_sec && from->mtime_nsec <= to->mtime_nsec))
    return;
  to->mtime_sec = from->mtime_sec;
  to->mtime_nsec = from->mtime_nsec;
}

/* A directory is as new as the newest thing in it; a link has no time of its own and takes its directory's. */
static void fill_directory_times(struct sealer *s)
{
  for (uint32_t i = s->count; i-- > 1;)
    raise_mtime(&s->entries[s->entries[i].parent], &s->entries[i]);
  for (uint32_t i = 1; i < s->count; i++)
    if (s->entries[i].type == CFS_FORMAT_LINK)
      raise_mtime(&s->entries[i], &s->entries[s->entries[i].parent]);
}

static void fill_backings(struct sealer *s)
{
  for (uint32_t i = 0; i < s->backing_count; i++) {
    const struct cfs_tree_backing *from = &s->b->backings[s->backing_order[i]];
    size_t size = strlen(from->path);
    s->backings[i] = (struct cfs_format_backing){
        .device = from->id.device,
        .inode = from->id.inode,
        .size = from->id.size,
        .mtime_sec = from->id.mtime_sec,
        .mtime_nsec = from->id.mtime_nsec,
        .path = put_string(s, from->path, size),
        .path_size = (uint32_t)size,
    };
  }
  for (size_t i = 0; i < s->b->warm_count; i++)
    s->warm[i] = s->number[s->b->warm[i]];
}

static int compare_inodes(const void *a, const void *b, void *data)
{
  const struct cfs_format_entry *entries = data;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (entries[x].ino != entries[y].ino)
    return entries[x].ino < entries[y].ino ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* Inode numbers come from paths, so that they are the same on every host and after every remount. 52
 * bits survive programs that keep them in a double; a collision takes the next free number. */
static void fill_inodes(struct sealer *s)
{
  uint32_t *sorted = s->child_list; /* no longer needed */
  for (uint32_t i = 0; i < s->count; i++) {
    const struct cfs_tree_node *e = &s->b->entries[s->order[i]];
    s->entries[i].ino = i ? cfs_tree_hash(e->path, e->path_size) & CFS_FORMAT_INO_MAX : 1;
    sorted[i] = i;
  }
  qsort_r(sorted, s->count, sizeof(*sorted), compare_inodes, s->entries);
  uint64_t last = 1;
  for (uint32_t i = 0; i < s->count; i++) {
    struct cfs_format_entry *e = &s->entries[sorted[i]];
    if (sorted[i] == 0)
      continue;
    if (e->ino <= last)
      e->ino = last + 1;
    last = e->ino;
  }
  for (uint32_t i = 0; i < s->count; i++) {
    struct cfs_format_entry *e = &s->entries[i];
    if (e->type != CFS_FORMAT_FILE || e->extra == i)
      continue;
    e->ino = s->entries[e->extra].ino;
    e->links = s->entries[e->extra].links;
  }
}

static int write_snapshot(struct sealer *s, int fd)
{
  if (ftruncate(fd, (off_t)s->size) < 0)
    return -errno;
  char *map = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED)
    return -errno;
  lay_out(s, map);
  fill_entries(s);
  fill_directory_times(s);
  fill_backings(s);
  fill_inodes(s);
  munmap(map, s->size); /* F_SEAL_WRITE is refused while a writable mapping exists */
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
    return -errno;
  return 0;
}

int cfs_tree_builder_seal(const cfs_tree_builder *b)
{
  struct sealer s = {.b = b, .count = (uint32_t)b->entry_count};
  cleanup_close int fd = -1;
  int r = sealer_allocate(&s);
  if (r == 0) {
    sort_children(&s);
    number_entries(&s);
    number_backings(&s);
    r = measure(&s);
  }
  if (r == 0) {
    fd = memfd_create("cudafs-tree", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = fd < 0 ? -errno : write_snapshot(&s, fd);
  }
  sealer_done(&s);
  return r < 0 ? r : TAKE_FD(fd);
}
