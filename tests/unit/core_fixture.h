/*
 * What test_core.c needs around a core: a backend that notes what it is given, answers what the test decides and
 * completes what the test says, and a rig that feeds ops, steps, and at its end looks for anything left behind.
 */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bundles/bundler.h"

#include <stdlib.h>
#include <string.h>

#define AT(offset) ((uintptr_t)0x10000 + (uintptr_t)(offset))

enum { OPS = 4096, RECORDS = 512, SLOTS = 4, SLOTS_MOST = 8 /* that a test may ask for */, MARKS = 256, NO_END = -1 };

/* ---------------------------------------------------------------------------------------------------------- backend */

typedef struct fake {
    acs_backend base;
    acs_status result[OPS];      /* what submit answers for an op, that many times */
    int times[OPS];
    acs_op submitted[4 * OPS];   /* in order, refused ones too */
    uint32_t submitted_count;
    uint32_t issued[OPS];        /* how often an op was issued well */
    uint64_t newest[SLOTS_MOST];      /* value issued to a slot last */
    uint64_t complete[SLOTS_MOST];    /* what polls tell */
    bool beyond;                      /* polls also tell of ops without a mark, as a graph does that publishes */
    uint64_t mark[SLOTS_MOST][MARKS]; /* values of recorded marks */
    uint32_t submits, polls, events_released, freed;
    void (*on_poll)(void *user); /* while a slot is polled */
    void *user;
    int breaches;                /* of the rules in backend.h */
    bool poll_fails;
    uint32_t bundles, refused;   /* bundles issued, and refused */
    uint32_t refusals;           /* so many of the next bundles are to be refused */
} fake;

static inline void fake_record(fake *f, const acs_mark *mark)
{
    f->breaches += mark->slot >= SLOTS_MOST || mark->index >= MARKS || mark->value > f->newest[mark->slot];
    f->mark[mark->slot][mark->index] = mark->value;
}

static inline void fake_issue(fake *f, acs_batch *batch, acs_item *item)
{
    acs_op seq = item->op->seq;
    f->submitted[f->submitted_count++] = seq;
    item->status = ACS_OK;
    item->text = NULL;
    item->native = 0;
    for (uint32_t i = 0; i < item->edge_count; i++) {
        uint32_t before = batch->edges[item->first_edge + i];
        f->breaches += before >= (uint32_t)(item - batch->items);
        if (batch->items[before].status != ACS_OK)
            item->status = ACS_ERR_SKIPPED;
    }
    if (item->status == ACS_OK && f->times[seq] > 0) {
        f->times[seq]--;
        item->status = f->result[seq];
        item->native = 77;
        item->text = "as told";
    }
    f->issued[seq] += item->status == ACS_OK;
}

/* One slot, values one after the other, waits in front, a mark at the end, joins without a place. */
static inline void fake_bundle(fake *f, acs_batch *batch)
{
    uint64_t value = batch->items[0].value;
    const acs_item *last = &batch->items[0];
    f->breaches += !batch->items[0].op || batch->items_used == 0;
    for (uint32_t i = 1; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        f->breaches += item->mark_count + item->wait_count > 0;
        f->breaches += item->op ? item->slot != batch->items[0].slot || item->value != ++value : item->slot != -1;
        f->breaches += !item->op && !item->edge_count;
        f->breaches += item->op && (item->op->kind != ACS_KIND_KERNEL || !item->op->type);
        f->breaches += last->mark_after && item->op;
        last = item->op ? item : last;
    }
    f->breaches += !last->mark_after || batch->items[batch->items_used - 1].op == NULL;
}

static inline void fake_submit(acs_backend *backend, acs_batch *batch)
{
    fake *f = (fake *)backend;
    f->submits++;
    if (batch->bundle) {
        fake_bundle(f, batch);
        f->refused += f->refusals > 0;
        f->bundles += f->refusals == 0;
    }
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        for (uint32_t m = 0; m < item->mark_count; m++)
            fake_record(f, &batch->marks[item->first_mark + m]);
        for (uint32_t k = 0; k < item->wait_count; k++) {
            const acs_mark *wait = &batch->waits[item->first_wait + k];
            f->breaches += f->mark[wait->slot][wait->index] < wait->value;
        }
        if (!item->op)
            continue;
        if (item->slot >= 0) {
            f->breaches += item->value <= f->newest[item->slot];
            f->newest[item->slot] = item->value;
        }
        fake_issue(f, batch, item);
        if (item->mark_after)
            fake_record(f, &item->after);
    }
    if (batch->bundle && f->refusals) {
        for (uint32_t i = 0; i < batch->items_used; i++)
            if (batch->items[i].op)
                f->issued[batch->items[i].op->seq]--;
        f->refusals--;
        acs_bundle_refuse(batch);
    }
}

