/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_COMMAND_H
#define CUDAFS_CLI_COMMAND_H

/* The subcommands: each is one file, gets its own name as argv[0], and returns the exit code. */

#include "cli/arguments.h"

/* Beyond those of enum cfs_error_kind. */
enum { CFS_DEGRADED = 4 };

struct cfs_command {
  const struct cfs_usage *usage;
  int (*run)(int argc, char *const *argv);
};

extern const struct cfs_command cfs_command_doctor;
extern const struct cfs_command cfs_command_env;
extern const struct cfs_command cfs_command_explain;
extern const struct cfs_command cfs_command_mount;
extern const struct cfs_command cfs_command_plan;
extern const struct cfs_command cfs_command_reload;
extern const struct cfs_command cfs_command_scan;
extern const struct cfs_command cfs_command_status;
extern const struct cfs_command cfs_command_umount;
extern const struct cfs_command cfs_command_verify;

/* Not for people: compiles with an NVRTC that is not trusted to end well. The words are LIBRARY ROOT SOURCE
 * OUTPUT OPTION...; prints the library's version. */
int cfs_command_nvrtc(int argc, char *const *argv);

#endif
