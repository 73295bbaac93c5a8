/* SPDX-License-Identifier: MIT */
/* The single tests: what each compiles, and what must be true of it afterwards. */

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/nvrtc.h"
#include "overlays/verify_private.h"

static const char plain_source[] = "#include <cuda_runtime.h>\n"
                                   "#include <cuda_fp16.h>\n"
                                   "__global__ void add(const __half *a, __half *b, int n) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i < n) b[i] = __hadd(a[i], __float2half(__expf(1.5f)));\n"
                                   "}\n"
                                   "int main() {\n"
                                   "  __half *p = nullptr;\n"
                                   "  cudaMalloc(&p, 64);\n"
                                   "  add<<<1, 32>>>(p, p, 32);\n"
                                   "  return cudaDeviceSynchronize() == cudaErrorUnknown;\n"
                                   "}\n";

static const char cccl_source[] = "#include <cuda/std/type_traits>\n"
                                  "#include <cub/block/block_reduce.cuh>\n"
                                  "static_assert(cuda::std::is_same<int, int>::value, \"\");\n"
                                  "__global__ void sum(const int *in, int *out) {\n"
                                  "  using Reduce = cub::BlockReduce<int, 128>;\n"
                                  "  __shared__ typename Reduce::TempStorage storage;\n"
                                  "  int total = Reduce(storage).Sum(in[threadIdx.x]);\n"
                                  "  if (threadIdx.x == 0) *out = total;\n"
                                  "}\n";

static const char device_source[] = "__device__ float twice(float x) { return 2 * x; }\n";

static const char caller_source[] = "#include <cuda_runtime.h>\n"
                                    "extern __device__ float twice(float);\n"
                                    "__global__ void scale(float *p) { p[threadIdx.x] = twice(p[threadIdx.x]); }\n"
                                    "int main() {\n"
                                    "  float *p = nullptr;\n"
                                    "  cudaMalloc(&p, 64);\n"
                                    "  scale<<<1, 16>>>(p);\n"
                                    "  return cudaDeviceSynchronize() == cudaErrorUnknown;\n"
                                    "}\n";

/* Declared here, so that a toolkit without nvml.h can be asked for its driver stub. */
static const char driver_source[] = "extern \"C\" int cuInit(unsigned);\n"
                                    "#ifdef WITH_NVML\n"
                                    "extern \"C\" int nvmlInit_v2();\n"
                                    "#else\n"
                                    "static int nvmlInit_v2() { return 0; }\n"
                                    "#endif\n"
                                    "int main() { return cuInit(0) + nvmlInit_v2(); }\n";

static const char nvrtc_source[] = "#include <cuda_fp16.h>\n"
                                   "#include <cuda/std/type_traits>\n"
                                   "extern \"C\" __global__ void axpy(float a, const __half *x, float *y, int n) {\n"
                                   "  static_assert(cuda::std::is_same<int, int>::value, \"\");\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i < n) y[i] += a * __half2float(x[i]);\n"
                                   "}\n";

static const char nvrtc_plain_source[] =
    "#include <cuda_fp16.h>\n"
    "extern \"C\" __global__ void axpy(float a, const __half *x, float *y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] += a * __half2float(x[i]);\n"
    "}\n";

static char *in_root(const struct cfs_trial *t, const char *path)
{
  return cfs_path_join(t->subject->root, path);
}

static bool has(const struct cfs_trial *t, const char *path)
{
  cleanup_free char *full = in_root(t, path);
  return cfs_path_exists(full);
}

static bool has_cccl(const struct cfs_trial *t)
{
  return has(t, "include/cccl/cuda/std/type_traits") || has(t, "include/cuda/std/type_traits");
}

static void add_words(cfs_strings *argv, const char *words)
{
  cfs_strings_split(argv, words, " ");
}

/* "sm_120a" -> "compute_120a"; the caller owns the result. */
static char *virtual_of(const char *target)
{
  return cfs_format("compute_%s", cfs_has_prefix(target, "sm_") ? target + 3 : target);
}

static void start_nvcc(const struct cfs_trial *t, cfs_strings *argv)
{
  cfs_strings_take(argv, in_root(t, "bin/nvcc"));
  cfs_strings_add(argv, "-std=c++17");
}

