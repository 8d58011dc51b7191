/*
 * What each strand touches: its footprint, and the few ranges by which the window sees it. Called by learn.c and open.c
 * under the lock.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"
#include "window/replay.h"

#include <stdlib.h>
#include <string.h>

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
    strand->segment_count += op->segment_count;
}

static void end(acs_strand *strand)
{
    strand->segment_count = acs_footprint_join(strand->segments, strand->segment_count, &strand->first, &strand->last);
}

bool acs_footprint_add(acs_strand *strand, const acs_record *op)
{
    if (!grow(strand, op->segment_count))
        return false;
    append(strand, op);
    end(strand);
    return true;
}

bool acs_footprint_conflicts(const acs_strand *strand, const acs_record *op)
{
    bool near = op->any;
    for (uint32_t i = 0; i < op->segment_count && !near; i++) {
        const acs_segment *s = &op->segments[i];
        near = !acs_segment_has_bytes(s) || (s->base <= strand->last && acs_segment_end(s) > strand->first);
    }
    return near && (op->any || acs_segments_conflict(strand->segments, strand->segment_count, op->segments,
                                                     op->segment_count));
}

/* A segment and its strand. */
typedef struct owned {
    const acs_segment *segment;
    acs_strand *strand;
} owned;

/* List the segments of all strands by address. A strand with others than bytes has no ranges. NULL: no memory. */
static owned *list_owned(acs_repeat *repeat, size_t *count)
{
    *count = 0;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        *count += repeat->strands[s].segment_count;
    owned *all = malloc((*count + 1) * sizeof *all);
    size_t used = 0;
    for (uint32_t s = 0; all && s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        strand->range_count = 0;
        for (uint32_t i = 0; i < strand->segment_count; i++) {
            all[used++] = (owned){&strand->segments[i], strand};
            if (!acs_segment_has_bytes(&strand->segments[i]))
                strand->range_count = TUNE_REPEAT_RANGES + 1;
        }
    }
    return all;
}

static int by_base(const void *left, const void *right)
{
    const acs_segment *a = ((const owned *)left)->segment, *b = ((const owned *)right)->segment;
    return a->base < b->base ? -1 : a->base > b->base;
}

/* Add a segment to its strand's ranges: to the last one, or as a new one. */
static void range_add(acs_strand *strand, const acs_segment *s, bool joins)
{
    if (strand->range_count > TUNE_REPEAT_RANGES || (!joins && strand->range_count++ == TUNE_REPEAT_RANGES))
        return;
    acs_segment *range = &strand->ranges[strand->range_count - 1];
    const uint64_t end = acs_segment_end(s);
    if (!joins) {
        *range = *s;
        range->rows = 1;
        range->pitch_bytes = 0;
        range->row_bytes = 0;
    }
    range->access |= s->access;
    range->row_bytes = end - range->base > range->row_bytes ? end - range->base : range->row_bytes;
}

/* Up to where segments reach: those of one strand, and those of all others. */
typedef struct reach {
    const acs_strand *strand;
    uint64_t end, others;
} reach;

static void reach_add(reach *r, const owned *o)
{
    const uint64_t end = acs_segment_end(o->segment);
    if (o->strand != r->strand && end > r->end) {
        r->others = r->end;
        r->strand = o->strand;
    } else if (o->strand != r->strand) {
        r->others = end > r->others ? end : r->others;
    }
    r->end = end > r->end ? end : r->end;
}

/*
 * Find the ranges of all strands. A range goes on while only its strand has segments; a segment that overlaps another
 * strand's, since both only read, is a range of its own. False: no memory.
 */
bool acs_footprints_find_ranges(acs_repeat *repeat)
{
    size_t count;
    owned *all = list_owned(repeat, &count);
    reach r = {NULL, 0, 0};
    bool before_alone = false;
    if (!all)
        return false;
    qsort(all, count, sizeof *all, by_base);
    for (size_t i = 0; i < count; i++) {
        if (!acs_segment_has_bytes(all[i].segment))
            continue;
        const uint64_t others = all[i].strand == r.strand ? r.others : r.end;
        const bool alone = all[i].segment->base < others ||
                           (i + 1 < count && all[i + 1].strand != all[i].strand &&
                            all[i + 1].segment->base < acs_segment_end(all[i].segment));
        range_add(all[i].strand, all[i].segment,
                  !alone && !before_alone && i > 0 && all[i - 1].strand == all[i].strand);
        before_alone = alone;
        reach_add(&r, &all[i]);
    }
    repeat->wide = false;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        if (repeat->strands[s].range_count > TUNE_REPEAT_RANGES)
            repeat->strands[s].range_count = 0;
        repeat->wide |= acs_footprint_is_wide(&repeat->strands[s]);
    }
    free(all);
    return true;
}

bool acs_footprints_find(acs_repeat *repeat, acs_known *const *list)
{
    uint32_t *segments = calloc(repeat->strand_count, sizeof *segments);
    bool found = segments != NULL;
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        segments[list[i]->strand] += list[i]->op->segment_count;
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        found = grow(&repeat->strands[s], segments[s]);
    for (uint32_t i = 0; found && i < repeat->known_count; i++)
        append(&repeat->strands[list[i]->strand], list[i]->op);
    for (uint32_t s = 0; found && s < repeat->strand_count; s++)
        end(&repeat->strands[s]);
    free(segments);
    return found && acs_footprints_find_ranges(repeat);
}
