/*
 * Sets of blocks (see affinity.h). Called where ops are placed, and where blocks are made and freed. A node stays as
 * long as its block lives or another node has it as its parent.
 */
#include "devices/affinity.h"

#include <stdlib.h>

acs_affinity *acs_affinity_make(uint64_t bytes)
{
    acs_affinity *f = calloc(1, sizeof *f);
    if (!f) {
        ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for what a block is used with");
        return NULL;
    }
    f->refs = 1;
    f->bytes = bytes;
    return f;
}

acs_affinity *acs_affinity_of(acs_affinity *f)
{
    while (f->parent)
        f = f->parent;
    return f;
}

bool acs_affinity_join(acs_affinity *a, acs_affinity *b, uint64_t most)
{
    a = acs_affinity_of(a);
    b = acs_affinity_of(b);
    if (a == b)
        return true;
    if (a->bytes + b->bytes > most)
        return false;
    acs_affinity *large = a->bytes >= b->bytes ? a : b, *small = large == a ? b : a;
    small->parent = large;
    large->refs++;
    large->bytes += small->bytes;
    return true;
}

void acs_affinity_leave(acs_affinity *f, uint64_t bytes)
{
    if (f)
        acs_affinity_of(f)->bytes -= bytes;
    while (f && --f->refs == 0) {
        acs_affinity *parent = f->parent;
        free(f);
        f = parent;
    }
}
