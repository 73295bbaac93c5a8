/* SPDX-License-Identifier: MIT */
#include "overlays/stub_elf.h"

#include <errno.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

/* Everything is laid out by hand (ELF_F_LAYOUT), in this order:
 *   headers, .hash, .gnu.hash, .dynsym, .dynstr | .text | .dynamic | .shstrtab, section headers
 * with a segment for each of the first three. Linkers go by the section headers (without them bfd and
 * gold fail, lld finds no symbols), the dynamic loader by the segments. */

enum section {
  S_NULL,
  S_HASH,
  S_GNU_HASH,
  S_DYNSYM,
  S_DYNSTR,
  S_TEXT,
  S_DYNAMIC,
  S_SHSTRTAB,
  N_SECTIONS,
};

enum segment {
  P_HEADERS, /* everything before .text */
  P_TEXT,
  P_DATA, /* .dynamic: the loader relocates it in place */
  P_DYNAMIC,
  P_STACK,
  N_SEGMENTS,
};

enum {
  FUNCTION_SIZE = 8, /* of both machines' code */
  SYMBOLS_MAX = 65536,
  BLOOM_SHIFT = 6,
  N_DYNAMIC = 8,
};

static const char section_names[] = "\0.hash\0.gnu.hash\0.dynsym\0.dynstr\0.text\0.dynamic\0.shstrtab";

static const struct section_shape {
  uint32_t name; /* in section_names */
  uint32_t type;
  uint64_t flags;
  enum section link;
  Elf_Type data;
  size_t entry;
  size_t align;
} section_shapes[N_SECTIONS] = {
    [S_HASH] = {1, SHT_HASH, SHF_ALLOC, S_DYNSYM, ELF_T_WORD, 4, 8},
    [S_GNU_HASH] = {7, SHT_GNU_HASH, SHF_ALLOC, S_DYNSYM, ELF_T_GNUHASH, 0, 8},
    [S_DYNSYM] = {17, SHT_DYNSYM, SHF_ALLOC, S_DYNSTR, ELF_T_SYM, sizeof(Elf64_Sym), 8},
    [S_DYNSTR] = {25, SHT_STRTAB, SHF_ALLOC, S_NULL, ELF_T_BYTE, 0, 1},
    [S_TEXT] = {33, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, S_NULL, ELF_T_BYTE, 0, 16},
    [S_DYNAMIC] = {39, SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, S_DYNSTR, ELF_T_DYN, sizeof(Elf64_Dyn), 8},
    [S_SHSTRTAB] = {48, SHT_STRTAB, 0, S_NULL, ELF_T_BYTE, 0, 1},
};

struct content {
  void *data;
  size_t size;
  uint64_t offset;
  uint64_t address;
};

struct writer {
  const struct cfs_stub *stub;
  size_t count;       /* of functions */
  uint64_t page;      /* the largest that the machine may have */
  uint32_t n_buckets; /* of both hash tables */
  struct symbol *symbols;
  struct content sections[N_SECTIONS];
  Elf64_Phdr segments[N_SEGMENTS];
};

struct symbol {
  const char *name;
  uint32_t hash;   /* the GNU one */
  uint32_t bucket; /* .gnu.hash wants .dynsym in the order of its buckets */
  uint32_t string; /* offset in .dynstr */
};

static void writer_done(struct writer *w)
{
  for (int i = 0; i < N_SECTIONS; i++)
    free(w->sections[i].data);
  free(w->symbols);
}
#define cleanup_writer __attribute__((cleanup(writer_done)))

void cfs_stub_done(struct cfs_stub *stub)
{
  cfs_strings_done(&stub->pointers);
  cfs_strings_done(&stub->symbols);
}

static uint64_t align_up(uint64_t n, uint64_t to)
{
  return (n + to - 1) / to * to;
}

static void *section_new(struct writer *w, enum section which, size_t size)
{
  w->sections[which].size = size;
  return w->sections[which].data = cfs_zalloc(size);
}

static uint32_t gnu_hash(const char *name)
{
  uint32_t h = 5381;
  for (const unsigned char *p = (const unsigned char *)name; *p; p++)
    h = h * 33 + *p;
  return h;
}

