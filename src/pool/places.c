/*
 * Bits in levels, each with 64 times fewer than the level below (see places.h). Called by blocks.c for each block that
 * is taken or freed, and for each look-up of an address inside a block.
 */
#include "pool/places.h"

#include <stdlib.h>

bool acs_places_init(acs_places *p, uint64_t bound)
{
    uint64_t words[ACS_PLACES_LEVELS], all = 0;
    uint32_t depth = 0;
    do {
        bound = bound / 64 + 1; /* sometimes one more than needed, so that an empty set has a word */
        words[depth] = bound;
        all += bound;
        depth++;
    } while (bound > 1);
    uint64_t *bits = calloc((size_t)all, sizeof *bits);
    if (!bits)
        return false;
    *p = (acs_places){.depth = depth};
    for (uint32_t level = 0; level < depth; bits += words[level++])
        p->levels[level] = bits;
    return true;
}

void acs_places_fini(acs_places *p)
{
    free(p->levels[0]);
    *p = (acs_places){0};
}

void acs_places_add(acs_places *p, uint64_t place)
{
    ACS_ASSERT(!(p->levels[0][place / 64] >> place % 64 & 1)); /* BLOCK-2 */
    for (uint32_t level = 0; level < p->depth; level++, place /= 64) {
        uint64_t *word = &p->levels[level][place / 64];
        bool known = *word != 0; /* the level above has its bit already */
        *word |= UINT64_C(1) << place % 64;
        if (known)
            return;
    }
}

void acs_places_remove(acs_places *p, uint64_t place)
{
    ACS_ASSERT(p->levels[0][place / 64] >> place % 64 & 1); /* BLOCK-2 */
    for (uint32_t level = 0; level < p->depth; level++, place /= 64) {
        uint64_t *word = &p->levels[level][place / 64];
        *word &= ~(UINT64_C(1) << place % 64);
        if (*word)
            return;
    }
}

static uint64_t highest(uint64_t word)
{
    return 63 - (uint64_t)__builtin_clzll(word);
}

/* Go up until a word has a member that is low enough, then down to the largest below it. */
bool acs_places_up_to(const acs_places *p, uint64_t place, uint64_t *member)
{
    uint64_t bits = p->levels[0][place / 64] & UINT64_MAX >> (63 - place % 64);
    uint32_t level = 0;
    while (!bits) {
        place /= 64;
        if (++level == p->depth)
            return false;
        bits = p->levels[level][place / 64] & ((UINT64_C(1) << place % 64) - 1);
    }
    place = place / 64 * 64 + highest(bits);
    while (level-- > 0)
        place = place * 64 + highest(p->levels[level][place]);
    *member = place;
    return true;
}
