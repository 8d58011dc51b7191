/*
 * Insertion of the next op into the window: its entry, its dependencies (depend.c), its place in program order. Called
 * by the core; owns nothing. It also prefetches for several ops at once: the reads for one segment, from bucket to
 * region to links, depend on each other, but those of different segments overlap.
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

/* The first region whose tag matches. It may have another shape; insertion compares (acs_region_is_run). */
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

acs_entry *acs_window_insert(acs_window *w, acs_record *op, const acs_entry_traits *traits)
{
    ACS_ASSERT(w->linked || acs_window_has_room(w, op)); /* WIN-6 */
    w->insertion++;
    for (const acs_reuse *r = op->flags & ACS_RECORD_REUSES ? op->reuses : NULL; ACS_UNLIKELY(r != NULL); r = r->next)
        acs_depend_reuse(w, op->seq, r);
    acs_entry *entry = acs_window_take(w, op->seq, op);
    entry->kind = op->kind;
    entry->asked = op->kind == ACS_KIND_KERNEL ? op->asked : op->kind;
    entry->share = ACS_UNLIKELY(op->flags & ACS_RECORD_SHARE) ? op->u.launch.attributes.share : 0;
    entry->bundleable = op->kind == ACS_KIND_KERNEL && op->type != 0 && !entry->share;
    entry->on_host = traits->on_host;
    entry->observer = traits->observer;
    entry->never_skipped = traits->never_skipped;
    entry->held = traits->held;
    entry->pending = traits->held;
    w->held += traits->held;
    entry->propagates_failure = (op->flags & ACS_RECORD_PROPAGATES) != 0;
    entry->state = ACS_ENTRY_PENDING;
    entry->level = 1;
    w->live++;
    ACS_ASSERT(w->live <= (w->limit ? w->limit : 1)); /* WIN-1 */
    /* Before the op is in the order list, which now holds exactly the ops that it may depend on. */
    acs_depend_insert(w, entry);
    acs_entry *behind = traits->behind ? acs_window_find(w, traits->behind) : NULL;
    if (behind)
        acs_window_link(w, behind, entry);
    acs_window_inserted(w, entry);
    return entry;
}
