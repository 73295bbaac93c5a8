/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_PROBLEM_H
#define CUDAFS_OVERLAYS_PROBLEM_H

/* Something that a person should know about a composition. Codes are listed in problem-codes.json;
 * scripts match on them, so they never change. */

#include "base/strings.h"

enum cfs_severity { CFS_NOTE, CFS_WARNING, CFS_PROBLEM };
const char *cfs_severity_name(enum cfs_severity s); /* "note", "warning", "error" */

typedef struct cfs_problem {
  char *code;
  enum cfs_severity severity;
  char *component; /* or NULL */
  char *source;    /* source id, or NULL */
  char *release;   /* the candidate release that it speaks of, or NULL */
  char *message;
  cfs_strings fix; /* commands or steps, in order */
} cfs_problem;

typedef struct cfs_problems {
  cfs_problem *items;
  size_t count;
} cfs_problems;

/* Adds a problem and returns it, valid until the next add. */
cfs_problem *cfs_problems_add(cfs_problems *list, const char *code, enum cfs_severity severity, const char *component,
                              const char *message_format, ...) __attribute__((format(printf, 5, 6)));
/* Adds a deep copy. */
void cfs_problems_copy(cfs_problems *list, const cfs_problem *p);
size_t cfs_problems_errors(const cfs_problems *list);
void cfs_problems_done(cfs_problems *list);
#define cleanup_problems __attribute__((cleanup(cfs_problems_done)))

#endif
