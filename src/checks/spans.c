/*
 * Spans of a footprint (spans.h): where rows of segments begin and end, sorted by address, and counted. Called by the
 * checks of one launch.
 */
#include "checks/spans.h"

#include "window/record.h"

#include <stdlib.h>
#include <string.h>

/* A row of a segment begins or ends. */
typedef struct row_edge {
    uint64_t address;
    uint8_t access; /* the segment's */
    bool begins;
} row_edge;

static int by_address(const void *a, const void *b)
{
    const row_edge *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static uint64_t count_rows(const acs_segment *segments, uint32_t count)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count; i++)
        rows += acs_segment_has_bytes(&segments[i]) ? segments[i].rows : 0;
    return rows;
}

static size_t list_rows(const acs_segment *segments, uint32_t count, row_edge *edges)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const acs_segment *s = &segments[i];
        for (uint64_t row = 0; acs_segment_has_bytes(s) && row < s->rows; row++) {
            const uint64_t first = s->base + row * s->pitch_bytes;
            edges[used++] = (row_edge){first, s->access & ACS_UPDATE, true};
            edges[used++] = (row_edge){first + s->row_bytes, s->access & ACS_UPDATE, false};
        }
    }
    return used;
}

/* Add the bytes from the span's end to `end`, if the op may do anything with them. */
static void add_span(acs_spans *spans, uint64_t first, uint64_t end, uint8_t access)
{
    acs_span *last = spans->count ? &spans->list[spans->count - 1] : NULL;
    if (!access || first == end)
        return;
    if (last && last->end == first && last->access == access)
        last->end = end;
    else
        spans->list[spans->count++] = (acs_span){first, end, access};
}

static void sweep(const row_edge *edges, size_t count, acs_spans *spans)
{
    uint64_t readers = 0, writers = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t change = edges[i].begins ? 1 : UINT64_MAX; /* plus or minus one */
        if (i)
            add_span(spans, edges[i - 1].address, edges[i].address,
                     (uint8_t)((readers ? ACS_READ : 0) | (writers ? ACS_WRITE : 0)));
        readers += edges[i].access & ACS_READ ? change : 0;
        writers += edges[i].access & ACS_WRITE ? change : 0;
    }
}

bool acs_spans_make(const acs_segment *segments, uint32_t count, acs_spans *spans)
{
    const uint64_t rows = count_rows(segments, count);
    row_edge *edges = malloc((2 * rows + 1) * sizeof *edges);
    *spans = (acs_spans){.list = malloc((2 * rows + 1) * sizeof *spans->list)};
    if (!edges || !spans->list) {
        free(edges);
        acs_spans_free(spans);
        return false;
    }
    const size_t used = list_rows(segments, count, edges);
    qsort(edges, used, sizeof *edges, by_address);
    sweep(edges, used, spans);
    for (uint32_t i = 0; i < count; i++)
        spans->reads_all |= segments[i].extent == ACS_EXTENT_ALL;
    free(edges);
    return true;
}

void acs_spans_free(acs_spans *spans)
{
    free(spans->list);
    *spans = (acs_spans){0};
}

uint8_t acs_spans_at(const acs_spans *spans, size_t *at, uint64_t address, uint64_t most, uint64_t *end)
{
    while (*at < spans->count && spans->list[*at].end <= address)
        ++*at;
    const acs_span *next = *at < spans->count ? &spans->list[*at] : NULL;
    const bool inside = next && next->first <= address;
    *end = acs_min(most, inside ? next->end : next ? next->first : UINT64_MAX);
    return (uint8_t)((inside ? next->access : 0) | (spans->reads_all ? ACS_READ : 0));
}
