/*
 * Conflicts between footprints, row against row: slow and obvious on purpose. Called by the oracle and the checker; it
 * never uses the library's overlap code, which it is there to judge.
 */
#include "overlap.h"

static const acs_segment g_everything = {0, 0, 0, 0, ACS_UPDATE, ACS_EXTENT_ALL, 0, 0};

static bool segment_empty(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && (s->row_bytes == 0 || s->rows == 0);
}

/* One past the last byte. */
static uint64_t segment_end(const acs_segment *s)
{
    return s->base + (s->rows > 1 ? (s->rows - 1) * s->pitch_bytes : 0) + s->row_bytes;
}

static bool bytes_overlap(const acs_segment *a, const acs_segment *b)
{
    if (segment_end(a) <= b->base || segment_end(b) <= a->base)
        return false;
    for (uint64_t i = 0; i < a->rows; i++) {
        uint64_t row = a->base + (a->rows > 1 ? i * a->pitch_bytes : 0);
        for (uint64_t j = 0; j < b->rows; j++) {
            uint64_t other = b->base + (b->rows > 1 ? j * b->pitch_bytes : 0);
            if (row < other + b->row_bytes && other < row + a->row_bytes)
                return true;
        }
    }
    return false;
}

static bool segment_overlap(const acs_segment *a, const acs_segment *b)
{
    if (segment_empty(a) || segment_empty(b))
        return false;
    if (a->extent == ACS_EXTENT_ALL || b->extent == ACS_EXTENT_ALL)
        return true;
    if (a->extent == ACS_EXTENT_TOKEN || b->extent == ACS_EXTENT_TOKEN)
        return a->extent == b->extent && a->base == b->base;
    return bytes_overlap(a, b);
}

static size_t footprint_size(const footprint *f)
{
    return f->count + (f->any ? 1 : 0);
}
static const acs_segment *footprint_at(const footprint *f, size_t i)
{
    return i < f->count ? &f->list[i] : &g_everything;
}

bool footprint_touches(const footprint *f)
{
    for (size_t i = 0; i < footprint_size(f); i++)
        if (!segment_empty(footprint_at(f, i)))
            return true;
    return false;
}

/* Whether `a` may write something that `b` touches. */
static bool footprint_writes_into(const footprint *a, const footprint *b)
{
    for (size_t i = 0; i < footprint_size(a); i++) {
        const acs_segment *s = footprint_at(a, i);
        for (size_t j = 0; (s->access & ACS_WRITE) && j < footprint_size(b); j++)
            if (!(s->access == ACS_COMMUTE && footprint_at(b, j)->access == ACS_COMMUTE) &&
                segment_overlap(s, footprint_at(b, j)))
                return true;
    }
    return false;
}

bool footprint_conflict(const footprint *a, const footprint *b)
{
    return footprint_writes_into(a, b) || footprint_writes_into(b, a);
}
