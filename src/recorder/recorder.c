/*
 * The recorder (recorder.h). Owns rings of ops, segments, waits and blocks, and the place of each op of the window in
 * them. The core calls it under its lock, callers at their waits. It reads a CPU's counter of time, which costs a
 * third of the system's clock, and converts the times when the recording is taken. It never waits, but for its own
 * lock.
 */
#include "recorder/recorder.h"

#include "base/tuning.h"
#include "window/replay.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct acs_recorder {
    acs_recorder_config config;
    /* ops; guarded by the core's lock */
    acs_recorded_op *ops;                         /* ring; number n is at (n - 1) % capacity */
    acs_segment *segments;                        /* ring */
    uint64_t *number;                             /* by window entry: number of its op; 0: it is not recorded */
    uint64_t *inserted;                           /* by window entry, of replays: when it entered; 0: it is not recorded */
    uint32_t capacity, segment_capacity;          /* powers of two */
    uint64_t count, segment_count;                /* ever recorded */
    uint64_t seen;                                /* ops that ended */
    /* the rest; guarded by `lock` */
    pthread_mutex_t lock;
    acs_recorded_wait *waits;
    acs_recorded_block *blocks;
    uint64_t wait_count, block_count; /* ever recorded */
    /* two readings of both clocks, at the begin and at the end */
    uint64_t began_ticks, began_ns;
};

uint64_t acs_recorder_now(const acs_recorder *r)
{
    /* simulated time begins at 0, which means that a time is not known */
    return ACS_UNLIKELY(r->config.now_ns != NULL) ? r->config.now_ns(r->config.user) + 1 : acs_clock_ticks();
}

/* Of each (100 / percent) runs of ops one is recorded. */
bool acs_recorder_takes(const acs_recorder *r, acs_op seq)
{
    return (seq - 1) / TUNE_RECORD_RUN * r->config.percent % 100 < r->config.percent;
}

/* -------------------------------------------------------------------------------------------------------------- ops */

static acs_recorded_op *recorded_at(const acs_recorder *r, uint64_t number)
{
    return &r->ops[(number - 1) & (r->capacity - 1)];
}

/* The op of a window's entry; NULL: it is not recorded, or has been overwritten (RCD-2). */
static acs_recorded_op *recorded_of(const acs_recorder *r, uint32_t entry)
{
    const uint64_t number = r->number[entry];
    return number && r->count - number < r->capacity ? recorded_at(r, number) : NULL;
}

static void add_segments(acs_recorder *r, acs_recorded_op *op, const acs_segment *segments, uint32_t count)
{
    op->first_segment = r->segment_count;
    op->segment_count = count < r->segment_capacity ? count : 0;
    op->any |= op->segment_count != count;
    for (uint32_t i = 0; i < op->segment_count; i++)
        r->segments[r->segment_count++ & (r->segment_capacity - 1)] = segments[i];
}

static uint32_t product_of(acs_dim3 d)
{
    const uint64_t all = (uint64_t)d.x * d.y;
    return all > UINT32_MAX || all * d.z > UINT32_MAX ? UINT32_MAX : (uint32_t)(all * d.z);
}

static bool begins_segment(const acs_record *record, uint64_t address)
{
    for (uint32_t i = 0; i < record->segment_count; i++)
        if (record->segments[i].base == address)
            return true;
    return false;
}

/*
 * A hash of the pointers among the arguments that no segment begins with: those by which ops that name the same bytes may
 * still mean different parts of them.
 */
static uint64_t hash_pointers(const acs_record *record)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < record->arg_count; i++) {
        uint64_t address;
        if (record->args[i].type != ACS_ARG_POINTER || record->args[i].size != sizeof address)
            continue;
        memcpy(&address, record->arg_bytes + record->args[i].offset, sizeof address);
        if (!begins_segment(record, address))
            hash = acs_hash64(hash ^ address);
    }
    return hash;
}

