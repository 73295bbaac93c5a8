/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/tables.h"
#include "manifests/version.h"

static const char *source_data;

static int load_real(void **state)
{
  cfs_tables *t = NULL;
  cleanup_error cfs_error *err = NULL;
  if (cfs_tables_load(&t, &err) < 0) {
    print_error("%s: %s\n", err->what, err->why);
    return -1;
  }
  *state = t;
  return 0;
}

static int free_real(void **state)
{
  cfs_tables_free(*state);
  return 0;
}

static void test_components_by_name_and_alias(void **state)
{
  const cfs_tables *t = *state;
  assert_string_equal(cfs_tables_component(t, "cuda_cudart")->name, "cuda_cudart");
  assert_string_equal(cfs_tables_component(t, "cuda_cccl")->name, "cccl");
  assert_string_equal(cfs_tables_component(t, "nvcc")->name, "cuda_nvcc");
  assert_null(cfs_tables_component(t, "cuda_cudar"));
}

/* Any two components that share a name, wheel or glob would be told apart by file order alone. */
static void test_components_share_nothing(void **state)
{
  const cfs_tables *t = *state;
  for (size_t i = 0; i < t->n_components; i++)
    for (size_t k = 0; k < i; k++) {
      for (size_t n = 0; n < t->components[i].wheels.count; n++)
        assert_false(cfs_strings_has(&t->components[k].wheels, t->components[i].wheels.items[n]));
      for (size_t n = 0; n < t->components[i].paths.count; n++)
        assert_false(cfs_strings_has(&t->components[k].paths, t->components[i].paths.items[n]));
    }
}

static void test_component_flags(void **state)
{
  const cfs_tables *t = *state;
  static const char unit[] = " cuda_nvcc cuda_crt libnvvm ";
  static const char required[] = " cuda_nvcc cuda_crt libnvvm cuda_cudart cccl ";
  for (size_t i = 0; i < t->n_components; i++) {
    const cfs_component_info *c = &t->components[i];
    cleanup_free char *word = cfs_format(" %s ", c->name);
    assert_int_equal(c->unit, strstr(unit, word) != NULL);
    assert_int_equal(c->required, strstr(required, word) != NULL);
    assert_int_equal(c->runtime, strcmp(c->name, "cuda_cudart") == 0);
    assert_int_equal(c->identify[c->n_identify - 1].kind, CFS_IDENTIFY_PACKAGE);
  }
}

static void assert_wheel(const cfs_tables *t, const char *distribution, const char *component)
{
  const cfs_component_info *c = cfs_tables_component_of_wheel(t, distribution);
  if (!c || strcmp(c->name, component) != 0)
    fail_msg("%s is taken for %s, not %s", distribution, c ? c->name : "nothing", component);
}

static void test_components_by_wheel(void **state)
{
  const cfs_tables *t = *state;
  assert_wheel(t, "nvidia-cuda-runtime", "cuda_cudart");
  assert_wheel(t, "nvidia_cuda_runtime_cu12", "cuda_cudart");
  assert_wheel(t, "NVIDIA.Cuda--Nvcc", "cuda_nvcc");
  assert_wheel(t, "nvidia-cudnn-cu13", "cudnn");
  assert_wheel(t, "nvidia_nvjitlink", "libnvjitlink");
  assert_null(cfs_tables_component_of_wheel(t, "torch"));
  assert_null(cfs_tables_component_of_wheel(t, "nvidia-cudnn-frontend"));
}

static void test_wheel_names(void **state)
{
  static const char *const names[][2] = {{"nvidia_nvvm", "nvidia-nvvm"},
                                         {"A.-_b", "a-b"},
                                         {"x-cu12", "x"},
                                         {"-cu12", "cu12"},
                                         {"cu12", "cu12"},
                                         {"x-cu", "x-cu"},
                                         {"x-cuda12", "x-cuda12"},
                                         {"", ""}};
  (void)state;
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    cleanup_free char *got = cfs_wheel_name_normalise(names[i][0]);
    assert_string_equal(got, names[i][1]);
  }
}

