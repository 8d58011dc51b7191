/*
 * Open replays: from the first op of a fragment, with which the replay is queued, until it is sealed. Called by match.c
 * and repeat.c under the lock. Never waits.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"
#include "window/regions.h"

#include <string.h>
#include <utlist.h>

/* ------------------------------------------------------------------------------------------------------- conflicts */

/* What the window sees of a replay of the strand. */
static const acs_segment *view(const acs_strand *strand, uint32_t *count)
{
    static const acs_segment everything = {.access = ACS_UPDATE, .extent = ACS_EXTENT_ALL};
    const bool wide = acs_strand_is_wide(strand);
    ACS_ASSERT(!wide || strand->repeat->strand_count == 1); /* RPT-4 */
    *count = wide ? 1 : strand->view_count;
    return wide ? &everything : strand->view;
}

/* Whether the op would have to wait in the window for a replay of the strand. */
static bool waits_for(const acs_record *op, const acs_strand *strand)
{
    uint32_t count;
    const acs_segment *segments = view(strand, &count);
    return op->any || (acs_footprint_is_near(strand, op) &&
                       acs_segments_conflict(segments, count, op->segments, op->segment_count));
}

/* Whether replays of the strand wait for no open replay of another one of its repeat (RPT-5). */
static bool waits_for_none(const acs_repeats *all, const acs_strand *strand)
{
    uint32_t own_count, count;
    const acs_segment *own = view(strand, &own_count);
    bool conflict = false;
    for (const acs_strand *other = all->open_strands; other; other = other->open_next) {
        const acs_segment *segments = view(other, &count);
        conflict |= other->repeat == strand->repeat && acs_segments_conflict(segments, count, own, own_count);
    }
    return !conflict;
}

void acs_strand_cut(acs_strand *strand)
{
    const acs_pass_trace *trace = &strand->repeat->trace[strand->repeat->passes % 2];
    if (strand->traced)
        trace->ops[strand->traced - 1].cut = true;
}

acs_op acs_strands_seal(acs_context *context, const acs_record *op, bool cuts)
{
    acs_op sealed = 0;
    acs_strand *strand, *next;
    DL_FOREACH_SAFE2 (context->repeats->open_strands, strand, next, open_next) {
        if (op && !waits_for(op, strand))
            continue;
        if (cuts)
            acs_strand_cut(strand);
        sealed = acs_strand_seal(context, strand);
    }
    return sealed;
}

/*
 * Seal open replays of other threads' passes that conflict with this one. An op that they get later would come behind
 * ops of this one, but has a smaller number. And a wait for an op of this one seals no other.
 */
static void seal_before(acs_context *context, const acs_strand *strand)
{
    acs_strand *other, *next;
    uint32_t own_count, count;
    const acs_segment *own = view(strand, &own_count);
    DL_FOREACH_SAFE2 (context->repeats->open_strands, other, next, open_next) {
        const acs_segment *segments = view(other, &count);
        if (other->repeat != strand->repeat && acs_segments_conflict(segments, count, own, own_count))
            (void)acs_strand_seal(context, other); /* this one's seal wakes the core */
    }
}

/* ------------------------------------------------------------------------------------------------------------ costs */

/*
 * Tell the replay which ops change. The graph that it gets costs as much as some changes of ops that it is not made for
 * (the ski-rental rule).
 */
static void tell_varies(acs_piece *piece, acs_replay *replay)
{
    if (piece->version == 0 || piece->changes_ns >= (uint64_t)piece->shape->ops * TUNE_COST_BUILD_NS) {
        memcpy(piece->told, piece->varies, sizeof piece->told);
        piece->version++;
        piece->changes_ns = 0;
    }
    memcpy(replay->varies, piece->told, sizeof piece->told);
    replay->version = piece->version;
}

void acs_strand_differs(acs_strand *strand, uint32_t place)
{
    acs_piece *piece = strand->piece;
    const uint64_t bit = (uint64_t)1 << place % 64;
    piece->varies[place / 64] |= bit;
    piece->changes_ns += piece->told[place / 64] & bit ? 0 : TUNE_COST_SET_FIXED_NS;
}

static void note_unused(acs_piece *piece, uint32_t ops)
{
    piece->unused_ns += (uint64_t)ops * TUNE_COST_UNUSED_NS;
    if (piece->unused_ns < (uint64_t)piece->shape->ops * TUNE_COST_BUILD_NS)
        return;
    piece->unused_ns = 0;
    piece->wastes = true;
}

/* Ops before this place are left out. */
static void leave_out(acs_strand *strand, uint32_t place)
{
    while (strand->place < place)
        acs_strand_differs(strand, strand->place++);
}

/* ------------------------------------------------------------------------------------------------------------ move */

void acs_strand_go_on(acs_strand *strand, uint32_t place)
{
    leave_out(strand, place);
    acs_filter_add(&strand->filter, strand->piece->ops[place]);
    strand->place++;
}

bool acs_strand_move(acs_strand *strand, acs_piece *piece, uint32_t place)
{
    const acs_piece *before = strand->piece;
    acs_replay *old = strand->replay, *replay = NULL;
    if (strand->trial || (piece->ready && piece->shape->ops <= strand->span))
        replay = acs_piece_replay(piece);
    if (!replay)
        return false;
    acs_replay_begin(replay, strand->number);
    strand->piece = piece;
    strand->replay = replay;
    strand->place = 0;
    for (uint32_t at = 0; at < before->shape->ops; at++) {
        if (!acs_replay_has(old, at))
            continue;
        const uint32_t to = acs_sequence_place(piece->ops, place, strand->place, before->ops[at]);
        ACS_ASSERT(to < place);
        acs_strand_go_on(strand, to);
        acs_replay_add_from(replay, to, old, at);
        if (acs_replay_differs(replay, to))
            acs_strand_differs(strand, to);
    }
    acs_replay_give_back(old);
    return true;
}

