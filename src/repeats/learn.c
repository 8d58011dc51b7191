/*
 * Fragments, learnt from passes (repeat.h). A pass is taken apart into its strands, and these into fragments: they end
 * where the pass waited for an op of the strand, or queued an op that no replay may pass, and where they would be too
 * long. The second time that a fragment is seen, it gets a piece. Called by match.c and repeat.c under the lock; never
 * queues anything.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"
#include "window/replay.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ----------------------------------------------------------------------------------------------------- a pass's ops */

static acs_pass_trace *trace_of(acs_repeat *repeat, uint64_t pass)
{
    return &repeat->trace[pass % 2];
}

static void trace_add(acs_repeat *repeat, acs_known *op)
{
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    if (trace->count == trace->room) {
        const uint32_t room = trace->room ? 2 * trace->room : 256;
        acs_traced *grown = room <= 2 * TUNE_REPEAT_OPS ? realloc(trace->ops, room * sizeof *grown) : NULL;
        if (!grown)
            return;
        trace->ops = grown;
        trace->room = room;
    }
    trace->ops[trace->count++] = (acs_traced){.op = op, .turn = repeat->turns};
    if (op->strand != ACS_STRAND_NONE)
        repeat->strands[op->strand].traced = trace->count;
}

void acs_repeat_queued(acs_repeat *repeat, acs_known *op)
{
    acs_known **before = repeat->last ? &repeat->last->follower : &repeat->first;
    if (*before != op)
        *before = op;
    repeat->last = op;
    trace_add(repeat, op);
    repeat->turns++;
}

/* The latest op of the pass that the op conflicts with; NULL: none of the last TUNE_REPEAT_BACK. */
static acs_known *latest_before(acs_repeat *repeat, const acs_record *op)
{
    const acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    const uint32_t least = trace->count > TUNE_REPEAT_BACK ? trace->count - TUNE_REPEAT_BACK : 0;
    for (uint32_t i = trace->count; i-- > least;)
        if (acs_records_conflict(trace->ops[i].op->op, op))
            return trace->ops[i].op;
    return NULL;
}

static bool learns(const acs_repeat *repeat)
{
    return repeat->rested == repeat->rests;
}

void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op)
{
    const bool fit = op->kind == ACS_KIND_KERNEL && op->type && !op->any;
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    acs_known *known = fit && learns(repeat) ? acs_known_get(repeat, op) : NULL;
    repeat->missed += fit;
    if (known) {
        acs_repeat_queued(repeat, known);
        return;
    }
    if (!fit && learns(repeat) && trace->count)
        trace->ops[trace->count - 1].awaited = latest_before(repeat, op); /* no replay may pass the op */
    repeat->last = NULL;
    repeat->turns++;
}

/* The op of a pass that has this number, if all ops of the pass were its own; NULL: none. */
static acs_known *numbered(const acs_pass_trace *trace, acs_op op)
{
    uint32_t low = 0, high = trace->count;
    const uint64_t turn = op - trace->before - 1;
    if (op <= trace->before)
        return NULL;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (trace->ops[middle].turn < turn)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->count && trace->ops[low].turn == turn ? trace->ops[low].op : NULL;
}

/* The strand whose replay has the number, open or sealed lately; NULL: none. */
static acs_strand *strand_with(acs_repeat *repeat, acs_op op)
{
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (strand->replay && op - strand->number < strand->place - strand->replay->from)
            return strand;
        for (uint32_t i = 0; i < TUNE_REPEAT_LATEST; i++)
            if (op - strand->latest[i].first < strand->latest[i].count)
                return strand;
    }
    return NULL;
}

acs_strand *acs_repeat_waits(acs_repeat *repeat, acs_op op)
{
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    acs_traced *last = trace->count ? &trace->ops[trace->count - 1] : NULL;
    acs_strand *strand = op == UINT64_MAX ? NULL : strand_with(repeat, op);
    if (strand) {
        acs_strand_cut(strand);
    } else if (last && op == UINT64_MAX) {
        last->cut_all = true;
    } else if (last) {
        acs_known *awaited = numbered(trace, op);
        last->awaited = awaited ? awaited : numbered(trace_of(repeat, repeat->passes - 1), op);
    }
    return strand;
}

/* --------------------------------------------------------------------------------------------------------- strands */

static void strands_free(acs_repeat *repeat)
{
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        free(repeat->strands[s].segments);
    free(repeat->strands);
    repeat->strands = NULL;
    repeat->strand_count = 0;
}

/* Make room for more segments of a strand's footprint. */
static bool footprint_grow(acs_strand *strand, uint32_t more)
{
    acs_segment *grown = realloc(strand->segments, (strand->segment_count + (size_t)more + 1) * sizeof *grown);
    strand->segments = grown ? grown : strand->segments;
    return grown != NULL;
}