/* One path a glob that was checked against the files of NVIDIA's own packages, with the near misses. */
static void test_components_by_path(void **state)
{
  static const char *const paths[][2] = {
      {"bin/nvcc", "cuda_nvcc"},
      {"bin/crt/link.stub", "cuda_nvcc"},
      {"include/fatbinary_section.h", "cuda_nvcc"},
      {"include/crt/host_config.h", "cuda_crt"},
      {"include/crt/sm_70_rt.hpp", "cuda_crt"},
      {"include/host_config.h", "cuda_cudart"},
      {"nvvm/bin/cicc", "libnvvm"},
      {"nvvm/libdevice/libdevice.10.bc", "libnvvm"},
      {"nvvm/lib64/libnvvm.so.4", "libnvvm"},
      {"lib/libnvvm.so.4", "libnvvm"},
      {"include/nvPTXCompiler.h", "libnvptxcompiler"},
      {"lib/libnvptxcompiler_static.a", "libnvptxcompiler"},
      {"include/cccl/cuda/std/__cccl/version.h", "cccl"},
      {"include/cuda/std/limits", "cccl"},
      {"include/nv/target", "cccl"},
      {"lib/cmake/cccl/cccl-config.cmake", "cccl"},
      {"include/cuda.h", "cuda_cudart"},
      {"include/cuda_fp8.hpp", "cuda_cudart"},
      {"include/cooperative_groups/details/sync.h", "cuda_cudart"},
      {"include/sm_20_intrinsics.hpp", "cuda_cudart"},
      {"lib/libcudart.so.13", "cuda_cudart"},
      {"lib/libcudadevrt.a", "cuda_cudart"},
      {"lib/stubs/libcuda.so", "cuda_cudart"},
      {"lib/libculibos.a", "cuda_culibos"},
      {"include/cuda_profiler_api.h", "cuda_profiler_api"},
      {"include/cudaProfiler.h", "cuda_profiler_api"},
      {"include/cudaProfilerTypedefs.h", "cuda_cudart"},
      {"include/cuda_stdint.h", "cuda_cupti"},
      {"include/generated_cuda_meta.h", "cuda_cupti"},
      {"lib/libnvperf_host.so", "cuda_cupti"},
      {"include/sanitizer_stream.h", "cuda_sanitizer_api"},
      {"compute-sanitizer/libsanitizer-public.so", "cuda_sanitizer_api"},
      {"lib/libnvrtc.so.13", "cuda_nvrtc"},
      {"lib/libnvrtc.alt.so.13", "cuda_nvrtc"},
      {"lib/libnvrtc-builtins.so.13.0", "cuda_nvrtc"},
      {"lib/libnvrtc-builtins_static.a", "cuda_nvrtc"},
      {"lib/libnvJitLink.so.13", "libnvjitlink"},
      {"lib/libnvfatbin.so.13", "libnvfatbin"},
      {"include/nvtx3/nvToolsExt.h", "cuda_nvtx"},
      {"lib/libnvtx3interop.so.1", "cuda_nvtx"},
      {"lib/stubs/libnvidia-ml.so", "cuda_nvml_dev"},
      {"include/nv_decode.h", "cuda_cuxxfilt"},
      {"include/cublasLt.h", "libcublas"},
      {"lib/libcublasLt_static.a", "libcublas"},
      {"lib/libnvblas.so.13", "libcublas"},
      {"include/cudalibxt.h", "libcufft"},
      {"lib/libcufftw.so.12", "libcufft"},
      {"lib/libcufft_static_nocallback.a", "libcufft"},
      {"include/curand_kernel.h", "libcurand"},
      {"include/cusolverDn.h", "libcusolver"},
      {"lib/libcusolverMg.so.12", "libcusolver"},
      {"include/cusparse_v2.h", "libcusparse"},
      {"lib/libcusparse.so.12", "libcusparse"},
      {"lib/libcusparseLt.so.0", "libcusparse_lt"},
      {"lib/libnppial.so.13", "libnpp"},
      {"lib/libnvjpeg.so.13", "libnvjpeg"},
      {"lib/libcufile_rdma.so.1", "libcufile"},
      {"include/CL/cl.h", "cuda_opencl"},
      {"bin/tileirdisasm", "cuda_tileiras"},
      {"lib/libcudnn_ops.so.9", "cudnn"},
      {"include/nccl_device/coop.h", "nccl"},
      {"include/device_host/nvshmem_types.h", "libnvshmem"},
  };
  const cfs_tables *t = *state;
  for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
    const cfs_component_info *c = cfs_tables_component_of_path(t, paths[i][0]);
    if (!c || strcmp(c->name, paths[i][1]) != 0)
      fail_msg("%s is taken for a file of %s, not %s", paths[i][0], c ? c->name : "nothing", paths[i][1]);
  }
  assert_null(cfs_tables_component_of_path(t, "share/man/man1/unrelated.1"));
  assert_null(cfs_tables_component_of_path(t, "bin/nvcc-wrapper"));
}

