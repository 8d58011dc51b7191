/*
 * Private to src/scheduler/slots*.c: the choice of a slot (slots_choice.c), and marks (slots_marks.c), a ring ordered
 * by value (SLOT-2).
 */
#ifndef ACS_SLOTS_INTERNAL_H
#define ACS_SLOTS_INTERNAL_H

#include "scheduler/slots.h"

/* The first mark at or behind `value` that is recorded, or that this batch records before its next item; NULL: none. */
const acs_mark *acs_mark_find(const acs_slots *slots, const acs_slot *slot, uint64_t value, uint64_t batch_id);
bool acs_mark_room(const acs_slots *slots, const acs_slot *slot);
/* Add a mark at the end of a slot; there must be room. The caller puts it into the batch. */
acs_mark acs_mark_add(acs_slots *slots, uint32_t slot);

/* An op was issued: update the bursts that the number of active slots depends on. */
void acs_slots_fed(acs_slots *slots, const acs_entry *entry);
/* The slot for an op, one of its device; -1: none now. `bundle`: the op is the first of a bundle. */
int acs_slots_choose(acs_slots *slots, const acs_entry *entry, uint64_t batch_id, bool bundle);

#endif
