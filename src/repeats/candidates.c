/*
 * Candidates: the ops that the passes of a repeat queued, in program order, and an index by their tags. Called by
 * match.c and learn.c under the lock. Never decides which of them become part of the list.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <utlist.h>

enum { INDEX_FIRST_SIZE = 64 };

static void index_add(acs_repeat *repeat, acs_candidate *c)
{
    acs_candidate **at = &repeat->index[c->tag & repeat->index_mask];
    while (*at) /* the oldest first */
        at = &(*at)->same;
    c->same = NULL;
    *at = c;
}

static void index_remove(acs_repeat *repeat, acs_candidate *c)
{
    acs_candidate **at = &repeat->index[c->tag & repeat->index_mask];
    while (*at != c)
        at = &(*at)->same;
    *at = c->same;
}

static bool index_grow(acs_repeat *repeat)
{
    const uint32_t size = repeat->index ? (repeat->index_mask + 1) * 4 : INDEX_FIRST_SIZE;
    acs_candidate *c;
    if (repeat->index && repeat->candidate_count <= repeat->index_mask)
        return true;
    acs_candidate **grown = calloc(size, sizeof(acs_candidate *));
    if (!grown)
        return repeat->index != NULL;
    free(repeat->index);
    repeat->index = grown;
    repeat->index_mask = size - 1;
    DL_FOREACH (repeat->candidates, c)
        index_add(repeat, c);
    return true;
}

acs_candidate *acs_candidate_add(acs_repeat *repeat, const acs_record *op, acs_candidate *behind)
{
    if (repeat->candidate_count == TUNE_REPEAT_OPS || !index_grow(repeat))
        return NULL;
    acs_candidate *c = calloc(1, sizeof *c);
    acs_record *copy = c ? acs_known_op_copy(op) : NULL;
    if (!copy) {
        free(c);
        return NULL;
    }
    c->op = copy;
    c->tag = acs_known_op_tag(op);
    c->refs = 1;
    if (behind)
        DL_APPEND_ELEM(repeat->candidates, behind, c);
    else
        DL_PREPEND(repeat->candidates, c);
    index_add(repeat, c);
    repeat->candidate_count++;
    return c;
}

void acs_candidate_drop(acs_repeat *repeat, acs_candidate *candidate)
{
    index_remove(repeat, candidate);
    DL_DELETE(repeat->candidates, candidate);
    repeat->candidate_count--;
    acs_candidate_release(candidate);
}

void acs_candidate_release(acs_candidate *candidate)
{
    if (--candidate->refs > 0)
        return;
    acs_known_op_free(candidate->op);
    free(candidate);
}

acs_candidate *acs_candidate_first(const acs_repeat *repeat, uint32_t tag)
{
    return repeat->index ? repeat->index[tag & repeat->index_mask] : NULL;
}
