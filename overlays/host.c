/* SPDX-License-Identifier: MIT */
#include "overlays/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "overlays/runner.h"

enum { ASK_MS = 10000 };

char *cfs_path_search(const char *list, const char *name)
{
  cleanup_strings cfs_strings folders = {0};
  cfs_strings_split(&folders, list ? list : "", ":");
  for (size_t i = 0; i < folders.count; i++) {
    cleanup_free char *path = cfs_path_join(folders.items[i], name);
    if (cfs_path_is_file(path) && access(path, X_OK) == 0)
      return TAKE_PTR(path);
  }
  return NULL;
}

/* The runner gives no environment, so what the macros are comes from the compiler alone. */
static int ask(struct cfs_host_compiler *c, cfs_error **err)
{
  const char *const version[] = {c->path, "-dumpfullversion", "-dumpversion", NULL};
  const char *const macros[] = {c->path, "--version", NULL};
  struct cfs_call calls[2] = {{.argv = version}, {.argv = macros}};
  int r = cfs_run(c->path, calls, 2, ASK_MS);
  cleanup_free char *number = calls[0].output, *text = calls[1].output;
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, c->path, NULL, "the host compiler does not answer (%s)", strerror(-r));
  size_t n = strspn(number, "0123456789.");
  if (calls[0].status != 0 || !n)
    return cfs_error_set(err, CFS_FAILED, ENODATA, c->path, NULL, "the host compiler does not tell its version");
  c->version = cfs_strndup(number, n);
  c->major = cfs_leading_number(c->version);
  c->clang = text && strstr(text, "clang");
  return 0;
}

int cfs_host_compiler_find(const char *command, struct cfs_host_compiler *ret, cfs_error **err)
{
  cleanup_free char *path = NULL;
  if (command && cfs_path_is_dir(command))
    path = cfs_path_join(command, "g++");
  else if (command && strchr(command, '/'))
    path = cfs_strdup(command);
  else
    path = cfs_path_search(getenv("PATH"), command ? command : "g++");
  if (!path || !cfs_path_is_file(path))
    return cfs_error_set(err, CFS_FAILED, ENOENT, command ? command : "g++", "install it: apt install g++",
                         "there is no such host compiler, and nvcc needs one");
  struct cfs_host_compiler c = {.path = TAKE_PTR(path)};
  int r = ask(&c, err);
  if (r < 0)
    cfs_host_compiler_done(&c);
  else
    *ret = c;
  return r;
}

void cfs_host_compiler_done(struct cfs_host_compiler *c)
{
  free(c->path);
  free(c->version);
  *c = (struct cfs_host_compiler){0};
}
