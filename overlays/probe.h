/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_PROBE_H
#define CUDAFS_OVERLAYS_PROBE_H

/* What a ptxas can do, asked of the tool itself. The answers are kept under a cache directory per
 * file identity (device, inode, size, mtime, path): probing costs some 60 ms, reading them back
 * none. */

#include "base/error.h"
#include "base/strings.h"

struct cfs_probe {
  char *version;       /* "13.2.78" */
  char *max_ptx;       /* "9.2": the newest .version it takes */
  cfs_strings targets; /* "sm_75" "sm_100f" ..., sorted by strcmp, no doubles */
};

/* Probes the ptxas at path: version, PTX limit and which targets it knows, among those of universe
 * (every target any table knows; may be NULL) and those it lists by itself. cache_dir NULL means
 * $XDG_CACHE_HOME/cudafs/probes, ~/.cache/cudafs/probes, or /var/cache/cudafs/probes for root; one that
 * cannot be read or written is done without, and a damaged entry is made anew.
 *
 * The tool runs with an empty environment, no input, and ten seconds; one that cannot be executed in
 * place (a wheel's mode 0744 under another owner, a noexec mount) runs from a private copy in memory.
 * Returns 0 (the caller owns *ret_probe); -ENOEXEC when this machine cannot run it, or when root would
 * run what another user may change, so that the tables must answer; -ETIMEDOUT when it hung (and was killed); -ENODATA
 * when it ran and its answers are not a ptxas's; else what opening it gave. */
int cfs_probe_ptxas(const char *path, const cfs_strings *universe, const char *cache_dir, struct cfs_probe **ret_probe,
                    cfs_error **err);

void cfs_probe_free(struct cfs_probe *probe);
void cfs_cleanup_probe(void *pp);
#define cleanup_probe __attribute__((cleanup(cfs_cleanup_probe)))

#endif
