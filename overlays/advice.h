/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_OVERLAYS_ADVICE_H
#define CUDAFS_OVERLAYS_ADVICE_H

/* The command that mends a composition, in the words of the tool that made the source. Versions come
 * from NVIDIA's own pins, never from arithmetic, so that what is asked for exists. */

#include "overlays/compose.h"

/* Adds to fix the commands that bring the named components (canonical ids) of that release into the
 * source (NULL: a new environment). */
void cfs_advice_install(const cfs_tables *tables, const cfs_inventory *source, const char *release,
                        const cfs_strings *components, cfs_strings *fix);

/* Adds the command that puts one package of a wheel source back as its record says. */
void cfs_advice_reinstall(const cfs_inventory *source, const char *package, const char *version, cfs_strings *fix);

#endif
