/*
 * What each strand touches: its footprint, byte by byte. What the window sees of it instead is in views.c. Called by
 * learn.c, open.c and views.c under the lock.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"

#include <stdlib.h>
#include <string.h>

static bool same_bytes(const acs_segment *a, const acs_segment *b)
{
    return a->base == b->base && a->row_bytes == b->row_bytes && a->rows == b->rows &&
           a->pitch_bytes == b->pitch_bytes && a->extent == b->extent;
}

static int by_access_and_place(const void *left, const void *right)
{
    const acs_segment *a = left, *b = right;
    if (a->access != b->access)
        return a->access < b->access ? -1 : 1;
    return a->base < b->base ? -1 : a->base > b->base;
}

static bool is_range(const acs_segment *s)
{
    return acs_segment_has_bytes(s) && s->rows == 1;
}

/* Let the bytes from *first to *last have those that the segment may touch. */
static void reach_out(const acs_segment *s, uint64_t *first, uint64_t *last)
{
    const bool all = s->extent == ACS_EXTENT_ALL, bytes = acs_segment_has_bytes(s);
    const uint64_t from = all ? 0 : bytes ? s->base : UINT64_MAX;
    const uint64_t to = all ? UINT64_MAX : bytes ? acs_segment_end(s) - 1 : 0;
    *first = from < *first ? from : *first;
    *last = to > *last ? to : *last;
}

/*
 * Join ranges of the same access that overlap or lie side by side. The order changes. *first and *last: of the bytes
 * that they may touch, the first and the last; first > last: none. @return how many are left.
 */
static uint32_t join_ranges(acs_segment *segments, uint32_t count, uint64_t *first, uint64_t *last)
{
    uint32_t used = 0;
    qsort(segments, count, sizeof *segments, by_access_and_place);
    *first = UINT64_MAX;
    *last = 0;
    for (uint32_t i = 0; i < count; i++) {
        const acs_segment *s = &segments[i];
        acs_segment *before = used ? &segments[used - 1] : NULL;
        reach_out(s, first, last);
        if (before && before->access == s->access && is_range(before) && is_range(s) &&
            s->base <= before->base + before->row_bytes) {
            const uint64_t bytes = acs_segment_end(s) - before->base;
            before->row_bytes = bytes > before->row_bytes ? bytes : before->row_bytes;
        } else if (!before || before->access != s->access || !same_bytes(before, s)) {
            segments[used++] = *s;
        }
    }
    return used;
}

/* Make room for more segments of a strand's footprint. */
static bool grow(acs_strand *strand, uint32_t more)
{
    acs_segment *grown = realloc(strand->segments, (strand->segment_count + (size_t)more + 1) * sizeof *grown);
    strand->segments = grown ? grown : strand->segments;
    return grown != NULL;
}

static void append(acs_strand *strand, const acs_record *op)
{
    memcpy(strand->segments + strand->segment_count, op->segments, op->segment_count * sizeof *op->segments);
    /*
     * Strands do not commute, nor do the views that are made of this: other ops of a strand may read what its commuters
     * change, and the window orders replays as wholes (RPT-5).
     */
    for (uint32_t i = 0; i < op->segment_count; i++)
        strand->segments[strand->segment_count + i].access &= ACS_UPDATE;
    strand->segment_count += op->segment_count;
}

void acs_footprint_join(acs_strand *strand)
{
    strand->grown = false;
    strand->segment_count = join_ranges(strand->segments, strand->segment_count, &strand->first, &strand->last);
}

bool acs_footprint_add(acs_strand *strand, const acs_record *op)
{
    if (!grow(strand, op->segment_count))
        return false;
    append(strand, op);
    strand->grown = true;
    for (uint32_t i = 0; i < op->segment_count; i++)
        reach_out(&op->segments[i], &strand->first, &strand->last);
    return true;
}

bool acs_footprint_is_near(const acs_strand *strand, const acs_record *op)
{
    bool near = op->any;
    for (uint32_t i = 0; i < op->segment_count && !near; i++) {
        const acs_segment *s = &op->segments[i];
        near = !acs_segment_has_bytes(s) || (s->base <= strand->last && acs_segment_end(s) - 1 >= strand->first);
    }
    return near;
}

bool acs_footprint_conflicts(const acs_strand *strand, const acs_record *op)
{
    return acs_footprint_is_near(strand, op) &&
           (op->any || acs_segments_conflict(strand->segments, strand->segment_count, op->segments, op->segment_count));
}

bool acs_footprints_find(acs_repeat *repeat, acs_known *const *list)
{
    uint32_t *segments = calloc(repeat->strand_count, sizeof *segments);
    bool found = segments != NULL;
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        if (list[i]->strand != ACS_STRAND_NONE)
            segments[list[i]->strand] += list[i]->op->segment_count;
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        found = grow(&repeat->strands[s], segments[s]);
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        if (list[i]->strand != ACS_STRAND_NONE)
            append(&repeat->strands[list[i]->strand], list[i]->op);
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        acs_footprint_join(&repeat->strands[s]);
    free(segments);
    return found;
}
