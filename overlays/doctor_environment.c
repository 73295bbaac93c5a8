/* SPDX-License-Identifier: MIT */
/* Where the variables and the PATH lead. Programs disagree on which of them counts, so that they had
 * better agree among themselves. */

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/doctor_private.h"
#include "overlays/host.h"

/* "CUDA 13.2.78 (a cudafs mount)"; the caller owns the result. */
static char *describe(const cfs_cuda_home *h)
{
  return cfs_format("CUDA %s%s", h->version ? h->version : "of an unknown release",
                    h->mounted ? " (a cudafs mount)" : "");
}

static void check_headers(struct cfs_examination *x, const char *name, const cfs_cuda_home *h)
{
  if (!h->release || !h->headers || strcmp(h->release, h->headers) == 0)
    return;
  struct cfs_check *c =
      cfs_check_add(x, "headers-release-mismatch", CFS_CHECK_ERROR,
                    "%s: nvcc in %s is of CUDA %s and its headers are of %s; nothing that includes CCCL "
                    "compiles with it",
                    name, h->path, h->release, h->headers);
  cfs_strings_add(&c->fix, "cudafs plan    # shows which parts are of which release, and what to install");
}

static void check_root(struct cfs_examination *x, const char *name)
{
  const char *value = getenv(name);
  if (!value)
    return;
  if (!*value) {
    struct cfs_check *c = cfs_check_add(x, "variable-empty", CFS_CHECK_WARNING,
                                        "%s is set to nothing, which some programs take for a path", name);
    cfs_strings_take(&c->fix, cfs_format("unset %s", name));
    return;
  }
  cleanup_cuda_home cfs_cuda_home h = {0};
  cfs_cuda_home_read(value, &h);
  cleanup_free char *what = describe(&h);
  if (!h.exists) {
    struct cfs_check *c =
        cfs_check_add(x, "variable-missing", CFS_CHECK_ERROR, "%s=%s: there is no such directory", name, value);
    cfs_strings_take(&c->fix, cfs_format("unset %s    # or lead it to a mount: eval \"$(cudafs env DIR)\"", name));
  } else if (!h.version && !h.compiles) {
    cfs_check_add(x, "variable-no-cuda", CFS_CHECK_WARNING, "%s=%s: there is no nvcc and no ptxas in it", name, value);
  } else if (!h.compiles) {
    cfs_check_add(x, "variable-no-compiler", CFS_CHECK_WARNING, "%s=%s leads to %s without an nvcc", name, value, what);
  } else {
    cfs_check_add(x, "variable", CFS_CHECK_OK, "%s=%s leads to %s", name, value, what);
  }
  check_headers(x, name, &h);
}

static void check_tool(struct cfs_examination *x, const char *name, const char *path)
{
  cleanup_cuda_home cfs_cuda_home h = {0};
  if (!cfs_path_is_file(path)) {
    cfs_check_add(x, "variable-missing", CFS_CHECK_ERROR, "%s=%s: there is no such file", name, path);
    return;
  }
  cfs_cuda_home_of_tool(path, &h);
  cleanup_free char *what = describe(&h), *real = realpath(path, NULL);
  bool moved = real && strcmp(real, path) != 0;
  cfs_check_add(x, "tool", h.version ? CFS_CHECK_OK : CFS_CHECK_NOTE, "%s: %s%s%s is of %s", name, path,
                moved ? ", really " : "", moved ? real : "", h.version ? what : "an unknown release (a script?)");
}

static void check_path(struct cfs_examination *x)
{
  static const char *const tools[] = {"nvcc", "ptxas"};
  for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
    cleanup_free char *path = cfs_path_search(getenv("PATH"), tools[i]);
    cleanup_free char *name = cfs_format("%s on the PATH", tools[i]);
    if (path)
      check_tool(x, name, path);
    else
      cfs_check_add(x, "tool", CFS_CHECK_NOTE, "there is no %s on the PATH", tools[i]);
  }
}

/* A CUDA file in the folder, by a name that tells; the caller owns it. NULL when there is none. */
static char *cuda_file_in(const char *folder)
{
  static const char *const patterns[] = {"cuda_runtime.h", "libcudart.so*", "libnvrtc.so*", "libcuda.so*",
                                         "libcudart_static.a"};
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
    cleanup_free char *pattern = cfs_path_join(folder, patterns[i]);
    glob_t g;
    if (glob(pattern, 0, NULL, &g) != 0)
      continue;
    char *found = cfs_strdup(g.gl_pathv[0]);
    globfree(&g);
    return found;
  }
  return NULL;
}

