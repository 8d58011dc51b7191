/*
 * The list of a repeat's ops, learnt from its passes (repeat.h). An op that a pass queues the usual way becomes a
 * candidate, behind the op of the pass that it has to follow. So the candidates are in an order that all passes kept,
 * as far as it matters. Candidates that recur become the list: strands, each cut into pieces. Called by match.c and
 * repeat.c under the lock; never queues anything.
 *
 * A list costs its graphs, 10 to 30 us an op. So the first is made once half of a pass recurs. It is made anew by the
 * ski-rental rule: once the ops that recurred beside it have cost as much as the new pieces' graphs will. Pieces that
 * stay the same keep their graphs.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ----------------------------------------------------------------------------------------------------- a pass's ops */

static acs_pass_trace *trace_of(acs_repeat *repeat, uint64_t pass)
{
    return &repeat->trace[pass % 2];
}

static void trace_add(acs_repeat *repeat, acs_candidate *c)
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
    trace->ops[trace->count++] = (acs_traced){c, repeat->turns};
}

/* The pass queues this known op next. */
void acs_repeat_queued(acs_repeat *repeat, acs_candidate *c)
{
    acs_candidate **before = repeat->last ? &repeat->last->follower : &repeat->first;
    if (*before != c)
        *before = c;
    repeat->last = c;
    c->taken = repeat->passes;
    trace_add(repeat, c);
    repeat->turns++;
}

/* The latest op of the pass that the op conflicts with; NULL: none of the last TUNE_REPEAT_BACK. */
static acs_candidate *latest_before(acs_repeat *repeat, const acs_record *op)
{
    const acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    const uint32_t least = trace->count > TUNE_REPEAT_BACK ? trace->count - TUNE_REPEAT_BACK : 0;
    for (uint32_t i = trace->count; i-- > least;)
        if (acs_records_conflict(trace->ops[i].op->op, op))
            return trace->ops[i].op;
    return NULL;
}

/*
 * The candidate behind which a new one belongs: the last one of its strand that the pass has queued. The strand is that
 * of an op that it conflicts with; where there is none, it comes behind the op before it.
 */
static acs_candidate *place_of(acs_repeat *repeat, const acs_record *op)
{
    acs_candidate *behind = latest_before(repeat, op);
    if (!behind)
        behind = repeat->last;
    const acs_strand *strand = behind && behind->piece ? behind->piece->strand : NULL;
    acs_candidate *c = behind ? behind->next : NULL;
    bool taken = true; /* all between */
    for (uint32_t i = 0; c && i < TUNE_REPEAT_BACK; i++, c = c->next) {
        taken &= c->taken == repeat->passes;
        if (taken || (c->taken == repeat->passes && strand && c->piece && c->piece->strand == strand))
            behind = c;
    }
    return behind;
}

/* The candidate that the op is, among those that are not in the list and that this pass has not queued yet. */
static acs_candidate *recurring(const acs_repeat *repeat, const acs_record *op)
{
    const uint32_t tag = acs_known_op_tag(op);
    acs_candidate *c = acs_candidate_first(repeat, tag);
    while (c && (c->tag != tag || c->piece || c->taken == repeat->passes || !acs_known_op_equals(c->op, op)))
        c = c->same;
    return c;
}

/* A piece must be made anew for the op behind this candidate. */
static void count_new(acs_repeat *repeat, const acs_candidate *behind)
{
    repeat->renew_ops += 1 + (behind && behind->piece ? behind->piece->shape->ops : 0);
}

void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op)
{
    if (op->kind != ACS_KIND_KERNEL || !op->type || op->any) {
        repeat->turns++;
        return;
    }
    repeat->queued++;
    acs_candidate *c = recurring(repeat, op);
    if (c) {
        repeat->recurred++;
        repeat->lost_ns += TUNE_COST_LAUNCH_NS;
        if (++c->seen == 2)
            count_new(repeat, c == repeat->candidates ? NULL : c->prev);
    } else {
        acs_candidate *behind = repeat->passes == 1 ? repeat->last : place_of(repeat, op);
        c = acs_candidate_add(repeat, op, behind);
        if (c)
            c->seen = 1;
    }
    if (c)
        acs_repeat_queued(repeat, c);
    else
        repeat->turns++;
}

