/*
 * Replays (replay.h): shapes, ops that are taken out, and the two forms in which backends issue a replay. Called by
 * src/repeats, the core and backends. Calls none of them; allocates shapes only.
 */
#include "window/replay.h"

#include "window/regions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- shapes */

typedef uint64_t op_set[ACS_REPLAY_WORDS]; /* a bit for each place */

/* A segment that touches something: its op, and the first and the last address. */
typedef struct span {
    uint64_t first, last;
    const acs_segment *segment;
    uint32_t at;
} span;

static int by_first(const void *left, const void *right)
{
    const span *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* List the segments by their first addresses. A token's is its number: whether two conflict is looked at later. */
static uint32_t list_spans(const acs_record *const *ops, uint32_t count, span *list)
{
    uint32_t used = 0;
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t i = 0; i < ops[at]->segment_count; i++) {
            const acs_segment *s = &ops[at]->segments[i];
            const bool all = s->extent == ACS_EXTENT_ALL, bytes = acs_segment_has_bytes(s);
            if (bytes || s->extent != ACS_EXTENT_BYTES)
                list[used++] = (span){all ? 0 : s->base, all ? UINT64_MAX : bytes ? acs_segment_end(s) - 1 : s->base, s, at};
        }
    qsort(list, used, sizeof *list, by_first);
    return used;
}

static void note_conflict(const span *a, const span *b, op_set *conflicts)
{
    const span *late = a->at > b->at ? a : b, *early = late == a ? b : a;
    uint64_t *word = &conflicts[late->at][early->at / 64], bit = (uint64_t)1 << early->at % 64;
    if (a->at != b->at && ((a->segment->access | b->segment->access) & ACS_WRITE) && !(*word & bit) &&
        acs_segments_conflict(a->segment, 1, b->segment, 1))
        *word |= bit;
}

/*
 * Find the ops before each one that it conflicts with. A sweep over the addresses compares only what lies at the same place.
 * False: no memory.
 */
static bool find_conflicts(const acs_record *const *ops, uint32_t count, op_set *conflicts)
{
    size_t segments = 1;
    for (uint32_t at = 0; at < count; at++)
        segments += ops[at]->segment_count;
    span *list = malloc(2 * segments * sizeof *list), *open = list + segments;
    const uint32_t used = list ? list_spans(ops, count, list) : 0;
    for (uint32_t i = 0, opened = 0; i < used; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < opened; k++) {
            if (open[k].last < list[i].first)
                continue;
            note_conflict(&open[k], &list[i], conflicts);
            open[kept++] = open[k];
        }
        open[kept] = list[i];
        opened = kept + 1;
    }
    free(list);
    return list != NULL;
}

/* The greatest place of a set that is not in the other; UINT32_MAX: there is none. */
static uint32_t greatest(const uint64_t *a, const uint64_t *not_in)
{
    for (uint32_t word = ACS_REPLAY_WORDS; word-- > 0;) {
        const uint64_t left = a[word] & ~not_in[word];
        if (left)
            return word * 64 + 63 - (uint32_t)__builtin_clzll(left);
    }
    return UINT32_MAX;
}

/*
 * Find the edges to op `at`, nearest first. An op that a nearer one already follows, by some path, needs no edge:
 * `before` has the ops that each op follows so. False: too many edges.
 */
static bool add_edges(acs_replay_shape *shape, uint32_t at, const op_set *conflicts, op_set *before)
{
    uint32_t used = shape->first_edge[at], up;
    while ((up = greatest(conflicts[at], before[at])) != UINT32_MAX) {
        if (used == ACS_BATCH_EDGES)
            return false;
        shape->edges[used++] = (uint16_t)up;
        before[at][up / 64] |= (uint64_t)1 << up % 64;
        for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
            before[at][word] |= before[up][word];
    }
    shape->first_edge[at + 1] = used;
    return true;
}

