/* SPDX-License-Identifier: MIT */

/* The program that is served as bin/nvcc, bin/ptxas and bin/nvlink of a tree. It looks at what is asked, picks
 * the toolchain of the tree that can do it, and becomes that tool: nothing of it remains but the lease.
 * Output and exit codes are the tool's own; it speaks only where there is no tool to speak. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "overlays/dispatch/arch.h"
#include "overlays/dispatch/choose.h"
#include "overlays/dispatch/launch.h"
#include "overlays/dispatch/lease.h"
#include "overlays/dispatch/root.h"
#include "overlays/dispatch/routing.h"

#define EXIT_NO_TOOL   127 /* as a shell says it */
#define AGAIN_VARIABLE "CUDAFS_AGAIN"

static bool is_set(const char *variable)
{
  const char *value = getenv(variable);
  return value && *value && strcmp(value, "0") != 0;
}

static int fail(const char *what, const char *why)
{
  fprintf(stderr, "cudafs: %s: %s\n", what, why);
  return EXIT_NO_TOOL;
}

/* A reload came between the kernel's opening of this file and our lease. With the lease in hand no second one
 * can follow, so the tool that stands there now is the right one; once is enough. */
static int start_again(const cfs_routing *r, const char *root, char **argv)
{
  cleanup_free char *bin = cfs_path_join(root, "bin");
  cleanup_free char *tool = cfs_path_join(bin, r->tool);
  if (is_set(AGAIN_VARIABLE))
    return fail(tool, "it belongs to another plan than the tree it lies in");
  setenv(AGAIN_VARIABLE, "1", 1);
  execv(tool, argv);
  return fail(tool, strerror(errno));
}

static void read_request(const cfs_routing *r, char **argv, cfs_command *c, cfs_request *q)
{
  if (strcmp(r->tool, "nvcc") == 0) {
    cfs_command_read(c, &cfs_nvcc_options, argv + 1, getenv("NVCC_PREPEND_FLAGS"), getenv("NVCC_APPEND_FLAGS"));
    cfs_request_nvcc(c, q);
  } else if (strcmp(r->tool, "ptxas") == 0) {
    cfs_command_read(c, &cfs_ptxas_options, argv + 1, NULL, NULL);
    cfs_request_ptxas(c, q);
  } else {
    cfs_command_read(c, &cfs_nvlink_options, argv + 1, NULL, NULL);
    cfs_request_nvlink(c, q);
  }
}

static void trace(const struct cfs_launch *l, const cfs_request *q)
{
  cleanup_strings cfs_strings names = {0};
  cfs_request_names(q, &names);
  cleanup_free char *archs = cfs_arch_list(&names);
  cleanup_free char *path = cfs_launch_path(l);
  fprintf(stderr, "cudafs: trace: %s: root %s, face %s, asked for [%s]", l->routing->tool, l->root, l->routing->face,
          archs);
  if (q->ptx.major)
    fprintf(stderr, " PTX ISA %d.%d", q->ptx.major, q->ptx.minor);
  fprintf(stderr, ", chose %s (%s), runs %s\n", l->choice->route->release, l->choice->reason, path);
}

static int run(const cfs_routing *r, const char *root, char **argv)
{
  cleanup_command cfs_command command = {0};
  cleanup_request cfs_request request = {0};
  struct cfs_choice choice;
  const char *forced = getenv("CUDAFS_RELEASE");
  read_request(r, argv, &command, &request);
  if (cfs_choose(r, &request, forced, &choice) < 0) {
    cleanup_free char *list = cfs_choose_list(r);
    fprintf(stderr, "cudafs: CUDAFS_RELEASE=%s: no such release with %s here: it has %s\n", forced, r->tool, list);
    return EXIT_NO_TOOL;
  }
  const struct cfs_launch launch = {r, root, &choice, &command, argv};
  if (is_set("CUDAFS_TRACE"))
    trace(&launch, &request);
  if (choice.advice)
    fprintf(stderr, "cudafs: %s\n", choice.advice);
  int error = cfs_launch(&launch);
  cleanup_free char *path = cfs_launch_path(&launch);
  free(choice.advice);
  return fail(path, strerror(-error));
}

int main(int argc, char **argv)
{
  cleanup_routing cfs_routing routing = {0};
  cleanup_free char *root = NULL;
  const char *why = NULL;
  const char *name = argc > 0 ? argv[0] : "dispatcher";
  cleanup_close int self = cfs_root_open_self();
  if (self < 0)
    return fail(name, "it cannot open its own file");
  if (cfs_routing_read(self, &routing, &why) < 0)
    return fail(name, why);
  enum cfs_root_state state = cfs_root_find(&routing, self, &root);
  if (state == CFS_ROOT_NONE)
    return fail(name, "the cudafs tree it belongs to is not where it was started from, nor where it was mounted");
  cfs_lease_take(root);
  if (cfs_root_check(&routing, self, root) != CFS_ROOT_HERE)
    return start_again(&routing, root, argv);
  unsetenv(AGAIN_VARIABLE);
  return run(&routing, root, argv);
}