static void test_component_in_release(void **state)
{
  const cfs_tables *t = *state;
  assert_string_equal(cfs_tables_component_in_release(t, "libnvvm", "12.9")->name, "cuda_nvcc");
  assert_string_equal(cfs_tables_component_in_release(t, "libnvvm", "13.0")->name, "libnvvm");
  assert_string_equal(cfs_tables_component_in_release(t, "crt", "12.8")->name, "cuda_nvcc");
  assert_string_equal(cfs_tables_component_in_release(t, "cuda_culibos", "12.9")->name, "cuda_cudart");
  assert_string_equal(cfs_tables_component_in_release(t, "libcublas", "12.9")->name, "libcublas");
  assert_null(cfs_tables_component_in_release(t, "nothing", "12.9"));
}

static const struct cfs_identify *rule_of(const cfs_tables *t, const char *component, const char *file)
{
  const cfs_component_info *c = cfs_tables_component(t, component);
  for (size_t i = 0; i < c->n_identify; i++)
    if (c->identify[i].file && strcmp(c->identify[i].file, file) == 0)
      return &c->identify[i];
  fail_msg("%s has no rule for %s", component, file);
  return NULL;
}

static void assert_identified(const struct cfs_identify *rule, const long *values, size_t n, const char *wanted)
{
  cleanup_free char *got = cfs_identify_version(rule, values, n);
  if (!wanted)
    assert_null(got);
  else
    assert_string_equal(got, wanted);
}

static void test_identify_by_macros(void **state)
{
  const cfs_tables *t = *state;
  const struct cfs_identify *cudart = rule_of(t, "cuda_cudart", "include/cuda_runtime_api.h");
  const struct cfs_identify *cccl = rule_of(t, "cccl", "include/cccl/cuda/std/__cccl/version.h");
  const struct cfs_identify *cublas = rule_of(t, "libcublas", "include/cublas_api.h");
  assert_identified(cudart, (long[]){13020}, 1, "13.2");
  assert_identified(cudart, (long[]){12090}, 1, "12.9");
  assert_identified(cccl, (long[]){3000001}, 1, "3.0.1");
  assert_identified(cccl, (long[]){3005000}, 1, "3.5.0");
  assert_identified(cublas, (long[]){13, 10, 0, 20}, 4, "13.10.0.20");
  assert_identified(cublas, (long[]){13, 10, 0}, 3, NULL);
  assert_identified(cudart, (long[]){-1}, 1, NULL);
  assert_identified(rule_of(t, "cuda_nvcc", "bin/nvcc"), (long[]){1}, 1, NULL);
}

