/*
 * The executor of the simulation's kernels (acs_resident.cuh): a kernel that runs blocks of all of them.
 */
#ifndef PHYSICS_RESIDENT_H
#define PHYSICS_RESIDENT_H

#include "acs.h"

/** For acs_executor_add; NULL: built without nvcc. */
const acs_executor_params *physics_executor();

#endif
