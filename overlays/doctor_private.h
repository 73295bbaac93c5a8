/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_DOCTOR_PRIVATE_H
#define CUDAFS_OVERLAYS_DOCTOR_PRIVATE_H

/* Shared by the doctor_*.c files alone. */

#include "overlays/cuda_home.h"
#include "overlays/doctor.h"
#include "overlays/scan.h"

struct cfs_examination {
  const struct cfs_doctor_request *request;
  const cfs_tables *tables;
  cfs_diagnosis *diagnosis;
  struct cfs_found *found; /* what a scan finds, when nothing was named */
  size_t n_found;
  cfs_inventory **wheels; /* of the site-packages whose wheels programs import */
  size_t n_wheels;
};

/* Adds a check and returns it, valid until the next add. */
struct cfs_check *cfs_check_add(struct cfs_examination *x, const char *code, enum cfs_check_status status,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

void cfs_examine_environment(struct cfs_examination *x);
void cfs_examine_strays(struct cfs_examination *x);
void cfs_examine_machine(struct cfs_examination *x);
void cfs_examine_sources(struct cfs_examination *x);
/* -ENOENT with *err set when a consumer that was asked for is not known. */
int cfs_examine_consumers(struct cfs_examination *x, cfs_error **err);

#endif
