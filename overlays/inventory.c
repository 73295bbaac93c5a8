/* SPDX-License-Identifier: MIT */
#include "overlays/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/identify.h"

cfs_inventory *cfs_inventory_new(const char *id, enum cfs_source_kind kind, const char *path)
{
  cfs_inventory *inv = cfs_zalloc(sizeof(*inv));
  inv->id = cfs_strdup(id);
  inv->kind = kind;
  inv->path = cfs_strdup(path);
  return inv;
}

static void part_done(cfs_part *part)
{
  for (size_t i = 0; i < part->n_files; i++) {
    free(part->files[i].face);
    free(part->files[i].path);
    free(part->files[i].link);
    free(part->files[i].sha256);
  }
  free(part->files);
  free(part->version);
  free(part->content);
  free(part->release);
  free(part->package);
  free(part->package_version);
}

void cfs_inventory_free(cfs_inventory *inv)
{
  if (!inv)
    return;
  for (size_t i = 0; i < inv->n_parts; i++)
    part_done(&inv->parts[i]);
  free(inv->parts);
  free(inv->id);
  free(inv->path);
  free(inv->installer);
  free(inv->python);
  free(inv->torch_release);
  cfs_problems_done(&inv->problems);
  free(inv);
}

cfs_part *cfs_inventory_add_part(cfs_inventory *inv, const cfs_component_info *info)
{
  inv->parts = cfs_grow(inv->parts, inv->n_parts + 1, sizeof(*inv->parts));
  cfs_part *part = &inv->parts[inv->n_parts++];
  *part = (cfs_part){.info = info};
  return part;
}

cfs_part *cfs_inventory_loose_part(cfs_inventory *inv, const cfs_component_info *info)
{
  for (size_t i = 0; i < inv->n_parts; i++)
    if (inv->parts[i].info == info && !inv->parts[i].package)
      return &inv->parts[i];
  return cfs_inventory_add_part(inv, info);
}

int cfs_part_add_file(cfs_part *part, char *face, char *path)
{
  cleanup_free char *owned_face = face, *owned_path = path;
  struct stat st;
  if (stat(path, &st) < 0)
    return -errno;
  if (!S_ISREG(st.st_mode))
    return -EINVAL;
  /* Everybody reads what root mounts: a file that its owner keeps from others, perhaps at the end of a
   * link that somebody else may set, must not be shown wider than it is. */
  if (geteuid() == 0 ? !(st.st_mode & S_IROTH) : access(path, R_OK) < 0)
    return -EACCES;
  if ((part->n_files & (part->n_files - 1)) == 0)
    part->files = cfs_grow(part->files, part->n_files ? part->n_files * 2 : 1, sizeof(*part->files));
  part->files[part->n_files++] = (cfs_file){
      .face = TAKE_PTR(owned_face),
      .path = TAKE_PTR(owned_path),
      .id = {.device = st.st_dev,
             .inode = st.st_ino,
             .size = (uint64_t)st.st_size,
             .mtime_sec = st.st_mtim.tv_sec,
             .mtime_nsec = (uint32_t)st.st_mtim.tv_nsec},
      .executable = (st.st_mode & 0111) != 0,
  };
  return 0;
}

static int compare_files(const void *a, const void *b)
{
  return strcmp(((const cfs_file *)a)->face, ((const cfs_file *)b)->face);
}

static int compare_face(const void *key, const void *file)
{
  return strcmp(key, ((const cfs_file *)file)->face);
}

const cfs_file *cfs_part_file(const cfs_part *part, const char *face)
{
  if (!part->n_files)
    return NULL;
  return bsearch(face, part->files, part->n_files, sizeof(*part->files), compare_face);
}

static int compare_parts(const void *a, const void *b)
{
  const cfs_part *p = a, *q = b;
  int c = strcmp(p->info->name, q->info->name);
  return c ? c : strcmp(p->package_version ? p->package_version : "", q->package_version ? q->package_version : "");
}

void cfs_inventory_finish(cfs_inventory *inv, const cfs_tables *tables)
{
  size_t kept = 0;
  for (size_t i = 0; i < inv->n_parts; i++) {
    if (inv->parts[i].n_files)
      inv->parts[kept++] = inv->parts[i];
    else
      part_done(&inv->parts[i]);
  }
  inv->n_parts = kept;
  for (size_t i = 0; i < inv->n_parts; i++) {
    cfs_part *part = &inv->parts[i];
    qsort(part->files, part->n_files, sizeof(*part->files), compare_files);
    cfs_identify_part(part, tables, &inv->problems);
  }
  if (inv->n_parts > 1)
    qsort(inv->parts, inv->n_parts, sizeof(*inv->parts), compare_parts);
}
