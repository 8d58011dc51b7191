/*
 * The allocation in which an address lies, for segments with ACS_WHOLE (expand.c). Defined in whole.c.
 */
#ifndef ACS_WHOLE_H
#define ACS_WHOLE_H

#include "api/context.h"

typedef enum acs_whole {
    ACS_WHOLE_FOUND,
    ACS_WHOLE_FREED,  /* it was a block of acs_malloc, or is pool memory in no block */
    ACS_WHOLE_UNKNOWN
} acs_whole;

/*
 * Find the allocation. FOUND: *block has its address and bytes. FREED: *block is what was there, with 0 bytes if that is
 * not remembered. UNKNOWN: *reason says why, in static storage. May ask the device's driver.
 */
acs_whole acs_whole_find(acs_context *context, uint64_t address, acs_block *block, const char **reason);

/* Find a live block, or registered memory. Does not ask the driver. */
bool acs_whole_find_known(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes);

#endif
