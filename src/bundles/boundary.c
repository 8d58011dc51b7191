/*
 * Cuts a stream of ops where its content says so: boundary.h tells why. Owns nothing but its own numbers; called under the
 * core's lock.
 */
#include "bundles/boundary.h"

#define MARKED UINT32_MAX
#define SHIFT 2                                /* 32 ops fit into 64 bits */
#define ALL_ALIKE UINT64_C(0x5555555555555555) /* what they add up to, of one type: 1 + 4 + 16 + ... */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)    /* of what they add up to, over all ranks */

void acs_boundary_init(acs_boundary *boundary, uint32_t most)
{
    ACS_ASSERT(most > 0 && most <= ACS_BOUNDARY_MOST);
    *boundary = (acs_boundary){.most = most};
}

static uint32_t *rank_of(acs_boundary *boundary, acs_op op)
{
    return &boundary->rank[op % (ACS_BOUNDARY_MOST + 1)];
}

/*
 * The smallest piece. Half the largest size would find repeats in fewer shapes, and costs where there are none 9 % by the
 * simulator (physics), this 2 %. At least half, so that at most one piece ends with each op that comes.
 */
static acs_op first_candidate(const acs_boundary *boundary)
{
    return boundary->start + (3 * boundary->most + 3) / 4;
}

/* The last of the best: marks anywhere in the piece, other ops from the smallest size on. */
static void consider(acs_boundary *boundary, acs_op op)
{
    uint32_t rank = *rank_of(boundary, op);
    if (rank < boundary->best_rank || (rank != MARKED && op < first_candidate(boundary)))
        return;
    boundary->best = op;
    boundary->best_rank = rank;
}

static void begin_piece(acs_boundary *boundary, acs_op start)
{
    boundary->start = start;
    boundary->best = 0;
    boundary->best_rank = 0;
    /* None, but where a mark ended a small piece: what came behind that was no better, so there are no marks in it. */
    for (acs_op op = first_candidate(boundary); op <= boundary->newest; op++)
        consider(boundary, op);
}

/* As if only ops of its type had come before: so a stream of one type is cut alike from its beginning on. */
void acs_boundary_restart(acs_boundary *boundary)
{
    boundary->recent = acs_hash64(boundary->type) * ALL_ALIKE;
    begin_piece(boundary, boundary->newest);
}

acs_op acs_boundary_add(acs_boundary *boundary, acs_op op, uint64_t type, bool marked)
{
    bool next = boundary->start && op == boundary->newest + 1;
    boundary->type = type + 1;
    boundary->recent = (boundary->recent << SHIFT) + acs_hash64(boundary->type);
    boundary->newest = op;
    if (!next)
        acs_boundary_restart(boundary);
    uint32_t rank = (uint32_t)(boundary->recent * SPREAD >> 32);
    *rank_of(boundary, op) = marked ? MARKED : rank == MARKED ? 0 : rank;
    if (!next)
        return 0;
    consider(boundary, op);
    if (op < boundary->start + boundary->most)
        return 0;
    ACS_ASSERT(boundary->best > boundary->start && boundary->best <= op);
    begin_piece(boundary, boundary->best);
    return boundary->start;
}

bool acs_boundary_full(const acs_boundary *boundary)
{
    return boundary->newest + 1 >= boundary->start + boundary->most;
}
