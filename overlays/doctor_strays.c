/* SPDX-License-Identifier: MIT */
/* CUDA files in places where compilers and loaders look unasked. They go unnoticed until a build works here
 * and nowhere else, or takes a header of another release. */

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/doctor_private.h"
#include "overlays/header.h"
#include "overlays/runner.h"

enum { ASK_MS = 10000, LIBRARIES_SHOWN = 4 };

static const char *const header_names[] = {"cuda_runtime_api.h", "cuda.h",           "cuda_fp16.h", "crt/host_config.h",
                                           "cub/cub.cuh",        "thrust/version.h", "nvrtc.h",     "curand_kernel.h"};

static char *header_release(const char *folder)
{
  cleanup_free char *api = cfs_path_join(folder, "cuda_runtime_api.h"), *driver = cfs_path_join(folder, "cuda.h");
  long number = 0;
  if (cfs_header_macro(api, "CUDART_VERSION", &number, NULL) == 0 ||
      cfs_header_macro(driver, "CUDA_VERSION", &number, NULL) == 0)
    return cfs_format(" of CUDA %ld.%ld", number / 1000, number % 1000 / 10);
  return cfs_strdup("");
}

static void check_include(struct cfs_examination *x, const char *folder)
{
  cleanup_strings cfs_strings found = {0};
  for (size_t i = 0; i < sizeof(header_names) / sizeof(header_names[0]); i++) {
    cleanup_free char *path = cfs_path_join(folder, header_names[i]);
    if (cfs_path_exists(path))
      cfs_strings_add(&found, header_names[i]);
  }
  if (!found.count)
    return;
  cleanup_free char *names = cfs_strings_join(&found, ", "), *release = header_release(folder);
  struct cfs_check *c = cfs_check_add(x, "stray-headers", CFS_CHECK_WARNING,
                                      "%s holds CUDA headers%s (%s): every host compiler finds them unasked, and they "
                                      "stand in for whatever a toolkit lacks",
                                      folder, release, names);
  cfs_strings_take(&c->fix, cfs_format("dpkg -S %s/%s    # a package owns them: remove it; none does: move them away",
                                       folder, found.items[0]));
}

static void check_libraries(struct cfs_examination *x, const char *folder)
{
  static const char *const patterns[] = {"libcudart.so*", "libcudart_static.a", "libnvrtc.so*", "libcudadevrt.a",
                                         "libcublas.so*"};
  cleanup_strings cfs_strings found = {0};
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
    cleanup_free char *pattern = cfs_path_join(folder, patterns[i]);
    glob_t g;
    if (glob(pattern, 0, NULL, &g) != 0)
      continue;
    cfs_strings_add(&found, strrchr(g.gl_pathv[0], '/') + 1);
    globfree(&g);
  }
  if (!found.count)
    return;
  cleanup_free char *names = cfs_strings_join(&found, ", ");
  cfs_check_add(x, "stray-libraries", CFS_CHECK_WARNING,
                "%s holds CUDA libraries (%s), which a linker or loader may find unasked", folder, names);
}

static bool is_toolkit_library(const char *name)
{
  static const char *const prefixes[] = {"libcudart.so", "libnvrtc.so", "libnvJitLink.so", "libnvrtc-builtins.so",
                                         "libcublas.so"};
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
    if (cfs_has_prefix(name, prefixes[i]))
      return true;
  return false;
}

/* Lines such as "\tlibcudart.so.13 (libc6,x86-64) => /usr/local/cuda/lib64/libcudart.so.13". */
static void read_cache(const char *text, cfs_strings *ret)
{
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, text, "\n");
  for (size_t i = 0; i < lines.count; i++) {
    const char *name = lines.items[i] + strspn(lines.items[i], "\t "), *arrow = strstr(name, "=> ");
    if (arrow && is_toolkit_library(name) && cfs_path_exists(arrow + 3))
      cfs_strings_add(ret, arrow + 3);
  }
}

static void check_cache(struct cfs_examination *x)
{
  const char *const argv[] = {"/sbin/ldconfig", "-p", NULL};
  struct cfs_call call = {.argv = argv};
  cleanup_strings cfs_strings found = {0}, shown = {0};
  if (cfs_run(argv[0], &call, 1, ASK_MS) < 0)
    return;
  cleanup_free char *output = call.output;
  read_cache(output, &found);
  for (size_t i = 0; i < found.count && i < LIBRARIES_SHOWN; i++)
    cfs_strings_add(&shown, found.items[i]);
  if (!found.count)
    return;
  cleanup_free char *names = cfs_strings_join(&shown, ", ");
  struct cfs_check *c = cfs_check_add(x, "loader-cache", CFS_CHECK_NOTE,
                                      "the loader's cache has CUDA libraries (%s%s): programs get them where neither "
                                      "LD_LIBRARY_PATH nor a run path says otherwise",
                                      names, found.count > LIBRARIES_SHOWN ? ", ..." : "");
  cfs_strings_add(&c->fix, "grep -l cuda /etc/ld.so.conf.d/*    # the files that put them there; then run ldconfig");
}

void cfs_examine_strays(struct cfs_examination *x)
{
  static const char *const includes[] = {"/usr/local/include", "/usr/include"};
  static const char *const libraries[] = {"/usr/local/lib64", "/usr/local/lib", "/usr/lib64",
                                          "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
  for (size_t i = 0; i < sizeof(includes) / sizeof(includes[0]); i++)
    check_include(x, includes[i]);
  for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
    check_libraries(x, libraries[i]);
  check_cache(x);
}
