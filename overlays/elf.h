/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_ELF_H
#define CUDAFS_OVERLAYS_ELF_H

/* What an ELF file says of itself, read without running it. The files may come from anywhere
 * (a venv, an archive): headers that lie cost an error, never a crash, and a search never reads
 * more bytes than the file holds. Nothing is mapped, so a file that shrinks meanwhile is no SIGBUS.
 *
 * All return 0 or a negative errno: -ENOEXEC when the file is no ELF, -EBADMSG when it is a
 * truncated or damaged one, -ENODATA when it is sound and does not say, else what open said.
 * Outputs are set only on success; the caller owns strings unless told otherwise. */

#include "base/error.h"

/* "Cuda compilation tools, release 13.2, V13.2.78" as the tools, cicc, libnvvm, libnvrtc and
 * libnvJitLink embed it in read-only data: *ret_version is "13.2.78" and *ret_build is
 * "cuda_13.2.r13.2/compiler.37668154_0", or NULL (cudafe++ has none). ret_build may be NULL. */
int cfs_elf_tool_version(const char *path, char **ret_version, char **ret_build, cfs_error **err);

/* DT_SONAME. */
int cfs_elf_soname(const char *path, char **ret_soname);

/* "x86_64", "aarch64", or another machine's e_machine as a word like "machine-8"; owned by the caller. */
int cfs_elf_machine(const char *path, char **ret_machine);

/* CUDART_VERSION (13020) of an x86-64 libcudart.so, which holds no version string: a hint taken
 * from its code. -ENODATA when the code does not name exactly one value. */
int cfs_elf_cudart_version(const char *path, int *ret_version);

#endif
