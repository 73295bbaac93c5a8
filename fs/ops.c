/* SPDX-License-Identifier: MIT */
#include "fs/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Nothing changes within a generation, and a reload tells the kernel: it need never ask again. */
#define TIMEOUT (365.0 * 86400.0)

static struct cfs_ops *ops_of(fuse_req_t req, enum cfs_op op)
{
  struct cfs_ops *o = fuse_req_userdata(req);
  cfs_shared_count(o->shared, op);
  return o;
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
  (void)userdata;
  conn->want &=
      ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                  FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS);
  /* READDIRPLUS without AUTO: one listing of a directory saves a lookup for each name in it. */
  conn->want |= conn->capable &
                (FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_READDIRPLUS | FUSE_CAP_ASYNC_READ |
                 FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT);
  conn->max_background = 64; /* bursts of read-ahead */
  conn->congestion_threshold = 48;
  conn->time_gran = 1;
}

static void fill_attr(const struct cfs_node *node, struct stat *st)
{
  cfs_snapshot_stat(node->snapshot, node->entry, st);
}

static void fill_entry(const struct cfs_ops *o, const struct cfs_node *node, struct fuse_entry_param *e)
{
  *e = (struct fuse_entry_param){
      .ino = cfs_registry_id(o->registry, node->generation, node->entry),
      .attr_timeout = TIMEOUT,
      .entry_timeout = TIMEOUT,
  };
  fill_attr(node, &e->attr);
}

static int resolve(const struct cfs_ops *o, fuse_ino_t ino, enum cfs_entry_kind kind, struct cfs_node *ret)
{
  int r = cfs_registry_resolve(o->registry, ino, ret);
  if (r < 0)
    return r;
  if (cfs_snapshot_kind(ret->snapshot, ret->entry) == kind)
    return 0;
  return kind == CFS_ENTRY_DIR ? -ENOTDIR : -EINVAL;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
  struct cfs_ops *o = ops_of(req, CFS_OP_LOOKUP);
  struct fuse_entry_param e = {.entry_timeout = TIMEOUT}; /* ino 0: the kernel remembers the absence */
  struct cfs_node node;
  int r = resolve(o, parent, CFS_ENTRY_DIR, &node);
  if (r < 0) {
    fuse_reply_err(req, -r);
    return;
  }
  node.entry = cfs_snapshot_lookup(node.snapshot, node.entry, name);
  if (node.entry != CFS_ENTRY_NONE) {
    fill_entry(o, &node, &e);
    /* Before the reply: dying in between may only count too many. */
    cfs_registry_count(o->registry, e.ino, 1);
  }
  if (fuse_reply_entry(req, &e) == -ENOENT && e.ino)
    cfs_registry_count(o->registry, e.ino, -1); /* interrupted: the kernel did not take it */
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
  struct cfs_ops *o = ops_of(req, CFS_OP_FORGET);
  cfs_registry_count(o->registry, ino, -(int64_t)count);
  fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
  struct cfs_ops *o = ops_of(req, CFS_OP_FORGET);
  for (size_t i = 0; i < count; i++)
    cfs_registry_count(o->registry, forgets[i].ino, -(int64_t)forgets[i].nlookup);
  fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
  (void)fi;
  struct cfs_ops *o = ops_of(req, CFS_OP_GETATTR);
  struct cfs_node node;
  struct stat st;
  int r = cfs_registry_resolve(o->registry, ino, &node);
  if (r < 0) {
    fuse_reply_err(req, -r);
    return;
  }
  fill_attr(&node, &st);
  fuse_reply_attr(req, &st, TIMEOUT);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
  struct cfs_ops *o = ops_of(req, CFS_OP_READLINK);
  struct cfs_node node;
  int r = resolve(o, ino, CFS_ENTRY_LINK, &node);
  if (r < 0)
    fuse_reply_err(req, -r);
  else
    fuse_reply_readlink(req, cfs_snapshot_target(node.snapshot, node.entry));
}

/* ENOSYS: the kernel opens without asking from now on, and keeps what it has cached. libfuse's own answer
 * for a missing open would be success without that. */
static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
  (void)ino, (void)fi;
  ops_of(req, CFS_OP_OPEN);
  fuse_reply_err(req, ENOSYS);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
  (void)ino, (void)fi;
  ops_of(req, CFS_OP_OPENDIR);
  fuse_reply_err(req, ENOSYS);
}

static void read_blob(fuse_req_t req, const struct cfs_node *node, size_t size, off_t offset)
{
  size_t end;
  const char *data = cfs_snapshot_blob(node->snapshot, node->entry, &end);
  size_t from = offset < 0 || (size_t)offset > end ? end : (size_t)offset;
  fuse_reply_buf(req, data + from, size < end - from ? size : end - from);
}

