/*
 * Pieces of a repeat's list, and their replays: from the first op that enters until the replay is pushed. Called by
 * match.c, learn.c and repeat.c under the lock. Never waits.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

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

/* Records with room for arguments of their own; all else is the candidates'. */
static acs_record *make_records(acs_candidate *const *known, uint32_t count)
{
    size_t bytes = count * sizeof(acs_record);
    for (uint32_t at = 0; at < count; at++)
        bytes += args_behind(known[at]->op);
    acs_record *ops = aligned_alloc(ACS_CACHE_LINE, (bytes + ACS_CACHE_LINE - 1) & ~(size_t)(ACS_CACHE_LINE - 1));
    if (!ops)
        return NULL;
    unsigned char *behind = (unsigned char *)(ops + count);
    for (uint32_t at = 0; at < count; at++) {
        const acs_record *from = known[at]->op;
        ops[at] = *from;
        ops[at].arg_bytes = args_behind(from) ? behind : ops[at].inline_bytes;
        memcpy(ops[at].arg_bytes, from->arg_bytes, from->arg_bytes_used); /* gaps included */
        behind += args_behind(from);
    }
    return ops;
}

static acs_replay *replay_make(const acs_piece *piece)
{
    acs_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    replay->shape = piece->shape;
    replay->ops = make_records(piece->ops, piece->shape->ops);
    replay->ends = calloc(piece->shape->ops, sizeof *replay->ends);
    if (replay->ops && replay->ends)
        return replay;
    replay_destroy(replay);
    return NULL;
}

acs_replay *acs_piece_replay(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        if (acs_replay_is_free(piece->replays[i]))
            return piece->replays[i];
    acs_replay *made = piece->made < TUNE_REPEAT_REPLAYS ? replay_make(piece) : NULL;
    if (made)
        piece->replays[piece->made++] = made;
    return made;
}

/* --------------------------------------------------------------------------------------------------------- pieces */

acs_piece *acs_piece_create(acs_repeat *repeat, acs_candidate *const *ops, uint32_t count)
{
    const acs_record *records[ACS_REPLAY_OPS];
    for (uint32_t at = 0; at < count; at++)
        records[at] = ops[at]->op;
    acs_replay_shape *shape = acs_replay_shape_create(records, count);
    const bool fits = shape && (shape->segment_count <= TUNE_REPEAT_SEGMENTS || count == 1);
    acs_piece *piece = fits ? calloc(1, sizeof *piece) : NULL;
    acs_candidate **kept = piece ? malloc(count * sizeof *kept) : NULL;
    if (!kept) {
        free(piece);
        acs_replay_shape_destroy(shape);
        return NULL;
    }
    memcpy(kept, ops, count * sizeof *kept);
    for (uint32_t at = 0; at < count; at++)
        kept[at]->refs++;
    piece->repeat = repeat;
    piece->shape = shape;
    piece->ops = kept;
    return piece;
}

void acs_piece_destroy(acs_piece *piece)
{
    ACS_ASSERT(!piece->now);
    for (uint32_t i = 0; i < piece->made; i++)
        replay_destroy(piece->replays[i]);
    for (uint32_t at = 0; at < piece->shape->ops; at++)
        acs_candidate_release(piece->ops[at]);
    acs_replay_shape_destroy(piece->shape);
    free(piece->ops);
    free(piece);
}

bool acs_piece_is_free(const acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        if (!acs_replay_is_free(piece->replays[i]))
            return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------- open and seal */

/* Whether the op may conflict with one of the piece. */
static bool conflicts(const acs_piece *piece, const acs_record *op)
{
    if (op->any || op->kind == ACS_KIND_REPLAY)
        return acs_records_conflict(piece->record, op);
    for (uint32_t i = 0; i < op->segment_count; i++) {
        const acs_segment *s = &op->segments[i];
        if (!acs_segment_has_bytes(s) || (s->base <= piece->shape->last && acs_segment_end(s) > piece->shape->first))
            return acs_records_conflict(piece->record, op);
    }
    return false;
}

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

acs_op acs_piece_seal(acs_context *context, acs_piece *piece)
{
    acs_replay *replay = piece->now;
    if (!replay)
        return 0;
    ACS_ASSERT(replay->count > 0); /* RPT-2 */
    for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
        piece->used[word] |= replay->on[word];
    tell_varies(piece, replay);
    piece->now = NULL;
    piece->strand->open = NULL;
    DL_DELETE2(context->repeats->open_pieces, piece, open_prev, open_next);
    acs_fifo_push_reserved(context->core.fifo, piece->record, piece->number);
    return piece->number;
}

void acs_repeat_cut(acs_piece *piece)
{
    acs_candidate *last = piece->ops[piece->strand->pos - piece->first - 1];
    if (!last->cut)
        piece->repeat->renew_ops += piece->shape->ops;
    last->cut = true;
    piece->repeat->lost_ns += TUNE_COST_REPLAY_START_NS;
}

acs_op acs_pieces_seal(acs_context *context, const acs_record *op, bool cuts)
{
    acs_op sealed = 0;
    acs_piece *piece, *next;
    DL_FOREACH_SAFE2 (context->repeats->open_pieces, piece, next, open_next) {
        if (op && !conflicts(piece, op))
            continue;
        if (cuts)
            acs_repeat_cut(piece);
        sealed = acs_piece_seal(context, piece);
    }
    return sealed;
}

/*
 * Another thread may be in a pass whose open pieces conflict with this one. An op that it adds later would come behind
 * ops of this one, but has a smaller number.
 */
static void seal_other_passes(acs_context *context, const acs_piece *piece, const acs_record *record)
{
    acs_piece *other, *next;
    DL_FOREACH_SAFE2 (context->repeats->open_pieces, other, next, open_next)
        if (other->repeat != piece->repeat && conflicts(other, record))
            (void)acs_piece_seal(context, other); /* behind it comes this piece's number, which wakes the core */
}

bool acs_piece_open(acs_context *context, acs_piece *piece, uint32_t at, bool *room)
{
    acs_repeats *all = context->repeats;
    const uint32_t span = piece->shape->ops - at;
    acs_replay *replay = acs_piece_replay(piece);
    acs_record *record = replay ? acs_record_acquire(context->records) : NULL;
    *room = !replay && piece->made < TUNE_REPEAT_REPLAYS;
    if (!record)
        return false;
    const acs_op number = acs_fifo_reserve(context->core.fifo, span);
    if (!number) {
        acs_record_release(context->records, record);
        return false;
    }
    replay->from = at;
    replay->count = replay->end_count = replay->ends_told = 0;
    memset(replay->on, 0, sizeof replay->on);
    atomic_store_explicit(&replay->busy, true, memory_order_relaxed); /* given away by the push */
    record->kind = record->asked = ACS_KIND_REPLAY;
    record->site = replay->ops[at].site;
    record->any = 0;
    record->type = 0;
    record->segments = piece->shape->segments;
    record->segment_count = piece->shape->segment_count;
    record->u.replay.replay = replay;
    record->u.replay.span = span;
    if (all->open > 1)
        seal_other_passes(context, piece, record);
    all->numbered += span;
    piece->now = replay;
    piece->record = record;
    piece->number = number;
    piece->strand->open = piece;
    DL_APPEND2(all->open_pieces, piece, open_prev, open_next);
    return true;
}
