/*
 * The contents of slots: marks (recorded, usable by a wait, known to be complete) and, once a batch is submitted, ops.
 * Called by slots.c, which puts marks into batches, and by the core, which books results and polls, under the core's
 * lock. It never calls a backend.
 */
#include "scheduler/slots_internal.h"

static acs_mark *mark_at(const acs_slots *slots, const acs_slot *slot, uint32_t position)
{
    return &slot->marks[(slot->mark_first + position) & (slots->mark_capacity - 1)];
}

const acs_mark *acs_mark_find(const acs_slots *slots, const acs_slot *slot, uint64_t value, uint64_t batch_id)
{
    uint32_t low = 0, high = slot->mark_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (mark_at(slots, slot, middle)->value < value)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == slot->mark_count)
        return NULL;
    const acs_mark *mark = mark_at(slots, slot, low);
    return mark->value <= slot->stable || slot->batch == batch_id ? mark : NULL;
}

bool acs_mark_room(const acs_slots *slots, const acs_slot *slot)
{
    return slot->mark_count < slots->mark_capacity;
}

acs_mark acs_mark_add(acs_slots *slots, uint32_t s)
{
    acs_slot *slot = &slots->slot[s];
    acs_mark *mark = mark_at(slots, slot, slot->mark_count);
    ACS_ASSERT(slot->mark_count < slots->mark_capacity);                                                /* SLOT-2 */
    ACS_ASSERT(!slot->mark_count || mark_at(slots, slot, slot->mark_count - 1)->value <= slot->issued); /* SLOT-2 */
    mark->slot = (uint16_t)s;
    mark->index = slot->spares ? slot->spare_marks[--slot->spares] : (uint16_t)slot->marks_made++;
    mark->value = slot->issued;
    slot->mark_count++;
    slot->marked = slot->issued;
    slots->counters.marks++;
    return *mark;
}

uint32_t acs_slots_marks(const acs_slots *slots, uint32_t s, acs_mark *marks, uint32_t capacity)
{
    const acs_slot *slot = &slots->slot[s];
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot->mark_count && count + 1 < capacity; i++)
        if (mark_at(slots, slot, i)->value <= slot->stable)
            marks[count++] = *mark_at(slots, slot, i);
    for (uint32_t i = slot->mark_count; i > 0; i--) {
        const acs_mark *newest = mark_at(slots, slot, i - 1);
        if (newest->value > slot->stable)
            continue;
        if (count && newest->value > marks[count - 1].value)
            marks[count++] = *newest;
        break;
    }
    return count;
}

void acs_slots_looked_at(acs_slots *slots, uint32_t s, uint64_t value)
{
    slots->slot[s].looked_at = value;
    slots->banks[acs_slot_device(slots, s)].looked |= 1ull << s;
}

void acs_slots_completed(acs_slots *slots, uint32_t s, uint64_t value)
{
    acs_slot *slot = &slots->slot[s];
    ACS_ASSERT(value <= slot->issued); /* SLOT-1 */
    if (value > slot->completed)
        slot->completed = value;
    while (slot->mark_count && mark_at(slots, slot, 0)->value <= slot->completed) {
        slot->spare_marks[slot->spares++] = mark_at(slots, slot, 0)->index;
        slot->mark_first = (slot->mark_first + 1) & (slots->mark_capacity - 1);
        slot->mark_count--;
    }
}

/* -------------------------------------------------------------------------------------------------------- after submit */

void acs_slots_batch_done(acs_slots *slots, uint64_t batch_id)
{
    for (uint32_t s = 0; s < slots->used; s++) {
        if (slots->slot[s].batch != batch_id)
            continue;
        ACS_ASSERT(slots->slot[s].stable <= slots->slot[s].marked);
        slots->slot[s].batch = 0;
        slots->slot[s].stable = slots->slot[s].marked;
    }
}

void acs_slots_cancel(acs_slots *slots, int slot)
{
    ACS_ASSERT(slot < 0 || slots->slot[slot].outstanding > 0);
    if (slot >= 0)
        slots->slot[slot].outstanding--;
}

void acs_slots_append(acs_slots *slots, acs_entry *entry)
{
    acs_slot *slot = &slots->slot[entry->slot];
    uint32_t index = acs_entry_index(slots->window, entry);
    ACS_ASSERT(!slot->tail || slots->window->entries[slot->tail].value < entry->value);
    entry->slot_next = 0;
    if (slot->tail)
        slots->window->entries[slot->tail].slot_next = index;
    else
        slot->head = index;
    slot->tail = index;
    acs_slots_fed(slots, entry);
}

acs_entry *acs_slots_pop_complete(acs_slots *slots, uint32_t s)
{
    acs_slot *slot = &slots->slot[s];
    if (!slot->head || slots->window->entries[slot->head].value > slot->completed)
        return NULL;
    acs_entry *entry = &slots->window->entries[slot->head];
    ACS_ASSERT(entry->state == ACS_ENTRY_ISSUED && slot->outstanding > 0);
    slot->head = entry->slot_next;
    if (!slot->head)
        slot->tail = 0;
    slot->outstanding--;
    return entry;
}
