/*
 * Footprints of steps in other words (declared.c): the bytes and accesses are the same.
 */
#ifndef RANDOM_DECLARED_H
#define RANDOM_DECLARED_H

#include "program.h"

/* Name whole arenas by ACS_WHOLE in some steps. The step has room for as many segments again behind its own. */
acs_uses declared_uses(const program *p, const step *s, acs_uses uses);
/* Declare the footprint function of some launches for the kernel, instead of giving it in the call. */
void declared_launch(const step *s, acs_launch_params *launch);

#endif