static int compare_symbols(const void *pa, const void *pb)
{
  const struct symbol *a = pa, *b = pb;
  if (a->bucket != b->bucket)
    return a->bucket < b->bucket ? -1 : 1;
  return strcmp(a->name, b->name);
}

static void sort_symbols(struct writer *w)
{
  w->symbols = cfs_zalloc(w->count * sizeof(*w->symbols));
  for (size_t i = 0; i < w->count; i++) {
    struct symbol *s = &w->symbols[i];
    s->name = w->stub->symbols.items[i];
    s->hash = gnu_hash(s->name);
    s->bucket = s->hash % w->n_buckets;
  }
  qsort(w->symbols, w->count, sizeof(*w->symbols), compare_symbols);
}

/* The SONAME stands first, at offset 1. */
static void make_strings(struct writer *w)
{
  size_t size = 1 + strlen(w->stub->soname) + 1;
  for (size_t i = 0; i < w->count; i++) {
    w->symbols[i].string = (uint32_t)size;
    size += strlen(w->symbols[i].name) + 1;
  }
  char *strings = section_new(w, S_DYNSTR, size);
  memcpy(strings + 1, w->stub->soname, strlen(w->stub->soname) + 1);
  for (size_t i = 0; i < w->count; i++)
    memcpy(strings + w->symbols[i].string, w->symbols[i].name, strlen(w->symbols[i].name) + 1);
}

static void make_hash(struct writer *w)
{
  uint32_t *table = section_new(w, S_HASH, (2 + w->n_buckets + w->count + 1) * sizeof(*table));
  uint32_t *buckets = table + 2, *chains = buckets + w->n_buckets;
  table[0] = w->n_buckets;
  table[1] = (uint32_t)w->count + 1;
  for (size_t i = w->count; i-- > 0;) {
    size_t bucket = elf_hash(w->symbols[i].name) % w->n_buckets;
    chains[i + 1] = buckets[bucket];
    buckets[bucket] = (uint32_t)i + 1;
  }
}

static void make_gnu_hash(struct writer *w)
{
  uint32_t n_bloom = 1;
  while (n_bloom * 64 < w->count * 8)
    n_bloom *= 2;
  size_t size = 4 * sizeof(uint32_t) + n_bloom * sizeof(uint64_t) + (w->n_buckets + w->count) * sizeof(uint32_t);
  uint32_t *table = section_new(w, S_GNU_HASH, size);
  uint64_t *bloom = (uint64_t *)(table + 4);
  uint32_t *buckets = (uint32_t *)(bloom + n_bloom), *chains = buckets + w->n_buckets;
  memcpy(table, (uint32_t[]){w->n_buckets, 1, n_bloom, BLOOM_SHIFT}, 4 * sizeof(*table));
  for (size_t i = 0; i < w->count; i++) {
    const struct symbol *s = &w->symbols[i];
    bool last = i + 1 == w->count || s[1].bucket != s->bucket;
    chains[i] = (s->hash & ~1U) | last;
    if (!buckets[s->bucket])
      buckets[s->bucket] = (uint32_t)i + 1;
    bloom[s->hash / 64 % n_bloom] |= UINT64_C(1) << s->hash % 64 | UINT64_C(1) << (s->hash >> BLOOM_SHIFT) % 64;
  }
}

/* Instructions are little-endian on both machines, whatever made this file. */
static void put_code(unsigned char *p, enum cfs_machine machine, unsigned short value)
{
  if (machine == CFS_MACHINE_X86_64) { /* mov $value,%eax; ret; int3; int3 */
    memcpy(p, (unsigned char[]){0xb8, value & 0xff, value >> 8, 0, 0, 0xc3, 0xcc, 0xcc}, FUNCTION_SIZE);
    return;
  }
  uint32_t mov = 0x52800000U | (uint32_t)value << 5; /* mov w0, #value; ret */
  memcpy(p, (unsigned char[]){mov & 0xff, mov >> 8 & 0xff, mov >> 16 & 0xff, mov >> 24, 0xc0, 0x03, 0x5f, 0xd6},
         FUNCTION_SIZE);
}

