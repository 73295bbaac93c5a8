/* SPDX-License-Identifier: MIT */
#include "fs/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SERIAL_MAX ((1u << 28) - 1) /* keeps FILE and KEPT apart from what is shifted below them */

int cfs_registry_init(cfs_registry *r, struct cfs_shared *shared, uint32_t pin_limit)
{
  *r = (cfs_registry){.shared = shared};
  return cfs_pins_init(&r->pins, pin_limit);
}

static void drop_generation(struct cfs_generation *g)
{
  cfs_snapshot_close(g->snapshot);
  free(g->file_of);
  *g = (struct cfs_generation){0};
}

void cfs_registry_done(cfs_registry *r)
{
  for (uint32_t i = 0; i < CFS_GENERATIONS_MAX; i++)
    if (r->generations[i].number)
      drop_generation(&r->generations[i]);
  cfs_pins_done(&r->pins);
  free(r->files);
  *r = (cfs_registry){0};
}

/* Two entries are one file to the kernel if nothing that it has cached could differ. */
struct file_key {
  struct cfs_backing_id id;
  uint64_t ino;
  uint32_t executable, file;
};

static struct file_key key_of(const cfs_snapshot *s, uint32_t entry, uint32_t file)
{
  struct stat st;
  cfs_snapshot_stat(s, entry, &st);
  return (struct file_key){
      .id = cfs_snapshot_backing_id(s, cfs_snapshot_backing(s, entry)),
      .ino = st.st_ino,
      .executable = (st.st_mode & 0111) != 0,
      .file = file,
  };
}

#define COMPARE(a, b)            \
  do {                           \
    if ((a) != (b))              \
      return (a) < (b) ? -1 : 1; \
  } while (0)

static int compare_keys(const void *pa, const void *pb)
{
  const struct file_key *a = pa, *b = pb;
  COMPARE(a->ino, b->ino);
  COMPARE(a->id.device, b->id.device);
  COMPARE(a->id.inode, b->id.inode);
  COMPARE(a->id.size, b->id.size);
  COMPARE(a->id.mtime_sec, b->id.mtime_sec);
  COMPARE(a->id.mtime_nsec, b->id.mtime_nsec);
  COMPARE(a->executable, b->executable);
  return 0;
}

static int known_files(const cfs_registry *r, struct file_key **ret_keys, uint32_t *ret_count)
{
  uint32_t n = 0;
  struct file_key *keys = calloc(r->file_count + 1u, sizeof(*keys));
  if (!keys)
    return -ENOMEM;
  for (uint32_t i = 0; i < r->file_count; i++)
    if (r->files[i].serial)
      keys[n++] = key_of(r->generations[r->files[i].generation].snapshot, r->files[i].entry, i);
  if (n)
    qsort(keys, n, sizeof(*keys), compare_keys);
  *ret_keys = keys;
  *ret_count = n;
  return 0;
}

static int reserve_files(cfs_registry *r, uint32_t more)
{
  uint64_t need = (uint64_t)r->file_count + more;
  if (need > CFS_FILES_MAX)
    return -ENOSPC;
  if (need <= r->file_room)
    return 0;
  struct cfs_file *wider = reallocarray(r->files, need, sizeof(*wider));
  if (!wider)
    return -ENOMEM;
  r->files = wider;
  r->file_room = (uint32_t)need;
  return 0;
}

static uint32_t new_file(cfs_registry *r, uint32_t *scan)
{
  uint32_t file = r->file_count;
  for (; r->file_free && *scan < r->file_count; ++*scan)
    if (!r->files[*scan].serial) {
      file = *scan;
      r->file_free--;
      break;
    }
  if (file == r->file_count)
    r->file_count++;
  r->serial = r->serial % SERIAL_MAX + 1;
  r->files[file] = (struct cfs_file){.serial = r->serial, .pin = CFS_PIN_NONE};
  atomic_store(&r->shared->files[file].lookups, 0);
  atomic_store(&r->shared->files[file].drifted, 0);
  return file;
}

static void pin_file(cfs_registry *r, uint32_t file)
{
  struct cfs_backing_id id = cfs_registry_backing_id(r, file);
  int status = cfs_pins_take(&r->pins, cfs_registry_path(r, file), &id, &r->files[file].pin);
  /* Also back to 0: a file that a later generation can pin again has drifted no longer. */
  atomic_store(&r->shared->files[file].drifted, status < 0);
}