static void add_gencode(const struct cfs_trial *t, cfs_strings *argv)
{
  cleanup_free char *code = virtual_of(t->result->target);
  cfs_strings_add(argv, "-gencode");
  cfs_strings_take(argv, cfs_format("arch=%s,code=%s", code, t->result->target));
}

static char *in_folder(const struct cfs_trial *t, const char *name)
{
  return cfs_path_join(t->folder, name);
}

/* A tool that says it went well has still to show what it made. */
static bool has_made(struct cfs_trial *t, const char *name)
{
  cleanup_free char *path = in_folder(t, name);
  if (cfs_path_is_file(path))
    return true;
  cfs_trial_settle(t, CFS_TEST_FAIL, "the tool reported success and made no %s", name);
  return false;
}

static bool headers_are_own(struct cfs_trial *t, const char *depfile)
{
  cleanup_free char *path = in_folder(t, depfile), *found = cfs_origin_of_headers(t->subject->root, path);
  if (found)
    cfs_trial_settle(t, CFS_TEST_FAIL, "%s", found);
  return !found;
}

/* An assembler alone makes a face too, when the policy allows it. */
static bool has_compiler(struct cfs_trial *t)
{
  if (has(t, "bin/nvcc"))
    return true;
  cfs_trial_settle(t, CFS_TEST_SKIP, "the composition has no compiler (bin/nvcc)");
  return false;
}

static bool compile_object(struct cfs_trial *t, const char *source)
{
  cfs_strings argv = {0};
  if (!cfs_trial_write(t, "test.cu", source))
    return false;
  start_nvcc(t, &argv);
  add_gencode(t, &argv);
  add_words(&argv, "-MD -MF test.d -c test.cu -o test.o");
  return cfs_trial_command(t, &argv, NULL) && has_made(t, "test.o") && headers_are_own(t, "test.d");
}

static void run_object(struct cfs_trial *t)
{
  if (has_compiler(t) && compile_object(t, plain_source))
    cfs_trial_settle(t, CFS_TEST_PASS, "every header from the toolkit");
}

static void run_cccl(struct cfs_trial *t)
{
  if (!has_compiler(t))
    return;
  if (!has_cccl(t))
    cfs_trial_settle(t, CFS_TEST_SKIP, "the composition has no CCCL (include/cccl)");
  else if (compile_object(t, cccl_source))
    cfs_trial_settle(t, CFS_TEST_PASS, "every header from the toolkit");
}

/* Links with the words given and checks where the libraries came from. Takes argv over. */
static bool link_program(struct cfs_trial *t, cfs_strings *argv)
{
  cleanup_free char *output = NULL;
  add_words(argv, "-Xlinker --trace -o program");
  if (!cfs_trial_command(t, argv, &output) || !has_made(t, "program"))
    return false;
  cleanup_free char *found = cfs_origin_of_libraries(t->subject->root, output);
  if (found)
    cfs_trial_settle(t, CFS_TEST_FAIL, "%s", found);
  return !found;
}

/* The program's NEEDED entry that starts so; the caller owns it. */
static char *needed_library(const struct cfs_trial *t, const char *prefix)
{
  cleanup_free char *program = in_folder(t, "program");
  cleanup_strings cfs_strings needed = {0};
  cfs_origin_needed(program, &needed);
  for (size_t i = 0; i < needed.count; i++)
    if (cfs_has_prefix(needed.items[i], prefix))
      return cfs_strdup(needed.items[i]);
  return NULL;
}

static void run_link(struct cfs_trial *t)
{
  cfs_strings argv = {0};
  if (!has_compiler(t) || !cfs_trial_write(t, "test.cu", plain_source))
    return;
  start_nvcc(t, &argv);
  add_gencode(t, &argv);
  add_words(&argv, "-cudart static test.cu");
  if (!link_program(t, &argv))
    return;
  cleanup_free char *needed = needed_library(t, "libcudart");
  if (needed)
    cfs_trial_settle(t, CFS_TEST_FAIL, "it was to hold the runtime, but needs %s", needed);
  else
    cfs_trial_settle(t, CFS_TEST_PASS, "libcudart_static.a from the toolkit");
}

