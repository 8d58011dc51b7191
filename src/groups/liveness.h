/*
 * Liveness: in which order the ops of a group go, and where its blocks lie in one piece of memory, so that blocks which are
 * not in use at the same time share it (HuntKTm, section 5.4). Knows numbers only: ops, who is behind whom, blocks and who
 * uses them. A pure function, but for the memory that it works in.
 *
 * Two blocks may lie in the same place if all users of one are behind all users of the other: by what they depend on, and,
 * if `slots` is given, by the slot that they are in, whose order nobody needs but for this. So few slots take less memory,
 * and let less run at once. Who takes a place over comes behind its former users, as whoever touches the same bytes;
 * `taken_over` tells where a new life begins.
 *
 * LIVE-1  blocks that overlap have users of which all of one are before all of the other in `order`, by dependencies or
 *         slots.
 * LIVE-2  `order` has each op once, behind all that it depends on.
 * LIVE-3  every block lies within `peak` bytes.
 */
#ifndef ACS_POOL_LIVENESS_H
#define ACS_POOL_LIVENESS_H

#include "base/base.h"

/* A set of ops: a bit for each. */
typedef struct acs_op_sets {
    uint32_t count, words; /* ops; words of a set */
    uint64_t *bits;        /* set after set */
} acs_op_sets;

typedef struct acs_live_block {
    uint64_t bytes;
    const uint32_t *users; /* ops that touch it, rising, each once; at least one */
    uint32_t user_count;
    /* out */
    uint64_t offset;       /* a multiple of 256 */
    bool taken_over;       /* some of the place was another block's before */
} acs_live_block;

typedef struct acs_liveness {
    /* in */
    const acs_op_sets *before; /* for each op all that it depends on, directly or through others: lower numbers */
    const bool *soon;          /* for each op: it goes as soon as it can, since it only lets memory go */
    acs_live_block *blocks;
    uint32_t block_count;
    uint32_t slots;            /* 0: nothing is ordered for the sake of memory */
    /* out */
    uint32_t *order;           /* room for an entry for each op */
    uint32_t *slot;            /* the same: the slot of each op */
    uint64_t sum;              /* bytes of all blocks */
    uint64_t bound;            /* HuntKTm's upper bound for the peak, without looking at who waits for whom */
    uint64_t peak;             /* bytes that are taken */
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
/* `op` is behind `upstream`, and behind all that this is behind. */
void acs_op_sets_behind(acs_op_sets *sets, uint32_t op, uint32_t upstream);

/* ACS_ERR_MEMORY: for the plan itself. */
acs_status acs_liveness_plan(acs_liveness *plan);

#endif
