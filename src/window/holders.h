/*
 * Private to src/window/: the references by which a region remembers its writer and readers. They die when an op ends
 * (WIN-4). depend.c decides when they are made; holders.c keeps the lists of readers and commuters, and makes joins.
 */
#ifndef ACS_HOLDERS_H
#define ACS_HOLDERS_H

#include "window/window.h"

/*
 * Drop a reference. `refs` counts live references only, since the place of a dead one may belong to another op.
 * Without a branch: whether the op is alive is hard to predict.
 */
static inline void acs_ref_drop(acs_window *w, acs_ref *ref)
{
    acs_hold *hold = &w->holds[ref->entry];
    ACS_ASSERT(hold->generation != ref->generation || hold->refs > 0);
    hold->refs -= hold->generation == ref->generation;
    *ref = (acs_ref){0, 0};
}

static inline acs_ref acs_ref_make(acs_window *w, const acs_entry *entry)
{
    acs_hold *hold = acs_entry_hold(w, entry);
    ACS_ASSERT(entry->state != ACS_ENTRY_FREE && entry->state != ACS_ENTRY_ENDED); /* WIN-4 */
    hold->refs++;
    return (acs_ref){entry->index, hold->generation};
}

static inline acs_entry *acs_ref_entry(acs_window *w, acs_ref ref)
{
    return acs_ref_live(w, ref) ? &w->entries[ref.entry] : NULL;
}

/* gathered.c: whether one more upstream entry can be listed, perhaps since those that others imply have left the list. */
bool acs_gather_make_room(acs_window *w, const acs_entry *entry);
static inline bool acs_gather_has_room(acs_window *w, const acs_entry *entry)
{
    return ACS_LIKELY(w->gathered_count < ACS_GATHERED_MOST) || acs_gather_make_room(w, entry);
}

/* Make `entry` depend on the op referred to, unless another region made that edge. Returns whether the op is alive. */
static inline bool acs_depend_on(acs_window *w, acs_ref upstream, acs_entry *entry)
{
    acs_hold *hold = &w->holds[upstream.entry];
    bool alive = hold->generation == upstream.generation;
    ACS_ASSERT(!alive || w->entries[upstream.entry].state != ACS_ENTRY_FREE); /* WIN-4 */
    if (!alive || hold->stamp == entry->own_stamp)
        return alive;
    if (ACS_UNLIKELY(w->gathers) && acs_gather_has_room(w, entry)) {
        hold->stamp = entry->own_stamp;
        w->gathered[w->gathered_count++] = upstream.entry;
    } else {
        acs_window_link(w, &w->entries[upstream.entry], entry);
    }
    return true;
}

/*
 * gathered.c. Of live entries, which all precede `entry`, keep those that no other one implies, the oldest first. Returns
 * their number. The others count as linked.
 */
uint32_t acs_keep_unimplied(acs_window *w, const acs_entry *entry, uint32_t *list, uint32_t count);
/*
 * While w->gathers, acs_depend_on lists upstream entries. Make edges to those that no other one implies. Returns their
 * number.
 */
uint32_t acs_gather_end(acs_window *w, acs_entry *entry);

/* Add a reader. An op that reads a region through several segments is one reader. */
void acs_readers_add(acs_window *w, acs_region *region, const acs_entry *entry);
/* Make room for one more commuter of the region. False: no memory. */
bool acs_commuters_reserve(acs_window *w, acs_region *region, acs_op seq);
/* Add a commuter. There is room: acs_commuters_reserve. */
void acs_commuters_add(acs_window *w, acs_region *region, const acs_entry *entry);
/*
 * If there are many, drop those that acs_readers_compact would drop. `entry`, being inserted: if many are left, replace
 * them by a join, if acs_join_fits; NULL: do not.
 */
void acs_commuters_compact(acs_window *w, acs_commuters *commuters, const acs_entry *entry);
void acs_commuters_empty(acs_window *w, acs_region *region);
/* Add a reader of all memory. */
void acs_readers_add_all(acs_window *w, const acs_entry *entry);
/* Drop dead readers, and older ones of a slot if a newer one in the same slot implies them. */
void acs_readers_compact(acs_window *w, acs_region *region);
/* Replace the region's readers by a join, if acs_join_fits; `entry` is being inserted. */
void acs_readers_fold(acs_window *w, acs_region *region, const acs_entry *entry);

/*
 * Make `entry` depend on many live ops. Ops of one layer often depend on the same set. So the second op that depends
 * on `set` makes a join of it, and later ops need only that join.
 */
void acs_depend_on_many(acs_window *w, acs_shared *set, const acs_ref *refs, uint32_t count, acs_entry *entry);
/* Whether a join with `edges` edges fits beside the edges and joins that acs_window_has_room promised to `entry`. */
bool acs_join_fits(const acs_window *w, const acs_entry *entry, uint32_t edges);

#endif