static void footprint_add(acs_strand *strand, const acs_record *op)
{
    memcpy(strand->segments + strand->segment_count, op->segments, op->segment_count * sizeof *op->segments);
    strand->segment_count += op->segment_count;
}

static void footprint_end(acs_strand *strand)
{
    strand->segment_count = acs_footprint_join(strand->segments, strand->segment_count, &strand->first, &strand->last);
}

/* A segment and its strand. */
typedef struct owned {
    const acs_segment *segment;
    acs_strand *strand;
} owned;

/* List the segments of all strands by address. A strand with others than bytes has no ranges. NULL: no memory. */
static owned *list_owned(acs_repeat *repeat, size_t *count)
{
    *count = 0;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        *count += repeat->strands[s].segment_count;
    owned *all = malloc((*count + 1) * sizeof *all);
    size_t used = 0;
    for (uint32_t s = 0; all && s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        strand->range_count = 0;
        for (uint32_t i = 0; i < strand->segment_count; i++) {
            all[used++] = (owned){&strand->segments[i], strand};
            if (!acs_segment_has_bytes(&strand->segments[i]))
                strand->range_count = TUNE_REPEAT_RANGES + 1;
        }
    }
    return all;
}

static int by_base(const void *left, const void *right)
{
    const acs_segment *a = ((const owned *)left)->segment, *b = ((const owned *)right)->segment;
    return a->base < b->base ? -1 : a->base > b->base;
}

/* Add a segment to its strand's ranges: to the last one, or as a new one. */
static void range_add(acs_strand *strand, const acs_segment *s, bool joins)
{
    if (strand->range_count > TUNE_REPEAT_RANGES || (!joins && strand->range_count++ == TUNE_REPEAT_RANGES))
        return;
    acs_segment *range = &strand->ranges[strand->range_count - 1];
    const uint64_t end = acs_segment_end(s);
    if (!joins) {
        *range = *s;
        range->rows = 1;
        range->pitch_bytes = 0;
        range->row_bytes = 0;
    }
    range->access |= s->access;
    range->row_bytes = end - range->base > range->row_bytes ? end - range->base : range->row_bytes;
}

/* Up to where segments reach: those of one strand, and those of all others. */
typedef struct reach {
    const acs_strand *strand;
    uint64_t end, others;
} reach;

static void reach_add(reach *r, const owned *o)
{
    const uint64_t end = acs_segment_end(o->segment);
    if (o->strand != r->strand && end > r->end) {
        r->others = r->end;
        r->strand = o->strand;
    } else if (o->strand != r->strand) {
        r->others = end > r->others ? end : r->others;
    }
    r->end = end > r->end ? end : r->end;
}

/*
 * Find the ranges of all strands. A range goes on while only its strand has segments; a segment that overlaps another
 * strand's, since both only read, is a range of its own. False: no memory.
 */
static bool find_ranges(acs_repeat *repeat)
{
    size_t count;
    owned *all = list_owned(repeat, &count);
    reach r = {NULL, 0, 0};
    bool before_alone = false;
    if (!all)
        return false;
    qsort(all, count, sizeof *all, by_base);
    for (size_t i = 0; i < count; i++) {
        if (!acs_segment_has_bytes(all[i].segment))
            continue;
        const uint64_t others = all[i].strand == r.strand ? r.others : r.end;
        const bool alone = all[i].segment->base < others ||
                           (i + 1 < count && all[i + 1].strand != all[i].strand &&
                            all[i + 1].segment->base < acs_segment_end(all[i].segment));
        range_add(all[i].strand, all[i].segment,
                  !alone && !before_alone && i > 0 && all[i - 1].strand == all[i].strand);
        before_alone = alone;
        reach_add(&r, &all[i]);
    }
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        if (repeat->strands[s].range_count > TUNE_REPEAT_RANGES)
            repeat->strands[s].range_count = 0;
    free(all);
    return true;
}

/* Find the footprints of all strands. False: no memory. */
static bool find_footprints(acs_repeat *repeat, acs_known *const *list)
{
    uint32_t *segments = calloc(repeat->strand_count, sizeof *segments);
    bool found = segments != NULL;
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        segments[list[i]->strand] += list[i]->op->segment_count;
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        found = footprint_grow(&repeat->strands[s], segments[s]);
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        footprint_add(&repeat->strands[list[i]->strand], list[i]->op);
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        footprint_end(&repeat->strands[s]);
    free(segments);
    return found && find_ranges(repeat);
}

/*
 * Small strands share one, so that a fragment has TUNE_REPEAT_PIECE_LEAST ops of the TUNE_REPEAT_SPAN that it may take
 * from the program's order. `joined[s]` becomes the number of strand s.
 */
