/*
 * Slots of the host backend (host_executor.h): queues of entries, and timelines. A state machine that the backend
 * advances under its lock. Never runs an op, takes a lock or chooses among slots.
 */
#include "host/host_executor.h"

#include "host/host_kernel.h"

#include <stdlib.h>
#include <string.h>

enum { RING_FIRST = 64 };

/* ------------------------------------------------------------------------------------------------- queue entries */

/* Positions run free, and only this function masks them (EXEC-1). */
static acs_host_entry *entry_at(const acs_host_slot *slot, uint32_t position)
{
    ACS_ASSERT(slot->tail - slot->head <= slot->capacity && !(slot->capacity & (slot->capacity - 1))); /* EXEC-1 */
    return &slot->ring[position & (slot->capacity - 1)];
}

/* Replace the ring by a larger one. `capacity` is a power of two. */
static bool ring_grow(acs_host_slot *slot, uint32_t capacity)
{
    uint32_t used = slot->tail - slot->head;
    acs_host_entry *ring = malloc(capacity * sizeof *ring);

    if (!ring)
        return false;
    /* Entries move to the front, since the new capacity masks positions differently. */
    for (uint32_t i = 0; i < used; i++)
        ring[i] = *entry_at(slot, slot->head + i);
    free(slot->ring);
    slot->ring = ring;
    slot->capacity = capacity;
    slot->head = 0;
    slot->tail = used;
    return true;
}

/* Make room for `more` entries. A queue is bounded by the window, so it stops growing soon. */
static bool ring_reserve(acs_host_slot *slot, uint32_t more)
{
    uint32_t used = slot->tail - slot->head;

    if (used + more <= slot->capacity)
        return true;
    return ring_grow(slot, acs_round_up_pow2(used + more < RING_FIRST ? RING_FIRST : used + more));
}

acs_status acs_host_slots_init(acs_host_slots *slots, uint32_t count)
{
    memset(slots, 0, sizeof *slots);
    slots->slot = aligned_alloc(ACS_CACHE_LINE, count * sizeof *slots->slot);
    if (!slots->slot)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for %u slots", (unsigned)count);
    memset(slots->slot, 0, count * sizeof *slots->slot);
    slots->count = count;
    for (uint32_t i = 0; i < count; i++)
        atomic_init(&slots->slot[i].completed, 0);
    for (uint32_t i = 0; i < count; i++)
        if (!ring_grow(&slots->slot[i], acs_round_up_pow2(count)))
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the queues of %u slots", (unsigned)count);
    return ACS_OK;
}

void acs_host_slots_fini(acs_host_slots *slots)
{
    for (uint32_t i = 0; i < slots->count; i++)
        free(slots->slot[i].ring);
    free(slots->slot);
    slots->slot = NULL;
    slots->count = 0;
}

/*
 * Move a timeline to `value`, but never back: the value may be that of an old mark. A: pairs with acs_host_completed.
 */
static void move_timeline(acs_host_slots *slots, acs_host_slot *slot, uint64_t value)
{
    /* Relaxed: written only under the lock, which this thread holds. */
    if (value <= atomic_load_explicit(&slot->completed, memory_order_relaxed))
        return;
    atomic_store_explicit(&slot->completed, value, memory_order_release); /* A */
    slots->progress = true;
}

/* Raise the value of the last entry to that of the mark, which completes with it (see the header). */
static void record_mark(acs_host_slots *slots, const acs_mark *mark)
{
    acs_host_slot *slot = &slots->slot[mark->slot];
    acs_host_entry *last;

    if (slot->head == slot->tail) {
        move_timeline(slots, slot, mark->value);
        return;
    }
    last = entry_at(slot, slot->tail - 1);
    if (last->value < mark->value)
        last->value = mark->value;
}

/* --------------------------------------------------------------------------------------------------------- issue */

