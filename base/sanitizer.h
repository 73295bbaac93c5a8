/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_SANITIZER_H
#define CUDAFS_BASE_SANITIZER_H

/* Sanitizers bring system calls and log files of their own and reserve terabytes of address space:
 * limits that hold for the program itself cannot hold for an instrumented one. gcc tells by macros,
 * clang by features. */
#if defined(__has_feature)
#define CFS_HAS_FEATURE(x) __has_feature(x)
#else
#define CFS_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || CFS_HAS_FEATURE(address_sanitizer) || \
    CFS_HAS_FEATURE(thread_sanitizer)
#define CFS_INSTRUMENTED 1
#else
#define CFS_INSTRUMENTED 0
#endif

#endif
