/*
 * Private to src/scheduler/slots*.c: the choice of a slot, and its marks. These are a ring, ordered by value (SLOT-2).
 */
#ifndef ACS_SLOTS_INTERNAL_H
#define ACS_SLOTS_INTERNAL_H

#include "scheduler/slots.h"

/* The first mark at or behind `value` that is recorded, or will be by this batch before its next item; NULL: none. */
const acs_mark *acs_mark_find(const acs_slots *slots, const acs_slot *slot, uint64_t value, uint64_t batch_id);
bool acs_mark_room(const acs_slots *slots, const acs_slot *slot);
/* A new mark at the end of a slot; the caller puts it into the batch. */
acs_mark acs_mark_add(acs_slots *slots, uint32_t slot);

/* No other batch owns it. */
static inline bool acs_slot_free(const acs_slot *slot, uint64_t batch_id)
{
    return slot->batch == 0 || slot->batch == batch_id;
}

static inline bool acs_slot_reached(const acs_slot *slot, uint64_t value)
{
    return value <= slot->completed || slot->outstanding == 0;
}

static inline const acs_entry *acs_slot_newest(const acs_slots *slots, const acs_slot *slot)
{
    return acs_ref_live(slots->window, slot->newest) ? &slots->window->entries[slot->newest.entry] : NULL;
}

/* An op was issued: what is decided by how ops follow each other. */
void acs_slots_fed(acs_slots *slots, const acs_entry *entry);
/* The slot for an op, of its device; -1: none now. `bundle`: it stands for one. */
int acs_slots_choose(acs_slots *slots, const acs_entry *entry, uint64_t batch_id, bool bundle);

#endif
