/*
 * The list of a repeat's ops, learnt from its passes (repeat.h). An op that a pass queues the usual way becomes a
 * candidate, between the ops that the pass queued before and behind it. So the candidates are a common supersequence
 * of the passes, in their order. Candidates that recur become the list. Called by repeat.c under its lock; never
 * queues anything.
 *
 * A list costs its graphs, 10 to 30 us an op. So the first is made once half of a pass recurs. It is made anew by the
 * ski-rental rule: once the ops that recurred beside it have cost as much as new graphs will.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- replays */

static void replay_destroy(acs_replay *replay)
{
    if (!replay)
        return;
    ACS_ASSERT(acs_replay_is_free(replay));
    free(replay->ops);
    free(replay->ends);
    free(replay);
}

/* Argument bytes that do not fit into a record lie behind all records. */
static size_t args_behind(const acs_record *op)
{
    return op->arg_bytes_used > ACS_INLINE_ARG_BYTES ? (op->arg_bytes_used + 15) & ~(size_t)15 : 0;
}

/* Records with room for arguments of their own; all else is the known ops'. */
static acs_record *make_records(acs_record *const *known, uint32_t count)
{
    size_t bytes = count * sizeof(acs_record);
    for (uint32_t at = 0; at < count; at++)
        bytes += args_behind(known[at]);
    acs_record *ops = aligned_alloc(ACS_CACHE_LINE, (bytes + ACS_CACHE_LINE - 1) & ~(size_t)(ACS_CACHE_LINE - 1));
    if (!ops)
        return NULL;
    unsigned char *behind = (unsigned char *)(ops + count);
    for (uint32_t at = 0; at < count; at++) {
        ops[at] = *known[at];
        ops[at].arg_bytes = args_behind(known[at]) ? behind : ops[at].inline_bytes;
        memcpy(ops[at].arg_bytes, known[at]->arg_bytes, known[at]->arg_bytes_used); /* gaps included */
        behind += args_behind(known[at]);
    }
    return ops;
}

static acs_replay *replay_make(const acs_known *known, const acs_piece *piece)
{
    acs_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    replay->shape = piece->shape;
    replay->ops = make_records(known->ops + piece->first, piece->shape->ops);
    replay->ends = calloc(piece->shape->ops, sizeof *replay->ends);
    if (replay->ops && replay->ends)
        return replay;
    replay_destroy(replay);
    return NULL;
}

acs_replay *acs_piece_replay(const acs_known *known, acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        if (acs_replay_is_free(piece->replays[i]))
            return piece->replays[i];
    acs_replay *made = piece->made < TUNE_REPEAT_REPLAYS ? replay_make(known, piece) : NULL;
    if (made)
        piece->replays[piece->made++] = made;
    return made;
}

/* ----------------------------------------------------------------------------------------------------------- lists */

static void known_destroy(acs_known *known)
{
    for (uint32_t i = 0; i < known->piece_count; i++) {
        for (uint32_t k = 0; k < known->pieces[i].made; k++)
            replay_destroy(known->pieces[i].replays[k]);
        acs_replay_shape_destroy(known->pieces[i].shape);
    }
    for (uint32_t at = 0; at < known->count; at++)
        acs_known_op_free(known->ops[at]);
    free(known->pieces);
    free(known->tags);
    free(known->ops);
    free(known);
}

static bool known_is_free(const acs_known *known)
{
    for (uint32_t i = 0; i < known->piece_count; i++)
        for (uint32_t k = 0; k < known->pieces[i].made; k++)
            if (!acs_replay_is_free(known->pieces[i].replays[k]))
                return false;
    return true;
}

/* Destroy older lists whose replays have all ended. */
static void drop_old(acs_known *known)
{
    for (acs_known **at = &known->next; *at;) {
        acs_known *old = *at;
        if (known_is_free(old)) {
            *at = old->next;
            known_destroy(old);
        } else {
            at = &old->next;
        }
    }
}

/*
 * Cut the list, which is that of the candidates, into pieces of at most `most` ops. False: no memory, or a piece has
 * too many segments or edges.
 */
static bool cut(acs_known *known, const acs_candidate *candidates, uint32_t most)
{
    uint32_t end = 0;
    for (known->piece_count = 0; end < known->count; known->piece_count++) {
        acs_piece *piece = &known->pieces[known->piece_count];
        const uint32_t first = end;
        while (end < known->count && end - first < most && (end == first || !candidates[end - 1].cut))
            end++;
        *piece = (acs_piece){.first = first};
        piece->shape = acs_replay_shape_create((const acs_record *const *)known->ops + first, end - first);
        if (!piece->shape)
            return false;
        if (piece->shape->segment_count <= TUNE_REPEAT_SEGMENTS || most == 1)
            continue;
        known->piece_count++; /* this one has a shape, too */
        return false;
    }
    return true;
}

static void uncut(acs_known *known)
{
    for (uint32_t i = 0; i < known->piece_count; i++)
        acs_replay_shape_destroy(known->pieces[i].shape);
    known->piece_count = 0;
}

/* Whether the candidate was in a replay since the list was made. */
static bool was_used(const acs_known *known, uint32_t place)
{
    const acs_piece *piece = known->pieces;
    while (place >= piece->first + piece->shape->ops)
        piece++;
    const uint32_t at = place - piece->first;
    return piece->used[at / 64] >> at % 64 & 1;
}

