/*
 * What each strand touches: its footprint, and the few ranges or tiles by which the window sees it. Called by learn.c
 * and open.c under the lock.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"
#include "window/replay.h"

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
    strand->segment_count += op->segment_count;
}

static void end(acs_strand *strand)
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

/* Add a segment to its strand's ranges: to the last one, or as a new one; as it is if others reach into its bytes. */
static void range_add(acs_strand *strand, const acs_segment *s, bool joins, bool alone)
{
    if (strand->range_count > TUNE_REPEAT_RANGES || (!joins && strand->range_count++ == TUNE_REPEAT_RANGES))
        return;
    acs_segment *range = &strand->ranges[strand->range_count - 1];
    const uint64_t end = acs_segment_end(s);
    if (!joins)
        *range = *s;
    if (alone)
        return;
    range->access |= s->access;
    range->row_bytes = joins && range->row_bytes > end - range->base ? range->row_bytes : end - range->base;
    range->rows = 1;
    range->pitch_bytes = 0;
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

/* Of those at one place, writes come first. */
static int by_place(const void *left, const void *right)
{
    const acs_segment *a = left, *b = right;
    return a->base != b->base ? (a->base < b->base ? -1 : 1) : (int)b->access - (int)a->access;
}

/* Whether the segment is the next row of a tile. Of one with a row, any row may be. */
static bool is_next_row(const acs_segment *tile, const acs_segment *s)
{
    const uint64_t pitch = tile->rows > 1 ? tile->pitch_bytes : s->base - tile->base;
    return s->row_bytes == tile->row_bytes && pitch >= s->row_bytes && s->base - tile->base == tile->rows * pitch;
}

static void add_row(acs_segment *tile, const acs_segment *s)
{
    tile->pitch_bytes = (s->base - tile->base) / tile->rows++;
    tile->access |= s->access;
}

/* The tiles of a strand, so far. Those that are only read are apart from the others. */
typedef struct tiles {
    acs_segment *tile;
    uint32_t count, seen[2];
    uint32_t born[TUNE_REPEAT_RANGES]; /* number of the tile's first segment among those like it */
    acs_segment *latest;               /* the tile with the latest segment; NULL: none yet */
} tiles;

/* Add a segment; they come by place. `apart`: the second row of a tile is so many segments behind its first one. */
static bool add_to_tiles(tiles *t, const acs_segment *s, uint32_t apart)
{
    const bool writes = s->access & ACS_WRITE;
    acs_segment *latest = t->latest;
    if (latest && s->base == latest->base + (latest->rows - 1) * latest->pitch_bytes && s->row_bytes == latest->row_bytes) {
        latest->access |= s->access;
        return true;
    }
    const uint32_t number = t->seen[writes]++;
    for (uint32_t i = 0; i < t->count; i++) {
        acs_segment *tile = &t->tile[i];
        const bool may = !!(tile->access & ACS_WRITE) == writes && (tile->rows > 1 || number - t->born[i] == apart);
        if (!may || !is_next_row(tile, s))
            continue;
        add_row(tile, s);
        t->latest = tile;
        return true;
    }
    if (!is_range(s) || t->count == TUNE_REPEAT_RANGES)
        return false;
    t->born[t->count] = number;
    t->tile[t->count] = *s;
    t->tile[t->count].pitch_bytes = 0;
    t->latest = &t->tile[t->count++];
    return true;
}

/*
 * See ranges at equal distances as tiles, such as some columns of an array. The strand keeps no ranges if that takes
 * more than TUNE_REPEAT_RANGES.
 */
static void find_tiles(acs_strand *strand)
{
    qsort(strand->segments, strand->segment_count, sizeof *strand->segments, by_place);
    strand->range_count = 0;
    for (uint32_t apart = 1; apart <= TUNE_REPEAT_RANGES && !strand->range_count; apart++) {
        tiles t = {.tile = strand->ranges};
        uint32_t i = 0;
        while (i < strand->segment_count && add_to_tiles(&t, &strand->segments[i], apart))
            i++;
        strand->range_count = i == strand->segment_count ? t.count : 0;
    }
}

/*
 * Find where the next segment of another strand begins, for each of the list; UINT64_MAX: there is none. `next` has room
 * for as many.
 */
static void find_next_of_others(const owned *all, size_t count, uint64_t *next)
{
    for (size_t i = count; i-- > 0;)
        next[i] = i + 1 == count                          ? UINT64_MAX
                  : all[i + 1].strand != all[i].strand ? all[i + 1].segment->base
                                                          : next[i + 1];
}

/*
 * Find the ranges of all strands. A range goes on while only its strand has segments. A segment between whose first and
 * last byte another strand has any is a range of its own, with its rows: both only read, or the other's are between its
 * rows. False: no memory.
 */
bool acs_footprints_find_ranges(acs_repeat *repeat)
{
    size_t count;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        if (repeat->strands[s].grown)
            end(&repeat->strands[s]);
    owned *all = list_owned(repeat, &count);
    uint64_t *next = malloc((count + 1) * sizeof *next);
    reach r = {NULL, 0, 0};
    bool before_alone = false;
    if (!all || !next) {
        free(all);
        free(next);
        return false;
    }
    qsort(all, count, sizeof *all, by_base);
    find_next_of_others(all, count, next);
    for (size_t i = 0; i < count; i++) {
        if (!acs_segment_has_bytes(all[i].segment))
            continue;
        const uint64_t others = all[i].strand == r.strand ? r.others : r.end;
        const bool alone = all[i].segment->base < others || next[i] < acs_segment_end(all[i].segment);
        range_add(all[i].strand, all[i].segment,
                  !alone && !before_alone && i > 0 && all[i - 1].strand == all[i].strand, alone);
        before_alone = alone;
        reach_add(&r, &all[i]);
    }
    free(next);
    repeat->wide = false;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        if (repeat->strands[s].range_count > TUNE_REPEAT_RANGES)
            find_tiles(&repeat->strands[s]);
        repeat->wide |= acs_footprint_is_wide(&repeat->strands[s]); /* RPT-4 */
    }
    free(all);
    return true;
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
        end(&repeat->strands[s]);
    free(segments);
    return found && acs_footprints_find_ranges(repeat);
}
