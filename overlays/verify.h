/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_VERIFY_H
#define CUDAFS_OVERLAYS_VERIFY_H

/* Does a CUDA_HOME really compile? Small programs go through every stage of it, and everything that was
 * read on the way must have come from it or from the system, never from another CUDA. No GPU is used. */

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

enum cfs_test_status { CFS_TEST_PASS, CFS_TEST_FAIL, CFS_TEST_SKIP };
const char *cfs_test_status_name(enum cfs_test_status s); /* "pass", "fail", "skip"; static */

struct cfs_test_result {
  char *name;   /* "nvcc-object", "toolchain-13.2" */
  char *target; /* "sm_120a" */
  enum cfs_test_status status;
  char *command; /* what was run, to be pasted; "" when nothing was */
  char *detail;  /* why it failed or was skipped; otherwise what was seen */
  double seconds;
};

/* Another toolchain behind the same bin/ptxas. */
struct cfs_verify_toolchain {
  char *release, *max_ptx, *target;
};

/* What is to be verified. */
typedef struct cfs_subject {
  char *root;
  char *release;       /* or NULL when it does not say */
  char *max_ptx;       /* newest PTX that its own tools take, or NULL */
  cfs_strings targets; /* to compile for */
  cfs_strings archs;   /* that its own tools know; may be empty */
  struct cfs_verify_toolchain *toolchains;
  size_t n_toolchains;
} cfs_subject;

/* Reads what the CUDA_HOME at root says of itself: a mount's plan, else what its ptxas answers. */
int cfs_subject_read(const char *root, cfs_subject *ret, cfs_error **err);
void cfs_subject_done(cfs_subject *s);

struct cfs_verify_options {
  const char *helper;                /* the program that knows CFS_NVRTC_COMMAND */
  const volatile sig_atomic_t *stop; /* not 0: end early; or NULL */
  /* Called from one thread at a time when a test starts; or NULL. */
  void (*progress)(void *data, const char *name, const char *target, size_t done, size_t total);
  void *data;
  char **ret_kept; /* not NULL: keep what was made, and say where; the caller's */
};

typedef struct cfs_verify_report {
  struct cfs_test_result *tests;
  size_t n_tests;
} cfs_verify_report;

/* Runs every test for every target of the subject. -EINTR when it was stopped; a failed test is no error.
 * What it made in $TMPDIR is removed. */
int cfs_verify(const cfs_subject *subject, const struct cfs_verify_options *options, cfs_verify_report *ret,
               cfs_error **err);
size_t cfs_verify_count(const cfs_verify_report *report, enum cfs_test_status status);
void cfs_verify_report_done(cfs_verify_report *report);

#endif
