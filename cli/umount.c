/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"

static const struct cfs_usage usage = {
    .name = "umount",
    .synopsis = "DIR",
    .summary = "take a mount away",
    .help = "Unmounts DIR and waits until its daemon is gone. A mount in use stays, and the processes that use\n"
            "it are named.",
    .least = 1,
    .most = 1,
};

static const char *mend_of(int r)
{
  switch (-r) {
  case EBUSY:
    return "end them, or let the mount go when they have ended: cudafs umount --lazy DIR";
  case EINVAL:
  case ENODEV:
  case ENOENT:
  case ENOTDIR:
    return "cudafs status lists the mounts";
  case EPERM:
  case EACCES:
    return "run cudafs as the user who mounted it, or as root";
  default:
    return NULL;
  }
}

static int run(int argc, char *const *argv)
{
  bool lazy = false;
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {
      {"lazy", 'l', NULL, "take it out of sight now, and away when nothing uses it any more", &lazy},
  };
  int code = cfs_arguments(&usage, options, 1, argc, argv, &words);
  if (code >= 0)
    return code;
  cleanup_free char *path = cfs_session_absolute(words.items[0]), *why = NULL, *root = NULL;
  enum cfs_mount_state state = CFS_MOUNT_NONE;
  int r = cfs_mount_probe(path, &state, &root);
  if (r == 0 && (state == CFS_MOUNT_NONE || state == CFS_MOUNT_FOREIGN))
    return cfs_report_format(CFS_FAILED, path, "cudafs status lists the mounts", "%s",
                             state == CFS_MOUNT_NONE ? "nothing of cudafs is mounted there"
                                                     : "what is mounted there is not of cudafs");
  if (r == 0)
    r = cfs_umount(path, lazy, &why);
  if (r < 0)
    return cfs_report_format(CFS_FAILED, path, mend_of(r), "%s", why ? why : strerror(-r));
  return 0;
}

const struct cfs_command cfs_command_umount = {&usage, run};
