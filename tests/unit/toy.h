/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_TESTS_TOY_H
#define CUDAFS_TESTS_TOY_H

/* Made-up sources for unit tests: the names, records, version strings and macros of real wheels and
 * toolkits around empty payloads. Real ones are met in the mount and peers suites. */

#include "overlays/plan.h"

/* A fresh folder; toy_remove takes it away with all that is in it and frees the name. */
char *toy_dir(void);
void toy_remove(char *dir);

/* Writes dir/path, making the folders. */
void toy_write(const char *dir, const char *path, const char *text);
void toy_write_bytes(const char *dir, const char *path, const void *data, size_t size, bool executable);
/* An ELF file that says "Cuda compilation tools, release X.Y, VX.Y.Z"; nothing can run it. */
void toy_tool(const char *dir, const char *path, const char *version);

/* The dist-info of a package that owns those paths (relative to site, they must exist), as pip leaves it. */
void toy_record(const char *site, const char *package, const char *version, const cfs_strings *paths);

/* The wheels of CUDA 13 in a site-packages folder, each with the version given; NULL leaves one out. */
struct toy_set {
  const char *nvcc, *crt, *nvvm, *runtime, *cccl, *nvrtc;
};
void toy_wheels(const char *site, const struct toy_set *set);
/* A venv around them (pyvenv.cfg, bin/python) below dir; the caller owns the site-packages path. */
char *toy_venv(const char *dir, const struct toy_set *set);
/* A toolkit folder of one release in the runfile layout; without: a face prefix to leave out, or NULL. */
void toy_toolkit(const char *dir, const char *version, const char *without);

/* What most tests start with: an empty folder and the tables. For cmocka's setup and teardown. */
struct toy_world {
  char *dir;
  cfs_tables *tables;
};
int toy_world_make(void **state);
int toy_world_end(void **state);

/* A manifest made of text, with TOY standing for dir, loaded; and the plan of one. */
cfs_tables *toy_tables(void);
cfs_plan *toy_plan(const cfs_tables *tables, const char *dir, const char *manifest_text);
bool toy_has_problem(const cfs_plan *plan, const char *code, enum cfs_severity severity);

#endif
