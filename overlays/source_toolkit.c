/* SPDX-License-Identifier: MIT */
/* A toolkit folder as the runfile and NVIDIA's packages make it: /usr/local/cuda-X.Y. No record says
 * whose a file is; the component table's globs do, and version.json where there is one. */

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/remap.h"
#include "overlays/source.h"

/* Deeper than any toolkit, and a bound for trees that link to themselves. */
#define MAX_DEPTH 24

static bool recognise(const char *path, char **ret_path)
{
  static const char *const marks[] = {"bin/nvcc",       "bin/ptxas",          "include/cuda_runtime_api.h",
                                      "include/cuda.h", "lib64/libcudart.so", "nvvm/bin/cicc"};
  for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
    cleanup_free char *mark = cfs_path_join(path, marks[i]);
    if (cfs_path_is_file(mark)) {
      *ret_path = cfs_strdup(path);
      return true;
    }
  }
  cleanup_free char *targets = cfs_path_join(path, "targets");
  if (!cfs_path_is_dir(targets))
    return false;
  *ret_path = cfs_strdup(path);
  return true;
}

struct walk {
  cfs_inventory *inv;
  const cfs_tables *tables;
  cfs_remap *remap;
  char *root; /* the source's real path */
  size_t unreadable;
  char *unreadable_example;
};

/* The last element of a link's text if it names a file of the same folder, else NULL: such links
 * (libX.so -> libX.so.1) stay links, all others become the file that they lead to. */
static char *sibling_link(const char *path)
{
  char target[256];
  ssize_t n = readlink(path, target, sizeof(target) - 1);
  if (n <= 0 || (size_t)n >= sizeof(target) - 1)
    return NULL;
  target[n] = '\0';
  const char *name = cfs_has_prefix(target, "./") ? target + 2 : target;
  if (strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
    return NULL;
  return cfs_strdup(name);
}

static bool has_face(const cfs_part *part, const char *face)
{
  for (size_t i = part->n_files; i-- > 0;)
    if (strcmp(part->files[i].face, face) == 0)
      return true;
  return false;
}

/* Libraries are few, so a linear search for doubles is cheap; headers come from one folder only and
 * are visited once by real path, so only lib/ and extras/ can repeat a face. */
static bool may_repeat(const char *relative)
{
  return !cfs_has_prefix(relative, "include/") || cfs_has_prefix(relative, "extras/");
}

static void note_unreadable(struct walk *w, const char *path)
{
  w->unreadable++;
  if (!w->unreadable_example)
    w->unreadable_example = cfs_strdup(path);
}

static void visit_file(struct walk *w, const char *relative)
{
  cleanup_free char *face = cfs_remap_face(w->remap, relative);
  if (!face)
    return;
  const cfs_component_info *info = cfs_tables_component_of_path(w->tables, face);
  if (!info)
    return;
  cfs_part *part = cfs_inventory_loose_part(w->inv, info);
  if (may_repeat(relative) && has_face(part, face))
    return;
  char *path = cfs_path_join(w->inv->path, relative);
  cleanup_free char *link = sibling_link(path), *shown = cfs_strdup(path);
  int r = cfs_part_add_file(part, TAKE_PTR(face), path);
  if (r < 0)
    note_unreadable(w, shown);
  else
    part->files[part->n_files - 1].link = TAKE_PTR(link);
}

/* A link to a folder elsewhere ("/", "/proc", a home) is no part of a toolkit, and may have no end. */
static bool leads_out(const struct walk *w, const char *path)
{
  struct stat st;
  if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
    return false;
  cleanup_free char *real = realpath(path, NULL);
  size_t n = strlen(w->root);
  return !real || strncmp(real, w->root, n) != 0 || (real[n] && real[n] != '/');
}

static void walk_dir(struct walk *w, const char *relative, int depth, struct stat *above, size_t n_above);

static void visit(struct walk *w, const char *relative, int depth, struct stat *above, size_t n_above)
{
  cleanup_free char *path = cfs_path_join(w->inv->path, relative);
  struct stat st;
  if (stat(path, &st) < 0) {
    /* A dangling link in a toolkit is common (a -dev package without its library): not ours to show. */
    if (errno != ENOENT && errno != ELOOP)
      note_unreadable(w, path);
    return;
  }
  if (S_ISREG(st.st_mode)) {
    visit_file(w, relative);
    return;
  }
  if (!S_ISDIR(st.st_mode) || depth >= MAX_DEPTH || leads_out(w, path))
    return;
  for (size_t i = 0; i < n_above; i++)
    if (above[i].st_dev == st.st_dev && above[i].st_ino == st.st_ino)
      return; /* a link that leads back up */
  above[n_above] = st;
  walk_dir(w, relative, depth + 1, above, n_above + 1);
}

static void walk_dir(struct walk *w, const char *relative, int depth, struct stat *above, size_t n_above)
{
  cleanup_free char *path = cfs_path_join(w->inv->path, relative);
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir) {
    note_unreadable(w, path);
    return;
  }
  cleanup_strings cfs_strings names = {0};
  for (struct dirent *e; (e = readdir(dir));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      cfs_strings_add(&names, e->d_name);
  cfs_strings_sort(&names);
  for (size_t i = 0; i < names.count; i++) {
    cleanup_free char *child = cfs_format("%s/%s", relative, names.items[i]);
    visit(w, child, depth, above, n_above);
  }
}

/* The folders to walk, each real folder once: include/ and lib64/ are links into targets/ in a runfile
 * layout, and the other way round in some repackagings. */
static void walk_roots(struct walk *w)
{
  static const char *const roots[] = {"bin",
                                      "nvvm",
                                      "include",
                                      "targets/x86_64-linux/include",
                                      "targets/sbsa-linux/include",
                                      "lib64",
                                      "lib",
                                      "targets/x86_64-linux/lib",
                                      "targets/sbsa-linux/lib",
                                      "extras/CUPTI/include",
                                      "extras/CUPTI/lib64",
                                      "compute-sanitizer"};
  struct stat seen[sizeof(roots) / sizeof(roots[0])];
  size_t n_seen = 0;
  for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
    cleanup_free char *path = cfs_path_join(w->inv->path, roots[i]);
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
      continue;
    bool again = false;
    for (size_t j = 0; j < n_seen; j++)
      again = again || (seen[j].st_dev == st.st_dev && seen[j].st_ino == st.st_ino);
    if (again)
      continue;
    seen[n_seen++] = st;
    struct stat above[MAX_DEPTH + 2] = {st};
    walk_dir(w, roots[i], 0, above, 1);
  }
}

