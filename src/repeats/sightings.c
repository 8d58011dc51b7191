/*
 * Kernels that passes of a repeat queued once: a hash of each, so that a kernel that never comes again costs no more.
 * Called by trace.c under the lock. Two kernels with the same hash cost a known op that may never recur.
 *
 * The table is open to one hash after another (linear probing), and half empty. An element has the upper 48 bits of the
 * hash, and the lower 16 of the pass that queued the kernel last.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t g_pass_mask = UINT16_MAX;

/* The place of the hash, or the free one where it belongs. */
static uint64_t *place_of(const acs_sightings *s, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 16) & s->mask;
    while (s->places[at] && (s->places[at] ^ hash) > g_pass_mask)
        at = (at + 1) & s->mask;
    return &s->places[at];
}

/* Room for one more; where there is none, all are forgotten. False: no memory. */
static bool reserve_one(acs_sightings *s)
{
    const uint32_t size = s->places ? s->mask + 1 : 0;
    if (2 * s->count < size)
        return true;
    if (size >= 4 * TUNE_REPEAT_OPS) {
        memset(s->places, 0, size * sizeof *s->places);
        s->count = 0;
        return true;
    }
    acs_sightings grown = {.mask = size ? 2 * size - 1 : TUNE_REPEAT_INDEX - 1, .count = s->count};
    grown.places = calloc(grown.mask + 1, sizeof *grown.places);
    if (!grown.places)
        return false;
    for (uint32_t i = 0; i < size; i++)
        if (s->places[i])
            *place_of(&grown, s->places[i]) = s->places[i];
    free(s->places);
    *s = grown;
    return true;
}

bool acs_sightings_had(acs_sightings *s, uint64_t hash, uint64_t pass)
{
    hash = hash | (uint64_t)1 << 63; /* no element is 0 */
    if (!reserve_one(s))
        return false;
    uint64_t *place = place_of(s, hash);
    const bool earlier = *place && (*place ^ pass) & g_pass_mask;
    s->count += !*place;
    *place = (hash & ~g_pass_mask) | (pass & g_pass_mask);
    return earlier;
}

void acs_sightings_free(acs_sightings *s)
{
    free(s->places);
}
