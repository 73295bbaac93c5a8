/* SPDX-License-Identifier: MIT */
#include "toy.h"

#include <assert.h>
#include <elf.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/resolve.h"
#include "overlays/source.h"

#define ROOT "nvidia/cu13/"

char *toy_dir(void)
{
  const char *tmp = getenv("TMPDIR");
  char *dir = cfs_format("%s/cudafs-toy.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir))
    abort();
  return dir;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
  (void)st;
  (void)kind;
  (void)walk;
  return remove(path);
}

void toy_remove(char *dir)
{
  nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(dir);
}

void toy_write_bytes(const char *dir, const char *path, const void *data, size_t size, bool executable)
{
  cleanup_free char *whole = cfs_path_join(dir, path);
  char *slash = strrchr(whole, '/');
  *slash = '\0';
  if (cfs_mkdir_all(whole, 0755) < 0)
    abort();
  *slash = '/';
  if (cfs_file_write(whole, data, size) < 0 || chmod(whole, executable ? 0755 : 0644) < 0)
    abort();
}

void toy_write(const char *dir, const char *path, const char *text)
{
  toy_write_bytes(dir, path, text, strlen(text), false);
}

void toy_tool(const char *dir, const char *path, const char *version)
{
  static const char names[] = "\0.rodata\0.shstrtab";
  cleanup_free char *release = cfs_strndup(version, strcspn(version, ".") + 1 + strcspn(strchr(version, '.') + 1, "."));
  cleanup_free char *text = cfs_format("Cuda compilation tools, release %s, V%s", release, version);
  size_t text_size = strlen(text) + 1, at_names = sizeof(Elf64_Ehdr) + text_size;
  size_t at_sections = (at_names + sizeof(names) + 7) & ~(size_t)7;
  Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                     .e_type = ET_REL, /* the kernel refuses to run it */
                     .e_machine = EM_X86_64,
                     .e_version = EV_CURRENT,
                     .e_shoff = at_sections,
                     .e_ehsize = sizeof(head),
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_shnum = 3,
                     .e_shstrndx = 2};
  Elf64_Shdr sections[3] = {
      {0},
      {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_offset = sizeof(head), .sh_size = text_size},
      {.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = at_names, .sh_size = sizeof(names)},
  };
  size_t size = at_sections + sizeof(sections);
  cleanup_free char *image = cfs_zalloc(size);
  memcpy(image, &head, sizeof(head));
  memcpy(image + sizeof(head), text, text_size);
  memcpy(image + at_names, names, sizeof(names));
  memcpy(image + at_sections, sections, sizeof(sections));
  toy_write_bytes(dir, path, image, size, true);
}

void toy_record(const char *site, const char *package, const char *version, const cfs_strings *paths)
{
  cleanup_free char *stem = cfs_strdup(package);
  for (char *p = stem; *p; p++)
    if (*p == '-')
      *p = '_';
  cleanup_free char *folder = cfs_format("%s-%s.dist-info", stem, version);
  cleanup_buffer cfs_buffer record = {0};
  cfs_buffer_text(&record, "");
  for (size_t i = 0; i < paths->count; i++) {
    cleanup_free char *whole = cfs_path_join(site, paths->items[i]);
    struct stat st;
    if (stat(whole, &st) < 0)
      abort();
    cfs_buffer_format(&record, "%s,,%lld\n", paths->items[i], (long long)st.st_size);
  }
  cfs_buffer_format(&record, "%s/RECORD,,\n", folder);
  cleanup_free char *metadata = cfs_format("Metadata-Version: 2.1\nName: %s\nVersion: %s\n\n", package, version);
  cleanup_free char *a = cfs_path_join(folder, "RECORD"), *b = cfs_path_join(folder, "METADATA"),
                    *c = cfs_path_join(folder, "INSTALLER");
  toy_write(site, a, record.data);
  toy_write(site, b, metadata);
  toy_write(site, c, "pip\n");
}

