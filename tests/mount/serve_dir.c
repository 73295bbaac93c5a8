/* SPDX-License-Identifier: MIT */

/* Serves a directory as it is, through the same facade as the command line: what the mount tests drive.
 *
 *   serve_dir mount [-f] [-o OPTIONS] [-l LABEL] [-w PATH] [-b] SOURCE DIR    -w: warm, -b: describe files wrongly
 *   serve_dir reload [-l LABEL] [-b] SOURCE DIR
 *   serve_dir status|probe|umount|lazy DIR */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "fs/serve.h"
#include "fs/tree.h"

struct arguments {
  bool foreground, wrong;
  const char *options, *label, *warm;
};

static int add_tree(cfs_tree_builder *b, const char *source, const char *inside, bool wrong);

static int add_one(cfs_tree_builder *b, const char *path, const char *inside, bool wrong)
{
  struct stat st;
  char target[PATH_MAX] = "";
  if (lstat(path, &st) < 0)
    return -errno;
  if (S_ISDIR(st.st_mode)) {
    int r = cfs_tree_builder_add_dir(b, inside);
    return r < 0 ? r : add_tree(b, path, inside, wrong);
  }
  if (S_ISLNK(st.st_mode))
    return readlink(path, target, sizeof(target) - 1) < 0 ? -errno : cfs_tree_builder_add_link(b, inside, target);
  struct cfs_backing_id id = {
      .device = st.st_dev,
      .inode = st.st_ino,
      .size = (uint64_t)st.st_size,
      .mtime_sec = st.st_mtim.tv_sec - wrong,
      .mtime_nsec = (uint32_t)st.st_mtim.tv_nsec,
  };
  return cfs_tree_builder_add_file(b, inside, path, &id, (st.st_mode & 0111) != 0);
}

static int add_tree(cfs_tree_builder *b, const char *source, const char *inside, bool wrong)
{
  cleanup_closedir DIR *d = opendir(source);
  struct dirent *e;
  int r = d ? 0 : -errno;
  while (r == 0 && (e = readdir(d))) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
      continue;
    cleanup_free char *path = cfs_format("%s/%s", source, e->d_name);
    cleanup_free char *name = cfs_format("%s%s%s", inside, inside[0] ? "/" : "", e->d_name);
    r = add_one(b, path, name, wrong);
  }
  return r;
}

static int add_private(cfs_tree_builder *b, const char *label)
{
  struct timespec time = {.tv_sec = 1700000000};
  int r = cfs_tree_builder_add_blob(b, ".cudafs/id", label, strlen(label), false, time);
  if (r == 0)
    r = cfs_tree_builder_add_blob(b, ".cudafs/gate", "", 0, false, time);
  if (r == 0)
    r = cfs_tree_builder_hide(b, ".cudafs");
  return r < 0 ? r : cfs_tree_builder_keep_identity(b, ".cudafs/gate");
}

static int build(const char *source, const struct arguments *a)
{
  cleanup_free char *path = realpath(source, NULL);
  cfs_tree_builder *b = cfs_tree_builder_new();
  int r = path && b ? add_tree(b, path, "", a->wrong) : -errno;
  if (r == 0)
    r = add_private(b, a->label);
  if (r == 0 && a->warm)
    r = cfs_tree_builder_warm(b, a->warm);
  if (r == 0)
    r = cfs_tree_builder_seal(b);
  cfs_tree_builder_free(b);
  return r;
}

static void say_ready(void *data)
{
  (void)data;
  puts("ready");
  fflush(stdout);
}

static int finish(int r, const char *why)
{
  if (r < 0)
    fprintf(stderr, "serve_dir: %s (%s)\n", why ? why : "-", strerror(-r));
  return r < 0;
}

