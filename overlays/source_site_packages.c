/* SPDX-License-Identifier: MIT */
/* Wheels as pip or uv leave them in a site-packages folder: both layouts, nvidia/<component>/ (CUDA 12)
 * and nvidia/cu13/. A package's RECORD says which files are its own; what the record promises and
 * the disk does not hold is a problem, since the installers themselves never look again. */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/advice.h"
#include "overlays/dist_info.h"
#include "overlays/remap.h"
#include "overlays/source.h"

static char *site_packages_of_venv(const char *path)
{
  /* Not by glob(3): the path is the user's, and may hold what a pattern gives a meaning. */
  cleanup_free char *lib = cfs_path_join(path, "lib"), *newest = NULL;
  cleanup_closedir DIR *dir = opendir(lib);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    cleanup_free char *site = cfs_format("%s/%s/site-packages", lib, e->d_name);
    if (!cfs_has_prefix(e->d_name, "python3") || !cfs_path_is_dir(site))
      continue;
    if (newest && cfs_version_compare(e->d_name + strlen("python"), newest) <= 0)
      continue;
    free(newest);
    newest = cfs_strdup(e->d_name + strlen("python"));
  }
  return newest ? cfs_format("%s/python%s/site-packages", lib, newest) : NULL;
}

static bool holds_wheels(const char *path)
{
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir)
    return false;
  for (struct dirent *e; (e = readdir(dir));)
    if (cfs_has_suffix(e->d_name, ".dist-info"))
      return true;
  return false;
}

static bool recognise(const char *path, char **ret_path)
{
  char *site = site_packages_of_venv(path);
  if (!site && holds_wheels(path))
    site = cfs_strdup(path);
  if (!site)
    return false;
  *ret_path = site;
  return true;
}

/* The interpreter of the environment that the folder belongs to, or NULL: <env>/lib/python3.X/site-packages. */
static char *find_python(const char *site)
{
  cleanup_free char *up = cfs_path_join(site, "../../../bin/python");
  cleanup_free char *config = cfs_path_join(site, "../../../pyvenv.cfg");
  if (!cfs_path_exists(up) || !cfs_path_exists(config))
    return NULL;
  cleanup_free char *plain = cfs_path_normalise(site);
  for (int i = 0; plain && i < 3; i++) {
    char *slash = strrchr(plain, '/');
    if (!slash)
      return NULL;
    *slash = '\0';
  }
  return plain ? cfs_path_join(plain, "bin/python") : NULL;
}

/* torch says what it was built with in torch/version.py; importing it would cost seconds and a driver. */
static char *torch_release(const char *site)
{
  cleanup_free char *path = cfs_path_join(site, "torch/version.py"), *text = NULL;
  if (cfs_file_read(path, 1 << 16, &text, NULL) < 0)
    return NULL;
  const char *line = strstr(text, "\ncuda");
  if (!line)
    return NULL;
  line++;
  const char *value = line + strcspn(line, "'\"\n");
  size_t n = *value == '\'' || *value == '"' ? strspn(value + 1, "0123456789.") : 0;
  return n ? cfs_strndup(value + 1, n) : NULL;
}

struct reading {
  cfs_inventory *inv;
  const cfs_tables *tables;
  cfs_remap *remap;
};

static bool is_placeholder(const cfs_tables *tables, const char *version)
{
  return cfs_strings_has(&tables->placeholder_versions, version);
}

static void report_placeholder(struct reading *r, const cfs_dist_info *d, const cfs_component_info *info)
{
  cfs_problem *p = cfs_problems_add(&r->inv->problems, "placeholder-wheel", CFS_WARNING, info->name,
                                    "%s %s is an empty placeholder: it holds no CUDA file, whatever its name says",
                                    d->name, d->version);
  const char *real = info->wheels.count ? info->wheels.items[0] : NULL;
  if (real && strcasecmp(real, d->name) != 0)
    cfs_strings_take(&p->fix, cfs_format("# install %s instead of %s", real, d->name));
}

struct losses {
  size_t missing, altered, hostile, foreign;
  char *example;
};

static void lose(size_t *counter, struct losses *l, const char *path)
{
  ++*counter;
  if (!l->example)
    l->example = cfs_strdup(path);
}

static void add_recorded_file(struct reading *r, cfs_part *part, const struct cfs_record_entry *e, struct losses *lost)
{
  if (!e->path) {
    lose(&lost->hostile, lost, "(a path outside the folder)");
    return;
  }
  char *face = cfs_remap_face(r->remap, e->path);
  if (!face)
    return;
  char *path = cfs_path_join(r->inv->path, e->path);
  int result = cfs_part_add_file(part, face, path);
  if (result < 0) {
    lose(result == -ENOENT || result == -ENOTDIR ? &lost->missing : &lost->foreign, lost, e->path);
    return;
  }
  cfs_file *f = &part->files[part->n_files - 1];
  if (e->sha256)
    f->sha256 = cfs_strdup(e->sha256);
  if (e->size >= 0 && f->id.size != (uint64_t)e->size)
    lose(&lost->altered, lost, e->path);
}

