/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_SESSION_H
#define CUDAFS_CLI_SESSION_H

/* What several subcommands do alike: plan what was asked for, tell why it was refused, and read back what
 * a mount says of itself. */

#include <jansson.h>
#include <signal.h>

#include "fs/serve.h"
#include "overlays/build.h"

/* Plans a manifest, or what a scan finds when manifest is NULL. Returns -1 to go on (also for a refused
 * plan), else the exit code of an error that was told. */
int cfs_session_build(const char *manifest, cfs_build **ret);

/* On stderr: why no coherent set exists, release by release, and what mends it. Returns CFS_REFUSED. */
int cfs_session_refuse(const cfs_build *build);
/* On stderr: the plan's warnings, the first of each code and how many more there are. */
void cfs_session_warn(const cfs_plan *plan);

/* The tree of a coherent plan for that mount point: a descriptor or, once the error was told, the negated exit code. */
int cfs_session_tree(const cfs_build *build, const char *mountpoint);

/* What lies beside the tree of a mount: who made it and what it is. The caller frees it with free(). */
char *cfs_session_label(const cfs_build *build);
/* The label of a status as JSON; NULL when it is not one of ours. The caller owns the result. */
json_t *cfs_session_label_read(const struct cfs_status *status);

/* Absolute, without "." and "..", and with links in the folders above resolved where that is possible: the
 * name under which the kernel lists it. Works for a dead mount too. The caller owns the result. */
char *cfs_session_absolute(const char *path);

/* Makes SIGINT, SIGTERM and SIGHUP set the flag that is returned instead of ending the program. */
const volatile sig_atomic_t *cfs_session_catch_signals(void);

#endif
