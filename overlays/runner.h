/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_RUNNER_H
#define CUDAFS_OVERLAYS_RUNNER_H

/* Runs a tool that is asked a question: no shell, an empty environment, no input, a time limit, and
 * what it says read back. The tool may be broken, foreign or hostile to our patience, not to us: it
 * runs with our rights. */

#include <stddef.h>

enum { CFS_RUN_MAX = 2 }; /* calls at once */

struct cfs_call {
  const char *const *argv; /* in: NULL-terminated */
  char *output;            /* out: standard output and error together; the caller frees it */
  int status;              /* out: exit status, or 128 + the signal that ended it */
};

/* Runs up to CFS_RUN_MAX calls of the program at path beside each other and waits for all. Returns 0 once
 * every one has ended; -ETIMEDOUT when one took longer than the limit and -EFBIG when one said more
 * than 1 MiB (all are killed then, with the processes they started); else a negative errno: what
 * starting it gave. The outputs are set only on success. */
int cfs_run(const char *path, struct cfs_call *calls, size_t count, unsigned timeout_ms);

/* A private executable copy in memory of a program that is readable and may not be executed where it
 * is. *ret_path names it for cfs_run as long as *ret_fd is open; the caller owns both. Returns 0 or a
 * negative errno. */
int cfs_run_copy(const char *path, int *ret_fd, char **ret_path);

#endif
