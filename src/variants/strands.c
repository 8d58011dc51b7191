/*
 * Strands of launches (strands.h). Called by the book of a context for each launch once a kernel has versions. It sees
 * segments by their first byte alone, so it may miss that two launches are ordered; it decides about speed only.
 */
#include "variants/strands.h"

#include "window/record.h"

#include <string.h>

static acs_strand_writer *writer_of(acs_strands *s, uint64_t base)
{
    return &s->writer[acs_hash64(base) & (ACS_STRAND_WRITERS - 1)];
}

/* The strand of the first segment that a launch of one wrote; 0: there is none. */
static uint64_t strand_behind(acs_strands *s, const acs_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const acs_strand_writer *writer = writer_of(s, segments[i].base);
        if (acs_segment_has_bytes(&segments[i]) && writer->base == segments[i].base && writer->strand)
            return writer->strand;
    }
    return 0;
}

/* Make the strand the latest one, in front of the others. */
static void move_to_front(acs_strands *s, uint64_t strand, uint64_t number)
{
    uint32_t at = 0;
    while (at + 1 < ACS_STRANDS_MOST && s->recent[at].strand != strand)
        at++;
    memmove(&s->recent[1], &s->recent[0], at * sizeof s->recent[0]);
    s->recent[0].strand = strand;
    s->recent[0].latest = number;
}

uint32_t acs_strands_add(acs_strands *s, const acs_segment *segments, size_t count, uint64_t number, uint64_t ended)
{
    const uint64_t behind = strand_behind(s, segments, count), strand = behind ? behind : ++s->made;
    uint32_t side_by_side = 1; /* itself: that it has not ended is no matter of `ended` */
    move_to_front(s, strand, number);
    for (size_t i = 0; i < count; i++)
        if (acs_segment_has_bytes(&segments[i]) && segments[i].access & ACS_WRITE)
            *writer_of(s, segments[i].base) = (acs_strand_writer){segments[i].base, strand};
    while (side_by_side < ACS_STRANDS_MOST && s->recent[side_by_side].strand &&
           s->recent[side_by_side].latest > ended)
        side_by_side++;
    return side_by_side;
}