static void attach_files(cfs_registry *r, uint32_t index, const struct file_key *known, uint32_t known_count)
{
  struct cfs_generation *g = &r->generations[index];
  uint32_t scan = 0;
  for (uint32_t i = 0; i < cfs_snapshot_count(g->snapshot); i++) {
    if (cfs_snapshot_kind(g->snapshot, i) != CFS_ENTRY_FILE)
      continue;
    struct file_key key = key_of(g->snapshot, i, 0);
    uint32_t *slot = &g->file_of[cfs_snapshot_backing(g->snapshot, i) * 2 + key.executable];
    if (*slot != CFS_NO_FILE)
      continue;
    const struct file_key *same = known_count ? bsearch(&key, known, known_count, sizeof(key), compare_keys) : NULL;
    *slot = same ? same->file : new_file(r, &scan);
    r->files[*slot].generation = index;
    r->files[*slot].entry = i;
    /* A file that was short of a descriptor, or broken, gets another chance. */
    if (r->files[*slot].pin == CFS_PIN_NONE)
      pin_file(r, *slot);
  }
}

/* The next number whose place is free. Numbers skip ahead only when 255 older trees are in use. */
static uint32_t next_number(const cfs_registry *r)
{
  uint32_t number = r->generations[r->current].number;
  for (uint32_t i = 1; i <= CFS_GENERATIONS_MAX; i++)
    if (!r->generations[(number + i) % CFS_GENERATIONS_MAX].number)
      return number + i;
  return 0;
}

int cfs_registry_publish(cfs_registry *r, cfs_snapshot *snapshot)
{
  cleanup_free struct file_key *known = NULL;
  cleanup_free uint32_t *file_of = NULL;
  uint32_t known_count, backings = cfs_snapshot_backing_count(snapshot);
  uint32_t number = next_number(r);
  if (!number || number > SERIAL_MAX || backings > CFS_FILES_MAX / 2)
    return -ENOSPC;
  file_of = malloc((size_t)backings * 2 * sizeof(*file_of) + 1);
  if (!file_of)
    return -ENOMEM;
  memset(file_of, 0xff, (size_t)backings * 2 * sizeof(*file_of));
  int status = reserve_files(r, backings * 2);
  if (status == 0)
    status = known_files(r, &known, &known_count);
  if (status < 0)
    return status;
  uint32_t index = number % CFS_GENERATIONS_MAX;
  r->generations[index] = (struct cfs_generation){.number = number, .snapshot = snapshot, .file_of = TAKE_PTR(file_of)};
  atomic_store(&r->shared->generation_lookups[index], 0);
  attach_files(r, index, known, known_count);
  r->current = index;
  return 0;
}

/* Whatever a generation that is in use names must stay resolvable, however few lookups it has itself. */
static void mark_files(const struct cfs_generation *g, bool *needed)
{
  for (uint32_t i = 0; i < cfs_snapshot_backing_count(g->snapshot) * 2; i++)
    if (g->file_of[i] != CFS_NO_FILE)
      needed[g->file_of[i]] = true;
}

static bool generation_used(const cfs_registry *r, uint32_t index)
{
  return r->generations[index].number &&
         (index == r->current || atomic_load(&r->shared->generation_lookups[index]) > 0);
}

void cfs_registry_sweep(cfs_registry *r)
{
  bool keep[CFS_GENERATIONS_MAX] = {false};
  cleanup_free bool *needed = calloc(r->file_count + 1u, sizeof(*needed));
  if (!needed)
    return;
  for (uint32_t i = 0; i < CFS_GENERATIONS_MAX; i++) {
    keep[i] = generation_used(r, i);
    if (keep[i])
      mark_files(&r->generations[i], needed);
  }
  for (uint32_t i = 0; i < r->file_count; i++) {
    struct cfs_file *f = &r->files[i];
    if (!f->serial)
      continue;
    if (needed[i] || atomic_load(&r->shared->files[i].lookups) > 0) {
      keep[f->generation] = true;
      continue;
    }
    cfs_pins_release(&r->pins, f->pin);
    *f = (struct cfs_file){0};
    r->file_free++;
  }
  for (uint32_t i = 0; i < CFS_GENERATIONS_MAX; i++)
    if (r->generations[i].number && !keep[i])
      drop_generation(&r->generations[i]);
}

uint32_t cfs_registry_generation(const cfs_registry *r)
{
  return r->generations[r->current].number;
}

uint32_t cfs_registry_held(const cfs_registry *r)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < CFS_GENERATIONS_MAX; i++)
    n += r->generations[i].number != 0;
  return n;
}

static void node_at(const cfs_registry *r, uint32_t index, uint32_t entry, struct cfs_node *ret)
{
  *ret = (struct cfs_node){.snapshot = r->generations[index].snapshot, .generation = index, .entry = entry};
}

static int resolve_file(const cfs_registry *r, uint64_t id, struct cfs_node *ret)
{
  uint32_t file = (uint32_t)id;
  if (file >= r->file_count || r->files[file].serial != ((id >> 32) & SERIAL_MAX))
    return -ESTALE;
  node_at(r, r->files[file].generation, r->files[file].entry, ret);
  return 0;
}

