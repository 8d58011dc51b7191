/*
 * Known ops: ops that passes of a repeat queued, one for all that are equal but for their arguments and the width of
 * their grids. Later calls are compared with them. Used by the other files of this folder; knows no context.
 *
 * All that a comparison reads lies side by side, in one block of memory: the struct, segments, arguments, and behind
 * them the record for all else. The block's contents are constant, except for links.
 */
#ifndef ACS_KNOWN_OP_H
#define ACS_KNOWN_OP_H

#include "window/record.h"

typedef struct acs_piece acs_piece;

typedef struct acs_known {
    /* links of ops.c, pieces.c and learn.c */
    struct acs_known *follower; /* what was queued behind it the last time; NULL: not known */
    acs_piece *piece;           /* a piece that has it, the one with which it began a replay last; NULL: none */
    /* what is compared first */
    const void *function;
    const acs_site *site;
    acs_dim3 block;
    uint32_t grid_y, grid_z, shared_bytes;
    uint16_t segment_count, arg_count;
    uint32_t strand;            /* ACS_STRAND_NONE: it came after strands were found last */
    acs_host_body host;
    const acs_segment *segments; /* these three behind the struct, in this order */
    const acs_arg_slot *args;
    unsigned char *arg_bytes;   /* arguments that it had before the first replay with it */
    uint32_t width;             /* the x of its grid, then */
    uint32_t kind;              /* acs_kernel_kind */
    uint32_t unloads;           /* acs_backend_unloads when it was learnt */
    bool launch;                /* the program launched a kernel: it is no copy or fill */
    uint8_t mark;               /* its bit in filters */
    uint32_t last_pass;         /* that queued it, modulo 2^32 */
    uint32_t begun_pass, begun_ops; /* pass in which it began a fragment last, modulo 2^32, and the ops of the longest */
    uint32_t tag;               /* acs_known_op_tag */
    uint32_t stamp;
    uint32_t refs;              /* of pieces; as long as there are any, its arguments stay */
    struct acs_known *same;     /* next one with the same place in the index */
    acs_record *op;             /* owned; with the segments, arguments and width above */
} acs_known;

/* Copy a filled record, which has a type; to free. NULL: no memory. */
acs_known *acs_known_op_create(const acs_record *op);
/* A hash of its function and its segments. Equal ops have equal tags. */
uint32_t acs_known_op_tag(const acs_record *op);
uint32_t acs_known_op_tag_of_launch(const acs_launch_params *params);
/* A hash of all in which equal ops are equal. */
uint64_t acs_known_op_hash(const acs_record *op);
/* Whether an op is the known one but for its arguments and its grid's width: same kernel, block, call site, segments. */
bool acs_known_op_equals(const acs_known *known, const acs_record *op);
/* The same for a launch that has no record yet. The sizes of its arguments are as they were, too. */
bool acs_known_op_matches(const acs_known *known, const acs_launch_params *params);
/* Whether an equal op, or a launch that matches, has the known op's own arguments and width. */
bool acs_known_op_has_values(const acs_known *known, const acs_record *op);
bool acs_known_op_has_values_of(const acs_known *known, const acs_launch_params *params);
/* Copy its arguments; arg_bytes is as long as the known op's. */
void acs_known_op_copy_args(const acs_known *known, const acs_launch_params *params, unsigned char *arg_bytes);
/* Take an equal op's arguments and width as its own: no piece has it. */
void acs_known_op_take_values(acs_known *known, const acs_record *op);
/* Prefetch what a comparison with it reads: first the struct; and once that is there, what lies behind it. */
static inline void acs_known_op_fetch(const acs_known *known)
{
    __builtin_prefetch(known);
    __builtin_prefetch((const unsigned char *)known + ACS_CACHE_LINE);
}
static inline void acs_known_op_fetch_lists(const acs_known *known)
{
    const unsigned char *end = known->arg_bytes + known->arg_count * sizeof(uint64_t);
    for (const unsigned char *at = (const unsigned char *)known->segments; at < end; at += ACS_CACHE_LINE)
        __builtin_prefetch(at);
}

#endif
