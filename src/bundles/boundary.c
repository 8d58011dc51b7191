/*
 * Cuts the stream of ops into pieces by its content (boundary.h). Called by form.c under the core's lock. Owns nothing
 * but the numbers of its acs_boundary; never looks at the window.
 */
#include "bundles/boundary.h"

#define MARKED UINT32_MAX
#define SHIFT 2                                /* bits that the hash moves per op: 32 ops fit into 64 bits */
#define ALL_ALIKE UINT64_C(0x5555555555555555) /* sum of the weights of 32 ops of one type: 1 + 4 + 16 + ... */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)    /* spreads sums over all ranks */

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
 * The first op that may end the piece: its smallest size is three quarters of the largest. A half would find repeats
 * in fewer shapes. Without repeats a half costs 9 % by the simulator (physics), three quarters cost 2 %. It must be at
 * least a half, so that each new op ends at most one piece.
 */
static acs_op first_candidate(const acs_boundary *boundary)
{
    return boundary->start + (3 * boundary->most + 3) / 4;
}

/*
 * Let an op be the best if its rank is not lower than the best so far. A marked op may end any piece, others must
 * leave it its smallest size.
 */
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
    /*
     * Usually no op is that late. After a mark that ended a small piece, the ops behind it ranked no higher, so none
     * of them is marked.
     */
    for (acs_op op = first_candidate(boundary); op <= boundary->newest; op++)
        consider(boundary, op);
}

/*
 * The hash becomes that of 32 ops of the newest op's type, so that a stream of one type is cut alike from its
 * beginning on.
 */
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