static void make_text(struct writer *w)
{
  unsigned char *text = section_new(w, S_TEXT, w->count * FUNCTION_SIZE);
  for (size_t i = 0; i < w->count; i++) {
    bool pointer = cfs_strings_has(&w->stub->pointers, w->symbols[i].name);
    put_code(text + i * FUNCTION_SIZE, w->stub->machine, pointer ? 0 : w->stub->status);
  }
}

static void make_symbols(struct writer *w)
{
  Elf64_Sym *table = w->sections[S_DYNSYM].data;
  for (size_t i = 0; i < w->count; i++)
    table[i + 1] = (Elf64_Sym){
        .st_name = w->symbols[i].string,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = S_TEXT,
        .st_value = w->sections[S_TEXT].address + i * FUNCTION_SIZE,
        .st_size = FUNCTION_SIZE,
    };
}

static void make_dynamic(struct writer *w)
{
  const struct content *s = w->sections;
  const Elf64_Dyn entries[N_DYNAMIC] = {
      {DT_SONAME, {1}},
      {DT_HASH, {s[S_HASH].address}},
      {DT_GNU_HASH, {s[S_GNU_HASH].address}},
      {DT_STRTAB, {s[S_DYNSTR].address}},
      {DT_SYMTAB, {s[S_DYNSYM].address}},
      {DT_STRSZ, {s[S_DYNSTR].size}},
      {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_NULL, {0}},
  };
  memcpy(w->sections[S_DYNAMIC].data, entries, sizeof(entries));
}

/* Gives the section its place. The address is the offset plus a page for each segment before: no page
 * is shared by two segments then, and the file needs no padding for pages of 64 KiB. */
static uint64_t place(struct writer *w, enum section which, uint64_t at, enum segment segment)
{
  struct content *s = &w->sections[which];
  s->offset = align_up(at, section_shapes[which].align);
  s->address = s->offset + segment * w->page;
  return s->offset + s->size;
}

static void set_segment(struct writer *w, enum segment which, unsigned flags, uint64_t from, uint64_t to)
{
  uint64_t address = from + which * w->page;
  w->segments[which] = (Elf64_Phdr){
      .p_type = PT_LOAD,
      .p_flags = flags,
      .p_offset = from,
      .p_vaddr = address,
      .p_paddr = address,
      .p_filesz = to - from,
      .p_memsz = to - from,
      .p_align = w->page,
  };
}

/* Returns where the section headers go. */
static uint64_t lay_out(struct writer *w)
{
  struct content *s = w->sections;
  uint64_t end = sizeof(Elf64_Ehdr) + N_SEGMENTS * sizeof(Elf64_Phdr);
  for (enum section i = S_HASH; i <= S_DYNSTR; i++)
    end = place(w, i, end, P_HEADERS);
  set_segment(w, P_HEADERS, PF_R, 0, end);
  end = place(w, S_TEXT, end, P_TEXT);
  set_segment(w, P_TEXT, PF_R | PF_X, s[S_TEXT].offset, end);
  end = place(w, S_DYNAMIC, end, P_DATA);
  set_segment(w, P_DATA, PF_R | PF_W, s[S_DYNAMIC].offset, end);
  w->segments[P_DYNAMIC] = w->segments[P_DATA];
  w->segments[P_DYNAMIC].p_type = PT_DYNAMIC;
  w->segments[P_DYNAMIC].p_align = section_shapes[S_DYNAMIC].align;
  w->segments[P_STACK] = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
  end = place(w, S_SHSTRTAB, end, P_HEADERS);
  s[S_SHSTRTAB].address = 0;
  return align_up(end, sizeof(uint64_t));
}

