/*
 * The ops of a pass, in the order in which they were queued, and where it waited. Written by match.c and repeat.c as ops
 * come, under the lock; learn.c reads it when the pass is over.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>

static void trace_add(acs_repeat *repeat, acs_known *op, acs_op number)
{
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    if (trace->count == trace->room) {
        const uint32_t room = trace->room ? 2 * trace->room : 256;
        acs_traced *grown = room <= TUNE_REPEAT_OPS ? realloc(trace->ops, room * sizeof *grown) : NULL;
        if (!grown)
            return;
        trace->ops = grown;
        trace->room = room;
    }
    trace->ops[trace->count++] = (acs_traced){.op = op, .number = number};
    if (op->strand != ACS_STRAND_NONE)
        repeat->strands[op->strand].traced = trace->count;
}

void acs_repeat_queued(acs_repeat *repeat, acs_known *op, acs_op number)
{
    acs_known **before = repeat->last ? &repeat->last->follower : &repeat->first_op;
    if (*before != op)
        *before = op;
    repeat->last = op;
    op->last_pass = (uint32_t)repeat->passes;
    trace_add(repeat, op, number);
}

/* The latest op of the pass that the op conflicts with; NULL: none of the last TUNE_REPEAT_BACK. */
static acs_known *latest_before(acs_repeat *repeat, const acs_record *op)
{
    const acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    const uint32_t least = trace->count > TUNE_REPEAT_BACK ? trace->count - TUNE_REPEAT_BACK : 0;
    for (uint32_t i = trace->count; i-- > least;)
        if (acs_records_conflict(trace->ops[i].op->op, op))
            return trace->ops[i].op;
    return NULL;
}

/* The known op that a kernel is. If an earlier pass queued it, it is known from now on. NULL: it is not. */
static acs_known *recognize(acs_repeat *repeat, const acs_record *op)
{
    acs_known *known = acs_known_get(repeat, op);
    acs_reason reason = ACS_REASON_AGAIN;
    if (!known && acs_sightings_had(&repeat->sightings, acs_known_op_hash(op), repeat->passes)) {
        known = acs_known_add(repeat, op);
        reason = known ? ACS_REASON_AGAIN : ACS_REASON_FULL;
    } else if (!known) {
        repeat->first++;
        reason = ACS_REASON_NEW;
    }
    acs_reason_count(repeat, op, reason);
    return known;
}

void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op)
{
    const bool fit = op->kind == ACS_KIND_KERNEL && op->type && !op->any, learns = acs_repeat_learns(repeat);
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    acs_known *known = fit && learns ? recognize(repeat, op) : NULL;
    repeat->missed += fit;
    repeat->again += known != NULL;
    if (op->kind == ACS_KIND_KERNEL && !fit && learns)
        acs_reason_count(repeat, op, ACS_REASON_UNFIT);
    if (known) {
        acs_repeat_queued(repeat, known, 0);
        if (trace->count)
            trace->ops[trace->count - 1].missed = true;
        return;
    }
    if (!fit && learns && trace->count)
        trace->ops[trace->count - 1].awaited = latest_before(repeat, op); /* no replay may pass the op */
    repeat->last = NULL;
}

void acs_repeat_numbered(acs_repeat *repeat, acs_op number)
{
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    acs_traced *last = trace->count ? &trace->ops[trace->count - 1] : NULL;
    if (last && !last->number)
        last->number = number;
}

/* The op of a pass that has this number; NULL: none of the last TUNE_REPEAT_NUMBERS. */
static acs_known *numbered(const acs_pass_trace *trace, acs_op op)
{
    const uint32_t least = trace->count > TUNE_REPEAT_NUMBERS ? trace->count - TUNE_REPEAT_NUMBERS : 0;
    for (uint32_t i = trace->count; i-- > least;)
        if (trace->ops[i].number == op)
            return trace->ops[i].op;
    return NULL;
}

/* The strand whose replay has the number, open or sealed lately; NULL: none. */
static acs_strand *strand_with(acs_repeat *repeat, acs_op op)
{
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (strand->replay && !strand->trial && op - strand->number < strand->replay->count)
            return strand;
        for (uint32_t i = 0; i < TUNE_REPEAT_LATEST; i++)
            if (op - strand->latest[i].first < strand->latest[i].count)
                return strand;
    }
    return NULL;
}

acs_strand *acs_repeat_waits(acs_repeat *repeat, acs_op op)
{
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    acs_traced *last = trace->count ? &trace->ops[trace->count - 1] : NULL;
    acs_strand *strand = op == UINT64_MAX ? NULL : strand_with(repeat, op);
    if (strand) {
        acs_strand_cut(strand);
    } else if (last && op == UINT64_MAX) {
        last->cut_all = true;
    } else if (last) {
        acs_known *awaited = numbered(trace, op);
        last->awaited = awaited ? awaited : numbered(acs_repeat_trace(repeat, repeat->passes - 1), op);
        if (last->awaited && last->awaited->strand != ACS_STRAND_NONE)
            strand = &repeat->strands[last->awaited->strand];
    }
    return strand;
}

uint32_t acs_repeat_pass_ops(const acs_repeat *repeat)
{
    return repeat->trace[repeat->passes % 2].count + (acs_repeat_learns(repeat) ? repeat->first : repeat->missed);
}
