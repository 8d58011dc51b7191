/*
 * What the tests of the backends share: an open backend, records with one closure pointer as argument, a batch being
 * built, and the bookkeeping of values and marks that the core would do.
 */
#ifndef BACKEND_FIXTURE_H
#define BACKEND_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library/select.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FIXTURE_SLOTS = 8, FIXTURE_MARKS = 2048, FIXTURE_RECORDS = 4096 };

typedef struct fixture_slot {
    uint64_t value;               /* of the newest item */
    uint32_t first, used;         /* marks[first..used) are not yet seen complete */
    acs_mark marks[FIXTURE_MARKS];
} fixture_slot;

typedef struct fixture {
    acs_options options;
    acs_backend_config config;
    acs_backend *backend;
    acs_batch batch;
    sem_t told; /* posted by notify */
    int cpu;    /* what cpu_next answers */
    _Atomic uint32_t cpus_asked;
    uint32_t records_used;
    acs_record records[FIXTURE_RECORDS];
    fixture_slot slots[FIXTURE_SLOTS];
} fixture;

static inline void fixture_notify(void *user)
{
    sem_post(&((fixture *)user)->told);
}

static inline int fixture_cpu_next(void *user)
{
    fixture *f = user;
    atomic_fetch_add_explicit(&f->cpus_asked, 1, memory_order_relaxed); /* read after the threads were made */
    return f->cpu;
}

/* Set up but not open, so that a test can choose options. */
static inline fixture *fixture_make(int backend, uint32_t slots)
{
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->options.size = sizeof f->options;
    f->options.backend = backend;
    f->cpu = -1;
    sem_init(&f->told, 0, 0);
    f->config = (acs_backend_config){.options = &f->options,
                                     .slots = slots,
                                     .mark_capacity = FIXTURE_MARKS,
                                     .notify = fixture_notify,
                                     .user = f,
                                     .cpu_next = fixture_cpu_next};
    return f;
}

static inline void fixture_open(fixture *f)
{
    assert_int_equal(acs_backend_open(&f->config, &f->backend), ACS_OK);
}

static inline void fixture_close(fixture *f)
{
    if (f->backend)
        f->backend->ops->close(f->backend);
    sem_destroy(&f->told);
    free(f);
}

static inline acs_record *fixture_record(fixture *f, acs_op_kind kind)
{
    acs_record *op = &f->records[f->records_used];

    assert_true(f->records_used < FIXTURE_RECORDS);
    memset(op, 0, sizeof *op);
    op->seq = ++f->records_used;
    op->kind = (uint8_t)kind;
    op->segments = op->inline_segments;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    return op;
}

/* A kernel whose arguments are a pointer and a number. */
static inline acs_record *fixture_kernel(fixture *f, acs_host_body body, void *pointer, int number)
{
    acs_record *op = fixture_record(f, ACS_KIND_KERNEL);

    op->u.launch.kernel = (acs_kernel)ACS_KERNEL_HOST_INIT("test kernel", body);
    op->grid = op->u.launch.block = (acs_dim3){1, 1, 1};
    memcpy(op->arg_bytes, &pointer, sizeof pointer);
    memcpy(op->arg_bytes + 8, &number, sizeof number);
    op->args[0] = (acs_arg_slot){0, sizeof pointer, ACS_ARG_POINTER, 0};
    op->args[1] = (acs_arg_slot){8, sizeof number, ACS_ARG_VALUE, 0};
    op->arg_count = 2;
    return op;
}

/* Put an op into the batch, with a mark behind it. */
static inline acs_item *fixture_add(fixture *f, int slot, acs_record *op)
{
    fixture_slot *s = &f->slots[slot];
    acs_item *item = &f->batch.items[f->batch.items_used++];

    assert_true(f->batch.items_used <= ACS_BATCH_ITEMS && s->used < FIXTURE_MARKS);
    memset(item, 0, sizeof *item);
    item->op = op;
    item->slot = (int16_t)slot;
    item->value = ++s->value;
    item->first_wait = (uint16_t)f->batch.waits_used;
    item->first_edge = (uint16_t)f->batch.edges_used;
    item->first_mark = (uint16_t)f->batch.marks_used;
    item->mark_after = true;
    item->after = (acs_mark){(uint16_t)slot, (uint16_t)s->used, 0, item->value};
    s->marks[s->used++] = item->after;
    return item;
}

/* Put an item without an op into the batch that records a mark behind all that was added to `slot`. */
static inline acs_item *fixture_add_mark(fixture *f, int slot)
{
    fixture_slot *s = &f->slots[slot];
    acs_item *item = &f->batch.items[f->batch.items_used++];

    memset(item, 0, sizeof *item);
    item->slot = -1;
    item->first_mark = (uint16_t)f->batch.marks_used;
    item->mark_count = 1;
    s->marks[s->used] = (acs_mark){(uint16_t)slot, (uint16_t)s->used, 0, s->value};
    f->batch.marks[f->batch.marks_used++] = s->marks[s->used++];
    return item;
}

/* Add an op without a mark behind it. */
static inline acs_item *fixture_add_unmarked(fixture *f, int slot, acs_record *op)
{
    acs_item *item = fixture_add(f, slot, op);

    item->mark_after = false;
    f->slots[slot].used--;
    return item;
}

/* The item added last waits for this mark. */
static inline void fixture_wait(fixture *f, acs_mark mark)
{
    f->batch.waits[f->batch.waits_used++] = mark;
    f->batch.items[f->batch.items_used - 1].wait_count++;
}

/* The item added last needs an earlier item of the batch to be issued. */
static inline void fixture_edge(fixture *f, const acs_item *upstream)
{
    f->batch.edges[f->batch.edges_used++] = (uint16_t)(upstream - f->batch.items);
    f->batch.items[f->batch.items_used - 1].edge_count++;
}

/* Issue the batch. The items stay readable until the next is added. */
static inline void fixture_submit(fixture *f)
{
    f->backend->ops->submit(f->backend, &f->batch);
    f->batch.items_used = f->batch.waits_used = f->batch.marks_used = f->batch.edges_used = 0;
}

/* One poll; true when every mark of the slot was seen complete. */
static inline bool fixture_poll(fixture *f, int slot)
{
    fixture_slot *s = &f->slots[slot];
    uint64_t completed = 0;

    if (s->first == s->used)
        return true;
    assert_int_equal(
        f->backend->ops->poll(f->backend, slot, &s->marks[s->first], s->used - s->first, &completed), ACS_OK);
    while (s->first < s->used && s->marks[s->first].value <= completed)
        s->first++;
    return s->first == s->used;
}

/* Until every mark of every slot is complete; sleeps where the backend tells of completions. */
static inline void fixture_drain(fixture *f)
{
    for (uint32_t slot = 0; slot < f->config.slots; slot++) {
        while (!fixture_poll(f, (int)slot)) {
            if (f->backend->ops->notifies)
                sem_wait(&f->told);
        }
    }
}

/* What ran, in the order in which it ran. Read once all has completed. */
typedef struct trace {
    _Atomic uint32_t used;
    int number[FIXTURE_RECORDS];
} trace;

static inline void *pointer_of(void *const *args)
{
    void *pointer;

    memcpy(&pointer, args[0], sizeof pointer);
    return pointer;
}

static inline int number_of(void *const *args)
{
    int number;

    memcpy(&number, args[1], sizeof number);
    return number;
}

static inline void append(const acs_grid *grid, void *const *args)
{
    trace *t = pointer_of(args);

    (void)grid;
    /* Relaxed: the order that counts is the backend's, which this must not help. */
    t->number[atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed)] = number_of(args);
}

#endif
