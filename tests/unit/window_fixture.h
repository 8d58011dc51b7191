/*
 * What the tests of window and slots share: a window fed with records made up by the test, and the part of the core
 * that hands ops to slots and learns that they ended, without any backend. Ops are named by their sequence number,
 * since an entry may be gone after the call that ended it.
 */
#ifndef WINDOW_FIXTURE_H
#define WINDOW_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "window/window.h"

#include <stdlib.h>
#include <string.h>

enum { SCENE_OPS = 1 << 15, SCENE_SLOTS = 8, SCENE_RUNNING = -1 };

typedef struct scene {
    acs_window w;
    acs_op last;
    uint64_t issued[SCENE_SLOTS];    /* newest value handed out per slot */
    uint64_t completed[SCENE_SLOTS]; /* newest value that ended */
    acs_record *records[SCENE_OPS];  /* by sequence number, as are: */
    int status[SCENE_OPS];           /* SCENE_RUNNING until the op was collected */
    acs_op cause[SCENE_OPS];
    uint32_t order_ended[SCENE_OPS]; /* how many were collected before it */
    uint32_t ended;
} scene;

static inline scene *scene_open(uint32_t limit, bool host_wait)
{
    acs_window_config config = {.limit = limit, .slots = SCENE_SLOTS, .host_wait = host_wait};
    scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(acs_window_init(&s->w, &config), ACS_OK);
    return s;
}

static inline void scene_close(scene *s)
{
    assert_true(acs_window_check(&s->w));
    acs_window_fini(&s->w);
    for (acs_op i = 1; i <= s->last; i++)
        free(s->records[i]);
    free(s);
}

/* A record with these segments and the next sequence number, not inserted. */
static inline acs_record *scene_record(scene *s, uint8_t kind, const acs_segment *segments, uint32_t count)
{
    static const acs_site site = {"op", "file.c", 1};
    size_t bytes = (sizeof(acs_record) + count * sizeof *segments + ACS_CACHE_LINE - 1) & ~(size_t)(ACS_CACHE_LINE - 1);
    acs_record *op = aligned_alloc(ACS_CACHE_LINE, bytes);

    assert_non_null(op);
    memset(op, 0, bytes);
    assert_true(s->last + 1 < SCENE_OPS);
    op->seq = ++s->last;
    op->site = &site;
    op->kind = kind;
    op->segment_count = count;
    op->segments = (acs_segment *)(op + 1);
    if (count)
        memcpy(op->segments, segments, count * sizeof *segments);
    s->records[op->seq] = op;
    s->status[op->seq] = SCENE_RUNNING;
    return op;
}

/* As the core does: a failed or skipped op ends when the needs that it has are complete. */
static inline bool scene_end_drained(scene *s)
{
    bool ended = false;
    for (uint32_t left = s->w.draining.count; left > 0; left--) {
        acs_entry *e = acs_window_pop_draining(&s->w);
        const acs_slot_wait *slot_waits = acs_entry_waits(&s->w, e);
        bool reached = true;
        for (uint32_t slot = 0; slot < SCENE_SLOTS; slot++)
            if (e->wait_mask >> slot & 1)
                reached = reached && slot_waits[slot].value <= s->completed[slot];
        if (reached)
            acs_window_end(&s->w, e, e->status, e->failed_by);
        else
            acs_window_drain(&s->w, e, e->status, e->failed_by);
        ended = ended || reached;
    }
    return ended;
}

static inline void scene_collect(scene *s)
{
    do {
        acs_entry *e;
        while ((e = acs_window_pop_ended(&s->w))) {
            s->status[e->seq] = (int)e->status;
            s->cause[e->seq] = e->failed_by;
            s->order_ended[e->seq] = s->ended++;
            acs_window_free(&s->w, e);
        }
    } while (scene_end_drained(s));
}

static inline acs_op scene_insert(scene *s, uint8_t kind, acs_entry_traits traits, const acs_segment *segments,
                                  uint32_t count)
{
    acs_record *op = scene_record(s, kind, segments, count);
    assert_true(acs_window_has_room(&s->w, op));
    (void)acs_window_insert(&s->w, op, &traits);
    scene_collect(s);
    return op->seq;
}

static inline acs_op scene_any(scene *s)
{
    acs_record *op = scene_record(s, ACS_KIND_KERNEL, NULL, 0);
    acs_entry_traits traits = {0};
    op->any = 1;
    (void)acs_window_insert(&s->w, op, &traits);
    return op->seq;
}

#define SEGMENTS(...) (acs_segment[]){__VA_ARGS__}, sizeof((acs_segment[]){__VA_ARGS__}) / sizeof(acs_segment)
/* A kernel, a host function and an observer with these segments; KERNEL0 touches nothing. */
#define KERNEL(s, ...) scene_insert((s), ACS_KIND_KERNEL, (acs_entry_traits){0}, SEGMENTS(__VA_ARGS__))
#define CALL(s, ...) scene_insert((s), ACS_KIND_CALL, (acs_entry_traits){0}, SEGMENTS(__VA_ARGS__))
#define KERNEL0(s) scene_insert((s), ACS_KIND_KERNEL, (acs_entry_traits){0}, NULL, 0)
#define HOST(s, ...) scene_insert((s), ACS_KIND_HOST, (acs_entry_traits){.on_host = true}, SEGMENTS(__VA_ARGS__))
#define OBSERVE(s, ...)                                                                                                \
    scene_insert((s), ACS_KIND_OBSERVE, (acs_entry_traits){.on_host = true, .observer = true}, SEGMENTS(__VA_ARGS__))

static inline acs_entry *scene_entry(scene *s, acs_op op)
{
    acs_entry *e = acs_window_find(&s->w, op);
    assert_non_null(e);
    return e;
}

/* FREE once it was collected. */
static inline acs_entry_state scene_state(scene *s, acs_op op)
{
    const acs_entry *e = acs_window_find(&s->w, op);
    return e ? (acs_entry_state)e->state : ACS_ENTRY_FREE;
}

static inline acs_entry *scene_take(scene *s, acs_op op)
{
    acs_entry *e = scene_entry(s, op);
    assert_int_equal(e->state, ACS_ENTRY_READY);
    acs_window_remove_ready(&s->w, e);
    e->state = ACS_ENTRY_ISSUING;
    return e;
}

static inline void scene_issue(scene *s, acs_op op, int slot)
{
    acs_entry *e = scene_take(s, op);
    e->slot = (int16_t)slot;
    e->value = ++s->issued[slot];
    acs_window_issued(&s->w, e);
    scene_collect(s);
}

/* An issued op, or a ready one that runs on the host, ends well. */
static inline void scene_end(scene *s, acs_op op)
{
    acs_entry *e = scene_entry(s, op);
    if (e->state == ACS_ENTRY_READY)
        e = scene_take(s, op);
    if (e->slot >= 0)
        s->completed[e->slot] = e->value;
    acs_window_end(&s->w, e, ACS_OK, 0);
    scene_collect(s);
}

static inline void scene_run(scene *s, acs_op op)
{
    scene_issue(s, op, 0);
    scene_end(s, op);
}

static inline void scene_fail(scene *s, acs_op op)
{
    acs_window_drain(&s->w, scene_take(s, op), ACS_ERR_LAUNCH, op);
    scene_collect(s);
}

#endif
