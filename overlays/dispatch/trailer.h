/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_DISPATCH_TRAILER_H
#define CUDAFS_DISPATCH_TRAILER_H

/* What stands behind the dispatcher's ELF image in each served copy: which tool this copy is, which
 * plan it belongs to, and which toolchains that plan has. The layout writes it, the dispatcher reads
 * it from its own executable; both include this header and nothing of each other.
 *
 * Text, one fact a line, "key value...", LF at the end of each line, in this order:
 *
 *   tool nvcc                      nvcc, ptxas or nvlink
 *   id <64 hex digits>             must equal <root>/.cudafs/id
 *   root /opt/cuda-virtual         where the mount was made: the last resort for finding the root
 *   face 13.0                      the release shown at the root
 *   route 13.0 13.0.88 9.0 ca 75,80,86,...,120,120a,120f
 *                                  release, tool version, newest PTX ISA, what it can do (c compile,
 *                                  a assemble, l link device code), targets without "sm_"; the face first, then
 *                                  ascending releases. Its view is <root>/.cudafs/toolchains/<release>.
 *   avoid 13.1 100,100a text       advisory: do not choose that release for those targets ("*": any)
 *   hint 13.4 9.4 107,107a,107f    a release that is not here and would do, for the one-line advice
 *
 * then the footer: the length of that text as 8 bytes little-endian, and CFS_TRAILER_MAGIC. */

#define CFS_TRAILER_MAGIC       "CUDAFS01"
#define CFS_TRAILER_MAGIC_SIZE  8
#define CFS_TRAILER_FOOTER_SIZE 16
/* A trailer is a few kB; anything beyond this is damage. */
#define CFS_TRAILER_MAX         (256 * 1024)

#define CFS_DOT_DIR    ".cudafs"
#define CFS_ID_PATH    ".cudafs/id"
#define CFS_GATE_PATH  ".cudafs/gate"
#define CFS_LEASE_PATH ".cudafs/lease"
#define CFS_VIEWS_PATH ".cudafs/toolchains"

#endif
