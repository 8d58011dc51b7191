/*
 * Group "life": what an op costs the host from its record to its end, by part, on a core whose backend takes everything and
 * does nothing. Ops complete once many others were issued after them, so that the window is as full as behind a busy GPU.
 * One thread does all, with a launch for each op, then with bundles, then so that each submission empties the nearer caches;
 * then a worker steps while another thread queues. Called by main; looks inside the core.
 */
#include "micro.h"
#include "bundles/bundler.h"
#include "scheduler/core_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 256, SLOTS = 64, MARKS = 256, BYTES = 4096, RECORDS_SPARE = 64, COLD_BYTES = 768 << 10 };

static volatile unsigned char g_cold[COLD_BYTES];

/* ---------------------------------------------------------------------------------------------------------- backend */

typedef struct null_backend {
    acs_backend base;
    uint64_t issued, lag, usual_lag;   /* ops issued; how many more make an op complete */
    uint64_t read;                     /* of arguments, so that it is not left out */
    bool cold;                         /* a submission reads more than the nearer caches hold */
    uint64_t recorded[SLOTS][MARKS];   /* `issued` when the mark was recorded */
} null_backend;

/* What a backend must read of an op at least. */
static uint64_t arguments_of(const acs_record *op)
{
    uint64_t sum = op->grid.x;
    for (uint32_t i = 0; i < op->arg_count; i++)
        sum += op->arg_bytes[op->args[i].offset];
    return sum;
}

static void null_mark(null_backend *n, const acs_mark *mark)
{
    n->recorded[mark->slot][mark->index] = n->issued;
}

static void null_submit(acs_backend *backend, acs_batch *batch)
{
    null_backend *n = (null_backend *)backend;
    for (uint32_t i = 0; n->cold && i < COLD_BYTES; i += ACS_CACHE_LINE)
        (void)g_cold[i];
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        for (uint32_t m = 0; m < item->mark_count; m++)
            null_mark(n, &batch->marks[item->first_mark + m]);
        item->status = ACS_OK;
        n->issued += item->op != NULL;
        n->read += item->op ? arguments_of(item->op) : 0;
        if (item->mark_after)
            null_mark(n, &item->after);
    }
}

static acs_status null_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    const null_backend *n = (null_backend *)backend;
    for (uint32_t i = 0; i < count; i++)
        if (n->recorded[slot][marks[i].index] + n->lag <= n->issued)
            *completed = marks[i].value;
    return ACS_OK;
}

static const acs_backend_ops g_null_ops = {.submit = null_submit, .poll = null_poll};

/* --------------------------------------------------------------------------------------------------------- programs */

enum { SEGMENTS_MOST = 33 };

static acs_segment blocks(acs_access access, uint64_t number, uint64_t count)
{
    return acs_make_segment(ACS_EXTENT_BYTES, access, UINT64_C(0x100000000) + number * BYTES, count * BYTES, 1, 0);
}

static acs_segment block(acs_access access, uint64_t number)
{
    return blocks(access, number, 1);
}

static uint32_t chains(uint64_t op, acs_segment *s)
{
    s[0] = block(ACS_UPDATE, op % 16);
    return 1;
}

/* 32 wide, two rows of blocks in turn. */
static uint32_t stencil(uint64_t op, acs_segment *s)
{
    uint64_t column = op % 32, row = op / 32 % 2;
    for (uint64_t i = 0; i < 3; i++)
        s[i] = block(ACS_READ, (1 - row) * 32 + (column + 31 + i) % 32);
    s[3] = block(ACS_WRITE, row * 32 + column);
    return 4;
}

/* Two of the last 64 are upstream. */
static uint32_t random_pairs(uint64_t op, acs_segment *s)
{
    uint64_t hash = acs_hash64(op + 1);
    s[0] = block(ACS_READ, (op - 1 - hash % 64) % 128);
    s[1] = block(ACS_READ, (op - 1 - (hash >> 32) % 64) % 128);
    s[2] = block(ACS_WRITE, op % 128);
    return 3;
}

/* Every block of the row before. */
static uint32_t all_to_all(uint64_t op, acs_segment *s)
{
    uint64_t row = op / 32 % 2;
    for (uint64_t i = 0; i < 32; i++)
        s[i] = block(ACS_READ, (1 - row) * 32 + i);
    s[32] = block(ACS_WRITE, row * 32 + op % 32);
    return 33;
}

static uint32_t independent(uint64_t op, acs_segment *s)
{
    s[0] = block(ACS_WRITE, op % 1024);
    return 1;
}

/*
 * As a simulator of 20 scenes: constants that all of a scene's ops read, and a state of four parts that are updated one by
 * one, read as a whole with a result, and written as a whole.
 */
