/*
 * Open replays: from the first op of a fragment, with which the replay is queued, until it is sealed. Called by match.c
 * and repeat.c under the lock. Never waits.
 *
 * Which fragment it is shows with its last op. Until then it is taken for the one that was replayed last, and filled in
 * as such. If it turns out to be another one, the ops so far move to a replay of that.
 */
#include "repeats/repeat_internal.h"

#include "api/threads.h"
#include "window/regions.h"

#include <string.h>
#include <utlist.h>

/* ------------------------------------------------------------------------------------------------------- conflicts */

/* Whether the op may conflict with one of the strand. */
static bool conflicts(const acs_strand *strand, const acs_record *op)
{
    bool near = op->any;
    for (uint32_t i = 0; i < op->segment_count && !near; i++) {
        const acs_segment *s = &op->segments[i];
        near = !acs_segment_has_bytes(s) || (s->base <= strand->last && acs_segment_end(s) > strand->first);
    }
    return near && (op->any || acs_segments_conflict(strand->segments, strand->segment_count, op->segments,
                                                     op->segment_count));
}

void acs_strand_cut(acs_strand *strand)
{
    acs_repeat *repeat = strand->repeat;
    const acs_pass_trace *trace = &repeat->trace[repeat->passes % 2];
    if (!strand->traced)
        return;
    trace->ops[strand->traced - 1].cut = true;
    repeat->cuts += strand->replay && strand->node && !strand->node->seen;
}

acs_op acs_strands_seal(acs_context *context, const acs_record *op, bool cuts)
{
    acs_op sealed = 0;
    acs_strand *strand, *next;
    DL_FOREACH_SAFE2 (context->repeats->open_strands, strand, next, open_next) {
        if (op && !conflicts(strand, op))
            continue;
        if (cuts)
            acs_strand_cut(strand);
        sealed = acs_strand_seal(context, strand);
    }
    return sealed;
}

/*
 * Another thread may be in a pass whose open strands conflict with this one. An op that it adds later would come behind
 * ops of this one, but has a smaller number.
 */
static void seal_other_passes(acs_context *context, const acs_strand *strand)
{
    acs_strand *other, *next;
    DL_FOREACH_SAFE2 (context->repeats->open_strands, other, next, open_next)
        if (other->repeat != strand->repeat && acs_segments_conflict(other->segments, other->segment_count,
                                                                     strand->segments, strand->segment_count))
            (void)acs_strand_seal(context, other); /* this one's seal wakes the core */
}

/* ------------------------------------------------------------------------------------------------------------ seal */

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

/* The next fragment that begins so is taken for this one. */
static void expect_again(const acs_strand *strand)
{
    for (acs_node *on = strand->node; on; on = on->parent)
        on->piece = strand->piece;
}

/* The fragment turns out to be of another piece: take its ops over. False: that has no free replay. */
static bool change_piece(acs_strand *strand, acs_piece *piece)
{
    acs_replay *replay = acs_piece_replay(piece), *old = strand->replay;
    if (!replay)
        return false;
    acs_replay_begin(replay, 0, strand->number);
    acs_replay_take_over(replay, old);
    for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++)
        piece->varies[word] |= replay->differs[word];
    acs_replay_give_back(old);
    strand->piece = piece;
    strand->replay = replay;
    return true;
}

/*
 * The fragment ends here, and the replay is to be of the piece that ends here, too: ops that are left out have to be
 * switched off. A beginning that is used the second time gets a piece, for the next time.
 */
static void end_piece(acs_strand *strand)
{
    acs_node *node = strand->node;
    if (!node || strand->piece == node->own)
        return;
    if (node->own)
        (void)change_piece(strand, node->own);
    else if (++node->seen >= 2)
        (void)acs_node_activate(strand->repeat, node);
}

acs_op acs_strand_seal(acs_context *context, acs_strand *strand)
{
    if (!strand->replay)
        return 0;
    end_piece(strand);
    acs_replay *replay = strand->replay;
    ACS_ASSERT(replay->count > 0 && strand->place <= strand->span + replay->from); /* RPT-2 */
    expect_again(strand);
    tell_varies(strand->piece, replay);
    strand->latest[strand->sealed++ % TUNE_REPEAT_LATEST] = (acs_numbers){strand->number, strand->place - replay->from};
    strand->left = strand->piece;
    strand->left_place = strand->place;
    strand->replay = NULL;
    DL_DELETE2(context->repeats->open_strands, strand, open_prev, open_next);
    acs_core_replay_sealed(&context->core, strand->record, replay);
    return strand->number;
}

/* ------------------------------------------------------------------------------------------------------------ open */

/*
 * Give the record the footprint that the window sees: in few ranges, or the strand's segments, or all memory. False: no
 * memory.
 */
static bool set_segments(acs_context *context, acs_record *record, const acs_strand *strand)
{
    static const acs_segment everything = {.access = ACS_UPDATE, .extent = ACS_EXTENT_ALL};
    const acs_segment *segments = strand->range_count ? strand->ranges : strand->segments;
    uint32_t count = strand->range_count ? strand->range_count : strand->segment_count;
    if (count > TUNE_REPEAT_SEGMENTS) {
        segments = &everything;
        count = 1;
    }
    if (acs_record_reserve(context->records, record, 0, 0, count) != ACS_OK)
        return false;
    memcpy(record->segments, segments, count * sizeof *segments);
    record->segment_count = count;
    return true;
}

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
    *room = !set_segments(context, record, strand);
    const acs_op number = *room ? 0 : acs_fifo_reserve(context->core.fifo, span);
    if (number)
        acs_fifo_push_reserved(context->core.fifo, record, number);
    else
        acs_record_release(context->records, record);
    return number;
}

/* Begin a replay of the piece, whose number is that of the op at `from`, with `span` numbers. */
static bool open_piece(acs_context *context, acs_strand *strand, acs_piece *piece, uint32_t from, uint32_t span,
                       bool *room)
{
    acs_repeats *all = context->repeats;
    acs_replay *replay = acs_piece_replay(piece);
    acs_record *record = replay ? acs_record_acquire(context->records) : NULL;
    *room = !replay && piece->made < TUNE_REPEAT_REPLAYS;
    if (!record)
        return false;
    if (all->open > 1)
        seal_other_passes(context, strand);
    const acs_op number = queue_record(context, record, strand, replay->ops[from].site, span, room);
    if (!number)
        return false;
    acs_replay_begin(replay, from, number);
    all->numbered += span;
    strand->piece = piece;
    strand->replay = replay;
    strand->record = record;
    strand->number = number;
    strand->span = span;
    strand->place = from + 1;
    DL_APPEND2(all->open_strands, strand, open_prev, open_next);
    return true;
}

bool acs_strand_open(acs_context *context, acs_strand *strand, acs_node *root, bool *room)
{
    strand->node = root;
    return open_piece(context, strand, root->piece, 0, root->longest, room);
}

bool acs_strand_resume(acs_context *context, acs_strand *strand, uint32_t place, bool *room)
{
    strand->node = NULL;
    return open_piece(context, strand, strand->left, place, strand->left->shape->ops - place, room);
}

bool acs_strand_advance(acs_strand *strand, acs_node *node)
{
    if (strand->piece->shape->ops < node->depth || strand->piece->ops[node->depth - 1] != node->op)
        if (!change_piece(strand, node->piece))
            return false;
    strand->node = node;
    strand->place = node->depth;
    return true;
}

void acs_strand_skip(acs_strand *strand, uint32_t place)
{
    strand->node = NULL;
    strand->place = place + 1;
}