static void read_file(fuse_req_t req, struct cfs_ops *o, const struct cfs_node *node, size_t size, off_t offset)
{
  cleanup_free char *buffer = malloc(size ? size : 1);
  ssize_t n = -ENOMEM;
  if (buffer)
    n = cfs_content_read(o->content, cfs_registry_file(o->registry, node), buffer, size, offset);
  if (n < 0) {
    fuse_reply_err(req, (int)-n);
    return;
  }
  atomic_fetch_add_explicit(&o->shared->bytes_read, (uint64_t)n, memory_order_relaxed);
  fuse_reply_buf(req, buffer, (size_t)n);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
  (void)fi;
  struct cfs_ops *o = ops_of(req, CFS_OP_READ);
  struct cfs_node node;
  int r = cfs_registry_resolve(o->registry, ino, &node);
  if (r < 0)
    fuse_reply_err(req, -r);
  else if (cfs_snapshot_kind(node.snapshot, node.entry) == CFS_ENTRY_FILE)
    read_file(req, o, &node, size, offset);
  else if (cfs_snapshot_kind(node.snapshot, node.entry) == CFS_ENTRY_BLOB)
    read_blob(req, &node, size, offset);
  else
    fuse_reply_err(req, EISDIR);
}

struct listing {
  fuse_req_t req;
  struct cfs_ops *o;
  struct cfs_node dir;
  char *buffer;
  size_t size, filled;
  bool plus;
};

/* Adds one name; next is where a listing that breaks off here goes on. False: no room. */
static bool list_one(struct listing *l, const char *name, const struct cfs_node *node, off_t next)
{
  struct fuse_entry_param e;
  size_t room = l->size - l->filled, n;
  fill_entry(l->o, node, &e);
  if (l->plus && name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
    e.ino = 0; /* the kernel takes no lookup for these */
  if (l->plus)
    n = fuse_add_direntry_plus(l->req, l->buffer + l->filled, room, name, &e, next);
  else
    n = fuse_add_direntry(l->req, l->buffer + l->filled, room, name, &e.attr, next);
  if (n > room)
    return false;
  if (l->plus && e.ino)
    cfs_registry_count(l->o->registry, e.ino, 1);
  l->filled += n;
  return true;
}

/* Offsets: 0 is ".", 1 is "..", 2 + n the n-th child, hidden ones counted. */
static void list(struct listing *l, off_t offset)
{
  struct cfs_node node = l->dir;
  uint32_t first, count = cfs_snapshot_children(l->dir.snapshot, l->dir.entry, &first);
  if (offset <= 0 && !list_one(l, ".", &node, 1))
    return;
  node.entry = cfs_snapshot_parent(l->dir.snapshot, l->dir.entry);
  if (offset <= 1 && !list_one(l, "..", &node, 2))
    return;
  for (uint64_t i = offset > 2 ? (uint64_t)offset - 2 : 0; i < count; i++) {
    node.entry = first + (uint32_t)i;
    if (!cfs_snapshot_hidden(node.snapshot, node.entry) &&
        !list_one(l, cfs_snapshot_name(node.snapshot, node.entry), &node, (off_t)i + 3))
      return;
  }
}

static void reply_listing(fuse_req_t req, struct cfs_ops *o, fuse_ino_t ino, size_t size, off_t offset, bool plus)
{
  struct listing l = {.req = req, .o = o, .size = size, .plus = plus};
  int r = resolve(o, ino, CFS_ENTRY_DIR, &l.dir);
  if (r < 0) {
    fuse_reply_err(req, -r);
    return;
  }
  l.buffer = malloc(size ? size : 1);
  if (!l.buffer) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  list(&l, offset);
  fuse_reply_buf(req, l.buffer, l.filled);
  free(l.buffer);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
  (void)fi;
  reply_listing(req, ops_of(req, CFS_OP_READDIR), ino, size, offset, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
  (void)fi;
  reply_listing(req, ops_of(req, CFS_OP_READDIRPLUS), ino, size, offset, true);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
  (void)ino;
  struct cfs_ops *o = ops_of(req, CFS_OP_STATFS);
  struct statvfs st = {
      .f_bsize = 4096,
      .f_frsize = 4096,
      .f_namemax = 255,
      .f_files = cfs_snapshot_count(o->registry->generations[o->registry->current].snapshot),
  };
  fuse_reply_statfs(req, &st);
}

/* What is absent here libfuse answers with ENOSYS, and the kernel stops asking: flush, access, xattrs.
 * flock and POSIX locks are absent so that they stay in the kernel. */
const struct fuse_lowlevel_ops *cfs_ops_table(void)
{
  static const struct fuse_lowlevel_ops table = {
      .init = op_init,
      .lookup = op_lookup,
      .forget = op_forget,
      .forget_multi = op_forget_multi,
      .getattr = op_getattr,
      .readlink = op_readlink,
      .open = op_open,
      .read = op_read,
      .opendir = op_opendir,
      .readdir = op_readdir,
      .readdirplus = op_readdirplus,
      .statfs = op_statfs,
  };
  return &table;
}