static int cudart_version(const char *version)
{
  int major = 0, minor = 0;
  sscanf(version, "%d.%d", &major, &minor);
  return major * 1000 + minor * 10;
}

struct place {
  const char *dir, *prefix; /* prefix: "nvidia/cu13/" or "" */
  cfs_strings written;
};

static void put(struct place *p, const char *face, const char *text)
{
  cleanup_free char *path = cfs_format("%s%s", p->prefix, face);
  toy_write(p->dir, path, text);
  cfs_strings_add(&p->written, path);
}

static void put_tool(struct place *p, const char *face, const char *version)
{
  cleanup_free char *path = cfs_format("%s%s", p->prefix, face);
  toy_tool(p->dir, path, version);
  cfs_strings_add(&p->written, path);
}

static void put_nvcc(struct place *p, const char *version)
{
  static const char *const tools[] = {"nvcc", "ptxas", "cudafe++", "fatbinary", "nvlink", "bin2c"};
  for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
    cleanup_free char *face = cfs_format("bin/%s", tools[i]);
    put_tool(p, face, version);
  }
  put(p, "bin/nvcc.profile", "TOP = $(_HERE_)/..\n");
  put(p, "bin/crt/link.stub", "\n");
  put(p, "include/fatbinary_section.h", "\n");
}

static void put_crt(struct place *p, const char *version)
{
  cleanup_free char *text = cfs_format("/* crt %s */\n#if __GNUC__ > 15\n", version);
  put(p, "include/crt/host_config.h", text);
  put(p, "include/crt/host_defines.h", "\n");
}

static void put_nvvm(struct place *p, const char *version, const char *library)
{
  put_tool(p, "nvvm/bin/cicc", version);
  put(p, "nvvm/libdevice/libdevice.10.bc", "BC");
  put_tool(p, library, version);
  put(p, "include/nvvm.h", "\n");
}

static void put_runtime(struct place *p, const char *version)
{
  int n = cudart_version(version);
  cleanup_free char *runtime = cfs_format("#define CUDART_VERSION  %d\n", n);
  cleanup_free char *driver = cfs_format("#define CUDA_VERSION %d\nCUresult CUDAAPI cuInit(unsigned int Flags);\n", n);
  put(p, "include/cuda_runtime_api.h", runtime);
  put(p, "include/cuda_runtime.h", "\n");
  put(p, "include/cuda.h", driver);
  put(p, "lib/libcudart.so.13", "not an ELF file");
  put(p, "lib/libcudart_static.a", "!<arch>\n");
  put(p, "lib/libcudadevrt.a", "!<arch>\n");
}

static void put_cccl(struct place *p, const char *cmake)
{
  put(p, "include/cccl/cuda/std/version", "\n");
  put(p, "include/cccl/cub/cub.cuh", "\n");
  put(p, cmake, "# cccl\n");
}

typedef void putter(struct place *p, const char *version);

static void put_nvvm_wheel(struct place *p, const char *version)
{
  put_nvvm(p, version, "lib/libnvvm.so.4");
}

static void put_cccl_wheel(struct place *p, const char *version)
{
  (void)version;
  put_cccl(p, "cccl/lib/cmake/cccl/cccl-config.cmake");
}

static void put_nvrtc(struct place *p, const char *version)
{
  put_tool(p, "lib/libnvrtc.so.13", version);
  put(p, "include/nvrtc.h", "\n");
}

static void wheel(const char *site, const char *package, const char *version, putter *write)
{
  if (!version)
    return;
  struct place p = {.dir = site, .prefix = ROOT};
  write(&p, version);
  toy_record(site, package, version, &p.written);
  cfs_strings_done(&p.written);
}

