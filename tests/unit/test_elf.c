/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "overlays/elf.h"
#include "overlays/stub_elf.h"

#define SENTENCE "Cuda compilation tools, release "

/* A file in memory, which the functions under test open by its path. */
struct file {
  int fd;
  char path[64];
};

static struct file file_new(const void *data, size_t size)
{
  struct file file = {.fd = memfd_create("test", MFD_CLOEXEC)};
  assert_true(file.fd >= 0);
  assert_int_equal(write(file.fd, data, size), (ssize_t)size);
  snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
  return file;
}

static void file_done(struct file *file)
{
  close(file->fd);
}
#define cleanup_file __attribute__((cleanup(file_done)))

/* The smallest ELF with a .text and a .rodata that hold what the test wants. */
static void make_elf(cfs_buffer *b, const void *text, size_t text_size, const void *rodata, size_t rodata_size)
{
  const uint64_t start = sizeof(Elf64_Ehdr);
  const Elf64_Shdr sections[] = {
      {.sh_type = SHT_NULL},
      {.sh_name = 1,
       .sh_type = SHT_PROGBITS,
       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
       .sh_offset = start,
       .sh_size = text_size},
      {.sh_name = 7,
       .sh_type = SHT_PROGBITS,
       .sh_flags = SHF_ALLOC,
       .sh_offset = start + text_size,
       .sh_size = rodata_size},
      {.sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = start + text_size + rodata_size, .sh_size = 25},
  };
  Elf64_Ehdr header = {
      .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_DYN,
      .e_machine = EM_X86_64,
      .e_version = EV_CURRENT,
      .e_ehsize = sizeof(header),
      .e_shentsize = sizeof(Elf64_Shdr),
      .e_shnum = 4,
      .e_shstrndx = 3,
      .e_shoff = start + text_size + rodata_size + 25,
  };
  cfs_buffer_add(b, &header, sizeof(header));
  cfs_buffer_add(b, text, text_size);
  cfs_buffer_add(b, rodata, rodata_size);
  cfs_buffer_add(b, "\0.text\0.rodata\0.shstrtab", 25);
  cfs_buffer_add(b, sections, sizeof(sections));
}

static int version_in(const char *text, size_t text_size, const char *rodata, size_t rodata_size, char **ret_version,
                      char **ret_build)
{
  cleanup_buffer cfs_buffer b = {0};
  make_elf(&b, text, text_size, rodata, rodata_size);
  cleanup_file struct file file = file_new(b.data, b.size);
  cleanup_error cfs_error *err = NULL;
  int r = cfs_elf_tool_version(file.path, ret_version, ret_build, &err);
  assert_true((r < 0) == (err != NULL));
  return r;
}

#define ASSERT_VERSION(rodata, version, build)                                    \
  do {                                                                            \
    cleanup_free char *v_ = NULL, *b_ = NULL;                                     \
    assert_int_equal(version_in("", 0, rodata, sizeof(rodata) - 1, &v_, &b_), 0); \
    assert_string_equal(v_, version);                                             \
    assert_string_equal(b_ ? b_ : "none", build);                                 \
  } while (0)

#define ASSERT_NO_VERSION(rodata)                                                         \
  do {                                                                                    \
    char *v_ = NULL;                                                                      \
    assert_int_equal(version_in("", 0, rodata, sizeof(rodata) - 1, &v_, NULL), -ENODATA); \
    assert_null(v_);                                                                      \
  } while (0)

static void test_version_in_all_its_forms(void **state)
{
  (void)state;
  ASSERT_VERSION("x\0" SENTENCE "13.2, V13.2.78\nBuild cuda_13.2.r13.2/compiler.37668154_0\0", "13.2.78",
                 "cuda_13.2.r13.2/compiler.37668154_0");
  ASSERT_VERSION(SENTENCE "13.5, V13.5.37, Build cuda_13.5.r13.5/compiler.39125733_0, Build ID: CL-1\0", "13.5.37",
                 "cuda_13.5.r13.5/compiler.39125733_0");
  ASSERT_VERSION(SENTENCE "12.8, V12.8.93\0\0Build cuda_12.8.r12.8/compiler.35583870_0\0", "12.8.93",
                 "cuda_12.8.r12.8/compiler.35583870_0");
  ASSERT_VERSION("%s " SENTENCE "13.0, V13.0.88\0\0\0\0/dvs/p4/Build", "13.0.88", "none");
}

