/*
 * Slots of the host backend as a state machine: queues of ops and waits, and a timeline each. No threads, no clock and
 * no choice: the host backend decides which slot advances, this says which can.
 *
 * A slot's queue holds entries in issue order. The head entry may go when its wait is satisfied; it stays at the head
 * while its op runs, and finishing it moves the timeline to its value.
 * Marks need no place of their own: a mark stands behind all that was issued to its slot, so recording one raises the
 * value of the last entry (or, the queue being empty, the timeline) to the mark's value, and the mark is complete when
 * the timeline reaches that. So recording cannot fail, and marks behind ops that failed complete too.
 *
 * EXEC-1  head, tail run free; tail - head <= capacity, a power of two.
 * EXEC-2  Values of a queue's entries that end something are above `completed` and increase.
 * EXEC-3  capacity >= number of slots, hence at least the waits of one item: it waits once for each slot at most.
 * The owner's lock guards everything; `completed` alone may be read without it (pair A).
 */
#ifndef ACS_HOST_EXECUTOR_H
#define ACS_HOST_EXECUTOR_H

#include "scheduler/backend.h"

#include <stdatomic.h>

typedef struct acs_host_entry {
    acs_record *op;      /* NULL: only the wait */
    uint64_t value;      /* what the timeline reaches when this is done; 0: it stays */
    uint64_t wait_value; /* not before the timeline of wait_slot reached this; 0: no wait */
    uint32_t wait_slot;
} acs_host_entry;

typedef struct acs_host_slot {
    _Alignas(ACS_CACHE_LINE) _Atomic uint64_t completed; /* A: what ran is visible to whoever reads its value here */
    _Alignas(ACS_CACHE_LINE) acs_host_entry *ring;
    uint32_t capacity, head, tail;
} acs_host_slot;

typedef struct acs_host_slots {
    acs_host_slot *slot;
    uint32_t count;
    bool progress; /* a timeline moved since the owner last cleared this: somebody may want to be told */
} acs_host_slots;

acs_status acs_host_slots_init(acs_host_slots *slots, uint32_t count);
void acs_host_slots_fini(acs_host_slots *slots);

/*
 * Issue one item of a batch: record its marks, queue its waits, and its op unless item->status says that it was refused
 * already or an upstream item was not issued. Waits and marks take effect in any case: later ops may count on them.
 * An item without an op (slot -1) only records marks.
 * False: the slot's queue is full and there is no memory for a larger one; nothing was done. Once entries have left the
 * queue it succeeds: an empty queue has room for any item, since acs_host_slots_init reserved it (EXEC-3).
 */
bool acs_host_issue(acs_host_slots *slots, const acs_batch *batch, acs_item *item);

/* The next entry of a slot; NULL if its queue is empty. Valid until the next issue. */
const acs_host_entry *acs_host_head(const acs_host_slots *slots, uint32_t slot);
bool acs_host_satisfied(const acs_host_slots *slots, const acs_host_entry *entry);
/* The head entry is done: leave it and move the timeline. */
void acs_host_finish(acs_host_slots *slots, uint32_t slot);
/* Where a slot's timeline is. Any thread, without the lock. */
uint64_t acs_host_completed(const acs_host_slots *slots, uint32_t slot);
/* How many of these marks, oldest first, are complete at `completed`. */
uint32_t acs_host_marks_complete(const acs_mark *marks, uint32_t count, uint64_t completed);

#endif
