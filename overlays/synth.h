/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_SYNTH_H
#define CUDAFS_OVERLAYS_SYNTH_H

/* What a toolkit has and its parts lack: names that linkers and build systems ask for. Everything is
 * derived from the files that are there; no version is invented and no file's bytes are changed. */

#include "overlays/entries.h"

/* Adds for one toolchain below prefix ("" or ".cudafs/toolchains/13.2/"): unversioned and SONAME links,
 * stub libraries, version.json and pkg-config files; for one that only assembles and links
 * device code, what its nvlink needs. placed holds the toolchain's files, settled. */
int cfs_synth_add(const cfs_toolchain *t, const char *prefix, const cfs_entries *placed, cfs_entries *ret,
                  cfs_error **err);

#endif
