/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/elf.h"
#include "overlays/stub.h"

/* The shapes that occur in cuda.h: a name on the next line, comments, both kinds of alias, callback
 * types, parameters with the calling convention, names that are no functions. */
static const char cuda_h[] = "#ifdef _WIN32\n#define CUDAAPI __stdcall\n#else\n#define CUDAAPI\n#endif\n"
                             "#define __CUDA_API_PTDS(api) api ## _ptds\n"
                             "#define cuMemAlloc          cuMemAlloc_v2\n"
                             "    #define cuMemcpy        __CUDA_API_PTDS(cuMemcpy)\n"
                             "#define cuMemcpyAsync       __CUDA_API_PTSZ(cuMemcpyAsync_v2) /* why */\n"
                             "#define cuDeviceptr_t_v1    cuDeviceptr_v2_t\n"
                             "#define cuNumber 7\n"
                             "typedef CUresult (CUDAAPI *PFN_cuNever)(CUevent CUDAAPI *p, int cuNeither);\n"
                             "/* CUresult CUDAAPI cuCommented(void); */\n"
                             "// CUresult CUDAAPI cuCommentedToo(void);\n"
                             "CUresult CUDAAPI cuInit(unsigned int Flags);\n"
                             "CUresult CUDAAPI\ncuLinkCreate(unsigned int n);\n"
                             "__CUDA_DEPRECATED CUresult CUDAAPI cuMemAlloc (void *p, size_t n);\n"
                             "CUresult CUDAAPI cuMemcpy(void);\n"
                             "CUresult CUDAAPI cuMemcpyAsync(void);\n"
                             "CUresult CUDAAPI cuInit(unsigned int Flags);\n"
                             "static inline CUresult cuInlined(void) { return 0; }\n";

static const char nvml_h[] = "#define nvmlInit nvmlInit_v2\n"
                             "#define nvmlEccBitType_t nvmlMemoryErrorType_t\n"
                             "nvmlReturn_t DECLDIR nvmlInit_v2(void);\n"
                             "nvmlReturn_t  DECLDIR nvmlShutdown(void);\n"
                             "const DECLDIR char* nvmlErrorString(nvmlReturn_t result);\n";

static char directory[] = "/tmp/cudafs-test-stub-XXXXXX";

static char *in_directory(const char *name)
{
  return cfs_path_join(directory, name);
}

static void write_in_directory(const char *name, const void *data, size_t size)
{
  cleanup_free char *path = in_directory(name);
  assert_int_equal(cfs_file_write(path, data, size), 0);
}

static int set_up(void **state)
{
  (void)state;
  if (!mkdtemp(directory))
    return -1;
  write_in_directory("cuda.h", cuda_h, strlen(cuda_h));
  write_in_directory("cudaGL.h", "CUresult CUDAAPI cuGLInit(void);\n", 33);
  write_in_directory("nvml.h", nvml_h, strlen(nvml_h));
  write_in_directory("empty.h", "int x;\n", 7);
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  cleanup_free char *command = cfs_format("rm -rf '%s'", directory);
  return system(command);
}

static void test_driver_symbols(void **state)
{
  (void)state;
  cleanup_free char *cuda = in_directory("cuda.h"), *gl = in_directory("cudaGL.h");
  cleanup_strings cfs_strings symbols = {0};
  assert_int_equal(cfs_stub_driver_symbols((const char *[]){cuda, gl}, 2, &symbols, NULL), 0);
  cleanup_free char *joined = cfs_strings_join(&symbols, " ");
  assert_string_equal(joined, "cuGLInit cuInit cuLinkCreate cuMemAlloc cuMemAlloc_v2 cuMemcpy cuMemcpyAsync "
                              "cuMemcpyAsync_v2 cuMemcpyAsync_v2_ptsz cuMemcpy_ptds cuProfilerInitialize "
                              "cuProfilerStart cuProfilerStop");
}

static void test_nvml_symbols(void **state)
{
  (void)state;
  cleanup_free char *nvml = in_directory("nvml.h");
  cleanup_strings cfs_strings symbols = {0};
  assert_int_equal(cfs_stub_nvml_symbols((const char *[]){nvml}, 1, &symbols, NULL), 0);
  cleanup_free char *joined = cfs_strings_join(&symbols, " ");
  assert_string_equal(joined, "nvmlErrorString nvmlInit nvmlInit_v2 nvmlShutdown");
}

static void test_headers_without_functions(void **state)
{
  (void)state;
  cleanup_free char *empty = in_directory("empty.h"), *missing = in_directory("missing.h");
  cleanup_error cfs_error *err = NULL, *other = NULL;
  void *elf = NULL;
  size_t size;
  assert_int_equal(cfs_stub_driver((const char *[]){empty}, 1, CFS_MACHINE_X86_64, &elf, &size, &err), -ENODATA);
  assert_string_equal(err->what, empty);
  assert_int_equal(cfs_stub_driver(NULL, 0, CFS_MACHINE_X86_64, &elf, &size, NULL), -ENODATA);
  assert_int_equal(cfs_stub_nvml((const char *[]){missing}, 1, CFS_MACHINE_X86_64, &elf, &size, &other), -ENOENT);
  assert_string_equal(other->what, missing);
  assert_null(elf);
}

