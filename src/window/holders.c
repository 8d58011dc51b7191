/*
 * Lists of readers and commuters, and joins of many ops. Called by depend.c and collect.c during an insertion. It
 * decides how a set of ops is remembered or depended on: one by one or through a join. It never decides which ops an op
 * depends on.
 */
#include "window/holders.h"

#include "base/tuning.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------------------- shared sets */

/*
 * Whether these live entries, in this order, are what is left of the set. Ended ops need no wait. In a capture, an
 * entry that is gone has not ended, and the join would wait for its node.
 */
static bool is_shared(const acs_window *w, const acs_shared *shared, const acs_ref *refs, uint32_t count)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < shared->count; i++) {
        const acs_ref *ref = &shared->refs[i];
        if (!acs_ref_live(w, *ref) && !w->linked)
            continue;
        if (same == count || refs[same].entry != ref->entry || refs[same].generation != ref->generation)
            return false;
        same++;
    }
    return same == count;
}

/* Remember a set for which no join was made yet. */
static void share(acs_window *w, acs_shared *shared, const acs_ref *refs, uint32_t count)
{
    ACS_ASSERT(count <= TUNE_JOIN_SHARED_MOST);
    acs_ref_drop(w, &shared->join);
    shared->count = count;
    memcpy(shared->refs, refs, count * sizeof *refs);
}

/* The set's join; NULL: none, or it carries a failure, which need not concern every op that depends on the set. */
static acs_entry *shared_join(acs_window *w, const acs_shared *shared)
{
    acs_entry *join = acs_ref_entry(w, shared->join);
    return join && !join->failed_by ? join : NULL;
}

/* A join of live entries. */
static acs_entry *join_of(acs_window *w, const acs_ref *refs, uint32_t count, acs_op seq)
{
    acs_entry *join = acs_window_new_join(w, seq);
    for (uint32_t i = 0; i < count; i++) {
        ACS_ASSERT(acs_ref_live(w, refs[i])); /* WIN-4 */
        acs_window_link(w, &w->entries[refs[i].entry], join);
    }
    acs_window_close_join(w, join);
    return join;
}

bool acs_join_fits(const acs_window *w, const acs_entry *entry, uint32_t edges)
{
    if (!entry->op)
        return false; /* the join of a block's former life: the room was promised to others */
    uint64_t segments = (uint64_t)entry->op->segment_count + 1;
    uint64_t promised = w->live + w->live_joins + TUNE_JOIN_EDGES * segments;
    return w->edges_used + (uint64_t)edges + promised <= w->edge_count && w->live_joins + 2 * segments < w->joins;
}

void acs_depend_on_many(acs_window *w, acs_shared *set, const acs_ref *refs, uint32_t count, acs_entry *entry)
{
    acs_entry *join = NULL;
    if (count > TUNE_JOIN_SHARED_MOST) {
        /* too many to be remembered */
    } else if (!is_shared(w, set, refs, count)) {
        share(w, set, refs, count);
    } else if (!(join = shared_join(w, set)) && acs_join_fits(w, entry, count + 1)) {
        join = join_of(w, refs, count, entry->seq);
        acs_ref_drop(w, &set->join);
        set->join = acs_ref_make(w, join);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (join)
            w->holds[refs[i].entry].stamp = entry->own_stamp; /* as if linked: the join implies them */
        else
            acs_depend_on(w, refs[i], entry);
    }
    if (join)
        acs_window_link(w, join, entry);
}

/* ----------------------------------------------------------------------------------------------------------- readers */

/*
 * The newest value of each slot among issued readers. An ISSUING op implies no other, since its issue may be refused.
 */
static void newest_of_slots(acs_window *w, const acs_ref *readers, uint32_t count, uint64_t *newest)
{
    memset(newest, 0, w->slots * sizeof *newest);
    for (uint32_t i = 0; i < count; i++) {
        const acs_entry *entry = acs_ref_entry(w, readers[i]);
        if (entry && entry->state == ACS_ENTRY_ISSUED && entry->slot >= 0 && newest[entry->slot] < entry->value)
            newest[entry->slot] = entry->value;
    }
}

static uint32_t compact(acs_window *w, acs_ref *readers, uint32_t count)
{
    uint64_t newest[64];
    uint32_t kept = 0;
    newest_of_slots(w, readers, count, newest);
    for (uint32_t i = 0; i < count; i++) {
        const acs_entry *entry = acs_ref_entry(w, readers[i]);
        bool implied =
            entry && entry->state == ACS_ENTRY_ISSUED && entry->slot >= 0 && entry->value < newest[entry->slot];
        if (entry && !implied)
            readers[kept++] = readers[i];
        else
            acs_ref_drop(w, &readers[i]);
    }
    return kept;
}

