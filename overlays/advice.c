/* SPDX-License-Identifier: MIT */
#include "overlays/advice.h"

#include <string.h>

#include "base/memory.h"
#include "manifests/version.h"

/* "13.2" -> "13-2", as NVIDIA's distribution packages are named. */
static char *dashed(const char *release)
{
  char *s = cfs_strdup(release);
  for (char *p = s; *p; p++)
    if (*p == '.')
      *p = '-';
  return s;
}

/* pip takes a present version for granted even when its files are gone. */
static bool must_force(const cfs_inventory *source, const cfs_release_info *release, const cfs_strings *components)
{
  for (size_t i = 0; i < components->count; i++) {
    const struct cfs_pin *pin = cfs_release_pin(release, components->items[i]);
    for (size_t j = 0; pin && j < source->n_parts; j++) {
      const cfs_part *part = &source->parts[j];
      if (strcmp(part->info->name, components->items[i]) == 0 && part->package_version &&
          cfs_version_compare(part->package_version, pin->version) == 0)
        return true;
    }
  }
  return false;
}

/* 'nvidia-cuda-runtime==13.2.86.*' for each component, quoted for a shell. Components that the release has
 * no pin for are left out; the caller sees that by an empty result. */
static char *pinned(const cfs_release_info *release, const cfs_strings *components)
{
  cleanup_strings cfs_strings words = {0};
  for (size_t i = 0; i < components->count; i++) {
    const struct cfs_pin *pin = cfs_release_pin(release, components->items[i]);
    if (pin)
      cfs_strings_take(&words, cfs_format("'%s==%s.*'", pin->wheel, pin->version));
  }
  return cfs_strings_join(&words, " ");
}

static char *apt_packages(const cfs_tables *tables, const char *release, const cfs_strings *components)
{
  cleanup_strings cfs_strings words = {0};
  cleanup_free char *suffix = dashed(release);
  for (size_t i = 0; i < components->count; i++) {
    const cfs_component_info *info = cfs_tables_component(tables, components->items[i]);
    for (size_t j = 0; info && j < info->debs.count; j++)
      cfs_strings_take(&words, cfs_format("%s-%s", info->debs.items[j], suffix));
  }
  return cfs_strings_join(&words, " ");
}

/* A folder that pip filled with --target replaces what it holds as a whole, so everything that belongs
 * there is named again at the release's versions. */
static void advise_target_folder(const cfs_inventory *source, const cfs_release_info *release,
                                 const cfs_strings *components, cfs_strings *fix)
{
  cleanup_strings cfs_strings all = {0};
  for (size_t i = 0; i < source->n_parts; i++)
    if (!cfs_strings_has(&all, source->parts[i].info->name))
      cfs_strings_add(&all, source->parts[i].info->name);
  for (size_t i = 0; i < components->count; i++)
    if (!cfs_strings_has(&all, components->items[i]))
      cfs_strings_add(&all, components->items[i]);
  cleanup_free char *pins = pinned(release, &all);
  cleanup_free char *path = cfs_shell_quote(source->path);
  cfs_strings_take(fix, cfs_format("python3 -m pip install --target %s --upgrade --no-deps %s", path, pins));
}

static void advise_new_environment(const cfs_release_info *release, const cfs_strings *components, cfs_strings *fix)
{
  cleanup_free char *pins = pinned(release, components);
  if (!*pins)
    return;
  cfs_strings_take(fix, cfs_format("python3 -m venv \"$HOME/.local/share/cudafs/cuda-%s\" && "
                                   "\"$HOME/.local/share/cudafs/cuda-%s/bin/python\" -m pip install --no-deps %s",
                                   release->release, release->release, pins));
  cfs_strings_take(fix, cfs_format("# then add \"$HOME/.local/share/cudafs/cuda-%s\" (written out) to \"sources\"",
                                   release->release));
}

static void advise_environment(const cfs_inventory *source, const cfs_release_info *release,
                               const cfs_strings *components, const char *pins, cfs_strings *fix)
{
  cleanup_free char *python = cfs_shell_quote(source->python);
  bool uv = source->installer && strcmp(source->installer, "uv") == 0;
  bool force = must_force(source, release, components);
  if (uv)
    cfs_strings_take(
        fix, cfs_format("uv pip install --python %s %s--no-deps %s", python, force ? "--reinstall " : "", pins));
  else
    cfs_strings_take(fix,
                     cfs_format("%s -m pip install %s--no-deps %s", python, force ? "--force-reinstall " : "", pins));
}

void cfs_advice_install(const cfs_tables *tables, const cfs_inventory *source, const char *release,
                        const cfs_strings *components, cfs_strings *fix)
{
  const cfs_release_info *info = cfs_tables_release(tables, release);
  if (source && source->kind == CFS_SOURCE_TOOLKIT) {
    cleanup_free char *packages = apt_packages(tables, release, components);
    if (*packages && cfs_has_prefix(source->path, "/usr/local/cuda"))
      cfs_strings_take(fix, cfs_format("apt-get install --reinstall %s", packages));
  }
  if (!info)
    return;
  cleanup_free char *pins = pinned(info, components);
  if (!*pins)
    return;
  if (!source || source->kind != CFS_SOURCE_SITE_PACKAGES)
    advise_new_environment(info, components, fix);
  else if (source->python)
    advise_environment(source, info, components, pins, fix);
  else
    advise_target_folder(source, info, components, fix);
}

void cfs_advice_reinstall(const cfs_inventory *source, const char *package, const char *version, cfs_strings *fix)
{
  cleanup_free char *python = source->python ? cfs_shell_quote(source->python) : NULL;
  cleanup_free char *pin = cfs_format("%s==%s", package, version), *word = cfs_shell_quote(pin);
  if (!python)
    cfs_strings_take(fix, cfs_format("# reinstall %s %s into %s", package, version, source->path));
  else if (source->installer && strcmp(source->installer, "uv") == 0)
    cfs_strings_take(fix, cfs_format("uv pip install --python %s --reinstall --no-deps %s", python, word));
  else
    cfs_strings_take(fix, cfs_format("%s -m pip install --force-reinstall --no-deps %s", python, word));
}