static void test_releases_ascend_and_agree(void **state)
{
  const cfs_tables *t = *state;
  assert_true(t->n_releases >= 8);
  for (size_t i = 0; i < t->n_releases; i++) {
    const cfs_release_info *r = &t->releases[i];
    assert_true(i == 0 || cfs_version_compare(t->releases[i - 1].release, r->release) < 0);
    cleanup_free char *cudart = cfs_format("%d.%d", r->cudart / 1000, r->cudart % 1000 / 10);
    assert_string_equal(cudart, r->release);
    assert_true(r->n_pins > 15);
    const struct cfs_pin *nvcc = cfs_release_pin(r, "cuda_nvcc");
    assert_true(cfs_version_in_release(nvcc->version, r->release));
    for (size_t k = 0; k < r->n_pins; k++)
      assert_string_equal(r->pins[k].toolkit, r->toolkit);
    for (size_t k = 0; k < r->n_older_pins; k++)
      assert_string_not_equal(r->older_pins[k].toolkit, r->toolkit);
    assert_true(cfs_release_has_target(r, "sm_120"));
  }
}

static void test_pins(void **state)
{
  const cfs_tables *t = *state;
  const cfs_release_info *r = cfs_tables_release(t, "13.0");
  assert_string_equal(r->toolkit, "13.0.3.0");
  assert_string_equal(cfs_release_pin(r, "cuda_cudart")->version, "13.0.96");
  assert_string_equal(cfs_release_toolkit_pin(r, "13.0.1", "cuda_cudart")->version, "13.0.88");
  assert_string_equal(cfs_release_pin(r, "cuda_cudart")->wheel, "nvidia-cuda-runtime");
  assert_true(cfs_release_pin(r, "cuda_cudart")->exact);
  assert_false(cfs_release_pin(r, "libnvjitlink")->exact);
  assert_string_equal(cfs_release_pin(r, "libnvjitlink")->version, "13.0.88");
  assert_null(cfs_release_pin(r, "cuda_tileiras"));
  assert_string_equal(cfs_release_pin(cfs_tables_release(t, "12.9"), "cuda_nvcc")->wheel, "nvidia-cuda-nvcc-cu12");
  assert_null(cfs_tables_release(t, "13"));
}

static void test_targets_by_release(void **state)
{
  const cfs_tables *t = *state;
  assert_true(cfs_release_has_target(cfs_tables_release(t, "12.8"), "sm_120a"));
  assert_false(cfs_release_has_target(cfs_tables_release(t, "12.8"), "sm_120f"));
  assert_false(cfs_release_has_target(cfs_tables_release(t, "12.8"), "sm_121"));
  assert_true(cfs_release_has_target(cfs_tables_release(t, "12.9"), "sm_121a"));
  assert_false(cfs_release_has_target(cfs_tables_release(t, "13.0"), "sm_70"));
  assert_true(cfs_release_has_target(cfs_tables_release(t, "13.4"), "sm_107a"));
}

static const struct cfs_advisory *advisory(const cfs_tables *t, const char *version, const char *target)
{
  for (size_t i = 0; i < t->n_advisories; i++) {
    const struct cfs_advisory *a = &t->advisories[i];
    cfs_requirement *r = NULL;
    assert_int_equal(cfs_requirement_parse(a->versions, &r, NULL), 0);
    bool hit = cfs_requirement_admits(r, version) && (!a->targets.count || cfs_strings_has(&a->targets, target));
    cfs_requirement_free(r);
    if (hit)
      return a;
  }
  return NULL;
}

static void test_advisories(void **state)
{
  const cfs_tables *t = *state;
  assert_non_null(advisory(t, "12.6.77", "sm_90a"));
  assert_null(advisory(t, "12.6.85", "sm_90a"));
  assert_null(advisory(t, "12.4.131", "sm_80"));
  assert_non_null(advisory(t, "12.3.103", "sm_80"));
  assert_null(advisory(t, "12.8.93", "sm_90"));
  assert_null(advisory(t, "13.5.37", "sm_120"));
}