static void test_only_the_whole_sentence_counts(void **state)
{
  (void)state;
  ASSERT_NO_VERSION("");
  ASSERT_NO_VERSION("nothing here");
  ASSERT_NO_VERSION(SENTENCE "%d.%d,\0");
  ASSERT_NO_VERSION(SENTENCE "12.9, V\0");
  ASSERT_NO_VERSION(SENTENCE "12.9, V12.8.1\0");
  ASSERT_NO_VERSION(SENTENCE "12.9, V12.9.1x\0");
  ASSERT_NO_VERSION(SENTENCE "12.9, V12.9.1");
  ASSERT_NO_VERSION(SENTENCE);
  ASSERT_VERSION(SENTENCE "%d.%d,\0" SENTENCE "12.9, V\0" SENTENCE "12.9, V12.9.86\0", "12.9.86", "none");
}

static void test_executable_sections_are_not_searched(void **state)
{
  (void)state;
  static const char text[] = SENTENCE "13.2, V13.2.78";
  char *version = NULL;
  assert_int_equal(version_in(text, sizeof(text), "x", 1, &version, NULL), -ENODATA);
}

/* Whatever the place relative to the reader's buffer. */
static void test_version_at_every_place(void **state)
{
  (void)state;
  static const char said[] = SENTENCE "13.2, V13.2.78\nBuild cuda_13.2.r13.2/compiler.37668154_0";
  const size_t size = 3 * 65536;
  cleanup_free char *rodata = cfs_zalloc(size);
  for (size_t at = 65536 - 300; at < 65536 + 300; at += 7) {
    memset(rodata, 0, size);
    memcpy(rodata + at, said, sizeof(said));
    cleanup_free char *version = NULL, *build = NULL;
    assert_int_equal(version_in("", 0, rodata, size, &version, &build), 0);
    assert_string_equal(version, "13.2.78");
    assert_string_equal(build, "cuda_13.2.r13.2/compiler.37668154_0");
  }
}

static void test_what_is_no_elf(void **state)
{
  (void)state;
  cleanup_free char *text = NULL;
  cleanup_error cfs_error *err = NULL;
  cleanup_file struct file script = file_new("#!/bin/sh\n", 10), empty = file_new("", 0);
  assert_int_equal(cfs_elf_tool_version(script.path, &text, NULL, &err), -ENOEXEC);
  assert_string_equal(err->what, script.path);
  assert_int_equal(cfs_elf_soname(empty.path, &text), -ENOEXEC);
  assert_int_equal(cfs_elf_machine("/dev/null", &text), -ENOEXEC);
  assert_int_equal(cfs_elf_machine("/", &text), -EISDIR);
  assert_int_equal(cfs_elf_soname("/nonexistent", &text), -ENOENT);
  assert_null(text);
}

static void test_truncated_elf_is_named(void **state)
{
  (void)state;
  cleanup_buffer cfs_buffer b = {0};
  make_elf(&b, "", 0, SENTENCE "13.2, V13.2.78", 47);
  for (size_t size = SELFMAG; size < b.size; size += 5) {
    cleanup_file struct file file = file_new(b.data, size);
    cleanup_error cfs_error *err = NULL;
    char *version = NULL;
    assert_int_equal(cfs_elf_tool_version(file.path, &version, NULL, &err), -EBADMSG);
    assert_string_equal(err->what, file.path);
    assert_null(version);
  }
}

static int cudart_in(const unsigned char *text, size_t size, int *ret)
{
  cleanup_buffer cfs_buffer b = {0};
  make_elf(&b, text, size, "", 0);
  cleanup_file struct file file = file_new(b.data, b.size);
  return cfs_elf_cudart_version(file.path, ret);
}

static void test_cudart_version_when_unique(void **state)
{
  (void)state;
  /* 13020 twice, beside 7 (too small) and 13021 (no version). */
  static const unsigned char one[] = {0xc7, 0x07, 0xdc, 0x32, 0, 0, 0xc7, 0x07, 7,    0,    0, 0,
                                      0xc7, 0x07, 0xdd, 0x32, 0, 0, 0xc7, 0x07, 0xdc, 0x32, 0, 0};
  static const unsigned char two[] = {0xc7, 0x07, 0xdc, 0x32, 0, 0, 0xc7, 0x07, 0xd2, 0x32, 0, 0};
  int version = 0;
  assert_int_equal(cudart_in(one, sizeof(one), &version), 0);
  assert_int_equal(version, 13020);
  assert_int_equal(cudart_in(two, sizeof(two), &version), -ENODATA);
  assert_int_equal(cudart_in(one, 5, &version), -ENODATA);
}

static void make_library(enum cfs_machine machine, void **ret, size_t *ret_size)
{
  cleanup_stub struct cfs_stub stub = {.soname = "libtest.so.7", .machine = machine, .status = 1};
  cfs_strings_add(&stub.symbols, "one");
  cfs_strings_add(&stub.symbols, "two");
  assert_int_equal(cfs_stub_write(&stub, ret, ret_size, NULL), 0);
}

