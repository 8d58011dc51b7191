/*
 * Where the bytes of a block are valid: which of the devices, and the host, hold the newest contents of which range
 * (GrCUDA's multi-GPU scheduler keeps this for whole arrays, section III-B2; here it is by byte). A read makes a replica, a
 * write leaves one valid place. A state machine in program order: it is told what is queued, before it happens; of a copy
 * that then fails the bytes are still at their origin. Not thread-safe.
 *
 * COH-1  the pieces follow each other from 0 to the block's size without gaps, none is empty, no two neighbours say the
 *        same.
 * COH-2  the origin of a piece is one of its places: where it was written, or, where that gave its memory up
 *        (`inherited`), a copy of it, which may have failed like others.
 */
#ifndef ACS_DEVICES_COHERENCE_H
#define ACS_DEVICES_COHERENCE_H

#include "base/base.h"

/* A bit for each place. */
typedef uint32_t acs_place_set;

typedef struct acs_validity {
    uint64_t from, to; /* bytes [from, to) of the block */
    acs_place_set places; /* that hold them; 0: nobody has written them, so there is nothing to copy */
    uint32_t origin;      /* COH-2; 0 where there are no places */
    bool inherited;
} acs_validity;

typedef struct acs_coherence {
    acs_validity *pieces;
    uint32_t count, capacity;
    uint64_t bytes;
} acs_coherence;

/* Nobody has written anything. ACS_ERR_MEMORY through ACS_FAIL; the size is not 0. */
acs_status acs_coherence_init(acs_coherence *c, uint64_t bytes);
void acs_coherence_fini(acs_coherence *c);

/*
 * [from, to) is written at one place, where its contents then are alone; or has been copied to a place, where they are then
 * as well, as far as they are anywhere. Ranges lie in the block. ACS_ERR_MEMORY through ACS_FAIL: nothing changed.
 */
acs_status acs_coherence_write(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
acs_status acs_coherence_copy(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
/*
 * The place gives its memory up: it holds nothing any more, what it held alone is lost. The copy of its bytes with the
 * lowest number becomes their origin. Cannot fail.
 */
void acs_coherence_drop(acs_coherence *c, uint32_t place);
/*
 * A copy of the range to the place failed, and perhaps others after it: the bytes are at their origin alone; if that was
 * this copy, which had inherited it, at the others, where there are any. And: what the place holds of the range is there
 * for sure, and may change there at any time: it is nowhere else. Neither can fail: without memory for more pieces it is
 * done to those that the range touches, as wholes.
 */
void acs_coherence_restore(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
void acs_coherence_settle(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);

/*
 * The first range in [from, to) that is valid somewhere, but not at `place`: what a read there needs copied first. False:
 * there is none. Go on from missing->to.
 */
bool acs_coherence_missing(const acs_coherence *c, uint64_t from, uint64_t to, uint32_t place, acs_validity *missing);
/* The same for what is valid at `place` alone: what has to be copied before it may give its memory up. */
bool acs_coherence_sole(const acs_coherence *c, uint64_t from, uint32_t place, acs_validity *sole);
/* The places that hold any byte of the block; those that hold all bytes of [from, to) that anyone has written. */
acs_place_set acs_coherence_any(const acs_coherence *c);
acs_place_set acs_coherence_all(const acs_coherence *c, uint64_t from, uint64_t to);
/* The first bytes of [from, to) that the same places hold. False: the range is empty. Go on from piece->to. */
bool acs_coherence_piece(const acs_coherence *c, uint64_t from, uint64_t to, acs_validity *piece);
/* So many writes and copies cannot fail any more. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_coherence_reserve(acs_coherence *c, uint32_t changes);
bool acs_coherence_check(const acs_coherence *c);

#endif