static void test_consumers(void **state)
{
  const cfs_tables *t = *state;
  assert_true(t->n_consumers >= 24);
  const cfs_consumer_info *c = cfs_tables_consumer(t, "flashinfer");
  assert_string_equal(c->env.items[0], "CUDA_HOME");
  assert_string_equal(c->rules[0].target, "sm_12*");
  assert_string_equal(c->rules[0].min_release, "12.9");
  assert_string_equal(cfs_tables_consumer(t, "cuda-pathfinder")->env.items[0], "CUDA_PATH");
  assert_null(cfs_tables_consumer(t, "flash"));
}

/* A need that no component's glob covers could never be mended by advice. */
static void test_consumer_needs_belong_to_components(void **state)
{
  const cfs_tables *t = *state;
  for (size_t i = 0; i < t->n_consumers; i++)
    for (size_t k = 0; k < t->consumers[i].needs.count; k++) {
      const char *need = t->consumers[i].needs.items[k];
      if (strcmp(need, "version.json") != 0 && !cfs_tables_component_of_path(t, need))
        fail_msg("%s needs %s, which no component holds", t->consumers[i].name, need);
    }
}

static void test_shadowing_wheels_are_known(void **state)
{
  const cfs_tables *t = *state;
  for (size_t i = 0; i < t->n_consumers; i++)
    for (size_t k = 0; k < t->consumers[i].shadowed_by.count; k++) {
      const char *wheel = t->consumers[i].shadowed_by.items[k];
      if (strcmp(wheel, "triton") != 0 && !cfs_tables_component_of_wheel(t, wheel))
        fail_msg("%s: %s is no component's wheel", t->consumers[i].name, wheel);
    }
}

static void test_problem_codes(void **state)
{
  static const char *const promised[] = {
      "compiler-unit-split",   "headers-release-mismatch",  "component-missing",  "placeholder-wheel",
      "wheel-has-no-compiler", "record-mismatch",           "ownership-conflict", "target-unsupported",
      "policy-unmet",          "host-compiler-unsupported", "libc-conflict",      "known-bad-build",
      "shadowed-by-wheels"};
  const cfs_tables *t = *state;
  for (size_t i = 0; i < sizeof(promised) / sizeof(*promised); i++) {
    assert_true(cfs_strings_has(&t->problem_codes, promised[i]));
    assert_true(strlen(cfs_tables_problem(t, promised[i])->explanation) > 20);
  }
  assert_null(cfs_tables_problem(t, "no-such-code"));
  assert_int_equal(t->n_problems, t->problem_codes.count);
}

/* A copy of the data folder that a test may spoil; CUDAFS_DATA points at it meanwhile. */
struct copy {
  char dir[64];
};

static void copy_files(const char *from, const char *to)
{
  assert_int_equal(cfs_mkdir_all(to, 0755), 0);
  cleanup_closedir DIR *dir = opendir(from);
  assert_non_null(dir);
  struct dirent *entry;
  while ((entry = readdir(dir))) {
    cleanup_free char *source = cfs_path_join(from, entry->d_name);
    cleanup_free char *target = cfs_path_join(to, entry->d_name);
    cleanup_free char *data = NULL;
    size_t size;
    if (!cfs_path_is_file(source))
      continue;
    assert_int_equal(cfs_file_read(source, 1 << 20, &data, &size), 0);
    assert_int_equal(cfs_file_write(target, data, size), 0);
  }
}

static int make_copy(void **state)
{
  struct copy *c = cfs_zalloc(sizeof(*c));
  strcpy(c->dir, "/tmp/cudafs-tables-XXXXXX");
  if (!mkdtemp(c->dir))
    return -1;
  cleanup_free char *from = cfs_path_join(source_data, "consumers");
  cleanup_free char *to = cfs_path_join(c->dir, "consumers");
  copy_files(source_data, c->dir);
  copy_files(from, to);
  setenv("CUDAFS_DATA", c->dir, 1);
  *state = c;
  return 0;
}

