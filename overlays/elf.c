/* SPDX-License-Identifier: MIT */
#include "overlays/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum {
  CHUNK = 64 * 1024,
  OVERLAP = 256, /* no pattern looked for is longer */
  BUILD_GAP = 16,
  CUDART_OLDEST = 11000,
  CUDART_LIMIT = 20000,
};

struct image {
  int fd;
  Elf *elf;
  GElf_Ehdr header;
  uint64_t size;
};

static void image_done(struct image *image)
{
  if (image->elf)
    elf_end(image->elf);
  if (image->fd >= 0)
    close(image->fd);
}
#define cleanup_image __attribute__((cleanup(image_done)))

static int image_fail(int errnum, const char *path, cfs_error **err)
{
  const char *why = errnum == ENOEXEC   ? "it is not an ELF file"
                    : errnum == EBADMSG ? "it is a truncated or damaged ELF file"
                                        : strerror(errnum);
  const char *fix = errnum == EBADMSG ? "reinstall the package it came from" : NULL;
  return cfs_error_set(err, CFS_FAILED, errnum, path, fix, "%s", why);
}

/* libelf quietly sees no sections when the table lies outside the file; a truncated download must
 * be told from a stripped file. */
static bool sections_in_file(const struct image *image)
{
  const GElf_Ehdr *h = &image->header;
  uint64_t table = (uint64_t)h->e_shnum * h->e_shentsize;
  return h->e_shoff <= image->size && table <= image->size - h->e_shoff;
}

static int image_load(struct image *image)
{
  struct stat st;
  if (fstat(image->fd, &st) < 0)
    return -errno;
  if (!S_ISREG(st.st_mode))
    return S_ISDIR(st.st_mode) ? -EISDIR : -ENOEXEC;
  image->size = (uint64_t)st.st_size;
  char magic[SELFMAG];
  if (pread(image->fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) != 0)
    return -ENOEXEC;
  if (elf_version(EV_CURRENT) == EV_NONE)
    return -ENOSYS;
  /* ELF_C_READ, not the mmap form: an unpacking pip may truncate the file under us. */
  image->elf = elf_begin(image->fd, ELF_C_READ, NULL);
  if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &image->header))
    return -EBADMSG;
  return sections_in_file(image) ? 0 : -EBADMSG;
}

static int image_open(struct image *image, const char *path)
{
  image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  return image->fd < 0 ? -errno : image_load(image);
}

/* Looks at what begins in the first limit of size bytes of data: each place of a section is a beginning
 * once, with at least OVERLAP bytes behind it unless the section ends. Returns whether to stop. */
typedef bool (*find_fn)(const unsigned char *data, size_t limit, size_t size, void *state);

static int scan_section(const struct image *image, const GElf_Shdr *section, find_fn find, void *state)
{
  unsigned char buffer[CHUNK];
  uint64_t at = section->sh_offset, end = at + section->sh_size;
  size_t have = 0;
  while (at < end) {
    size_t want = CHUNK - have < end - at ? CHUNK - have : (size_t)(end - at);
    ssize_t n = pread(image->fd, buffer + have, want, (off_t)at);
    if (n <= 0)
      return n < 0 ? -errno : -EBADMSG;
    at += (uint64_t)n;
    have += (size_t)n;
    size_t kept = at == end ? 0 : have < OVERLAP ? have : OVERLAP;
    if (find(buffer, have - kept, have, state))
      return 1;
    memmove(buffer, buffer + have - kept, kept);
    have = kept;
  }
  return 0;
}

/* Scans the program's sections that are or are not executable. Returns 1 when find ended the search. */
static int scan_sections(const struct image *image, bool executable, find_fn find, void *state)
{
  /* Sections of a sane file do not overlap, so all of them together are no larger than the file:
   * this bounds what a file with 65,000 sections over the same bytes can make us read. */
  uint64_t budget = image->size;
  for (Elf_Scn *s = elf_nextscn(image->elf, NULL); s; s = elf_nextscn(image->elf, s)) {
    GElf_Shdr section;
    if (!gelf_getshdr(s, &section))
      return -EBADMSG;
    if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR) == executable)
      continue;
    if (section.sh_offset > image->size || section.sh_size > image->size - section.sh_offset ||
        section.sh_size > budget)
      return -EBADMSG;
    budget -= section.sh_size;
    int r = scan_section(image, &section, find, state);
    if (r)
      return r;
  }
  return 0;
}

struct version_search {
  char *version;
  char *build;
};

static size_t take_digits(const char **p, const char *end)
{
  const char *start = *p;
  while (*p < end && **p >= '0' && **p <= '9')
    (*p)++;
  return (size_t)(*p - start);
}

static bool take_text(const char **p, const char *end, const char *text)
{
  size_t n = strlen(text);
  if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
    return false;
  *p += n;
  return true;
}

/* "13.2" at *p; true and *p behind it. */
static bool take_release(const char **p, const char *end)
{
  return take_digits(p, end) && take_text(p, end, ".") && take_digits(p, end);
}

/* "cuda_13.2.r13.2/compiler.37668154_0" from p, or NULL. */
static char *parse_build(const char *p, const char *end)
{
  const char *start = p;
  if (!take_text(&p, end, "cuda_") || !take_release(&p, end) || !take_text(&p, end, ".r") || !take_release(&p, end) ||
      !take_text(&p, end, "/compiler.") || !take_digits(&p, end) || !take_text(&p, end, "_") || !take_digits(&p, end))
    return NULL;
  return cfs_strndup(start, (size_t)(p - start));
}

/* *at stands behind "Cuda compilation tools, release ". The release and the version must agree, and the
 * text must end there: PTX embedded in libraries holds cut-off copies ("release 12.9, V"). */