static int do_mount(const char *source, const char *dir, const struct arguments *a)
{
  cleanup_free char *why = NULL;
  cleanup_close int tree = build(source, a);
  struct cfs_serve_options o = {
      .mountpoint = dir,
      .fuse_options = a->options,
      .label = a->label,
      .label_size = strlen(a->label),
      .foreground = a->foreground,
      .on_ready = say_ready,
  };
  int r = tree < 0 ? tree : cfs_serve(tree, &o, &why);
  if (a->foreground && tree >= 0)
    TAKE_FD(tree); /* closed by the facade */
  return finish(r, why);
}

static int do_reload(const char *source, const char *dir, const struct arguments *a)
{
  cleanup_free char *why = NULL;
  cleanup_close int tree = build(source, a);
  uint32_t generation = 0;
  int r = tree < 0 ? tree : cfs_reload(dir, tree, a->label, strlen(a->label), &generation, &why);
  if (r == 0)
    printf("generation %u\n", generation);
  return finish(r, why);
}

static int do_status(const char *dir)
{
  struct cfs_status s;
  int r = cfs_status_read(dir, &s);
  printf("mountpoint=%s keeper=%d worker=%d spare=%d generation=%u held=%u restarts=%llu files=%llu pinned=%llu "
         "drift=%llu owner_only=%d bytes_read=%llu label=%s\n",
         s.mountpoint ? s.mountpoint : "", s.keeper, s.worker, s.spare, s.generation, s.generations_held,
         (unsigned long long)s.restarts, (unsigned long long)s.files, (unsigned long long)s.pinned,
         (unsigned long long)s.drift_count, s.owner_only, (unsigned long long)s.bytes_read, s.label ? s.label : "");
  unsigned long long total = 0;
  for (int i = 0; i < CFS_OP_COUNT; i++) {
    printf("%s=%llu ", cfs_op_name((enum cfs_op)i), (unsigned long long)s.requests[i]);
    total += s.requests[i];
  }
  printf("total=%llu\n", total);
  for (int i = 0; i < CFS_DRIFT_SHOWN && s.drift[i]; i++)
    printf("drift %s\n", s.drift[i]);
  cfs_status_done(&s);
  return finish(r, "status");
}

static int do_probe(const char *dir)
{
  static const char *const names[] = {"none", "healthy", "dead", "foreign"};
  enum cfs_mount_state state = CFS_MOUNT_NONE;
  cleanup_free char *root = NULL;
  int r = cfs_mount_probe(dir, &state, &root);
  if (r == 0)
    printf("%s %s\n", names[state], root ? root : "");
  return finish(r, "probe");
}

static int do_umount(const char *dir, bool lazy)
{
  cleanup_free char *why = NULL;
  int r = cfs_umount(dir, lazy, &why);
  return finish(r, why);
}

int main(int argc, char **argv)
{
  struct arguments a = {.label = "first"};
  int option;
  const char *verb = argc > 1 ? argv[1] : "";
  argc -= argc > 1;
  argv += argc >= 1 && verb[0];
  while ((option = getopt(argc, argv, "fbo:l:w:")) != -1) {
    a.foreground |= option == 'f';
    a.wrong |= option == 'b';
    a.options = option == 'o' ? optarg : a.options;
    a.label = option == 'l' ? optarg : a.label;
    a.warm = option == 'w' ? optarg : a.warm;
  }
  argc -= optind;
  argv += optind;
  if (strcmp(verb, "mount") == 0 && argc == 2)
    return do_mount(argv[0], argv[1], &a);
  if (strcmp(verb, "reload") == 0 && argc == 2)
    return do_reload(argv[0], argv[1], &a);
  if (strcmp(verb, "status") == 0 && argc == 1)
    return do_status(argv[0]);
  if (strcmp(verb, "probe") == 0 && argc == 1)
    return do_probe(argv[0]);
  if ((strcmp(verb, "umount") == 0 || strcmp(verb, "lazy") == 0) && argc == 1)
    return do_umount(argv[0], verb[0] == 'l');
  fputs("usage: serve_dir mount|reload|status|probe|umount|lazy ...\n", stderr);
  return 2;
}