/* Add an op with what its record says. */
static acs_recorded_op *record_op(acs_recorder *r, const acs_record *record, acs_op seq)
{
    acs_recorded_op *op = recorded_at(r, ++r->count);
    *op = (acs_recorded_op){.seq = seq,
                            .label = acs_record_label(record),
                            .entered = record->entered,
                            .whole = ACS_PLACE_NONE,
                            .graph = ACS_PLACE_NONE,
                            .thread = record->thread,
                            .slot = -1,
                            .kind = record->kind,
                            .asked = record->asked,
                            .device = (uint8_t)record->device,
                            .any = record->any,
                            .transfer = (record->flags & ACS_RECORD_PROPAGATES) != 0};
    if (record->kind == ACS_KIND_KERNEL) {
        op->blocks = product_of(record->grid);
        op->threads = product_of(record->u.launch.block);
        op->pointers = hash_pointers(record);
    } else if (record->kind == ACS_KIND_MEMCPY || record->kind == ACS_KIND_MEMSET) {
        op->bytes = acs_record_copied(record);
    }
    if (record->kind != ACS_KIND_REPLAY) /* its ops have theirs */
        add_segments(r, op, record->segments, record->segment_count);
    return op;
}

static void record_insertion(acs_recorder *r, const acs_trace_event *event)
{
    const bool chosen = acs_recorder_takes(r, event->seq);
    r->number[event->entry] = r->inserted[event->entry] = 0;
    if (!chosen || event->op->kind == ACS_KIND_OBSERVE || event->op->kind == ACS_KIND_CALLBACK)
        return;
    const uint64_t now = acs_recorder_now(r);
    if (ACS_UNLIKELY(event->op->kind == ACS_KIND_REPLAY)) {
        r->inserted[event->entry] = now; /* recorded when it is issued: many ops may come before */
        return;
    }
    record_op(r, event->op, event->seq)->inserted = now;
    r->number[event->entry] = r->count;
}

/* ---------------------------------------------------------------------------------------------------------- replays */

/* The replay is issued: record it, and its ops behind it. A ring is longer than a replay. */
static void add_replay(acs_recorder *r, const acs_trace_event *event)
{
    const acs_replay *replay = event->op->u.replay.replay;
    acs_recorded_op *whole = record_op(r, event->op, event->seq);
    whole->inserted = r->inserted[event->entry];
    r->number[event->entry] = r->count;
    for (uint32_t at = 0; replay && at < replay->shape->ops; at++) {
        if (!acs_replay_has(replay, at))
            continue;
        acs_recorded_op *op = record_op(r, replay->shape->op[at], acs_replay_number(replay, at));
        op->entered = whole->entered;
        op->inserted = whole->inserted;
        op->thread = whole->thread;
        op->whole = 0; /* acs_recorder_take finds the place, by the replay's number, which is kept in `value` */
        op->value = whole->seq;
        op->slot = (int16_t)event->slot;
        op->method = ACS_METHOD_REPLAY;
        op->device = whole->device;
    }
}

/* ------------------------------------------------------------------------------------------------------------ times */

static void record_issue(acs_recorder *r, const acs_trace_event *event)
{
    if (ACS_UNLIKELY(r->inserted[event->entry]) && !r->number[event->entry])
        add_replay(r, event);
    acs_recorded_op *op = recorded_of(r, event->entry);
    if (!op)
        return;
    op->issued = acs_recorder_now(r);
    op->slot = (int16_t)event->slot;
    op->value = event->value;
    op->batch = event->batch;
    op->bundled = event->bundle != NULL;
}

static void record_booking(acs_recorder *r, const acs_trace_event *event)
{
    acs_recorded_op *op = recorded_of(r, event->entry);
    if (!op)
        return;
    op->booked = acs_recorder_now(r);
    op->method = event->method;
}

