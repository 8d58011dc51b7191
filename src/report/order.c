/*
 * The dependences of a recording's ops. They come from a window of its own in which no op ends
 * (capture/capture_order.h), so they are the same however fast the program ran, and implied ones are left out. Called
 * by analysis.c. Also the blocks by address: it knows allocations by the recorded calls of acs_malloc and acs_free alone.
 */
#include "report/analysis.h"

#include "base/tuning.h"
#include "capture/capture_order.h"
#include "window/collect.h"

#include <stdlib.h>
#include <string.h>

/* A node of the order is a number from 1 on: of an op, or with this bit of a join. */
static const uintptr_t JOIN = (uintptr_t)1 << 63;

typedef struct ordering {
    acs_analysis *analysis;
    acs_capture_order *order;
    bool in_order;
    uint32_t *joins; /* by number: of the ops that it stands for, the last to end */
    uint32_t join_count, join_room, up_room;
    acs_nodes behind, own;
} ordering;

/* The op that a node stands for. */
static uint32_t op_of_node(const ordering *o, const void *node)
{
    const uintptr_t number = (uintptr_t)node;
    return number & JOIN ? o->joins[(number & ~JOIN) - 1] : (uint32_t)(number - 1);
}

static uint32_t last_to_end(const ordering *o, const acs_nodes *nodes)
{
    uint32_t last = ACS_PLACE_NONE;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const uint32_t op = op_of_node(o, nodes->list[i]);
        if (op != ACS_PLACE_NONE &&
            (last == ACS_PLACE_NONE || o->analysis->ops[op].ended > o->analysis->ops[last].ended))
            last = op;
    }
    return last;
}

static acs_status add_join(void *user, const acs_nodes *behind, acs_nodes *end)
{
    ordering *o = user;
    if (!ACS_GROW(o->joins, o->join_room, o->join_count + 1))
        return ACS_ERR_MEMORY;
    o->joins[o->join_count++] = last_to_end(o, behind);
    return acs_nodes_add(end, (void *)(JOIN | o->join_count)) ? ACS_OK : ACS_ERR_MEMORY;
}

/* Begin anew: what came before is not known. */
static acs_status begin_order(ordering *o)
{
    const acs_capture_order_config config = {
        .limit = TUNE_DOT_OPS, .in_order = o->in_order, .join = add_join, .user = o};
    acs_capture_order_destroy(o->order);
    o->order = NULL;
    return acs_capture_order_create(&config, &o->order);
}

static acs_status add_ups(ordering *o, acs_analysed_op *op)
{
    acs_analysis *a = o->analysis;
    op->first_up = a->up_count;
    for (uint32_t i = 0; i < o->behind.count; i++) {
        const uint32_t up = op_of_node(o, o->behind.list[i]);
        bool known = up == ACS_PLACE_NONE;
        for (uint32_t k = op->first_up; k < a->up_count && !known; k++)
            known = a->ups[k] == up;
        if (known)
            continue;
        if (!ACS_GROW(a->ups, o->up_room, a->up_count + 1))
            return ACS_ERR_MEMORY;
        a->ups[a->up_count++] = up;
    }
    op->up_count = a->up_count - op->first_up;
    return ACS_OK;
}

static acs_status take_op(ordering *o, uint32_t number)
{
    const acs_recording *r = o->analysis->recording;
    acs_analysed_op *op = &o->analysis->ops[number];
    const acs_recorded_op *from = &r->ops[op->place];
    acs_record record = {.seq = from->seq,
                         .site = from->label.site,
                         .kind = from->kind,
                         .any = from->any,
                         .segments = r->segments + from->first_segment,
                         .segment_count = from->segment_count};
    const bool observer = from->kind == ACS_KIND_STREAM_SIGNAL;
    uint64_t unused;
    if (from->gap)
        ACS_TRY(begin_order(o));
    ACS_TRY(acs_capture_order_take(o->order, &record, observer, &o->behind));
    ACS_TRY(add_ups(o, op));
    o->own.count = 0;
    if (observer)
        return ACS_OK;
    if (!acs_nodes_add(&o->own, (void *)((uintptr_t)number + 1)))
        return ACS_ERR_MEMORY;
    return acs_capture_order_put(o->order, &o->own, &unused);
}

