/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void *checked(void *p)
{
  if (!p) {
    fputs("cudafs: out of memory\n", stderr);
    abort();
  }
  return p;
}

void *cfs_zalloc(size_t size)
{
  return checked(calloc(1, size ? size : 1));
}

void *cfs_grow(void *array, size_t count, size_t size)
{
  return checked(reallocarray(array, count ? count : 1, size));
}

char *cfs_strdup(const char *s)
{
  return checked(strdup(s));
}

char *cfs_strndup(const char *s, size_t n)
{
  return checked(strndup(s, n));
}

char *cfs_vformat(const char *format, va_list ap)
{
  char *s = NULL;
  if (vasprintf(&s, format, ap) < 0)
    s = NULL;
  return checked(s);
}

char *cfs_format(const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  char *s = cfs_vformat(format, ap);
  va_end(ap);
  return s;
}

void cfs_cleanup_free(void *pp)
{
  free(*(void **)pp);
}

void cfs_cleanup_close(int *fd)
{
  if (*fd >= 0)
    close(*fd);
}

void cfs_cleanup_fclose(void *pp)
{
  FILE *f = *(FILE **)pp;
  if (f)
    fclose(f);
}

void cfs_cleanup_closedir(void *pp)
{
  DIR *d = *(DIR **)pp;
  if (d)
    closedir(d);
}

void cfs_cleanup_error(void *pp)
{
  cfs_error_free(*(cfs_error **)pp);
}
