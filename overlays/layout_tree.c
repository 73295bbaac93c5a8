/* SPDX-License-Identifier: MIT */
/* The last step before serving: a sealed plan and a mount point become the tree that fs/ knows. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "fs/tree.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/layout.h"
#include "overlays/routes.h"

#ifndef CUDAFS_DISPATCH_PATH
#define CUDAFS_DISPATCH_PATH "/usr/libexec/cudafs/dispatch"
#endif

struct planting {
  const cfs_plan *plan;
  const cfs_tables *tables;
  const char *mountpoint;
  const void *dispatcher;
  size_t dispatcher_size;
  cfs_tree_builder *builder;
  struct timespec made; /* the time of everything synthesised */
};

/* The newest of the source files, so that the same sources give the same times on every mount, with
 * nanoseconds of the digest, so that another composition of old files is told apart. */
static struct timespec composition_time(const cfs_plan *plan)
{
  struct timespec t = {0};
  for (size_t i = 0; i < plan->n_entries; i++) {
    const cfs_entry *e = &plan->entries[i];
    if (e->kind == CFS_ENTRY_FILE && e->file->id.mtime_sec > t.tv_sec)
      t.tv_sec = e->file->id.mtime_sec;
  }
  char head[9] = {0};
  memcpy(head, plan->digest, 8);
  t.tv_nsec = (long)(strtoul(head, NULL, 16) % 1000000000ul);
  return t;
}

static int plant_dispatcher(struct planting *p, const cfs_entry *e)
{
  cleanup_free char *text = cfs_routes_text(p->plan, p->tables, e->link, p->mountpoint);
  cleanup_free void *image = NULL;
  size_t size = 0;
  cfs_routes_image(p->dispatcher, p->dispatcher_size, p->plan->digest, text, &image, &size);
  return cfs_tree_builder_add_blob(p->builder, e->path, image, size, true, p->made);
}

static int plant(struct planting *p, const cfs_entry *e)
{
  switch (e->kind) {
  case CFS_ENTRY_FILE:
    return cfs_tree_builder_add_file(p->builder, e->path, e->file->path, &e->file->id, e->executable);
  case CFS_ENTRY_LINK:
    return cfs_tree_builder_add_link(p->builder, e->path, e->link);
  case CFS_ENTRY_BLOB:
    return cfs_tree_builder_add_blob(p->builder, e->path, e->data, e->size, e->executable, p->made);
  case CFS_ENTRY_DISPATCHER:
    return plant_dispatcher(p, e);
  case CFS_ENTRY_DIR:
    return cfs_tree_builder_add_dir(p->builder, e->path);
  }
  return -EINVAL;
}

static int plant_text(struct planting *p, const char *path, const char *text)
{
  return cfs_tree_builder_add_blob(p->builder, path, text, strlen(text), false, p->made);
}

static int plant_dot_files(struct planting *p)
{
  cleanup_free char *id = cfs_format("%s\n", p->plan->digest), *env = cfs_layout_env(p->mountpoint);
  json_t *json = cfs_plan_to_json(p->plan, true);
  char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
  json_decref(json);
  int r = plant_text(p, CFS_ID_PATH, id);
  if (r == 0)
    r = plant_text(p, CFS_DOT_DIR "/env", env);
  if (r == 0)
    r = plant_text(p, CFS_DOT_DIR "/plan.json", text);
  free(text);
  if (r == 0)
    r = cfs_tree_builder_hide(p->builder, CFS_DOT_DIR);
  if (r == 0)
    r = cfs_tree_builder_keep_identity(p->builder, CFS_GATE_PATH);
  return r < 0 ? r : cfs_tree_builder_keep_identity(p->builder, CFS_LEASE_PATH);
}

/* What the first compile reads whole, in the order in which it does. */
static void ask_for_warmth(struct planting *p)
{
  static const char *const first[] = {"bin/nvcc",  "bin/cudafe++",  "nvvm/bin/cicc",
                                      "bin/ptxas", "bin/fatbinary", "nvvm/libdevice/libdevice.10.bc"};
  for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
    cleanup_free char *path = cfs_format(CFS_VIEWS_PATH "/%s/%s", p->plan->release, first[i]);
    /* A face that only assembles has few of these; warmth is never worth an error. */
    (void)cfs_tree_builder_warm(p->builder, path);
  }
}

int cfs_layout_tree(const cfs_plan *plan, const cfs_tables *tables, const char *mountpoint, const void *dispatcher,
                    size_t dispatcher_size, cfs_error **err)
{
  if (strpbrk(mountpoint, "\r\n")) /* the dispatchers' trailer is lines */
    return cfs_error_set(err, CFS_INVALID, EINVAL, mountpoint, "mount at a folder of another name",
                         "its name holds a line break");
  struct planting p = {plan, tables, mountpoint, dispatcher, dispatcher_size, cfs_tree_builder_new(), {0}};
  if (!p.builder)
    return cfs_error_set(err, CFS_FAILED, ENOMEM, "the tree", NULL, "out of memory");
  p.made = composition_time(plan);
  int r = 0;
  for (size_t i = 0; r == 0 && i < plan->n_entries; i++) {
    r = plant(&p, &plan->entries[i]);
    if (r < 0)
      cfs_error_set(err, CFS_FAILED, -r, plan->entries[i].path, "report this with the manifest: it is a defect",
                    "the tree cannot take it (%s)", strerror(-r));
  }
  if (r == 0)
    r = plant_dot_files(&p);
  if (r == 0) {
    ask_for_warmth(&p);
    r = cfs_tree_builder_seal(p.builder);
  }
  if (r < 0)
    cfs_error_set(err, CFS_FAILED, -r, "the tree", NULL, "%s", strerror(-r));
  cfs_tree_builder_free(p.builder);
  return r;
}

int cfs_dispatcher_load(void **ret, size_t *ret_size, cfs_error **err)
{
  const char *places[] = {getenv("CUDAFS_DISPATCH"), CUDAFS_DISPATCH_PATH,
#ifdef CUDAFS_BUILD_DISPATCH
                          CUDAFS_BUILD_DISPATCH
#endif
  };
  char *data = NULL;
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
    if (places[i] && *places[i] && cfs_file_read(places[i], 16u << 20, &data, ret_size) == 0) {
      *ret = data;
      return 0;
    }
  return cfs_error_set(err, CFS_FAILED, ENOENT, CUDAFS_DISPATCH_PATH, "reinstall cudafs",
                       "the dispatcher that is served as nvcc and ptxas cannot be read");
}
