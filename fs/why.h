/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_WHY_H
#define CUDAFS_FS_WHY_H

/* Replaces *ret_why (which may be NULL) by a formatted sentence and returns r, so that
 * `return cfs_why(ret_why, -EINVAL, "...")` reads well. Without memory *ret_why becomes NULL. */
int cfs_why(char **ret_why, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
