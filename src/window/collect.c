/*
 * The ops of the window that a new op must wait for, found through the regions that its segments name (see depend.c).
 * Called by depend.c during an insertion, before the op is registered. It empties regions that a write covers, and
 * shortens lists of readers and commuters.
 */
#include "window/collect.h"

#include "base/tuning.h"

/* ------------------------------------------------------------------------------------------------------------- pins */

void acs_op_regions_pin(acs_op_regions *found)
{
    if (found->pinned)
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins++;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins++;
    for (uint32_t i = 0; i < found->commute_count; i++)
        found->commutes[i]->pins++;
    found->pinned = true;
}

void acs_op_regions_drop_pins(acs_op_regions *found)
{
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins--;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins--;
    for (uint32_t i = 0; i < found->commute_count; i++)
        found->commutes[i]->pins--;
    found->pinned = false;
}

/* ---------------------------------------------------------------------------------------------------------- collect */

/* A write of all memory implies everything that the region remembered before it. */
static inline void region_refresh(acs_window *w, acs_region *region)
{
    ACS_ASSERT(region->in_table); /* REG-3 */
    if (ACS_LIKELY(region->epoch >= w->epoch))
        return;
    acs_region_empty(w, region);
    region->level_read = region->level_write = w->level_all;
    region->epoch = w->epoch;
}

/* Levels measure the longest chain, for statistics. They order nothing. */
static inline void raise_level(acs_entry *entry, uint32_t upstream)
{
    if (entry->level <= upstream)
        entry->level = upstream + 1;
}

/* Keep the first one found: the op that failed, not one that was skipped because of it. */
static void note_poison(acs_entry *entry, acs_op failed_by)
{
    if (failed_by && !entry->never_skipped && !entry->failed_by)
        entry->failed_by = failed_by;
}

/*
 * Depend on ops that changed the region since its writer; returns whether any is left, which then implies the writer.
 * `stay`: they remain in the list. If they are many, they become a join, since others will depend on them too.
 */
static bool collect_commuters(acs_window *w, acs_entry *entry, acs_region *region, bool stay)
{
    acs_commuters *all = region->commuters;
    bool any = false;
    raise_level(entry, all->level);
    acs_commuters_compact(w, all, stay ? entry : NULL);
    for (uint32_t i = 0; i < all->count; i++)
        any |= acs_depend_on(w, all->refs[i], entry);
    return any;
}

/* RAW: depend on the region's writer, and on its commuters. */
static inline void collect_writer(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned)) {
        note_poison(entry, region->poison_write);
        note_poison(entry, region->poison_commute);
    }
    raise_level(entry, region->level_write);
    if (ACS_UNLIKELY(region->commuted) && collect_commuters(w, entry, region, true))
        return;
    acs_depend_on(w, region->writer, entry);
}

/*
 * Depend on a region's readers; returns whether any is left. `stay`: the readers remain in the list. If they are many,
 * they become a join, since ops that write other parts will depend on them too.
 */
static inline bool collect_readers(acs_window *w, acs_entry *entry, acs_region *region, bool stay)
{
    bool any = false;
    if (ACS_UNLIKELY(region->reader_count > TUNE_JOIN_MANY)) {
        acs_readers_compact(w, region);
        if (stay && region->reader_count > TUNE_JOIN_MANY)
            acs_readers_fold(w, region, entry);
        if (region->reader_count > TUNE_JOIN_MANY) {
            acs_depend_on_many(w, &w->readers, region->readers, region->reader_count, entry);
            return true;
        }
    }
    for (uint32_t i = 0; i < region->reader_count; i++)
        any |= acs_depend_on(w, region->readers[i], entry);
    return any;
}

/*
 * WAR and WAW. A write empties the list of readers, so a live reader runs behind the region's writer and implies it.
 * `stay`: the region is not written as a whole.
 */
static inline void collect_all_of(acs_window *w, acs_entry *entry, acs_region *region, bool stay)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned)) {
        note_poison(entry, region->poison_write);
        note_poison(entry, region->poison_commute);
        note_poison(entry, region->poison_read);
    }
    raise_level(entry, region->level_write);
    raise_level(entry, region->level_read);
    bool any = collect_readers(w, entry, region, stay);
    if (ACS_UNLIKELY(region->commuted))
        any |= collect_commuters(w, entry, region, stay);
    if (!any)
        acs_depend_on(w, region->writer, entry);
}

/* What a commuter depends on: readers, or the writer; not other commuters. */
static void collect_all_but_commuters(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_refresh(w, region);
    note_poison(entry, region->poison_write);
    note_poison(entry, region->poison_read);
    raise_level(entry, region->level_write);
    raise_level(entry, region->level_read);
    if (!collect_readers(w, entry, region, true))
        acs_depend_on(w, region->writer, entry);
}

/*
 * List the live writers of parts whose own_stamp exceeds `after`, older ones being in the region's join, but those that the
 * op depends on already. Returns their number; UINT32_MAX: they are more than can be listed. *all: with those that it
 * depends on already.
 */
