/*
 * Conflicts between footprints, in the most naive way: every row against every row. Shares no code with the library.
 */
#ifndef RANDOM_OVERLAP_H
#define RANDOM_OVERLAP_H

#include "acs.h"

#include <stdbool.h>

typedef struct footprint {
    const acs_segment *list;
    size_t count;
    bool any; /* may touch anything */
} footprint;

bool footprint_touches(const footprint *f);
/* Whether one writes what the other touches: bytes, tokens or all memory. */
bool footprint_conflict(const footprint *a, const footprint *b);

#endif
