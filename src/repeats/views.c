/*
 * By which segments the window sees each strand: by few ranges or tiles, which cover all that its ops touch. No two
 * strands conflict by them (RPT-5), so no replay waits for one of another strand that is held back. Called by learn.c
 * under the lock.
 *
 * A range that is written goes on over a gap that no other strand touches. One that is only read goes on over a gap
 * that no other strand writes, such as weights that all strands read.
 */
#include "repeats/repeat_internal.h"

#include "window/regions.h"

#include <stdlib.h>
#include <string.h>

#define NO_RANGE UINT32_MAX

/* A segment and its strand. */
typedef struct owned {
    const acs_segment *segment;
    acs_strand *strand;
    uint64_t next[2]; /* where another strand's next segment begins; [1]: its next that it writes. UINT64_MAX: none */
} owned;

static bool is_written(const acs_segment *s)
{
    return s->access & ACS_WRITE;
}

static int by_base(const void *left, const void *right)
{
    const acs_segment *a = ((const owned *)left)->segment, *b = ((const owned *)right)->segment;
    return a->base != b->base ? (a->base < b->base ? -1 : 1) : (int)is_written(b) - (int)is_written(a);
}

/* List the segments of all strands that have bytes, by address. NULL: no memory. */
static owned *list_owned(const acs_repeat *repeat, size_t *count)
{
    size_t most = 1;
    for (uint32_t s = 0; s < repeat->strand_count; s++)
        most += repeat->strands[s].segment_count;
    owned *all = malloc(most * sizeof *all);
    *count = 0;
    for (uint32_t s = 0; all && s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        for (uint32_t i = 0; i < strand->segment_count; i++)
            if (acs_segment_has_bytes(&strand->segments[i]))
                all[(*count)++] = (owned){&strand->segments[i], strand, {UINT64_MAX, UINT64_MAX}};
    }
    if (all)
        qsort(all, *count, sizeof *all, by_base);
    return all;
}

static void find_next(owned *all, size_t count)
{
    const owned *behind[2] = {NULL, NULL}; /* the next one, and the next that is written */
    for (size_t i = count; i-- > 0;) {
        for (int k = 0; k < 2; k++)
            if (behind[k])
                all[i].next[k] = behind[k]->strand == all[i].strand ? behind[k]->next[k] : behind[k]->segment->base;
        behind[0] = &all[i];
        if (is_written(all[i].segment))
            behind[1] = &all[i];
    }
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

static uint64_t reach_of_others(const reach *r, const acs_strand *strand)
{
    return r->strand == strand ? r->others : r->end;
}

/* ---------------------------------------------------------------------------------------------------------- ranges */

/* Add a segment as it is. @return its place in the view; NO_RANGE: there are too many. */
static uint32_t view_add(acs_strand *strand, const acs_segment *s)
{
    if (strand->view_count >= TUNE_REPEAT_SEGMENTS) {
        strand->view_count = TUNE_REPEAT_SEGMENTS + 1;
        return NO_RANGE;
    }
    strand->view[strand->view_count] = *s;
    return strand->view_count++;
}

/* Begin a range with the segment's bytes, and those between its rows. */
static uint32_t range_begin(acs_strand *strand, const acs_segment *s)
{
    acs_segment range = *s;
    range.rows = 1;
    range.pitch_bytes = 0;
    range.row_bytes = acs_segment_end(s) - s->base;
    range.access = is_written(s) && s->rows > 1 ? ACS_UPDATE : s->access; /* not all of its bytes are written */
    return view_add(strand, &range);
}

/* The latest ranges of a strand, by their places in its view: its own, and one that it reads. */
typedef struct growing {
    uint32_t own, read;
    bool shared; /* other strands may read bytes of the one that it reads */
} growing;

/* Let the range go on to the segment's end, if others have nothing in it. They reach up to `others`. */
static bool range_extend(acs_strand *strand, uint32_t place, const acs_segment *s, uint64_t others)
{
    acs_segment *range = place == NO_RANGE ? NULL : &strand->view[place];
    const uint64_t end = acs_segment_end(s);
    if (!range || others > range->base)
        return false;
    range->row_bytes = range->row_bytes > end - range->base ? range->row_bytes : end - range->base;
    return true;
}

/* Add a segment that the strand writes, and in which no other strand has a byte. */
static void add_own(acs_strand *strand, const acs_segment *s, uint64_t others, growing *at)
{
    if (at->shared || !range_extend(strand, at->read, s, others)) {
        at->own = range_begin(strand, s);
        return;
    }
    at->own = at->read;
    at->read = NO_RANGE;
    strand->view[at->own].access = ACS_UPDATE;
}

/* Add a segment that the strand reads, and of which no other strand writes a byte; `own`: nor reads one. */
static void add_read(acs_strand *strand, const acs_segment *s, uint64_t writers, bool own, growing *at)
{
    const bool joins = range_extend(strand, at->read, s, writers);
    at->shared = !own || (joins && at->shared);
    at->read = joins ? at->read : range_begin(strand, s);
}

/*
 * Add the segment to its strand's view. Other strands reach up to `others`, and up to `writers` with what they write. A
 * segment in which they have a byte, between its rows for example, is added as it is, unless all of them read.
 */
static void add(const owned *o, uint64_t others, uint64_t writers, growing *at)
{
    const acs_segment *s = o->segment;
    const uint64_t end = acs_segment_end(s);
    const bool own = s->base >= others && o->next[0] >= end;
    if (own && range_extend(o->strand, at->own, s, others))
        o->strand->view[at->own].access = ACS_UPDATE; /* not all of its bytes are written */
    else if (own && is_written(s))
        add_own(o->strand, s, others, at);
    else if (is_written(s) || s->base < writers || o->next[1] < end)
        (void)view_add(o->strand, s);
    else
        add_read(o->strand, s, writers, own, at);
}

/* Find the ranges of all strands. */
static bool find_ranges(acs_repeat *repeat, const owned *all, size_t count)
{
    reach any = {NULL, 0, 0}, written = {NULL, 0, 0};
    growing *at = malloc((repeat->strand_count + (size_t)1) * sizeof *at);
    for (uint32_t s = 0; at && s < repeat->strand_count; s++)
        at[s] = (growing){NO_RANGE, NO_RANGE, false};
    for (size_t i = 0; at && i < count; i++) {
        acs_strand *strand = all[i].strand;
        add(&all[i], reach_of_others(&any, strand), reach_of_others(&written, strand), &at[strand - repeat->strands]);
        reach_add(&any, &all[i]);
        if (is_written(all[i].segment))
            reach_add(&written, &all[i]);
    }
    free(at);
    return at != NULL;
}

/* ----------------------------------------------------------------------------------------------------------- tiles */

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
    const bool written = is_written(s);
    acs_segment *latest = t->latest;
    if (latest && s->base == latest->base + (latest->rows - 1) * latest->pitch_bytes && s->row_bytes == latest->row_bytes) {
        latest->access |= s->access;
        return true;
    }
    const uint32_t number = t->seen[written]++;
    for (uint32_t i = 0; i < t->count; i++) {
        acs_segment *tile = &t->tile[i];
        const bool may = is_written(tile) == written && (tile->rows > 1 || number - t->born[i] == apart);
        if (!may || !is_next_row(tile, s))
            continue;
        add_row(tile, s);
        t->latest = tile;
        return true;
    }
    if (s->rows > 1 || !acs_segment_has_bytes(s) || t->count == TUNE_REPEAT_RANGES)
        return false;
    t->born[t->count] = number;
    t->tile[t->count] = *s;
    t->tile[t->count].pitch_bytes = 0;
    t->latest = &t->tile[t->count++];
    return true;
}

