/* SPDX-License-Identifier: MIT */
#include "fs/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fs/format.h"
#include "fs/tree_private.h"

#define SLOT_EMPTY UINT32_MAX

static uint64_t hash_bytes(const char *s, size_t size)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; i++)
    h = (h ^ (uint8_t)s[i]) * UINT64_C(0x100000001b3);
  /* FNV mixes the last bytes badly into the high bits, which the inode numbers use. */
  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  return h ^ (h >> 32);
}

uint64_t cfs_tree_hash(const char *s, size_t size)
{
  return hash_bytes(s, size);
}

static const char *index_key(const cfs_tree_index *x, const cfs_tree_builder *b, uint32_t item, size_t *ret_size)
{
  if (!x->of_backings) {
    *ret_size = b->entries[item].path_size;
    return b->entries[item].path;
  }
  *ret_size = strlen(b->backings[item].path);
  return b->backings[item].path;
}

/* Where the key is, or the empty slot where it belongs. */
static uint32_t *index_slot(const cfs_tree_index *x, const cfs_tree_builder *b, const char *key, size_t size)
{
  for (size_t i = hash_bytes(key, size) & (x->room - 1);; i = (i + 1) & (x->room - 1)) {
    if (x->slots[i] == SLOT_EMPTY)
      return &x->slots[i];
    size_t n;
    const char *k = index_key(x, b, x->slots[i], &n);
    if (n == size && memcmp(k, key, size) == 0)
      return &x->slots[i];
  }
}

static int index_reserve(cfs_tree_index *x, const cfs_tree_builder *b, size_t count)
{
  if (x->room && count * 2 <= x->room)
    return 0;
  cfs_tree_index wider = {.room = x->room ? x->room * 2 : 64, .of_backings = x->of_backings};
  wider.slots = malloc(wider.room * sizeof(*wider.slots));
  if (!wider.slots)
    return -ENOMEM;
  memset(wider.slots, 0xff, wider.room * sizeof(*wider.slots));
  for (size_t i = 0; i < x->room; i++) {
    if (x->slots[i] == SLOT_EMPTY)
      continue;
    size_t n;
    const char *k = index_key(x, b, x->slots[i], &n);
    *index_slot(&wider, b, k, n) = x->slots[i];
  }
  free(x->slots);
  *x = wider;
  return 0;
}

static int array_reserve(void *array_pointer, size_t *room, size_t count, size_t size)
{
  void **array = array_pointer;
  if (count <= *room)
    return 0;
  size_t wider = *room ? *room * 2 : 64;
  void *p = reallocarray(*array, wider, size);
  if (!p)
    return -ENOMEM;
  *array = p;
  *room = wider;
  return 0;
}

cfs_tree_builder *cfs_tree_builder_new(void)
{
  cfs_tree_builder *b = calloc(1, sizeof(*b));
  if (!b)
    return NULL;
  b->backing_paths.of_backings = true;
  if (array_reserve(&b->entries, &b->entry_room, 1, sizeof(*b->entries)) < 0 || !(b->entries[0].path = strdup("")) ||
      index_reserve(&b->paths, b, 1) < 0) {
    cfs_tree_builder_free(b);
    return NULL;
  }
  char *path = b->entries[0].path;
  b->entries[0] = (struct cfs_tree_node){.path = path, .type = CFS_FORMAT_DIR};
  b->entry_count = 1;
  return b;
}

void cfs_tree_builder_free(cfs_tree_builder *b)
{
  if (!b)
    return;
  for (size_t i = 0; i < b->entry_count; i++) {
    free(b->entries[i].path);
    free(b->entries[i].data);
  }
  for (size_t i = 0; i < b->backing_count; i++)
    free(b->backings[i].path);
  free(b->entries);
  free(b->backings);
  free(b->paths.slots);
  free(b->backing_paths.slots);
  free(b->warm);
  free(b);
}

static int check_path(const char *path, size_t size)
{
  if (!size || size >= PATH_MAX)
    return size ? -ENAMETOOLONG : -EINVAL;
  for (size_t start = 0; start <= size;) {
    size_t n = strcspn(path + start, "/");
    const char *word = path + start;
    if (!n || (n == 1 && word[0] == '.') || (n == 2 && word[0] == '.' && word[1] == '.'))
      return -EINVAL;
    if (n > NAME_MAX)
      return -ENAMETOOLONG;
    start += n + 1;
  }
  return 0;
}