static uint32_t scenes(uint64_t op, acs_segment *s)
{
    uint64_t base = op % 20 * 32, turn = op / 20 % 10;
    s[0] = block(ACS_READ, base);
    s[1] = block(ACS_READ, base + 1 + turn % 2);
    s[2] = block(ACS_READ, base + 16 + turn % 4);
    if (turn < 8)
        s[3] = block(ACS_UPDATE, base + 8 + turn % 4);
    else
        s[3] = blocks(turn == 8 ? ACS_READ : ACS_WRITE, base + 8, 4);
    s[4] = block(ACS_WRITE, base + 16 + (turn + 1) % 4);
    return 5;
}

static const struct program {
    const char *name;
    uint32_t (*make)(uint64_t op, acs_segment *segments);
} g_programs[] = {{"16 chains", chains}, {"stencil 32 wide", stencil}, {"random of 64", random_pairs},
                  {"all to all, 32 wide", all_to_all}, {"20 scenes, parts and wholes", scenes},
                  {"independent", independent}};

/* ------------------------------------------------------------------------------------------------------------- life */

enum { QUEUE, INSERT, PLACE, PERFORM, BOOK, PARTS };
static const char *const g_parts[PARTS] = {"queue", "insert", "place", "read and poll", "book and retire"};

typedef struct life {
    null_backend backend;
    acs_options options;
    acs_record_pool *records;
    acs_core core;
    acs_action action;
    uint64_t op;
    uint64_t ns[PARTS];
    uint32_t (*make)(uint64_t op, acs_segment *segments);
    _Atomic(uint32_t) stop;
} life;

static void on_end(void *user, const acs_end *end)
{
    fprintf(stderr, "acs-micro: op %llu of %p ended with %d\n", (unsigned long long)end->op->seq, user, (int)end->status);
}

static uint64_t ended(const life *l)
{
    return l->core.counters.retired;
}

enum { LAUNCHES, BUNDLES, COLD, BESIDE, WAYS };
static const struct way {
    const char *name;
    uint32_t lag, bundle_most;
} g_ways[WAYS] = {{"", 192, 0}, {", bundles", 96, 128}, {", bundles, cold", 96, 128}, {", bundles, beside", 96, 128}};

static bool life_open(life *l, const struct program *program, int way)
{
    memset(l, 0, sizeof *l);
    l->make = program->make;
    l->backend.base.ops = &g_null_ops;
    l->backend.base.devices = 1;
    l->backend.base.bundle_most = g_ways[way].bundle_most;
    l->backend.cold = way == COLD;
    l->backend.lag = l->backend.usual_lag = g_ways[way].lag;
    if (acs_options_init(&l->options, sizeof l->options) != ACS_OK)
        return false;
    uint32_t records = (uint32_t)(l->options.fifo + l->options.window) + RECORDS_SPARE;
    acs_core_config config = {.batcher = &acs_bundle_batcher, .options = &l->options, .backend = &l->backend.base, .user = l,
                              .failures_only = true, .on_end = on_end};
    if (acs_record_pool_create(records, &l->records) != ACS_OK)
        return false;
    config.records = l->records;
    return acs_core_init(&l->core, &config) == ACS_OK;
}

/* As acs_launch does, without what it checks. False: no record is free. */
static bool queue_op(life *l)
{
    static const acs_site site = {"nothing", __FILE__, __LINE__};
    acs_segment segments[SEGMENTS_MOST];
    acs_record *record = acs_record_acquire(l->records);
    if (!record)
        return false;
    record->site = &site;
    record->segment_count = l->make(l->op, segments);
    (void)acs_record_reserve(l->records, record, 4, 32, record->segment_count);
    memcpy(record->segments, segments, record->segment_count * sizeof *segments);
    for (uint32_t i = 0; i < 4; i++) {
        record->args[i] = (acs_arg_slot){.offset = 8 * i, .size = 8};
        memcpy(record->arg_bytes + record->args[i].offset, &l->op, sizeof l->op);
    }
    record->arg_count = 4;
    record->arg_bytes_used = 32;
    memset(&record->u.launch, 0, sizeof record->u.launch);
    record->type = 1;
    if (!acs_fifo_push(l->core.fifo, record)) {
        acs_record_release(l->records, record);
        return false;
    }
    l->op++;
    return true;
}

/* As acs_core_next would do it where ops are launched one by one, to be timed apart. */
static void insert(acs_core *core)
{
    acs_lock_acquire(&core->lock);
    if (core->window.ready.count < core->batch_limit)
        acs_core_insert_locked(core, 64);
    acs_lock_release(&core->lock);
}

