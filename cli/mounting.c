/* SPDX-License-Identifier: MIT */
#include "cli/mounting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "base/file.h"
#include "base/memory.h"
#include "cli/output.h"
#include "overlays/host.h"

static const char fuse_device[] = "/dev/fuse";

/* What most often stands in the way, in the order in which one would have to mend it. */
static int tell_obstacle(const char *mountpoint)
{
  cleanup_free char *helper = cfs_path_search(getenv("PATH"), "fusermount3");
  if (access(fuse_device, F_OK) < 0)
    return cfs_report_format(CFS_FAILED, mountpoint,
                             "load the module: modprobe fuse; in a container, pass the device: --device /dev/fuse",
                             "it cannot be mounted: there is no %s", fuse_device);
  if (geteuid() != 0 && access(fuse_device, R_OK | W_OK) < 0)
    return cfs_report_format(CFS_FAILED, mountpoint,
                             "let an administrator open it to you (chmod 0666 /dev/fuse), or run cudafs as root",
                             "it cannot be mounted: no permission to open %s (%s)", fuse_device, strerror(errno));
  if (geteuid() != 0 && !helper)
    return cfs_report_format(CFS_FAILED, mountpoint, "install it: apt install fuse3 (dnf install fuse3)",
                             "it cannot be mounted: fusermount3, by which users mount, is not installed");
  return 0;
}

static const char *mend_of(int r)
{
  switch (-r) {
  case ENOENT:
    return "make the directory first";
  case ENOTDIR:
    return "name an empty directory";
  case ENOTEMPTY:
    return "name an empty directory, or cover this one with -o nonempty";
  case EPERM:
  case EACCES:
    return "mount on a directory of your own, or run cudafs as root";
  case EALREADY:
  case EBUSY:
    return "unmount what is there first: cudafs umount DIR";
  default:
    return NULL;
  }
}

static int tell(const char *mountpoint, int r, const char *why)
{
  if (r == -EPERM || r == -EACCES || r == -ENOENT || r == -ENODEV || r == -EIO) {
    int told = cfs_path_is_dir(mountpoint) ? tell_obstacle(mountpoint) : 0;
    if (told)
      return told;
  }
  return cfs_report_format(CFS_FAILED, mountpoint, mend_of(r), "it cannot be mounted: %s", why ? why : strerror(-r));
}

struct ready {
  const char *release, *mountpoint;
};

static void on_ready(void *data)
{
#ifdef HAVE_SYSTEMD
  const struct ready *r = data;
  sd_notifyf(0, "READY=1\nSTATUS=serving CUDA %s on %s", r->release, r->mountpoint);
#else
  (void)data;
#endif
}

static void on_stopped(void)
{
#ifdef HAVE_SYSTEMD
  sd_notify(0, "STOPPING=1\nSTATUS=unmounted");
#endif
}

int cfs_mounting_serve(const cfs_build *build, const struct cfs_mounting *m)
{
  cleanup_close int tree = cfs_session_tree(build, m->mountpoint);
  if (tree < 0)
    return -tree;
  cleanup_free char *label = cfs_session_label(build), *why = NULL;
  struct ready ready = {build->plan->release, m->mountpoint};
  const struct cfs_serve_options options = {
      .mountpoint = m->mountpoint,
      .fuse_options = m->options,
      .label = label,
      .label_size = label ? strlen(label) : 0,
      .foreground = m->foreground,
      .on_ready = on_ready,
      .on_ready_data = &ready,
  };
  fflush(NULL); /* the daemon must not write our buffers a second time */
  /* Serving in the foreground closes it. */
  int r = cfs_serve(m->foreground ? TAKE_FD(tree) : tree, &options, &why);
  if (r < 0)
    return tell(m->mountpoint, r, why);
  if (m->foreground)
    on_stopped();
  return 0;
}

int cfs_private_mount_make(const cfs_build *build, struct cfs_private_mount *ret)
{
  const char *base = getenv("TMPDIR");
  cleanup_free char *joined = cfs_path_join(base && *base ? base : "/tmp", "cudafs-private-XXXXXX");
  if (!mkdtemp(joined))
    return cfs_report_format(CFS_FAILED, joined, "set TMPDIR to a folder that can be written",
                             "no temporary folder can be made (%s)", strerror(errno));
  char *path = cfs_session_absolute(joined);
  int code = cfs_mounting_serve(build, &(struct cfs_mounting){.mountpoint = path});
  if (code) {
    rmdir(path);
    free(path);
    return code;
  }
  ret->path = path;
  return 0;
}

void cfs_private_mount_remove(struct cfs_private_mount *m)
{
  if (!m->path)
    return;
  cleanup_free char *why = NULL;
  /* A process of ours may still be dying in it. */
  if (cfs_umount(m->path, false, &why) < 0 && cfs_umount(m->path, true, NULL) < 0)
    cfs_report_format(CFS_FAILED, m->path, "take it away: cudafs umount --lazy DIR", "%s",
                      why ? why : "it cannot be unmounted");
  else
    rmdir(m->path);
  free(m->path);
  m->path = NULL;
}