static void join_small(const uint32_t *ops, uint32_t *joined, uint32_t *strands, uint32_t least)
{
    uint32_t used = 0, filled = 0;
    for (uint32_t s = 0; s < *strands; s++) {
        if (ops[s] < least) {
            filled += ops[s];
            joined[s] = used;
            used += filled >= least;
            filled = filled >= least ? 0 : filled;
        } else {
            used += filled > 0;
            joined[s] = used++;
            filled = 0;
        }
    }
    *strands = used + 1; /* the last one may have no ops */
}

/* All known ops, listed. */
static acs_known **list_known(const acs_repeat *repeat)
{
    acs_known **list = malloc((repeat->known_count + 1) * sizeof *list);
    uint32_t count = 0;
    for (uint32_t i = 0; list && repeat->index && i <= repeat->index_mask; i++)
        for (acs_known *known = repeat->index[i]; known; known = known->same)
            list[count++] = known;
    return list;
}

static bool number_strands(acs_repeat *repeat, acs_known *const *list)
{
    const acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    const uint32_t spans = (trace->count + TUNE_REPEAT_SPAN - 1) / TUNE_REPEAT_SPAN;
    const uint32_t least = TUNE_REPEAT_PIECE_LEAST * (spans > 0 ? spans : 1);
    uint32_t *ops = calloc(repeat->known_count + 1, sizeof *ops), *joined = calloc(repeat->known_count + 1, sizeof *joined);
    const bool numbers = ops && joined && acs_strands_find(list, repeat->known_count, &repeat->strand_count);
    for (uint32_t i = 0; numbers && i < trace->count; i++)
        ops[trace->ops[i].op->strand]++;
    if (numbers)
        join_small(ops, joined, &repeat->strand_count, least);
    for (uint32_t i = 0; numbers && i < repeat->known_count; i++)
        list[i]->strand = joined[list[i]->strand];
    free(ops);
    free(joined);
    return numbers;
}

static bool find_strands(acs_repeat *repeat)
{
    acs_known **list = list_known(repeat);
    strands_free(repeat);
    bool found = list && number_strands(repeat, list);
    repeat->strands = found ? calloc(repeat->strand_count, sizeof *repeat->strands) : NULL;
    found = repeat->strands != NULL;
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        repeat->strands[s] = (acs_strand){.repeat = repeat, .first = UINT64_MAX};
    found = found && find_footprints(repeat, list);
    for (uint32_t i = 0; !found && list && i < repeat->known_count; i++)
        list[i]->strand = ACS_STRAND_NONE;
    if (!found)
        strands_free(repeat);
    free(list);
    return found;
}

/* Give a new op the only strand that it conflicts with. False: there is none, or several, or no memory. */
static bool join_strand(acs_repeat *repeat, acs_known *known)
{
    acs_strand *only = NULL;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (!acs_segments_conflict(strand->segments, strand->segment_count, known->op->segments,
                                   known->op->segment_count))
            continue;
        if (only)
            return false;
        only = strand;
    }
    if (!only || !footprint_grow(only, known->op->segment_count))
        return false;
    footprint_add(only, known->op);
    footprint_end(only);
    known->strand = (uint32_t)(only - repeat->strands);
    return true;
}

/* Every op of the pass gets a strand. */
static bool complete_strands(acs_repeat *repeat)
{
    const acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    bool joined = false;
    for (uint32_t i = 0; i < trace->count; i++) {
        if (trace->ops[i].op->strand != ACS_STRAND_NONE)
            continue;
        if (!join_strand(repeat, trace->ops[i].op))
            return find_strands(repeat);
        joined = true;
    }
    return !joined || find_ranges(repeat);
}

/* ------------------------------------------------------------------------------------------------------- fragments */

/* A strand's ops in the pass. */
typedef struct sequence {
    acs_known **ops;
    uint32_t count;
} sequence;

/* A fragment was seen. Returns whether it had been seen before. */
static bool see(acs_repeat *repeat, sequence s, uint32_t times)
{
    acs_node *node = acs_node_get(repeat, s.ops, s.count);
    if (!node)
        return false;
    const bool known = node->seen > 0;
    node->seen += times;
    if (node->seen < 2 || node->own || acs_node_activate(repeat, node))
        return known;
    node->seen = 0; /* too large: two halves take its place */
    if (s.count > 1) {
        (void)see(repeat, (sequence){s.ops, s.count / 2}, 2);
        (void)see(repeat, (sequence){s.ops + s.count / 2, s.count - s.count / 2}, 2);
    }
    return known;
}

