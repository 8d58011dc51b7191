/*
 * Pieces, learnt from passes (repeat.h). A pass is taken apart into its strands, and these into fragments: they end
 * where the pass waited for an op of the strand, or queued an op that no replay may pass, and where they would be too
 * long. For each fragment there is a piece in the end that covers its ops, of those that were queued before. Called by
 * passes.c under the lock; never queues anything.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* --------------------------------------------------------------------------------------------------------- strands */

static void strands_free(acs_repeat *repeat)
{
    for (uint32_t s = 0; repeat->strands && s < repeat->strand_count; s++) {
        free(repeat->strands[s].segments);
        free(repeat->strands[s].view);
    }
    free(repeat->strands);
    repeat->strands = NULL;
    repeat->strand_count = 0;
}

/* No op has a strand: none is replayed until strands are found again. */
static void drop_strands(acs_repeat *repeat)
{
    for (uint32_t i = 0; repeat->index && i <= repeat->index_mask; i++)
        for (acs_known *known = repeat->index[i]; known; known = known->same)
            known->strand = ACS_STRAND_NONE;
    strands_free(repeat);
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
    const acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
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

static void number_one(acs_repeat *repeat, acs_known *const *list)
{
    repeat->strand_count = 1;
    for (uint32_t i = 0; i < repeat->known_count; i++)
        list[i]->strand = 0;
}

/* Which strands the known ops have. */
typedef enum numbering {
    NUMBERS_FOUND, /* by the memory that they share */
    NUMBERS_ONE,   /* all the same */
    NUMBERS_KEPT   /* those that they have; some may have none */
} numbering;

static bool number(acs_repeat *repeat, acs_known *const *list, numbering how)
{
    if (how == NUMBERS_ONE)
        number_one(repeat, list);
    if (how != NUMBERS_KEPT)
        repeat->strands_ops = acs_repeat_trace(repeat, repeat->passes)->count;
    return how != NUMBERS_FOUND || number_strands(repeat, list);
}

/* Make the strands, with footprints of the known ops. False: no memory; there are none then. */
static bool make_strands(acs_repeat *repeat, numbering how)
{
    acs_known **list = list_known(repeat);
    const uint32_t count = repeat->strand_count;
    if (!list)
        return false;
    strands_free(repeat);
    repeat->strand_count = count;
    bool found = number(repeat, list, how);
    repeat->strands = found ? calloc(repeat->strand_count, sizeof *repeat->strands) : NULL;
    found = repeat->strands != NULL;
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        repeat->strands[s] = (acs_strand){.repeat = repeat, .first = UINT64_MAX};
    found = found && acs_footprints_find(repeat, list) && acs_views_find(repeat);
    if (found)
        acs_pieces_to_strands(repeat);
    else
        drop_strands(repeat);
    free(list);
    return found;
}

/*
 * Ops of a strand of which the window sees all memory would wait for the replays of all others, so it is the only one
 * then (RPT-4).
 */
static bool renew_strands(acs_repeat *repeat, numbering how)
{
    return make_strands(repeat, how) && (!repeat->wide || repeat->strand_count == 1 || make_strands(repeat, NUMBERS_ONE));
}

/* Give a new op the only strand that it conflicts with. False: there is none, or several, or no memory. */
static bool join_strand(acs_repeat *repeat, acs_known *known)
{
    acs_strand *only = NULL;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (!acs_footprint_conflicts(strand, known->op))
            continue;
        if (only)
            return false;
        only = strand;
    }
    if (!only || !acs_footprint_add(only, known->op))
        return false;
    known->strand = (uint32_t)(only - repeat->strands);
    return true;
}

/* Every op of the pass gets a strand. In a short pass more of them share strands, so a long one finds them anew. */
static bool complete_strands(acs_repeat *repeat)
{
    const acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    bool joined = false;
    if (trace->count >= 2 * repeat->strands_ops)
        return renew_strands(repeat, NUMBERS_FOUND);
    for (uint32_t i = 0; i < trace->count; i++) {
        if (trace->ops[i].op->strand != ACS_STRAND_NONE)
            continue;
        if (!join_strand(repeat, trace->ops[i].op))
            return renew_strands(repeat, NUMBERS_FOUND);
        joined = true;
    }
    if (joined && !acs_views_find(repeat)) {
        drop_strands(repeat);
        return false;
    }
    return !joined || !repeat->wide || repeat->strand_count == 1 || renew_strands(repeat, NUMBERS_FOUND);
}

/* ------------------------------------------------------------------------------------------------------- fragments */

/* Ops that a strand queued from one cut to the next. */
typedef struct sequence {
    acs_known *ops[ACS_REPLAY_OPS];
    uint32_t count;
    acs_filter filter;
} sequence;

