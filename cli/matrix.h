/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_CLI_MATRIX_H
#define CUDAFS_CLI_MATRIX_H

/* The picture of a plan: components down, sources across, versions in the cells. */

#include <stdio.h>

#include "overlays/plan.h"

/* The cells that the face is made of carry a star, those of other toolchains a plus; what stands in the way
 * of a coherent set is red and carries an exclamation mark. */
void cfs_matrix_print(const cfs_plan *plan, const cfs_tables *tables, FILE *to);

#endif
