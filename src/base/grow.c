/*
 * Lists that grow: one rule for all modules, so that adding an element takes constant time on average. Called by
 * whoever keeps such a list, under its own lock. Never shrinks a list, and owns none.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 4 };

bool acs_grow(void *list, uint32_t *room, uint64_t wanted, size_t bytes)
{
    void *moved;
    if (wanted <= *room)
        return true;
    if (wanted > UINT32_MAX / 2)
        return false;
    uint64_t grown = *room ? 2 * (uint64_t)*room : ROOM_FIRST;
    grown = grown < wanted ? wanted : grown;
    memcpy(&moved, list, sizeof moved); /* pointers to all types look alike, but must not be read as one another */
    if (!(moved = realloc(moved, grown * bytes)))
        return false;
    memcpy(list, &moved, sizeof moved);
    *room = (uint32_t)grown;
    return true;
}