static void sequence_set(sequence *s, acs_known *const *ops, uint32_t count)
{
    memmove(s->ops, ops, count * sizeof(acs_known *));
    s->count = count;
    s->filter = (acs_filter){{0}};
    for (uint32_t i = 0; i < count; i++)
        acs_filter_add(&s->filter, ops[i]);
}

/* Of the joined ops those vary that vary in the piece, or are in one sequence only. */
static void set_varies(acs_piece *to, const acs_joined *joined, const acs_piece *from)
{
    for (uint32_t at = 0; at < to->shape->ops; at++) {
        const uint32_t a = joined[at].a;
        const bool one = a == ACS_REPLAY_OPS || joined[at].b == ACS_REPLAY_OPS;
        to->varies[at / 64] |= (uint64_t)(one || (from->varies[a / 64] >> a % 64 & 1)) << at % 64;
    }
}

/* How long a piece may become that covers the sequence, too: else most of it would be left out. */
static uint32_t longest(const acs_piece *piece, const sequence *s, uint32_t most)
{
    const uint32_t least = s->count < piece->least ? s->count : piece->least;
    return least * TUNE_REPEAT_UNUSED < most ? least * TUNE_REPEAT_UNUSED : most;
}

/* Replace the piece by one that covers the sequence, too. NULL: it would become too long. */
static acs_piece *extend(acs_repeat *repeat, acs_piece *piece, const sequence *s, uint32_t most)
{
    acs_joined joined[ACS_REPLAY_OPS];
    acs_known *ops[ACS_REPLAY_OPS];
    const uint32_t least = s->count < piece->least ? s->count : piece->least;
    const uint32_t count =
        acs_sequences_join(piece->ops, piece->shape->ops, s->ops, s->count, joined, longest(piece, s, most));
    for (uint32_t at = 0; at < count; at++)
        ops[at] = joined[at].op;
    acs_piece *extended = count ? acs_piece_make(repeat, ops, count, least) : NULL;
    if (!extended)
        return NULL;
    set_varies(extended, joined, piece);
    acs_piece_drop(repeat, piece, extended);
    return extended;
}

/* The shortest piece that covers the sequence and fits it; NULL: there is none. */
static acs_piece *covering(acs_repeat *repeat, const sequence *s)
{
    acs_piece *piece, *best = NULL;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->ops[i]->refs)
            return NULL; /* no piece has this op */
    LL_FOREACH2 (repeat->strands[s->ops[0]->strand].pieces, piece, of_next) {
        const uint32_t ops = piece->shape->ops;
        const bool fits = ops >= s->count && ops <= s->count * TUNE_REPEAT_UNUSED;
        if (fits && (!best || ops < best->shape->ops) && acs_filter_has_all(&piece->filter, &s->filter) &&
            acs_sequence_covers(piece->ops, ops, s->ops, s->count))
            best = piece;
    }
    return best;
}

/* Of the pieces of the sequence's ops the one that has most of them, and may be extended; NULL: there is none. */
static acs_piece *nearest(acs_repeat *repeat, const sequence *s, uint32_t most)
{
    acs_piece *best = NULL;
    uint32_t best_ops = 0;
    const uint32_t stamp = ++repeat->stamps;
    for (uint32_t i = 0; i < s->count; i++)
        s->ops[i]->stamp = stamp;
    for (uint32_t i = 0; i < s->count; i++) {
        acs_piece *piece = s->ops[i]->piece;
        uint32_t ops = 0;
        if (!piece || piece->stamp == stamp)
            continue;
        piece->stamp = stamp;
        for (uint32_t at = 0; at < piece->shape->ops; at++)
            ops += piece->ops[at]->stamp == stamp;
        if (ops <= best_ops || piece->shape->ops + s->count - ops > longest(piece, s, most))
            continue;
        best = piece;
        best_ops = ops;
    }
    return best;
}

/* Of the fragments that begin with the same op, the longest one of a pass decides which piece is begun. */
static void begin_with(acs_repeat *repeat, const sequence *s, acs_piece *piece)
{
    acs_known *first = s->ops[0];
    const uint32_t pass = (uint32_t)repeat->passes;
    if (first->begun_pass == pass && first->begun_ops >= s->count)
        return;
    first->begun_pass = pass;
    first->begun_ops = s->count;
    first->piece = piece;
}

/* A piece that covers the sequence; if need be one is made. NULL: it is too large for one, or no memory. */
static acs_piece *piece_for(acs_repeat *repeat, const sequence *s, uint32_t most)
{
    acs_piece *piece = covering(repeat, s), *made;
    if (piece && (!piece->wastes || piece->shape->ops == s->count))
        return piece;
    if (piece)
        piece->wastes = false;
    acs_piece *near = piece ? NULL : nearest(repeat, s, most);
    made = near ? extend(repeat, near, s, most) : NULL;
    made = made ? made : acs_piece_make(repeat, s->ops, s->count, s->count);
    return made ? made : piece;
}

