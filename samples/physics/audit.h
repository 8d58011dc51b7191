/*
 * Do the footprints tell the truth?
 */
#ifndef PHYSICS_AUDIT_H
#define PHYSICS_AUDIT_H

#include "simulation.h"

/**
 * Runs `steps` environment steps on the CPU, every kernel twice: once as it is, and once with all bytes spoiled that its
 * footprint does not name as read. Both must write the same, nothing may be written that is not named, and what is named
 * as written without being read must be written whole.
 * @return false if a footprint is wrong; the first few are told on standard error. Host backends only.
 */
bool audit_footprints(simulation &s, int steps, decider d);

#endif
