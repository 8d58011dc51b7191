/*
 * Sequences of known ops: whether one covers another, and the shortest one that covers two (the shortest common
 * supersequence, by dynamic programming). Used by learn.c and match.c. Knows ops by their address only.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>

uint32_t acs_sequence_place(acs_known *const *ops, uint32_t count, uint32_t place, const acs_known *op)
{
    while (place < count && ops[place] != op)
        place++;
    return place;
}

bool acs_sequence_covers(acs_known *const *ops, uint32_t count, acs_known *const *other, uint32_t other_count)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < other_count; i++, place++) {
        place = acs_sequence_place(ops, count, place, other[i]);
        if (place == count)
            return false;
    }
    return true;
}

enum { SIDE = ACS_REPLAY_OPS + 1 };

/* length[i][j]: of the shortest sequence that covers all of `a` from i on, and of `b` from j on. */
typedef struct lengths {
    uint16_t length[SIDE][SIDE];
} lengths;

static void fill(lengths *l, acs_known *const *a, uint32_t a_count, acs_known *const *b, uint32_t b_count)
{
    for (uint32_t i = a_count + 1; i-- > 0;)
        for (uint32_t j = b_count + 1; j-- > 0;) {
            if (i == a_count || j == b_count)
                l->length[i][j] = (uint16_t)(a_count - i + b_count - j);
            else if (a[i] == b[j])
                l->length[i][j] = (uint16_t)(1 + l->length[i + 1][j + 1]);
            else
                l->length[i][j] = (uint16_t)(1 + (l->length[i + 1][j] <= l->length[i][j + 1] ? l->length[i + 1][j]
                                                                                             : l->length[i][j + 1]));
        }
}

uint32_t acs_sequences_join(acs_known *const *a, uint32_t a_count, acs_known *const *b, uint32_t b_count,
                            acs_joined *joined, uint32_t most)
{
    ACS_ASSERT(a_count <= ACS_REPLAY_OPS && b_count <= ACS_REPLAY_OPS);
    lengths *l = malloc(sizeof *l);
    if (!l)
        return 0;
    fill(l, a, a_count, b, b_count);
    const uint32_t count = l->length[0][0] <= most ? l->length[0][0] : 0;
    for (uint32_t n = 0, i = 0, j = 0; n < count; n++) {
        const bool both = i < a_count && j < b_count && a[i] == b[j];
        const bool first = both || j == b_count || (i < a_count && l->length[i + 1][j] <= l->length[i][j + 1]);
        joined[n] = (acs_joined){first ? a[i] : b[j], ACS_REPLAY_OPS, ACS_REPLAY_OPS};
        if (first)
            joined[n].a = (uint16_t)i++;
        if (both || !first)
            joined[n].b = (uint16_t)j++;
    }
    free(l);
    return count;
}
