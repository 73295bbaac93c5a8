/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "manifests/version.h"
#include "overlays/scan.h"
#include "overlays/source.h"

static const struct cfs_usage usage = {
    .name = "scan",
    .synopsis = "[PATH...]",
    .summary = "list the CUDA that this machine has",
    .help = "Looks where programs and people have CUDA (the environment, the PATH, /usr/local, virtual\n"
            "environments, interpreters), or only below the paths given, and prints what each place holds.\n"
            "Nothing is executed or changed.",
    .least = 0,
    .most = 4096,
};

struct place {
  const struct cfs_found *found;
  cfs_inventory *inventory; /* NULL: it could not be read */
  cfs_error *error;         /* why not; NULL when it was read */
};

static void read_place(const cfs_tables *tables, struct place *p)
{
  struct cfs_manifest_source source = {.id = p->found->path, .kind = p->found->kind, .path = p->found->path, .line = 0};
  cfs_source_read(&source, NULL, tables, &p->inventory, &p->error);
}

static void releases_of(const cfs_inventory *inventory, cfs_strings *ret)
{
  for (size_t i = 0; i < inventory->n_parts; i++) {
    const cfs_part *part = &inventory->parts[i];
    if (part->release && part->info->required && !cfs_strings_has(ret, part->release))
      cfs_strings_add(ret, part->release);
  }
}

static json_t *part_to_json(const cfs_part *part)
{
  json_t *o = json_object();
  json_object_set_new(o, "name", json_string(part->info->name));
  json_object_set_new(o, "version", cfs_json_text(part->version));
  json_object_set_new(o, "release", cfs_json_text(part->release));
  json_object_set_new(o, "package", cfs_json_text(part->package));
  json_object_set_new(o, "files", json_integer((json_int_t)part->n_files));
  return o;
}

static json_t *place_to_json(const struct place *p)
{
  json_t *o = json_object(), *components = json_array();
  cleanup_strings cfs_strings releases = {0};
  if (p->inventory) {
    releases_of(p->inventory, &releases);
    for (size_t i = 0; i < p->inventory->n_parts; i++)
      json_array_append_new(components, part_to_json(&p->inventory->parts[i]));
  }
  json_object_set_new(o, "kind", json_string(cfs_source_kind_name(p->found->kind)));
  json_object_set_new(o, "path", cfs_json_text(p->found->path));
  json_object_set_new(o, "how", cfs_json_text(p->found->how));
  json_object_set_new(o, "releases", cfs_json_strings(&releases));
  json_object_set_new(o, "components", components);
  json_object_set_new(o, "error", p->error ? cfs_json_text(p->error->why) : json_null());
  return o;
}

static int print_json(const struct place *places, size_t n)
{
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, place_to_json(&places[i]));
  return cfs_print_json(json_pack("{s:o}", "sources", list));
}

static void print_components(const cfs_inventory *inventory)
{
  cleanup_buffer cfs_buffer line = {0};
  for (size_t i = 0; i < inventory->n_parts; i++) {
    const cfs_part *part = &inventory->parts[i];
    cfs_buffer_format(&line, "%s%s\t%s", i ? ", " : "", part->info->name,
                      part->version ? part->version : "(version\tunknown)");
  }
  cfs_buffer_text(&line, "");
  fputs("    ", stdout);
  cleanup_free char *text = TAKE_PTR(line.data);
  cfs_put_wrapped(stdout, text, 4, 4);
}

static void print_place(const struct place *p)
{
  cleanup_strings cfs_strings releases = {0};
  if (p->inventory)
    releases_of(p->inventory, &releases);
  cleanup_free char *joined = cfs_strings_join(&releases, ", ");
  cfs_put(stdout, CFS_BOLD, p->found->path);
  putchar('\n');
  printf("    %s, %s%s, found by %s\n", cfs_source_kind_name(p->found->kind), releases.count ? "CUDA " : "",
         releases.count ? joined : "no release of its own", p->found->how);
  if (!p->inventory) {
    fputs("    ", stdout);
    cfs_put_format(stdout, CFS_RED, "cannot be read: %s", p->error->why);
    putchar('\n');
    return;
  }
  print_components(p->inventory);
  for (size_t i = 0; i < p->inventory->problems.count; i++) {
    const cfs_problem *problem = &p->inventory->problems.items[i];
    fputs("    ", stdout);
    cfs_put(stdout, problem->severity == CFS_PROBLEM ? CFS_RED : CFS_YELLOW, problem->code);
    fputs(": ", stdout);
    cfs_put_wrapped(stdout, problem->message, 6 + strlen(problem->code), 6);
  }
}

static int print(const struct place *places, size_t n, bool json)
{
  if (json)
    return print_json(places, n);
  for (size_t i = 0; i < n; i++)
    print_place(&places[i]);
  if (!n)
    puts("no CUDA was found");
  return 0;
}

static int scan(const cfs_strings *words, bool json)
{
  cfs_tables *tables = NULL;
  cfs_error *err = NULL;
  if (cfs_tables_load(&tables, &err) < 0)
    return cfs_report(err);
  for (size_t i = 0; i < words->count; i++)
    if (access(words->items[i], F_OK) < 0) {
      cfs_tables_free(tables);
      return cfs_report_format(CFS_FAILED, words->items[i], "correct the path", "%s", strerror(errno));
    }
  struct cfs_found *found = NULL;
  size_t n = 0;
  cfs_scan((const char *const *)words->items, words->count, &found, &n);
  struct place *places = cfs_zalloc((n + 1) * sizeof(*places));
  for (size_t i = 0; i < n; i++) {
    places[i].found = &found[i];
    cfs_progress("reading %s...", found[i].path);
    read_place(tables, &places[i]);
  }
  cfs_progress_clear();
  int code = print(places, n, json);
  for (size_t i = 0; i < n; i++) {
    cfs_inventory_free(places[i].inventory);
    cfs_error_free(places[i].error);
  }
  free(places);
  cfs_found_free(found, n);
  cfs_tables_free(tables);
  return code;
}

static int run(int argc, char *const *argv)
{
  bool json = false;
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {{"json", 0, NULL, "print one JSON object", &json}};
  int code = cfs_arguments(&usage, options, 1, argc, argv, &words);
  return code >= 0 ? code : scan(&words, json);
}

const struct cfs_command cfs_command_scan = {&usage, run};