typedef int (*make_fn)(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf,
                       size_t *ret_size, cfs_error **err);

static void make(make_fn fn, const char *header, enum cfs_machine machine, const char *name)
{
  cleanup_free char *path = in_directory(header);
  cleanup_free void *elf = NULL;
  size_t size;
  assert_int_equal(fn((const char *[]){path}, 1, machine, &elf, &size, NULL), 0);
  write_in_directory(name, elf, size);
}

static void test_bytes_depend_on_arguments_alone(void **state)
{
  (void)state;
  cleanup_free char *path = in_directory("cuda.h");
  cleanup_free void *one = NULL, *two = NULL, *arm = NULL;
  size_t size, again, arm_size;
  assert_int_equal(cfs_stub_driver((const char *[]){path}, 1, CFS_MACHINE_X86_64, &one, &size, NULL), 0);
  assert_int_equal(cfs_stub_driver((const char *[]){path, path}, 2, CFS_MACHINE_X86_64, &two, &again, NULL), 0);
  assert_int_equal(size, again);
  assert_memory_equal(one, two, size);
  assert_int_equal(cfs_stub_driver((const char *[]){path}, 1, CFS_MACHINE_AARCH64, &arm, &arm_size, NULL), 0);
  assert_int_equal(((Elf64_Ehdr *)arm)->e_machine, EM_AARCH64);
}

static void assert_segment(const Elf64_Phdr *segment, size_t size)
{
  assert_true(segment->p_offset + segment->p_filesz <= size);
  if (segment->p_type == PT_LOAD)
    assert_int_equal(segment->p_offset % segment->p_align, segment->p_vaddr % segment->p_align);
}

/* No page may belong to two segments, nor be writable and executable, whatever the page size. */
static void test_segments_of_a_large_stub(void **state)
{
  (void)state;
  for (enum cfs_machine machine = CFS_MACHINE_X86_64; machine <= CFS_MACHINE_AARCH64; machine++) {
    cleanup_stub struct cfs_stub stub = {.soname = "libmany.so.1", .machine = machine, .status = 7};
    for (int i = 10000; i < 16000; i++)
      cfs_strings_take(&stub.symbols, cfs_format("function_number_%d", i));
    cleanup_free void *elf = NULL;
    size_t size;
    assert_int_equal(cfs_stub_write(&stub, &elf, &size, NULL), 0);
    const Elf64_Ehdr *header = elf;
    const Elf64_Phdr *segments = (const void *)((const char *)elf + header->e_phoff);
    uint64_t end = 0;
    for (int i = 0; i < header->e_phnum; i++) {
      assert_segment(&segments[i], size);
      if (segments[i].p_type != PT_LOAD)
        continue;
      uint64_t page = segments[i].p_align;
      assert_true(segments[i].p_vaddr / page * page >= end);
      end = (segments[i].p_vaddr + segments[i].p_memsz + page - 1) / page * page;
      assert_int_not_equal(segments[i].p_flags & (PF_W | PF_X), PF_W | PF_X);
    }
  }
}

static void test_refused_stubs(void **state)
{
  (void)state;
  cleanup_stub struct cfs_stub stub = {.soname = "libnone.so.1"};
  cleanup_error cfs_error *err = NULL;
  void *elf = NULL;
  size_t size;
  assert_int_equal(cfs_stub_write(&stub, &elf, &size, &err), -ENODATA);
  assert_string_equal(err->what, "libnone.so.1");
  assert_null(elf);
}

/* The native stub is loaded by the real loader, by both hash tables, and each function called. */
static void test_loaded_functions_return_their_status(void **state)
{
  (void)state;
  make(cfs_stub_driver, "cuda.h", cfs_machine_native(), "libcuda.so.1");
  make(cfs_stub_nvml, "nvml.h", cfs_machine_native(), "libnvidia-ml.so.1");
  cleanup_free char *cuda = in_directory("libcuda.so.1"), *nvml = in_directory("libnvidia-ml.so.1");
  void *library = dlopen(cuda, RTLD_NOW | RTLD_LOCAL), *other = dlopen(nvml, RTLD_NOW | RTLD_LOCAL);
  if (!library || !other)
    fail_msg("%s", dlerror());
  static const char *const names[] = {"cuInit", "cuLinkCreate", "cuMemAlloc_v2", "cuMemcpy_ptds", "cuProfilerStop"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    int (*function)(void) = (int (*)(void))(intptr_t)dlsym(library, names[i]);
    assert_non_null(function);
    assert_int_equal(function(), 34);
  }
  assert_null(dlsym(library, "cuNever"));
  int (*initialise)(void) = (int (*)(void))(intptr_t)dlsym(other, "nvmlInit_v2");
  const char *(*string)(int) = (const char *(*)(int))(intptr_t)dlsym(other, "nvmlErrorString");
  assert_int_equal(initialise(), 12);
  assert_null(string(12)); /* a status is no pointer to hand to printf */
  dlclose(library);
  dlclose(other);
}

