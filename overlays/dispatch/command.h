/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_COMMAND_H
#define CUDAFS_DISPATCH_COMMAND_H

/* A command line as the tool sees it: the words of NVCC_PREPEND_FLAGS, of the command and of
 * NVCC_APPEND_FLAGS in that order, with options files expanded where they stand. */

#include <stdbool.h>
#include <stddef.h>

#include "overlays/dispatch/options.h"

enum cfs_origin { CFS_FROM_PREPEND, CFS_FROM_ARGV, CFS_FROM_APPEND, CFS_ORIGINS };

struct cfs_word {
  char *text; /* owned */
  enum cfs_origin origin;
};

typedef struct cfs_command {
  const struct cfs_option_table *table;
  struct cfs_word *words;
  size_t count;
  bool broken;                 /* the tool will refuse it, with a message of its own */
  bool has_files[CFS_ORIGINS]; /* options files stood in these words */
  size_t files;                /* how many were read */
} cfs_command;

/* One step of a command: an option with its value, an input, or something unknown. */
struct cfs_item {
  struct cfs_match match;
  const char *value; /* of the option, or the input itself; NULL for a flag */
  size_t word;       /* which word value lies in */
};

/* Takes a command apart. argv is without the program's name and ends in NULL; prepend and append may be
 * NULL. Never fails: what cannot be understood sets broken. The caller frees it with cfs_command_done. */
void cfs_command_read(cfs_command *c, const struct cfs_option_table *table, char *const argv[], const char *prepend,
                      const char *append);

/* Gives the step at word *at and moves *at past it; false at the end. */
bool cfs_command_next(const cfs_command *c, size_t *at, struct cfs_item *ret);

void cfs_command_done(cfs_command *c);
#define cleanup_command __attribute__((cleanup(cfs_command_done)))

#endif