static void run_shared(struct cfs_trial *t)
{
  cfs_strings argv = {0};
  if (!has_compiler(t) || !cfs_trial_write(t, "test.cu", plain_source))
    return;
  start_nvcc(t, &argv);
  add_gencode(t, &argv);
  add_words(&argv, "-cudart shared test.cu");
  if (!link_program(t, &argv))
    return;
  cleanup_free char *needed = needed_library(t, "libcudart.so");
  cleanup_free char *path = needed ? cfs_format("lib64/%s", needed) : NULL;
  if (!needed)
    cfs_trial_settle(t, CFS_TEST_FAIL, "the program does not need libcudart.so");
  else if (!has(t, path))
    cfs_trial_settle(t, CFS_TEST_FAIL, "the program needs %s, and the toolkit has no %s", needed, path);
  else
    cfs_trial_settle(t, CFS_TEST_PASS, "needs %s, which the toolkit has", needed);
}

static bool write_pair(struct cfs_trial *t)
{
  return has_compiler(t) && cfs_trial_write(t, "caller.cu", caller_source) &&
         cfs_trial_write(t, "device.cu", device_source);
}

static void run_rdc(struct cfs_trial *t)
{
  cfs_strings argv = {0};
  if (!write_pair(t))
    return;
  start_nvcc(t, &argv);
  add_gencode(t, &argv);
  add_words(&argv, "-rdc=true caller.cu device.cu");
  if (link_program(t, &argv))
    cfs_trial_settle(t, CFS_TEST_PASS, "device code linked");
}

static void run_lto(struct cfs_trial *t)
{
  cfs_strings argv = {0};
  if (!write_pair(t))
    return;
  start_nvcc(t, &argv);
  /* -dlto and -gencode exclude each other. */
  cfs_strings_take(&argv, cfs_format("-arch=%s", t->result->target));
  add_words(&argv, "-dlto caller.cu device.cu");
  if (link_program(t, &argv))
    cfs_trial_settle(t, CFS_TEST_PASS, "device code optimised at link time");
}

static void run_driver_stub(struct cfs_trial *t)
{
  if (!has_compiler(t))
    return;
  if (!has(t, "lib64/stubs/libcuda.so")) {
    cfs_trial_settle(t, CFS_TEST_SKIP, "the toolkit has no lib64/stubs/libcuda.so");
    return;
  }
  cfs_strings argv = {0};
  bool nvml = has(t, "lib64/stubs/libnvidia-ml.so");
  if (!cfs_trial_write(t, "test.cu", driver_source))
    return;
  start_nvcc(t, &argv);
  add_gencode(t, &argv);
  cfs_strings_take(&argv, cfs_format("-L%s/lib64/stubs", t->subject->root));
  add_words(&argv, nvml ? "-DWITH_NVML test.cu -lcuda -lnvidia-ml" : "test.cu -lcuda");
  if (!link_program(t, &argv))
    return;
  cleanup_free char *driver = needed_library(t, "libcuda.so.1");
  cleanup_free char *management = nvml ? needed_library(t, "libnvidia-ml.so.1") : NULL;
  if (!driver || (nvml && !management))
    cfs_trial_settle(t, CFS_TEST_FAIL, "the program does not need %s", driver ? "libnvidia-ml.so.1" : "libcuda.so.1");
  else
    cfs_trial_settle(t, CFS_TEST_PASS, "needs %s%s", driver, nvml ? " and libnvidia-ml.so.1" : "");
}

/* The toolkit's libnvrtc by its versioned name, or NULL; the caller owns it. */
static char *find_nvrtc(const struct cfs_trial *t)
{
  static const char *const patterns[] = {"lib64/libnvrtc.so.[0-9]*", "lib/libnvrtc.so.[0-9]*"};
  char *found = NULL;
  for (size_t i = 0; !found && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
    cleanup_free char *pattern = in_root(t, patterns[i]);
    glob_t g;
    if (glob(pattern, 0, NULL, &g) != 0)
      continue;
    found = cfs_strdup(g.gl_pathv[0]);
    globfree(&g);
  }
  return found;
}