static void report_losses(struct reading *r, const cfs_part *part, struct losses *lost)
{
  size_t total = lost->missing + lost->altered + lost->hostile + lost->foreign;
  if (!total)
    return;
  cfs_problem *p = cfs_problems_add(
      &r->inv->problems, "record-mismatch", CFS_PROBLEM, part->info->name,
      "%s %s is not what its RECORD says: %zu file(s) missing, %zu of another size, %zu unreadable, %zu outside the "
      "folder; the first is %s",
      part->package, part->package_version, lost->missing, lost->altered, lost->foreign, lost->hostile, lost->example);
  cfs_advice_reinstall(r->inv, part->package, part->package_version, &p->fix);
  free(lost->example);
}

/* Every RECORD lists itself. */
static bool names_itself(const cfs_dist_info *d)
{
  for (size_t i = 0; i < d->n_record; i++)
    if (d->record[i].path && cfs_has_suffix(d->record[i].path, ".dist-info/RECORD"))
      return true;
  return false;
}

static void report_garbage(struct reading *r, const cfs_dist_info *d, const cfs_component_info *info)
{
  cfs_problem *p = cfs_problems_add(&r->inv->problems, "record-mismatch", CFS_PROBLEM, info->name,
                                    "the RECORD of %s %s is no list of files", d->name, d->version);
  cfs_advice_reinstall(r->inv, d->name, d->version, &p->fix);
}

static void read_package(struct reading *r, const cfs_dist_info *d, const cfs_component_info *info)
{
  cfs_part *part = cfs_inventory_add_part(r->inv, info);
  part->package = cfs_strdup(d->name);
  part->package_version = cfs_strdup(d->version);
  struct losses lost = {0};
  for (size_t i = 0; i < d->n_record; i++)
    add_recorded_file(r, part, &d->record[i], &lost);
  report_losses(r, part, &lost);
  if (!part->n_files && !lost.missing && !names_itself(d))
    report_garbage(r, d, info);
  else if (!part->n_files && !lost.missing)
    report_placeholder(r, d, info);
  if (!r->inv->installer && d->installer)
    r->inv->installer = cfs_strdup(d->installer);
}

/* Of two dist-info folders of one package (an installer that lost its way leaves both) the one whose
 * files are there is the truth. */
static size_t matching_files(const cfs_inventory *inv, const cfs_dist_info *d)
{
  size_t n = 0;
  for (size_t i = 0; i < d->n_record; i++) {
    if (!d->record[i].path || d->record[i].size < 0 || cfs_has_suffix(d->record[i].path, "/RECORD"))
      continue;
    cleanup_free char *path = cfs_path_join(inv->path, d->record[i].path), *text = NULL;
    size_t size = 0;
    if (!strstr(d->record[i].path, ".dist-info/") && cfs_file_read(path, 1 << 20, &text, &size) == 0 &&
        size == (size_t)d->record[i].size)
      n++;
  }
  return n;
}

struct package {
  cfs_dist_info *dist;
  const cfs_component_info *info;
};

struct packages {
  struct package *items;
  size_t count;
};

static void drop_stale(struct reading *r, struct packages *all, size_t i, size_t j)
{
  size_t loser = matching_files(r->inv, all->items[i].dist) >= matching_files(r->inv, all->items[j].dist) ? j : i;
  const cfs_dist_info *d = all->items[loser].dist;
  cfs_problem *p =
      cfs_problems_add(&r->inv->problems, "record-mismatch", CFS_WARNING, all->items[loser].info->name,
                       "%s is recorded twice; the record of %s is stale and left out", d->name, d->version);
  cfs_strings_take(&p->fix, cfs_format("# remove the %s-%s.dist-info folder in %s", d->name, d->version, r->inv->path));
  cfs_dist_info_free(all->items[loser].dist);
  all->items[loser] = all->items[--all->count];
}

static void drop_all_stale(struct reading *r, struct packages *all)
{
  for (size_t i = 0; i < all->count; i++)
    for (size_t j = i + 1; j < all->count;)
      if (strcasecmp(all->items[i].dist->name, all->items[j].dist->name) == 0) {
        drop_stale(r, all, i, j);
        j = i + 1;
      } else {
        j++;
      }
}

static void collect_package(struct reading *r, const char *folder, struct packages *all)
{
  cleanup_free char *name = NULL, *version = NULL;
  if (!cfs_dist_info_split(folder, &name, &version))
    return;
  const cfs_component_info *info = cfs_tables_component_of_wheel(r->tables, name);
  if (!info)
    return;
  cleanup_free char *path = cfs_path_join(r->inv->path, folder);
  cleanup_error cfs_error *why = NULL;
  cfs_dist_info *d = NULL;
  if (cfs_dist_info_read(path, &d, &why) < 0) {
    cfs_problem *p = cfs_problems_add(&r->inv->problems, "record-mismatch", CFS_PROBLEM, info->name,
                                      "%s %s has no readable record (%s: %s)", name, version, why->what, why->why);
    cfs_strings_take(&p->fix, cfs_format("# reinstall %s %s", name, version));
    return;
  }
  if (is_placeholder(r->tables, d->version)) {
    report_placeholder(r, d, info);
    cfs_dist_info_free(d);
    return;
  }
  all->items = cfs_grow(all->items, all->count + 1, sizeof(*all->items));
  all->items[all->count++] = (struct package){d, info};
}

