/*
 * Memory for the contents of relocatable blocks (spill.c), out of the pools or of other blocks, whose contents are moved out
 * then. Private to the modules above src/api; under the lock of relocatable blocks, but for acs_spill.
 */
#ifndef ACS_SPILL_H
#define ACS_SPILL_H

#include "residency/relocatable.h"

/* Memory of a device for a block; waits, unless no_wait says not to, and spills. Errors as acs_malloc. */
acs_status acs_spill_find_memory(acs_context *context, const acs_relocatable *m, int kind, acs_block *block);
/*
 * On several devices: there is memory for the block at the place. Errors as acs_malloc; ACS_NOT_READY: no room for a host
 * copy.
 */
acs_status acs_spill_find_memory_at(acs_context *context, acs_relocatable *m, uint32_t place);
/*
 * Move the contents of a lazy block to its host copy, and give its memory back. ACS_ERR_FULL: that would have to wait for
 * host memory.
 */
acs_status acs_spill_move_out(acs_context *context, acs_relocatable *m);
/*
 * A device's memory is short: the contents of the lazy block that was named longest ago go to host memory. False: there
 * is none whose contents may go. Takes the lock itself.
 */
bool acs_spill(acs_context *context, uint32_t device);

#endif