static bool compile_nvrtc(struct cfs_trial *t, const char *library, char **ret_version)
{
  cleanup_free char *target = virtual_of(t->result->target);
  cfs_strings argv = {0};
  if (!cfs_trial_write(t, "test.cu", has_cccl(t) ? nvrtc_source : nvrtc_plain_source))
    return false;
  /* As `cudafs env` exports it: the NVRTC of 13.0 has no run path, and finds its builtins by this alone. */
  cfs_strings_add(&argv, "/usr/bin/env");
  cfs_strings_take(&argv, cfs_format("LD_LIBRARY_PATH=%s/lib64", t->subject->root));
  cfs_strings_add(&argv, t->options->helper);
  cfs_strings_add(&argv, CFS_NVRTC_COMMAND);
  cfs_strings_add(&argv, library);
  cfs_strings_add(&argv, t->subject->root);
  add_words(&argv, "test.cu test.ptx -std=c++17");
  cfs_strings_take(&argv, cfs_format("--gpu-architecture=%s", target));
  cfs_strings_take(&argv, cfs_format("-I%s/include", t->subject->root));
  cfs_strings_take(&argv, cfs_format("-I%s/include/cccl", t->subject->root));
  return cfs_trial_helper(t, &argv, ret_version);
}

/* "9.2" of ".version 9.2"; the caller owns it. */
static char *ptx_version(const struct cfs_trial *t)
{
  cleanup_free char *path = in_folder(t, "test.ptx"), *text = NULL;
  if (cfs_file_read(path, 64 << 20, &text, NULL) < 0)
    return NULL;
  const char *at = strstr(text, ".version ");
  return at ? cfs_strndup(at + 9, strspn(at + 9, "0123456789.")) : NULL;
}

static bool assemble(struct cfs_trial *t)
{
  cfs_strings argv = {0};
  cfs_strings_take(&argv, in_root(t, "bin/ptxas"));
  cfs_strings_take(&argv, cfs_format("-arch=%s", t->result->target));
  add_words(&argv, "test.ptx -o test.cubin");
  return cfs_trial_command(t, &argv, NULL) && has_made(t, "test.cubin");
}

static void run_nvrtc(struct cfs_trial *t)
{
  cleanup_free char *library = find_nvrtc(t), *version = NULL;
  if (!library) {
    cfs_trial_settle(t, CFS_TEST_SKIP, "the composition has no NVRTC (lib64/libnvrtc.so.*)");
    return;
  }
  if (t->subject->archs.count && !cfs_strings_has(&t->subject->archs, t->result->target)) {
    cfs_trial_settle(t, CFS_TEST_SKIP, "%s is beyond the composed NVRTC; another toolchain compiles it",
                     t->result->target);
    return;
  }
  if (!compile_nvrtc(t, library, &version) || !assemble(t))
    return;
  cleanup_free char *ptx = ptx_version(t);
  version[strcspn(version, "\n")] = '\0';
  cfs_trial_settle(t, CFS_TEST_PASS, "NVRTC %s, PTX %s, assembled", version, ptx ? ptx : "?");
}

static void assemble_version(struct cfs_trial *t, const char *version)
{
  cleanup_free char *text = cfs_format(".version %s\n.target %s\n.address_size 64\n.visible .entry k() { ret; }\n",
                                       version, t->result->target);
  if (cfs_trial_write(t, "test.ptx", text) && assemble(t))
    cfs_trial_settle(t, CFS_TEST_PASS, "PTX %s assembled", version);
}

static void run_ptxas(struct cfs_trial *t)
{
  if (t->subject->max_ptx)
    assemble_version(t, t->subject->max_ptx);
  else
    cfs_trial_settle(t, CFS_TEST_FAIL, "bin/ptxas does not tell which PTX it takes");
}

void cfs_trial_toolchain(struct cfs_trial *t)
{
  assemble_version(t, t->toolchain->max_ptx);
}

const struct cfs_trial_kind cfs_trial_kinds[] = {
    {"nvcc-object", run_object, false}, {"nvcc-cccl", run_cccl, false}, {"nvcc-link", run_link, false},
    {"nvcc-shared", run_shared, false}, {"nvcc-rdc", run_rdc, false},   {"nvcc-lto", run_lto, false},
    {"ptxas", run_ptxas, false},        {"nvrtc", run_nvrtc, false},    {"driver-stub", run_driver_stub, true},
};
const size_t cfs_trial_kind_count = sizeof(cfs_trial_kinds) / sizeof(cfs_trial_kinds[0]);
