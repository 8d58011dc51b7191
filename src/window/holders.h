/*
 * Private to src/window/: who is remembered of a region, by references that go dead when an op ends (WIN-4). For depend.c,
 * which says when; the lists of readers, and the joins that stand for many ops, are made in holders.c.
 */
#ifndef ACS_HOLDERS_H
#define ACS_HOLDERS_H

#include "window/window.h"

/*
 * `refs` counts live references only: the place of a dead one may have been given to another op. No branch: who is alive is
 * hard to guess.
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

/* Make `entry` depend on what is referred to, unless the edge was made already, through another region. Is it alive? */
static inline bool acs_depend_on(acs_window *w, acs_ref upstream, acs_entry *entry)
{
    const acs_hold *hold = &w->holds[upstream.entry];
    bool alive = hold->generation == upstream.generation;
    ACS_ASSERT(!alive || w->entries[upstream.entry].state != ACS_ENTRY_FREE); /* WIN-4 */
    if (alive && hold->stamp != entry->own_stamp)
        acs_window_link(w, &w->entries[upstream.entry], entry);
    return alive;
}

/* An op reads a region through any number of segments: it is one reader. */
void acs_readers_add(acs_window *w, acs_region *region, const acs_entry *entry);
/* An op reads all memory. */
void acs_readers_add_all(acs_window *w, const acs_entry *entry);
/* Drop dead readers, and older ones that the newest of their slot stands for. */
void acs_readers_compact(acs_window *w, acs_region *region);
/* The region's readers become a join, if there is room for one; `entry` is being inserted. */
void acs_readers_fold(acs_window *w, acs_region *region, const acs_entry *entry);

/*
 * Make `entry` depend on many live ops. Ops that follow each other are often behind the same ones (a layer, a
 * reduction): the second that is behind `set` makes a join of it, which is all that later ones need.
 */
void acs_depend_on_many(acs_window *w, acs_shared *set, const acs_ref *refs, uint32_t count, acs_entry *entry);
/*
 * Whether there are a join and so many edges beside what acs_window_has_room promised this op: one from each entry, and
 * those of its readers' joins.
 */
bool acs_join_fits(const acs_window *w, const acs_entry *entry, uint32_t edges);

#endif