void toy_wheels(const char *site, const struct toy_set *set)
{
  wheel(site, "nvidia-cuda-nvcc", set->nvcc, put_nvcc);
  wheel(site, "nvidia-cuda-crt", set->crt, put_crt);
  wheel(site, "nvidia-nvvm", set->nvvm, put_nvvm_wheel);
  wheel(site, "nvidia-cuda-runtime", set->runtime, put_runtime);
  wheel(site, "nvidia-cuda-cccl", set->cccl, put_cccl_wheel);
  wheel(site, "nvidia-cuda-nvrtc", set->nvrtc, put_nvrtc);
}

char *toy_venv(const char *dir, const struct toy_set *set)
{
  char *site = cfs_path_join(dir, "lib/python3.12/site-packages");
  toy_write(dir, "pyvenv.cfg", "home = /usr/bin\n");
  toy_write_bytes(dir, "bin/python", "#!/bin/sh\n", 10, true);
  if (cfs_mkdir_all(site, 0755) < 0)
    abort();
  toy_wheels(site, set);
  return site;
}

void toy_toolkit(const char *dir, const char *version, const char *without)
{
  struct place p = {.dir = dir, .prefix = ""};
  put_nvcc(&p, version);
  put_crt(&p, version);
  put_nvvm(&p, version, "nvvm/lib64/libnvvm.so.4");
  put_runtime(&p, version);
  put_cccl(&p, "lib/cmake/cccl/cccl-config.cmake");
  for (size_t i = 0; without && i < p.written.count; i++)
    if (cfs_has_prefix(p.written.items[i], without)) {
      cleanup_free char *path = cfs_path_join(dir, p.written.items[i]);
      if (unlink(path) < 0)
        abort();
    }
  cfs_strings_done(&p.written);
}

cfs_tables *toy_tables(void)
{
  cfs_tables *tables = NULL;
  cfs_error *err = NULL;
  if (cfs_tables_load(&tables, &err) < 0) {
    fprintf(stderr, "%s: %s\n", err->what, err->why);
    abort();
  }
  return tables;
}

int toy_world_make(void **state)
{
  struct toy_world *w = cfs_zalloc(sizeof(*w));
  w->dir = toy_dir();
  w->tables = toy_tables();
  *state = w;
  return 0;
}

int toy_world_end(void **state)
{
  struct toy_world *w = *state;
  toy_remove(w->dir);
  cfs_tables_free(w->tables);
  free(w);
  return 0;
}

static char *with_toy(const char *text, const char *dir)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  for (const char *p = text; *p; p++) {
    if (cfs_has_prefix(p, "TOY")) {
      cfs_buffer_text(&b, dir);
      p += 2;
    } else {
      cfs_buffer_add(&b, p, 1);
    }
  }
  return b.data;
}

cfs_plan *toy_plan(const cfs_tables *tables, const char *dir, const char *manifest_text)
{
  cleanup_free char *text = with_toy(manifest_text, dir), *path = cfs_path_join(dir, "manifest.json");
  cfs_manifest *m = NULL;
  cfs_error *err = NULL;
  cfs_plan *plan = NULL;
  toy_write(dir, "manifest.json", text);
  int r = cfs_manifest_load(path, tables, &m, &err);
  cfs_inventory **sources = r == 0 ? cfs_zalloc(m->n_sources * sizeof(cfs_inventory *)) : NULL;
  for (size_t i = 0; r == 0 && i < m->n_sources; i++)
    r = cfs_source_read(&m->sources[i], m->path, tables, &sources[i], &err);
  if (r == 0)
    r = cfs_resolve(m, tables, sources, m->n_sources, &plan, &err);
  if (r < 0) {
    fprintf(stderr, "%s: %s\n", err->what, err->why);
    abort();
  }
  cfs_manifest_free(m);
  return plan;
}

bool toy_has_problem(const cfs_plan *plan, const char *code, enum cfs_severity severity)
{
  for (size_t i = 0; i < plan->problems.count; i++)
    if (strcmp(plan->problems.items[i].code, code) == 0 && plan->problems.items[i].severity == severity)
      return true;
  return false;
}
