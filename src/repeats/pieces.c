/*
 * Pieces: sequences of ops of one strand of which replays are made. Called by match.c, open.c and learn.c under the lock.
 * Decides nothing.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

acs_replay *acs_piece_replay(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++) {
        acs_replay *replay = piece->replays[i];
        if (!acs_replay_is_free(replay))
            continue;
        if (ACS_UNLIKELY(replay->one_by_one) && piece->asked) { /* its graph has gone: it is to be made again */
            piece->ready = false;
            piece->asked = 0;
        }
        replay->one_by_one = false;
        return replay;
    }
    acs_replay *made = piece->made < TUNE_REPEAT_REPLAYS ? acs_replay_create(piece->shape) : NULL;
    if (made)
        piece->replays[piece->made++] = made;
    return made;
}

static void piece_destroy(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        acs_replay_destroy(piece->replays[i]);
    acs_replay_shape_destroy(piece->shape);
    free(piece->records);
    free(piece->ops);
    free(piece);
}

static bool fill_piece(acs_piece *piece, acs_known *const *ops, uint32_t count)
{
    piece->ops = malloc(count * sizeof *piece->ops);
    piece->records = calloc(count, sizeof *piece->records);
    if (!piece->ops || !piece->records)
        return false;
    memcpy(piece->ops, ops, count * sizeof *ops);
    for (uint32_t at = 0; at < count; at++) {
        piece->records[at] = ops[at]->op;
        acs_filter_add(&piece->filter, ops[at]);
    }
    piece->shape = acs_replay_shape_create(piece->records, count);
    return piece->shape != NULL;
}

/* The strand whose list has the piece; NULL: none. */
static acs_strand *strand_of(const acs_repeat *repeat, const acs_piece *piece)
{
    const uint32_t strand = piece->ops[0]->strand;
    return strand == ACS_STRAND_NONE ? NULL : &repeat->strands[strand];
}

static void give_to_strand(acs_repeat *repeat, acs_piece *piece)
{
    acs_strand *strand = strand_of(repeat, piece);
    if (!strand)
        return;
    LL_PREPEND2(strand->pieces, piece, of_next);
    strand->longest = piece->shape->ops > strand->longest ? piece->shape->ops : strand->longest;
}

/* Drop the piece if it has ops of several strands. These learn what it covered. */
static void drop_if_split(acs_repeat *repeat, acs_piece *piece)
{
    const uint32_t strand = piece->ops[0]->strand;
    bool split = false;
    for (uint32_t at = 1; at < piece->shape->ops; at++)
        split |= piece->ops[at]->strand != strand;
    if (!split)
        return;
    for (uint32_t at = 0; at < piece->shape->ops; at++)
        if (piece->ops[at]->strand != ACS_STRAND_NONE)
            repeat->strands[piece->ops[at]->strand].learns = true;
    acs_piece_drop(repeat, piece, NULL);
}

void acs_pieces_to_strands(acs_repeat *repeat)
{
    acs_piece *piece, *next;
    LL_FOREACH (repeat->pieces, piece)
        give_to_strand(repeat, piece);
    LL_FOREACH_SAFE (repeat->pieces, piece, next)
        drop_if_split(repeat, piece);
}

acs_piece *acs_piece_make(acs_repeat *repeat, acs_known *const *ops, uint32_t count, uint32_t least)
{
    acs_piece *piece = repeat->place_count + count <= 2 * TUNE_REPEAT_OPS ? calloc(1, sizeof *piece) : NULL;
    if (!piece)
        return NULL;
    if (!fill_piece(piece, ops, count)) {
        piece_destroy(piece);
        return NULL;
    }
    for (uint32_t at = count; at-- > 0;) {
        ops[at]->refs++;
        ops[at]->piece = ops[at]->piece ? ops[at]->piece : piece;
    }
    piece->least = least;
    piece->ready = repeat->at_once;
    LL_PREPEND(repeat->pieces, piece);
    give_to_strand(repeat, piece);
    repeat->place_count += count;
    return piece;
}

void acs_piece_drop(acs_repeat *repeat, acs_piece *piece, acs_piece *instead)
{
    acs_strand *strand = strand_of(repeat, piece);
    LL_DELETE(repeat->pieces, piece);
    if (strand)
        LL_DELETE2(strand->pieces, piece, of_next);
    LL_PREPEND(repeat->replaced, piece);
    for (uint32_t at = 0; at < piece->shape->ops; at++)
        if (piece->ops[at]->piece == piece)
            piece->ops[at]->piece = instead;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        if (repeat->strands[s].piece == piece)
            repeat->strands[s].piece = NULL;
}

static bool is_free(const acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        if (!acs_replay_is_free(piece->replays[i]))
            return false;
    return true;
}

void acs_pieces_sweep(acs_repeat *repeat)
{
    acs_piece *piece, *next;
    LL_FOREACH_SAFE (repeat->replaced, piece, next) {
        if (!is_free(piece))
            continue;
        LL_DELETE(repeat->replaced, piece);
        repeat->place_count -= piece->shape->ops;
        for (uint32_t at = 0; at < piece->shape->ops; at++)
            piece->ops[at]->refs--;
        piece_destroy(piece);
    }
}
