/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_STUB_ELF_H
#define CUDAFS_OVERLAYS_STUB_ELF_H

/* Writes a shared object of functions that do nothing but return a constant. */

#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"

enum cfs_machine {
  CFS_MACHINE_X86_64,
  CFS_MACHINE_AARCH64,
};

struct cfs_stub {
  const char *soname;
  enum cfs_machine machine;
  unsigned short status; /* what every function returns ... */
  cfs_strings pointers;  /* ... but these, which return NULL */
  cfs_strings symbols;   /* every function; sorted, no doubles */
};

/* Does not own soname. */
void cfs_stub_done(struct cfs_stub *stub);
#define cleanup_stub __attribute__((cleanup(cfs_stub_done)))

/* The bytes depend on the stub alone. Returns 0 (the caller owns *ret_elf), -ENODATA when there are no
 * symbols, -E2BIG when there are more than 65,536, or what libelf or a memfd gave. */
int cfs_stub_write(const struct cfs_stub *stub, void **ret_elf, size_t *ret_size, cfs_error **err);

#endif
