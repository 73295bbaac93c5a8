/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_ROUTES_H
#define CUDAFS_OVERLAYS_ROUTES_H

/* What a dispatcher needs to know of a plan: the trailer behind its ELF image (dispatch/trailer.h). */

#include "overlays/plan.h"

/* The trailer's text for one tool. The caller owns it. */
char *cfs_routes_text(const cfs_plan *plan, const cfs_tables *tables, const char *tool, const char *mountpoint);

/* The dispatcher's image with padding and trailer. The padding's length follows the plan's digest, so that two
 * plans differ in the file's size too: ccache looks at size and time alone. The caller owns *ret. */
void cfs_routes_image(const void *dispatcher, size_t dispatcher_size, const char *digest, const char *text, void **ret,
                      size_t *ret_size);

#endif