static bool find_kept(const cfs_registry *r, uint32_t index, uint64_t ino, struct cfs_node *ret)
{
  const cfs_snapshot *s = r->generations[index].snapshot;
  if (!s)
    return false;
  for (uint32_t i = 0; i < cfs_snapshot_count(s); i++) {
    struct stat st;
    if (!cfs_snapshot_kept(s, i))
      continue;
    cfs_snapshot_stat(s, i, &st);
    if (st.st_ino != ino)
      continue;
    node_at(r, index, i, ret);
    return true;
  }
  return false;
}

static int resolve_kept(const cfs_registry *r, uint64_t ino, struct cfs_node *ret)
{
  if (find_kept(r, r->current, ino, ret))
    return 0;
  for (uint32_t i = 0; i < CFS_GENERATIONS_MAX; i++)
    if (find_kept(r, i, ino, ret))
      return 0;
  return -ESTALE;
}

int cfs_registry_resolve(const cfs_registry *r, uint64_t id, struct cfs_node *ret)
{
  if (id == CFS_NODE_ROOT) {
    node_at(r, r->current, CFS_ENTRY_ROOT, ret);
    return 0;
  }
  if (id & CFS_NODE_KEPT)
    return resolve_kept(r, id & ~CFS_NODE_KEPT, ret);
  if (id & CFS_NODE_FILE)
    return resolve_file(r, id, ret);
  uint32_t number = (uint32_t)(id >> 32), entry = (uint32_t)id - 1;
  const struct cfs_generation *g = &r->generations[number % CFS_GENERATIONS_MAX];
  if (!number || g->number != number || entry >= cfs_snapshot_count(g->snapshot))
    return -ESTALE;
  node_at(r, number % CFS_GENERATIONS_MAX, entry, ret);
  return 0;
}

uint32_t cfs_registry_file(const cfs_registry *r, const struct cfs_node *node)
{
  struct stat st;
  cfs_snapshot_stat(node->snapshot, node->entry, &st);
  uint32_t backing = cfs_snapshot_backing(node->snapshot, node->entry);
  return r->generations[node->generation].file_of[backing * 2 + ((st.st_mode & 0111) != 0)];
}

uint64_t cfs_registry_id(const cfs_registry *r, uint32_t generation, uint32_t entry)
{
  const struct cfs_generation *g = &r->generations[generation];
  struct cfs_node node = {.snapshot = g->snapshot, .generation = generation, .entry = entry};
  if (cfs_snapshot_kept(g->snapshot, entry)) {
    struct stat st;
    cfs_snapshot_stat(g->snapshot, entry, &st);
    return CFS_NODE_KEPT | st.st_ino;
  }
  if (cfs_snapshot_kind(g->snapshot, entry) == CFS_ENTRY_FILE) {
    uint32_t file = cfs_registry_file(r, &node);
    return CFS_NODE_FILE | (uint64_t)r->files[file].serial << 32 | file;
  }
  return entry == CFS_ENTRY_ROOT && generation == r->current ? CFS_NODE_ROOT : (uint64_t)g->number << 32 | (entry + 1u);
}

void cfs_registry_count(const cfs_registry *r, uint64_t id, int64_t change)
{
  if (id == CFS_NODE_ROOT || (id & CFS_NODE_KEPT))
    return;
  if (id & CFS_NODE_FILE) {
    uint32_t file = (uint32_t)id;
    if (file < r->file_count && r->files[file].serial == ((id >> 32) & SERIAL_MAX))
      atomic_fetch_add(&r->shared->files[file].lookups, (int32_t)change);
    return;
  }
  uint32_t index = (uint32_t)(id >> 32) % CFS_GENERATIONS_MAX;
  if (r->generations[index].number == (uint32_t)(id >> 32))
    atomic_fetch_add(&r->shared->generation_lookups[index], change);
}

int cfs_registry_pin(const cfs_registry *r, uint32_t file)
{
  uint32_t pin = r->files[file].pin;
  return pin == CFS_PIN_NONE ? -1 : r->pins.pins[pin].fd;
}

const char *cfs_registry_path(const cfs_registry *r, uint32_t file)
{
  const cfs_snapshot *s = r->generations[r->files[file].generation].snapshot;
  return cfs_snapshot_backing_path(s, cfs_snapshot_backing(s, r->files[file].entry));
}

struct cfs_backing_id cfs_registry_backing_id(const cfs_registry *r, uint32_t file)
{
  const cfs_snapshot *s = r->generations[r->files[file].generation].snapshot;
  return cfs_snapshot_backing_id(s, cfs_snapshot_backing(s, r->files[file].entry));
}
