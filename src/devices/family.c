/*
 * Sets of blocks (see family.h). Called where ops are placed, and blocks made and freed. What a block pointed to stays as
 * long as others come by it.
 */
#include "devices/family.h"

#include <stdlib.h>

acs_family *acs_family_make(uint64_t bytes)
{
    acs_family *f = calloc(1, sizeof *f);
    if (!f) {
        ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for what a block is used with");
        return NULL;
    }
    f->refs = 1;
    f->bytes = bytes;
    return f;
}

acs_family *acs_family_of(acs_family *f)
{
    while (f->parent)
        f = f->parent;
    return f;
}

bool acs_family_join(acs_family *a, acs_family *b, uint64_t most)
{
    a = acs_family_of(a);
    b = acs_family_of(b);
    if (a == b)
        return true;
    if (a->bytes + b->bytes > most)
        return false;
    acs_family *large = a->bytes >= b->bytes ? a : b, *small = large == a ? b : a;
    small->parent = large;
    large->refs++;
    large->bytes += small->bytes;
    return true;
}

void acs_family_leave(acs_family *f, uint64_t bytes)
{
    if (f)
        acs_family_of(f)->bytes -= bytes;
    while (f && --f->refs == 0) {
        acs_family *parent = f->parent;
        free(f);
        f = parent;
    }
}
