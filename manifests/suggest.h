/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_SUGGEST_H
#define CUDAFS_MANIFESTS_SUGGEST_H

#include <stddef.h>

/* The number of single-character insertions, removals, changes and neighbour swaps between two words. */
size_t cfs_edit_distance(const char *a, const char *b);

/* Keeps the best of the choices that it is offered. Zero-initialised with word set is empty. */
typedef struct cfs_suggestion {
  const char *word;
  const char *best; /* borrowed from the choices; NULL while nothing was near enough */
  size_t distance;
} cfs_suggestion;

void cfs_suggestion_offer(cfs_suggestion *s, const char *choice);

/* "did you mean "X"?" or, when nothing was near, the given text; the caller owns the result. */
char *cfs_suggestion_text(const cfs_suggestion *s, const char *otherwise);

#endif
