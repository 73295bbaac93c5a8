/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_IDENTIFY_H
#define CUDAFS_OVERLAYS_IDENTIFY_H

/* Which version and CUDA release a part is, read from its own files: the string that the tools carry
 * in .rodata, the macros of its headers. A package's number alone is not believed where a file speaks. */

#include "overlays/inventory.h"

/* Sets content, release and, where the package gave none, version. Files that cannot be read, or that
 * contradict their package, become problems. The part's files must be sorted. */
void cfs_identify_part(cfs_part *part, const cfs_tables *tables, cfs_problems *problems);

/* The newest release whose metapackage pins exactly this version of the component, or NULL. Static
 * as long as the tables live. */
const char *cfs_identify_release_by_pins(const cfs_tables *tables, const char *component, const char *version);

#endif
