/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_REQUEST_H
#define CUDAFS_DISPATCH_REQUEST_H

/* What a command asks of a toolchain. */

#include <stdbool.h>

#include "base/strings.h"
#include "overlays/dispatch/command.h"
#include "overlays/dispatch/routing.h"

typedef struct cfs_request {
  cfs_strings archs;          /* of options, without "sm_": a tool must know them all */
  cfs_strings targets;        /* of .target in the inputs: a tool must read them all */
  struct cfs_ptx_version ptx; /* the newest that an input is written in */
  bool report;                /* --version and the like: says what the face is */
  bool broken;                /* the face is to say what is wrong with it */
  bool undecided;             /* an input could not be read: the newest tool understands most */
} cfs_request;

/* Each reads the command of its tool into *ret, which starts zeroed. */
void cfs_request_nvcc(const cfs_command *c, cfs_request *ret);
void cfs_request_ptxas(const cfs_command *c, cfs_request *ret);
void cfs_request_nvlink(const cfs_command *c, cfs_request *ret);

/* Adds every name of archs and targets to names, once each. */
void cfs_request_names(const cfs_request *r, cfs_strings *names);

void cfs_request_done(cfs_request *r);
#define cleanup_request __attribute__((cleanup(cfs_request_done)))

#endif
