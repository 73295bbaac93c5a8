/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_ENTRIES_H
#define CUDAFS_OVERLAYS_ENTRIES_H

/* A plan's list of paths while it is being laid out. */

#include "overlays/plan.h"

typedef struct cfs_entries {
  cfs_entry *items;
  size_t count;
} cfs_entries;

/* Each adds one entry. path is taken over; so is data. The first entry of a path wins. */
cfs_entry *cfs_entries_add(cfs_entries *e, enum cfs_entry_kind kind, char *path);
void cfs_entries_file(cfs_entries *e, char *path, const cfs_file *file, const cfs_choice *choice);
void cfs_entries_link(cfs_entries *e, char *path, const char *target, const cfs_choice *choice, const char *why);
void cfs_entries_blob(cfs_entries *e, char *path, void *data, size_t size, const cfs_choice *choice, const char *why);

/* Sorts by path and drops later doubles. */
void cfs_entries_settle(cfs_entries *e);
/* In a settled list; NULL when it is not there. */
const cfs_entry *cfs_entries_find(const cfs_entries *e, const char *path);
void cfs_entry_done(cfs_entry *entry);

#endif