static char *parse_version(const char **at, const char *end)
{
  const char *p = *at, *release = p;
  if (!take_release(&p, end))
    return NULL;
  size_t n = (size_t)(p - release);
  if (!take_text(&p, end, ", V"))
    return NULL;
  const char *version = p;
  if (!take_release(&p, end) || (size_t)(p - version) != n || memcmp(version, release, n) != 0)
    return NULL;
  if (!take_text(&p, end, ".") || !take_digits(&p, end))
    return NULL;
  if (p == end || (*p != '\0' && *p != ',' && *p != '\n'))
    return NULL;
  *at = p;
  return cfs_strndup(version, (size_t)(p - version));
}

/* The build follows the version after a newline, a comma or padding; where it does not (libnvJitLink,
 * 12.x libnvrtc) it lies megabytes away and is not worth reading for. */
static char *find_build(const char *p, const char *end)
{
  p = memchr(p, 'B', (size_t)(end - p < BUILD_GAP ? end - p : BUILD_GAP));
  if (!p || !take_text(&p, end, "Build "))
    return NULL;
  return parse_build(p, end);
}

static bool find_version(const unsigned char *data, size_t limit, size_t size, void *state)
{
  static const char sentence[] = "Cuda compilation tools, release ";
  struct version_search *search = state;
  const char *p = (const char *)data, *end = p + size, *last = p + limit;
  while (p < last && (p = memmem(p, (size_t)(end - p), sentence, sizeof(sentence) - 1)) && p < last) {
    p += sizeof(sentence) - 1;
    search->version = parse_version(&p, end);
    if (!search->version)
      continue;
    search->build = find_build(p, end);
    return true;
  }
  return false;
}

int cfs_elf_tool_version(const char *path, char **ret_version, char **ret_build, cfs_error **err)
{
  cleanup_image struct image image = {.fd = -1};
  struct version_search search = {0};
  int r = image_open(&image, path);
  if (r == 0)
    r = scan_sections(&image, false, find_version, &search);
  if (r < 0)
    return image_fail(-r, path, err);
  if (!search.version)
    return cfs_error_set(err, CFS_FAILED, ENODATA, path, NULL, "it does not say which CUDA release it is of");
  *ret_version = search.version;
  if (ret_build)
    *ret_build = search.build;
  else
    free(search.build);
  return 0;
}

static int soname_of(struct image *image, Elf_Scn *scn, const GElf_Shdr *section, char **ret_soname)
{
  Elf_Data *data = elf_getdata(scn, NULL);
  if (!data)
    return -EBADMSG;
  size_t entry = gelf_fsize(image->elf, ELF_T_DYN, 1, EV_CURRENT);
  size_t count = entry ? data->d_size / entry : 0;
  for (size_t i = 0; i < count && i < INT_MAX; i++) {
    GElf_Dyn dyn;
    if (!gelf_getdyn(data, (int)i, &dyn))
      return -EBADMSG;
    if (dyn.d_tag == DT_NULL)
      break;
    if (dyn.d_tag != DT_SONAME)
      continue;
    const char *name = elf_strptr(image->elf, section->sh_link, dyn.d_un.d_val);
    if (!name)
      return -EBADMSG;
    *ret_soname = cfs_strdup(name);
    return 0;
  }
  return -ENODATA;
}

int cfs_elf_soname(const char *path, char **ret_soname)
{
  cleanup_image struct image image = {.fd = -1};
  int r = image_open(&image, path);
  if (r < 0)
    return r;
  for (Elf_Scn *s = elf_nextscn(image.elf, NULL); s; s = elf_nextscn(image.elf, s)) {
    GElf_Shdr section;
    if (!gelf_getshdr(s, &section))
      return -EBADMSG;
    if (section.sh_type == SHT_DYNAMIC)
      return soname_of(&image, s, &section, ret_soname);
  }
  return -ENODATA;
}

int cfs_elf_machine(const char *path, char **ret_machine)
{
  cleanup_image struct image image = {.fd = -1};
  int r = image_open(&image, path);
  if (r < 0)
    return r;
  switch (image.header.e_machine) {
  case EM_X86_64:
    *ret_machine = cfs_strdup("x86_64");
    break;
  case EM_AARCH64:
    *ret_machine = cfs_strdup("aarch64");
    break;
  default:
    *ret_machine = cfs_format("machine-%u", image.header.e_machine);
  }
  return 0;
}

struct cudart_search {
  int version;
  bool ambiguous;
};

/* movl $imm32,(%rdi): how the runtime hands out its version. In eight releases' libraries every such
 * constant that looks like a version is the version. */
static bool find_cudart(const unsigned char *data, size_t limit, size_t size, void *state)
{
  struct cudart_search *search = state;
  const unsigned char *p = data, *end = data + size;
  while ((p = memmem(p, (size_t)(end - p), "\xc7\x07", 2)) && p < data + limit && end - p >= 6) {
    unsigned value = p[2] | (unsigned)p[3] << 8 | (unsigned)p[4] << 16 | (unsigned)p[5] << 24;
    p += 2;
    if (value < CUDART_OLDEST || value >= CUDART_LIMIT || value % 10)
      continue;
    search->ambiguous = search->version && search->version != (int)value;
    if (search->ambiguous)
      return true;
    search->version = (int)value;
  }
  return false;
}

int cfs_elf_cudart_version(const char *path, int *ret_version)
{
  cleanup_image struct image image = {.fd = -1};
  struct cudart_search search = {0};
  int r = image_open(&image, path);
  if (r == 0 && image.header.e_machine != EM_X86_64)
    return -ENODATA;
  if (r == 0)
    r = scan_sections(&image, true, find_cudart, &search);
  if (r < 0)
    return r;
  if (!search.version || search.ambiguous)
    return -ENODATA;
  *ret_version = search.version;
  return 0;
}