static int run_shell(const char *command)
{
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool installed(const char *tool)
{
  cleanup_free char *command = cfs_format("command -v %s >/dev/null 2>&1", tool);
  return run_shell(command) == 0;
}

static void need(const char *tool)
{
  if (installed(tool))
    return;
  if (getenv("CUDAFS_MUST_RUN"))
    fail_msg("%s is not installed", tool);
  print_message("SKIP: %s is not installed\n", tool);
  skip();
}

static int link_with(const char *linker, const char *program, const char *source, const char *flags)
{
  cleanup_free char *command = cfs_format("cd '%s' && printf '%s' | cc -fuse-ld=%s -x c - -o %s -L. -Wl,--as-needed "
                                          "-Wl,--no-undefined %s >link.log 2>&1",
                                          directory, source, linker, program, flags);
  return run_shell(command);
}

/* Which libraries a program needs is read from its bytes: the name stands in .dynstr when NEEDED. */
static bool needs(const char *program, const char *library)
{
  cleanup_free char *path = in_directory(program), *data = NULL;
  size_t size;
  assert_int_equal(cfs_file_read(path, 1 << 28, &data, &size), 0);
  return memmem(data, size, library, strlen(library) + 1);
}

static void check_linker(const char *linker)
{
  assert_int_equal(link_with(linker, "used", "int cuInit(int); int main(void) { return cuInit(0) - 34; }", "-lcuda"),
                   0);
  assert_true(needs("used", "libcuda.so.1"));
  cleanup_free char *command = cfs_format("LD_LIBRARY_PATH='%s' '%s/used'", directory, directory);
  assert_int_equal(run_shell(command), 0);
  assert_int_equal(link_with(linker, "unused", "int main(void) { return 0; }", "-lcuda"), 0);
  assert_false(needs("unused", "libcuda.so.1"));
  assert_int_not_equal(link_with(linker, "unknown", "int cuNo(void); int main(void) { return cuNo(); }", "-lcuda"), 0);
}

static void test_linkers_take_it(void **state)
{
  (void)state;
  need("cc");
  need("ld.bfd");
  make(cfs_stub_driver, "cuda.h", cfs_machine_native(), "libcuda.so");
  make(cfs_stub_driver, "cuda.h", cfs_machine_native(), "libcuda.so.1");
  static const char *const linkers[] = {"bfd", "gold", "lld"};
  for (size_t i = 0; i < sizeof(linkers) / sizeof(*linkers); i++) {
    cleanup_free char *tool = cfs_format("ld.%s", linkers[i]);
    if (installed(tool))
      check_linker(linkers[i]);
    else
      print_message("SKIP: %s is not installed\n", tool);
  }
}

static void test_elflint_finds_nothing(void **state)
{
  (void)state;
  need("eu-elflint");
  make(cfs_stub_driver, "cuda.h", CFS_MACHINE_X86_64, "x86.so");
  make(cfs_stub_driver, "cuda.h", CFS_MACHINE_AARCH64, "arm.so");
  make(cfs_stub_nvml, "nvml.h", CFS_MACHINE_X86_64, "nvml.so");
  cleanup_free char *command =
      cfs_format("cd '%s' && eu-elflint x86.so arm.so nvml.so >elflint.log || { cat elflint.log; false; }", directory);
  assert_int_equal(run_shell(command), 0);
}

static void test_soname_reads_back(void **state)
{
  (void)state;
  make(cfs_stub_nvml, "nvml.h", CFS_MACHINE_AARCH64, "arm-nvml.so");
  cleanup_free char *path = in_directory("arm-nvml.so"), *soname = NULL;
  assert_int_equal(cfs_elf_soname(path, &soname), 0);
  assert_string_equal(soname, "libnvidia-ml.so.1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_driver_symbols),
      cmocka_unit_test(test_nvml_symbols),
      cmocka_unit_test(test_headers_without_functions),
      cmocka_unit_test(test_bytes_depend_on_arguments_alone),
      cmocka_unit_test(test_segments_of_a_large_stub),
      cmocka_unit_test(test_refused_stubs),
      cmocka_unit_test(test_loaded_functions_return_their_status),
      cmocka_unit_test(test_linkers_take_it),
      cmocka_unit_test(test_elflint_finds_nothing),
      cmocka_unit_test(test_soname_reads_back),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