/* Note when the replay's ops ran, where the backend ran them one by one. They lie behind each other in the ring. */
static void end_replay(acs_recorder *r, uint64_t number, const acs_replay *replay)
{
    for (uint32_t at = 0; at < replay->shape->ops && number <= r->count; at++) {
        const acs_record *record = &replay->ops[at];
        acs_recorded_op *op = recorded_at(r, number);
        if (r->count - number >= r->capacity || op->seq != acs_replay_number(replay, at))
            continue;
        number++;
        if (record->seq != op->seq)
            continue;
        op->ran_from = record->began;
        op->ran_to = record->ended;
    }
}

static void record_end(acs_recorder *r, const acs_trace_event *event)
{
    acs_recorded_op *op = recorded_of(r, event->entry);
    const bool many = event->op->kind == ACS_KIND_REPLAY && event->op->u.replay.replay;
    r->seen += ACS_UNLIKELY(many) ? event->op->u.replay.replay->count : 1; /* fewer than its numbers */
    if (!op)
        return;
    op->ended = acs_recorder_now(r);
    op->status = event->status;
    op->ran_from = event->op->began;
    op->ran_to = event->op->ended;
    if (ACS_UNLIKELY(op->kind == ACS_KIND_REPLAY) && event->op->u.replay.replay)
        end_replay(r, r->number[event->entry] + 1, event->op->u.replay.replay);
}

static void follow_core(void *user, const acs_trace_event *event)
{
    static void (*const record[])(acs_recorder *r, const acs_trace_event *event) = {
        [ACS_TRACE_INSERT] = record_insertion, [ACS_TRACE_ISSUE] = record_issue,
        [ACS_TRACE_BOOK] = record_booking,     [ACS_TRACE_RETIRE] = record_end};
    record[event->type](user, event);
}

/* ------------------------------------------------------------------------------------------------- waits and blocks */

void acs_recorder_waited(acs_recorder *r, acs_recorded_wait_type type, acs_op op, acs_op newest, uint64_t began)
{
    const acs_recorded_wait wait = {.began = began,
                                    .ended = acs_recorder_now(r),
                                    .op = op,
                                    .newest = newest,
                                    .thread = (uint32_t)acs_thread_number(),
                                    .type = (uint32_t)type};
    (void)pthread_mutex_lock(&r->lock);
    r->waits[r->wait_count++ % TUNE_RECORD_CALLS] = wait;
    (void)pthread_mutex_unlock(&r->lock);
}

void acs_recorder_block(acs_recorder *r, const acs_recorded_block *event)
{
    acs_recorded_block block = *event;
    block.ended = acs_recorder_now(r);
    block.thread = (uint32_t)acs_thread_number();
    (void)pthread_mutex_lock(&r->lock);
    r->blocks[r->block_count++ % TUNE_RECORD_CALLS] = block;
    (void)pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------------------------------------------------- take */

/* From readings of the CPU's counter to ns since the begin. */
typedef struct scale {
    uint64_t began;
    double ns_per_tick;
} scale;

static scale scale_of(const acs_recorder *r)
{
    scale s = {.began = r->began_ticks, .ns_per_tick = 1};
    if (r->config.now_ns)
        return s;
    const uint64_t now_ticks = acs_clock_ticks(), now_ns = acs_clock_ns();
    if (now_ticks > r->began_ticks)
        s.ns_per_tick = (double)(now_ns - r->began_ns) / (double)(now_ticks - r->began_ticks);
    return s;
}

/* 0 stays 0: not known. */
static uint64_t reading_ns(const scale *s, uint64_t reading)
{
    if (!reading)
        return 0;
    const double ns = reading > s->began ? (double)(reading - s->began) * s->ns_per_tick : 0;
    return ns < 1 ? 1 : (uint64_t)ns;
}

static void scale_op(const scale *s, acs_recorded_op *op)
{
    op->entered = reading_ns(s, op->entered);
    op->inserted = reading_ns(s, op->inserted);
    op->issued = reading_ns(s, op->issued);
    op->booked = reading_ns(s, op->booked);
    op->ended = reading_ns(s, op->ended);
    op->ran_from = reading_ns(s, op->ran_from);
    op->ran_to = reading_ns(s, op->ran_to);
}

/* Copy the op's segments. */
static void take_segments(const acs_recorder *r, acs_recorded_op *op, acs_recording *to)
{
    for (uint32_t i = 0; i < op->segment_count; i++)
        to->segments[to->segment_count + i] = r->segments[(op->first_segment + i) & (r->segment_capacity - 1)];
    op->first_segment = to->segment_count;
    to->segment_count += op->segment_count;
}

/* A replay comes before its ops, which have its number or later ones. */
static int by_number(const void *a, const void *b)
{
    const acs_recorded_op *x = a, *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->kind != ACS_KIND_REPLAY) - (y->kind != ACS_KIND_REPLAY);
}