static int put_section(Elf *elf, enum section which, const struct content *content)
{
  const struct section_shape *shape = &section_shapes[which];
  Elf_Scn *scn = elf_newscn(elf);
  Elf_Data *data = scn ? elf_newdata(scn) : NULL;
  Elf64_Shdr *header = scn ? elf64_getshdr(scn) : NULL;
  if (!data || !header)
    return -ENOMEM;
  data->d_buf = content->data;
  data->d_size = content->size;
  data->d_type = shape->data;
  data->d_align = shape->align;
  *header = (Elf64_Shdr){
      .sh_name = shape->name,
      .sh_type = shape->type,
      .sh_flags = shape->flags,
      .sh_addr = content->address,
      .sh_offset = content->offset,
      .sh_size = content->size,
      .sh_link = shape->link,
      .sh_info = which == S_DYNSYM ? 1 : 0, /* the first symbol that is not local */
      .sh_addralign = shape->align,
      .sh_entsize = shape->entry,
  };
  return 0;
}

static int put_headers(const struct writer *w, Elf *elf, uint64_t section_headers)
{
  Elf64_Ehdr *header = elf64_newehdr(elf);
  Elf64_Phdr *segments = header ? elf64_newphdr(elf, N_SEGMENTS) : NULL;
  if (!segments)
    return -ENOMEM;
  header->e_ident[EI_DATA] = ELFDATA2LSB;
  header->e_type = ET_DYN;
  header->e_machine = w->stub->machine == CFS_MACHINE_X86_64 ? EM_X86_64 : EM_AARCH64;
  header->e_version = EV_CURRENT;
  header->e_phoff = sizeof(*header);
  header->e_shoff = section_headers;
  header->e_shstrndx = S_SHSTRTAB;
  memcpy(segments, w->segments, sizeof(w->segments));
  return 0;
}

static int put_all(const struct writer *w, Elf *elf, uint64_t section_headers)
{
  elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
  int r = put_headers(w, elf, section_headers);
  for (enum section i = S_HASH; i < N_SECTIONS && r == 0; i++)
    r = put_section(elf, i, &w->sections[i]);
  if (r == 0 && elf_update(elf, ELF_C_WRITE) < 0)
    r = -EIO;
  return r;
}

/* libelf writes to descriptors only. */
static int write_elf(const struct writer *w, uint64_t section_headers, void **ret_elf, size_t *ret_size)
{
  cleanup_close int fd = memfd_create("cudafs-stub", MFD_CLOEXEC);
  if (fd < 0)
    return -errno;
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
  if (!elf)
    return -ENOMEM;
  int r = put_all(w, elf, section_headers);
  elf_end(elf);
  if (r < 0)
    return r;
  size_t size = section_headers + N_SECTIONS * sizeof(Elf64_Shdr);
  cleanup_free char *data = cfs_zalloc(size);
  if (pread(fd, data, size, 0) != (ssize_t)size)
    return -EIO;
  *ret_elf = TAKE_PTR(data);
  *ret_size = size;
  return 0;
}

static void make_sections(struct writer *w)
{
  sort_symbols(w);
  make_hash(w);
  make_gnu_hash(w);
  make_strings(w);
  make_text(w);
  section_new(w, S_DYNSYM, (w->count + 1) * sizeof(Elf64_Sym));
  section_new(w, S_DYNAMIC, N_DYNAMIC * sizeof(Elf64_Dyn));
  memcpy(section_new(w, S_SHSTRTAB, sizeof(section_names)), section_names, sizeof(section_names));
}

int cfs_stub_write(const struct cfs_stub *stub, void **ret_elf, size_t *ret_size, cfs_error **err)
{
  size_t count = stub->symbols.count;
  if (!count || count > SYMBOLS_MAX)
    return cfs_error_set(err, CFS_FAILED, count ? E2BIG : ENODATA, stub->soname, NULL,
                         "cannot make a stub library of %zu functions", count);
  cleanup_writer struct writer w = {
      .stub = stub,
      .count = count,
      .page = stub->machine == CFS_MACHINE_X86_64 ? 4096 : 65536,
      .n_buckets = (uint32_t)(count / 2 + 1),
  };
  make_sections(&w);
  uint64_t section_headers = lay_out(&w);
  make_symbols(&w);
  make_dynamic(&w);
  int r = write_elf(&w, section_headers, ret_elf, ret_size);
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, stub->soname, NULL, "cannot write the stub library: %s", strerror(-r));
  return 0;
}
