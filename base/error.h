/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_ERROR_H
#define CUDAFS_BASE_ERROR_H

/* An error that a person can act on: what was being done or looked at, why it failed, and what
 * to do next. It travels up as an out-parameter; whoever receives it owns it. */

/* The values are the process exit codes of the command line. */
enum cfs_error_kind {
  CFS_FAILED = 1,  /* something went wrong */
  CFS_INVALID = 2, /* usage, or a manifest that does not say what it must */
  CFS_REFUSED = 3, /* no coherent answer exists, or a policy forbids it */
};

typedef struct cfs_error {
  enum cfs_error_kind kind;
  int errnum; /* errno value, 0 when none applies */
  char *what; /* the file, directory or manifest position concerned */
  char *why;  /* one sentence, no full stop */
  char *fix;  /* the next thing to do, or NULL */
} cfs_error;

/* Sets *err (which may be NULL: the caller does not care) and returns -errnum, or -EINVAL when errnum
 * is 0, so that `return cfs_error_set(...)` reads well. An error that is already set is kept: the
 * first cause is the one worth showing. fix may be NULL. */
int cfs_error_set(cfs_error **err, enum cfs_error_kind kind, int errnum, const char *what, const char *fix,
                  const char *why_format, ...) __attribute__((format(printf, 6, 7)));

/* Puts "context: " before the why of an error that is set. */
void cfs_error_prefix(cfs_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cfs_error_free(cfs_error *err);

#endif
