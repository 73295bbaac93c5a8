/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/tables_internal.h"
#include "manifests/version.h"

#define LARGEST_PINS (4u << 20)

static int check_toolkits(const cfs_release_info *info, const cfs_json_at *at, cfs_error **err)
{
  cfs_json_at toolkits = cfs_json_member(at, "toolkits");
  for (size_t i = 0; i < info->toolkits.count; i++) {
    cfs_json_at element = cfs_json_element(&toolkits, i);
    if (!cfs_version_in_release(info->toolkits.items[i], info->release))
      return cfs_json_fail(&element, err, NULL, "expected a version of release %s", info->release);
    if (i && cfs_version_compare(info->toolkits.items[i - 1], info->toolkits.items[i]) >= 0)
      return cfs_json_fail(&element, err, NULL, "expected the versions in ascending order");
  }
  if (info->toolkits.count == 0 || strcmp(info->toolkits.items[info->toolkits.count - 1], info->toolkit) != 0)
    return cfs_json_fail(&toolkits, err, NULL, "expected the list to end with \"toolkit\", %s", info->toolkit);
  return 0;
}

static int check_release(const cfs_tables *t, const cfs_release_info *info, const cfs_json_at *at, cfs_error **err)
{
  cfs_json_at name = cfs_json_member(at, "release");
  cleanup_free char *normal = cfs_version_release(info->release);
  if (!normal || strcmp(normal, info->release) != 0)
    return cfs_json_expected(&name, err, "a release such as \"13.2\"");
  if (cfs_tables_release(t, info->release))
    return cfs_json_fail(&name, err, NULL, "release %s is there twice", info->release);
  return check_toolkits(info, at, err);
}

static int fill_release(cfs_tables *t, const cfs_json_at *at, cfs_error **err)
{
  static const char *const keys[] = {"release", "toolkit",     "toolkits", "max-ptx",     "cudart", "cccl",
                                     "gcc-max", "clang-limit", "targets",  "glibc-limit", NULL};
  cfs_release_info info = {0};
  int r = cfs_json_known_keys(at, keys, err);
  if (r == 0 && (r = cfs_json_get_string(at, "release", true, &info.release, err)) == 0 &&
      (r = cfs_json_get_string(at, "toolkit", true, &info.toolkit, err)) == 0 &&
      (r = cfs_json_get_strings(at, "toolkits", true, &info.toolkits, err)) == 0 &&
      (r = cfs_json_get_string(at, "max-ptx", true, &info.max_ptx, err)) == 0 &&
      (r = cfs_json_get_int(at, "cudart", true, &info.cudart, err)) == 0 &&
      (r = cfs_json_get_string(at, "cccl", false, &info.cccl, err)) == 0 &&
      (r = cfs_json_get_int(at, "gcc-max", true, &info.gcc_max, err)) == 0 &&
      (r = cfs_json_get_int(at, "clang-limit", true, &info.clang_limit, err)) == 0 &&
      (r = cfs_json_get_string(at, "glibc-limit", false, &info.glibc_limit, err)) == 0 &&
      (r = cfs_json_get_strings(at, "targets", true, &info.targets, err)) == 0)
    r = check_release(t, &info, at, err);
  t->releases = cfs_grow(t->releases, t->n_releases + 1, sizeof(info));
  t->releases[t->n_releases++] = info;
  return r;
}

static int compare_releases(const void *a, const void *b)
{
  return cfs_version_compare(((const cfs_release_info *)a)->release, ((const cfs_release_info *)b)->release);
}

int cfs_tables_load_releases(cfs_tables *t, cfs_error **err)
{
  static const char *const keys[] = {"releases", NULL};
  cfs_json_doc *doc = NULL;
  int r = cfs_tables_open(t, "releases.json", keys, &doc, err);
  if (r == 0 && (r = cfs_tables_each(t, doc, "releases", fill_release, err)) == 0 && t->n_releases > 1)
    qsort(t->releases, t->n_releases, sizeof(*t->releases), compare_releases);
  cfs_json_doc_free(doc);
  return r;
}

enum { PIN_TOOLKIT, PIN_COMPONENT, PIN_WHEEL, PIN_VERSION, PIN_EXACT, PIN_COLUMNS };

static int bad_line(const char *path, int line, cfs_error **err, const char *value, const char *why)
{
  cleanup_free char *what = cfs_format("%s:%d", path, line);
  return cfs_error_set(err, CFS_FAILED, 0, what, NULL, "\"%s\" %s", value, why);
}

static cfs_release_info *release_of_toolkit(cfs_tables *t, const char *toolkit)
{
  for (size_t i = 0; i < t->n_releases; i++)
    if (cfs_strings_has(&t->releases[i].toolkits, toolkit))
      return &t->releases[i];
  return NULL;
}

