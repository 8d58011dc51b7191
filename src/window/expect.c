/*
 * What the next insertions need, asked of the cache before they begin: on the way from buckets to regions and links each
 * step waits for the one before it, but those of several segments need not wait for each other. Called by the core with a
 * few ops at a time. Only hints: it changes nothing, and never looks at what ops depend on.
 */
#include "base/tuning.h"
#include "window/regions_internal.h"
#include "window/window.h"

void acs_regions_expect(const acs_regions *t, acs_expected *e, const acs_segment *segments, uint32_t count)
{
    for (uint32_t i = 0; i < count && e->count < TUNE_EXPECT_SEGMENTS; i++) {
        uint32_t tag = (uint32_t)run_hash(segments[i].base, segments[i].row_bytes);
        __builtin_prefetch(&t->buckets[tag & t->mask]);
        e->tags[e->count++] = tag;
    }
}

/* The first that could be it; what the table holds of other shapes does not match in the end. */
static acs_region *find_tag(const acs_regions *t, uint32_t tag)
{
    uint32_t at = tag & t->mask;
    while (t->buckets[at].id != ACS_NO_REGION && t->buckets[at].tag != tag)
        at = (at + 1) & t->mask;
    return t->buckets[at].id != ACS_NO_REGION ? &slot_at(t, t->buckets[at].id)->region : NULL;
}

void acs_regions_fetch(acs_regions *t, acs_expected *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        e->regions[i] = find_tag(t, e->tags[i]);
        if (!e->regions[i])
            continue;
        __builtin_prefetch(e->regions[i]);
        __builtin_prefetch((const char *)e->regions[i] + ACS_CACHE_LINE);
    }
    for (uint32_t i = 0; i < e->count; i++)
        if (e->regions[i])
            __builtin_prefetch(e->regions[i]->links);
}

void acs_window_expect(acs_window *w, acs_record *const *ops, uint32_t count)
{
    acs_expected *e = &w->expected;
    e->next = e->count = 0;
    e->op_count = count;
    for (uint32_t i = 0; i < count; i++) {
        e->seq[i] = ops[i]->seq;
        e->first[i] = e->count;
        acs_regions_expect(w->regions, e, ops[i]->segments, ops[i]->segment_count);
    }
    e->first[count] = e->count;
    acs_regions_fetch(w->regions, e);
}
