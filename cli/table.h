/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_TABLE_H
#define CUDAFS_CLI_TABLE_H

/* A table of text for people: columns as wide as their content, the ones that may shrink shortened
 * until the line fits. */

#include "cli/output.h"

struct cfs_column {
  const char *title; /* or "" */
  size_t least;      /* may shrink to this many columns; 0: never */
  bool keep_end;     /* when it shrinks, its end is what matters (paths) */
};

struct cfs_cell {
  char *text; /* owned; may be NULL */
  enum cfs_style style;
};

typedef struct cfs_table {
  const struct cfs_column *columns; /* borrowed */
  size_t n_columns;
  struct cfs_cell *cells; /* row by row */
  size_t n_cells;
} cfs_table;

/* Adds the next cell, left to right; takes ownership of text. */
void cfs_table_add(cfs_table *t, enum cfs_style style, char *text);
/* Writes title line and rows, each line indented by two blanks. */
void cfs_table_print(const cfs_table *t, FILE *to);
void cfs_table_done(cfs_table *t);
#define cleanup_table __attribute__((cleanup(cfs_table_done)))

#endif