static void remove_files(const char *dir)
{
  DIR *open = opendir(dir);
  struct dirent *entry;
  while (open && (entry = readdir(open))) {
    cleanup_free char *path = cfs_path_join(dir, entry->d_name);
    if (cfs_path_is_file(path))
      unlink(path);
  }
  if (open)
    closedir(open);
  rmdir(dir);
}

static int remove_copy(void **state)
{
  struct copy *c = *state;
  cleanup_free char *consumers = cfs_path_join(c->dir, "consumers");
  remove_files(consumers);
  remove_files(c->dir);
  setenv("CUDAFS_DATA", source_data, 1);
  free(c);
  return 0;
}

static void write_file(const struct copy *c, const char *name, const char *text)
{
  cleanup_free char *path = cfs_path_join(c->dir, name);
  assert_int_equal(cfs_file_write(path, text, strlen(text)), 0);
}

static void append_line(const struct copy *c, const char *name, const char *line)
{
  cleanup_free char *path = cfs_path_join(c->dir, name);
  FILE *f = fopen(path, "a");
  assert_non_null(f);
  fprintf(f, "%s\n", line);
  fclose(f);
}

static void add_release(const struct copy *c, const char *text)
{
  cleanup_free char *path = cfs_path_join(c->dir, "releases.json");
  json_t *root = json_load_file(path, 0, NULL);
  /* Put first: the file's order must not matter. */
  assert_int_equal(json_array_insert_new(json_object_get(root, "releases"), 0, json_loads(text, 0, NULL)), 0);
  assert_int_equal(json_dump_file(root, path, JSON_INDENT(2)), 0);
  json_decref(root);
}

static void test_a_new_release_is_data_alone(void **state)
{
  const struct copy *c = *state;
  add_release(c, "{\"release\":\"13.6\",\"toolkit\":\"13.6.0\",\"toolkits\":[\"13.6.0\"],\"max-ptx\":\"9.6\","
                 "\"cudart\":13060,\"gcc-max\":16,\"clang-limit\":23,\"targets\":[\"sm_120\",\"sm_130a\"]}");
  append_line(c, "pins.tsv", "13.6.0\tcuda_nvcc\tnvidia-cuda-nvcc\t13.6.12\tyes");
  cfs_tables *t = NULL;
  assert_int_equal(cfs_tables_load(&t, NULL), 0);
  assert_string_equal(t->dir, c->dir);
  assert_string_equal(t->releases[t->n_releases - 1].release, "13.6");
  assert_string_equal(cfs_release_pin(cfs_tables_release(t, "13.6"), "cuda_nvcc")->version, "13.6.12");
  assert_true(cfs_release_has_target(cfs_tables_release(t, "13.6"), "sm_130a"));
  cfs_tables_free(t);
}

static void test_a_new_consumer_is_data_alone(void **state)
{
  const struct copy *c = *state;
  write_file(c, "consumers/newjit.json",
             "{\"name\":\"newjit\",\"title\":\"New JIT\",\"env\":[\"CUDA_HOME\"],\"needs\":[\"bin/nvcc\"],"
             "\"rules\":[{\"target\":\"*\",\"min-release\":\"13.1\",\"reason\":\"it says so\"}]}");
  cfs_tables *t = NULL;
  assert_int_equal(cfs_tables_load(&t, NULL), 0);
  assert_string_equal(cfs_tables_consumer(t, "newjit")->rules[0].min_release, "13.1");
  cfs_tables_free(t);
}

