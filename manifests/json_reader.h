/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_JSON_READER_H
#define CUDAFS_MANIFESTS_JSON_READER_H

/* Reading JSON with errors that name file, line and key: "m.json:12", "sources[1].toolkit: expected
 * a string, got 3". Shared by the manifest and the data tables. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"
#include "manifests/json_doc.h"

/* A value and the way to it. It lives on the stack and borrows from the document and from `up`, so it
 * must not outlive either. value is NULL for a member that is not there. */
typedef struct cfs_json_at {
  const cfs_json_doc *doc;
  const struct cfs_json_at *up;
  const char *key; /* NULL for an array element or the root */
  size_t index;
  json_t *value;
} cfs_json_at;

cfs_json_at cfs_json_root(const cfs_json_doc *doc);
cfs_json_at cfs_json_member(const cfs_json_at *object, const char *key);
cfs_json_at cfs_json_element(const cfs_json_at *array, size_t index);
int cfs_json_line(const cfs_json_at *at);

/* Sets the error "NAME:LINE", "KEYPATH: why" and returns a negative errno. */
int cfs_json_fail(const cfs_json_at *at, cfs_error **err, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "KEYPATH: expected WHAT, got ..." with the value shown briefly. */
int cfs_json_expected(const cfs_json_at *at, cfs_error **err, const char *what);

/* The value's type is checked; each returns 0 or a negative errno with *err set. */
int cfs_json_is_object(const cfs_json_at *at, cfs_error **err);
int cfs_json_is_array(const cfs_json_at *at, cfs_error **err);
/* Any key outside the NULL-terminated list is an error with the nearest known key. */
int cfs_json_known_keys(const cfs_json_at *object, const char *const *keys, cfs_error **err);

/* Members of an object. A member that is not there leaves *ret alone, unless required. Strings must
 * not be empty; the caller owns them. */
int cfs_json_get_string(const cfs_json_at *object, const char *key, bool required, char **ret, cfs_error **err);
int cfs_json_get_strings(const cfs_json_at *object, const char *key, bool required, cfs_strings *ret, cfs_error **err);
int cfs_json_get_bool(const cfs_json_at *object, const char *key, bool *ret, cfs_error **err);
int cfs_json_get_int(const cfs_json_at *object, const char *key, bool required, int *ret, cfs_error **err);
/* The member as an array; *ret_count is 0 when it is not there and not required. */
int cfs_json_get_array(const cfs_json_at *object, const char *key, bool required, cfs_json_at *ret, size_t *ret_count,
                       cfs_error **err);

#endif
