/*
 * Replays: kernels, consecutive in program order, that pass through FIFO, window and slots as one op of kind
 * ACS_KIND_REPLAY. A repeat (src/repeats) makes one where the program launches again what it launched before: the
 * dependencies inside and the footprint of all were computed once, for the shape. The core orders the replay as a
 * whole. A backend launches its kernels as one cached graph, or one after another.
 *
 * The ops of a shape have *places*, in program order. A replay has some of them: the others are left out this time.
 * (Legion: Lee and others, Dynamic Tracing, replays the analysis of a marked part of the program.)
 *
 * Mostly an op has the arguments and the grid that it had in an earlier replay. So those of the shape's ops are kept
 * once, and a replay has room for what differs. The thread that makes the replay writes nothing else about its ops.
 *
 * RPL-1  a replay's ops are numbered in their order, from `first` on.
 * RPL-2  an op ends as its replay does, except for those in `ends`. The core books these before the replay ends.
 */
#ifndef ACS_REPLAY_H
#define ACS_REPLAY_H

#include "window/batch.h"

enum { ACS_REPLAY_OPS = 256, ACS_REPLAY_WORDS = ACS_REPLAY_OPS / 64 };

/* What all replays of the same ops share. Constant. */
typedef struct acs_replay_shape {
    uint64_t id;            /* unique in the process; never 0 */
    uint32_t ops;           /* number of places */
    uint32_t *first_edge;   /* by place, and one more: into `edges` */
    uint16_t *edges;        /* places that an op follows: all before it, none implied, greatest first */
    const acs_record *const *op; /* by place; with the arguments and grid of replays in which they do not differ */
    uint32_t *arg_at;       /* by place, and one more: where a replay's own arguments lie, aligned to 16 bytes */
    uint64_t became_kernel[ACS_REPLAY_WORDS]; /* by place: the program called a copy, a fill or a repeatable function */
    uint64_t decisions[ACS_REPLAY_WORDS]; /* by place: the op decides, or is decided */
} acs_replay_shape;

/* An op that did not run. */
typedef struct acs_replay_end {
    uint32_t at;
    acs_status status;  /* ACS_ERR_SKIPPED, or that of the refused launch */
    acs_op cause;       /* number of the op that failed first: its own, if it was refused */
    int native;
    const char *text;   /* static storage, or NULL */
} acs_replay_end;

typedef struct acs_replay {
    const acs_replay_shape *shape;
    acs_op first;       /* number of its first op */
    uint64_t all[ACS_REPLAY_WORDS]; /* by place: the op is part of the replay */
    uint64_t on[ACS_REPLAY_WORDS]; /* by place: the same, without those that were taken out */
    uint64_t differs[ACS_REPLAY_WORDS]; /* by place: it has arguments and a width of its own, not the shape's */
    uint32_t *width;    /* by place; the x of the grid, of those that differ */
    unsigned char *args; /* as the shape's arg_at says; of those that differ */
    acs_record *ops;    /* by place; acs_replay_op fills them when they are needed */
    /*
     * A hint for backends: ops (by place) whose arguments, or grid, or whether they are on, change from replay to replay.
     * Replays with the same `version` have the same.
     */
    uint64_t varies[ACS_REPLAY_WORDS];
    uint32_t version;
    bool one_by_one;    /* the backend had to issue it so: what issues it at once has gone */
    uint32_t count;     /* its ops */
    acs_replay_end *ends; /* room for an element for each place */
    uint32_t end_count; /* written by the thread that has the replay's action */
    uint32_t ends_told; /* of them, those that later ops know of; the core's */
    _Atomic bool busy;  /* not given back yet; H: release in acs_replay_give_back */
} acs_replay;

static inline bool acs_replay_has(const acs_replay *r, uint32_t at)
{
    return r->on[at / 64] >> at % 64 & 1;
}
static inline bool acs_replay_differs(const acs_replay *r, uint32_t at)
{
    return r->differs[at / 64] >> at % 64 & 1;
}
/* The number of its op at this place. */
static inline acs_op acs_replay_number(const acs_replay *r, uint32_t at)
{
    acs_op number = r->first; /* RPL-1 */
    for (uint32_t word = 0; word < at / 64; word++)
        number += (acs_op)__builtin_popcountll(r->all[word]);
    return number + (acs_op)__builtin_popcountll(r->all[at / 64] & (((uint64_t)1 << at % 64) - 1));
}
static inline uint32_t acs_replay_width(const acs_replay *r, uint32_t at)
{
    return acs_replay_differs(r, at) ? r->width[at] : r->shape->op[at]->grid.x;
}
static inline unsigned char *acs_replay_args(const acs_replay *r, uint32_t at)
{
    return acs_replay_differs(r, at) ? r->args + r->shape->arg_at[at] : r->shape->op[at]->arg_bytes;
}
/* The record of an op that is on, or was taken out. Called by the thread that has the replay's action. */
acs_record *acs_replay_op(acs_replay *r, uint32_t at);

/*
 * The shape of these ops, which are kernels with a type. The list and the ops outlive it. NULL: no memory, or more than
 * ACS_BATCH_EDGES edges.
 */
acs_replay_shape *acs_replay_shape_create(const acs_record *const *ops, uint32_t count);
void acs_replay_shape_destroy(acs_replay_shape *shape);

/* A replay of the shape, without ops yet. NULL: no memory. */
acs_replay *acs_replay_create(const acs_replay_shape *shape);
/* It is free. NULL is allowed. */
void acs_replay_destroy(acs_replay *r);
/* Begin to fill a free replay. */
void acs_replay_begin(acs_replay *r, acs_op first);
/* Add the op at `at`, behind all others. `differs`: its width and arguments were written. @return its number. */
static inline acs_op acs_replay_add(acs_replay *r, uint32_t at, bool differs)
{
    r->all[at / 64] |= (uint64_t)1 << at % 64;
    r->on[at / 64] |= (uint64_t)1 << at % 64;
    r->differs[at / 64] |= (uint64_t)differs << at % 64;
    return r->first + r->count++;
}
/* Add the op that another replay has at `from_at`. */
void acs_replay_add_from(acs_replay *r, uint32_t at, const acs_replay *from, uint32_t from_at);

/* Length of the longest chain of dependent ops in it. */
uint32_t acs_replay_depth(const acs_replay *r);

/* An op does not run: take it out. */
void acs_replay_take_out(acs_replay *r, const acs_replay_end *end);
/* The op that failed first among the ops taken out that precede `at` and conflict with it; 0: none. */
acs_op acs_replay_cause(const acs_replay *r, uint32_t at);

/*
 * Describe the replay as a bundle of one slot (batch.h), without marks and waits. Its last op has this value. `all`:
 * with the ops that are left out, too. False: nothing is on, or it would have more than ACS_BATCH_EDGES edges.
 */
bool acs_replay_batch(acs_replay *r, int slot, uint64_t value, bool all, acs_batch *batch);

/*
 * Issue the ops one after another, into one stream, by `issue`. Refused ops and those that depend on them are taken
 * out. Stops where `issue` returns ACS_ERR_DEVICE, and returns that; else ACS_OK.
 */
typedef acs_status (*acs_replay_issue)(void *user, acs_record *op, int *native, const char **text);
acs_status acs_replay_one_by_one(acs_replay *r, acs_replay_issue issue, void *user);

/* The core no longer uses the replay. Pairs with acs_replay_is_free (H). */
void acs_replay_give_back(acs_replay *r);
bool acs_replay_is_free(acs_replay *r);

#endif
