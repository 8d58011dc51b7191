/*
 * Which bodies contacts may connect: islands, which solve and apply work on.
 */
#ifndef PHYSICS_ISLANDS_H
#define PHYSICS_ISLANDS_H

#include "model.h"

/**
 * The islands of a substep in which these pair types have candidates. A pair type with candidates joins all of its
 * bodies; the ground and bodies on a path join nothing.
 * @return how many; at most MAX_ISLANDS.
 */
int find_islands(const model &m, unsigned active, island_model *out);

/**
 * Fill the model's islands and in_islands, from its pair types.
 * @return false: a set of pair types has an island with a body that the model's islands lack.
 */
bool fill_islands(model &m);

#endif
