/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_PROBE_CACHE_H
#define CUDAFS_OVERLAYS_PROBE_CACHE_H

/* Probes kept as small JSON files, one per probed file. A cache: whatever is missing, damaged, of
 * another file or of another format reads as absent, and what cannot be written is not written. */

#include <sys/stat.h>

#include "overlays/probe.h"

/* $XDG_CACHE_HOME/cudafs/probes, ~/.cache/cudafs/probes, or /var/cache/cudafs/probes for root; NULL when
 * the environment names no home. The caller owns it. */
char *cfs_probe_cache_dir(void);

/* The probe kept for the file at path whose stat is st, when it asked about every target of universe
 * (sorted). NULL else. */
struct cfs_probe *cfs_probe_cache_load(const char *dir, const char *path, const struct stat *st,
                                       const cfs_strings *universe);

/* Keeps a probe that asked about these targets. */
void cfs_probe_cache_store(const char *dir, const char *path, const struct stat *st, const cfs_strings *asked,
                           const struct cfs_probe *probe);

#endif
