/* SPDX-License-Identifier: MIT */
/* What mounting and compiling need of the machine itself. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/version.h"
#include "overlays/doctor_private.h"
#include "overlays/header.h"
#include "overlays/host.h"
#include "overlays/runner.h"

enum { ASK_MS = 10000 };

static void check_fuse(struct cfs_examination *x)
{
  static const char device[] = "/dev/fuse";
  cleanup_free char *helper = cfs_path_search(getenv("PATH"), "fusermount3");
  bool root = geteuid() == 0;
  if (access(device, F_OK) < 0) {
    struct cfs_check *c = cfs_check_add(x, "fuse", CFS_CHECK_ERROR, "there is no %s: nothing can be mounted", device);
    cfs_strings_add(&c->fix, "modprobe fuse    # in a container: pass the device, --device /dev/fuse");
  } else if (!root && access(device, R_OK | W_OK) < 0) {
    struct cfs_check *c =
        cfs_check_add(x, "fuse", CFS_CHECK_ERROR, "%s cannot be opened by this user (%s)", device, strerror(errno));
    cfs_strings_add(&c->fix, "sudo chmod 0666 /dev/fuse");
  } else if (!helper) {
    struct cfs_check *c = cfs_check_add(x, "fuse", root ? CFS_CHECK_NOTE : CFS_CHECK_ERROR,
                                        "fusermount3 is not installed; only root can mount");
    cfs_strings_add(&c->fix, "sudo apt install fuse3");
  } else {
    cfs_check_add(x, "fuse", CFS_CHECK_OK, "%s can be opened, fusermount3 is %s", device, helper);
  }
}

static bool allows_others(void)
{
  cleanup_free char *text = NULL;
  cleanup_strings cfs_strings lines = {0};
  if (cfs_file_read("/etc/fuse.conf", 1 << 16, &text, NULL) < 0)
    return false;
  cfs_strings_split(&lines, text, "\n");
  for (size_t i = 0; i < lines.count; i++)
    if (cfs_has_prefix(lines.items[i], "user_allow_other"))
      return true;
  return false;
}

static void check_allow_other(struct cfs_examination *x)
{
  if (geteuid() == 0 || allows_others())
    return;
  struct cfs_check *c =
      cfs_check_add(x, "fuse-allow-other", CFS_CHECK_NOTE,
                    "user_allow_other is not set in /etc/fuse.conf: only you, not even root, can enter your mounts");
  cfs_strings_add(&c->fix, "echo user_allow_other | sudo tee -a /etc/fuse.conf");
}

/* The host_config.h that counts: of the plan, of the CUDA_HOME given, of the one in the environment. */
static char *find_host_config(const struct cfs_examination *x)
{
  const cfs_build *build = x->request->build;
  const char *home = x->request->dir ? x->request->dir : getenv("CUDA_HOME");
  if (build && build->plan->n_toolchains) {
    const cfs_file *file = cfs_toolchain_file(&build->plan->toolchains[0], "include/crt/host_config.h", NULL);
    return file ? cfs_strdup(file->path) : NULL;
  }
  return home && *home ? cfs_path_join(home, "include/crt/host_config.h") : NULL;
}

static void check_host_compiler(struct cfs_examination *x)
{
  cleanup_free char *config = find_host_config(x);
  struct cfs_host_limits limits = {0};
  struct cfs_host_compiler compiler = {0};
  cleanup_error cfs_error *why = NULL;
  if (cfs_host_compiler_find(getenv("NVCC_CCBIN"), &compiler, &why) < 0) {
    struct cfs_check *c = cfs_check_add(x, "host-compiler", CFS_CHECK_ERROR, "%s: %s", why->what, why->why);
    cfs_strings_add(&c->fix, "sudo apt install g++");
    return;
  }
  const char *name = compiler.clang ? "clang" : "g++";
  bool known = config && cfs_header_host_limits(config, &limits, NULL) == 0;
  int newest = compiler.clang ? limits.clang_limit - 1 : limits.gcc_max;
  if (known && newest > 0 && compiler.major > newest) {
    struct cfs_check *c =
        cfs_check_add(x, "host-compiler-unsupported", CFS_CHECK_ERROR, "%s is %s %s; %s takes %s up to %d",
                      compiler.path, name, compiler.version, config, name, newest);
    cfs_strings_take(&c->fix, cfs_format("sudo apt install g++-%d && export NVCC_CCBIN=g++-%d", newest, newest));
  } else if (known && newest > 0) {
    cfs_check_add(x, "host-compiler", CFS_CHECK_OK, "%s is %s %s; up to %d is taken", compiler.path, name,
                  compiler.version, newest);
  } else {
    cfs_check_add(x, "host-compiler", CFS_CHECK_OK, "%s is %s %s", compiler.path, name, compiler.version);
  }
  cfs_host_compiler_done(&compiler);
}

static char *release_in_use(const struct cfs_examination *x)
{
  if (x->request->build)
    return x->request->build->plan->release ? cfs_strdup(x->request->build->plan->release) : NULL;
  const char *home = x->request->dir ? x->request->dir : getenv("CUDA_HOME");
  cleanup_cuda_home cfs_cuda_home h = {0};
  if (home && *home)
    cfs_cuda_home_read(home, &h);
  return h.release ? cfs_strdup(h.release) : NULL;
}

/* sccache 0.16.0 loses the intermediate cubins of nvcc from 13.3 on: "Could not open input file". */
static void check_sccache(struct cfs_examination *x)
{
  cleanup_free char *path = cfs_path_search(getenv("PATH"), "sccache"), *release = release_in_use(x);
  if (!path)
    return;
  const char *const argv[] = {path, "--version", NULL};
  struct cfs_call call = {.argv = argv};
  if (cfs_run(path, &call, 1, ASK_MS) < 0)
    return;
  cleanup_free char *output = call.output;
  if (!strstr(output, "0.16.0") || !release || cfs_version_compare(release, "13.3") < 0)
    return;
  struct cfs_check *c =
      cfs_check_add(x, "sccache-nvcc", CFS_CHECK_WARNING,
                    "sccache 0.16.0 fails with the nvcc of CUDA 13.3 and later (\"Could not open input "
                    "file\"), here %s",
                    release);
  cfs_strings_add(&c->fix, "use ccache, or another release of sccache, or CUDA 13.2");
}

void cfs_examine_machine(struct cfs_examination *x)
{
  check_fuse(x);
  check_allow_other(x);
  check_host_compiler(x);
  check_sccache(x);
}
