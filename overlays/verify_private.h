/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_VERIFY_PRIVATE_H
#define CUDAFS_OVERLAYS_VERIFY_PRIVATE_H

/* Shared by the verify_*.c files alone. */

#include "overlays/verify.h"

/* One test while it runs, in a folder of its own. */
struct cfs_trial {
  const cfs_subject *subject;
  const struct cfs_verify_options *options;
  const cfs_strings *environment;
  const char *folder;
  struct cfs_test_result *result;               /* name and target are set */
  const struct cfs_verify_toolchain *toolchain; /* of a toolchain test */
};

typedef void (*cfs_trial_run)(struct cfs_trial *t);

struct cfs_trial_kind {
  const char *name;
  cfs_trial_run run;
  bool once; /* for the first target only */
};
/* Every test that each subject gets; the one of a further toolchain. */
extern const struct cfs_trial_kind cfs_trial_kinds[];
extern const size_t cfs_trial_kind_count;
void cfs_trial_toolchain(struct cfs_trial *t);

/* The result of a trial; the first failure stays. */
void cfs_trial_settle(struct cfs_trial *t, enum cfs_test_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Runs a command in the trial's folder; false (and settled as failed) unless it exits with 0. ret_output may
 * be NULL; else it is the caller's. Takes argv over. */
bool cfs_trial_command(struct cfs_trial *t, cfs_strings *argv, char **ret_output);
/* Likewise for our own helper, with limits that hold a library in check. */
bool cfs_trial_helper(struct cfs_trial *t, cfs_strings *argv, char **ret_output);
bool cfs_trial_write(struct cfs_trial *t, const char *name, const char *text);

/* A CUDA file that was read from elsewhere than the toolkit at root, though the toolkit has that name or
 * should have it: "shadowed by PATH"; NULL when there is none. The caller owns the result.
 * depfile: what -MD wrote. trace: what the linker's --trace said. */
char *cfs_origin_of_headers(const char *root, const char *depfile);
char *cfs_origin_of_libraries(const char *root, const char *trace);
/* The DT_NEEDED names of an ELF file; a negative errno when it cannot be read. */
int cfs_origin_needed(const char *path, cfs_strings *ret);

#endif