static void assert_load_fails(const char *what, const char *why)
{
  cfs_tables *t = NULL;
  cleanup_error cfs_error *err = NULL;
  assert_true(cfs_tables_load(&t, &err) < 0);
  assert_null(t);
  assert_int_equal(err->kind, CFS_FAILED);
  if (!strstr(err->what, what) || !strstr(err->why, why))
    fail_msg("expected \"%s: %s\", got \"%s: %s\"", what, why, err->what, err->why);
}

static void test_errors_name_file_line_and_key(void **state)
{
  const struct copy *c = *state;
  write_file(c, "advisories.json",
             "{\"advisories\": [\n{\"id\":\"a\",\"component\":\"cuda_nvcc\",\n\"versions\":\"latest\","
             "\"summary\":\"s\",\"reference\":\"r\"}]}");
  assert_load_fails("/advisories.json:3", "advisories[0].versions: expected a release or a range");
  write_file(c, "advisories.json",
             "{\"advisories\": [{\"id\":\"a\",\"component\":\"cuda_nvc\",\n\"versions\":\"13.1\","
             "\"summary\":\"s\",\"reference\":\"r\"}]}");
  assert_load_fails("/advisories.json:1", "advisories[0].component: \"cuda_nvc\" is no component");
  write_file(c, "advisories.json", "{\"advisories\": [],\n\"more\": 1}");
  assert_load_fails("/advisories.json:2", "more: unknown key");
  write_file(c, "advisories.json", "{\"advisories\": {}}");
  assert_load_fails("/advisories.json:1", "advisories: expected a list, got an object");
}

