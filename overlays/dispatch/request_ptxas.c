/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/request.h"

#include <string.h>

#include "base/memory.h"
#include "overlays/dispatch/arch.h"
#include "overlays/dispatch/input.h"
#include "overlays/dispatch/ptx.h"

static void need_ptx(cfs_request *r, struct cfs_ptx_version v)
{
  if (v.major > r->ptx.major || (v.major == r->ptx.major && v.minor > r->ptx.minor))
    r->ptx = v;
}

static void add_text(cfs_request *r, const char *text, size_t size)
{
  struct cfs_ptx_version v = {0};
  if (cfs_ptx_head(text, size, &v, &r->targets))
    need_ptx(r, v);
  else
    r->undecided = true;
}

/* Nearly every head lies in the first page or two; only long leading comments need the second round. */
static bool read_head(const char *path, size_t limit, struct cfs_ptx_version *v, cfs_strings *targets, bool *ret_more)
{
  cleanup_free char *text = NULL;
  size_t size = 0;
  *ret_more = false;
  if (cfs_input_read(path, limit, &text, &size) < 0)
    return false;
  *ret_more = size == limit;
  return cfs_ptx_head(text, size, v, targets);
}

static void add_file(cfs_request *r, const char *path)
{
  struct cfs_ptx_version v = {0};
  bool more;
  if (read_head(path, 16384, &v, &r->targets, &more) || (more && read_head(path, CFS_PTX_HEAD, &v, &r->targets, &more)))
    need_ptx(r, v);
  else
    r->undecided = true;
}

/* Of several -arch the last one counts. Inputs are looked at only when the options make sense, for standard input is
 * read to its end. */
void cfs_request_ptxas(const cfs_command *c, cfs_request *ret)
{
  const char *arch = NULL;
  struct cfs_item item;
  ret->broken = c->broken;
  for (size_t at = 0; cfs_command_next(c, &at, &item);) {
    enum cfs_option_role role = item.match.option ? item.match.option->role : CFS_ROLE_NONE;
    ret->broken |= item.match.unknown;
    ret->report |= role == CFS_ROLE_REPORT;
    if (role == CFS_ROLE_ARCH)
      arch = item.value;
  }
  if (arch)
    cfs_arch_add(&ret->archs, arch, strlen(arch));
  if (ret->broken || ret->report)
    return;
  for (size_t at = 0; cfs_command_next(c, &at, &item);) {
    if (!item.match.option)
      add_file(ret, item.value);
    else if (item.match.option->role == CFS_ROLE_TEXT && item.value)
      add_text(ret, item.value, strlen(item.value));
  }
}
