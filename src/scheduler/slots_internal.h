/*
 * Private to src/scheduler/slots*.c: marks of a slot. A slot's marks are a ring, ordered by value (S2).
 */
#ifndef ACS_SLOTS_INTERNAL_H
#define ACS_SLOTS_INTERNAL_H

#include "scheduler/slots.h"

/* The first mark at or behind `value` that is recorded, or will be by this batch before its next item; NULL: none. */
const acs_mark *acs_mark_find(const acs_slots *slots, const acs_slot *slot, uint64_t value, uint64_t batch_id);
bool acs_mark_room(const acs_slots *slots, const acs_slot *slot);
/* A new mark at the end of a slot; the caller puts it into the batch. */
acs_mark acs_mark_add(acs_slots *slots, uint32_t slot);

#endif
