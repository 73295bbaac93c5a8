/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_STUB_H
#define CUDAFS_OVERLAYS_STUB_H

/* Stub libraries for linking where no driver is installed: real shared objects whose every symbol
 * returns the error that says "this is the stub". The symbols are those the composed headers
 * declare, so the stub fits the release. An empty library or a linker script will not do: the
 * first is dropped by --as-needed, the second needs the real library. */

#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"
#include "overlays/stub_elf.h"

/* The machine cudafs was built for. */
enum cfs_machine cfs_machine_native(void);

/* libcuda.so (SONAME libcuda.so.1) with what the headers declare: cuda.h and, where they exist,
 * cudaEGL.h, cudaGL.h, cudaVDPAU.h, cudaProfiler.h. The bytes depend on the arguments alone.
 * Returns 0 (the caller owns *ret_elf), -ENODATA when no header declares anything, or another
 * negative errno when one cannot be read. */
int cfs_stub_driver(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf,
                    size_t *ret_size, cfs_error **err);

/* libnvidia-ml.so (SONAME libnvidia-ml.so.1) with what nvml.h declares. Likewise. */
int cfs_stub_nvml(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf, size_t *ret_size,
                  cfs_error **err);

/* The names the two above export, sorted and added to ret_symbols. */
int cfs_stub_driver_symbols(const char *const *headers, size_t count, cfs_strings *ret_symbols, cfs_error **err);
int cfs_stub_nvml_symbols(const char *const *headers, size_t count, cfs_strings *ret_symbols, cfs_error **err);

#endif
