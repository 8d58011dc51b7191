/*
 * Cuts a stream of ops where its content says so: cuts.h tells why. Owns nothing but its own numbers; called under the
 * core's lock.
 */
#include "scheduler/cuts.h"

#define MARKED UINT32_MAX

#define SHIFT 2                                /* 32 ops fit into 64 bits */
#define ALL_ALIKE UINT64_C(0x5555555555555555) /* what they add up to, of one type: 1 + 4 + 16 + ... */

static uint32_t *rank_of(acs_cuts *cuts, acs_op op)
{
    return &cuts->rank[op % (ACS_CUTS_MOST + 1)];
}

void acs_cuts_init(acs_cuts *cuts, uint32_t most)
{
    *cuts = (acs_cuts){.most = most};
}

/* As if only ops of its type had come before: so a stream of one type is cut alike from its beginning on. */
void acs_cuts_restart(acs_cuts *cuts)
{
    cuts->start = cuts->newest;
    cuts->recent = acs_hash64(cuts->type) * ALL_ALIKE;
}

/*
 * The smallest piece. Half the largest size would find repeats in fewer shapes, and costs where there are none 9 % by the
 * simulator (physics), this 2 %. At least half, so that at most one piece ends with each op that comes.
 */
static acs_op first_candidate(const acs_cuts *cuts)
{
    return cuts->start + (3 * cuts->most + 3) / 4;
}

/* The last of the best up to the newest op: marks anywhere in the piece, else from the smallest size on. 0: none. */
static acs_op best(const acs_cuts *cuts)
{
    const acs_op first = first_candidate(cuts);
    uint32_t most = 0;
    acs_op found = 0;
    for (acs_op op = cuts->start + 1; op <= cuts->newest && op <= cuts->start + cuts->most; op++) {
        uint32_t rank = cuts->rank[op % (ACS_CUTS_MOST + 1)];
        if ((op < first && rank != MARKED) || rank < most)
            continue;
        most = rank;
        found = op;
    }
    return found;
}

acs_op acs_cuts_add(acs_cuts *cuts, acs_op op, uint64_t type, bool marked)
{
    bool next = cuts->start && op == cuts->newest + 1;
    cuts->type = type + 1;
    cuts->recent = (cuts->recent << SHIFT) + acs_hash64(cuts->type);
    cuts->newest = op;
    if (!next)
        acs_cuts_restart(cuts);
    uint32_t rank = (uint32_t)(acs_hash64(cuts->recent) >> 32);
    *rank_of(cuts, op) = marked ? MARKED : rank == MARKED ? 0 : rank;
    if (op < cuts->start + cuts->most)
        return 0;
    return cuts->start = best(cuts);
}

acs_op acs_cuts_likely(const acs_cuts *cuts)
{
    return best(cuts);
}

bool acs_cuts_full(const acs_cuts *cuts)
{
    return cuts->newest + 1 >= cuts->start + cuts->most;
}
