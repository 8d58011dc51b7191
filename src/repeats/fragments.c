/*
 * Fragments: sequences of ops of one strand that recur, as a tree of their beginnings, and pieces, which are fragments
 * that are replayed. Called by match.c, open.c and learn.c under the lock. Decides nothing.
 */
#include "repeats/repeat_internal.h"

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

/* Records with room for arguments of their own; all else is the known ops'. */
static acs_record *make_records(acs_known *const *known, uint32_t count)
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

static void list_ops(const acs_node *node, acs_known **ops)
{
    for (; node; node = node->parent)
        ops[node->depth - 1] = node->op;
}

static acs_piece *piece_make(acs_node *node)
{
    const acs_record *records[ACS_REPLAY_OPS];
    acs_piece *piece = calloc(1, sizeof *piece);
    acs_known **ops = malloc(node->depth * sizeof *ops);
    if (!piece || !ops) {
        free(piece);
        free(ops);
        return NULL;
    }
    list_ops(node, ops);
    for (uint32_t at = 0; at < node->depth; at++)
        records[at] = ops[at]->op;
    piece->node = node;
    piece->ops = ops;
    piece->shape = acs_replay_shape_create(records, node->depth);
    if (piece->shape && (piece->shape->segment_count <= TUNE_REPEAT_SEGMENTS || node->depth == 1))
        return piece;
    acs_replay_shape_destroy(piece->shape);
    free(ops);
    free(piece);
    return NULL;
}

static void piece_destroy(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        replay_destroy(piece->replays[i]);
    acs_replay_shape_destroy(piece->shape);
    free(piece->ops);
    free(piece);
}

bool acs_node_activate(acs_repeat *repeat, acs_node *node)
{
    acs_piece *piece = piece_make(node);
    if (!piece)
        return false;
    LL_PREPEND(repeat->pieces, piece);
    node->own = piece;
    for (acs_node *on = node; on; on = on->parent) {
        if (!on->piece && on->parent)
            on->parent->followed++;
        on->piece = piece;
        if (!on->parent && on->longest < node->depth)
            on->longest = node->depth;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- nodes */

acs_node *acs_node_child(const acs_node *node, const acs_known *op)
{
    acs_node *child = node->child;
    while (child && child->op != op)
        child = child->sibling;
    return child;
}

static acs_node *node_add(acs_repeat *repeat, acs_node *parent, acs_known *op)
{
    acs_node *node = repeat->node_count < TUNE_REPEAT_NODES ? calloc(1, sizeof *node) : NULL;
    if (!node)
        return NULL;
    node->op = op;
    node->parent = parent;
    node->depth = parent ? parent->depth + 1 : 1;
    if (parent)
        LL_PREPEND2(parent->child, node, sibling);
    else
        op->root = node;
    op->refs++;
    repeat->node_count++;
    return node;
}

acs_node *acs_node_get(acs_repeat *repeat, acs_known *const *ops, uint32_t count)
{
    acs_node *node = ops[0]->root ? ops[0]->root : node_add(repeat, NULL, ops[0]);
    for (uint32_t at = 1; node && at < count; at++) {
        acs_node *child = acs_node_child(node, ops[at]);
        node = child ? child : node_add(repeat, node, ops[at]);
    }
    return node;
}

/* Forget the nodes below, and this one; with a piece only if all are. Depths are at most ACS_REPLAY_OPS. */
static void forget_below(acs_repeat *repeat, acs_node *node, bool all)
{
    acs_node *child, *next;
    LL_FOREACH_SAFE2 (node->child, child, next, sibling)
        forget_below(repeat, child, all);
    if (node->piece && !all)
        return;
    if (node->parent)
        LL_DELETE2(node->parent->child, node, sibling);
    else
        node->op->root = NULL;
    node->op->refs--;
    repeat->node_count--;
    free(node);
}

void acs_nodes_forget(acs_repeat *repeat, bool all)
{
    acs_piece *piece, *next;
    for (uint32_t i = 0; repeat->index && i <= repeat->index_mask; i++)
        for (acs_known *known = repeat->index[i]; known; known = known->same)
            if (known->root)
                forget_below(repeat, known->root, all);
    if (!all)
        return;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        repeat->strands[s].left = NULL;
    LL_FOREACH_SAFE (repeat->pieces, piece, next)
        piece_destroy(piece);
    repeat->pieces = NULL;
}
