/*
 * Cuts a stream of ops where its content says so: cuts.h tells why. Owns nothing but its own numbers; called under the
 * core's lock.
 */
#include "scheduler/cuts.h"

#define MARKED UINT32_MAX
#define SHIFT 2                                /* 32 ops fit into 64 bits */
#define ALL_ALIKE UINT64_C(0x5555555555555555) /* what they add up to, of one type: 1 + 4 + 16 + ... */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)    /* of what they add up to, over all ranks */

void acs_cuts_init(acs_cuts *cuts, uint32_t most)
{
    *cuts = (acs_cuts){.most = most};
}

static uint32_t *rank_of(acs_cuts *cuts, acs_op op)
{
    return &cuts->rank[op % (ACS_CUTS_MOST + 1)];
}

/*
 * The smallest piece. Half the largest size would find repeats in fewer shapes, and costs where there are none 9 % by the
 * simulator (physics), this 2 %. At least half, so that at most one piece ends with each op that comes.
 */
static acs_op first_candidate(const acs_cuts *cuts)
{
    return cuts->start + (3 * cuts->most + 3) / 4;
}

/* The last of the best: marks anywhere in the piece, other ops from the smallest size on. */
static void consider(acs_cuts *cuts, acs_op op)
{
    uint32_t rank = *rank_of(cuts, op);
    if (rank < cuts->best_rank || (rank != MARKED && op < first_candidate(cuts)))
        return;
    cuts->best = op;
    cuts->best_rank = rank;
}

static void begin_piece(acs_cuts *cuts, acs_op start)
{
    cuts->start = start;
    cuts->best = 0;
    cuts->best_rank = 0;
    /* None, but where a mark ended a small piece: what came behind that was no better, so there are no marks in it. */
    for (acs_op op = first_candidate(cuts); op <= cuts->newest; op++)
        consider(cuts, op);
}

/* As if only ops of its type had come before: so a stream of one type is cut alike from its beginning on. */
void acs_cuts_restart(acs_cuts *cuts)
{
    cuts->recent = acs_hash64(cuts->type) * ALL_ALIKE;
    begin_piece(cuts, cuts->newest);
}

acs_op acs_cuts_add(acs_cuts *cuts, acs_op op, uint64_t type, bool marked)
{
    bool next = cuts->start && op == cuts->newest + 1;
    cuts->type = type + 1;
    cuts->recent = (cuts->recent << SHIFT) + acs_hash64(cuts->type);
    cuts->newest = op;
    if (!next)
        acs_cuts_restart(cuts);
    uint32_t rank = (uint32_t)(cuts->recent * SPREAD >> 32);
    *rank_of(cuts, op) = marked ? MARKED : rank == MARKED ? 0 : rank;
    if (!next)
        return 0;
    consider(cuts, op);
    if (op < cuts->start + cuts->most)
        return 0;
    begin_piece(cuts, cuts->best);
    return cuts->start;
}

bool acs_cuts_full(const acs_cuts *cuts)
{
    return cuts->newest + 1 >= cuts->start + cuts->most;
}