/* One step, by part. Bundles are gathered by what was inserted, so there the two are one part. False: nothing to do. */
static bool step(life *l)
{
    acs_core *core = &l->core;
    uint64_t at[PARTS];
    acs_op taken = core->taken;
    bool apart = core->batcher == NULL;
    at[INSERT] = acs_clock_ns();
    if (apart)
        insert(core);
    at[PLACE] = apart ? acs_clock_ns() : at[INSERT];
    uint32_t may = apart ? ACS_MAY_ISSUE : ACS_MAY_ISSUE | ACS_MAY_INSERT;
    bool found = acs_core_next(core, may, &l->action) && l->action.type != ACS_ACTION_NONE;
    at[PERFORM] = acs_clock_ns();
    if (found)
        acs_core_perform(core, &l->action);
    at[BOOK] = acs_clock_ns();
    if (found)
        acs_core_done(core, &l->action);
    uint64_t end = acs_clock_ns();
    bool progress = core->taken != taken || (found && l->action.progress);
    if (!progress)
        return false;
    for (int i = INSERT; i < BOOK; i++)
        l->ns[i] += at[i + 1] - at[i];
    l->ns[BOOK] += end - at[BOOK];
    return true;
}

static void drain(life *l)
{
    l->backend.lag = 0;
    while (ended(l) < acs_fifo_last(l->core.fifo))
        (void)step(l);
}

static void life_close(life *l)
{
    if (l->core.backend)
        acs_core_fini(&l->core);
    acs_record_pool_destroy(l->records);
}

/* A burst is queued, then stepped until all of it is in the window. */
static void burst(life *l)
{
    uint64_t start = acs_clock_ns();
    for (int i = 0; i < BURST; i++)
        (void)queue_op(l);
    l->ns[QUEUE] += acs_clock_ns() - start;
    while (l->core.taken < l->op || l->core.stalled)
        if (!step(l))
            l->backend.lag /= 2;
    l->backend.lag = l->backend.usual_lag;
}

static void *queue_main(void *argument)
{
    life *l = argument;
    while (!atomic_load_explicit(&l->stop, memory_order_relaxed))
        if (!queue_op(l))
            acs_pause_briefly();
    return NULL;
}

/* Until another burst has ended, beside the thread that queues. */
static void burst_beside(life *l)
{
    for (uint64_t until = ended(l) + BURST; ended(l) < until;)
        if (!step(l))
            l->backend.lag = l->backend.lag ? l->backend.lag / 2 : l->backend.usual_lag;
    l->backend.lag = l->backend.usual_lag;
}

static void report(const char *program, int way, micro_samples *samples, double edges)
{
    char name[MICRO_NAME_BYTES];
    double worker = 0;
    for (int part = 0; part < PARTS; part++) {
        bool apart = g_ways[way].bundle_most == 0;
        if (samples[part].count == 0 || (way == COLD && part == PERFORM) || (part == INSERT && !apart))
            continue;
        const char *what = part == PLACE && !apart ? "insert and place" : g_parts[part];
        snprintf(name, sizeof name, "%s%s, %s", program, g_ways[way].name, what);
        double median = micro_figure("life", name, &samples[part], part == (apart ? INSERT : PLACE) ? edges : -1);
        worker += part == QUEUE ? 0 : median;
    }
    printf("%-58s %10.1f ns\n", "    all but queue", worker);
}

static bool measure(const micro_options *options, const struct program *program, int way)
{
    static life l;
    static micro_samples samples[PARTS];
    pthread_t thread;
    if (!life_open(&l, program, way))
        return false;
    for (int part = 0; part < PARTS; part++)
        micro_samples_clear(&samples[part]);
    bool beside = way == BESIDE;
    if (beside && pthread_create(&thread, NULL, queue_main, &l))
        return false;
    for (uint32_t warm = 0; warm < 8 || !micro_samples_full(&samples[BOOK], options); warm++) {
        uint64_t before = ended(&l);
        memset(l.ns, 0, sizeof l.ns);
        if (beside)
            burst_beside(&l);
        else
            burst(&l);
        uint32_t ops = beside ? (uint32_t)(ended(&l) - before) : BURST;
        for (int part = beside ? INSERT : QUEUE; warm >= 8 && part < PARTS; part++)
            micro_samples_add(&samples[part], l.ns[part], ops);
    }
    if (beside) {
        atomic_store_explicit(&l.stop, 1, memory_order_relaxed); /* the thread writes nothing that is read after it */
        pthread_join(thread, NULL);
    }
    drain(&l);
    report(program->name, way, samples, (double)l.core.window.counters.edges / (double)ended(&l));
    life_close(&l);
    return true;
}

int micro_life(const micro_options *options)
{
    for (uint32_t i = 0; i < COLD_BYTES; i++)
        g_cold[i] = 1; /* pages of its own: never written they would all be one */
    for (size_t i = 0; i < sizeof g_programs / sizeof *g_programs; i++)
        for (int way = LAUNCHES; way < WAYS; way++)
            if (!measure(options, &g_programs[i], way)) {
                fprintf(stderr, "acs-micro: cannot make a core\n");
                return 1;
            }
    return 0;
}
