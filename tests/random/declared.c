/*
 * The same footprint in other words: declared for the kernel instead of given in the call, and whole allocations by
 * ACS_WHOLE. What the op touches stays the same to the byte. Called by runner.c and moving.c.
 */
#include "declared.h"

#include "bodies.h"

#include <string.h>

/* The segment as a whole allocation, if it is one. Any address in it will do. */
static acs_segment in_other_words(const program *p, const step *s, const span *given, acs_segment segment)
{
    const arena *a = given->arena >= 0 ? &p->arenas[given->arena] : NULL;
    if (!a || a->kind == ARENA_PLAIN || !a->real || given->extent != ACS_EXTENT_BYTES || given->offset ||
        given->rows != 1 || given->row_bytes != a->bytes || s->index % 3 == 0)
        return segment;
    segment.base += s->index % a->bytes;
    segment.row_bytes = ACS_WHOLE;
    return segment;
}

acs_uses declared_uses(const program *p, const step *s, acs_uses uses)
{
    acs_segment *room = s->segments + s->segment_count;
    for (size_t i = 0; i < uses.count; i++)
        room[i] = in_other_words(p, s, &s->given[i], uses.segments[i]);
    uses.segments = room;
    return uses;
}

void declared_launch(const step *s, acs_launch_params *launch)
{
    static const uint32_t from_first = 0;
    if (!launch->uses.footprint || s->computed_from || s->index % 2)
        return;
    if (acs_declare(launch->kernel, mix_footprint, &from_first) != ACS_OK)
        return;
    launch->uses.footprint = NULL;
    launch->uses.any = ACS_LOOK_UP;
}
