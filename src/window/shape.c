/*
 * Shapes: the arithmetic of contiguous bytes, tiles of strided rows and tokens. It normalises the segments of callers,
 * and decides overlap and cover without allocating. Called by regions.c, depend.c and the checkers. It knows nothing
 * of the table of regions.
 */
#include "window/record.h"
#include "window/regions.h"

#include <inttypes.h>

__extension__ typedef unsigned __int128 u128; /* products of two addresses */

/* The last byte; a normal shape does not wrap. */
static uint64_t shape_last(const acs_shape *s)
{
    return s->base + (s->rows - 1) * s->pitch + (s->row_bytes - 1);
}

static acs_status wraps(const acs_segment *s)
{
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                    "segment wraps the address space: base 0x%" PRIx64 ", row_bytes %" PRIu64 ", rows %" PRIu64
                    ", pitch %" PRIu64,
                    s->base, s->row_bytes, s->rows, s->pitch_bytes);
}

acs_status acs_shape_of(const acs_segment *segment, acs_shape *shape)
{
    const acs_segment *s = segment;

    if ((s->access < ACS_READ || s->access > ACS_UPDATE) && s->access != ACS_COMMUTE)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "segment at 0x%" PRIx64 ": access is %u, not 1 to 3, 7 or 11", s->base,
                        s->access);
    if (s->extent > ACS_EXTENT_TOKEN)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "segment at 0x%" PRIx64 ": extent is %u, not 0 to 2", s->base, s->extent);
    if (s->extent == ACS_EXTENT_ALL)
        return ACS_NOT_READY;
    if (s->extent == ACS_EXTENT_TOKEN) {
        *shape = (acs_shape){.base = s->base, .token = 1};
        return ACS_OK;
    }
    if (s->row_bytes == 0 || s->rows == 0)
        return ACS_NOT_READY;

    /* One row has no pitch, whatever the caller wrote: shapes of the same bytes must be equal, for the hash. */
    uint64_t pitch = s->rows == 1 ? 0 : s->pitch_bytes;
    u128 bytes = (u128)(s->rows - 1) * pitch + s->row_bytes; /* from first to last byte, inclusive; fits in 128 bits */
    if (bytes > UINT64_MAX || s->base + (uint64_t)(bytes - 1) < s->base)
        return wraps(s);
    if (pitch > s->row_bytes)
        *shape = (acs_shape){.base = s->base, .row_bytes = s->row_bytes, .rows = s->rows, .pitch = pitch};
    else /* the rows touch or overlap, without gaps */
        *shape = (acs_shape){.base = s->base, .row_bytes = (uint64_t)bytes, .rows = 1};
    return ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------------- overlap */

/* Whether the bytes [first, last] overlap a shape. */
static bool range_overlaps(uint64_t first, uint64_t last, const acs_shape *s)
{
    if (last < s->base || first > shape_last(s))
        return false;
    if (first <= s->base || s->rows == 1)
        return true;

    uint64_t row = (first - s->base) / s->pitch, column = (first - s->base) % s->pitch;
    if (column < s->row_bytes)
        return true;
    /* `first` lies in the gap behind `row`, which is not the last row: does the range reach the next one? */
    return last >= s->base + (row + 1) * s->pitch;
}

/* Two tiles of one pitch, a's base not above b's: row r of b begins in row r + q of a, or in the gap behind it. */
static bool tiles_overlap(const acs_shape *a, const acs_shape *b)
{
    /* Row 0 of b decides: if row r of b meets row r + q of a, then row 0 meets row q, which a has too. */
    uint64_t q = (b->base - a->base) / a->pitch, column = (b->base - a->base) % a->pitch;

    return (column < a->row_bytes && q < a->rows) || (a->pitch - column < b->row_bytes && q < a->rows - 1);
}

/* Rows of `s` that reach into [first, last], which overlaps its bounds: [*low, *low + count). */
static uint64_t rows_within(const acs_shape *s, uint64_t first, uint64_t last, uint64_t *low)
{
    uint64_t high = last <= s->base ? 0 : (last - s->base) / s->pitch;

    *low = first <= s->base ? 0 : (first - s->base) / s->pitch;
    if (high > s->rows - 1)
        high = s->rows - 1;
    return high - *low + 1;
}

/*
 * The smallest x with low <= a * x mod m <= high, where 0 < low <= high < m and a < m; UINT64_MAX: none. Each step at
 * least halves m, as in Euclid's algorithm.
 */
static uint64_t first_multiple(uint64_t a, uint64_t m, uint64_t low, uint64_t high)
{
    if (a == 0)
        return UINT64_MAX;
    if (a > m / 2) /* count downwards, in smaller steps */
        return first_multiple(m - a, m, m - high, m - low);

    uint64_t x = low / a + (low % a != 0);
    if (x <= high / a)
        return x;
    /*
     * The first turn around m steps over [low, high]. y: the first turn that does not; then x is the first step inside
     * it.
     */
    uint64_t y = first_multiple((a - m % a) % a, a, low % a, high % a);
    return y == UINT64_MAX ? y : (uint64_t)(((u128)m * y + low + a - 1) / a);
}

