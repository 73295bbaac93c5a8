/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_JSON_DOC_H
#define CUDAFS_MANIFESTS_JSON_DOC_H

/* A JSON text and what it holds, kept together so that an error can be traced to its line. */

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

typedef struct cfs_json_doc {
  char *name; /* as errors show it */
  char *text;
  size_t size;
  json_t *root;
  enum cfs_error_kind kind; /* of every error about this document */
} cfs_json_doc;

/* Copies the text. Refuses duplicate keys, comments, trailing commas, a byte order mark and anything
 * that is not UTF-8. */
int cfs_json_doc_parse(const char *name, const char *text, size_t size, enum cfs_error_kind kind, cfs_json_doc **ret,
                       cfs_error **err);
/* Reads at most limit bytes of the file at path. */
int cfs_json_doc_load(const char *path, size_t limit, enum cfs_error_kind kind, cfs_json_doc **ret, cfs_error **err);
void cfs_json_doc_free(cfs_json_doc *doc);

#endif