acs_status acs_analysis_order(acs_analysis *analysis, bool in_order)
{
    ordering o = {.analysis = analysis, .in_order = in_order};
    acs_status status = begin_order(&o);
    for (uint32_t i = 0; i < analysis->op_count && status == ACS_OK; i++)
        status = take_op(&o, i);
    acs_capture_order_destroy(o.order);
    acs_nodes_fini(&o.behind);
    acs_nodes_fini(&o.own);
    free(o.joins);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static int by_base(const void *a, const void *b)
{
    const acs_recorded_block *x = *(const acs_recorded_block *const *)a, *y = *(const acs_recorded_block *const *)b;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return (x > y) - (x < y);
}

acs_status acs_analysis_index_blocks(acs_analysis *a)
{
    const acs_recording *r = a->recording;
    a->blocks = calloc((size_t)r->block_count + 1, sizeof *a->blocks);
    if (!a->blocks)
        return ACS_ERR_MEMORY;
    for (uint32_t i = 0; i < r->block_count; i++)
        a->blocks[i] = &r->blocks[i];
    if (r->block_count)
        qsort(a->blocks, r->block_count, sizeof *a->blocks, by_base);
    return ACS_OK;
}

/* A block may have begun before the address where others began since: so many entries are looked at. */
enum { REACH = 256 };

const acs_recorded_block *acs_analysis_block(const acs_analysis *a, uint64_t address, acs_op seq)
{
    uint32_t low = 0, high = a->recording->block_count;
    const acs_recorded_block *found = NULL;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (a->blocks[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t back = 1; back <= REACH && back <= low; back++) {
        const acs_recorded_block *block = a->blocks[low - back];
        const bool earlier = block->newest < seq && (!found || block > found);
        if (earlier && address - block->base < block->bytes)
            found = block;
    }
    return found && !found->freed ? found : NULL;
}

/* -------------------------------------------------------------------------------------------------------- conflicts */

static acs_conflict kind_of_conflict(const acs_segment *up, const acs_segment *down)
{
    if (up->extent == ACS_EXTENT_ALL || down->extent == ACS_EXTENT_ALL)
        return ACS_CONFLICT_ALL;
    if (!acs_writes(up->access))
        return ACS_CONFLICT_WAR;
    return down->access == ACS_WRITE ? ACS_CONFLICT_WAW : ACS_CONFLICT_RAW;
}

/* Whether the bytes were of another block for the earlier op: the memory was freed and handed out again. */
static bool is_handed_out_again(const acs_analysis *analysis, const acs_recorded_op *up, const acs_recorded_op *down,
                                const acs_segment *segment)
{
    if (segment->extent != ACS_EXTENT_BYTES || !analysis->recording->block_count)
        return false;
    const acs_recorded_block *before = acs_analysis_block(analysis, segment->base, up->seq);
    const acs_recorded_block *now = acs_analysis_block(analysis, segment->base, down->seq);
    return now && before && now->block != before->block;
}

/* A read of what was written is why an op must wait; that it writes, too, comes second. */
acs_conflict acs_analysis_conflict(const acs_analysis *analysis, uint32_t up, uint32_t down, uint32_t *up_segment,
                                   uint32_t *segment)
{
    const acs_recorded_op *a = acs_analysis_recorded(analysis, up), *b = acs_analysis_recorded(analysis, down);
    const acs_segment *segments = analysis->recording->segments;
    acs_conflict found = ACS_CONFLICT_NONE;
    *up_segment = *segment = ACS_PLACE_NONE;
    if (a->any || b->any)
        return ACS_CONFLICT_ALL;
    for (uint64_t i = a->first_segment; i < a->first_segment + a->segment_count; i++)
        for (uint64_t k = b->first_segment; k < b->first_segment + b->segment_count; k++) {
            if ((found != ACS_CONFLICT_NONE && kind_of_conflict(&segments[i], &segments[k]) >= found) ||
                !acs_segments_conflict(&segments[i], 1, &segments[k], 1))
                continue;
            found = kind_of_conflict(&segments[i], &segments[k]);
            *up_segment = (uint32_t)i;
            *segment = (uint32_t)k;
        }
    if (found != ACS_CONFLICT_NONE && is_handed_out_again(analysis, a, b, &segments[*segment]))
        return ACS_CONFLICT_ORDER;
    return found == ACS_CONFLICT_NONE ? ACS_CONFLICT_ORDER : found;
}
