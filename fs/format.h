/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_FORMAT_H
#define CUDAFS_FS_FORMAT_H

/* The bytes of a sealed snapshot, private to the writer (seal.c) and the reader (snapshot.c): header,
 * entries, backings, warm list (entry numbers), strings, blobs. Native byte order: it never leaves the
 * machine. Entries stand breadth first, so that the children of a directory are contiguous, and are
 * sorted by name inside it; entry 0 is the root. */

#include <stdint.h>

#define CFS_FORMAT_MAGIC   UINT64_C(0x3165657274736663) /* "cfstree1" */
#define CFS_FORMAT_NONE    UINT32_MAX
#define CFS_FORMAT_SIZE    UINT64_C(0x100000000) /* string and blob offsets are 32 bits wide */
#define CFS_FORMAT_INO_MAX ((UINT64_C(1) << 52) - 1)

enum cfs_format_type {
  CFS_FORMAT_DIR = 1,
  CFS_FORMAT_FILE, /* bytes of a backing file */
  CFS_FORMAT_BLOB, /* bytes in the snapshot */
  CFS_FORMAT_LINK,
};

enum cfs_format_flag {
  CFS_FORMAT_EXECUTABLE = 1,
  CFS_FORMAT_HIDDEN = 2,
  CFS_FORMAT_KEPT = 4,
};

struct cfs_format_header {
  uint64_t magic;
  uint64_t size; /* of the whole snapshot */
  uint32_t entries, backings, warm;
  uint32_t strings; /* bytes; every string in it ends with NUL */
  uint32_t blobs;   /* bytes */
  uint32_t reserved;
};

struct cfs_format_entry {
  uint64_t ino;
  uint64_t size;
  int64_t mtime_sec;
  uint32_t mtime_nsec;
  uint32_t name;
  uint16_t name_size; /* without the NUL */
  uint8_t type, flags;
  uint32_t parent;
  uint32_t links;
  /* First child of a directory; backing of a file; offset into the blobs; target string of a link. */
  uint32_t data;
  /* Children of a directory; for a file the first entry with the same backing and mode, which names
   * the inode that all of them share. */
  uint32_t extra;
};

struct cfs_format_backing {
  uint64_t device, inode, size;
  int64_t mtime_sec;
  uint32_t mtime_nsec;
  uint32_t path;
  uint32_t path_size;
  uint32_t reserved;
};

#endif
