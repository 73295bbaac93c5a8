/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "overlays/dispatch/trailer.h"

static const struct cfs_usage usage = {
    .name = "explain",
    .synopsis = "DIR/PATH",
    .summary = "tell where a file of a mount comes from, and why",
    .help = "Tells which source, component, version and package gave a file of a mount, or how it was made.",
    .least = 1,
    .most = 1,
};

struct answer {
  char *path;                      /* as asked, absolute */
  char *root;                      /* of the mount */
  char *resolved;                  /* inside the mount, links followed */
  const json_t *entry, *component; /* borrowed from the plan; NULL when there is none */
  const char *reason;
};

/* The folder at or above path that is the root of a mount; the caller owns it. */
static char *find_root(const char *path)
{
  cleanup_free char *at = cfs_strdup(path);
  for (;;) {
    cleanup_free char *id = cfs_path_join(*at ? at : "/", CFS_ID_PATH);
    if (cfs_path_exists(id))
      return cfs_strdup(*at ? at : "/");
    char *slash = strrchr(at, '/');
    if (!slash)
      return NULL;
    *slash = '\0';
  }
}

static const json_t *find_toolchain(const json_t *plan, const char *path)
{
  size_t i;
  json_t *toolchain;
  const char *in = cfs_has_prefix(path, CFS_VIEWS_PATH "/") ? path + strlen(CFS_VIEWS_PATH "/") : NULL;
  json_array_foreach(json_object_get(plan, "toolchains"), i, toolchain)
  {
    const char *release = cfs_json_string_of(toolchain, "release");
    size_t n = release ? strlen(release) : 0;
    if (in ? n && strncmp(in, release, n) == 0 && in[n] == '/' : json_is_true(json_object_get(toolchain, "primary")))
      return toolchain;
  }
  return NULL;
}

static const json_t *find_component(const json_t *toolchain, const char *name, const char *source)
{
  size_t i;
  json_t *component;
  json_array_foreach(json_object_get(toolchain, "components"), i, component)
  {
    const char *own_name = cfs_json_string_of(component, "name"), *own_source = cfs_json_string_of(component, "source");
    if (name && own_name && strcmp(own_name, name) == 0 && (!source || (own_source && strcmp(own_source, source) == 0)))
      return component;
  }
  return NULL;
}

/* A dispatcher's bytes are ours; what it stands for is the face's own tool. */
static const json_t *dispatched(const json_t *plan, const json_t *entry)
{
  const char *release = cfs_json_string_of(plan, "release"), *tool = cfs_json_string_of(entry, "tool");
  cleanup_free char *path = cfs_format(CFS_VIEWS_PATH "/%s/bin/%s", release ? release : "", tool ? tool : "");
  return json_object_get(json_object_get(plan, "files"), path);
}

static void look_up(struct answer *a, const json_t *plan)
{
  const json_t *files = json_object_get(plan, "files"), *entry = json_object_get(files, a->resolved), *owner = entry;
  const char *kind = entry ? cfs_json_string_of(entry, "kind") : NULL;
  if (kind && strcmp(kind, "dispatcher") == 0 && dispatched(plan, entry))
    owner = dispatched(plan, entry);
  a->entry = entry;
  const json_t *toolchain = find_toolchain(plan, a->resolved);
  if (owner)
    a->component =
        find_component(toolchain, cfs_json_string_of(owner, "component"), cfs_json_string_of(owner, "source"));
  const char *why = entry ? cfs_json_string_of(entry, "why") : NULL;
  if (why)
    a->reason = why;
  else if (a->component)
    a->reason = cfs_json_string_of(a->component, "reason");
  else if (cfs_has_prefix(a->resolved, CFS_DOT_DIR))
    a->reason = "made by cudafs for this mount, from the plan";
  else
    a->reason = cfs_path_is_dir(a->path) ? "a directory of the layout" : "made by cudafs";
}

static const char *of(const json_t *object, const char *key)
{
  return object ? cfs_json_string_of(object, key) : NULL;
}

static const char *package_version(const struct answer *a)
{
  const char *version = of(a->component, "package_version");
  return version ? version : of(a->component, "version");
}

