/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_ARGUMENTS_H
#define CUDAFS_CLI_ARGUMENTS_H

/* A command's words, described once: parsing, --help and error messages come from the description. */

#include "base/strings.h"

struct cfs_option {
  const char *name;  /* "json", for --json */
  char letter;       /* 'f' for -f, or 0 */
  const char *value; /* how the help calls its value ("SECONDS"), or NULL for a flag */
  const char *help;
  bool *flag;         /* a flag sets this, */
  char **text;        /* a value goes here (the last one counts; owned by the caller), */
  cfs_strings *texts; /* or is added here */
};

struct cfs_usage {
  const char *name;     /* "mount" */
  const char *synopsis; /* "[MANIFEST] DIR" */
  const char *summary;  /* one line, for the list of commands */
  const char *help;     /* paragraphs for --help, wrapped as they stand */
  size_t least, most;   /* operands */
};

/* Options may stand anywhere; "--" ends them. The operands are added to ret. Returns -1 to go on, else the
 * exit code: 0 after --help, CFS_INVALID after an error was told. */
int cfs_arguments(const struct cfs_usage *usage, const struct cfs_option *options, size_t n_options, int argc,
                  char *const *argv, cfs_strings *ret);

#endif