static uint32_t list_part_writers(acs_window *w, acs_entry *entry, const acs_region *region, uint64_t after,
                                  uint32_t *list, uint32_t *all)
{
    uint32_t count = 0;
    *all = 0;
    for (uint32_t i = 0; i < region->link_count; i++) {
        acs_region *part = region->links[i].region;
        region_refresh(w, part);
        if (ACS_UNLIKELY(w->poisoned)) {
            note_poison(entry, part->poison_write);
            note_poison(entry, part->poison_commute);
        }
        raise_level(entry, part->level_write);
        acs_entry *writer = acs_ref_entry(w, part->writer);
        if (!writer || writer->own_stamp <= after)
            continue;
        ++*all;
        if (count == UINT32_MAX || acs_entry_hold(w, writer)->stamp == entry->own_stamp)
            continue;
        if (count == ACS_GATHERED_MOST && w->gathers)
            count = acs_keep_unimplied(w, entry, list, count);
        if (count == ACS_GATHERED_MOST)
            count = UINT32_MAX;
        else
            list[count++] = part->writer.entry;
    }
    return count;
}

static void link_part_writers(acs_window *w, const acs_region *region, acs_entry *to, uint64_t after)
{
    for (uint32_t i = 0; i < region->link_count; i++) {
        acs_entry *writer = acs_ref_entry(w, region->links[i].region->writer);
        if (writer && writer->own_stamp > after)
            acs_window_link(w, writer, to);
    }
}

/*
 * The region is read as a whole after many parts of it were written: if many of their writers do not imply each other, all
 * become a join, kept for later reads. acs_window_has_room does not count the join's edges, so if they do not fit, one edge
 * is made to each writer.
 */
static void collect_cover(acs_window *w, acs_entry *entry, acs_region *region)
{
    uint32_t list[ACS_GATHERED_MOST], all;
    acs_entry *cover = acs_ref_entry(w, region->cover);
    uint64_t after = cover ? region->cover_stamp : 0;
    uint32_t newer = list_part_writers(w, entry, region, after, list, &all);
    const bool listed = newer != UINT32_MAX;
    if (listed && w->gathers && newer > TUNE_JOIN_COVER_MANY)
        newer = acs_keep_unimplied(w, entry, list, newer);
    if (newer > TUNE_JOIN_COVER_MANY && acs_join_fits(w, entry, 2 * all + 1)) {
        acs_entry *join = acs_window_new_join(w, entry->seq);
        if (cover)
            acs_window_link(w, cover, join);
        link_part_writers(w, region, join, after); /* those too that this op depends on otherwise: later ones may not */
        acs_window_close_join(w, join);
        acs_ref_drop(w, &region->cover);
        region->cover = acs_ref_make(w, join);
        region->covered = 1;
        /* The op being inserted is not part of the join: if it writes a part too, it counts as newer. */
        region->cover_stamp = entry->own_stamp - 1;
        acs_window_link(w, join, entry);
        return;
    }
    if (cover)
        acs_window_link(w, cover, entry);
    for (uint32_t i = newer; i-- > 0 && listed;)
        acs_window_link(w, &w->entries[list[i]], entry);
    if (!listed)
        link_part_writers(w, region, entry, after);
}

/*
 * List the live writers of regions that an op only reads and that have no neighbours. A writer of several regions in a
 * row is listed once. False: there are more than TUNE_JOIN_SHARED_MOST, or a region has commuters.
 */
static bool list_writers(acs_window *w, acs_entry *entry, const acs_op_regions *found, acs_ref *writers, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < found->read_count; i++) {
        acs_region *region = found->reads[i];
        region_refresh(w, region);
        raise_level(entry, region->level_write);
        if (ACS_UNLIKELY(region->commuted))
            return false;
        const acs_ref *last = *count ? &writers[*count - 1] : NULL;
        if (!acs_ref_live(w, region->writer) || (last && last->entry == region->writer.entry))
            continue;
        if (*count == TUNE_JOIN_SHARED_MOST)
            return false;
        writers[(*count)++] = region->writer;
    }
    return true;
}

/* Depend on the writers of many read regions at once. False: collect them one by one. */
static bool collect_many(acs_window *w, acs_entry *entry, const acs_op_regions *found)
{
    acs_ref writers[TUNE_JOIN_SHARED_MOST];
    uint32_t count;
    if (found->read_count < TUNE_JOIN_MANY || found->linked || w->poisoned ||
        !list_writers(w, entry, found, writers, &count))
        return false;
    if (count >= TUNE_JOIN_MANY) {
        acs_depend_on_many(w, &w->writers, writers, count, entry);
        return true;
    }
    for (uint32_t i = 0; i < count; i++)
        acs_depend_on(w, writers[i], entry);
    return true;
}

/* Drop idle neighbours once there are many: each costs every insertion a look. */
static void drop_idle_links(acs_window *w, acs_op_regions *found, acs_region *region)
{
    if (ACS_LIKELY(region->link_count <= TUNE_REGION_IDLE_LINKS))
        return;
    acs_op_regions_pin(found);
    acs_region_drop_idle_links(w->regions, region);
}

/* Whether some neighbour has commuters, of which a cover knows nothing. */
static bool parts_commute(const acs_region *region)
{
    for (uint32_t i = 0; i < region->link_count; i++)
        if (region->links[i].region->commuted)
            return true;
    return false;
}