static int print_json(const struct answer *a)
{
  json_t *o = json_object();
  json_object_set_new(o, "path", cfs_json_text(a->path));
  json_object_set_new(o, "mount", cfs_json_text(a->root));
  json_object_set_new(o, "resolved", cfs_json_text(a->resolved));
  json_object_set_new(o, "kind", cfs_json_text(a->entry ? of(a->entry, "kind") : "made"));
  json_object_set_new(o, "source", cfs_json_text(of(a->component, "source")));
  json_object_set_new(o, "component", cfs_json_text(of(a->component, "name")));
  json_object_set_new(o, "version", cfs_json_text(of(a->component, "version")));
  json_object_set_new(o, "release", cfs_json_text(of(a->component, "release")));
  json_object_set_new(o, "package", cfs_json_text(of(a->component, "package")));
  json_object_set_new(o, "from", cfs_json_text(of(a->entry, "from")));
  json_object_set_new(o, "sha256", cfs_json_text(of(a->entry, "sha256")));
  json_object_set_new(o, "reason", cfs_json_text(a->reason));
  return cfs_print_json(o);
}

static void put(const char *name, const char *value)
{
  if (value)
    printf("  %-10s %s\n", name, value);
}

static void print(const struct answer *a)
{
  cleanup_free char *direct = cfs_path_join(a->root, a->resolved);
  cfs_put(stdout, CFS_BOLD, a->path);
  putchar('\n');
  if (strcmp(direct, a->path) != 0)
    put("is", direct);
  put("file", of(a->entry, "from"));
  if (a->component) {
    cleanup_free char *source =
        cfs_format("%s (%s %s)", of(a->component, "source"), of(a->component, "kind"), of(a->component, "path"));
    cleanup_free char *component =
        cfs_format("%s %s", of(a->component, "name"), of(a->component, "version") ? of(a->component, "version") : "");
    put("source", source);
    put("component", component);
  }
  if (of(a->component, "package")) {
    cleanup_free char *package =
        cfs_format("%s %s", of(a->component, "package"), package_version(a) ? package_version(a) : "");
    put("package", package);
  }
  put("sha256", of(a->entry, "sha256"));
  printf("  %-10s ", "reason");
  cfs_put_wrapped(stdout, a->reason ? a->reason : "none recorded", 13, 13);
}

static int locate(const char *word, struct answer *a)
{
  cleanup_free char *real = realpath(word, NULL);
  int e = errno;
  a->path = cfs_session_absolute(word);
  a->root = find_root(real ? real : a->path);
  if (!a->root)
    return cfs_report_format(CFS_FAILED, a->path, "cudafs status lists the mounts", "it lies in no cudafs mount");
  if (!real)
    return cfs_report_format(CFS_FAILED, a->path, NULL, "%s", e == ENOENT ? "the mount has no such file" : strerror(e));
  const char *below = real + strlen(a->root);
  a->resolved = cfs_strdup(*below == '/' ? below + 1 : below);
  return -1;
}

/* The name that was asked for, made absolute without following a link. */
static void restore_path(struct answer *a, const char *word)
{
  cleanup_free char *here = word[0] == '/' ? NULL : getcwd(NULL, 0);
  cleanup_free char *joined = here ? cfs_path_join(here, word) : cfs_strdup(word);
  char *plain = cfs_path_normalise(joined);
  if (!plain)
    return;
  free(a->path);
  a->path = plain;
}

static int explain(struct answer *a, const char *word, bool json)
{
  int code = locate(word, a);
  if (code >= 0)
    return code;
  restore_path(a, word);
  cleanup_free char *path = cfs_path_join(a->root, CFS_DOT_DIR "/plan.json");
  json_error_t problem;
  json_t *plan = json_load_file(path, 0, &problem);
  if (!plan)
    return cfs_report_format(CFS_FAILED, path, NULL, "the plan of the mount cannot be read (%s)", problem.text);
  look_up(a, plan);
  code = 0;
  if (json)
    code = print_json(a);
  else
    print(a);
  json_decref(plan);
  return code;
}

static int run(int argc, char *const *argv)
{
  bool json = false;
  struct answer a = {0};
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {{"json", 0, NULL, "print one JSON object", &json}};
  int code = cfs_arguments(&usage, options, 1, argc, argv, &words);
  if (code < 0)
    code = explain(&a, words.items[0], json);
  free(a.path);
  free(a.root);
  free(a.resolved);
  return code;
}

const struct cfs_command cfs_command_explain = {&usage, run};
