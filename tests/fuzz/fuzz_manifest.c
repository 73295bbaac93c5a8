/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manifests/manifest.h"
#include "tests/fuzz/fuzz.h"

static enum cfs_fuzz_verdict last_verdict;

enum cfs_fuzz_verdict cfs_fuzz_last_verdict(void)
{
  return last_verdict;
}

/* Read once: a fuzzer runs thousands of inputs a second. */
static cfs_tables *shared_tables;

static void free_tables(void)
{
  cfs_tables_free(shared_tables);
}

static const cfs_tables *tables(void)
{
  cleanup_error cfs_error *err = NULL;
  if (shared_tables)
    return shared_tables;
  if (cfs_tables_load(&shared_tables, &err) < 0) {
    fprintf(stderr, "%s: %s\n", err->what, err->why);
    exit(2);
  }
  atexit(free_tables);
  return shared_tables;
}

static void expect(bool condition, const char *what)
{
  if (condition)
    return;
  fprintf(stderr, "promise broken: %s\n", what);
  abort();
}

/* What every caller relies on after success. */
static void check_manifest(const cfs_manifest *m)
{
  expect(m->n_sources > 0, "at least one source");
  for (size_t i = 0; i < m->n_sources; i++) {
    expect(m->sources[i].path[0] == '/', "absolute paths");
    expect(m->sources[i].line > 0, "a line for each source");
    for (size_t k = 0; k < i; k++)
      expect(strcmp(m->sources[i].id, m->sources[k].id) != 0, "unique ids");
  }
  for (size_t i = 0; i < m->n_components; i++)
    expect(cfs_manifest_component(m, m->components[i].name) == &m->components[i], "unique components");
  expect(m->release != NULL, "a release");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  cfs_manifest *m = NULL;
  cleanup_error cfs_error *err = NULL;
  int r = cfs_manifest_parse((const char *)data, size, "fuzz.json", "/base", tables(), &m, &err);
  if (r < 0)
    expect(!m && err && err->kind == CFS_INVALID && err->what && err->why && *err->why, "an error that says why");
  else
    check_manifest(m);
  last_verdict = r < 0 ? CFS_FUZZ_BAD : CFS_FUZZ_GOOD;
  cfs_manifest_free(m);
  return 0;
}
