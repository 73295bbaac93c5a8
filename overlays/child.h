/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_CHILD_H
#define CUDAFS_OVERLAYS_CHILD_H

/* Runs a program that works for us (a compiler, our own helper) to its end: given environment and
 * folder, no input, resource limits, a time limit, and one flag of the caller's that ends it early. It may
 * be called from several threads at once; the program dies with the thread that started it. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"

struct cfs_child_limits {
  unsigned timeout_s;     /* of wall clock */
  unsigned cpu_s;         /* of processor time, for each process; 0: none */
  uint64_t address_space; /* bytes; 0: none */
  uint64_t file_size;     /* bytes; 0: none */
};

struct cfs_child {
  const cfs_strings *argv;        /* argv[0] is the path of the program */
  const cfs_strings *environment; /* "NAME=value", all of it */
  const char *cwd;
  struct cfs_child_limits limits;
  const volatile sig_atomic_t *stop; /* not 0: kill it and return -EINTR; may be NULL */
};

struct cfs_child_result {
  int status;   /* exit status, or 128 + the signal that ended it */
  char *output; /* standard output and error together, at most 1 MiB of it; the caller's */
};

/* Returns 0 when the program ran to its end; -ETIMEDOUT (it and its children were killed), -EINTR,
 * else what starting it gave. *ret is set when 0 or -ETIMEDOUT is returned. */
int cfs_child_run(const struct cfs_child *child, struct cfs_child_result *ret);

/* The command as one would type it, words quoted where a shell needs it. The caller owns the result. */
char *cfs_command_text(const cfs_strings *argv);

#endif
