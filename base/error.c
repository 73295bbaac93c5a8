/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int cfs_error_set(cfs_error **err, enum cfs_error_kind kind, int errnum, const char *what, const char *fix,
                  const char *why_format, ...)
{
  int r = errnum > 0 ? -errnum : -EINVAL;
  if (!err || *err)
    return r;
  cfs_error *e = cfs_zalloc(sizeof(*e));
  va_list ap;
  va_start(ap, why_format);
  e->why = cfs_vformat(why_format, ap);
  va_end(ap);
  e->kind = kind;
  e->errnum = errnum;
  e->what = what ? cfs_strdup(what) : NULL;
  e->fix = fix ? cfs_strdup(fix) : NULL;
  *err = e;
  return r;
}

void cfs_error_prefix(cfs_error *err, const char *format, ...)
{
  if (!err)
    return;
  va_list ap;
  va_start(ap, format);
  cleanup_free char *context = cfs_vformat(format, ap);
  va_end(ap);
  char *why = cfs_format("%s: %s", context, err->why);
  free(err->why);
  err->why = why;
}

void cfs_error_free(cfs_error *err)
{
  if (!err)
    return;
  free(err->what);
  free(err->why);
  free(err->fix);
  free(err);
}