/* The op of a pass that has this number, if all ops of the pass were its own; NULL: none. */
static acs_candidate *numbered(const acs_pass_trace *trace, acs_op op)
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

/* The strand of the awaited op should be cut here. */
static void cut_listed(acs_repeat *repeat, acs_op op)
{
    acs_piece *piece;
    LL_FOREACH (repeat->pieces, piece) {
        if (op - piece->number >= piece->shape->ops || !piece->number)
            continue;
        if (piece->strand->open)
            acs_repeat_cut(piece->strand->open);
        return;
    }
}

void acs_repeat_waits(acs_repeat *repeat, acs_op op)
{
    if (repeat->matches && op != UINT64_MAX) {
        cut_listed(repeat, op);
        return;
    }
    if (repeat->matches || !repeat->last)
        return;
    acs_candidate *awaited = numbered(trace_of(repeat, repeat->passes), op);
    if (!awaited)
        awaited = numbered(trace_of(repeat, repeat->passes - 1), op);
    repeat->last->awaited = awaited;
    repeat->last->cut_all |= op == UINT64_MAX;
}

/* ----------------------------------------------------------------------------------------------------------- lists */

/* What a new list is made of. */
typedef struct draft_list {
    acs_candidate **ops; /* in program order */
    uint32_t *strand;    /* by op */
    acs_candidate **latest; /* by strand */
    uint32_t count, strands;
    acs_piece *pieces;
} draft_list;

static void draft_free(draft_list *d)
{
    free(d->ops);
    free(d->strand);
    free(d->latest);
}

static bool draft_begin(const acs_repeat *repeat, draft_list *d)
{
    acs_candidate *c;
    d->ops = calloc(repeat->candidate_count, sizeof(acs_candidate *));
    d->strand = calloc(repeat->candidate_count, sizeof *d->strand);
    d->latest = calloc(repeat->candidate_count, sizeof(acs_candidate *));
    if (!d->ops || !d->strand || !d->latest)
        return false;
    DL_FOREACH (repeat->candidates, c)
        d->ops[d->count++] = c;
    return acs_strands_find(d->ops, d->count, d->strand, &d->strands);
}

/*
 * Small strands share one, so that a piece has TUNE_REPEAT_PIECE_LEAST ops of the `span` that it may take from the
 * program's order.
 */
static bool join_small(draft_list *d, uint32_t span)
{
    uint32_t *ops = calloc(d->strands, sizeof *ops), *joined = calloc(d->strands, sizeof *joined);
    const uint32_t least = d->count > span ? (uint32_t)((uint64_t)TUNE_REPEAT_PIECE_LEAST * d->count / span)
                                           : TUNE_REPEAT_PIECE_LEAST;
    uint32_t used = 0, filled = 0;
    for (uint32_t i = 0; ops && joined && i < d->count; i++)
        ops[d->strand[i]]++;
    for (uint32_t s = 0; ops && joined && s < d->strands; s++) {
        if (ops[s] < least && filled + ops[s] > 0) {
            filled += ops[s];
            joined[s] = used;
            used += filled >= least;
            filled = filled >= least ? 0 : filled;
        } else {
            joined[s] = used + (filled > 0);
            used += 1 + (filled > 0);
            filled = 0;
        }
    }
    for (uint32_t i = 0; ops && joined && i < d->count; i++)
        d->strand[i] = joined[d->strand[i]];
    d->strands = used + (filled > 0);
    const bool done = ops && joined;
    free(ops);
    free(joined);
    return done;
}

/* Cut the strands of awaited ops where the waits came. */
static void place_cuts(draft_list *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        d->ops[i]->index = i;
    for (uint32_t i = 0; i < d->count; i++) {
        acs_candidate *c = d->ops[i];
        d->latest[d->strand[i]] = c;
        for (uint32_t s = 0; c->cut_all && s < d->strands; s++)
            if (d->latest[s])
                d->latest[s]->cut = true;
        if (c->awaited && d->latest[d->strand[c->awaited->index]])
            d->latest[d->strand[c->awaited->index]]->cut = true;
        c->cut_all = false;
        c->awaited = NULL;
    }
}

