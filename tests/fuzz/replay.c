/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over every file of a corpus folder, so that what a fuzzer once found stays mended where
 * no fuzzer is at hand. A file called good-* must be accepted and one called bad-* refused. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "tests/fuzz/fuzz.h"

#define LARGEST_INPUT (64u << 20)

static int list_folder(const char *path, cfs_strings *ret)
{
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir)
    return -1;
  struct dirent *entry;
  while ((entry = readdir(dir)))
    if (entry->d_name[0] != '.')
      cfs_strings_add(ret, entry->d_name);
  cfs_strings_sort(ret);
  return 0;
}

static bool verdict_fits(const char *name)
{
  enum cfs_fuzz_verdict verdict = cfs_fuzz_last_verdict();
  if (cfs_has_prefix(name, "good-"))
    return verdict == CFS_FUZZ_GOOD;
  if (cfs_has_prefix(name, "bad-"))
    return verdict == CFS_FUZZ_BAD;
  return true;
}

static int replay(const char *folder, const char *name)
{
  cleanup_free char *path = cfs_path_join(folder, name);
  cleanup_free char *data = NULL;
  size_t size = 0;
  int r = cfs_file_read(path, LARGEST_INPUT, &data, &size);
  if (r < 0) {
    fprintf(stderr, "%s: %s\n", path, strerror(-r));
    return 1;
  }
  /* A copy of the exact size: reading one byte too many is then seen by a sanitizer or valgrind. */
  uint8_t *exact = malloc(size ? size : 1);
  if (!exact)
    return 1;
  memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  if (verdict_fits(name))
    return 0;
  fprintf(stderr, "%s: %s\n", path, cfs_fuzz_last_verdict() == CFS_FUZZ_GOOD ? "was accepted" : "was refused");
  return 1;
}

int main(int argc, char **argv)
{
  cleanup_strings cfs_strings names = {0};
  if (argc != 2 || list_folder(argv[1], &names) < 0 || names.count == 0) {
    fprintf(stderr, "usage: %s FOLDER (with at least one file)\n", argv[0]);
    return 2;
  }
  int failed = 0;
  for (size_t i = 0; i < names.count; i++)
    failed += replay(argv[1], names.items[i]);
  printf("%zu inputs, %d wrong\n", names.count, failed);
  return failed != 0;
}
