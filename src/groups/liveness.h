/*
 * Liveness: the order of a group's ops, and the places of its blocks in one piece of memory. Blocks that are not in use
 * at the same time share memory (HuntKTm, section 5.4). Knows numbers only: ops, their dependencies, blocks and their
 * users. A pure function, but for the memory that it works in.
 *
 * Two blocks may overlap if all users of one come behind all users of the other: by dependencies, and if `slots` is
 * given, also by the order within a slot, which exists for this purpose alone. So fewer slots take less memory, and let
 * fewer ops run at once. An op that takes memory over comes behind its former users, as any op that touches the same
 * bytes; `taken_over` tells where a new life begins.
 *
 * LIVE-1  blocks that overlap have users of which all of one are before all of the other in `order`, by dependencies or
 *         slots.
 * LIVE-2  `order` has each op once, behind all that it depends on.
 * LIVE-3  every block lies within `peak` bytes.
 */
#ifndef ACS_LIVENESS_H
#define ACS_LIVENESS_H

#include "base/base.h"

/* A set of ops: a bit for each. */
typedef struct acs_op_sets {
    uint32_t count, words; /* number of sets; words of each */
    uint64_t *bits;        /* words of all sets, set after set */
} acs_op_sets;

typedef struct acs_live_block {
    uint64_t bytes;
    const uint32_t *users; /* ops that touch it, rising, each once; at least one */
    uint32_t user_count;
    /* out */
    uint64_t offset;       /* a multiple of 256 */
    bool taken_over;       /* whether another block had some of this memory before */
} acs_live_block;

typedef struct acs_liveness {
    /* in */
    const acs_op_sets *before; /* for each op all ops that it depends on, directly or through others: lower numbers */
    const bool *soon;          /* for each op whether it goes as soon as it can, since it frees memory */
    acs_live_block *blocks;
    uint32_t block_count;
    uint32_t slots;            /* most slots; 0: no op is ordered for the sake of memory */
    /* out */
    uint32_t *order;           /* ops in their order; room for one entry per op */
    uint32_t *slot;            /* slot of each op; room for one entry per op */
    uint64_t sum;              /* bytes of all blocks */
    uint64_t bound;            /* HuntKTm's upper bound for the peak, without regard to dependencies */
    uint64_t peak;             /* bytes that the blocks take */
} acs_liveness;

/* `count` sets of ops below `ops`, which are empty. ACS_ERR_MEMORY. */
acs_status acs_op_sets_create(acs_op_sets *sets, uint32_t count, uint32_t ops);
void acs_op_sets_destroy(acs_op_sets *sets);
static inline uint64_t *acs_op_set(const acs_op_sets *sets, uint32_t op)
{
    return sets->bits + (size_t)op * sets->words;
}
static inline bool acs_op_set_has(const uint64_t *set, uint32_t op)
{
    return set[op / 64] >> op % 64 & 1;
}
/* Note that `op` comes behind `upstream`, and behind all that `upstream` comes behind. */
void acs_op_sets_behind(acs_op_sets *sets, uint32_t op, uint32_t upstream);

/* Fill in the plan. ACS_ERR_MEMORY: for the work on the plan. */
acs_status acs_liveness_plan(acs_liveness *plan);

#endif
