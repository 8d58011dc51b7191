/*
 * Pictures of what happens.
 */
#ifndef PHYSICS_RENDER_H
#define PHYSICS_RENDER_H

#include "simulation.h"

/**
 * Runs the first scenes (one per body plan) and writes `directory`/<plan>.svg, six moments of one world side by side.
 * @return false if a file cannot be written; the reason is on standard error.
 */
bool render_pictures(simulation &s, runner &r, int steps, const char *directory);

#endif