/* Set the item's status if it cannot be issued. */
static void refuse_unfit_item(const acs_batch *batch, acs_item *item)
{
    if (!acs_item_may_follow(batch, item)) {
        acs_item_result(item, ACS_ERR_SKIPPED, 0, NULL);
        return;
    }
    if (item->status == ACS_OK && item->slot >= 0 && !acs_host_runs(item->op))
        acs_item_result(item, ACS_ERR_INTERNAL, 0, "this kind of op is not for a slot of a CPU backend");
}

/* Number of entries of an item that is issued. A refused one has its waits only: the core relies on their order. */
static uint32_t entries_of(const acs_item *item)
{
    return item->wait_count ? item->wait_count : 1;
}

/* Append one entry per wait; the last one has the op, too. The caller reserved room. */
static void enqueue(acs_host_slots *slots, const acs_batch *batch, acs_item *item)
{
    acs_host_slot *slot = &slots->slot[item->slot];
    bool runs = item->status == ACS_OK;
    uint32_t count = runs ? entries_of(item) : item->wait_count;

    ACS_ASSERT(item->wait_count <= slots->count && slots->count <= slot->capacity);                       /* EXEC-3 */
    ACS_ASSERT(slot->tail - slot->head + count <= slot->capacity);                                        /* EXEC-1 */
    ACS_ASSERT(!runs || slot->head == slot->tail || entry_at(slot, slot->tail - 1)->value < item->value); /* EXEC-2 */
    for (uint32_t i = 0; i < count; i++) {
        acs_host_entry entry = {NULL, 0, 0, 0};
        if (i < item->wait_count) {
            /* On a CPU a mark is nothing but a value of its slot's timeline. */
            const acs_mark *mark = &batch->waits[item->first_wait + i];
            entry.wait_slot = mark->slot;
            entry.wait_value = mark->value;
        }
        if (runs && i == count - 1) {
            entry.op = item->op;
            entry.value = item->value;
        }
        *entry_at(slot, slot->tail++) = entry;
    }
}

bool acs_host_issue(acs_host_slots *slots, const acs_batch *batch, acs_item *item)
{
    if (item->slot >= 0 && !ring_reserve(&slots->slot[item->slot], entries_of(item)))
        return false;
    /* Marks first: the item's own waits may name them. */
    for (uint32_t i = 0; i < item->mark_count; i++)
        record_mark(slots, &batch->marks[item->first_mark + i]);
    refuse_unfit_item(batch, item);
    if (item->slot >= 0)
        enqueue(slots, batch, item);
    if (item->mark_after)
        record_mark(slots, &item->after);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- advance */

const acs_host_entry *acs_host_head(const acs_host_slots *slots, uint32_t slot)
{
    const acs_host_slot *s = &slots->slot[slot];
    return s->head == s->tail ? NULL : entry_at(s, s->head);
}

/* A: acquire; pairs with move_timeline. Seeing a value implies seeing the writes of the ops up to it. */
uint64_t acs_host_completed(const acs_host_slots *slots, uint32_t slot)
{
    return atomic_load_explicit(&slots->slot[slot].completed, memory_order_acquire); /* A */
}

bool acs_host_satisfied(const acs_host_slots *slots, const acs_host_entry *entry)
{
    return entry->wait_value <= acs_host_completed(slots, entry->wait_slot);
}

/* The entry is removed before the value is published: a thread that sees the value finds the slot advanced. */
void acs_host_finish(acs_host_slots *slots, uint32_t slot)
{
    acs_host_slot *s = &slots->slot[slot];
    ACS_ASSERT(s->head != s->tail);
    uint64_t value = entry_at(s, s->head)->value;

    s->head++;
    move_timeline(slots, s, value);
}

/* Marks of a slot complete in order, so the count says which ones. */
uint32_t acs_host_marks_complete(const acs_mark *marks, uint32_t count, uint64_t completed)
{
    uint32_t n = 0;

    while (n < count && marks[n].value <= completed)
        n++;
    return n;
}