static void take_version_json(cfs_inventory *inv, const cfs_tables *tables)
{
  cleanup_free char *path = cfs_path_join(inv->path, "version.json");
  cleanup_free char *text = NULL;
  size_t size = 0;
  json_t *root = cfs_file_read(path, 1 << 20, &text, &size) == 0 ? json_loadb(text, size, 0, NULL) : NULL;
  if (!root)
    return;
  const char *key;
  json_t *value;
  json_object_foreach(root, key, value)
  {
    const cfs_component_info *info = cfs_tables_component(tables, key);
    const char *version = json_string_value(json_object_get(value, "version"));
    for (size_t i = 0; info && version && i < inv->n_parts; i++)
      if (inv->parts[i].info == info && !inv->parts[i].version)
        inv->parts[i].version = cfs_strdup(version);
  }
  json_decref(root);
}

/* The release that a part of the given kind says by its own content, or NULL. */
static const char *told_release(const cfs_inventory *inv, bool runtime)
{
  for (size_t i = 0; i < inv->n_parts; i++) {
    const cfs_part *part = &inv->parts[i];
    if (part->content && part->release && (runtime ? part->info->runtime : part->info->unit))
      return part->release;
  }
  return NULL;
}

static bool headers_only(const cfs_part *part)
{
  for (size_t i = 0; i < part->n_files; i++)
    if (!cfs_has_prefix(part->files[i].face, "include/"))
      return false;
  return true;
}

/* Parts whose files say nothing (crt is headers without a version) take the release of the toolkit
 * that they lie in: headers that of the runtime header beside them, the rest that of the tools. */
static void after_identify(cfs_inventory *inv)
{
  const char *of_tools = told_release(inv, false), *of_headers = told_release(inv, true);
  for (size_t i = 0; i < inv->n_parts; i++) {
    cfs_part *part = &inv->parts[i];
    bool by_headers = of_headers && (headers_only(part) || !of_tools);
    const char *release = by_headers ? of_headers : of_tools;
    if (!part->release && release)
      part->release = cfs_strdup(release);
    if (!part->version && release)
      part->version = cfs_strdup(release);
  }
}

static int take_inventory(cfs_inventory *inv, const cfs_tables *tables, cfs_error **err)
{
  struct walk w = {.inv = inv, .tables = tables};
  int r = cfs_remap_load(tables->dir, "toolkit", &w.remap, err);
  if (r < 0)
    return r;
  inv->installer = cfs_strdup("toolkit");
  w.root = realpath(inv->path, NULL);
  if (w.root)
    walk_roots(&w);
  free(w.root);
  cfs_remap_free(w.remap);
  if (w.unreadable) {
    cfs_problem *p = cfs_problems_add(&inv->problems, "source-unreadable", CFS_PROBLEM, NULL,
                                      "%zu file(s) of the toolkit cannot be read; the first is %s", w.unreadable,
                                      w.unreadable_example);
    cfs_strings_take(&p->fix,
                     cfs_format("# mend the modes under %s, or run cudafs as a user who may read it", inv->path));
  }
  free(w.unreadable_example);
  if (!inv->n_parts)
    return cfs_error_set(err, CFS_REFUSED, ENOENT, inv->path, "name a folder such as /usr/local/cuda-13.0",
                         "the toolkit folder holds no CUDA file");
  take_version_json(inv, tables);
  return 0;
}

const cfs_source_ops cfs_source_toolkit = {
    .kind = CFS_SOURCE_TOOLKIT,
    .recognise = recognise,
    .take_inventory = take_inventory,
    .after_identify = after_identify,
};
