/*
 * Slots of the host backend as a state machine: each has a queue of ops and waits, and a timeline. It says
 * which slots can advance; the backend decides which does. No threads and no clock.
 *
 * A slot's queue holds entries in issue order. The head entry may run when its wait is satisfied. It stays at the head
 * while its op runs; then finishing it moves the timeline to its value.
 *
 * Marks have no entries. A mark stands behind all ops that were issued to its slot. So recording one raises the value
 * of the last entry, or the timeline if the queue is empty, to the mark's value. The mark is complete when the timeline
 * reaches that value. So recording cannot fail, and marks behind failed ops complete, too.
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
    acs_record *op;      /* NULL: the entry is only a wait */
    uint64_t value;      /* value of the slot's timeline once the entry is done; 0: unchanged */
    uint64_t wait_value; /* value that the timeline of wait_slot must have reached first; 0: no wait */
    uint32_t wait_slot;
} acs_host_entry;

typedef struct acs_host_slot {
    _Alignas(ACS_CACHE_LINE) _Atomic uint64_t completed; /* the timeline. A: see acs_host_completed */
    _Alignas(ACS_CACHE_LINE) acs_host_entry *ring;
    uint32_t capacity, head, tail;
} acs_host_slot;

typedef struct acs_host_slots {
    acs_host_slot *slot;
    uint32_t count;
    bool progress; /* a timeline moved since the owner last cleared this flag */
} acs_host_slots;

acs_status acs_host_slots_init(acs_host_slots *slots, uint32_t count);
void acs_host_slots_fini(acs_host_slots *slots);

/*
 * Issue one item of a batch: record its marks, queue its waits and its op. The op is left out if item->status says that
 * it was refused already, or if an upstream item was not issued. Waits and marks take effect in any case: later ops may
 * rely on them. An item without an op (slot -1) only records marks.
 *
 * False: the slot's queue is full and there is no memory for a larger one; nothing was done. A retry succeeds once
 * enough entries have left the queue: an empty queue has room for any item (EXEC-3).
 */
bool acs_host_issue(acs_host_slots *slots, const acs_batch *batch, acs_item *item);

/* The head entry of a slot; NULL if its queue is empty. Valid until the next issue. */
const acs_host_entry *acs_host_head(const acs_host_slots *slots, uint32_t slot);
/* Whether the entry's wait is satisfied. */
bool acs_host_satisfied(const acs_host_slots *slots, const acs_host_entry *entry);
/* The head entry is done: remove it and move the timeline to its value. */
void acs_host_finish(acs_host_slots *slots, uint32_t slot);
/* Value of a slot's timeline. Any thread, without the lock. */
uint64_t acs_host_completed(const acs_host_slots *slots, uint32_t slot);
/* Number of these marks, oldest first, that are complete when the timeline is at `completed`. */
uint32_t acs_host_marks_complete(const acs_mark *marks, uint32_t count, uint64_t completed);

#endif
