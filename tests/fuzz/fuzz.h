/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_TESTS_FUZZ_H
#define CUDAFS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry; replay.c calls it too, with each file of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the fuzzer made of its last input: replay.c holds it against the file's name. */
enum cfs_fuzz_verdict { CFS_FUZZ_NONE, CFS_FUZZ_GOOD, CFS_FUZZ_BAD };
enum cfs_fuzz_verdict cfs_fuzz_last_verdict(void);

#endif
