/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/mounting.h"
#include "cli/output.h"

static const struct cfs_usage usage = {
    .name = "mount",
    .synopsis = "[MANIFEST] DIR",
    .summary = "mount one coherent CUDA toolkit on a directory",
    .help = "Composes what the manifest names into one CUDA toolkit and serves it on DIR. Without a manifest,\n"
            "what cudafs scan finds on this machine is used. Returns when the mount is usable. When no coherent\n"
            "set exists, nothing is mounted, what is wrong is told with the commands that mend it, and the exit\n"
            "status is 3. If the same toolkit is mounted there already, that is success.\n\n"
            "Mount options (-o): allow_other noallow_other ro nosuid nodev nonempty fsname=NAME threads=N\n"
            "read_ahead_kb=N.",
    .least = 1,
    .most = 2,
};

struct request {
  char *options;
  bool foreground, quiet;
  const char *manifest;
  char *mountpoint;
};

static int check_empty(const char *path, const char *options)
{
  if (options && strstr(options, "nonempty"))
    return -1;
  cleanup_closedir DIR *dir = opendir(path);
  if (!dir)
    return cfs_report_format(CFS_FAILED, path, NULL, "the mount point cannot be read (%s)", strerror(errno));
  for (struct dirent *e; (e = readdir(dir));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      return cfs_report_format(CFS_FAILED, path, "name an empty directory, or cover this one with -o nonempty",
                               "the mount point is not empty");
  return -1;
}

/* Is there something that can be mounted on? Costs nothing, so it comes before reading the sources. */
static int check_mountpoint(const char *path, const char *options, enum cfs_mount_state *ret_state)
{
  cleanup_free char *root = NULL, *word = cfs_shell_word(path);
  cleanup_free char *mkdir_command = cfs_format("make it first: mkdir -p %s", word);
  int r = cfs_mount_probe(path, ret_state, &root);
  bool inside = root && strcmp(root, path) != 0;
  if (r == -ENOENT)
    return cfs_report_format(CFS_FAILED, path, mkdir_command, "the mount point does not exist");
  if (r == -ENOTDIR)
    return cfs_report_format(CFS_FAILED, path, "name an empty directory", "the mount point is not a directory");
  if (r < 0)
    return cfs_report_format(CFS_FAILED, path, NULL, "the mount point cannot be looked at (%s)", strerror(-r));
  if (*ret_state == CFS_MOUNT_FOREIGN && !inside)
    return cfs_report_format(CFS_FAILED, path, "name another directory, or unmount that first",
                             "another file system is mounted there already");
  if (*ret_state != CFS_MOUNT_NONE && *ret_state != CFS_MOUNT_FOREIGN && inside)
    return cfs_report_format(CFS_FAILED, path, "name a directory outside", "it lies inside the cudafs mount on %s",
                             root);
  return *ret_state == CFS_MOUNT_NONE ? check_empty(path, options) : -1;
}

/* A live mount of ours is there: is it what is asked for? */
static int compare_with_present(const struct request *q, const cfs_build *build)
{
  struct cfs_status status = {0};
  int r = cfs_status_read(q->mountpoint, &status);
  json_t *label = r == 0 ? cfs_session_label_read(&status) : NULL;
  const char *digest = label ? cfs_json_string_of(label, "digest") : NULL;
  bool same = digest && build->plan->digest && strcmp(digest, build->plan->digest) == 0;
  cleanup_free char *fix =
      cfs_format("change it in place: cudafs reload %s%s%s; or take it away: cudafs umount %s", q->mountpoint,
                 q->manifest ? " " : "", q->manifest ? q->manifest : "", q->mountpoint);
  int code = 0;
  if (same && !q->quiet)
    printf("already mounted: CUDA %s on %s\n", build->plan->release, q->mountpoint);
  if (r == -EACCES)
    code = cfs_report_format(CFS_FAILED, q->mountpoint, "name another directory",
                             "another user's cudafs is mounted there");
  else if (!same)
    code = cfs_report_format(CFS_FAILED, q->mountpoint, fix, "cudafs has another plan mounted there (CUDA %s)",
                             label && cfs_json_string_of(label, "release") ? cfs_json_string_of(label, "release")
                                                                           : "unknown");
  json_decref(label);
  cfs_status_done(&status);
  return code;
}

/* A source that was written to between reading and mounting is not the one that was judged. */
static int check_sources_stayed(const char *mountpoint)
{
  struct cfs_status status = {0};
  int code = 0;
  if (cfs_status_read(mountpoint, &status) == 0 && status.drift_count) {
    code = cfs_report_format(
        CFS_FAILED, status.drift[0] ? status.drift[0] : mountpoint, "mount again when nothing writes to the sources",
        "%llu source file(s) changed while they were being mounted", (unsigned long long)status.drift_count);
    cfs_umount(mountpoint, true, NULL);
  }
  cfs_status_done(&status);
  return code;
}

static int serve(const struct request *q, const cfs_build *build)
{
  if (!q->quiet)
    cfs_session_warn(build->plan);
  if (!q->quiet && q->foreground)
    printf("mounting CUDA %s on %s\n", build->plan->release, q->mountpoint);
  int code = cfs_mounting_serve(build, &(struct cfs_mounting){q->mountpoint, q->options, q->foreground});
  if (code == 0 && !q->foreground)
    code = check_sources_stayed(q->mountpoint);
  if (code == 0 && !q->quiet && !q->foreground)
    printf("mounted CUDA %s on %s\n", build->plan->release, q->mountpoint);
  return code;
}

static int mount_build(const struct request *q, enum cfs_mount_state state)
{
  cfs_build *build = NULL;
  int code = cfs_session_build(q->manifest, &build);
  if (code >= 0)
    return code;
  if (!build->plan->coherent)
    code = cfs_session_refuse(build);
  else if (state == CFS_MOUNT_HEALTHY)
    code = compare_with_present(q, build);
  else
    code = serve(q, build);
  cfs_build_free(build);
  return code;
}

static int run_request(struct request *q, const cfs_strings *words)
{
  enum cfs_mount_state state = CFS_MOUNT_NONE;
  cleanup_free char *why = NULL;
  q->manifest = words->count == 2 ? words->items[0] : NULL;
  q->mountpoint = cfs_session_absolute(words->items[words->count - 1]);
  if (q->options && cfs_mount_options_check(q->options, &why) < 0)
    return cfs_report_format(CFS_INVALID, "mount: -o", "see cudafs mount --help", "%s", why ? why : "invalid");
  /* Held until this process has mounted: a second one then sees the mount, and adds none on top. What cannot
   * be opened is reported by the look that follows. */
  cleanup_close int lock = open(q->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (lock >= 0 && flock(lock, LOCK_EX) < 0 && errno == EINTR)
    ;
  int code = check_mountpoint(q->mountpoint, q->options, &state);
  if (code >= 0)
    return code;
  if (state == CFS_MOUNT_DEAD && !q->quiet)
    fprintf(stderr, "cudafs: %s: a dead cudafs mount is there; it is cleaned away first\n", q->mountpoint);
  return mount_build(q, state);
}

static int run(int argc, char *const *argv)
{
  struct request q = {0};
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {
      {"foreground", 'f', NULL, "serve in the foreground, and tell systemd when the mount is usable", &q.foreground},
      {"options", 'o', "OPTS", "mount options, separated by commas", NULL, &q.options},
      {"quiet", 'q', NULL, "say nothing but errors", &q.quiet},
  };
  int code = cfs_arguments(&usage, options, sizeof(options) / sizeof(options[0]), argc, argv, &words);
  if (code < 0)
    code = run_request(&q, &words);
  free(q.options);
  free(q.mountpoint);
  return code;
}

const struct cfs_command cfs_command_mount = {&usage, run};
