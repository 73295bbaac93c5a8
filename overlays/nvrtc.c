/* SPDX-License-Identifier: MIT */
#include "overlays/nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { SOURCE_LIMIT = 16 << 20 };

/* NVRTC's C interface, of which nothing has changed since CUDA 7. */
typedef void *program;
struct nvrtc {
  int (*version)(int *, int *);
  int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(program, int, const char *const *);
  int (*log_size)(program, size_t *);
  int (*log)(program, char *);
  int (*ptx_size)(program, size_t *);
  int (*ptx)(program, char *);
  int (*destroy)(program *);
  const char *(*error_string)(int);
};

static void *find(void *handle, const char *name, const char **missing)
{
  void *found = dlsym(handle, name);
  if (!found && !*missing)
    *missing = name;
  return found;
}

static int load(const char *library, struct nvrtc *ret, cfs_error **err)
{
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    cfs_error_set(err, CFS_FAILED, ELIBACC, library, NULL, "it cannot be loaded: %s", dlerror());
    return -ELIBACC;
  }
  const char *missing = NULL;
  *ret = (struct nvrtc){
      .version = find(handle, "nvrtcVersion", &missing),
      .create = find(handle, "nvrtcCreateProgram", &missing),
      .compile = find(handle, "nvrtcCompileProgram", &missing),
      .log_size = find(handle, "nvrtcGetProgramLogSize", &missing),
      .log = find(handle, "nvrtcGetProgramLog", &missing),
      .ptx_size = find(handle, "nvrtcGetPTXSize", &missing),
      .ptx = find(handle, "nvrtcGetPTX", &missing),
      .destroy = find(handle, "nvrtcDestroyProgram", &missing),
      .error_string = find(handle, "nvrtcGetErrorString", &missing),
  };
  if (!missing)
    return 0;
  cfs_error_set(err, CFS_FAILED, ELIBBAD, library, NULL, "it has no %s", missing);
  return -ELIBBAD;
}

static char *read_log(const struct nvrtc *n, program p)
{
  size_t size = 0;
  if (n->log_size(p, &size) != 0 || size < 2)
    return NULL;
  char *text = cfs_zalloc(size + 1);
  n->log(p, text);
  return text;
}

static int write_ptx(const struct nvrtc *n, program p, const char *output, cfs_error **err)
{
  size_t size = 0;
  if (n->ptx_size(p, &size) != 0 || size < 2)
    return cfs_error_set(err, CFS_FAILED, ENODATA, output, NULL, "NVRTC gave no PTX");
  cleanup_free char *text = cfs_zalloc(size + 1);
  n->ptx(p, text);
  int r = cfs_file_write(output, text, size - 1);
  if (r < 0)
    cfs_error_set(err, CFS_FAILED, -r, output, NULL, "the PTX cannot be written (%s)", strerror(-r));
  return r;
}

static int compile(const struct nvrtc *n, const struct cfs_nvrtc_request *request, const char *text, cfs_error **err)
{
  program p = NULL;
  int r = n->create(&p, text, request->source, 0, NULL, NULL);
  if (r == 0)
    r = n->compile(p, (int)request->options.count, (const char *const *)request->options.items);
  if (r != 0) {
    cleanup_free char *log = p ? read_log(n, p) : NULL;
    return cfs_error_set(err, CFS_FAILED, EIO, request->source, NULL, "%s: %s", n->error_string(r), log ? log : "");
  }
  r = write_ptx(n, p, request->output, err);
  n->destroy(&p);
  return r;
}

/* The library finds its builtins by name, and the dynamic linker may prefer another copy. */
static int check_origin(const struct cfs_nvrtc_request *request, cfs_error **err)
{
  cleanup_fclose FILE *maps = fopen("/proc/self/maps", "re");
  cleanup_free char *line = NULL, *root = realpath(request->root, NULL);
  size_t room = 0;
  while (maps && root && getline(&line, &room, maps) > 0) {
    char *path = strchr(line, '/');
    if (!path || !strstr(path, "/libnvrtc"))
      continue;
    path[strcspn(path, "\n")] = '\0';
    cleanup_free char *real = realpath(path, NULL);
    const char *at = real ? real : path;
    if (!cfs_has_prefix(at, root) || at[strlen(root)] != '/')
      return cfs_error_set(err, CFS_FAILED, EXDEV, request->library, "look at LD_LIBRARY_PATH and /etc/ld.so.conf.d",
                           "shadowed by %s, which was loaded with it", at);
  }
  return 0;
}

int cfs_nvrtc_compile(const struct cfs_nvrtc_request *request, char **ret_version, cfs_error **err)
{
  cleanup_free char *text = NULL;
  int r = cfs_file_read(request->source, SOURCE_LIMIT, &text, NULL);
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, request->source, NULL, "it cannot be read (%s)", strerror(-r));
  struct nvrtc n;
  r = load(request->library, &n, err);
  if (r == 0)
    r = compile(&n, request, text, err);
  if (r == 0)
    r = check_origin(request, err);
  int major = 0, minor = 0;
  if (r == 0 && n.version(&major, &minor) == 0)
    *ret_version = cfs_format("%d.%d", major, minor);
  return r;
}