/* Make a join of live readers or commuters. Ops that use one region often use others too, which then share the join. */
static acs_ref join_refs(acs_window *w, acs_ref *readers, uint32_t count, acs_op seq)
{
    bool shared = count <= TUNE_JOIN_SHARED_MOST;
    acs_entry *join = shared && is_shared(w, &w->readers, readers, count) ? shared_join(w, &w->readers) : NULL;
    if (!join) {
        join = join_of(w, readers, count, seq);
        if (shared) {
            share(w, &w->readers, readers, count);
            w->readers.join = acs_ref_make(w, join);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        acs_ref_drop(w, &readers[i]);
    return acs_ref_make(w, join);
}

void acs_readers_compact(acs_window *w, acs_region *region)
{
    region->reader_count = compact(w, region->readers, region->reader_count);
}

void acs_readers_fold(acs_window *w, acs_region *region, const acs_entry *entry)
{
    if (!acs_join_fits(w, entry, region->reader_count + 1))
        return;
    region->readers[0] = join_refs(w, region->readers, region->reader_count, entry->seq);
    region->reader_count = 1;
}

/*
 * Make room for one more reader in a list that may not grow: the oldest become a join. Its edges were counted by
 * acs_window_has_room, so no reader is ever refused.
 */
static uint32_t make_room(acs_window *w, acs_ref *readers, uint32_t count, acs_op seq)
{
    uint32_t joined = count < TUNE_JOIN_EDGES ? count : TUNE_JOIN_EDGES;
    ACS_ASSERT(joined > 0);
    acs_ref join = join_refs(w, readers, joined, seq);
    memmove(readers + 1, readers + joined, (count - joined) * sizeof *readers);
    readers[0] = join;
    return count - joined + 1;
}

static void readers_full(acs_window *w, acs_region *region, const acs_entry *entry)
{
    uint32_t capacity = 1u << region->readers_bits;
    acs_readers_compact(w, region);
    if (region->reader_count <= capacity / 2)
        return; /* a fuller list would be compacted again too soon */
    bool grows = capacity < w->readers_most && acs_region_more_readers(w->regions, region);
    if (region->reader_count == capacity && !grows)
        region->reader_count = make_room(w, region->readers, region->reader_count, entry->seq);
}

void acs_readers_add(acs_window *w, acs_region *region, const acs_entry *entry)
{
    uint32_t used = region->reader_count;
    if (used && region->readers[used - 1].entry == entry->index && acs_ref_live(w, region->readers[used - 1]))
        return;
    if (ACS_UNLIKELY(used == 1u << region->readers_bits)) {
        readers_full(w, region, entry);
        used = region->reader_count;
    }
    ACS_ASSERT(used < 1u << region->readers_bits);
    region->readers[used] = acs_ref_make(w, entry);
    region->reader_count = used + 1;
}

void acs_readers_add_all(acs_window *w, const acs_entry *entry)
{
    uint32_t used = w->all_reader_count;
    if (used == TUNE_ALL_READERS)
        used = compact(w, w->all_readers, used);
    if (used == TUNE_ALL_READERS)
        used = make_room(w, w->all_readers, used, entry->seq);
    ACS_ASSERT(used < TUNE_ALL_READERS);
    w->all_readers[used] = acs_ref_make(w, entry);
    w->all_reader_count = used + 1;
}

/* -------------------------------------------------------------------------------------------------------- commuters */

enum { COMMUTERS_FIRST = 8 };

bool acs_commuters_reserve(acs_window *w, acs_region *region, acs_op seq)
{
    acs_commuters *all = region->commuters;
    if (!all)
        return acs_region_more_commuters(w->regions, region, COMMUTERS_FIRST);
    if (all->count < all->capacity)
        return true;
    all->count = compact(w, all->refs, all->count);
    if (all->count <= all->capacity / 2)
        return true; /* a fuller list would be compacted again too soon */
    if (all->capacity < w->readers_most && acs_region_more_commuters(w->regions, region, 2 * all->capacity))
        return true;
    if (all->count == all->capacity)
        all->count = make_room(w, all->refs, all->count, seq);
    return true;
}

void acs_commuters_add(acs_window *w, acs_region *region, const acs_entry *entry)
{
    acs_commuters *all = region->commuters;
    const acs_ref *last = all->count ? &all->refs[all->count - 1] : NULL;
    if (last && last->entry == entry->index && acs_ref_live(w, *last))
        return; /* it has several such segments here */
    ACS_ASSERT(all->count < all->capacity);
    all->refs[all->count++] = acs_ref_make(w, entry);
    region->commuted = 1;
    all->level = all->level > entry->level ? all->level : entry->level;
}

void acs_commuters_compact(acs_window *w, acs_commuters *commuters, const acs_entry *entry)
{
    if (commuters->count <= TUNE_JOIN_MANY)
        return;
    commuters->count = compact(w, commuters->refs, commuters->count);
    if (!entry || commuters->count <= TUNE_JOIN_MANY || !acs_join_fits(w, entry, commuters->count + 1))
        return;
    commuters->refs[0] = join_refs(w, commuters->refs, commuters->count, entry->seq);
    commuters->count = 1;
}

void acs_commuters_empty(acs_window *w, acs_region *region)
{
    acs_commuters *all = region->commuters;
    for (uint32_t i = 0; i < all->count; i++)
        acs_ref_drop(w, &all->refs[i]);
    all->count = 0;
    region->commuted = 0;
}
