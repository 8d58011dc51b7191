/*
 * Fragments: sequences of ops of one strand that recur, as a tree of their beginnings, and pieces, which are fragments
 * that are replayed. Called by match.c, open.c and learn.c under the lock. Decides nothing.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <utlist.h>

/* -------------------------------------------------------------------------------------------------------- replays */

acs_replay *acs_piece_replay(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        if (acs_replay_is_free(piece->replays[i]))
            return piece->replays[i];
    acs_replay *made = piece->made < TUNE_REPEAT_REPLAYS ? acs_replay_create(piece->shape) : NULL;
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

static void piece_destroy(acs_piece *piece)
{
    for (uint32_t i = 0; i < piece->made; i++)
        acs_replay_destroy(piece->replays[i]);
    acs_replay_shape_destroy(piece->shape);
    free(piece->records);
    free(piece->ops);
    free(piece);
}

static acs_piece *piece_make(acs_node *node)
{
    acs_piece *piece = calloc(1, sizeof *piece);
    if (!piece)
        return NULL;
    piece->node = node;
    piece->ops = malloc(node->depth * sizeof *piece->ops);
    piece->records = malloc(node->depth * sizeof *piece->records);
    if (piece->ops && piece->records) {
        list_ops(node, piece->ops);
        for (uint32_t at = 0; at < node->depth; at++)
            piece->records[at] = piece->ops[at]->op;
        piece->shape = acs_replay_shape_create(piece->records, node->depth);
    }
    if (piece->shape && (piece->shape->segment_count <= TUNE_REPEAT_SEGMENTS || node->depth == 1))
        return piece;
    piece_destroy(piece);
    return NULL;
}

bool acs_node_activate(acs_repeat *repeat, acs_node *node)
{
    acs_piece *piece = piece_make(node);
    if (!piece)
        return false;
    LL_PREPEND(repeat->pieces, piece);
    node->own = piece;
    for (uint32_t at = 0; at < node->depth; at++)
        piece->ops[at]->used = true;
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