/* The place of the replay with this number of op, at or before `place`. */
static uint32_t find_whole(const acs_recording *recording, uint32_t place, acs_op seq)
{
    while (place > 0 && recording->ops[place].seq >= seq) {
        place--;
        if (recording->ops[place].kind == ACS_KIND_REPLAY && recording->ops[place].seq == seq)
            return place;
    }
    return ACS_PLACE_NONE;
}

/* An op of a replay has the times and the end of the replay. */
static void take_whole(acs_recording *recording, uint32_t place, acs_op seq)
{
    acs_recorded_op *op = &recording->ops[place];
    op->whole = find_whole(recording, place, seq);
    if (op->whole == ACS_PLACE_NONE)
        return;
    const acs_recorded_op *whole = &recording->ops[op->whole];
    op->graph = whole->graph;
    op->issued = whole->issued;
    op->booked = whole->booked;
    op->ended = whole->ended;
    op->value = whole->value;
    op->batch = whole->batch;
    op->status = whole->status;
}

/* Whether ACS_TRACE_SAMPLE left ops out between these two. */
static bool has_gap(const acs_recorder *r, acs_op before, acs_op op)
{
    for (acs_op run = (before - 1) / TUNE_RECORD_RUN + 1; run < (op - 1) / TUNE_RECORD_RUN; run++)
        if (!acs_recorder_takes(r, run * TUNE_RECORD_RUN + 1))
            return true;
    return false;
}

static void take_ops(const acs_recorder *r, const scale *s, acs_recording *to)
{
    const uint64_t first = r->count > r->capacity ? r->count - r->capacity + 1 : 1;
    for (uint64_t number = first; number <= r->count; number++) {
        const acs_recorded_op *from = recorded_at(r, number);
        if (from->segment_count && r->segment_count - from->first_segment > r->segment_capacity)
            continue; /* its segments have been overwritten */
        to->ops[to->op_count] = *from;
        scale_op(s, &to->ops[to->op_count++]);
    }
    qsort(to->ops, to->op_count, sizeof *to->ops, by_number);
    for (uint32_t place = 0; place < to->op_count; place++) {
        to->ops[place].gap = place > 0 && has_gap(r, to->ops[place - 1].seq, to->ops[place].seq);
        take_segments(r, &to->ops[place], to);
        if (to->ops[place].kind == ACS_KIND_REPLAY)
            to->ops[place].graph = to->graph_count++;
        if (to->ops[place].whole != ACS_PLACE_NONE)
            take_whole(to, place, to->ops[place].value);
    }
}

static void take_calls(acs_recorder *r, const scale *s, acs_recording *to)
{
    (void)pthread_mutex_lock(&r->lock);
    const uint64_t waits = r->wait_count, blocks = r->block_count;
    for (uint64_t i = waits > TUNE_RECORD_CALLS ? waits - TUNE_RECORD_CALLS : 0; i < waits; i++) {
        acs_recorded_wait wait = r->waits[i % TUNE_RECORD_CALLS];
        wait.began = reading_ns(s, wait.began);
        wait.ended = reading_ns(s, wait.ended);
        to->waits[to->wait_count++] = wait;
    }
    for (uint64_t i = blocks > TUNE_RECORD_CALLS ? blocks - TUNE_RECORD_CALLS : 0; i < blocks; i++) {
        acs_recorded_block block = r->blocks[i % TUNE_RECORD_CALLS];
        block.began = reading_ns(s, block.began);
        block.ended = reading_ns(s, block.ended);
        to->blocks[to->block_count++] = block;
    }
    (void)pthread_mutex_unlock(&r->lock);
}

