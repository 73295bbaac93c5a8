/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_BASE_MEMORY_H
#define CUDAFS_BASE_MEMORY_H

/* Allocation that cannot fail (a planning process that is out of memory has nothing better to do
 * than to stop), and cleanup attributes. The serving side (fs/) must not use the allocators that
 * abort: it answers -ENOMEM instead. */

#include <stdarg.h>
#include <stddef.h>

void *cfs_zalloc(size_t size);
/* Grows an array to hold count elements of the given size; new room is not cleared. */
void *cfs_grow(void *array, size_t count, size_t size);
char *cfs_strdup(const char *s);
char *cfs_strndup(const char *s, size_t n);
char *cfs_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *cfs_vformat(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

void cfs_cleanup_free(void *pp);
void cfs_cleanup_close(int *fd);
void cfs_cleanup_fclose(void *pp);
void cfs_cleanup_closedir(void *pp);
void cfs_cleanup_error(void *pp);

#define cleanup_free     __attribute__((cleanup(cfs_cleanup_free)))
#define cleanup_close    __attribute__((cleanup(cfs_cleanup_close)))
#define cleanup_fclose   __attribute__((cleanup(cfs_cleanup_fclose)))
#define cleanup_closedir __attribute__((cleanup(cfs_cleanup_closedir)))
#define cleanup_error    __attribute__((cleanup(cfs_cleanup_error)))

/* Hands a pointer on and forgets it: `return TAKE_PTR(p);` */
#define TAKE_PTR(p)             \
  __extension__({               \
    __typeof__(p) taken_ = (p); \
    (p) = NULL;                 \
    taken_;                     \
  })

/* Likewise for a descriptor. */
#define TAKE_FD(fd)    \
  __extension__({      \
    int taken_ = (fd); \
    (fd) = -1;         \
    taken_;            \
  })

#endif