/* See that pieces cover the sequence: one, or if it is too large one for each half. */
static void cover(acs_repeat *repeat, const sequence *s, uint32_t most)
{
    acs_piece *piece = piece_for(repeat, s, most);
    if (piece) {
        begin_with(repeat, s, piece);
        return;
    }
    const uint32_t first = s->count / 2;
    sequence half;
    if (!first)
        return;
    sequence_set(&half, s->ops, first);
    cover(repeat, &half, most);
    sequence_set(&half, s->ops + first, s->count - first);
    cover(repeat, &half, most);
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

/* A strand's ops in the trace, by their places. */
typedef struct strand_ops {
    const acs_pass_trace *trace;
    const uint32_t *at;
    uint32_t count, most; /* most ops of a fragment */
} strand_ops;

/* Where the fragment ends that begins with the strand's op `first`. */
static uint32_t fragment_end(const strand_ops *o, uint32_t first)
{
    uint32_t end = first;
    do
        end++;
    while (end < o->count && end - first < o->most && !o->trace->ops[o->at[end - 1]].cut &&
           o->at[end] - o->at[first] < TUNE_REPEAT_SPAN);
    return end;
}

static bool has_cut(const strand_ops *o)
{
    bool cut = false;
    for (uint32_t i = 0; i < o->count; i++)
        cut |= o->trace->ops[o->at[i]].cut;
    return cut;
}

/* Learn from the strand's ops. Parts of fragments that the program itself ends are left out. */
static void learn_strand(acs_repeat *repeat, const strand_ops *o)
{
    const bool cut = has_cut(o);
    for (uint32_t i = cut && repeat->torn_begin ? fragment_end(o, 0) : 0, end; i < o->count;) {
        sequence s = {.count = 0};
        end = fragment_end(o, i);
        if (cut && repeat->torn_end && end == o->count)
            break;
        for (; i < end; i++)
            s.ops[s.count++] = o->trace->ops[o->at[i]].op;
        sequence_set(&s, s.ops, s.count);
        if (s.count >= TUNE_BUNDLE_LEAST) /* fewer are cheaper launched one by one */
            cover(repeat, &s, o->most);
    }
}

static void learn(acs_repeat *repeat, uint32_t most)
{
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    uint32_t *first = NULL, *at = NULL, *latest = NULL;
    if (!complete_strands(repeat))
        return;
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
        for (uint32_t i = 0; i < trace->count; i++)
            repeat->strands[trace->ops[i].op->strand].learns |= trace->ops[i].missed;
        for (uint32_t s = 0, from = 0; s < repeat->strand_count; from = first[s++]) {
            if (repeat->strands[s].learns || repeat->renews)
                learn_strand(repeat, &(strand_ops){trace, at + from, first[s] - from, most});
            repeat->strands[s].learns = false;
            acs_piece *piece;
            LL_FOREACH2 (repeat->strands[s].pieces, piece, of_next)
                piece->wastes = false;
        }
    }
    free(first);
    free(at);
    free(latest);
}

/* ---------------------------------------------------------------------------------------------------------- passes */

static void drop_pieces(acs_repeat *repeat)
{
    while (repeat->pieces)
        acs_piece_drop(repeat, repeat->pieces, NULL);
}

/* Forget ops that no piece has and that this pass did not have; with `latest` those, too. With `pieces` all pieces. */
static void forget(acs_repeat *repeat, bool pieces, bool latest)
{
    if (pieces) {
        drop_pieces(repeat);
        acs_pieces_sweep(repeat);
    }
    if (!acs_known_drop(repeat, repeat->passes + latest, false))
        return;
    acs_repeat_trace(repeat, repeat->passes - 1)->count = 0;
    if (latest)
        acs_repeat_trace(repeat, repeat->passes)->count = 0;
    if (!repeat->pieces)
        drop_strands(repeat); /* found anew when something is learnt */
    else
        (void)renew_strands(repeat, NUMBERS_KEPT); /* without memory: when something is learnt */
}

/* Whether all ops of the piece came in that pass, or behind it. */
static bool came_since(const acs_piece *piece, uint64_t pass)
{
    bool came = true;
    for (uint32_t at = 0; at < piece->shape->ops; at++)
        came &= (int32_t)(piece->ops[at]->last_pass - (uint32_t)pass) >= 0;
    return came;
}

/*
 * Forget ops that did not come since the last time, and pieces with such: what the program did long ago does not join
 * strands of what it does now. Strands are found anew from a pass as long as that in which they were found.
 */