static uint32_t find_entry(const cfs_tree_builder *b, const char *path, size_t size)
{
  if (!size)
    return 0;
  return *index_slot(&b->paths, b, path, size);
}

/* A new entry; its parent must exist. */
static int append_entry(cfs_tree_builder *b, const char *path, size_t size, uint32_t parent, uint8_t type)
{
  if (b->entry_count >= CFS_FORMAT_NONE - 1)
    return -ENOSPC;
  if (array_reserve(&b->entries, &b->entry_room, b->entry_count + 1, sizeof(*b->entries)) < 0 ||
      index_reserve(&b->paths, b, b->entry_count + 1) < 0)
    return -ENOMEM;
  char *copy = strndup(path, size);
  if (!copy)
    return -ENOMEM;
  const char *slash = memrchr(copy, '/', size);
  uint32_t index = (uint32_t)b->entry_count++;
  b->entries[index] = (struct cfs_tree_node){
      .path = copy,
      .path_size = (uint32_t)size,
      .name = slash ? (uint32_t)(slash + 1 - copy) : 0,
      .parent = parent,
      .type = type,
  };
  *index_slot(&b->paths, b, path, size) = index;
  return 0;
}

/* The directory that holds path, with every missing one made. */
static int ensure_parents(cfs_tree_builder *b, const char *path, size_t size, uint32_t *ret_parent)
{
  uint32_t parent = 0;
  for (size_t i = 0; i < size; i++) {
    if (path[i] != '/')
      continue;
    uint32_t found = find_entry(b, path, i);
    if (found == SLOT_EMPTY) {
      int r = append_entry(b, path, i, parent, CFS_FORMAT_DIR);
      if (r < 0)
        return r;
      found = (uint32_t)b->entry_count - 1;
    }
    if (b->entries[found].type != CFS_FORMAT_DIR)
      return -ENOTDIR;
    parent = found;
  }
  *ret_parent = parent;
  return 0;
}

/* Finds or makes the entry. Returns 1 when it was made, 0 when it was there already. */
static int obtain_entry(cfs_tree_builder *b, const char *path, uint8_t type, uint32_t *ret_index)
{
  size_t size = strlen(path);
  uint32_t parent;
  int r = check_path(path, size);
  if (r < 0)
    return r;
  *ret_index = find_entry(b, path, size);
  if (*ret_index != SLOT_EMPTY)
    return b->entries[*ret_index].type == type ? 0 : -EEXIST;
  r = ensure_parents(b, path, size, &parent);
  if (r < 0)
    return r;
  r = append_entry(b, path, size, parent, type);
  if (r < 0)
    return r;
  *ret_index = (uint32_t)b->entry_count - 1;
  return 1;
}

int cfs_tree_builder_add_dir(cfs_tree_builder *b, const char *path)
{
  uint32_t index;
  int r = obtain_entry(b, path, CFS_FORMAT_DIR, &index);
  return r < 0 ? r : 0;
}

static bool same_id(const struct cfs_backing_id *a, const struct cfs_backing_id *b)
{
  return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_sec == b->mtime_sec &&
         a->mtime_nsec == b->mtime_nsec;
}

static int obtain_backing(cfs_tree_builder *b, const char *path, const struct cfs_backing_id *id, uint32_t *ret_index)
{
  if (path[0] != '/' || strlen(path) >= PATH_MAX || id->size > INT64_MAX || id->mtime_nsec > 999999999)
    return -EINVAL;
  if (array_reserve(&b->backings, &b->backing_room, b->backing_count + 1, sizeof(*b->backings)) < 0 ||
      index_reserve(&b->backing_paths, b, b->backing_count + 1) < 0)
    return -ENOMEM;
  uint32_t *slot = index_slot(&b->backing_paths, b, path, strlen(path));
  if (*slot != SLOT_EMPTY) {
    *ret_index = *slot;
    return same_id(&b->backings[*slot].id, id) ? 0 : -EEXIST;
  }
  char *copy = strdup(path);
  if (!copy)
    return -ENOMEM;
  *ret_index = *slot = (uint32_t)b->backing_count++;
  b->backings[*slot] = (struct cfs_tree_backing){.path = copy, .id = *id};
  return 0;
}

