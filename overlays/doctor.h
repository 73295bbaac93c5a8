/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_DOCTOR_H
#define CUDAFS_OVERLAYS_DOCTOR_H

/* What is wrong with CUDA on this machine, and the command that mends it. Looks, never changes. */

#include "overlays/build.h"

enum cfs_check_status { CFS_CHECK_OK, CFS_CHECK_NOTE, CFS_CHECK_WARNING, CFS_CHECK_ERROR };
const char *cfs_check_status_name(enum cfs_check_status s); /* "ok", "note", "warning", "error"; static */

struct cfs_check {
  char *code;
  enum cfs_check_status status;
  char *message;
  cfs_strings fix;
};

enum cfs_verdict {
  CFS_VERDICT_OK,
  CFS_VERDICT_LIMITED,    /* fine, but not for every target it knows of */
  CFS_VERDICT_SHADOWED,   /* wheels of another release go before the CUDA_HOME */
  CFS_VERDICT_INCOMPLETE, /* a file that it needs is missing */
  CFS_VERDICT_UNMET,      /* its own policy refuses this release for a target that was asked for */
  CFS_VERDICT_NONE,       /* it finds no CUDA at all */
};
const char *cfs_verdict_name(enum cfs_verdict v); /* static */

struct cfs_consumer_report {
  char *name;
  enum cfs_verdict verdict;
  char *cuda_home; /* that it finds, or NULL */
  char *version;   /* of it, or NULL */
  char *reason;
};

typedef struct cfs_diagnosis {
  struct cfs_check *checks;
  size_t n_checks;
  struct cfs_consumer_report *consumers;
  size_t n_consumers;
} cfs_diagnosis;

struct cfs_doctor_request {
  const char *dir;              /* the CUDA_HOME that consumers will be given, or NULL: what they find now */
  const cfs_build *build;       /* the plan that is meant to serve them, or NULL */
  const cfs_strings *consumers; /* those to look at; empty: all that the tables know */
  void (*progress)(void *data, const char *what); /* or NULL */
  void *data;
};

int cfs_doctor(const struct cfs_doctor_request *request, cfs_diagnosis *ret, cfs_error **err);
void cfs_diagnosis_done(cfs_diagnosis *d);

#endif
