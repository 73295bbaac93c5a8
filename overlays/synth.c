/* SPDX-License-Identifier: MIT */
#include "overlays/synth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/elf.h"
#include "overlays/layout.h"
#include "overlays/stub.h"

struct synth {
  const cfs_toolchain *t;
  const char *prefix;
  char *lib; /* "<prefix>targets/<platform>/lib/" */
  const cfs_entries *placed;
  cfs_entries *out;
};

/* Length of "libX" in "libX.so" or "libX.so.1.2", or 0 when the name is no shared library's. */
static size_t library_stem(const char *name)
{
  if (!cfs_has_prefix(name, "lib"))
    return 0;
  for (const char *so = strstr(name, ".so"); so; so = strstr(so + 1, ".so"))
    if (so[3] == '\0' || so[3] == '.')
      return (size_t)(so - name);
  return 0;
}

static void add_link_if_missing(struct synth *s, const char *folder, const char *name, const char *target,
                                const cfs_choice *choice, const char *why)
{
  char *path = cfs_format("%s%s", folder, name);
  if (strcmp(name, target) == 0 || cfs_entries_find(s->placed, path))
    free(path);
  else
    cfs_entries_link(s->out, path, target, choice, why);
}

/* Wheels carry libX.so.N alone: the loader finds it by its SONAME, the linker asks for libX.so. */
static void add_library_links(struct synth *s, const cfs_entry *entry, const char *folder)
{
  const char *name = entry->path + strlen(folder);
  size_t stem = library_stem(name);
  if (strchr(name, '/') || !stem || !name[stem + 3] || entry->kind != CFS_ENTRY_FILE)
    return;
  cleanup_free char *soname = NULL;
  if (cfs_elf_soname(entry->file->path, &soname) < 0 || strchr(soname, '/'))
    soname = cfs_strdup(name);
  add_link_if_missing(s, folder, soname, name, entry->choice, "the library's SONAME");
  cleanup_free char *plain = cfs_format("%.*s.so", (int)stem, name);
  add_link_if_missing(s, folder, plain, soname, entry->choice, "the name that linkers ask for");
}

static void add_links_below(struct synth *s, const char *folder)
{
  for (size_t i = 0; i < s->placed->count; i++)
    if (cfs_has_prefix(s->placed->items[i].path, folder))
      add_library_links(s, &s->placed->items[i], folder);
}

typedef int stub_maker(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf,
                       size_t *ret_size, cfs_error **err);

static int add_stub(struct synth *s, const char *name, stub_maker *make, const char *const *faces, size_t n,
                    cfs_error **err)
{
  char *path = cfs_format("%sstubs/%s", s->lib, name);
  const char *headers[8];
  const cfs_choice *choice = NULL;
  size_t found = 0;
  for (size_t i = 0; i < n && found < sizeof(headers) / sizeof(headers[0]); i++) {
    const cfs_choice *owner = NULL;
    const cfs_file *file = cfs_toolchain_file(s->t, faces[i], &owner);
    if (file)
      headers[found++] = file->path;
    else if (i == 0)
      break; /* without the main header there is nothing to declare */
    if (!choice)
      choice = owner;
  }
  void *elf = NULL;
  size_t size = 0;
  int r = 0;
  if (found && !cfs_entries_find(s->placed, path))
    r = make(headers, found, cfs_machine_native(), &elf, &size, err);
  if (r == 0 && elf)
    cfs_entries_blob(s->out, TAKE_PTR(path), elf, size, choice, "a stub for linking, made of what the headers declare");
  free(path);
  return r == -ENODATA ? 0 : r;
}

static int add_stubs(struct synth *s, cfs_error **err)
{
  static const char *const driver[] = {"include/cuda.h", "include/cudaEGL.h", "include/cudaGL.h", "include/cudaVDPAU.h",
                                       "include/cudaProfiler.h"};
  static const char *const nvml[] = {"include/nvml.h"};
  int r = add_stub(s, "libcuda.so", cfs_stub_driver, driver, sizeof(driver) / sizeof(driver[0]), err);
  return r < 0 ? r : add_stub(s, "libnvidia-ml.so", cfs_stub_nvml, nvml, 1, err);
}

