/*
 * The end of each bundle: a place that the stream of ops itself determines. A program that repeats itself then gives
 * the same bundles again, wherever its repeats begin and however long they are. Called by form.c as ops come; pure.
 *
 * The types of the last 32 ops give each op a rank: equal sequences of types give equal ranks. A piece ends before the
 * op of highest rank, among the ops that leave it at least three quarters of its largest size. This is content-defined
 * chunking, with which backup programs and network file systems find equal parts of files (Muthitacharoen, Chen and
 * Mazieres, A Low-bandwidth Network File System, section 3.1). Legion's automatic tracing searches the stream for
 * repeats instead (Yadav and others, Automatic Tracing in Task-Based Runtime Systems). Chunking searches and remembers
 * nothing, and ops that never recur cost no more than others.
 *
 * Of equal ranks the last wins: ops of one type are cut at the largest size. Ops that the program marked
 * (acs_mark_repeat) have the highest rank and may end a piece anywhere.
 */
#ifndef ACS_BOUNDARY_H
#define ACS_BOUNDARY_H

#include "base/base.h"

enum { ACS_BOUNDARY_MOST = 256 };

typedef struct acs_boundary {
    uint32_t most;        /* most ops in a piece */
    uint64_t type;        /* type of the newest op */
    uint64_t recent;      /* hash of the types of the last 32 ops; older ones are shifted out */
    acs_op start;         /* first op of the current piece; 0: no op came yet */
    acs_op newest;
    acs_op best;          /* op before which the piece would end now; 0: too few ops came. Its rank is best_rank */
    uint32_t best_rank;
    uint32_t rank[ACS_BOUNDARY_MOST + 1]; /* ranks of the current piece's ops, by op modulo the array's size */
} acs_boundary;

/* `most`: largest piece in ops, 1 to ACS_BOUNDARY_MOST. */
void acs_boundary_init(acs_boundary *boundary, uint32_t most);
/*
 * Take the next op in program order. @return the op before which the current piece ends, or 0 if that is not known
 * yet. It may be this op; the next piece begins with it.
 */
acs_op acs_boundary_add(acs_boundary *boundary, acs_op op, uint64_t type, bool marked);
/* Begin a piece with the newest op, whatever came before, since the runtime was idle. */
void acs_boundary_restart(acs_boundary *boundary);
/* The op before which the piece would end if no better op came; 0: too few ops came. */
static inline acs_op acs_boundary_likely(const acs_boundary *boundary)
{
    return boundary->best;
}
/* Whether the current piece has its largest size. */
bool acs_boundary_full(const acs_boundary *boundary);

#endif
