/*
 * How many launches run side by side, seen from the program's order. Launches that follow each other by their bytes form
 * a *strand*, and those of different strands may run at once. A strand counts while its latest op has not ended. Pure,
 * under the owner's lock; defined in strands.c.
 *
 * ConCo (section 3.5) knows which models run together. A runtime that is told what each launch reads and writes need not
 * be told: the launches that wait or run are known, and what orders them.
 */
#ifndef ACS_STRANDS_H
#define ACS_STRANDS_H

#include "base/base.h"

enum { ACS_STRANDS_MOST = 16, ACS_STRAND_WRITERS = 1024 /* a power of two */ };

typedef struct acs_strand_writer {
    uint64_t base;      /* first byte of a segment that a launch wrote; 0: none */
    uint64_t strand;
} acs_strand_writer;

typedef struct acs_strands {
    uint64_t made;      /* strands made so far; their numbers count from 1 */
    struct {
        uint64_t strand; /* 0: none */
        uint64_t latest; /* number of its latest op */
    } recent[ACS_STRANDS_MOST]; /* the latest first */
    acs_strand_writer writer[ACS_STRAND_WRITERS]; /* by hash; a later one replaces an earlier one */
} acs_strands;

/*
 * A launch with these segments comes and will be the op with this number; ops up to `ended` have ended, or will have before
 * it can run: how many launches run side by side with it, itself among them; ACS_STRANDS_MOST at most.
 */
uint32_t acs_strands_add(acs_strands *strands, const acs_segment *segments, size_t count, uint64_t number, uint64_t ended);

#endif