static bool fill_shape(acs_replay_shape *shape, const acs_record *const *ops)
{
    op_set conflicts[ACS_REPLAY_OPS], before[ACS_REPLAY_OPS];
    memset(conflicts, 0, shape->ops * sizeof conflicts[0]);
    memset(before, 0, shape->ops * sizeof before[0]);
    shape->first_edge[0] = 0;
    if (!find_conflicts(ops, shape->ops, conflicts))
        return false;
    for (uint32_t at = 0; at < shape->ops; at++) {
        ACS_ASSERT(!ops[at]->any);
        if (!add_edges(shape, at, (const op_set *)conflicts, before))
            return false;
        shape->arg_at[at + 1] = shape->arg_at[at] + ((ops[at]->arg_bytes_used + 15) & ~(uint32_t)15);
        shape->decisions[at / 64] |= (uint64_t)((ops[at]->flags & ACS_RECORD_DECISION) != 0) << at % 64;
        shape->became_kernel[at / 64] |= (uint64_t)(ops[at]->asked != ACS_KIND_KERNEL) << at % 64;
    }
    return true;
}

acs_replay_shape *acs_replay_shape_create(const acs_record *const *ops, uint32_t count)
{
    static _Atomic uint64_t last_id;
    ACS_ASSERT(count > 0 && count <= ACS_REPLAY_OPS);
    acs_replay_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return NULL;
    shape->ops = count;
    shape->op = ops;
    shape->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1; /* relaxed: only unique */
    shape->first_edge = calloc(count + 1, sizeof *shape->first_edge);
    shape->edges = calloc(ACS_BATCH_EDGES, sizeof *shape->edges);
    shape->arg_at = calloc(count + 1, sizeof *shape->arg_at);
    if (shape->first_edge && shape->edges && shape->arg_at && fill_shape(shape, ops))
        return shape;
    acs_replay_shape_destroy(shape);
    return NULL;
}

void acs_replay_shape_destroy(acs_replay_shape *shape)
{
    if (!shape)
        return;
    free(shape->first_edge);
    free(shape->edges);
    free(shape->arg_at);
    free(shape);
}

/* --------------------------------------------------------------------------------------------------------- replays */

acs_replay *acs_replay_create(const acs_replay_shape *shape)
{
    acs_replay *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->shape = shape;
    r->ops = aligned_alloc(ACS_CACHE_LINE, shape->ops * sizeof *r->ops);
    r->width = calloc(shape->ops, sizeof *r->width);
    r->args = calloc(shape->arg_at[shape->ops] + 1, 1);
    r->ends = calloc(shape->ops, sizeof *r->ends);
    if (!r->ops || !r->width || !r->args || !r->ends) {
        acs_replay_destroy(r);
        return NULL;
    }
    for (uint32_t at = 0; at < shape->ops; at++)
        r->ops[at] = *shape->op[at];
    return r;
}

void acs_replay_destroy(acs_replay *r)
{
    if (!r)
        return;
    ACS_ASSERT(acs_replay_is_free(r));
    free(r->ops);
    free(r->width);
    free(r->args);
    free(r->ends);
    free(r);
}

void acs_replay_begin(acs_replay *r, acs_op first)
{
    r->first = first;
    r->count = r->end_count = r->ends_told = 0;
    memset(r->all, 0, sizeof r->all);
    memset(r->on, 0, sizeof r->on);
    memset(r->differs, 0, sizeof r->differs);
    atomic_store_explicit(&r->busy, true, memory_order_relaxed); /* given away by the push */
}

void acs_replay_add_from(acs_replay *r, uint32_t at, const acs_replay *from, uint32_t from_at)
{
    const bool differs = acs_replay_differs(from, from_at);
    (void)acs_replay_add(r, at, differs);
    if (!differs)
        return;
    r->width[at] = from->width[from_at];
    memcpy(r->args + r->shape->arg_at[at], acs_replay_args(from, from_at), r->shape->op[at]->arg_bytes_used);
}

acs_record *acs_replay_op(acs_replay *r, uint32_t at)
{
    acs_record *op = &r->ops[at];
    op->seq = acs_replay_number(r, at);
    op->grid.x = acs_replay_width(r, at);
    op->arg_bytes = acs_replay_args(r, at);
    return op;
}

/* ---------------------------------------------------------------------------------------------- ops that do not run */

void acs_replay_take_out(acs_replay *r, const acs_replay_end *end)
{
    ACS_ASSERT(acs_replay_has(r, end->at) && end->status != ACS_OK && r->end_count < r->shape->ops); /* RPL-2 */
    r->on[end->at / 64] &= ~((uint64_t)1 << end->at % 64);
    r->ends[r->end_count++] = *end;
}

acs_op acs_replay_cause(const acs_replay *r, uint32_t at)
{
    for (uint32_t i = 0; i < r->end_count; i++)
        if (r->ends[i].at < at && acs_records_conflict(r->shape->op[r->ends[i].at], r->shape->op[at]))
            return r->ends[i].cause;
    return 0;
}

