/*
 * Where the bytes of a block are valid: which devices, and the host, hold the newest contents of which range. (GrCUDA's
 * multi-GPU scheduler, section III-B2, keeps this for whole arrays; here it is by byte.) A read makes a replica, a write
 * leaves one valid place.
 *
 * A state machine in program order: it is told of ops when they are queued, before they run. If a copy fails then, its
 * bytes are still valid at their origin. Not thread-safe.
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
    acs_place_set places; /* places that hold them; 0: no op has written them, so there is nothing to copy */
    uint32_t origin;      /* place that holds them if copies fail (COH-2); 0 without places */
    bool inherited;
} acs_validity;

typedef struct acs_coherence {
    acs_validity *pieces;
    uint32_t count, capacity;
    uint64_t bytes;
} acs_coherence;

/* Begin with no byte written. ACS_ERR_MEMORY through ACS_FAIL; the size is not 0. */
acs_status acs_coherence_init(acs_coherence *c, uint64_t bytes);
void acs_coherence_fini(acs_coherence *c);

/*
 * Write: [from, to) is valid at the place alone. Copy: bytes of [from, to) that are valid anywhere are valid at the
 * place, too. Ranges lie in the block. ACS_ERR_MEMORY through ACS_FAIL: nothing changed.
 */
acs_status acs_coherence_write(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
acs_status acs_coherence_copy(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
/*
 * The place gives its memory up, and holds nothing any more; bytes that it alone held are lost. Of bytes that originated
 * there, the remaining place with the lowest number becomes the origin. Cannot fail.
 */
void acs_coherence_drop(acs_coherence *c, uint32_t place);
/*
 * Restore: a copy of the range to the place failed, and perhaps later ones did. The bytes are valid at their origin
 * alone; if the place is an inherited origin, at the other places, if there are any.
 *
 * Settle: the program may change the bytes at the place at any time. Those that are valid there are valid there alone.
 *
 * Neither can fail: without memory for more pieces whole pieces are changed that the range touches.
 */
void acs_coherence_restore(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);
void acs_coherence_settle(acs_coherence *c, uint64_t from, uint64_t to, uint32_t place);

/*
 * Find the first range in [from, to) that is valid somewhere, but not at `place`: a read there needs it copied first.
 * False: there is none. The next search starts at missing->to.
 */
bool acs_coherence_missing(const acs_coherence *c, uint64_t from, uint64_t to, uint32_t place, acs_validity *missing);
/*
 * Find the first range from `from` on that is valid at `place` alone: it has to be copied before the place may give its
 * memory up.
 */
bool acs_coherence_sole(const acs_coherence *c, uint64_t from, uint32_t place, acs_validity *sole);
/* Places that hold any byte of the block; places that hold all bytes of [from, to) that were ever written. */
acs_place_set acs_coherence_any(const acs_coherence *c);
acs_place_set acs_coherence_all(const acs_coherence *c, uint64_t from, uint64_t to);
/*
 * The first bytes of [from, to) that are valid at the same places. False: the range is empty. The next search starts at
 * piece->to.
 */
bool acs_coherence_piece(const acs_coherence *c, uint64_t from, uint64_t to, acs_validity *piece);
/* Reserve memory, so that the next `changes` writes and copies cannot fail. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_coherence_reserve(acs_coherence *c, uint32_t changes);
bool acs_coherence_check(const acs_coherence *c);

#endif