static inline acs_status fake_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count,
                                   uint64_t *completed)
{
    fake *f = (fake *)backend;
    f->polls++;
    if (f->on_poll)
        f->on_poll(f->user);
    if (f->poll_fails)
        return ACS_FAIL(ACS_ERR_DEVICE, 719, "the device faulted");
    for (uint32_t i = 0; i < count; i++)
        if (marks[i].value <= f->complete[slot])
            *completed = marks[i].value;
    if (f->beyond)
        *completed = f->complete[slot];
    return ACS_OK;
}

static inline void fake_event_release(acs_backend *backend, void *event)
{
    (void)event;
    ((fake *)backend)->events_released++;
}

static const acs_backend_ops g_fake_ops = {.submit = fake_submit,
                                           .poll = fake_poll,
                                           .event_release = fake_event_release};

/* -------------------------------------------------------------------------------------------------------------- rig */

typedef struct rig {
    acs_core core;
    fake backend;
    acs_options options;
    acs_record_pool *pool;
    acs_action action[3];
    acs_op last;
    int status[OPS];  /* NO_END until reported */
    acs_op cause[OPS];
    int native[OPS];
    acs_op ended[OPS]; /* in order */
    uint32_t ended_count;
    int faults, checks, frees;
    acs_error fault;
    uint64_t now_ns;   /* as the test says */
} rig;

static inline void on_end(void *user, const acs_end *end)
{
    rig *r = user;
    acs_op seq = end->op->seq;
    r->backend.breaches += r->status[seq] != NO_END; /* reported twice */
    r->status[seq] = (int)end->status;
    r->cause[seq] = end->failed_by;
    r->native[seq] = end->native;
    r->ended[r->ended_count++] = seq;
}

static inline void on_fault(void *user, const acs_error *error)
{
    rig *r = user;
    r->faults++;
    r->fault = *error;
}

static inline void on_check(void *user, const acs_record *op, const acs_record *other)
{
    (void)op;
    (void)other;
    ((rig *)user)->checks++;
}

static inline void on_free(void *user, const acs_record *op)
{
    (void)op;
    ((rig *)user)->frees++;
}

static inline acs_status give_back(void *user, const acs_record *op)
{
    (void)op;
    ((rig *)user)->backend.freed++;
    return ACS_OK;
}

static inline acs_status status_of(void *user, acs_op op)
{
    return (acs_status)((rig *)user)->status[op];
}

static inline uint64_t rig_now_ns(void *user)
{
    return ((rig *)user)->now_ns;
}

static inline rig *rig_make(void)
{
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->backend.base.ops = &g_fake_ops;
    r->backend.base.devices = 1;
    r->options.window = 64;
    r->options.fifo = 256;
    r->options.streams = SLOTS;
    r->options.batch = 16;
    r->options.check = ACS_CHECK_OVERLAP; /* an independent look at every op that is issued */
    for (int i = 0; i < OPS; i++)
        r->status[i] = NO_END;
    assert_int_equal(acs_record_pool_create(RECORDS, &r->pool), ACS_OK);
    return r;
}

static inline rig *rig_start(rig *r)
{
    acs_core_config config = {.batcher = &acs_bundle_batcher,
                              .options = &r->options,
                              .backend = &r->backend.base,
                              .records = r->pool,
                              .user = r,
                              .on_end = on_end,
                              .on_fault = on_fault,
                              .on_check = on_check,
                              .on_free = on_free,
                              .give_back = give_back,
                              .status_of = status_of,
                              .now_ns = rig_now_ns};
    assert_int_equal(acs_core_init(&r->core, &config), ACS_OK);
    return r;
}

static inline rig *rig_open(void)
{
    return rig_start(rig_make());
}

static inline acs_record *record(rig *r, acs_op_kind kind, const acs_segment *segments, uint32_t count)
{
    static const acs_site site = {"kernel", "file.c", 12};
    acs_record *op = acs_record_acquire(r->pool);
    assert_non_null(op);
    assert_int_equal(acs_record_reserve(r->pool, op, 0, 0, count), ACS_OK);
    op->kind = (uint8_t)kind;
    op->site = &site;
    op->segment_count = count;
    if (kind == ACS_KIND_KERNEL)
        memset(&op->u.launch, 0, sizeof op->u.launch);
    if (count)
        memcpy(op->segments, segments, count * sizeof *segments);
    return op;
}

static inline acs_op push(rig *r, acs_record *op)
{
    r->last = acs_fifo_push(r->core.fifo, op);
    assert_true(r->last > 0 && r->last < OPS);
    return r->last;
}

