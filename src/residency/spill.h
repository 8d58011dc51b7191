/*
 * Memory for the contents of relocatable blocks (spill.c): out of the pools, or of other blocks, whose contents are
 * moved out then. Private to src/residency and src/groups; under the lock of relocatable blocks, except for acs_spill.
 */
#ifndef ACS_SPILL_H
#define ACS_SPILL_H

#include "residency/relocatable.h"

/*
 * Take memory of a device for a block's contents. Waits, unless no_wait forbids it, and spills. Errors as acs_malloc.
 */
acs_status acs_spill_find_memory(acs_context *context, const acs_relocatable *m, int kind, acs_block *block);
/*
 * On several devices: make sure that the block has memory at the place. Errors as acs_malloc; ACS_NOT_READY: no room for
 * a host copy.
 */
acs_status acs_spill_find_memory_at(acs_context *context, acs_relocatable *m, uint32_t place);
/*
 * Move the contents of a lazy block to its host copy, and give its memory back. ACS_ERR_FULL: that would have to wait for
 * host memory.
 */
acs_status acs_spill_move_out(acs_context *context, acs_relocatable *m);
/*
 * A device's memory is short: move the contents of the lazy block that was named longest ago to host memory. False:
 * there is no block whose contents may go. Takes the lock itself.
 */
bool acs_spill(acs_context *context, uint32_t device);

#endif