/* The piece of the present list that has exactly these ops; NULL: none. */
static acs_piece *same_piece(acs_candidate *const *ops, uint32_t count)
{
    acs_piece *piece = ops[0]->piece;
    if (!piece || piece->kept || piece->shape->ops != count ||
        memcmp(piece->ops, ops, count * sizeof(acs_candidate *)) != 0)
        return NULL;
    return piece;
}

/* Where a piece is: its strand, and the place of its first op there. */
typedef struct piece_place {
    acs_strand *strand;
    uint32_t first;
} piece_place;

/* Add pieces for these ops, smaller ones where they have too many edges or segments. */
static bool add_pieces(acs_repeat *repeat, draft_list *d, acs_candidate *const *ops, uint32_t count, piece_place place)
{
    const piece_place second = {place.strand, place.first + count / 2};
    acs_piece *piece = same_piece(ops, count);
    if (piece) {
        LL_DELETE(repeat->pieces, piece);
        piece->kept = true;
    } else {
        piece = acs_piece_create(repeat, ops, count);
    }
    if (!piece)
        return count > 1 && add_pieces(repeat, d, ops, count / 2, place) &&
               add_pieces(repeat, d, ops + count / 2, count - count / 2, second);
    piece->strand = place.strand;
    piece->first = place.first;
    LL_PREPEND(d->pieces, piece);
    return true;
}

/* A strand's ops. */
typedef struct strand_ops {
    acs_candidate **list;
    uint32_t count;
} strand_ops;

/* Cut one strand's ops into pieces. */
static bool cut_strand(acs_repeat *repeat, draft_list *d, acs_strand *strand, strand_ops own, uint32_t span)
{
    acs_candidate **const ops = own.list;
    for (uint32_t first = 0, end = 0; first < own.count; first = end) {
        do
            end++;
        while (end < own.count && end - first < ACS_REPLAY_OPS && !ops[end - 1]->cut &&
               ops[end]->index - ops[first]->index < span);
        if (!add_pieces(repeat, d, ops + first, end - first, (piece_place){strand, first}))
            return false;
    }
    return true;
}

static bool make_pieces(acs_repeat *repeat, draft_list *d, acs_strand *strands, uint32_t span)
{
    acs_candidate **own = calloc(d->count, sizeof(acs_candidate *));
    uint32_t *first = calloc(d->strands + 1, sizeof *first);
    bool made = own && first;
    for (uint32_t i = 0; made && i < d->count; i++) /* sort by strand, in program order */
        first[d->strand[i] + 1]++;
    for (uint32_t s = 0; made && s < d->strands; s++)
        first[s + 1] += first[s];
    for (uint32_t i = 0; made && i < d->count; i++)
        own[first[d->strand[i]]++] = d->ops[i];
    for (uint32_t s = 0, from = 0; made && s < d->strands; from = first[s++])
        made = cut_strand(repeat, d, &strands[s], (strand_ops){own + from, first[s] - from}, span);
    free(own);
    free(first);
    return made;
}

/* Older pieces are destroyed once their replays have ended. */
static void retire(acs_repeat *repeat, acs_piece *pieces)
{
    acs_piece *piece, *next;
    LL_FOREACH_SAFE (pieces, piece, next) {
        for (uint32_t at = 0; at < piece->shape->ops; at++)
            if (piece->ops[at]->piece == piece)
                piece->ops[at]->piece = NULL;
        LL_PREPEND(repeat->retired, piece);
    }
}

static void drop_retired(acs_repeat *repeat)
{
    acs_piece *piece, *next;
    LL_FOREACH_SAFE (repeat->retired, piece, next)
        if (acs_piece_is_free(piece)) {
            LL_DELETE(repeat->retired, piece);
            acs_piece_destroy(piece);
        }
}