static void forget_past(acs_repeat *repeat)
{
    acs_piece *piece, *next;
    LL_FOREACH_SAFE (repeat->pieces, piece, next)
        if (!came_since(piece, repeat->kept_pass))
            acs_piece_drop(repeat, piece, NULL);
    acs_pieces_sweep(repeat);
    const bool as_long = acs_repeat_trace(repeat, repeat->passes)->count >= repeat->strands_ops;
    if (acs_known_drop(repeat, repeat->kept_pass, false) && repeat->strands)
        (void)renew_strands(repeat, as_long ? NUMBERS_FOUND : NUMBERS_KEPT); /* without memory: when something is learnt */
    repeat->kept_pass = repeat->passes;
    repeat->kept_ops = 0;
}

void acs_repeat_pass_begin(acs_repeat *repeat)
{
    acs_pass_trace *trace = acs_repeat_trace(repeat, repeat->passes);
    repeat->last = NULL;
    repeat->missed = repeat->again = repeat->first = repeat->replays = repeat->replayed = repeat->differing = 0;
    repeat->misfits = false;
    trace->count = 0;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        repeat->strands[s].traced = 0;
}

/* Kernels of the pass. */
static uint32_t kernels(const acs_repeat *repeat)
{
    return repeat->replayed + repeat->missed;
}

/* Whether much of the pass came before. Else there is hardly anything to learn. */
static bool recurs(const acs_repeat *repeat)
{
    return (uint64_t)(repeat->replayed + repeat->again) * TUNE_REPEAT_PAID_PART >= kernels(repeat);
}

/* Whether much of the pass was replayed, and not one by one. Then it is worth to learn more. */
static bool paid(const acs_repeat *repeat)
{
    return repeat->replays && (uint64_t)repeat->replayed * TUNE_REPEAT_PAID_PART >= kernels(repeat) &&
           repeat->replayed >= repeat->replays * TUNE_REPEAT_PAID_LEAST;
}

/*
 * Rest for twice as long as before, in proportion to what was looked at. All is forgotten if replays were short: they cost
 * more than launches.
 */
static void rest(acs_repeat *repeat)
{
    const uint64_t longer = 2 * repeat->rests + 1;
    repeat->rests = longer > TUNE_REPEAT_RESTS_MOST ? TUNE_REPEAT_RESTS_MOST : longer;
    repeat->rest = repeat->rests * repeat->looked_ops;
    if (repeat->replayed < repeat->replays * TUNE_REPEAT_PAID_LEAST)
        forget(repeat, true, true);
}

/* The pass did not pay. It is not the first that is judged, since what one teaches is seen in those behind it. */
static void judge(acs_repeat *repeat)
{
    repeat->looked_ops += kernels(repeat);
    if (++repeat->looks < TUNE_REPEAT_TRIES)
        return;
    rest(repeat);
    repeat->looks = 0;
    repeat->looked_ops = 0;
}

/* Whether there are too many ops, or by far more than a pass has: those of past passes do not come again. */
static bool is_crowded(const acs_repeat *repeat)
{
    return repeat->known_count == TUNE_REPEAT_OPS || repeat->place_count >= 2 * TUNE_REPEAT_OPS ||
           repeat->known_count > TUNE_REPEAT_KNOWN * kernels(repeat) + TUNE_REPEAT_KNOWN_LEAST;
}

void acs_repeat_pass_end(acs_repeat *repeat, uint32_t most)
{
    const bool pays = paid(repeat);
    if (pays)
        repeat->rests = repeat->rest = repeat->looks = repeat->looked_ops = 0;
    if (repeat->renews) {
        drop_pieces(repeat);
        learn(repeat, most);
        repeat->renews = false;
    } else if (!acs_repeat_learns(repeat)) {
        repeat->rest -= kernels(repeat) < repeat->rest ? kernels(repeat) : repeat->rest;
    } else if (repeat->missed || repeat->misfits) {
        if (recurs(repeat))
            learn(repeat, most);
        if (!pays)
            judge(repeat);
    }
    acs_pieces_sweep(repeat);
    repeat->kept_ops += kernels(repeat);
    if (is_crowded(repeat))
        forget(repeat, repeat->place_count >= 2 * TUNE_REPEAT_OPS, false);
    else if (repeat->kept_ops >= TUNE_REPEAT_KEPT)
        forget_past(repeat);
    repeat->passes++;
}

void acs_repeat_destroy(acs_repeat *repeat)
{
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        if (repeat->strands[s].replay) /* a trial, of a pass that is open yet */
            acs_replay_give_back(repeat->strands[s].replay);
    drop_pieces(repeat);
    acs_pieces_sweep(repeat);
    acs_known_drop(repeat, 0, true);
    strands_free(repeat);
    acs_reasons_free(repeat);
    for (int i = 0; i < 2; i++)
        free(repeat->trace[i].ops);
    free(repeat->index);
    acs_sightings_free(&repeat->sightings);
    free(repeat);
}
