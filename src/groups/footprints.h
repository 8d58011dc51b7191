/*
 * Who depends on whom among ops that are not in a window: those of a group, by their footprints. A pure function.
 */
#ifndef ACS_WINDOW_FOOTPRINTS_H
#define ACS_WINDOW_FOOTPRINTS_H

#include "groups/liveness.h"
#include "window/record.h"

/*
 * `behind`, empty sets for `count` ops in program order, gets for each all that it conflicts with and that is before it,
 * directly or through others. Their segments have been checked. ACS_ERR_MEMORY.
 */
acs_status acs_footprints_order(acs_record *const *ops, uint32_t count, acs_op_sets *behind);

#endif