static void test_bad_components_are_refused(void **state)
{
  static const char *const cases[][2] = {
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[{\"tool\":\"x\",\"package\":true}]}",
       "exactly one of"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[{\"header\":\"x\",\"macros\":[]}]}", "at least one"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[{\"header\":\"x\",\"macros\":[\"M\"]}]}",
       "divisors: expected a list"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[{\"header\":\"x\",\"macros\":[\"M\"],"
       "\"divisors\":[0,1]}]}",
       "divisors[0]: expected a divisor"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[{\"header\":\"x\",\"macros\":[\"M\",\"N\"],"
       "\"divisors\":[9,1]}]}",
       "only one packed macro"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[],\"within\":\"b\"}", "\"b\" is no component"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[],\"identify\":[]},{\"name\":\"b\",\"title\":\"A\",\"paths\":[],"
       "\"identify\":[],\"aliases\":[\"a\"]}",
       "already names a component"},
      {"{\"name\":\"a\",\"title\":\"\",\"paths\":[],\"identify\":[]}", "title: expected a string that is not empty"},
      {"{\"name\":\"a\",\"title\":\"A\",\"paths\":[1],\"identify\":[]}", "paths[0]: expected a string"},
      {"{\"name\":\"a\",\"title\":\"A\",\"identify\":[]}", "paths: expected a list, got nothing"},
      {"7", "components[0]: expected an object, got 7"},
  };
  const struct copy *c = *state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    cleanup_free char *text = cfs_format("{\"placeholder-versions\":[],\"components\":[%s]}", cases[i][0]);
    write_file(c, "components.json", text);
    assert_load_fails("/components.json:1", cases[i][1]);
  }
}

static void test_bad_releases_are_refused(void **state)
{
  static const char *const cases[][2] = {
      {"\"release\":\"13.6.1\",\"toolkit\":\"13.6.0\",\"toolkits\":[\"13.6.0\"]", "expected a release such as"},
      {"\"release\":\"13.6\",\"toolkit\":\"13.6.0\",\"toolkits\":[\"13.5.0\"]", "expected a version of release 13.6"},
      {"\"release\":\"13.6\",\"toolkit\":\"13.6.1\",\"toolkits\":[\"13.6.1\",\"13.6.0\"]", "ascending order"},
      {"\"release\":\"13.6\",\"toolkit\":\"13.6.1\",\"toolkits\":[\"13.6.0\"]", "end with \"toolkit\""},
  };
  const struct copy *c = *state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    cleanup_free char *text = cfs_format("{\"releases\":[{%s,\"max-ptx\":\"9.6\",\"cudart\":13060,\"gcc-max\":16,"
                                         "\"clang-limit\":23,\"targets\":[]}]}",
                                         cases[i][0]);
    write_file(c, "releases.json", text);
    assert_load_fails("/releases.json:1", cases[i][1]);
  }
}

static void test_bad_pins_are_refused(void **state)
{
  static const char *const cases[][2] = {
      {"13.5.0\tcuda_nvcc\tnvidia-cuda-nvcc\t13.5.37", "expected five columns"},
      {"19.9.0\tcuda_nvcc\tnvidia-cuda-nvcc\t13.5.37\tyes", "no release lists this toolkit"},
      {"13.5.0\tnvcc\tnvidia-cuda-nvcc\t13.5.37\tyes", "is no component"},
      {"13.5.0\tcuda_nvcc\tnvidia-cuda-nvcc\t==13\tyes", "expected a version"},
      {"13.5.0\tcuda_nvcc\tnvidia-cuda-nvcc\t13.5.37\tmaybe", "expected yes or no"},
  };
  const struct copy *c = *state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    cleanup_free char *text = cfs_format("# a comment\n%s\n", cases[i][0]);
    write_file(c, "pins.tsv", text);
    assert_load_fails("/pins.tsv:2", cases[i][1]);
  }
}

static void test_consumer_is_found_by_its_file(void **state)
{
  const struct copy *c = *state;
  write_file(c, "consumers/one.json", "{\"name\":\"other\",\"title\":\"O\",\"env\":[],\"needs\":[]}");
  assert_load_fails("/consumers/one.json:1", "name: expected the name of the file");
}

static void test_missing_data_is_named(void **state)
{
  (void)state;
  setenv("CUDAFS_DATA", "/nonexistent/data", 1);
  assert_load_fails("/nonexistent/data/components.json", "cannot be read");
  setenv("CUDAFS_DATA", source_data, 1);
}

int main(void)
{
  source_data = getenv("CUDAFS_DATA");
  if (!source_data) {
    fprintf(stderr, "CUDAFS_DATA must name the source tree's manifests/data\n");
    return 1;
  }
  source_data = cfs_strdup(source_data);
  const struct CMUnitTest real[] = {
      cmocka_unit_test(test_components_by_name_and_alias),
      cmocka_unit_test(test_components_share_nothing),
      cmocka_unit_test(test_component_flags),
      cmocka_unit_test(test_components_by_wheel),
      cmocka_unit_test(test_wheel_names),
      cmocka_unit_test(test_components_by_path),
      cmocka_unit_test(test_component_in_release),
      cmocka_unit_test(test_identify_by_macros),
      cmocka_unit_test(test_releases_ascend_and_agree),
      cmocka_unit_test(test_pins),
      cmocka_unit_test(test_targets_by_release),
      cmocka_unit_test(test_advisories),
      cmocka_unit_test(test_consumers),
      cmocka_unit_test(test_consumer_needs_belong_to_components),
      cmocka_unit_test(test_shadowing_wheels_are_known),
      cmocka_unit_test(test_problem_codes),
  };
  const struct CMUnitTest copied[] = {
      cmocka_unit_test_setup_teardown(test_a_new_release_is_data_alone, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_a_new_consumer_is_data_alone, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_errors_name_file_line_and_key, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_bad_components_are_refused, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_bad_releases_are_refused, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_bad_pins_are_refused, make_copy, remove_copy),
      cmocka_unit_test_setup_teardown(test_consumer_is_found_by_its_file, make_copy, remove_copy),
      cmocka_unit_test(test_missing_data_is_named),
  };
  int failed = cmocka_run_group_tests_name("the shipped tables", real, load_real, free_real);
  failed += cmocka_run_group_tests_name("changed tables", copied, NULL, NULL);
  free((char *)source_data);
  return failed;
}