/* Set `cut` of the ops of the trace behind which their strands' fragments end. */
static void place_cuts(acs_repeat *repeat, acs_pass_trace *trace, uint32_t *latest)
{
    memset(latest, 0xff, repeat->strand_count * sizeof *latest);
    for (uint32_t i = 0; i < trace->count; i++) {
        acs_traced *t = &trace->ops[i];
        latest[t->op->strand] = i;
        for (uint32_t s = 0; t->cut_all && s < repeat->strand_count; s++)
            if (latest[s] != UINT32_MAX)
                trace->ops[latest[s]].cut = true;
        /* an op of the pass before has no strand if there was no memory then */
        if (t->awaited && t->awaited->strand != ACS_STRAND_NONE && latest[t->awaited->strand] != UINT32_MAX)
            trace->ops[latest[t->awaited->strand]].cut = true;
    }
}

/* Learn from one strand's ops, whose places in the trace are listed. */
static bool learn_strand(acs_repeat *repeat, const acs_pass_trace *trace, const uint32_t *at, uint32_t count,
                         uint32_t most)
{
    acs_known *ops[ACS_REPLAY_OPS];
    bool recurred = false;
    for (uint32_t first = 0, end = 0; first < count; first = end) {
        do {
            ops[end - first] = trace->ops[at[end]].op;
            end++;
        } while (end < count && end - first < most && !trace->ops[at[end - 1]].cut &&
                 at[end] - at[first] < TUNE_REPEAT_SPAN);
        recurred |= see(repeat, (sequence){ops, end - first}, 1);
    }
    return recurred;
}

/* Learn from the pass. Returns whether something recurred. */
static bool learn(acs_repeat *repeat, uint32_t most)
{
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    uint32_t *first = NULL, *at = NULL, *latest = NULL;
    bool recurred = false;
    if (!complete_strands(repeat))
        return false;
    first = calloc(repeat->strand_count + 1, sizeof *first);
    latest = calloc(repeat->strand_count + 1, sizeof *latest);
    at = calloc(trace->count + 1, sizeof *at);
    if (first && at && latest) {
        place_cuts(repeat, trace, latest);
        for (uint32_t i = 0; i < trace->count; i++) /* sort by strand, in program order */
            first[trace->ops[i].op->strand + 1]++;
        for (uint32_t s = 0; s < repeat->strand_count; s++)
            first[s + 1] += first[s];
        for (uint32_t i = 0; i < trace->count; i++)
            at[first[trace->ops[i].op->strand]++] = i;
        for (uint32_t s = 0, from = 0; s < repeat->strand_count; from = first[s++])
            recurred |= learn_strand(repeat, trace, at + from, first[s] - from, most);
    }
    free(first);
    free(at);
    free(latest);
    return recurred;
}

/* ---------------------------------------------------------------------------------------------------------- passes */

static bool all_free(const acs_repeat *repeat)
{
    acs_piece *piece;
    LL_FOREACH (repeat->pieces, piece)
        for (uint32_t i = 0; i < piece->made; i++)
            if (!acs_replay_is_free(piece->replays[i]))
                return false;
    return true;
}

static bool is_full(const acs_repeat *repeat, uint32_t part)
{
    return repeat->known_count >= TUNE_REPEAT_OPS / part || repeat->node_count >= TUNE_REPEAT_NODES / part;
}

/* Make room: forget what did not recur, and all if that is not enough. */
static void forget_some(acs_repeat *repeat)
{
    acs_nodes_forget(repeat, false);
    if (is_full(repeat, 2) && all_free(repeat))
        acs_nodes_forget(repeat, true);
    acs_known_drop(repeat, false);
    repeat->trace[0].count = repeat->trace[1].count = 0;
}

void acs_repeat_pass_begin(acs_repeat *repeat, acs_op before)
{
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    repeat->last = NULL;
    repeat->turns = repeat->missed = repeat->cuts = 0;
    trace->count = 0;
    trace->before = before;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        repeat->strands[s].traced = 0;
}

void acs_repeat_pass_end(acs_repeat *repeat, uint32_t most)
{
    if (repeat->missed || repeat->cuts) {
        if (!learns(repeat)) {
            repeat->rested++;
        } else {
            const bool recurs = learn(repeat, most);
            const uint64_t longer = 2 * repeat->rests + 1;
            repeat->rests = recurs || repeat->passes < TUNE_REPEAT_TRIES ? 0
                            : longer > TUNE_REPEAT_RESTS_MOST           ? TUNE_REPEAT_RESTS_MOST
                                                                        : longer;
            repeat->rested = 0;
        }
    }
    repeat->passes++;
    if (is_full(repeat, 1))
        forget_some(repeat);
}

void acs_repeat_destroy(acs_repeat *repeat)
{
    acs_nodes_forget(repeat, true);
    acs_known_drop(repeat, true);
    strands_free(repeat);
    for (int i = 0; i < 2; i++)
        free(repeat->trace[i].ops);
    free(repeat->index);
    free(repeat);
}
