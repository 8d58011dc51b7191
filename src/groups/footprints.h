/* Dependencies between ops outside of a window: the ops of a group, by their footprints. A pure function. */
#ifndef ACS_FOOTPRINTS_H
#define ACS_FOOTPRINTS_H

#include "groups/liveness.h"
#include "window/record.h"

/*
 * Add to each of the `count` empty sets in `behind` all earlier ops that its op conflicts with, directly or through
 * others. Ops are in program order, and their segments have been checked. ACS_ERR_MEMORY.
 */
acs_status acs_footprints_order(acs_record *const *ops, uint32_t count, acs_op_sets *behind);

#endif
