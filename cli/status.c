/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"

static const struct cfs_usage usage = {
    .name = "status",
    .synopsis = "[DIR]",
    .summary = "tell how the mounts are",
    .help = "Tells of every cudafs mount, or of the one on DIR: what it serves, who serves it, how many requests\n"
            "the kernel sent, and whether files changed under it. The exit status is 0 when all is well and 4\n"
            "when a mount is dead or degraded.",
    .least = 0,
    .most = 1,
};

struct mount {
  char *path;
  const char *state; /* static */
  struct cfs_status status;
  json_t *label; /* or NULL */
  int problem;   /* what reading the status gave */
};

static void mount_done(struct mount *m)
{
  free(m->path);
  json_decref(m->label);
  cfs_status_done(&m->status);
}

static void read_mount(struct mount *m, char *path, enum cfs_mount_state state)
{
  m->path = path;
  m->problem = cfs_status_read(path, &m->status);
  m->label = cfs_session_label_read(&m->status);
  if (state == CFS_MOUNT_DEAD || m->problem == -ENOTCONN)
    m->state = "dead";
  else
    m->state = m->status.drift_count ? "degraded" : "healthy";
}

static json_int_t resident_bytes(pid_t pid)
{
  cleanup_free char *path = cfs_format("/proc/%d/statm", (int)pid), *text = NULL;
  if (pid <= 0 || cfs_file_read(path, 256, &text, NULL) < 0)
    return 0;
  /* The second number; before it stands the whole size. */
  long resident = strtol(text + strcspn(text, " "), NULL, 10);
  return (json_int_t)resident * sysconf(_SC_PAGESIZE);
}

static json_t *requests_to_json(const struct cfs_status *s)
{
  json_t *o = json_object();
  for (int i = 0; i < CFS_OP_COUNT; i++)
    json_object_set_new(o, cfs_op_name(i), json_integer((json_int_t)s->requests[i]));
  return o;
}

static json_t *drift_to_json(const struct cfs_status *s)
{
  json_t *list = json_array();
  for (int i = 0; i < CFS_DRIFT_SHOWN && s->drift[i]; i++)
    json_array_append_new(list, cfs_json_text(s->drift[i]));
  return list;
}

static json_t *member(const struct mount *m, const char *key)
{
  json_t *value = m->label ? json_object_get(m->label, key) : NULL;
  return value ? json_incref(value) : json_null();
}

static json_t *to_json(const struct mount *m)
{
  const struct cfs_status *s = &m->status;
  json_t *o = json_object();
  json_object_set_new(o, "path", cfs_json_text(m->path));
  json_object_set_new(o, "state", json_string(m->state));
  json_object_set_new(o, "name", member(m, "name"));
  json_object_set_new(o, "release", member(m, "release"));
  json_object_set_new(o, "digest", member(m, "digest"));
  json_object_set_new(o, "manifest", member(m, "manifest"));
  json_object_set_new(o, "generation", json_integer(s->generation));
  json_object_set_new(o, "generations_held", json_integer(s->generations_held));
  json_object_set_new(o, "restarts", json_integer((json_int_t)s->restarts));
  json_object_set_new(o, "requests", requests_to_json(s));
  json_object_set_new(o, "bytes_read", json_integer((json_int_t)s->bytes_read));
  json_object_set_new(o, "files", json_integer((json_int_t)s->files));
  json_object_set_new(o, "pinned", json_integer((json_int_t)s->pinned));
  json_object_set_new(o, "drift", drift_to_json(s));
  json_object_set_new(o, "drift_count", json_integer((json_int_t)s->drift_count));
  json_object_set_new(o, "warnings", m->label ? member(m, "warnings") : json_array());
  json_object_set_new(o, "owner_only", json_boolean(s->owner_only));
  json_object_set_new(o, "started", json_integer(s->started));
  json_object_set_new(o, "pid", s->worker ? json_integer(s->worker) : json_null());
  json_object_set_new(o, "keeper", s->keeper ? json_integer(s->keeper) : json_null());
  json_object_set_new(o, "spare", s->spare ? json_integer(s->spare) : json_null());
  json_object_set_new(o, "rss_bytes", json_integer(resident_bytes(s->worker)));
  return o;
}

static const char *label_text(const struct mount *m, const char *key)
{
  const char *text = m->label ? cfs_json_string_of(m->label, key) : NULL;
  return text ? text : "unknown";
}

static void print_requests(const struct cfs_status *s)
{
  uint64_t total = 0;
  cleanup_buffer cfs_buffer line = {0};
  for (int i = 0; i < CFS_OP_COUNT; i++) {
    total += s->requests[i];
    if (s->requests[i])
      cfs_buffer_format(&line, "%s%s\t%llu", line.size ? ", " : "", cfs_op_name(i), (unsigned long long)s->requests[i]);
  }
  cleanup_free char *text =
      cfs_format("%llu%s%s%s", (unsigned long long)total, total ? " (" : "", total ? line.data : "", total ? ")" : "");
  fputs("    requests    ", stdout);
  cfs_put_wrapped(stdout, text, 16, 16);
}

