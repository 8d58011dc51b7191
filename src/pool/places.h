/*
 * A set of numbers below a bound, that finds its largest member up to a number in a few steps, however far below it
 * lies. Level 0 has a bit for each number; each further level has a bit for each nonzero word of the level below. Not
 * thread-safe.
 */
#ifndef ACS_POOL_PLACES_H
#define ACS_POOL_PLACES_H

#include "base/base.h"

enum { ACS_PLACES_LEVELS = 11 }; /* 64^11 numbers are more than there are */

/* All zero: empty, with bound 0. */
typedef struct acs_places {
    uint64_t *levels[ACS_PLACES_LEVELS]; /* words of each level, the lowest first; one allocation */
    uint32_t depth;
} acs_places;

/* Make an empty set. Memory for the bits is asked for at once, but touched only near members. False: no memory. */
bool acs_places_init(acs_places *places, uint64_t bound);
void acs_places_fini(acs_places *places);
void acs_places_add(acs_places *places, uint64_t place);
void acs_places_remove(acs_places *places, uint64_t place);
/* Find the largest member up to `place`, which is below the bound. False: there is none. */
bool acs_places_up_to(const acs_places *places, uint64_t place, uint64_t *member);

#endif