uint32_t acs_strand_place_in(const acs_strand *strand, const acs_piece *piece)
{
    const acs_piece *now = strand->piece;
    uint32_t place = acs_filter_has_all(&piece->filter, &strand->filter) ? 0 : ACS_REPLAY_OPS + 1;
    if (place)
        return place;
    for (uint32_t at = 0; at < now->shape->ops; at++) {
        if (!acs_replay_has(strand->replay, at))
            continue;
        place = acs_sequence_place(piece->ops, piece->shape->ops, place, now->ops[at]);
        if (place++ == piece->shape->ops)
            return ACS_REPLAY_OPS + 1;
    }
    return place;
}

/* Move the replay, which is over, to the shortest piece with its ops. */
static void fit(acs_strand *strand)
{
    acs_piece *piece, *best = strand->piece;
    if (best->shape->ops == strand->replay->count)
        return;
    LL_FOREACH2 (strand->pieces, piece, of_next)
        if (piece->shape->ops < best->shape->ops && acs_strand_place_in(strand, piece) <= piece->shape->ops)
            best = piece;
    if (best != strand->piece)
        (void)acs_strand_move(strand, best, best->shape->ops);
}

/* ------------------------------------------------------------------------------------------------------------ seal */

/* A trial ends. The backend makes what the piece needs, now that it is known which of its ops change. */
static void end_trial(acs_context *context, acs_strand *strand)
{
    acs_piece *piece = strand->piece;
    if (!piece->ready)
        piece->ready = context->backend->ops->replay_ready(context->backend, strand->replay, &piece->asked);
    acs_replay_give_back(strand->replay);
    strand->replay = NULL;
}

acs_op acs_strand_seal(acs_context *context, acs_strand *strand)
{
    if (!strand->replay)
        return 0;
    fit(strand);
    acs_replay *replay = strand->replay;
    const uint32_t place = strand->place;
    ACS_ASSERT(replay->count > 0 && (strand->trial || replay->count <= strand->span)); /* RPT-2 */
    strand->repeat->replays++;
    strand->repeat->replayed += replay->count;
    if (!strand->trial)
        note_unused(strand->piece, replay->shape->ops - replay->count);
    if (strand->piece->wastes)
        strand->learns = strand->repeat->misfits = true;
    leave_out(strand, replay->shape->ops);
    strand->place = place; /* the next replay may go on here */
    tell_varies(strand->piece, replay);
    if (strand->trial) {
        end_trial(context, strand);
        return 0;
    }
    strand->latest[strand->sealed++ % TUNE_REPEAT_LATEST] = (acs_numbers){strand->number, replay->count};
    strand->replay = NULL;
    DL_DELETE2(context->repeats->open_strands, strand, open_prev, open_next);
    acs_core_replay_sealed(&context->core, strand->record, replay);
    return strand->number;
}

/* ------------------------------------------------------------------------------------------------------------ open */

/*
 * Queue the record of a replay, which is held until it is sealed. Returns its number; 0: no memory, for which no wait
 * helps (*room), or no room.
 */
static acs_op queue_record(acs_context *context, acs_record *record, const acs_strand *strand, const acs_site *site,
                           uint32_t span, bool *room)
{
    record->kind = record->asked = ACS_KIND_REPLAY;
    record->any = 0;
    record->type = 0;
    record->site = site;
    record->u.replay.replay = NULL;
    record->u.replay.span = span;
    uint32_t count;
    const acs_segment *segments = view(strand, &count); /* the footprint that the window sees */
    *room = acs_record_reserve(context->records, record, 0, 0, count) != ACS_OK;
    if (!*room)
        memcpy(record->segments, segments, count * sizeof *segments);
    record->segment_count = *room ? 0 : count;
    if (ACS_UNLIKELY(context->recorder != NULL))
        acs_recorder_enter(context->recorder, record, acs_fifo_last(context->core.fifo) + 1);
    const acs_op number = *room ? 0 : acs_fifo_push(context->core.fifo, record);
    if (!number)
        acs_record_release(context->records, record);
    return number;
}

bool acs_strand_open(acs_context *context, acs_strand *strand, acs_piece *piece, uint32_t place, bool may_try, bool *room)
{
    acs_repeats *all = context->repeats;
    const uint32_t span = strand->longest > piece->shape->ops ? strand->longest : piece->shape->ops;
    acs_replay *replay = acs_piece_replay(piece);
    const bool trial = !piece->ready;
    acs_record *record = replay && !trial ? acs_record_acquire(context->records) : NULL;
    acs_op number = 0;
    *room = trial || (!replay && piece->made < TUNE_REPEAT_REPLAYS);
    if (!replay || (trial ? !may_try : !record))
        return false;
    ACS_ASSERT(waits_for_none(all, strand)); /* RPT-5 */
    if (!trial) {
        if (all->open > 1)
            seal_before(context, strand);
        number = queue_record(context, record, strand, piece->records[place]->site, span, room);
        if (!number)
            return false;
        all->numbered += span;
        DL_APPEND2(all->open_strands, strand, open_prev, open_next);
    }
    acs_replay_begin(replay, number);
    strand->began = piece->ops[place];
    strand->piece = piece;
    strand->filter = (acs_filter){{0}};
    strand->place = place;
    acs_strand_go_on(strand, place);
    strand->replay = replay;
    strand->trial = trial;
    strand->record = record;
    strand->number = number;
    strand->span = span;
    return true;
}
