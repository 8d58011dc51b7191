/*
 * The ops that more than one pass of a repeat queued, and an index by their tags. Called by match.c, trace.c and learn.c
 * under the lock. Equal ops are one. Knows nothing of their order.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>

static void index_add(acs_repeat *repeat, acs_known *known)
{
    acs_known **at = &repeat->index[known->tag & repeat->index_mask];
    known->same = *at;
    *at = known;
}

static bool index_grow(acs_repeat *repeat)
{
    const uint32_t size = repeat->index ? (repeat->index_mask + 1) * 4 : TUNE_REPEAT_INDEX;
    acs_known **const old = repeat->index;
    const uint32_t old_size = old ? repeat->index_mask + 1 : 0;
    if (old && repeat->known_count <= repeat->index_mask)
        return true;
    acs_known **grown = calloc(size, sizeof(acs_known *));
    if (!grown)
        return old != NULL;
    repeat->index = grown;
    repeat->index_mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        for (acs_known *known = old[i], *next; known; known = next) {
            next = known->same;
            index_add(repeat, known);
        }
    free(old);
    return true;
}

acs_known *acs_known_first(const acs_repeat *repeat, uint32_t tag)
{
    return repeat->index ? repeat->index[tag & repeat->index_mask] : NULL;
}

acs_known *acs_known_add(acs_repeat *repeat, const acs_record *op)
{
    if (repeat->known_count == TUNE_REPEAT_OPS || !index_grow(repeat))
        return NULL;
    acs_known *known = acs_known_op_create(op);
    if (!known)
        return NULL;
    known->strand = ACS_STRAND_NONE;
    known->mark = repeat->marks++;
    known->last_pass = (uint32_t)repeat->passes;
    index_add(repeat, known);
    repeat->known_count++;
    return known;
}

acs_known *acs_known_get(acs_repeat *repeat, const acs_record *op)
{
    const uint32_t tag = acs_known_op_tag(op);
    acs_known *known = acs_known_first(repeat, tag);
    while (known && (known->tag != tag || !acs_known_op_equals(known, op)))
        known = known->same;
    if (known && !known->refs)
        acs_known_op_take_values(known, op);
    return known;
}

static void forget_followers(acs_repeat *repeat)
{
    for (uint32_t i = 0; i <= repeat->index_mask; i++)
        for (acs_known *known = repeat->index[i]; known; known = known->same)
            known->follower = NULL;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        repeat->strands[s].began = NULL;
    repeat->first_op = repeat->last = NULL;
}

bool acs_known_drop(acs_repeat *repeat, uint64_t pass, bool all)
{
    const uint32_t before = repeat->known_count;
    if (!repeat->index)
        return false;
    forget_followers(repeat);
    for (uint32_t i = 0; i <= repeat->index_mask; i++)
        for (acs_known **at = &repeat->index[i]; *at;) {
            acs_known *known = *at;
            const bool recent = (int32_t)(known->last_pass - (uint32_t)pass) >= 0;
            if ((known->refs || recent) && !all) {
                at = &known->same;
                continue;
            }
            *at = known->same;
            free(known);
            repeat->known_count--;
        }
    return repeat->known_count < before;
}
