/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_DIGEST_H
#define CUDAFS_BASE_DIGEST_H

#include <stddef.h>

/* 64 hexadecimal digits and a NUL. */
#define CFS_DIGEST_TEXT 65

/* SHA-256 of the bytes as lower-case hexadecimal text. Returns 0, or -EIO when the library fails. */
int cfs_digest(const void *data, size_t size, char ret[CFS_DIGEST_TEXT]);

#endif
