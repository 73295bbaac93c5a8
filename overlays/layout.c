/* SPDX-License-Identifier: MIT */
#include "overlays/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/entries.h"
#include "overlays/synth.h"

const char *cfs_layout_platform(void)
{
#if defined(__aarch64__)
  return "sbsa-linux";
#else
  return "x86_64-linux";
#endif
}

/* Where a face path stands in the tree: include/ and lib/ are real folders below targets/. */
static char *tree_path(const char *prefix, const char *face)
{
  if (cfs_has_prefix(face, "include/") || cfs_has_prefix(face, "lib/"))
    return cfs_format("%stargets/%s/%s", prefix, cfs_layout_platform(), face);
  return cfs_format("%s%s", prefix, face);
}

/* The tools that choose a toolchain by what they are asked for. */
static const char *dispatched_tool(const char *face)
{
  static const char *const tools[] = {"nvcc", "ptxas", "nvlink"};
  if (!cfs_has_prefix(face, "bin/"))
    return NULL;
  for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
    if (strcmp(face + 4, tools[i]) == 0)
      return tools[i];
  return NULL;
}

static void add_file(cfs_entries *out, const cfs_toolchain *t, const char *prefix, const cfs_file *file,
                     const cfs_choice *choice)
{
  const char *tool = *prefix ? NULL : dispatched_tool(file->face);
  if (tool) {
    cfs_entry *e = cfs_entries_add(out, CFS_ENTRY_DISPATCHER, tree_path(prefix, file->face));
    e->link = cfs_strdup(tool);
    e->choice = choice;
    e->executable = true;
    e->why = "chooses the toolchain that can do what is asked; the tool itself lies in .cudafs/toolchains";
    return;
  }
  const char *slash = strrchr(file->face, '/');
  cleanup_free char *target =
      file->link && slash ? cfs_format("%.*s/%s", (int)(slash - file->face), file->face, file->link) : NULL;
  if (target && cfs_toolchain_file(t, target, NULL))
    cfs_entries_link(out, tree_path(prefix, file->face), file->link, choice, NULL);
  else
    cfs_entries_file(out, tree_path(prefix, file->face), file, choice);
}

/* CUPTI's own place, where profilers and CMake look for it, beside the common include/ and lib/. */
static void add_cupti_view(cfs_entries *out, const char *prefix, const cfs_file *file, const cfs_choice *choice)
{
  char *path = NULL;
  if (cfs_has_prefix(file->face, "include/"))
    path = cfs_format("%sextras/CUPTI/%s", prefix, file->face);
  else if (cfs_has_prefix(file->face, "lib/"))
    path = cfs_format("%sextras/CUPTI/lib64/%s", prefix, file->face + 4);
  if (path && file->link)
    cfs_entries_link(out, path, file->link, choice, NULL);
  else if (path)
    cfs_entries_file(out, path, file, choice);
}

static void add_root_links(cfs_entries *out, const char *prefix)
{
  cleanup_free char *include = cfs_format("targets/%s/include", cfs_layout_platform());
  cleanup_free char *lib = cfs_format("targets/%s/lib", cfs_layout_platform());
  cfs_entries_link(out, cfs_format("%sinclude", prefix), include, NULL, "the runfile layout");
  cfs_entries_link(out, cfs_format("%slib64", prefix), lib, NULL, "the runfile layout");
  cfs_entries_link(out, cfs_format("%slib", prefix), lib, NULL, "the layout of the wheels");
}

static void append_entries(cfs_entries *all, cfs_entries *more)
{
  for (size_t i = 0; i < more->count; i++)
    *cfs_entries_add(all, more->items[i].kind, NULL) = more->items[i];
  free(more->items);
  *more = (cfs_entries){0};
}

static int layout_toolchain(cfs_entries *all, const cfs_toolchain *t, const char *prefix, cfs_error **err)
{
  cfs_entries placed = {0}, made = {0};
  for (size_t i = 0; i < t->n_choices; i++) {
    const cfs_choice *choice = &t->choices[i];
    bool cupti = strcmp(choice->part->info->name, "cuda_cupti") == 0;
    for (size_t j = 0; j < choice->part->n_files; j++) {
      add_file(&placed, t, prefix, &choice->part->files[j], choice);
      if (cupti)
        add_cupti_view(&placed, prefix, &choice->part->files[j], choice);
    }
  }
  cfs_entries_settle(&placed);
  if (t->compiles)
    add_root_links(&made, prefix);
  int r = cfs_synth_add(t, prefix, &placed, &made, err);
  append_entries(all, &placed);
  append_entries(all, &made);
  return r;
}

static void add_dot_files(cfs_entries *all)
{
  cfs_entries_blob(all, cfs_strdup(CFS_GATE_PATH), cfs_zalloc(1), 0, NULL, "held while a compiler starts");
  cfs_entries_blob(all, cfs_strdup(CFS_LEASE_PATH), cfs_zalloc(1), 0, NULL, "held while a compiler runs");
}

int cfs_layout_plan(cfs_plan *plan, const cfs_tables *tables, cfs_error **err)
{
  (void)tables;
  cfs_entries all = {0};
  int r = layout_toolchain(&all, &plan->toolchains[0], "", err);
  for (size_t i = 0; r == 0 && i < plan->n_toolchains; i++) {
    cleanup_free char *prefix = cfs_format(CFS_VIEWS_PATH "/%s/", plan->toolchains[i].release);
    r = layout_toolchain(&all, &plan->toolchains[i], prefix, err);
  }
  add_dot_files(&all);
  cfs_entries_settle(&all);
  plan->entries = all.items;
  plan->n_entries = all.count;
  return r;
}

char *cfs_layout_env(const char *mountpoint)
{
  cfs_buffer b = {0};
  static const char *const roots[] = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT", "CUDA_TOOLKIT_ROOT"};
  cleanup_free char *quoted = cfs_shell_quote(mountpoint);
  for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
    cfs_buffer_format(&b, "export %s=%s\n", roots[i], quoted);
  cfs_buffer_format(&b, "export CUDACXX=%s/bin/nvcc\n", quoted);
  cfs_buffer_format(&b, "export PATH=%s/bin:\"$PATH\"\n", quoted);
  cfs_buffer_format(&b, "export LD_LIBRARY_PATH=%s/lib64\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n", quoted);
  cfs_buffer_format(&b, "export TRITON_PTXAS_PATH=%s/bin/ptxas\n", quoted);
  cfs_buffer_format(&b, "export TRITON_PTXAS_BLACKWELL_PATH=%s/bin/ptxas\n", quoted);
  cfs_buffer_format(&b, "export XLA_FLAGS=--xla_gpu_cuda_data_dir=%s\"${XLA_FLAGS:+ $XLA_FLAGS}\"\n", quoted);
  return b.data;
}