acs_status acs_recorder_take(acs_recorder *r, acs_recording *recording)
{
    acs_trace_remove(r->config.core, follow_core, r);
    const uint64_t ops = r->count < r->capacity ? r->count : r->capacity;
    const uint64_t segments = r->segment_count < r->segment_capacity ? r->segment_count : r->segment_capacity;
    acs_recording to = {.ops = calloc(ops + 1, sizeof *to.ops),
                        .segments = calloc(segments + 1, sizeof *to.segments),
                        .graphs = calloc(ops + 1, sizeof *to.graphs),
                        .waits = calloc(TUNE_RECORD_CALLS, sizeof *to.waits),
                        .blocks = calloc(TUNE_RECORD_CALLS, sizeof *to.blocks)};
    if (!to.ops || !to.segments || !to.graphs || !to.waits || !to.blocks) {
        acs_recording_free(&to);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a recording of %llu ops", (unsigned long long)ops);
    }
    const scale s = scale_of(r);
    take_ops(r, &s, &to);
    take_calls(r, &s, &to);
    to.began_ns = r->began_ns;
    to.span_ns = reading_ns(&s, acs_recorder_now(r));
    to.ops_seen = r->seen;
    to.virtual_time = r->config.now_ns != NULL;
    *recording = to;
    return ACS_OK;
}

void acs_recording_free(acs_recording *recording)
{
    free(recording->ops);
    free(recording->segments);
    free(recording->graphs);
    free(recording->waits);
    free(recording->blocks);
    *recording = (acs_recording){0};
}

/* -------------------------------------------------------------------------------------------------- create, destroy */

static void free_rings(acs_recorder *r)
{
    free(r->ops);
    free(r->segments);
    free(r->number);
    free(r->inserted);
    free(r->waits);
    free(r->blocks);
    free(r);
}

acs_status acs_recorder_create(const acs_recorder_config *config, acs_recorder **recorder)
{
    acs_recorder *r = calloc(1, sizeof *r);
    if (!r)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to record ops");
    r->config = *config;
    r->capacity = acs_round_up_pow2((uint32_t)config->ops);
    r->segment_capacity = r->capacity * TUNE_RECORD_SEGMENTS;
    r->ops = calloc(r->capacity, sizeof *r->ops);
    r->segments = calloc(r->segment_capacity, sizeof *r->segments);
    r->number = calloc(config->core->window.entry_count + 1, sizeof *r->number);
    r->inserted = calloc(config->core->window.entry_count + 1, sizeof *r->inserted);
    r->waits = calloc(TUNE_RECORD_CALLS, sizeof *r->waits);
    r->blocks = calloc(TUNE_RECORD_CALLS, sizeof *r->blocks);
    if (!r->ops || !r->segments || !r->number || !r->inserted || !r->waits || !r->blocks ||
        pthread_mutex_init(&r->lock, NULL) != 0) {
        free_rings(r);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to record %llu ops", (unsigned long long)config->ops);
    }
    r->began_ns = acs_clock_ns();
    r->began_ticks = acs_recorder_now(r);
    if (!acs_trace_add(config->core, follow_core, r)) {
        acs_recorder_destroy(r);
        return ACS_FAIL(ACS_ERR_STATE, 0, "the core has too many followers");
    }
    *recorder = r;
    return ACS_OK;
}

void acs_recorder_destroy(acs_recorder *r)
{
    if (!r)
        return;
    acs_trace_remove(r->config.core, follow_core, r);
    (void)pthread_mutex_destroy(&r->lock);
    free_rings(r);
}