static void test_soname_and_machine(void **state)
{
  (void)state;
  static const char *const names[] = {[CFS_MACHINE_X86_64] = "x86_64", [CFS_MACHINE_AARCH64] = "aarch64"};
  for (enum cfs_machine machine = CFS_MACHINE_X86_64; machine <= CFS_MACHINE_AARCH64; machine++) {
    cleanup_free void *data = NULL;
    size_t size;
    make_library(machine, &data, &size);
    cleanup_file struct file file = file_new(data, size);
    cleanup_free char *soname = NULL, *name = NULL;
    assert_int_equal(cfs_elf_soname(file.path, &soname), 0);
    assert_string_equal(soname, "libtest.so.7");
    assert_int_equal(cfs_elf_machine(file.path, &name), 0);
    assert_string_equal(name, names[machine]);
  }
}

static void test_elf_without_soname_or_known_machine(void **state)
{
  (void)state;
  cleanup_buffer cfs_buffer b = {0};
  make_elf(&b, "", 0, "", 0);
  ((Elf64_Ehdr *)(void *)b.data)->e_machine = EM_386;
  cleanup_file struct file file = file_new(b.data, b.size);
  cleanup_free char *soname = NULL, *name = NULL;
  int version;
  assert_int_equal(cfs_elf_soname(file.path, &soname), -ENODATA);
  assert_int_equal(cfs_elf_machine(file.path, &name), 0);
  assert_string_equal(name, "machine-3");
  assert_int_equal(cfs_elf_cudart_version(file.path, &version), -ENODATA);
}

static void ask_everything(const char *path)
{
  cleanup_free char *version = NULL, *build = NULL, *soname = NULL, *machine = NULL;
  int cudart;
  (void)cfs_elf_tool_version(path, &version, &build, NULL);
  (void)cfs_elf_soname(path, &soname);
  (void)cfs_elf_machine(path, &machine);
  (void)cfs_elf_cudart_version(path, &cudart);
}

/* Fixed seed: a failure repeats. What counts is that nothing crashes, hangs or trips a sanitizer. */
static void mutate_and_ask(const unsigned char *data, size_t size, size_t from, size_t to)
{
  static const unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
  cleanup_file struct file file = file_new(data, size);
  uint32_t random = 12345;
  for (int i = 0; i < 1500; i++) {
    for (int k = 0; k < 1 + i % 4; k++) {
      random = random * 1664525 + 1013904223;
      unsigned char byte = random & 0x10 ? extremes[(random >> 5) % sizeof(extremes)] : (unsigned char)(random >> 24);
      assert_int_equal(pwrite(file.fd, &byte, 1, (off_t)(from + (random >> 8) % (to - from))), 1);
    }
    ask_everything(file.path);
    if (i % 6 == 5)
      assert_int_equal(pwrite(file.fd, data, size, 0), (ssize_t)size);
  }
}

static void test_hostile_headers(void **state)
{
  (void)state;
  cleanup_free void *library = NULL;
  size_t size;
  make_library(CFS_MACHINE_X86_64, &library, &size);
  mutate_and_ask(library, size, SELFMAG, sizeof(Elf64_Ehdr));
  mutate_and_ask(library, size, size - 8 * sizeof(Elf64_Shdr), size);
  mutate_and_ask(library, size, SELFMAG, size);
}

/* 60,000 sections over the same megabyte would be 60 GB to read. */
static void test_overlapping_sections_are_refused(void **state)
{
  (void)state;
  enum { COUNT = 60000, ROOM = 1024 * 1024 };
  cleanup_buffer cfs_buffer b = {0};
  cleanup_free char *rodata = cfs_zalloc(ROOM);
  make_elf(&b, "", 0, rodata, ROOM);
  Elf64_Ehdr header;
  Elf64_Shdr section;
  memcpy(&header, b.data, sizeof(header));
  memcpy(&section, b.data + header.e_shoff + 2 * sizeof(section), sizeof(section));
  for (size_t i = header.e_shnum; i < COUNT; i++)
    cfs_buffer_add(&b, &section, sizeof(section));
  header.e_shnum = COUNT;
  memcpy(b.data, &header, sizeof(header));
  cleanup_file struct file file = file_new(b.data, b.size);
  char *version = NULL;
  assert_int_equal(cfs_elf_tool_version(file.path, &version, NULL, NULL), -EBADMSG);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_version_in_all_its_forms),
      cmocka_unit_test(test_only_the_whole_sentence_counts),
      cmocka_unit_test(test_executable_sections_are_not_searched),
      cmocka_unit_test(test_version_at_every_place),
      cmocka_unit_test(test_what_is_no_elf),
      cmocka_unit_test(test_truncated_elf_is_named),
      cmocka_unit_test(test_cudart_version_when_unique),
      cmocka_unit_test(test_soname_and_machine),
      cmocka_unit_test(test_elf_without_soname_or_known_machine),
      cmocka_unit_test(test_hostile_headers),
      cmocka_unit_test(test_overlapping_sections_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
