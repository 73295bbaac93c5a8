/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_VERSION_H
#define CUDAFS_MANIFESTS_VERSION_H

#include <stdbool.h>

#include "base/error.h"

/* Versions are dotted numbers ("13.2.78", "13.3.5.0.6"); releases are their first two numbers. */

/* <0, 0, >0 by number, element by element; a missing element counts as 0; a trailing non-numeric
 * part (as in "0.0.1.dev5") is compared as text last. */
int cfs_version_compare(const char *a, const char *b);
/* "13.2.78" -> "13.2"; NULL if there are not two numbers. The caller owns the result. */
char *cfs_version_release(const char *version);
int cfs_version_major(const char *version); /* -1 if there is none */
/* True if version lies in release: same first two numbers. */
bool cfs_version_in_release(const char *version, const char *release);

/* A requirement such as "13.2", "==13.2.*", ">=12.9,<14", "newest". */
typedef struct cfs_requirement cfs_requirement;
int cfs_requirement_parse(const char *text, cfs_requirement **ret, cfs_error **err);
/* Is the release (X.Y) or version admitted? "newest" admits all; "13.2" admits 13.2 and 13.2.x. */
bool cfs_requirement_admits(const cfs_requirement *r, const char *version);
void cfs_requirement_free(cfs_requirement *r);

#endif
