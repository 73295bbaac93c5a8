/* SPDX-License-Identifier: MIT */
#include "overlays/identify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/elf.h"
#include "overlays/header.h"

static char *read_macros(const struct cfs_identify *how, const char *path)
{
  size_t n = how->macros.count;
  cleanup_free struct cfs_macro *macros = cfs_zalloc(n * sizeof(*macros));
  for (size_t i = 0; i < n; i++)
    macros[i].name = how->macros.items[i];
  if (cfs_header_macros(path, macros, n, NULL) < 0)
    return NULL;
  cleanup_free long *values = cfs_zalloc(n * sizeof(*values));
  for (size_t i = 0; i < n; i++) {
    if (!macros[i].found)
      return NULL;
    values[i] = macros[i].value;
  }
  return cfs_identify_version(how, values, n);
}

/* A tool of the compiler that is cut off or no program at all would fail far from here. */
static void report_damaged(const cfs_part *part, const char *path, int error, cfs_problems *problems)
{
  cfs_problem *p = cfs_problems_add(problems, "component-missing", CFS_PROBLEM, part->info->name, "%s is damaged: %s",
                                    path, error == -ENOEXEC ? "it is no program" : "the ELF file is not complete");
  cfs_strings_take(&p->fix, part->package ? cfs_format("# reinstall %s %s", part->package, part->package_version)
                                          : cfs_format("# install the toolkit that it belongs to again"));
}

static char *read_content(const cfs_part *part, const struct cfs_identify *how, const char *path,
                          cfs_problems *problems)
{
  char *version = NULL;
  if (how->kind == CFS_IDENTIFY_MACROS)
    return read_macros(how, path);
  if (how->kind != CFS_IDENTIFY_TOOL)
    return NULL;
  int r = cfs_elf_tool_version(path, &version, NULL, NULL);
  if (part->info->unit && (r == -ENOEXEC || r == -EBADMSG))
    report_damaged(part, path, r, problems);
  return r < 0 ? NULL : version;
}

/* One file of a part that says another release than the rest: somebody copied a tool over it, or two
 * packages wrote to the same place. */
static void report_split(const cfs_part *part, const cfs_file *file, const char *content, cfs_problems *problems)
{
  const char *code = part->info->unit ? "compiler-unit-split" : "record-mismatch";
  cfs_problem *p =
      cfs_problems_add(problems, code, CFS_PROBLEM, part->info->name, "%s is version %s but the rest of %s is %s",
                       file->path, content, part->package ? part->package : part->info->name, part->content);
  if (part->package)
    cfs_strings_take(&p->fix, cfs_format("# reinstall %s %s", part->package, part->package_version));
}

static void read_identities(cfs_part *part, cfs_problems *problems)
{
  for (size_t i = 0; i < part->info->n_identify; i++) {
    const struct cfs_identify *how = &part->info->identify[i];
    const cfs_file *file = how->file ? cfs_part_file(part, how->file) : NULL;
    if (!file)
      continue;
    cleanup_free char *content = read_content(part, how, file->path, problems);
    if (!content)
      continue;
    if (!part->content) {
      part->content = TAKE_PTR(content);
    } else if (how->kind == CFS_IDENTIFY_TOOL) {
      cleanup_free char *release = cfs_version_release(part->content);
      if (release && !cfs_version_in_release(content, release))
        report_split(part, file, content, problems);
    }
  }
}

/* A component whose own version is the CUDA release: the tools carry it, and the runtime's macro is it. */
static bool content_is_release(const cfs_component_info *info)
{
  if (info->unit || info->runtime)
    return true;
  for (size_t i = 0; i < info->n_identify; i++)
    if (info->identify[i].kind == CFS_IDENTIFY_TOOL)
      return true;
  return false;
}

const char *cfs_identify_release_by_pins(const cfs_tables *tables, const char *component, const char *version)
{
  for (size_t i = tables->n_releases; i-- > 0;) {
    const cfs_release_info *r = &tables->releases[i];
    const struct cfs_pin *pin = cfs_release_pin(r, component);
    if (pin && pin->exact && cfs_version_compare(pin->version, version) == 0)
      return r->release;
  }
  return NULL;
}

static char *find_release(const cfs_part *part, const cfs_tables *tables)
{
  if (part->content && content_is_release(part->info))
    return cfs_version_release(part->content);
  if (!part->version)
    return NULL;
  const char *by_pins = cfs_identify_release_by_pins(tables, part->info->name, part->version);
  if (by_pins)
    return cfs_strdup(by_pins);
  /* Packages of the toolkit proper are numbered by the release; math libraries and CCCL are not, so
   * their number is believed only when it names a release that exists. */
  cleanup_free char *release = cfs_version_release(part->version);
  bool numbered = part->info->unit || part->info->runtime || cfs_has_prefix(part->info->name, "cuda_");
  return release && numbered && cfs_tables_release(tables, release) ? TAKE_PTR(release) : NULL;
}

static void check_package(const cfs_part *part, cfs_problems *problems)
{
  if (!part->content || !part->package_version || !content_is_release(part->info))
    return;
  cleanup_free char *content = cfs_version_release(part->content);
  if (!content || cfs_version_in_release(part->package_version, content))
    return;
  cfs_problem *p = cfs_problems_add(problems, "record-mismatch", CFS_WARNING, part->info->name,
                                    "%s says it is %s, but its files are of CUDA %s; the files are believed",
                                    part->package, part->package_version, content);
  cfs_strings_take(&p->fix, cfs_format("# reinstall %s %s", part->package, part->package_version));
}

void cfs_identify_part(cfs_part *part, const cfs_tables *tables, cfs_problems *problems)
{
  read_identities(part, problems);
  if (!part->version && part->package_version)
    part->version = cfs_strdup(part->package_version);
  if (!part->version && part->content)
    part->version = cfs_strdup(part->content);
  part->release = find_release(part, tables);
  check_package(part, problems);
}
