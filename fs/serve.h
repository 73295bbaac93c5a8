/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_SERVE_H
#define CUDAFS_FS_SERVE_H

/* What the command line needs of the serving side: mount a tree, ask about a mount, exchange its tree,
 * take it away. Every function returns 0 (or a count) on success and a negative errno otherwise. A
 * `char **ret_why` receives one sentence without a full stop that says why, owned by the caller; it is
 * set on failure only, may stay NULL when memory is out, and may itself be NULL. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cfs_serve_options {
  const char *mountpoint;
  /* The comma list of `-o`; NULL is the same as "". See cfs_mount_options_check. */
  const char *fuse_options;
  /* Bytes that belong to the tree (at most CFS_LABEL_MAX). Kept beside it and given back by
   * cfs_status_read; never interpreted here. */
  const void *label;
  size_t label_size;
  bool foreground;
  /* Called once, when the mount is usable, in the process that stays in the foreground. */
  void (*on_ready)(void *data);
  void *on_ready_data;
};

#define CFS_LABEL_MAX ((size_t)1 << 20)

/* Mounts the tree (a descriptor from cfs_tree_builder_seal, which stays the caller's) and serves it.
 * Without foreground it returns when the mount is usable, leaving a daemon behind that holds nothing of
 * the caller's but memory. With foreground it returns after the mount is gone: 0 when it was unmounted
 * or stopped by SIGTERM or SIGINT; meanwhile it closes every descriptor of the caller above stderr.
 * Nothing stays mounted on failure. Errors: -EINVAL (option or tree), -ENOENT, -ENOTDIR, -ENOTEMPTY,
 * -EALREADY (a live cudafs is mounted there), -EPERM/-EACCES (may not mount), ... A dead cudafs mount that
 * is in the way is detached first. */
int cfs_serve(int tree_fd, const struct cfs_serve_options *options, char **ret_why);

/* Checks a comma list of mount options without mounting. Known: allow_other noallow_other ro nosuid
 * nodev nonempty fsname=NAME subtype=cudafs threads=N read_ahead_kb=N. -EINVAL names the first bad one. */
int cfs_mount_options_check(const char *options, char **ret_why);

enum cfs_mount_state {
  CFS_MOUNT_NONE,    /* nothing is mounted at that directory */
  CFS_MOUNT_HEALTHY, /* a cudafs mount that answers */
  CFS_MOUNT_DEAD,    /* a cudafs mount whose server is gone (ENOTCONN) or does not answer */
  CFS_MOUNT_FOREIGN, /* the root of a mount of something else */
};

/* What is at that directory: a mount point, or any directory inside a mount (a bind mount or another
 * spelling of the path included). ret_root, if not NULL, receives the mount point (caller owns; NULL
 * for CFS_MOUNT_NONE). -ENOENT, -ENOTDIR for a path that is not a directory. */
int cfs_mount_probe(const char *dir, enum cfs_mount_state *ret_state, char **ret_root);

struct cfs_mount_entry {
  char *path;
  enum cfs_mount_state state; /* HEALTHY or DEAD */
  uint32_t dev_major, dev_minor;
  uid_t user; /* who mounted it */
};

/* Every cudafs mount this process can see, bind mounts of one only once. Returns their number. */
int cfs_mount_list(struct cfs_mount_entry **ret_entries);
void cfs_mount_list_free(struct cfs_mount_entry *entries, int count);

enum cfs_op {
  CFS_OP_LOOKUP,
  CFS_OP_FORGET,
  CFS_OP_GETATTR,
  CFS_OP_READLINK,
  CFS_OP_OPEN,
  CFS_OP_READ,
  CFS_OP_STATFS,
  CFS_OP_OPENDIR,
  CFS_OP_READDIR,
  CFS_OP_READDIRPLUS,
  CFS_OP_OTHER,
  CFS_OP_COUNT,
};
const char *cfs_op_name(enum cfs_op op);

#define CFS_DRIFT_SHOWN 16

struct cfs_status {
  pid_t keeper, worker, spare; /* 0 when there is none at the moment */
  uint32_t generation;         /* 1 is the tree of the mount, each reload adds one */
  uint32_t generations_held;   /* trees still in memory because something uses them */
  uint64_t restarts;           /* workers started after the first, other than by a reload */
  int64_t started;             /* seconds since the epoch */
  uint64_t requests[CFS_OP_COUNT];
  uint64_t bytes_read;
  uint64_t files, pinned;       /* distinct backing files, and those held by a descriptor */
  uint64_t drift_count;         /* distinct backing files found changed or gone: reading them gives EIO */
  char *drift[CFS_DRIFT_SHOWN]; /* their paths, NULL-terminated if fewer */
  bool owner_only;              /* only the mounting user can enter: allow_other was not permitted */
  char *mountpoint;
  char *label; /* NUL-terminated for convenience */
  size_t label_size;
};

/* Asks the keeper of the mount that dir lies in. -ENOTCONN: the mount is dead; the label, mountpoint and
 * keeper are then filled in from what it left on disk, if anything. -ENODEV: not a cudafs mount.
 * -ETIMEDOUT: its keeper does not answer (it is stopped, say). -EACCES: another user's. -ENOENT: no control socket is
 * visible from here (a container). */
int cfs_status_read(const char *dir, struct cfs_status *ret);
void cfs_status_done(struct cfs_status *status);

/* Serves another tree in place of the present one. Taking the locks of running compilers is the caller's
 * business. On failure the old tree stays. Same errors as cfs_status_read, and -EINVAL for a bad tree. */
int cfs_reload(const char *dir, int tree_fd, const void *label, size_t label_size, uint32_t *ret_generation,
               char **ret_why);

/* Takes the mount away and waits until its daemon is gone; when lazy, only until it is out of sight.
 * A busy mount gives -EBUSY and a why that names the processes which use it. */
int cfs_umount(const char *dir, bool lazy, char **ret_why);

#endif
