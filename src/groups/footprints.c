/*
 * Dependencies between all pairs of a group's ops (see group_internal.h). Called by group_submit.c. Pairs that are already
 * ordered through other ops are skipped, so that long chains cost little.
 */
#include "groups/group_internal.h"

#include "window/regions.h"

#include <stdlib.h>

/* A segment in normal form. */
typedef struct touch {
    acs_shape shape;
    uint8_t access;
} touch;

typedef struct footprint {
    uint32_t first, count; /* first of its touches, and their number */
    uint8_t access;        /* access of all its segments together */
    uint8_t all;           /* access to all memory */
} footprint;

static void look_at(const acs_record *op, footprint *f, touch *touches, uint32_t *used)
{
    *f = (footprint){.first = *used, .all = op->any ? ACS_UPDATE : 0};
    for (uint32_t i = 0; i < op->segment_count; i++) {
        const acs_segment *s = &op->segments[i];
        touch *t = &touches[*used];
        t->access = s->access;
        if (s->extent == ACS_EXTENT_ALL)
            f->all |= s->access;
        else if (acs_shape_of(s, &t->shape) == ACS_OK)
            (*used)++;
        else
            continue; /* an empty segment */
        f->access |= s->access;
    }
    f->access |= f->all;
    f->count = *used - f->first;
}

static bool writes(uint8_t access)
{
    return access & ACS_WRITE;
}

static bool conflict(const footprint *a, const footprint *b, const touch *touches)
{
    if ((a->all && b->access && writes(a->all | b->access)) || (b->all && a->access && writes(b->all | a->access)))
        return true;
    if (!writes(a->access | b->access))
        return false;
    for (uint32_t i = a->first; i < a->first + a->count; i++)
        for (uint32_t k = b->first; k < b->first + b->count; k++)
            if (writes(touches[i].access | touches[k].access) && acs_shape_overlap(&touches[i].shape, &touches[k].shape))
                return true;
    return false;
}

acs_status acs_footprints_order(acs_record *const *ops, uint32_t count, acs_op_sets *behind)
{
    uint64_t segments = 0;
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        segments += ops[i]->segment_count;
    touch *touches = calloc(segments + 1, sizeof *touches);
    footprint *footprints = calloc((size_t)count + 1, sizeof *footprints);
    if (!touches || !footprints) {
        free(touches);
        free(footprints);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the footprints of %u ops", count);
    }
    for (uint32_t op = 0; op < count; op++) {
        look_at(ops[op], &footprints[op], touches, &used);
        for (uint32_t up = op; up-- > 0;)
            if (!acs_op_set_has(acs_op_set(behind, op), up) && conflict(&footprints[op], &footprints[up], touches))
                acs_op_sets_behind(behind, op, up);
    }
    free(touches);
    free(footprints);
    return ACS_OK;
}
