/* SPDX-License-Identifier: MIT */
#include "overlays/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

cfs_entry *cfs_entries_add(cfs_entries *e, enum cfs_entry_kind kind, char *path)
{
  if ((e->count & (e->count - 1)) == 0)
    e->items = cfs_grow(e->items, e->count ? e->count * 2 : 1, sizeof(*e->items));
  cfs_entry *entry = &e->items[e->count++];
  *entry = (cfs_entry){.kind = kind, .path = path};
  return entry;
}

void cfs_entries_file(cfs_entries *e, char *path, const cfs_file *file, const cfs_choice *choice)
{
  cfs_entry *entry = cfs_entries_add(e, CFS_ENTRY_FILE, path);
  entry->file = file;
  entry->choice = choice;
  entry->executable = file->executable;
}

void cfs_entries_link(cfs_entries *e, char *path, const char *target, const cfs_choice *choice, const char *why)
{
  cfs_entry *entry = cfs_entries_add(e, CFS_ENTRY_LINK, path);
  entry->link = cfs_strdup(target);
  entry->choice = choice;
  entry->why = why;
}

void cfs_entries_blob(cfs_entries *e, char *path, void *data, size_t size, const cfs_choice *choice, const char *why)
{
  cfs_entry *entry = cfs_entries_add(e, CFS_ENTRY_BLOB, path);
  entry->data = data;
  entry->size = size;
  entry->choice = choice;
  entry->why = why;
}

void cfs_entry_done(cfs_entry *entry)
{
  free(entry->path);
  free(entry->link);
  free(entry->data);
}

struct placed {
  cfs_entry entry;
  size_t order;
};

static int compare_placed(const void *a, const void *b)
{
  const struct placed *p = a, *q = b;
  int c = strcmp(p->entry.path, q->entry.path);
  return c ? c : p->order < q->order ? -1 : 1;
}

void cfs_entries_settle(cfs_entries *e)
{
  if (!e->count)
    return;
  cleanup_free struct placed *all = cfs_zalloc(e->count * sizeof(*all));
  for (size_t i = 0; i < e->count; i++)
    all[i] = (struct placed){e->items[i], i};
  qsort(all, e->count, sizeof(*all), compare_placed);
  size_t kept = 0;
  for (size_t i = 0; i < e->count; i++) {
    if (kept && strcmp(e->items[kept - 1].path, all[i].entry.path) == 0)
      cfs_entry_done(&all[i].entry);
    else
      e->items[kept++] = all[i].entry;
  }
  e->count = kept;
}

static int compare_path(const void *key, const void *entry)
{
  return strcmp(key, ((const cfs_entry *)entry)->path);
}

const cfs_entry *cfs_entries_find(const cfs_entries *e, const char *path)
{
  return e->count ? bsearch(path, e->items, e->count, sizeof(*e->items), compare_path) : NULL;
}