/*
 * See ranges at equal distances as tiles, such as some columns of an array. The view stays as it is if that takes more
 * than TUNE_REPEAT_RANGES.
 */
static void find_tiles(acs_strand *strand)
{
    acs_segment tile[TUNE_REPEAT_RANGES];
    qsort(strand->segments, strand->segment_count, sizeof *strand->segments, by_place);
    for (uint32_t apart = 1; apart <= TUNE_REPEAT_RANGES; apart++) {
        tiles t = {.tile = tile};
        uint32_t i = 0;
        while (i < strand->segment_count && add_to_tiles(&t, &strand->segments[i], apart))
            i++;
        if (i < strand->segment_count)
            continue;
        memcpy(strand->view, tile, t.count * sizeof *tile);
        strand->view_count = t.count;
        return;
    }
}

/* ----------------------------------------------------------------------------------------------------------- views */

/* Make room for the views. They begin with segments that have no bytes, as they are. */
static bool begin_views(acs_repeat *repeat)
{
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (strand->grown)
            acs_footprint_join(strand);
        const uint32_t most = strand->segment_count < TUNE_REPEAT_SEGMENTS ? strand->segment_count : TUNE_REPEAT_SEGMENTS;
        acs_segment *view = realloc(strand->view, (most + (size_t)1) * sizeof *view);
        if (!view)
            return false;
        strand->view = view;
        strand->view_count = 0;
        for (uint32_t i = 0; i < strand->segment_count; i++)
            if (!acs_segment_has_bytes(&strand->segments[i]) && strand->segments[i].extent != ACS_EXTENT_BYTES)
                (void)view_add(strand, &strand->segments[i]);
    }
    return true;
}

static bool find_views(acs_repeat *repeat)
{
    size_t count;
    owned *all = list_owned(repeat, &count);
    bool found = all != NULL;
    if (found) {
        find_next(all, count);
        found = find_ranges(repeat, all, count);
    }
    free(all);
    return found;
}

bool acs_views_find(acs_repeat *repeat)
{
    if (!begin_views(repeat) || !find_views(repeat))
        return false;
    repeat->wide = false;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        acs_strand *strand = &repeat->strands[s];
        if (strand->view_count > TUNE_REPEAT_RANGES)
            find_tiles(strand);
        repeat->wide |= acs_strand_is_wide(strand); /* RPT-4 */
    }
    return true;
}
