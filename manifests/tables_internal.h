/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_TABLES_INTERNAL_H
#define CUDAFS_MANIFESTS_TABLES_INTERNAL_H

/* Shared by the tables_*.c files alone. Each loader fills its part of t from the data folder t->dir;
 * what it had filled when it fails is freed with the rest by cfs_tables_free(). */

#include "manifests/json_reader.h"
#include "manifests/tables.h"

int cfs_tables_load_components(cfs_tables *t, cfs_error **err);
int cfs_tables_load_releases(cfs_tables *t, cfs_error **err);
int cfs_tables_load_pins(cfs_tables *t, cfs_error **err); /* after components and releases */
int cfs_tables_load_advisories(cfs_tables *t, cfs_error **err);
int cfs_tables_load_consumers(cfs_tables *t, cfs_error **err);
int cfs_tables_load_problems(cfs_tables *t, cfs_error **err);

void cfs_tables_free_components(cfs_tables *t);
void cfs_tables_free_releases(cfs_tables *t);
void cfs_tables_free_policies(cfs_tables *t); /* advisories, consumers, problems */

/* Opens NAME in the data folder, whose root must be an object of the given keys (NULL-terminated). */
int cfs_tables_open(const cfs_tables *t, const char *name, const char *const *keys, cfs_json_doc **ret,
                    cfs_error **err);

/* For every element of the list at root.key (each must be an object): fill(t, element, err). */
typedef int (*cfs_tables_fill)(cfs_tables *t, const cfs_json_at *at, cfs_error **err);
int cfs_tables_each(cfs_tables *t, const cfs_json_doc *doc, const char *key, cfs_tables_fill fill, cfs_error **err);

#endif
