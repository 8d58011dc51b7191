/*
 * Where bundles end: at places that the stream of ops picks by itself. A program that repeats itself then gives the same
 * bundles again, however long its repeats are, wherever they begin, and a little after whatever came between them. Called by
 * the core as ops come; pure.
 *
 * How well a piece of the stream could begin with an op is a number that the types of the last few ops give: the same
 * wherever they come again. A piece ends before the best of the ops that would leave it at least three quarters of its
 * largest size: content-defined chunking, with which backup programs and network file systems find equal parts of files
 * (Muthitacharoen, Chen and Mazieres, A Low-bandwidth Network File System, section 3.1, on bytes). It stands where Legion's
 * automatic tracing searches the stream for repeats (Yadav and others, Automatic Tracing in Task-Based Runtime Systems):
 * nothing is searched or remembered, and ops that never recur cost no more than others.
 *
 * Of equals the last: ops of one type are cut at the largest size. Ops that the program marked (acs_mark_repeat) are better
 * than all others, wherever they are.
 */
#ifndef ACS_BOUNDARY_H
#define ACS_BOUNDARY_H

#include "base/base.h"

enum { ACS_BOUNDARY_MOST = 256 };

typedef struct acs_boundary {
    uint32_t most;        /* ops of a piece */
    uint64_t type;        /* of the newest op, */
    uint64_t recent;      /* and of the last 32; those before are shifted out */
    acs_op start;         /* the first op of the piece at hand; 0: none came yet */
    acs_op newest;
    acs_op best;          /* of those that came, the one before which it would end, and its rank; 0: too few came */
    uint32_t best_rank;
    uint32_t rank[ACS_BOUNDARY_MOST + 1]; /* by op modulo the size; of the piece at hand */
} acs_boundary;

/* `most` is at most ACS_BOUNDARY_MOST, and not 0. */
void acs_boundary_init(acs_boundary *boundary, uint32_t most);
/*
 * The next op in program order. @return the op before which the piece at hand ends, if that is known now, which may be this
 * one; else 0. That op begins the next piece.
 */
acs_op acs_boundary_add(acs_boundary *boundary, acs_op op, uint64_t type, bool marked);
/* A piece begins with the newest op, whatever came before: the runtime was idle. */
void acs_boundary_restart(acs_boundary *boundary);
/* The op before which the piece at hand ends if the best of those that came is the best of all; 0: too few came. */
static inline acs_op acs_boundary_likely(const acs_boundary *boundary)
{
    return boundary->best;
}
/* Whether all ops that the piece can have came. */
bool acs_boundary_full(const acs_boundary *boundary);

#endif
