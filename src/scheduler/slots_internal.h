/*
 * Private to src/scheduler/slots*.c: the choice of a slot, and its marks. These are a ring, ordered by value (S2).
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

/*
 * Copies to a device go through one engine, which takes turns among streams: of two that are as long, both would be there
 * when the second could have been, and what needs the first would start late. So those that wait for nothing go behind each
 * other in one slot, the lane, in the order in which they became ready, and others keep out of it as long as its end is one.
 */
static inline bool acs_slots_is_lane(const acs_slots *slots, uint32_t s)
{
    const acs_bank *bank = &slots->banks[s % slots->devices];
    return bank->lane_value && bank->lane == s && slots->slot[s].issued == bank->lane_value &&
           !acs_slot_reached(&slots->slot[s], bank->lane_value);
}
/* Whether the op belongs there. */
bool acs_slots_is_for_lane(const acs_slots *slots, const acs_entry *entry);

/* The slot for an op, of its device; -1: none now. `bundle`: it stands for one. */
int acs_slots_choose(acs_slots *slots, const acs_entry *entry, uint64_t batch_id, bool bundle);

#endif