static void collect_read(acs_window *w, acs_entry *entry, acs_op_regions *found, acs_region *region)
{
    collect_writer(w, entry, region);
    if (region->link_count == 0)
        return;
    drop_idle_links(w, found, region);
    if (ACS_UNLIKELY(region->link_count > TUNE_JOIN_COVER_MANY) && !parts_commute(region)) {
        collect_cover(w, entry, region);
        return;
    }
    for (const acs_link *link = region->links, *end = link + region->link_count; link < end; link++)
        collect_writer(w, entry, link->region);
}

/*
 * Covered regions are emptied: an op that touches one later overlaps this region too, and finds its writer here.
 * Regions that overlap only in part keep their state, since it still describes some of their bytes.
 */
void acs_collect_write(acs_window *w, acs_entry *entry, acs_op_regions *found, acs_region *region)
{
    collect_all_of(w, entry, region, false);
    if (region->link_count == 0)
        return;
    drop_idle_links(w, found, region);
    for (const acs_link *link = region->links, *end = link + region->link_count; link < end; link++) {
        bool part = link->covers && !entry->observer;
        collect_all_of(w, entry, link->region, !part);
        if (part)
            acs_region_empty(w, link->region);
    }
}

/* Covered regions keep their state, since the op does not order those that commute there. */
static void collect_commute(acs_window *w, acs_entry *entry, acs_op_regions *found, acs_region *region)
{
    collect_all_but_commuters(w, entry, region);
    if (region->link_count == 0)
        return;
    drop_idle_links(w, found, region);
    for (const acs_link *link = region->links, *end = link + region->link_count; link < end; link++)
        collect_all_but_commuters(w, entry, link->region);
}

/*
 * Hide what a write covers in its neighbours, once they are many and few of them name an op that the others do not imply:
 * partial covers would pile up. A region that another one of the op has hidden in part does not hide: of three that overlap
 * in a ring each would hide what the next one should show.
 */
static void hide_covered(acs_window *w, const acs_op_regions *found, uint32_t edges)
{
    for (uint32_t i = 0; i < found->write_count; i++) {
        acs_region *region = found->writes[i];
        if (region->link_count <= TUNE_REGION_LINKS_FEW || region->link_count < 4 * edges || !(region->serves & ACS_WRITE))
            continue;
        for (uint32_t link = region->link_count; link-- > 0;) {
            acs_region *other = region->links[link].region;
            /* Failures stay in sight: the writer may be an op that is never skipped. */
            if (!region->links[link].covers && !acs_region_poisoned(other) && acs_region_hide(w->regions, region, link))
                acs_region_empty(w, other);
        }
    }
}

/* All segments collect before any registers, so that an op does not depend on itself. */
void acs_collect_regions(acs_window *w, acs_entry *entry, acs_op_regions *found)
{
    /* What the host waits for has an edge from each op: it may have to tell how each ended. */
    const bool gathers = w->gathers = found->linked && !entry->observer && !entry->on_host;
    w->gathered_count = 0;
    bool collected = collect_many(w, entry, found);
    for (uint32_t i = 0; i < found->read_count && !collected; i++)
        collect_read(w, entry, found, found->reads[i]);
    for (uint32_t i = 0; i < found->write_count; i++)
        acs_collect_write(w, entry, found, found->writes[i]);
    for (uint32_t i = 0; i < found->commute_count; i++)
        collect_commute(w, entry, found, found->commutes[i]);
    if (gathers)
        hide_covered(w, found, acs_gather_end(w, entry));
}

/* Depend on the ops in the window, back to the newest op that wrote all memory. */
void acs_collect_all(acs_window *w, acs_entry *entry, uint8_t access)
{
    raise_level(entry, acs_writes(access) ? w->level_touched : w->level_written);
    note_poison(entry, w->poison_any_write);
    if (acs_writes(access))
        note_poison(entry, w->poison_any_read);
    acs_entry *all = acs_ref_entry(w, w->all_writer);
    for (uint32_t i = w->order_tail; i; i = w->entries[i].order_prev) {
        acs_entry *other = &w->entries[i];
        if (!other->observer && other->touches && (acs_writes(access) || other->writes))
            acs_window_link(w, other, entry);
        /* Older ops precede the writer of all memory: it implies them. */
        if (other == all)
            break;
    }
}

/* Dependencies of every op with a footprint: on ops that touched all memory. */
void acs_collect_common(acs_window *w, acs_entry *entry, uint8_t access)
{
    note_poison(entry, w->poison_all_write);
    raise_level(entry, w->level_all);
    acs_entry *all = acs_ref_entry(w, w->all_writer);
    if (all)
        acs_window_link(w, all, entry);
    if (!acs_writes(access))
        return;
    raise_level(entry, w->level_all_read);
    note_poison(entry, w->poison_all_read);
    for (uint32_t i = 0; i < w->all_reader_count; i++) {
        acs_entry *reader = acs_ref_entry(w, w->all_readers[i]);
        if (reader)
            acs_window_link(w, reader, entry);
    }
}
