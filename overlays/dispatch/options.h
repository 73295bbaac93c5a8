/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_OPTIONS_H
#define CUDAFS_DISPATCH_OPTIONS_H

/* The exact options of nvcc, ptxas and nvlink. The tables are generated from the *-options.tsv
 * files: NVIDIA's engine takes no abbreviations, so a name either stands there or is unknown. */

#include <stdbool.h>
#include <stddef.h>

enum cfs_option_kind {
  CFS_KIND_FLAG,
  CFS_KIND_VALUE,    /* after '=', else the next word */
  CFS_KIND_LIST,     /* likewise, split at commas */
  CFS_KIND_OPTIONAL, /* likewise, but may stand last or before another option */
  CFS_KIND_ATTACHED, /* likewise, and without a blank: -I/a */
  CFS_KIND_GLUED,    /* without a blank or after '=', never the next word: -O3 of ptxas */
};

enum cfs_option_role {
  CFS_ROLE_NONE,
  CFS_ROLE_ARCH,    /* -arch */
  CFS_ROLE_CODE,    /* -code */
  CFS_ROLE_GENCODE, /* -gencode */
  CFS_ROLE_FILE,    /* -optf: more words in files */
  CFS_ROLE_PATHS,   /* files or directories to read from */
  CFS_ROLE_HOST,    /* words for the host compiler */
  CFS_ROLE_LINK,    /* words for a linker */
  CFS_ROLE_NVVM,    /* where nvlink finds libnvvm */
  CFS_ROLE_TEXT,    /* the input itself */
  CFS_ROLE_FORWARD, /* unknown options are legal */
  CFS_ROLE_REPORT,  /* --version and the like: nothing is compiled */
};

struct cfs_option {
  const char *name;
  unsigned char kind, role;
};

struct cfs_option_table {
  const struct cfs_option *options; /* ascending by strcmp */
  size_t count;
};

extern const struct cfs_option_table cfs_nvcc_options, cfs_ptxas_options, cfs_nvlink_options;

/* How a word that stands where an option may stand reads. */
struct cfs_match {
  const struct cfs_option *option; /* NULL: an input, or unknown */
  const char *value;               /* inside the word, NULL when it holds none */
  bool unknown;                    /* begins with '-' and is no option */
  bool takes_next;                 /* the value is the next word */
};

/* Matches word against the table; pointers in the result point into word and the table. */
struct cfs_match cfs_option_match(const struct cfs_option_table *table, const char *word);

#endif