/* The draft's pieces become the list. */
static void install(acs_repeat *repeat, draft_list *d, acs_strand *strands)
{
    acs_piece *piece;
    retire(repeat, repeat->pieces);
    free(repeat->strands);
    repeat->strands = strands;
    repeat->strand_count = d->strands;
    repeat->pieces = d->pieces;
    LL_FOREACH (repeat->pieces, piece) {
        piece->kept = false;
        memset(piece->used, 0, sizeof piece->used);
        for (uint32_t at = 0; at < piece->shape->ops; at++) {
            piece->ops[at]->piece = piece;
            piece->ops[at]->at = at;
            piece->ops[at]->seen = 0;
        }
    }
}

static bool was_used(const acs_candidate *c)
{
    return c->piece->used[c->at / 64] >> c->at % 64 & 1;
}

/* Drop the candidates that did not recur: those of the list that were not used, and others seen less often. */
static void prune(acs_repeat *repeat, uint32_t seen_least)
{
    acs_candidate *c, *next;
    DL_FOREACH_SAFE (repeat->candidates, c, next)
        c->index = c->piece ? was_used(c) : c->seen >= seen_least; /* whether it stays */
    DL_FOREACH (repeat->candidates, c) {
        if (c->follower && !c->follower->index)
            c->follower = NULL;
        if (c->awaited && !c->awaited->index)
            c->awaited = NULL;
    }
    if (repeat->first && !repeat->first->index)
        repeat->first = NULL;
    DL_FOREACH_SAFE (repeat->candidates, c, next)
        if (!c->index)
            acs_candidate_drop(repeat, c);
    repeat->trace[0].count = repeat->trace[1].count = 0;
}

static void forget_all(acs_repeat *repeat)
{
    retire(repeat, repeat->pieces);
    repeat->pieces = NULL;
    repeat->matches = false;
    prune(repeat, UINT32_MAX);
    repeat->lost_ns = repeat->renew_ops = 0;
}

static void renew(acs_repeat *repeat, uint32_t span)
{
    draft_list d = {NULL, NULL, NULL, 0, 0, NULL};
    acs_strand *strands = NULL;
    bool made = repeat->candidate_count >= TUNE_REPEAT_LEAST && draft_begin(repeat, &d) && join_small(&d, span);
    if (made) {
        place_cuts(&d);
        strands = calloc(d.strands, sizeof *strands);
        made = strands && make_pieces(repeat, &d, strands, span);
    }
    repeat->lost_ns = repeat->renew_ops = 0;
    repeat->matches = made;
    if (made) {
        install(repeat, &d, strands);
    } else {
        free(strands);
        retire(repeat, d.pieces);
        forget_all(repeat);
    }
    draft_free(&d);
}

/* ---------------------------------------------------------------------------------------------------------- passes */

void acs_repeat_pass_begin(acs_repeat *repeat, acs_op before)
{
    acs_pass_trace *trace = trace_of(repeat, repeat->passes);
    repeat->last = NULL;
    repeat->turns = repeat->queued = repeat->recurred = 0;
    trace->count = 0;
    trace->before = before;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        repeat->strands[s] = (acs_strand){0, NULL};
}

void acs_repeat_pass_end(acs_repeat *repeat, uint32_t span)
{
    repeat->passes++;
    drop_retired(repeat);
    if (!repeat->matches && repeat->recurred > 0 && 2 * repeat->recurred >= repeat->queued) {
        renew(repeat, span);
    } else if (repeat->matches && repeat->renew_ops &&
               repeat->lost_ns >= (uint64_t)repeat->renew_ops * TUNE_COST_BUILD_NS) {
        prune(repeat, 2);
        renew(repeat, span);
    } else if (repeat->candidate_count == TUNE_REPEAT_OPS) {
        if (repeat->matches)
            prune(repeat, UINT32_MAX);
        else
            forget_all(repeat);
    }
}

void acs_repeat_destroy(acs_repeat *repeat)
{
    acs_piece *piece, *next;
    forget_all(repeat);
    LL_FOREACH_SAFE (repeat->retired, piece, next)
        acs_piece_destroy(piece);
    for (int i = 0; i < 2; i++)
        free(repeat->trace[i].ops);
    free(repeat->strands);
    free(repeat->index);
    free(repeat);
}
