/* SPDX-License-Identifier: MIT */
#include "overlays/scan.h"

#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/host.h"
#include "overlays/source.h"

enum { SEARCH_DEPTH = 4, SEARCH_FOLDERS = 4000 };

struct scan {
  struct cfs_found *found;
  size_t count;
  size_t visited;
};

/* A site-packages is interesting only with NVIDIA's wheels in it. */
static bool has_cuda_wheels(const char *site)
{
  static const char *const patterns[] = {"nvidia/cu[0-9]*", "nvidia/cuda_*"};
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
    cleanup_free char *pattern = cfs_path_join(site, patterns[i]);
    glob_t g;
    if (glob(pattern, GLOB_ONLYDIR, NULL, &g) == 0) {
      globfree(&g);
      return true;
    }
  }
  return false;
}

/* Our own mounts, or anything inside one, would make a plan depend on itself. */
static bool is_own_mount(const char *path)
{
  cleanup_free char *at = cfs_strdup(path);
  for (char *slash; *at; *slash = '\0') {
    cleanup_free char *id = cfs_path_join(at, CFS_ID_PATH);
    if (cfs_path_exists(id))
      return true;
    slash = strrchr(at, '/');
    if (!slash)
      break;
  }
  return false;
}

static void add(struct scan *s, enum cfs_source_kind kind, const char *path, const char *how)
{
  for (size_t i = 0; i < s->count; i++) {
    if (strcmp(s->found[i].path, path) != 0)
      continue;
    if (!strstr(s->found[i].how, how)) {
      char *both = cfs_format("%s, %s", s->found[i].how, how);
      free(s->found[i].how);
      s->found[i].how = both;
    }
    return;
  }
  s->found = cfs_grow(s->found, s->count + 1, sizeof(*s->found));
  s->found[s->count++] = (struct cfs_found){kind, cfs_strdup(path), cfs_strdup(how)};
}

/* The inside of a wheel looks like a toolkit; its packages tell more. */
static char *site_packages_around(const char *path)
{
  const char *at = strstr(path, "/site-packages/nvidia");
  if (!at)
    at = strstr(path, "/dist-packages/nvidia");
  return at ? cfs_strndup(path, (size_t)(at - path) + strlen("/site-packages")) : NULL;
}

static bool try_place(struct scan *s, const char *path, const char *how)
{
  cleanup_free char *real = realpath(path, NULL);
  if (!real || is_own_mount(real))
    return false;
  cleanup_free char *site = site_packages_around(real), *root = NULL;
  enum cfs_source_kind kind = cfs_source_recognise(site ? site : real, &root);
  if (kind == CFS_SOURCE_ANY)
    return false;
  cleanup_free char *real_root = realpath(root, NULL);
  if (!real_root || (kind == CFS_SOURCE_SITE_PACKAGES && !has_cuda_wheels(real_root)))
    return false;
  add(s, kind, real_root, how);
  return true;
}

static void try_pattern(struct scan *s, const char *pattern, const char *how)
{
  glob_t g;
  if (glob(pattern, 0, NULL, &g) != 0)
    return;
  for (size_t i = 0; i < g.gl_pathc; i++)
    try_place(s, g.gl_pathv[i], how);
  globfree(&g);
}

static void try_home_pattern(struct scan *s, const char *variable, const char *below, const char *how)
{
  const char *base = getenv(variable);
  if (!base || !*base)
    return;
  cleanup_free char *pattern = cfs_path_join(base, below);
  try_pattern(s, pattern, how);
}

static void try_variables(struct scan *s)
{
  static const char *const names[] = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *value = getenv(names[i]);
    cleanup_free char *how = cfs_format("$%s", names[i]);
    if (value && *value)
      try_place(s, value, how);
  }
  const char *venv = getenv("VIRTUAL_ENV");
  if (venv && *venv)
    try_place(s, venv, "active virtual environment");
}

/* The folder two levels above the tool's real path: ROOT/bin/nvcc. */
static void try_tool(struct scan *s, const char *name)
{
  cleanup_free char *tool = cfs_path_search(getenv("PATH"), name);
  cleanup_free char *real = tool ? realpath(tool, NULL) : NULL;
  cleanup_free char *how = cfs_format("%s on PATH", name);
  for (int up = 0; real && up < 2; up++) {
    char *slash = strrchr(real, '/');
    if (!slash)
      return;
    *slash = '\0';
  }
  if (real && *real)
    try_place(s, real, how);
}

static void try_interpreters(struct scan *s)
{
  static const char how[] = "site-packages of an interpreter";
  cleanup_free char *python = cfs_path_search(getenv("PATH"), "python3");
  cleanup_free char *real = python ? realpath(python, NULL) : NULL;
  char *bin = real ? strstr(real, "/bin/python") : NULL;
  if (bin) {
    *bin = '\0';
    cleanup_free char *pattern = cfs_path_join(real, "lib/python3*/site-packages");
    try_pattern(s, pattern, how);
  }
  try_pattern(s, "/usr/lib/python3/dist-packages", how);
  try_pattern(s, "/usr/local/lib/python3*/*-packages", how);
  try_home_pattern(s, "HOME", ".local/lib/python3*/site-packages", how);
  try_home_pattern(s, "CONDA_PREFIX", "lib/python3*/site-packages", how);
}

static void scan_machine(struct scan *s)
{
  try_variables(s);
  try_tool(s, "nvcc");
  try_tool(s, "ptxas");
  try_pattern(s, "/usr/local/cuda-*", "/usr/local/cuda-*");
  try_pattern(s, "/usr/local/cuda", "/usr/local/cuda");
  try_pattern(s, "/opt/cuda*", "/opt/cuda*");
  try_home_pattern(s, getenv("XDG_CACHE_HOME") ? "XDG_CACHE_HOME" : "HOME",
                   getenv("XDG_CACHE_HOME") ? "cudafs/releases/*" : ".cache/cudafs/releases/*", "fetched by cudafs");
  try_place(s, ".venv", ".venv in the working directory");
  try_place(s, "venv", "venv in the working directory");
  try_interpreters(s);
}

static void search(struct scan *s, const char *path, int depth, const char *how)
{
  if (s->visited++ > SEARCH_FOLDERS || try_place(s, path, how) || depth == 0)
    return;
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir)
    return;
  for (struct dirent *e; (e = readdir(dir));) {
    bool hidden = e->d_name[0] == '.' && strcmp(e->d_name, ".venv") != 0;
    if (hidden || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
      continue;
    cleanup_free char *below = cfs_path_join(path, e->d_name);
    if (cfs_path_is_dir(below))
      search(s, below, depth - 1, how);
  }
}

static int compare_found(const void *a, const void *b)
{
  return strcmp(((const struct cfs_found *)a)->path, ((const struct cfs_found *)b)->path);
}

void cfs_scan(const char *const *paths, size_t n_paths, struct cfs_found **ret, size_t *ret_n)
{
  struct scan s = {0};
  for (size_t i = 0; i < n_paths; i++) {
    size_t before = s.count;
    cleanup_free char *how = cfs_format("below %s", paths[i]);
    search(&s, paths[i], SEARCH_DEPTH, how);
    /* Folders come in no order; what was found there should. */
    if (s.count > before + 1)
      qsort(s.found + before, s.count - before, sizeof(*s.found), compare_found);
  }
  if (!n_paths)
    scan_machine(&s);
  *ret = s.found;
  *ret_n = s.count;
}

void cfs_found_free(struct cfs_found *found, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    free(found[i].path);
    free(found[i].how);
  }
  free(found);
}
