/* SPDX-License-Identifier: MIT */
#include "overlays/dist_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"

/* A RECORD of the largest wheel (CCCL, 2,800 files) is 400 kB. */
#define RECORD_LIMIT (64u << 20)

bool cfs_dist_info_split(const char *folder, char **ret_name, char **ret_version)
{
  if (!cfs_has_suffix(folder, ".dist-info"))
    return false;
  size_t n = strlen(folder) - strlen(".dist-info");
  const char *dash = memrchr(folder, '-', n);
  if (!dash || dash == folder)
    return false;
  *ret_name = cfs_strndup(folder, (size_t)(dash - folder));
  for (char *p = *ret_name; *p; p++)
    if (*p == '_' || *p == '.')
      *p = '-';
  *ret_version = cfs_strndup(dash + 1, n - (size_t)(dash + 1 - folder));
  return true;
}

/* One field of a CSV line; quoted fields may hold commas and doubled quotes. Moves *at past it and
 * its separator. The caller owns the result. */
static char *csv_field(char **at)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  char *p = *at;
  bool quoted = *p == '"';
  if (quoted)
    p++;
  for (; *p; p++) {
    if (quoted && *p == '"' && p[1] == '"')
      p++;
    else if (quoted ? *p == '"' : *p == ',')
      break;
    cfs_buffer_add(&b, p, 1);
  }
  if (quoted && *p == '"')
    p++;
  if (*p == ',')
    p++;
  *at = p;
  return b.data;
}

static int base64_digit(char c)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const char *p = c ? strchr(digits, c) : NULL;
  return p ? (int)(p - digits) : -1;
}

/* RECORD writes digests in URL-safe base64 without padding. NULL when it is not 32 bytes of that. */
static char *hex_of_base64(const char *text)
{
  unsigned char raw[33];
  size_t n = 0;
  unsigned bits = 0, held = 0;
  for (; *text && *text != '='; text++) {
    int digit = base64_digit(*text);
    if (digit < 0 || n >= sizeof(raw))
      return NULL;
    bits = bits << 6 | (unsigned)digit;
    held += 6;
    if (held >= 8) {
      held -= 8;
      raw[n++] = (unsigned char)(bits >> held);
    }
  }
  if (n != 32)
    return NULL;
  char *hex = cfs_zalloc(65);
  for (size_t i = 0; i < 32; i++) {
    hex[2 * i] = "0123456789abcdef"[raw[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
  }
  return hex;
}

static void add_record_line(cfs_dist_info *d, char *line)
{
  char *at = line;
  cleanup_free char *path = csv_field(&at);
  cleanup_free char *digest = csv_field(&at);
  cleanup_free char *size = csv_field(&at);
  if (!*path)
    return;
  if ((d->n_record & (d->n_record - 1)) == 0)
    d->record = cfs_grow(d->record, d->n_record ? d->n_record * 2 : 1, sizeof(*d->record));
  char *end;
  errno = 0;
  long long bytes = strtoll(size, &end, 10);
  d->record[d->n_record++] = (struct cfs_record_entry){
      .path = path[0] == '/' ? NULL : cfs_path_normalise(path),
      .sha256 = cfs_has_prefix(digest, "sha256=") ? hex_of_base64(digest + 7) : NULL,
      .size = *size && !*end && errno == 0 && bytes >= 0 ? bytes : -1,
  };
}

static int read_record(cfs_dist_info *d, const char *directory, cfs_error **err)
{
  cleanup_free char *path = cfs_path_join(directory, "RECORD"), *text = NULL;
  int r = cfs_file_read(path, RECORD_LIMIT, &text, NULL);
  if (r < 0)
    return cfs_error_set(err, CFS_REFUSED, -r, path, "reinstall that package", "%s", strerror(-r));
  char *save = NULL;
  for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
    add_record_line(d, line);
  if (!d->n_record)
    return cfs_error_set(err, CFS_REFUSED, EINVAL, path, "reinstall that package", "it is empty");
  return 0;
}

/* The value of a "Name: value" line in METADATA's head, or NULL. */
static char *metadata_field(const char *text, const char *field)
{
  size_t n = strlen(field);
  for (const char *line = text; line && *line && *line != '\n';
       line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    if (strncasecmp(line, field, n) == 0 && line[n] == ':') {
      line += n + 1;
      line += strspn(line, " \t");
      return cfs_strndup(line, strcspn(line, "\r\n"));
    }
  return NULL;
}

static void read_names(cfs_dist_info *d, const char *directory)
{
  cleanup_free char *path = cfs_path_join(directory, "METADATA"), *text = NULL;
  const char *slash = strrchr(directory, '/');
  cleanup_free char *name = NULL, *version = NULL;
  cfs_dist_info_split(slash ? slash + 1 : directory, &name, &version);
  if (cfs_file_read(path, RECORD_LIMIT, &text, NULL) == 0) {
    d->name = metadata_field(text, "Name");
    d->version = metadata_field(text, "Version");
  }
  if (!d->name && name)
    d->name = TAKE_PTR(name);
  if (!d->version && version)
    d->version = TAKE_PTR(version);
}

static void read_installer(cfs_dist_info *d, const char *directory)
{
  cleanup_free char *path = cfs_path_join(directory, "INSTALLER"), *text = NULL;
  if (cfs_file_read(path, 4096, &text, NULL) == 0 && *text)
    d->installer = cfs_strndup(text, strcspn(text, " \r\n"));
}

int cfs_dist_info_read(const char *directory, cfs_dist_info **ret, cfs_error **err)
{
  cfs_dist_info *d = cfs_zalloc(sizeof(*d));
  read_names(d, directory);
  read_installer(d, directory);
  int r = read_record(d, directory, err);
  if (r == 0 && (!d->name || !d->version))
    r = cfs_error_set(err, CFS_REFUSED, EINVAL, directory, "reinstall that package", "it names no package and version");
  if (r < 0) {
    cfs_dist_info_free(d);
    return r;
  }
  *ret = d;
  return 0;
}

void cfs_dist_info_free(cfs_dist_info *d)
{
  if (!d)
    return;
  for (size_t i = 0; i < d->n_record; i++) {
    free(d->record[i].path);
    free(d->record[i].sha256);
  }
  free(d->record);
  free(d->name);
  free(d->version);
  free(d->installer);
  free(d);
}
