/*
 * What the tests of scheduler/slots share: a window, slots and a batch that no backend sees. What a backend would have
 * done is told by the test.
 */
#ifndef SLOTS_FIXTURE_H
#define SLOTS_FIXTURE_H

#include "window_fixture.h"

#include "scheduler/slots.h"

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

typedef struct yard {
    scene *s;
    acs_slots slots;
    acs_batch *batch;
    uint64_t id;      /* of the batch being formed */
} yard;

static inline yard *yard_open(uint32_t window, uint32_t count)
{
    yard *y = calloc(1, sizeof *y);
    assert_non_null(y);
    y->s = scene_open(window, false);
    y->batch = calloc(1, sizeof *y->batch);
    assert_non_null(y->batch);
    assert_int_equal(acs_slots_init(&y->slots, count, 1, &y->s->w), ACS_OK);
    acs_slots_shape(&y->slots, 4, TUNE_SLOT_DEEP, false);
    y->slots.mark_interval = 1000; /* no marks but those that are asked for */
    y->id = 1;
    return y;
}

static inline void yard_close(yard *y)
{
    acs_slots_fini(&y->slots);
    scene_close(y->s);
    free(y->batch);
    free(y);
}

/* Place a ready op in the batch; its item, or NULL with everything as before. */
static inline const acs_item *place(yard *y, acs_op op)
{
    acs_entry *e = scene_entry(y->s, op);
    uint32_t used = y->batch->items_used;
    assert_int_equal(e->state, ACS_ENTRY_READY);
    acs_window_remove_ready(&y->s->w, e);
    if (!acs_slots_place(&y->slots, y->batch, y->id, e)) {
        assert_int_equal(y->batch->items_used, used);
        acs_window_push_ready(&y->s->w, e, true);
        return NULL;
    }
    e->state = ACS_ENTRY_ISSUING;
    return &y->batch->items[used];
}

/* The batch was submitted and everything in it issued; the next one begins. */
static inline void submitted(yard *y)
{
    acs_slots_batch_done(&y->slots, y->id++);
    for (acs_op op = 1; op <= y->s->last; op++) {
        acs_entry *e = acs_window_find(&y->s->w, op);
        if (!e || e->state != ACS_ENTRY_ISSUING)
            continue;
        acs_slots_append(&y->slots, e);
        acs_window_issued(&y->s->w, e);
    }
    memset(y->batch, 0, sizeof *y->batch);
}

/* Place one op in a batch of its own; the slot that it went to. */
static inline int issue(yard *y, acs_op op)
{
    const acs_item *item = place(y, op);
    assert_non_null(item);
    int slot = item->slot;
    submitted(y);
    return slot;
}

static inline void complete(yard *y, uint32_t slot, uint64_t value)
{
    acs_entry *e;
    acs_slots_completed(&y->slots, slot, value);
    while ((e = acs_slots_pop_complete(&y->slots, slot)))
        acs_window_end(&y->s->w, e, ACS_OK, 0);
    scene_collect(y->s);
}

static inline const acs_mark *wait_of(const yard *y, const acs_item *item, uint32_t i)
{
    assert_true(i < item->wait_count);
    return &y->batch->waits[item->first_wait + i];
}

#endif