#define SEGMENTS(...) (acs_segment[]){__VA_ARGS__}, sizeof((acs_segment[]){__VA_ARGS__}) / sizeof(acs_segment)
#define RECORD(r, kind, ...) record((r), (kind), SEGMENTS(__VA_ARGS__))
#define KERNEL(r, ...) push((r), RECORD((r), ACS_KIND_KERNEL, __VA_ARGS__))

typedef struct body {
    int calls, result;
} body;

static inline int run_body(void *closure)
{
    body *b = closure;
    b->calls++;
    return b->result;
}

static inline acs_op push_host(rig *r, acs_segment segment, body *b)
{
    acs_record *op = RECORD(r, ACS_KIND_HOST, segment);
    op->u.host.function = run_body;
    op->u.host.closure = b;
    return push(r, op);
}

static inline acs_op push_free(rig *r, uintptr_t base, uint64_t bytes)
{
    return push(r, RECORD(r, ACS_KIND_FREE, ACS_OUT(base, bytes)));
}

/* A block that was freed is handed out again, before an op that does nothing. */
static inline acs_op push_reuse(rig *r, uintptr_t base, uint64_t bytes)
{
    acs_record *op = record(r, ACS_KIND_OBSERVE, NULL, 0);
    op->flags |= ACS_RECORD_REUSES;
    op->reuses = malloc(sizeof *op->reuses);
    assert_non_null(op->reuses);
    *op->reuses = (acs_reuse){.base = base, .bytes = bytes};
    return push(r, op);
}

typedef struct told {
    acs_op op;
    int status, calls;
} told;

static inline void tell(void *user, acs_op op, acs_status status)
{
    told *t = user;
    t->op = op;
    t->status = (int)status;
    t->calls++;
}

static inline acs_op push_callback(rig *r, acs_op target, told *t)
{
    acs_record *op = record(r, ACS_KIND_CALLBACK, NULL, 0);
    op->u.callback.function = tell;
    op->u.callback.user = t;
    op->u.callback.target = target;
    return push(r, op);
}

static inline void answer(rig *r, acs_op op, acs_status status, int times)
{
    r->backend.result[op] = status;
    r->backend.times[op] = times;
}

static inline bool next(rig *r, int i)
{
    return acs_core_next(&r->core, ACS_MAY_ALL, &r->action[i]);
}

static inline void finish(rig *r, int i)
{
    if (r->action[i].type == ACS_ACTION_NONE)
        return; /* ops were inserted, and that is all */
    acs_core_perform(&r->core, &r->action[i]);
    acs_core_done(&r->core, &r->action[i]);
}

static inline bool step(rig *r)
{
    if (!next(r, 0))
        return false;
    finish(r, 0);
    return true;
}

static inline void complete_all(rig *r)
{
    memset(r->backend.complete, 0xff, sizeof r->backend.complete);
}

/* Step, with everything completing at once, until all has ended. */
static inline void run_to_end(rig *r)
{
    complete_all(r);
    for (int i = 0; r->ended_count < r->last; i++) {
        assert_true(i < 4 * OPS);
        step(r);
    }
}

static inline void rig_close(rig *r)
{
    acs_window *w = &r->core.window;
    acs_record *records[RECORDS];
    run_to_end(r);
    assert_int_equal(r->backend.breaches, 0);
    assert_int_equal(r->checks, 0);
    assert_true(acs_window_check(w));
    assert_int_equal(w->live + w->live_joins + w->edges_used, 0);
    assert_int_equal(acs_window_oldest(w), 0);
    assert_int_equal(r->core.running, 0);
    for (uint32_t s = 0; s < r->core.slots.count; s++)
        assert_int_equal(r->core.slots.slot[s].outstanding, 0);
    uint32_t entries = 0;
    for (uint32_t i = w->free_entries; i <= w->entry_count && entries <= w->entry_count; entries++)
        i = w->entries[i].queue_next ? w->entries[i].queue_next : i + 1;
    assert_int_equal(entries, w->entry_count);
    for (int i = 0; i < RECORDS; i++)
        assert_non_null(records[i] = acs_record_acquire(r->pool));
    for (int i = 0; i < RECORDS; i++)
        acs_record_release(r->pool, records[i]);
    acs_core_fini(&r->core);
    acs_record_pool_destroy(r->pool);
    free(r);
}

static inline uint32_t slot_of(rig *r, acs_op op)
{
    const acs_entry *entry = acs_window_find(&r->core.window, op);
    assert_non_null(entry);
    return (uint32_t)entry->slot;
}

static inline acs_op op_of(const rig *r, uint32_t item)
{
    const acs_batch *batch = &r->action[0].batch;
    assert_true(item < batch->items_used);
    return batch->items[item].op ? batch->items[item].op->seq : 0;
}

#endif
