/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/request.h"

#include <string.h>

#include "overlays/dispatch/arch.h"

/* Only the target matters: which releases made the objects cannot be told cheaply (their fat binaries
 * are compressed), so the newest linker is taken whatever they are. */
void cfs_request_nvlink(const cfs_command *c, cfs_request *ret)
{
  const char *arch = NULL;
  struct cfs_item item;
  for (size_t at = 0; cfs_command_next(c, &at, &item);) {
    enum cfs_option_role role = item.match.option ? item.match.option->role : CFS_ROLE_NONE;
    ret->report |= role == CFS_ROLE_REPORT;
    if (role == CFS_ROLE_ARCH)
      arch = item.value;
  }
  if (arch)
    cfs_arch_add(&ret->archs, arch, strlen(arch));
}
