/* SPDX-License-Identifier: MIT */
#include "overlays/probe_cache.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/memory.h"

enum {
  FORMAT = 1,
  ENTRY_LIMIT = 64 * 1024,
};

static void cleanup_json_value(json_t **value)
{
  json_decref(*value);
}
#define cleanup_json __attribute__((cleanup(cleanup_json_value)))

char *cfs_probe_cache_dir(void)
{
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (geteuid() == 0)
    return cfs_strdup("/var/cache/cudafs/probes");
  if (cache && cache[0] == '/')
    return cfs_path_join(cache, "cudafs/probes");
  return home && home[0] == '/' ? cfs_path_join(home, ".cache/cudafs/probes") : NULL;
}

static char *identity(const char *path, const struct stat *st)
{
  return cfs_format("%ju:%ju %jd %jd.%09ld %s", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino, (intmax_t)st->st_size,
                    (intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, path);
}

static char *entry_path(const char *dir, const char *file)
{
  char digest[CFS_DIGEST_TEXT];
  if (cfs_digest(file, strlen(file), digest) < 0)
    return NULL;
  return cfs_format("%s/%.32s.json", dir, digest);
}

static bool read_strings(const json_t *array, cfs_strings *strings)
{
  for (size_t i = 0; i < json_array_size(array); i++) {
    const char *text = json_string_value(json_array_get(array, i));
    if (!text)
      return false;
    cfs_strings_add(strings, text);
  }
  return strings->count;
}

static bool asked_all(const json_t *array, const cfs_strings *universe)
{
  cleanup_strings cfs_strings asked = {0};
  if (!read_strings(array, &asked))
    return false;
  for (size_t i = 0; i < universe->count; i++)
    if (!cfs_strings_has(&asked, universe->items[i]))
      return false;
  return true;
}

static struct cfs_probe *read_entry(json_t *entry, const char *file, const cfs_strings *universe)
{
  int format;
  const char *kept, *version, *max_ptx;
  json_t *targets, *asked;
  if (json_unpack(entry, "{s:i, s:s, s:s, s:s, s:o, s:o}", "cudafs-probe", &format, "file", &kept, "version", &version,
                  "max_ptx", &max_ptx, "targets", &targets, "asked", &asked) < 0)
    return NULL;
  if (format != FORMAT || strcmp(kept, file) != 0 || !asked_all(asked, universe))
    return NULL;
  cleanup_probe struct cfs_probe *probe = cfs_zalloc(sizeof(*probe));
  if (!read_strings(targets, &probe->targets))
    return NULL;
  probe->version = cfs_strdup(version);
  probe->max_ptx = cfs_strdup(max_ptx);
  return TAKE_PTR(probe);
}

struct cfs_probe *cfs_probe_cache_load(const char *dir, const char *path, const struct stat *st,
                                       const cfs_strings *universe)
{
  cleanup_free char *file = identity(path, st), *from = entry_path(dir, file), *text = NULL;
  size_t size;
  if (!from || cfs_file_read(from, ENTRY_LIMIT, &text, &size) < 0)
    return NULL;
  cleanup_json json_t *entry = json_loadb(text, size, 0, NULL);
  return read_entry(entry, file, universe);
}

static json_t *write_strings(const cfs_strings *strings)
{
  json_t *array = json_array();
  for (size_t i = 0; i < strings->count; i++)
    json_array_append_new(array, json_string(strings->items[i]));
  return array;
}

void cfs_probe_cache_store(const char *dir, const char *path, const struct stat *st, const cfs_strings *asked,
                           const struct cfs_probe *probe)
{
  cleanup_free char *file = identity(path, st), *to = entry_path(dir, file);
  /* NULL for a path that is not UTF-8, which is then not kept. */
  cleanup_json json_t *entry =
      json_pack("{s:i, s:s, s:s, s:s, s:o, s:o}", "cudafs-probe", FORMAT, "file", file, "version", probe->version,
                "max_ptx", probe->max_ptx, "targets", write_strings(&probe->targets), "asked", write_strings(asked));
  cleanup_free char *text = entry ? json_dumps(entry, JSON_INDENT(1)) : NULL;
  if (text && to && cfs_mkdir_all(dir, 0755) == 0)
    (void)cfs_file_write(to, text, strlen(text));
}