/* For running programs a search path is a way to say what one wants; for compiling it silently goes before
 * what the compiler was told. */
static void check_list(struct cfs_examination *x, const char *name, bool compiling)
{
  const char *value = getenv(name);
  cleanup_strings cfs_strings folders = {0};
  cfs_strings_split(&folders, value ? value : "", ":");
  if (value && *value && (value[0] == ':' || value[strlen(value) - 1] == ':' || strstr(value, "::"))) {
    struct cfs_check *c = cfs_check_add(x, "variable-empty", CFS_CHECK_WARNING,
                                        "%s has an empty element, which means the working directory", name);
    cfs_strings_take(&c->fix,
                     cfs_format("export %s=$(printf %%s \"$%s\" | tr -s : | sed 's/^://; s/:$//')", name, name));
  }
  for (size_t i = 0; i < folders.count; i++) {
    cleanup_free char *file = cuda_file_in(folders.items[i]);
    if (!file)
      continue;
    struct cfs_check *c =
        cfs_check_add(x, "search-path", compiling ? CFS_CHECK_WARNING : CFS_CHECK_OK, "%s leads to %s%s", name, file,
                      compiling ? ", whatever CUDA_HOME a build was given" : "");
    if (compiling)
      cfs_strings_take(&c->fix, cfs_format("unset %s", name));
  }
}

static void check_flags(struct cfs_examination *x)
{
  static const char *const names[] = {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN",
                                      "PYTORCH_NVCC",       "FLASHINFER_NVCC",   "CUDAHOSTCXX"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *value = getenv(names[i]);
    if (value && *value)
      cfs_check_add(x, "variable", CFS_CHECK_NOTE, "%s=%s changes every compile", names[i], value);
  }
}

static void check_agreement(struct cfs_examination *x)
{
  const char *home = getenv("CUDA_HOME"), *path = getenv("CUDA_PATH");
  if (!home || !*home || !path || !*path)
    return;
  cleanup_free char *real_home = realpath(home, NULL), *real_path = realpath(path, NULL);
  if (real_home && real_path && strcmp(real_home, real_path) == 0)
    return;
  struct cfs_check *c = cfs_check_add(x, "variables-disagree", CFS_CHECK_ERROR,
                                      "CUDA_HOME=%s and CUDA_PATH=%s differ: PyTorch and FlashInfer follow the first, "
                                      "cuda-pathfinder and CuPy the second",
                                      home, path);
  cfs_strings_take(&c->fix, cfs_format("export CUDA_PATH='%s'", home));
}

/* nvcc by name and nvcc by CUDA_HOME: build systems use the one, JIT compilers the other. */
static void check_path_agreement(struct cfs_examination *x)
{
  const char *home = getenv("CUDA_HOME");
  cleanup_free char *nvcc = cfs_path_search(getenv("PATH"), "nvcc");
  if (!home || !*home || !nvcc)
    return;
  cleanup_cuda_home cfs_cuda_home a = {0}, b = {0};
  cfs_cuda_home_read(home, &a);
  cfs_cuda_home_of_tool(nvcc, &b);
  if (!a.release || !b.release || strcmp(a.release, b.release) == 0)
    return;
  struct cfs_check *c =
      cfs_check_add(x, "path-disagrees", CFS_CHECK_WARNING, "CUDA_HOME is CUDA %s but nvcc on the PATH (%s) is %s",
                    a.release, nvcc, b.release);
  cfs_strings_take(&c->fix, cfs_format("export PATH='%s'/bin:\"$PATH\"", home));
}

void cfs_examine_environment(struct cfs_examination *x)
{
  static const char *const roots[] = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT"};
  static const char *const files[] = {"CUDACXX", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"};
  static const char *const compiling[] = {"LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"};
  for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
    check_root(x, roots[i]);
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
    const char *value = getenv(files[i]);
    if (value && *value == '/')
      check_tool(x, files[i], value);
  }
  check_path(x);
  check_list(x, "LD_LIBRARY_PATH", false);
  for (size_t i = 0; i < sizeof(compiling) / sizeof(compiling[0]); i++)
    check_list(x, compiling[i], true);
  check_flags(x);
  check_agreement(x);
  check_path_agreement(x);
}
