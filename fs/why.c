/* SPDX-License-Identifier: MIT */
#include "fs/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int cfs_why(char **ret_why, int r, const char *format, ...)
{
  if (!ret_why)
    return r;
  char *text = NULL;
  va_list ap;
  va_start(ap, format);
  if (vasprintf(&text, format, ap) < 0)
    text = NULL;
  va_end(ap);
  free(*ret_why);
  *ret_why = text;
  return r;
}