/*
 * Whether one of `count` rows overlaps b, if b had rows without end in both directions. The rows are `step` apart; the
 * last byte of the first one lies `end` behind b's base. A row overlaps if that distance, modulo b's pitch, is below
 * `reach`: the sum of both row lengths, less one.
 */
static bool rows_meet(uint64_t end, uint64_t step, uint64_t count, uint64_t reach, uint64_t pitch)
{
    uint64_t at = end % pitch;

    if (at < reach)
        return count > 0;
    return first_multiple(step % pitch, pitch, pitch - at, pitch - at + reach - 1) < count;
}

/*
 * Tiles of different pitches. The first and the last row of a that can overlap b are compared with b itself. Rows in
 * between begin and end inside b's rows and the gaps behind them, so b may be taken as endless for them.
 */
static bool unlike_tiles_overlap(const acs_shape *a, const acs_shape *b)
{
    uint64_t first = a->base > b->base ? a->base : b->base;
    uint64_t last = shape_last(a) < shape_last(b) ? shape_last(a) : shape_last(b);
    uint64_t low, count;

    if (first > last)
        return false;
    /* At least one row, since the bounds overlap. */
    count = rows_within(a, first, last, &low);

    uint64_t start = a->base + low * a->pitch, end = start + (count - 1) * a->pitch;
    if (range_overlaps(start, start + a->row_bytes - 1, b) || range_overlaps(end, end + a->row_bytes - 1, b))
        return true;
    if (count <= 2)
        return false;
    if (a->row_bytes > b->pitch - b->row_bytes) /* longer than b's gaps */
        return true;
    end = start + a->pitch + a->row_bytes - 1 - b->base;
    return rows_meet(end, a->pitch, count - 2, a->row_bytes + b->row_bytes - 1, b->pitch);
}

bool acs_shape_overlap(const acs_shape *a, const acs_shape *b)
{
    if (a->token || b->token)
        return a->token && b->token && a->base == b->base;
    if (a->rows == 1)
        return range_overlaps(a->base, shape_last(a), b);
    if (b->rows == 1)
        return range_overlaps(b->base, shape_last(b), a);
    if (a->pitch != b->pitch)
        return unlike_tiles_overlap(a, b);
    return a->base <= b->base ? tiles_overlap(a, b) : tiles_overlap(b, a);
}

/* ------------------------------------------------------------------------------------------------------------ cover */

bool acs_shape_covers(const acs_shape *a, const acs_shape *b)
{
    if (a->token || b->token)
        return a->token && b->token && a->base == b->base;
    /* Cheap, and refuses most pairs. Below, b's rows lie between a's first and last byte. */
    if (b->base < a->base || shape_last(b) > shape_last(a))
        return false;
    if (a->rows == 1)
        return true;
    if (b->rows > 1 && b->pitch != a->pitch)
        return false;

    /* Every row of b must lie inside one row of a; the test of shape_last ensures that a has a row for each. */
    uint64_t column = (b->base - a->base) % a->pitch;
    return column < a->row_bytes && b->row_bytes <= a->row_bytes - column;
}

/* -------------------------------------------------------------------------------------------------------- conflicts */

static bool segments_conflict(const acs_segment *a, const acs_segment *b)
{
    const bool all = a->extent == ACS_EXTENT_ALL || b->extent == ACS_EXTENT_ALL; /* which never commutes */
    if (!((a->access | b->access) & ACS_WRITE) || (!all && a->access == ACS_COMMUTE && b->access == ACS_COMMUTE))
        return false;
    /* bytes in one row each: the common case, of which a replay's shape tests many pairs */
    if (a->extent == ACS_EXTENT_BYTES && b->extent == ACS_EXTENT_BYTES && a->rows == 1 && b->rows == 1)
        return a->row_bytes && b->row_bytes && a->base <= b->base + (b->row_bytes - 1) &&
               b->base <= a->base + (a->row_bytes - 1);
    acs_shape x, y;
    bool all_a = a->extent == ACS_EXTENT_ALL, all_b = b->extent == ACS_EXTENT_ALL;
    if (!all_a && acs_shape_of(a, &x) != ACS_OK)
        return false;
    if (!all_b && acs_shape_of(b, &y) != ACS_OK)
        return false;
    return all_a || all_b || acs_shape_overlap(&x, &y);
}

static bool touches(const acs_record *op)
{
    if (op->any)
        return true;
    acs_shape shape;
    for (uint32_t i = 0; i < op->segment_count; i++)
        if (op->segments[i].extent == ACS_EXTENT_ALL || acs_shape_of(&op->segments[i], &shape) == ACS_OK)
            return true;
    return false;
}

bool acs_segments_conflict(const acs_segment *a, uint32_t a_count, const acs_segment *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++)
        for (uint32_t j = 0; j < b_count; j++)
            if (segments_conflict(&a[i], &b[j]))
                return true;
    return false;
}

bool acs_records_conflict(const acs_record *a, const acs_record *b)
{
    if (a->any || b->any)
        return touches(a) && touches(b);
    return acs_segments_conflict(a->segments, a->segment_count, b->segments, b->segment_count);
}