static void add_pin(cfs_release_info *r, char *const *column)
{
  bool newest = strcmp(r->toolkit, column[PIN_TOOLKIT]) == 0;
  struct cfs_pin **list = newest ? &r->pins : &r->older_pins;
  size_t *n = newest ? &r->n_pins : &r->n_older_pins;
  *list = cfs_grow(*list, *n + 1, sizeof(**list));
  (*list)[(*n)++] = (struct cfs_pin){
      .component = cfs_strdup(column[PIN_COMPONENT]),
      .wheel = cfs_strdup(column[PIN_WHEEL]),
      .version = cfs_strdup(column[PIN_VERSION]),
      .exact = strcmp(column[PIN_EXACT], "yes") == 0,
      .toolkit = cfs_strdup(column[PIN_TOOLKIT]),
  };
}

static int read_pin(cfs_tables *t, const char *path, int line, const char *text, cfs_error **err)
{
  cleanup_strings cfs_strings column = {0};
  cfs_strings_split(&column, text, "\t");
  if (column.count != PIN_COLUMNS)
    return bad_line(path, line, err, text, "expected five columns: toolkit component wheel version exact");
  cfs_release_info *release = release_of_toolkit(t, column.items[PIN_TOOLKIT]);
  if (!release)
    return bad_line(path, line, err, column.items[PIN_TOOLKIT], "no release lists this toolkit");
  const cfs_component_info *c = cfs_tables_component(t, column.items[PIN_COMPONENT]);
  if (!c || strcmp(c->name, column.items[PIN_COMPONENT]) != 0)
    return bad_line(path, line, err, column.items[PIN_COMPONENT], "is no component");
  if (cfs_version_major(column.items[PIN_VERSION]) < 0)
    return bad_line(path, line, err, column.items[PIN_VERSION], "expected a version");
  if (strcmp(column.items[PIN_EXACT], "yes") != 0 && strcmp(column.items[PIN_EXACT], "no") != 0)
    return bad_line(path, line, err, column.items[PIN_EXACT], "expected yes or no");
  add_pin(release, column.items);
  return 0;
}

int cfs_tables_load_pins(cfs_tables *t, cfs_error **err)
{
  cleanup_free char *path = cfs_path_join(t->dir, "pins.tsv");
  cleanup_free char *text = NULL;
  int r = cfs_file_read(path, LARGEST_PINS, &text, NULL);
  if (r < 0)
    return cfs_error_set(err, CFS_FAILED, -r, path, NULL, "cannot be read: %s", strerror(-r));
  int line = 0;
  char *rest = text;
  while (rest && r == 0) {
    char *current = strsep(&rest, "\n");
    line++;
    if (*current && *current != '#')
      r = read_pin(t, path, line, current, err);
  }
  return r;
}

static void pins_free(struct cfs_pin *pins, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    free(pins[i].component);
    free(pins[i].wheel);
    free(pins[i].version);
    free(pins[i].toolkit);
  }
  free(pins);
}

void cfs_tables_free_releases(cfs_tables *t)
{
  for (size_t i = 0; i < t->n_releases; i++) {
    cfs_release_info *r = &t->releases[i];
    free(r->release);
    free(r->toolkit);
    free(r->max_ptx);
    free(r->cccl);
    free(r->glibc_limit);
    cfs_strings_done(&r->targets);
    cfs_strings_done(&r->toolkits);
    pins_free(r->pins, r->n_pins);
    pins_free(r->older_pins, r->n_older_pins);
  }
  free(t->releases);
}

const cfs_release_info *cfs_tables_release(const cfs_tables *t, const char *release)
{
  for (size_t i = 0; i < t->n_releases; i++)
    if (t->releases[i].release && strcmp(t->releases[i].release, release) == 0)
      return &t->releases[i];
  return NULL;
}

static const struct cfs_pin *find_pin(const struct cfs_pin *pins, size_t n, const char *toolkit, const char *component)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp(pins[i].component, component) == 0 && strcmp(pins[i].toolkit, toolkit) == 0)
      return &pins[i];
  return NULL;
}

const struct cfs_pin *cfs_release_pin(const cfs_release_info *r, const char *component)
{
  return find_pin(r->pins, r->n_pins, r->toolkit, component);
}

const struct cfs_pin *cfs_release_toolkit_pin(const cfs_release_info *r, const char *toolkit, const char *component)
{
  const struct cfs_pin *pin = find_pin(r->pins, r->n_pins, toolkit, component);
  return pin ? pin : find_pin(r->older_pins, r->n_older_pins, toolkit, component);
}

bool cfs_release_has_target(const cfs_release_info *r, const char *target)
{
  return cfs_strings_has(&r->targets, target);
}