/* Make a list of all candidates; smaller pieces have fewer segments and edges. NULL: it cannot be made. */
static acs_known *make_known(const acs_repeat *repeat, uint32_t piece_most)
{
    acs_known *known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    known->ops = calloc(repeat->candidate_count, sizeof *known->ops);
    known->pieces = calloc(repeat->candidate_count, sizeof *known->pieces);
    known->tags = calloc(repeat->candidate_count, sizeof *known->tags);
    while (known->ops && known->tags && known->count < repeat->candidate_count &&
           (known->ops[known->count] = acs_known_op_copy(repeat->candidates[known->count].op))) {
        known->tags[known->count] = repeat->candidates[known->count].tag;
        known->count++;
    }
    bool made = false;
    for (uint32_t most = piece_most; known->count == repeat->candidate_count && most > 0 && !made; most /= 2) {
        made = known->pieces && cut(known, repeat->candidates, most);
        if (!made)
            uncut(known);
    }
    if (made)
        return known;
    known_destroy(known);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------ candidates */

/* Drop the candidates that did not recur: those of the list that were not used, and others seen once. */
static void prune(acs_repeat *repeat, uint32_t seen_least)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < repeat->candidate_count; i++) {
        acs_candidate *c = &repeat->candidates[i];
        const bool listed = c->place != ACS_NO_PLACE;
        if (listed ? was_used(repeat->known, (uint32_t)c->place) : c->seen >= seen_least)
            repeat->candidates[kept++] = *c;
        else
            acs_known_op_free(c->op);
    }
    repeat->candidate_count = kept;
}

static void forget_all(acs_repeat *repeat)
{
    for (uint32_t i = 0; i < repeat->candidate_count; i++)
        acs_known_op_free(repeat->candidates[i].op);
    repeat->candidate_count = 0;
    repeat->matches = false;
}

static void renew(acs_repeat *repeat, uint32_t piece_most)
{
    acs_known *known = repeat->candidate_count >= TUNE_REPEAT_LEAST ? make_known(repeat, piece_most) : NULL;
    if (!known) {
        forget_all(repeat);
        return;
    }
    for (uint32_t i = 0; i < repeat->candidate_count; i++) {
        repeat->candidates[i].place = (int32_t)i;
        repeat->candidates[i].seen = 0;
    }
    known->next = repeat->known;
    repeat->known = known;
    repeat->matches = true;
    repeat->lost_ns = 0;
}

/* Put a candidate where the cursor is. Without memory the op is not learnt. */
static void add_candidate(acs_repeat *repeat, const acs_record *op)
{
    if (repeat->candidate_count == repeat->candidate_room) {
        const uint32_t room = repeat->candidate_room ? 2 * repeat->candidate_room : 64;
        acs_candidate *grown = realloc(repeat->candidates, room * sizeof *grown);
        if (!grown)
            return;
        repeat->candidates = grown;
        repeat->candidate_room = room;
    }
    acs_record *copy = acs_known_op_copy(op);
    if (!copy)
        return;
    acs_candidate *at = &repeat->candidates[repeat->cursor];
    memmove(at + 1, at, (repeat->candidate_count - repeat->cursor) * sizeof *at);
    *at = (acs_candidate){.op = copy, .tag = acs_known_op_tag(op), .place = ACS_NO_PLACE, .seen = 1};
    repeat->candidate_count++;
    repeat->cursor++;
}

/* Move the cursor behind the op that was matched last. */
static void follow_pass(acs_repeat *repeat)
{
    const int32_t last = (int32_t)repeat->pos - 1;
    if (repeat->pos == 0)
        return;
    for (uint32_t i = repeat->cursor; repeat->matches && i < repeat->candidate_count; i++) {
        if (repeat->candidates[i].place != last)
            continue;
        repeat->cursor = i + 1;
        return;
    }
}

void acs_repeat_cut(acs_repeat *repeat)
{
    follow_pass(repeat);
    if (repeat->cursor == 0)
        return;
    repeat->candidates[repeat->cursor - 1].cut = true;
}

void acs_repeat_unmatched(acs_repeat *repeat, const acs_record *op)
{
    if (op->kind != ACS_KIND_KERNEL || !op->type || op->any) {
        acs_repeat_cut(repeat);
        return;
    }
    const uint32_t tag = acs_known_op_tag(op);
    repeat->queued++;
    follow_pass(repeat);
    for (uint32_t i = repeat->cursor; i < repeat->candidate_count; i++) {
        acs_candidate *c = &repeat->candidates[i];
        if (c->tag != tag || c->place != ACS_NO_PLACE || !acs_known_op_equals(c->op, op))
            continue;
        c->seen++;
        repeat->recurred++;
        repeat->lost_ns += TUNE_COST_LAUNCH_NS;
        repeat->cursor = i + 1;
        return;
    }
    if (repeat->candidate_count < TUNE_REPEAT_OPS)
        add_candidate(repeat, op);
}

/* ---------------------------------------------------------------------------------------------------------- passes */

void acs_repeat_pass_begin(acs_repeat *repeat)
{
    repeat->cursor = repeat->queued = repeat->recurred = repeat->pos = 0;
}

void acs_repeat_pass_end(acs_repeat *repeat, uint32_t piece_most)
{
    repeat->passes++;
    if (repeat->known)
        drop_old(repeat->known);
    if (!repeat->matches && repeat->recurred > 0 && 2 * repeat->recurred >= repeat->queued) {
        renew(repeat, piece_most);
    } else if (repeat->matches && repeat->lost_ns >= (uint64_t)repeat->candidate_count * TUNE_COST_BUILD_NS) {
        prune(repeat, 2);
        renew(repeat, piece_most);
    } else if (repeat->candidate_count == TUNE_REPEAT_OPS) {
        if (repeat->matches)
            prune(repeat, UINT32_MAX);
        else
            forget_all(repeat);
    }
}

void acs_repeat_destroy(acs_repeat *repeat)
{
    forget_all(repeat);
    while (repeat->known) {
        acs_known *known = repeat->known;
        repeat->known = known->next;
        known_destroy(known);
    }
    free(repeat->candidates);
    free(repeat);
}