/* ----------------------------------------------------------------------------------------------------------- issue */

uint32_t acs_replay_depth(const acs_replay *r)
{
    uint32_t depth[ACS_REPLAY_OPS], most = 0;
    for (uint32_t at = 0; at < r->shape->ops; at++) {
        depth[at] = 0;
        for (uint32_t e = r->shape->first_edge[at]; e < r->shape->first_edge[at + 1]; e++)
            if (depth[at] < depth[r->shape->edges[e]])
                depth[at] = depth[r->shape->edges[e]];
        depth[at] += acs_replay_has(r, at);
        most = depth[at] > most ? depth[at] : most;
    }
    return most;
}

/* An op, and the ops that it follows directly, as bits: those on the way that are left out pass theirs on. */
typedef struct followed {
    uint64_t by[ACS_REPLAY_OPS][ACS_REPLAY_WORDS];
    uint16_t item[ACS_REPLAY_OPS]; /* by place: the item of an op that is on */
} followed;

static void follow_back(const acs_replay_shape *shape, uint32_t at, const uint64_t *on, followed *f)
{
    memset(f->by[at], 0, sizeof f->by[at]);
    for (uint32_t e = shape->first_edge[at]; e < shape->first_edge[at + 1]; e++) {
        const uint32_t up = shape->edges[e];
        if (on[up / 64] >> up % 64 & 1)
            f->by[at][up / 64] |= (uint64_t)1 << up % 64;
        else
            for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
                f->by[at][word] |= f->by[up][word];
    }
}

/* List the edges to an item, nearest first. False: too many. */
static bool list_edges(const followed *f, uint32_t at, acs_batch *batch, acs_item *item)
{
    item->first_edge = (uint16_t)batch->edges_used;
    for (uint32_t word = ACS_REPLAY_WORDS; word-- > 0;)
        for (uint64_t left = f->by[at][word]; left;) {
            const uint32_t bit = 63 - (uint32_t)__builtin_clzll(left);
            left &= ~((uint64_t)1 << bit);
            if (batch->edges_used == ACS_BATCH_EDGES)
                return false;
            batch->edges[batch->edges_used++] = f->item[word * 64 + bit];
        }
    item->edge_count = (uint16_t)(batch->edges_used - item->first_edge);
    return true;
}

bool acs_replay_batch(acs_replay *r, int slot, uint64_t value, bool all, acs_batch *batch)
{
    static const uint64_t everything[ACS_REPLAY_WORDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const uint64_t *on = all ? everything : r->on;
    followed f;
    batch->items_used = batch->waits_used = batch->marks_used = batch->edges_used = 0;
    batch->bundle = true;
    for (uint32_t at = 0; at < r->shape->ops; at++) {
        follow_back(r->shape, at, on, &f);
        if (!(on[at / 64] >> at % 64 & 1))
            continue;
        acs_item *item = &batch->items[f.item[at] = (uint16_t)batch->items_used++];
        *item = (acs_item){.op = acs_replay_op(r, at), .slot = (int16_t)slot};
        if (!list_edges(&f, at, batch, item))
            return false;
    }
    for (uint32_t i = 0; i < batch->items_used; i++)
        batch->items[i].value = value - batch->items_used + i + 1;
    return batch->items_used > 0;
}

acs_status acs_replay_one_by_one(acs_replay *r, acs_replay_issue issue, void *user)
{
    for (uint32_t at = 0; at < r->shape->ops; at++) {
        if (!acs_replay_has(r, at))
            continue;
        acs_replay_end end = {.at = at, .status = ACS_ERR_SKIPPED, .cause = acs_replay_cause(r, at)};
        if (!end.cause) {
            end.status = issue(user, acs_replay_op(r, at), &end.native, &end.text);
            end.cause = acs_replay_number(r, at);
        }
        if (end.status == ACS_ERR_DEVICE)
            return ACS_ERR_DEVICE;
        if (end.status != ACS_OK)
            acs_replay_take_out(r, &end);
    }
    return ACS_OK;
}

void acs_replay_give_back(acs_replay *r)
{
    atomic_store_explicit(&r->busy, false, memory_order_release); /* H */
}

bool acs_replay_is_free(acs_replay *r)
{
    return !atomic_load_explicit(&r->busy, memory_order_acquire); /* H */
}