int cfs_tree_builder_add_file(cfs_tree_builder *b, const char *path, const char *backing,
                              const struct cfs_backing_id *id, bool executable)
{
  uint32_t index, file;
  uint8_t flags = executable ? CFS_FORMAT_EXECUTABLE : 0;
  int r = obtain_backing(b, backing, id, &file);
  if (r < 0)
    return r;
  r = obtain_entry(b, path, CFS_FORMAT_FILE, &index);
  if (r < 0)
    return r;
  struct cfs_tree_node *e = &b->entries[index];
  if (r == 0)
    return e->backing == file && (e->flags & CFS_FORMAT_EXECUTABLE) == flags ? 0 : -EEXIST;
  e->backing = file;
  e->flags = flags;
  e->size = id->size;
  e->mtime = (struct timespec){.tv_sec = id->mtime_sec, .tv_nsec = id->mtime_nsec};
  return 0;
}

/* Bytes of an entry that the builder holds: a blob's content, or a link's target. */
static int set_data(struct cfs_tree_node *e, const void *data, size_t size)
{
  e->data = malloc(size + 1);
  if (!e->data)
    return -ENOMEM;
  if (size)
    memcpy(e->data, data, size);
  e->data[size] = '\0';
  e->size = size;
  return 0;
}

static bool same_data(const struct cfs_tree_node *e, const void *data, size_t size)
{
  return e->data && e->size == size && (!size || memcmp(e->data, data, size) == 0);
}

int cfs_tree_builder_add_blob(cfs_tree_builder *b, const char *path, const void *data, size_t size, bool executable,
                              struct timespec mtime)
{
  uint32_t index;
  uint8_t flags = executable ? CFS_FORMAT_EXECUTABLE : 0;
  if (size > CFS_FORMAT_SIZE / 2 || mtime.tv_nsec < 0 || mtime.tv_nsec > 999999999)
    return -EINVAL;
  int r = obtain_entry(b, path, CFS_FORMAT_BLOB, &index);
  if (r < 0)
    return r;
  struct cfs_tree_node *e = &b->entries[index];
  if (r == 0)
    return same_data(e, data, size) && (e->flags & CFS_FORMAT_EXECUTABLE) == flags ? 0 : -EEXIST;
  e->flags = flags;
  e->mtime = mtime;
  return set_data(e, data, size);
}

int cfs_tree_builder_add_link(cfs_tree_builder *b, const char *path, const char *target)
{
  uint32_t index;
  size_t size = strlen(target);
  if (!size || size >= PATH_MAX)
    return size ? -ENAMETOOLONG : -EINVAL;
  int r = obtain_entry(b, path, CFS_FORMAT_LINK, &index);
  if (r < 0)
    return r;
  struct cfs_tree_node *e = &b->entries[index];
  if (r == 0)
    return same_data(e, target, size) ? 0 : -EEXIST;
  return set_data(e, target, size);
}

static int existing_entry(const cfs_tree_builder *b, const char *path, struct cfs_tree_node **ret)
{
  size_t size = strlen(path);
  uint32_t index = size ? find_entry(b, path, size) : SLOT_EMPTY;
  if (index == SLOT_EMPTY)
    return -ENOENT;
  *ret = &b->entries[index];
  return 0;
}

int cfs_tree_builder_hide(cfs_tree_builder *b, const char *path)
{
  struct cfs_tree_node *e;
  int r = existing_entry(b, path, &e);
  if (r < 0)
    return r;
  e->flags |= CFS_FORMAT_HIDDEN;
  return 0;
}

int cfs_tree_builder_keep_identity(cfs_tree_builder *b, const char *path)
{
  struct cfs_tree_node *e;
  int r = existing_entry(b, path, &e);
  if (r < 0)
    return r;
  if (e->type != CFS_FORMAT_BLOB && e->type != CFS_FORMAT_FILE)
    return -EINVAL;
  e->flags |= CFS_FORMAT_KEPT;
  return 0;
}

int cfs_tree_builder_warm(cfs_tree_builder *b, const char *path)
{
  struct cfs_tree_node *e;
  int r = existing_entry(b, path, &e);
  if (r < 0)
    return r;
  if (e->type != CFS_FORMAT_FILE)
    return -EINVAL;
  if (array_reserve(&b->warm, &b->warm_room, b->warm_count + 1, sizeof(*b->warm)) < 0)
    return -ENOMEM;
  b->warm[b->warm_count++] = (uint32_t)(e - b->entries);
  return 0;
}