static void print_problem(const struct mount *m)
{
  if (m->problem == -EACCES)
    puts("    it is another user's: only that user and root can ask it more");
  else if (m->problem == -ENOENT)
    puts("    its control socket cannot be seen from here (a container)");
  else if (strcmp(m->state, "dead") == 0)
    printf("    its server is gone; clean it away: cudafs umount %s\n", m->path);
  else
    printf("    it does not tell its state (%s)\n", strerror(-m->problem));
}

static void print_drift(const struct cfs_status *s)
{
  if (!s->drift_count)
    return;
  fputs("    ", stdout);
  cfs_put_format(stdout, CFS_RED, "%llu files changed under the mount", (unsigned long long)s->drift_count);
  puts(" and cannot be read any more; take the new ones: cudafs reload DIR");
  for (int i = 0; i < CFS_DRIFT_SHOWN && s->drift[i]; i++)
    printf("      %s\n", s->drift[i]);
}

enum { WARNINGS_SHOWN = 3 };

static void print_warnings(const struct mount *m)
{
  size_t i;
  json_t *warning, *all = m->label ? json_object_get(m->label, "warnings") : NULL;
  json_array_foreach(all, i, warning)
  {
    const char *code = cfs_json_string_of(warning, "code"), *message = cfs_json_string_of(warning, "message");
    if (i == WARNINGS_SHOWN) {
      printf("    and %zu more warnings; cudafs plan tells them\n", json_array_size(all) - i);
      return;
    }
    fputs("    ", stdout);
    cfs_put_format(stdout, CFS_YELLOW, "%s:", code ? code : "warning");
    putchar(' ');
    cfs_put_wrapped(stdout, message ? message : "", 6 + (code ? strlen(code) : 7), 6);
  }
}

static void print(const struct mount *m)
{
  const struct cfs_status *s = &m->status;
  bool well = strcmp(m->state, "healthy") == 0;
  cfs_put(stdout, CFS_BOLD, m->path);
  fputs("  ", stdout);
  cfs_put(stdout, well ? CFS_GREEN : CFS_RED, m->state);
  printf("  CUDA %s\n", label_text(m, "release"));
  if (m->label) {
    printf("    plan        %.12s", label_text(m, "digest"));
    if (cfs_json_string_of(m->label, "manifest"))
      printf("  of %s", label_text(m, "manifest"));
    putchar('\n');
  }
  if (m->problem < 0) {
    print_problem(m);
    return;
  }
  printf("    served by   worker %d, keeper %d, %.1f MB; generation %u, %llu restarts\n", (int)s->worker,
         (int)s->keeper, (double)resident_bytes(s->worker) / 1e6, s->generation, (unsigned long long)s->restarts);
  print_requests(s);
  if (s->owner_only)
    puts("    other users cannot enter it: user_allow_other is not set in /etc/fuse.conf");
  print_drift(s);
  print_warnings(m);
}

static int give(const struct mount *mounts, size_t n, bool json)
{
  int code = 0;
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) {
    if (strcmp(mounts[i].state, "healthy") != 0)
      code = CFS_DEGRADED;
    if (json)
      json_array_append_new(list, to_json(&mounts[i]));
    else
      print(&mounts[i]);
  }
  if (!json && !n)
    puts("no cudafs mounts");
  if (!json) {
    json_decref(list);
    return code;
  }
  int r = cfs_print_json(json_pack("{s:o}", "mounts", list));
  return r ? r : code;
}

static int one(const char *dir, bool json)
{
  cleanup_free char *path = cfs_session_absolute(dir), *root = NULL;
  enum cfs_mount_state state = CFS_MOUNT_NONE;
  int r = cfs_mount_probe(path, &state, &root);
  if (r < 0)
    return cfs_report_format(CFS_FAILED, path, "cudafs status lists the mounts", "%s", strerror(-r));
  if (state != CFS_MOUNT_HEALTHY && state != CFS_MOUNT_DEAD)
    return cfs_report_format(CFS_FAILED, path, "cudafs status lists the mounts", "no cudafs is mounted there");
  struct mount m = {0};
  read_mount(&m, root ? TAKE_PTR(root) : TAKE_PTR(path), state);
  int code = give(&m, 1, json);
  mount_done(&m);
  return code;
}

static int all(bool json)
{
  struct cfs_mount_entry *entries = NULL;
  int n = cfs_mount_list(&entries);
  if (n < 0)
    return cfs_report_format(CFS_FAILED, "status", NULL, "the mounts cannot be listed (%s)", strerror(-n));
  struct mount *mounts = cfs_zalloc(((size_t)n + 1) * sizeof(*mounts));
  for (int i = 0; i < n; i++)
    read_mount(&mounts[i], cfs_strdup(entries[i].path), entries[i].state);
  int code = give(mounts, (size_t)n, json);
  for (int i = 0; i < n; i++)
    mount_done(&mounts[i]);
  free(mounts);
  cfs_mount_list_free(entries, n);
  return code;
}

static int run(int argc, char *const *argv)
{
  bool json = false;
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {{"json", 0, NULL, "print one JSON object", &json}};
  int code = cfs_arguments(&usage, options, 1, argc, argv, &words);
  if (code >= 0)
    return code;
  return words.count ? one(words.items[0], json) : all(json);
}

const struct cfs_command cfs_command_status = {&usage, run};
