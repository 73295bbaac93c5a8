/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/request.h"

#include <string.h>

#include "overlays/dispatch/arch.h"

/* -code and -gencode accumulate; of several -arch the last one counts. -arch=native, all and all-major add
 * no name: they mean whatever the face can do. */
void cfs_request_nvcc(const cfs_command *c, cfs_request *ret)
{
  const char *arch = NULL;
  bool unknown = false, forward = false;
  struct cfs_item item;
  for (size_t at = 0; cfs_command_next(c, &at, &item);) {
    unknown |= item.match.unknown;
    if (!item.match.option)
      continue;
    enum cfs_option_role role = item.match.option->role;
    forward |= role == CFS_ROLE_FORWARD;
    ret->report |= role == CFS_ROLE_REPORT;
    if (role == CFS_ROLE_ARCH)
      arch = item.value;
    else if ((role == CFS_ROLE_CODE || role == CFS_ROLE_GENCODE) && item.value)
      cfs_arch_add_all(&ret->archs, item.value);
  }
  if (arch)
    cfs_arch_add(&ret->archs, arch, strlen(arch));
  ret->broken = c->broken || (unknown && !forward);
}
