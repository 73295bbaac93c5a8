/* SPDX-License-Identifier: MIT */
/* Where the files that a compiler read came from. A stray /usr/local/include or a library in the linker's
 * default path satisfies a name silently; the build works here and nowhere else. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/verify_private.h"

enum { DEPFILE_LIMIT = 16 << 20 };

static bool is_below(const char *path, const char *root)
{
  size_t n = strlen(root);
  return strncmp(path, root, n) == 0 && path[n] == '/';
}

/* gcc and ld name files by many spellings: real paths alone can be compared. */
static bool comes_from(const char *root, const char *path, char **ret_real)
{
  char *real = realpath(path, NULL);
  *ret_real = real ? real : cfs_strdup(path);
  return is_below(*ret_real, root);
}

/* Names that only CUDA has, for headers that the toolkit itself lacks. */
static bool is_cuda_header(const char *path)
{
  static const char *const patterns[] = {
      "*/cuda*.h",        "*/cuda*.hpp",     "*/crt/host_*.h",        "*/cub/*",   "*/nvtx3/*", "*/thrust/*",
      "*/cuda/std/*",     "*/nv/target",     "*/cooperative_groups*", "*/nvrtc.h", "*/nvml.h",  "*/curand*.h",
      "*/vector_types.h", "*/driver_types.h"};
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
    if (fnmatch(patterns[i], path, 0) == 0)
      return true;
  return false;
}

/* Does the toolkit have a header of that name, by any tail of the path? */
static bool has_header(const char *root, const char *path)
{
  static const char *const folders[] = {"include", "include/cccl"};
  for (const char *tail = path; (tail = strchr(tail, '/'));) {
    tail++;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
      cleanup_free char *own = cfs_format("%s/%s/%s", root, folders[i], tail);
      if (*tail && cfs_path_is_file(own))
        return true;
    }
  }
  return false;
}

char *cfs_origin_of_headers(const char *root, const char *depfile)
{
  cleanup_free char *text = NULL, *top = realpath(root, NULL);
  if (!top || cfs_file_read(depfile, DEPFILE_LIMIT, &text, NULL) < 0)
    return cfs_strdup("the compiler wrote no list of its headers");
  cleanup_strings cfs_strings words = {0};
  cfs_strings_split(&words, text, " \\\n\t");
  for (size_t i = 0; i < words.count; i++) {
    const char *path = words.items[i];
    cleanup_free char *real = NULL;
    if (path[0] == '/' && !comes_from(top, path, &real) && (is_cuda_header(real) || has_header(root, real)))
      return cfs_format("shadowed by %s", real);
  }
  return NULL;
}

/* "path", "path(member)", "(path)member": the file of one line of the linker's trace. */
static char *traced_file(const char *line)
{
  const char *start = line + strspn(line, " (");
  return *start == '/' ? cfs_strndup(start, strcspn(start, "()\n")) : NULL;
}

static bool has_library(const char *root, const char *name)
{
  static const char *const folders[] = {"lib64", "lib", "lib64/stubs", "lib/stubs"};
  for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
    cleanup_free char *own = cfs_format("%s/%s/%s", root, folders[i], name);
    if (cfs_path_exists(own))
      return true;
  }
  return false;
}

static bool is_cuda_library(const char *name)
{
  return cfs_has_prefix(name, "libcuda") || cfs_has_prefix(name, "libnvrtc") || cfs_has_prefix(name, "libnvidia-ml");
}

char *cfs_origin_of_libraries(const char *root, const char *trace)
{
  cleanup_free char *top = realpath(root, NULL);
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, trace, "\n");
  for (size_t i = 0; top && i < lines.count; i++) {
    cleanup_free char *path = traced_file(lines.items[i]), *real = NULL;
    if (!path || comes_from(top, path, &real))
      continue;
    const char *slash = strrchr(path, '/');
    if (is_cuda_library(slash + 1) || has_library(root, slash + 1))
      return cfs_format("shadowed by %s", real);
  }
  return NULL;
}

static void read_needed(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, cfs_strings *ret)
{
  Elf_Data *data = elf_getdata(section, NULL);
  size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
  for (size_t i = 0; i < count; i++) {
    GElf_Dyn entry;
    if (!gelf_getdyn(data, (int)i, &entry) || entry.d_tag != DT_NEEDED)
      continue;
    const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
    if (name)
      cfs_strings_add(ret, name);
  }
}

int cfs_origin_needed(const char *path, cfs_strings *ret)
{
  cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  if (!elf)
    return -ENOEXEC;
  for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
      read_needed(elf, section, &header, ret);
  }
  elf_end(elf);
  return 0;
}