/* The same numbers everywhere: "cuda" is what nvcc --version says, since readers compare the two. */
static void add_version_json(struct synth *s)
{
  if (!s->t->tool_version)
    return;
  json_t *root = json_object();
  json_object_set_new(root, "cuda", json_pack("{s:s, s:s}", "name", "CUDA SDK", "version", s->t->tool_version));
  for (size_t i = 0; i < s->t->n_choices; i++) {
    const cfs_part *part = s->t->choices[i].part;
    if (part->version)
      json_object_set_new(root, part->info->name,
                          json_pack("{s:s, s:s}", "name", part->info->title ? part->info->title : part->info->name,
                                    "version", part->version));
  }
  char *text = json_dumps(root, JSON_INDENT(3));
  json_decref(root);
  cfs_entries_blob(s->out, cfs_format("%sversion.json", s->prefix), text, strlen(text), NULL,
                   "the versions of the composed parts");
}

static char *pkg_config_text(const char *name, const char *title, const char *version, const char *lib_folder)
{
  const char *platform = cfs_layout_platform();
  /* Relative to the file itself, so that a bind mount anywhere stays right. */
  return cfs_format("cudaroot=${pcfiledir}/../../../..\n"
                    "libdir=${cudaroot}/targets/%s/%s\n"
                    "includedir=${cudaroot}/targets/%s/include\n\n"
                    "Name: %s\nDescription: %s\nVersion: %s\n"
                    "Libs: -L${libdir} -l%s\nCflags: -I${includedir}\n",
                    platform, lib_folder, platform, name, title, version, name);
}

static void add_pkg_config(struct synth *s, const char *name, const char *title, const char *version,
                           const char *lib_folder, const cfs_choice *choice)
{
  char *text = pkg_config_text(name, title, version, lib_folder);
  cleanup_free char *file = cfs_format("%s-%s.pc", name, s->t->release);
  cfs_entries_blob(s->out, cfs_format("%spkgconfig/%s", s->lib, file), text, strlen(text), choice,
                   "a pkg-config file for the library beside it");
  cfs_entries_link(s->out, cfs_format("%spkgconfig/%s.pc", s->lib, name), file, choice, "the name without a release");
}

static void add_pkg_configs(struct synth *s)
{
  /* Copied first: the loop adds to the list that it would read. */
  size_t n = s->out->count;
  for (size_t i = 0; i < s->placed->count + n; i++) {
    const cfs_entry *e = i < s->placed->count ? &s->placed->items[i] : &s->out->items[i - s->placed->count];
    if (!e->choice || !cfs_has_prefix(e->path, s->lib))
      continue;
    const char *name = e->path + strlen(s->lib);
    size_t stem = library_stem(name);
    if (strchr(name, '/') || !stem || name[stem + 3])
      continue;
    const cfs_part *part = e->choice->part;
    cleanup_free char *library = cfs_strndup(name + 3, stem - 3);
    add_pkg_config(s, library, part->info->title ? part->info->title : part->info->name,
                   part->version ? part->version : s->t->release, "lib", e->choice);
  }
  const cfs_choice *driver = NULL;
  if (cfs_toolchain_file(s->t, "include/cuda.h", &driver))
    add_pkg_config(s, "cuda", "CUDA Driver Library", s->t->release, "lib/stubs", driver);
}

int cfs_synth_add(const cfs_toolchain *t, const char *prefix, const cfs_entries *placed, cfs_entries *ret,
                  cfs_error **err)
{
  cleanup_free char *lib = cfs_format("%stargets/%s/lib/", prefix, cfs_layout_platform());
  cleanup_free char *nvvm = cfs_format("%snvvm/lib64/", prefix), *cupti = cfs_format("%sextras/CUPTI/lib64/", prefix);
  struct synth s = {t, prefix, lib, placed, ret};
  add_links_below(&s, nvvm); /* nvlink loads libnvvm.so from there, also where nothing compiles */
  if (!t->compiles)
    return 0;
  add_links_below(&s, lib);
  add_links_below(&s, cupti);
  add_pkg_configs(&s);
  add_version_json(&s);
  return add_stubs(&s, err);
}
