/*
 * Versions of the programs' kernels (versions.c): each does the same to the byte, in another shape.
 */
#ifndef RANDOM_VERSIONS_H
#define RANDOM_VERSIONS_H

#include "program.h"

/* Before a launch: see that its kernel has versions, and pin one now and then. */
void versions_launch(const random_config *c, const step *s, acs_launch_params *launch);

#endif