static int compare_packages(const void *a, const void *b)
{
  const struct package *p = a, *q = b;
  int c = strcmp(p->info->name, q->info->name);
  return c ? c : strcmp(p->dist->version, q->dist->version);
}

struct owned {
  const char *path;
  const cfs_part *part;
};

static int compare_owned(const void *a, const void *b)
{
  return strcmp(((const struct owned *)a)->path, ((const struct owned *)b)->path);
}

/* A file that two packages claim is removed with the first of them, or holds the second one's bytes. */
static void report_shared_files(cfs_inventory *inv)
{
  size_t n = 0, at = 0;
  for (size_t i = 0; i < inv->n_parts; i++)
    n += inv->parts[i].n_files;
  cleanup_free struct owned *all = cfs_zalloc(n * sizeof(*all));
  for (size_t i = 0; i < inv->n_parts; i++)
    for (size_t j = 0; j < inv->parts[i].n_files; j++)
      all[at++] = (struct owned){inv->parts[i].files[j].path, &inv->parts[i]};
  if (n > 1)
    qsort(all, n, sizeof(*all), compare_owned);
  for (size_t i = 1; i < n; i++) {
    const cfs_part *a = all[i - 1].part, *b = all[i].part;
    if (a == b || strcmp(all[i - 1].path, all[i].path) != 0)
      continue;
    cfs_problem *p = cfs_problems_add(&inv->problems, "ownership-conflict", CFS_WARNING, b->info->name,
                                      "%s belongs to both %s %s and %s %s", all[i].path, a->package, a->package_version,
                                      b->package, b->package_version);
    cfs_strings_add(&p->fix, "# uninstall the one that is not wanted, then reinstall the other");
    return; /* one report names the pair; hundreds would hide it */
  }
}

/* The cu12 nvcc wheels hold ptxas, libdevice and headers, and no nvcc. */
static void report_no_compiler(cfs_inventory *inv)
{
  for (size_t i = 0; i < inv->n_parts; i++) {
    const cfs_part *part = &inv->parts[i];
    bool has_ptxas = false, has_nvcc = false;
    for (size_t j = 0; j < part->n_files; j++) {
      has_ptxas = has_ptxas || strcmp(part->files[j].face, "bin/ptxas") == 0;
      has_nvcc = has_nvcc || strcmp(part->files[j].face, "bin/nvcc") == 0;
    }
    if (has_ptxas && !has_nvcc)
      cfs_problems_add(&inv->problems, "wheel-has-no-compiler", CFS_NOTE, part->info->name,
                       "%s %s holds ptxas but no nvcc: it can assemble PTX and compiles nothing", part->package,
                       part->package_version);
  }
}

static void read_packages(struct reading *r, DIR *dir)
{
  struct packages all = {0};
  for (struct dirent *e; (e = readdir(dir));)
    collect_package(r, e->d_name, &all);
  drop_all_stale(r, &all);
  if (all.count > 1)
    qsort(all.items, all.count, sizeof(*all.items), compare_packages);
  for (size_t i = 0; i < all.count; i++) {
    read_package(r, all.items[i].dist, all.items[i].info);
    cfs_dist_info_free(all.items[i].dist);
  }
  free(all.items);
}

static int take_inventory(cfs_inventory *inv, const cfs_tables *tables, cfs_error **err)
{
  struct reading r = {.inv = inv, .tables = tables};
  cleanup_closedir DIR *dir = opendir(inv->path);
  if (!dir)
    return cfs_error_set(err, CFS_REFUSED, errno, inv->path, "run cudafs as a user who may read it",
                         "the folder cannot be read (%s)", strerror(errno));
  int result = cfs_remap_load(tables->dir, "wheel", &r.remap, err);
  if (result < 0)
    return result;
  inv->python = find_python(inv->path);
  inv->torch_release = torch_release(inv->path);
  read_packages(&r, dir);
  report_shared_files(inv);
  report_no_compiler(inv);
  cfs_remap_free(r.remap);
  if (!inv->n_parts && !inv->problems.count)
    return cfs_error_set(err, CFS_REFUSED, ENOENT, inv->path,
                         "install the wheels of one release there, for instance with contrib/quickstart",
                         "the site-packages folder holds no CUDA wheel");
  return 0;
}

const cfs_source_ops cfs_source_site_packages = {
    .kind = CFS_SOURCE_SITE_PACKAGES,
    .recognise = recognise,
    .take_inventory = take_inventory,
};
