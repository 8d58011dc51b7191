/*
 * Strands: groups of ops that share no memory which one of them writes. Found by sorting the memory that ops write:
 * what overlaps is joined, then readers join the writers of what they read. A tile counts as the range from its first
 * to its last byte, so strands may be larger than they need to be. Called by learn.c.
 */
#include "repeats/repeat_internal.h"

#include <stdlib.h>
#include <string.h>

/* Memory that an op uses, or a token: `space` keeps them apart. */
typedef struct range {
    uint64_t first, last;
    uint32_t op;
    uint8_t space;
    bool writes;
} range;

typedef struct ranges {
    range *list;
    uint32_t count;
} ranges;

/* The root of the group that an op belongs to. */
static uint32_t root_of(uint32_t *group, uint32_t op)
{
    while (group[op] != op) {
        group[op] = group[group[op]];
        op = group[op];
    }
    return op;
}

/* The earlier root stays one. */
static void join(uint32_t *group, uint32_t a, uint32_t b)
{
    a = root_of(group, a);
    b = root_of(group, b);
    group[a > b ? a : b] = a > b ? b : a;
}

static int by_place(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* List what the ops use. False: one may use anything, and all ops are one strand. */
static bool list_ranges(acs_known *const *ops, uint32_t count, ranges *all)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ops[i]->op->segment_count; k++) {
            const acs_segment *s = &ops[i]->op->segments[k];
            const bool bytes = acs_segment_has_bytes(s);
            if (s->extent == ACS_EXTENT_ALL)
                return false;
            if (!bytes && s->extent == ACS_EXTENT_BYTES)
                continue;
            all->list[all->count++] = (range){.first = s->base,
                                              .last = bytes ? acs_segment_end(s) - 1 : s->base,
                                              .op = i,
                                              .space = s->extent,
                                              .writes = s->access & ACS_WRITE};
        }
    return true;
}

/* Join the writers of what overlaps. @return the number of runs, which are left at the list's beginning. */
static uint32_t join_writers(ranges *all, uint32_t *group)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const range *r = &all->list[i];
        range *run = runs ? &all->list[runs - 1] : NULL;
        if (!r->writes)
            continue;
        if (run && run->space == r->space && r->first <= run->last) {
            join(group, run->op, r->op);
            run->last = r->last > run->last ? r->last : run->last;
        } else {
            all->list[runs++] = *r;
        }
    }
    return runs;
}

static void join_reader(const range *runs, uint32_t count, const range *reader, uint32_t *group)
{
    uint32_t low = 0, high = count; /* the first run that does not end before the reader's range */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const range *run = &runs[middle];
        if (run->space < reader->space || (run->space == reader->space && run->last < reader->first))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && runs[low].space == reader->space && runs[low].first <= reader->last; low++)
        join(group, runs[low].op, reader->op);
}

/* Runs take the place of ranges, so the readers are read from a copy. */
static bool join_all(ranges *all, uint32_t *group)
{
    range *readers = malloc((all->count + 1) * sizeof *readers);
    uint32_t reader_count = 0;
    if (!readers)
        return false;
    qsort(all->list, all->count, sizeof *all->list, by_place);
    for (uint32_t i = 0; i < all->count; i++)
        if (!all->list[i].writes)
            readers[reader_count++] = all->list[i];
    const uint32_t runs = join_writers(all, group);
    for (uint32_t i = 0; i < reader_count; i++)
        join_reader(all->list, runs, &readers[i], group);
    free(readers);
    return true;
}

bool acs_strands_find(acs_known *const *ops, uint32_t count, uint32_t *strands)
{
    ranges all = {NULL, 0};
    size_t segments = 1;
    uint32_t *group = malloc((count + 1) * sizeof *group);
    for (uint32_t i = 0; group && i < count; i++) {
        group[i] = i;
        segments += ops[i]->op->segment_count;
    }
    all.list = group ? malloc(segments * sizeof *all.list) : NULL;
    const bool apart = all.list && list_ranges(ops, count, &all);
    const bool found = all.list && (!apart || join_all(&all, group));
    *strands = 0;
    for (uint32_t i = 0; found && i < count; i++) { /* a group's root comes before its others */
        const uint32_t root = apart ? root_of(group, i) : 0;
        ops[i]->strand = root == i ? (*strands)++ : ops[root]->strand;
    }
    free(all.list);
    free(group);
    return found;
}
