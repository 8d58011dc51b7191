/*
 * The all-pairs scan that the window's index is measured against: a straightforward, exact implementation, with a test
 * of the outer bounds first, read-read pairs left out, and the scan of a pair of ops ended by its first conflict.
 * Unlike the published one it compares the new op's reads with earlier writes too. Called by insert.c.
 */
#include "allpairs.h"

#include <stdlib.h>

typedef struct scan_op {
    acs_segment segments[SEGMENTS];
    uint64_t ends[SEGMENTS]; /* one past the last byte */
} scan_op;

struct allpairs {
    uint32_t window;
    uint64_t first, next; /* ops [first, next) are in the window */
    uint32_t *found;      /* the edges, kept as a runtime would keep them */
    scan_op *ops;
};

static uint64_t end_of(const acs_segment *s)
{
    return s->base + (s->rows - 1) * (s->rows > 1 ? s->pitch_bytes : 0) + s->row_bytes;
}

/* Whether a run of bytes meets a row of a tile. */
static bool run_meets(uint64_t base, uint64_t bytes, const acs_segment *t)
{
    if (t->rows == 1)
        return base < t->base + t->row_bytes && t->base < base + bytes;
    uint64_t row = base <= t->base ? 0 : (base - t->base) / t->pitch_bytes; /* the last one that starts at or before */
    if (row < t->rows && base < t->base + row * t->pitch_bytes + t->row_bytes)
        return t->base + row * t->pitch_bytes < base + bytes;
    return row + 1 < t->rows && t->base + (row + 1) * t->pitch_bytes < base + bytes;
}

/* Tiles of one pitch, the base of `a` not above that of `b`: rows against rows, then columns against columns. */
static bool tiles_meet(const acs_segment *a, const acs_segment *b)
{
    uint64_t pitch = a->pitch_bytes, down = (b->base - a->base) / pitch, right = (b->base - a->base) % pitch;
    if (right < a->row_bytes && down < a->rows)
        return true;
    return right + b->row_bytes > pitch && down + 1 < a->rows; /* b's rows reach into the next rows of a */
}

static bool meet(const acs_segment *a, const acs_segment *b)
{
    if (a->rows > 1 && b->rows > 1 && a->pitch_bytes == b->pitch_bytes)
        return a->base <= b->base ? tiles_meet(a, b) : tiles_meet(b, a);
    const acs_segment *few = a->rows <= b->rows ? a : b, *many = few == a ? b : a;
    for (uint64_t row = 0; row < few->rows; row++)
        if (run_meets(few->base + row * few->pitch_bytes, few->row_bytes, many))
            return true;
    return false;
}

static bool conflict(const scan_op *a, const scan_op *b)
{
    for (int i = 0; i < SEGMENTS; i++)
        for (int j = 0; j < SEGMENTS; j++) {
            const acs_segment *x = &a->segments[i], *y = &b->segments[j];
            if (x->base < b->ends[j] && y->base < a->ends[i] && ((x->access | y->access) & ACS_WRITE) && meet(x, y))
                return true;
        }
    return false;
}

allpairs *allpairs_create(uint32_t window)
{
    allpairs *scan = calloc(1, sizeof *scan);
    if (!scan)
        return NULL;
    scan->window = window;
    scan->ops = calloc(window, sizeof *scan->ops);
    scan->found = calloc(window, sizeof *scan->found);
    if (scan->ops && scan->found)
        return scan;
    allpairs_destroy(scan);
    return NULL;
}

void allpairs_destroy(allpairs *scan)
{
    if (!scan)
        return;
    free(scan->ops);
    free(scan->found);
    free(scan);
}

uint32_t allpairs_insert(allpairs *scan, const acs_segment segments[SEGMENTS])
{
    scan_op *op = &scan->ops[scan->next % scan->window];
    uint32_t edges = 0;

    for (int i = 0; i < SEGMENTS; i++) {
        op->segments[i] = segments[i];
        op->ends[i] = end_of(&segments[i]);
    }
    for (uint64_t n = scan->first; n < scan->next; n++)
        if (conflict(op, &scan->ops[n % scan->window]))
            scan->found[edges++] = (uint32_t)(n % scan->window);
    scan->next++;
    return edges;
}

void allpairs_retire(allpairs *scan)
{
    scan->first++;
}

uint32_t allpairs_live(const allpairs *scan)
{
    return (uint32_t)(scan->next - scan->first);
}
