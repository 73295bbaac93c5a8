/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_MANIFEST_INTERNAL_H
#define CUDAFS_MANIFESTS_MANIFEST_INTERNAL_H

/* Shared by the manifest*.c files alone. */

#include "manifests/json_reader.h"
#include "manifests/manifest.h"

/* What a manifest is read with and into. Every reader returns 0, or a negative errno with *err set. */
struct cfs_manifest_reader {
  cfs_manifest *m;
  const char *base; /* absolute folder that relative paths are taken from */
  const cfs_tables *tables;
  cfs_error **err;
};

int cfs_manifest_read_sources(struct cfs_manifest_reader *r, const cfs_json_at *root);
int cfs_manifest_read_components(struct cfs_manifest_reader *r, const cfs_json_at *root); /* after the sources */
int cfs_manifest_read_targets(struct cfs_manifest_reader *r, const cfs_json_at *root);
int cfs_manifest_read_consumers(struct cfs_manifest_reader *r, const cfs_json_at *root);
int cfs_manifest_read_releases(struct cfs_manifest_reader *r, const cfs_json_at *root);
int cfs_manifest_read_policy(struct cfs_manifest_reader *r, const cfs_json_at *root);

/* base/path without doubled slashes and "." elements. ".." stays: taking it away by text would lead
 * elsewhere when the element before it is a link. The caller owns the result. */
char *cfs_manifest_absolute(const char *base, const char *path);
/* Gives an id to every source that has none. */
void cfs_manifest_name_sources(cfs_manifest *m);

#endif
