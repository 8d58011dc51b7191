/*
 * Dependencies: which ops of the window a new op must wait for, found through the regions that its segments name. RAW, WAR
 * and WAW are kept (ACS, Algorithm 1, compares only the new op's writes and so misses RAW); reads share.
 *
 * A region remembers its newest writer and the readers since. A covering write empties the regions that it covers: who
 * touches them later also touches the covering one. Many readers become a join, an entry that stands for all of them, and
 * so do many writers of parts that a whole is read from, and many writers that one op after the other is behind: n readers
 * and m writers then need n + m edges, not n * m.
 */
#include "window/window.h"

#include <stdlib.h>
#include <string.h>

enum { IDLE_LINKS_KEPT = 32, COVER_WRITERS = 8, SHARED_LEAST = 8 };

static bool writes(uint8_t access)
{
    return (access & ACS_WRITE) != 0;
}

/* -------------------------------------------------------------------------------------------------------- references */

/* `refs` counts live references only: the place of a dead one may have been given to another op. */
static void ref_drop(acs_window *w, acs_ref *ref)
{
    if (acs_ref_live(w, *ref))
        w->entries[ref->entry].refs--;
    *ref = (acs_ref){0, 0};
}

static acs_ref ref_make(acs_window *w, acs_entry *entry)
{
    entry->refs++;
    return (acs_ref){acs_entry_index(w, entry), entry->generation};
}

static acs_entry *ref_entry(acs_window *w, acs_ref ref)
{
    return acs_ref_live(w, ref) ? &w->entries[ref.entry] : NULL;
}

/* Forget who touched the region. Levels and poison stay: they outlive the ops that they come from. */
static void region_empty(acs_window *w, acs_region *region)
{
    ref_drop(w, &region->writer);
    if (ACS_UNLIKELY(region->covered))
        ref_drop(w, &region->cover);
    for (uint32_t i = 0; i < region->reader_count; i++)
        if (acs_ref_live(w, region->readers[i]))
            w->entries[region->readers[i].entry].refs--;
    region->reader_count = 0;
    region->covered = 0;
}

/* Since a write of all memory everything that a region remembered is implied by that write. */
static void region_refresh(acs_window *w, acs_region *region)
{
    if (ACS_LIKELY(region->epoch >= w->epoch))
        return;
    region_empty(w, region);
    region->level_read = region->level_write = w->level_all;
    region->epoch = w->epoch;
}

/* -------------------------------------------------------------------------------------------------------- shared sets */

/*
 * Whether these live entries, in this order, are what is left of the set: who has ended is waited for by nobody. In a
 * capture an entry that is gone has not ended, and its node would be waited for.
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

/* The set was met: no join stands for it yet. */
static void share(acs_window *w, acs_shared *shared, const acs_ref *refs, uint32_t count)
{
    ref_drop(w, &shared->join);
    shared->count = count;
    memcpy(shared->refs, refs, count * sizeof *refs);
}

/* The set's join. A failure in it need not concern whom the failed op does not: NULL then, or if there is none. */
static acs_entry *shared_join(acs_window *w, const acs_shared *shared)
{
    acs_entry *join = ref_entry(w, shared->join);
    return join && !join->cause ? join : NULL;
}

/* ----------------------------------------------------------------------------------------------------------- readers */

/* Drop dead readers, and older ones that the newest of their slot stands for. Returns how many are left. */
static uint32_t readers_compact(acs_window *w, acs_ref *readers, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* The lists are a few entries long: comparing all pairs costs less than keeping them sorted. */
        acs_entry *entry = ref_entry(w, readers[i]);
        bool implied = false;
        for (uint32_t j = i + 1; entry && entry->state == ACS_ENTRY_ISSUED && entry->slot >= 0 && j < count; j++) {
            const acs_entry *later = ref_entry(w, readers[j]);
            implied |= later && later->state == ACS_ENTRY_ISSUED && later->slot == entry->slot &&
                       later->value > entry->value;
        }
        if (entry && !implied)
            readers[kept++] = readers[i];
        else
            ref_drop(w, &readers[i]);
    }
    return kept;
}

/* A join of live entries. */
static acs_entry *join_of(acs_window *w, const acs_ref *refs, uint32_t count, acs_op seq)
{
    acs_entry *join = acs_window_new_join(w, seq);
    for (uint32_t i = 0; i < count; i++)
        acs_window_link(w, &w->entries[refs[i].entry], join);
    acs_window_close_join(w, join);
    return join;
}

/* All readers are live here: readers_compact has just dropped the others. Who reads one region often reads others, too. */
static acs_entry *readers_join(acs_window *w, acs_ref *readers, uint32_t count, acs_op seq)
{
    acs_entry *join = is_shared(w, &w->readers, readers, count) ? shared_join(w, &w->readers) : NULL;
    if (!join) {
        join = join_of(w, readers, count, seq);
        share(w, &w->readers, readers, count);
        w->readers.join = ref_make(w, join);
    }
    for (uint32_t i = 0; i < count; i++)
        ref_drop(w, &readers[i]);
    return join;
}

/*
 * An op that reads a region through two segments is one reader: the newest entry tells. A list that stays full after
 * the dead are gone becomes one join, so it never refuses a reader.
 */
static void readers_add(acs_window *w, acs_ref *readers, uint32_t *count, uint32_t capacity, acs_entry *entry)
{
    uint32_t used = *count;
    if (used && ref_entry(w, readers[used - 1]) == entry)
        return;
    if (ACS_UNLIKELY(used == capacity))
        used = readers_compact(w, readers, used);
    if (ACS_UNLIKELY(used == capacity)) {
        acs_entry *join = readers_join(w, readers, used, entry->seq);
        readers[0] = ref_make(w, join);
        used = 1;
    }
    readers[used] = ref_make(w, entry);
    *count = used + 1;
}

/* ---------------------------------------------------------------------------------------------------------- collect */

/* The regions of the op that is being inserted: those that it only reads, and those that it writes. */
typedef struct op_regions {
    acs_region **reads, **writes;
    uint32_t read_count, write_count;
    uint8_t all; /* access to all memory */
    bool linked; /* one of them has neighbours */
} op_regions;

/* Levels are for statistics: what the longest chain was. They order nothing. */
static void raise_level(acs_entry *entry, uint32_t upstream)
{
    if (entry->level <= upstream)
        entry->level = upstream + 1;
}

/* The first cause that is found is kept; it names the op that failed, never one that was skipped for it. */
static void note_poison(acs_entry *entry, acs_op cause)
{
    if (cause && !entry->immune && !entry->cause)
        entry->cause = cause;
}

/* As acs_window_link, which it spares where the edge was made already: through one of the op's other segments. */
static void depend_on(acs_window *w, acs_entry *upstream, acs_entry *entry)
{
    if (upstream->stamp != entry->own_stamp)
        acs_window_link(w, upstream, entry);
}

/* Depend on what a region remembers. A live reader implies the writer: it waits for it itself. */
static void collect_region(acs_window *w, acs_entry *entry, acs_region *region, uint8_t access, bool skip_writer)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned))
        note_poison(entry, region->poison_write);
    raise_level(entry, region->level_write);
    bool implied = skip_writer;
    /*
     * WAR. Readers here came after the writer, since a write empties the list: behind one of them is behind the writer.
     */
    if (writes(access)) {
        if (ACS_UNLIKELY(w->poisoned))
            note_poison(entry, region->poison_read);
        raise_level(entry, region->level_read);
        for (uint32_t i = 0; i < region->reader_count; i++) {
            acs_entry *reader = ref_entry(w, region->readers[i]);
            if (!reader || reader == entry)
                continue;
            depend_on(w, reader, entry);
            implied = true;
        }
    }
    acs_entry *writer = ref_entry(w, region->writer);
    if (writer && !implied)
        depend_on(w, writer, entry);
}

/*
 * Whether there are so many edges beside what acs_window_has_room promised this op: one from each entry, and those of its
 * readers' joins. It did not count those of joins of writers.
 */
static bool join_fits(const acs_window *w, const acs_entry *entry, uint32_t edges)
{
    uint64_t promised = w->live + w->live_joins + w->live_reserved +
                        (uint64_t)ACS_JOIN_EDGES * (entry->op->segment_count + 1);
    return w->edges_used + (uint64_t)edges + promised <= w->edge_count;
}

/* `after` is a stamp: writers up to it stand behind the region's join already. */
static uint32_t count_part_writers(acs_window *w, const acs_region *region, uint64_t after)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->link_count; i++) {
        acs_region *part = acs_region_at(w->regions, region->links[i].region);
        region_refresh(w, part);
        const acs_entry *writer = ref_entry(w, part->writer);
        count += writer && writer->own_stamp > after;
    }
    return count;
}

static void link_part_writers(acs_window *w, const acs_region *region, acs_entry *to, uint64_t after)
{
    for (uint32_t i = 0; i < region->link_count; i++) {
        acs_entry *writer = ref_entry(w, acs_region_at(w->regions, region->links[i].region)->writer);
        if (writer && writer->own_stamp > after)
            acs_window_link(w, writer, to);
    }
}

/*
 * A whole that is read while many parts of it were written: the writers become a join, kept for the next reader. Returns
 * true if the part writers are taken care of. acs_window_has_room did not count its
 * edges, so without room for them the edges are made one by one.
 */
static bool collect_cover(acs_window *w, acs_entry *entry, acs_region *region)
{
    acs_entry *cover = ref_entry(w, region->cover);
    uint64_t after = cover ? region->cover_stamp : 0;
    uint32_t newer = count_part_writers(w, region, after);
    if (!cover && newer <= COVER_WRITERS)
        return false;
    if (newer > COVER_WRITERS && join_fits(w, entry, 2 * newer + 1)) {
        acs_entry *join = acs_window_new_join(w, entry->seq);
        if (cover)
            acs_window_link(w, cover, join);
        link_part_writers(w, region, join, after);
        acs_window_close_join(w, join);
        ref_drop(w, &region->cover);
        region->cover = ref_make(w, join);
        region->covered = 1;
        /* The op that is being inserted is no part of the join: should it write a part too, it counts as newer. */
        region->cover_stamp = entry->own_stamp - 1;
        acs_window_link(w, join, entry);
        return true;
    }
    if (cover)
        acs_window_link(w, cover, entry);
    link_part_writers(w, region, entry, after);
    return true;
}

/*
 * The live writers of what an op only reads, in regions without neighbours; one that wrote several regions in a row once.
 * False: too many to be looked at together.
 */
static bool list_writers(acs_window *w, acs_entry *entry, const op_regions *found, acs_ref *writers, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < found->read_count; i++) {
        acs_region *region = found->reads[i];
        region_refresh(w, region);
        raise_level(entry, region->level_write);
        const acs_ref *last = *count ? &writers[*count - 1] : NULL;
        if (!acs_ref_live(w, region->writer) || (last && last->entry == region->writer.entry))
            continue;
        if (*count == ACS_SHARED_MOST)
            return false;
        writers[(*count)++] = region->writer;
    }
    return true;
}

/*
 * Many writers. Ops that follow each other are often behind the same ones (a layer, a reduction): the second that is makes a
 * join of them, which is all that later ones need. The writers are as if linked then.
 */
static void depend_on_many(acs_window *w, acs_entry *entry, const acs_ref *writers, uint32_t count)
{
    acs_entry *join = NULL;
    if (!is_shared(w, &w->writers, writers, count)) {
        share(w, &w->writers, writers, count);
    } else if (!(join = shared_join(w, &w->writers)) && join_fits(w, entry, count + 1)) {
        join = join_of(w, writers, count, entry->seq);
        ref_drop(w, &w->writers.join);
        w->writers.join = ref_make(w, join);
    }
    for (uint32_t i = 0; i < count; i++) {
        acs_entry *writer = &w->entries[writers[i].entry];
        if (join)
            writer->stamp = entry->own_stamp;
        else
            depend_on(w, writer, entry);
    }
    if (join)
        acs_window_link(w, join, entry);
}

/* Reads of many regions. False: they are to be collected one by one. */
static bool collect_many(acs_window *w, acs_entry *entry, const op_regions *found)
{
    acs_ref writers[ACS_SHARED_MOST];
    uint32_t count;
    if (found->read_count < SHARED_LEAST || found->linked || w->poisoned ||
        !list_writers(w, entry, found, writers, &count))
        return false;
    if (count >= SHARED_LEAST) {
        depend_on_many(w, entry, writers, count);
        return true;
    }
    for (uint32_t i = 0; i < count; i++)
        depend_on(w, &w->entries[writers[i].entry], entry);
    return true;
}

/* What collect_shape comes to for a region that is read, where there are no neighbours and no failures. */
static void collect_read(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_refresh(w, region);
    raise_level(entry, region->level_write);
    acs_entry *writer = ref_entry(w, region->writer);
    if (writer)
        depend_on(w, writer, entry);
}

/* Neighbours that are idle do no harm but cost a look each: they are dropped once there are many. */
static void collect_shape(acs_window *w, acs_entry *entry, acs_region *region, uint8_t access)
{
    collect_region(w, entry, region, access, false);
    if (ACS_LIKELY(region->link_count == 0))
        return;
    if (region->link_count > IDLE_LINKS_KEPT)
        acs_region_drop_idle_links(w->regions, region);
    bool covered = access == ACS_READ && region->link_count > COVER_WRITERS && collect_cover(w, entry, region);
    for (uint32_t i = 0; i < region->link_count; i++)
        collect_region(w, entry, acs_region_at(w->regions, region->links[i].region), access, covered);
}

/* All memory: everything in the window back to the newest op that wrote all memory. */
static void collect_all(acs_window *w, acs_entry *entry, uint8_t access)
{
    raise_level(entry, w->counters.levels);
    note_poison(entry, w->poison_any_write);
    if (writes(access))
        note_poison(entry, w->poison_any_read);
    acs_entry *all = ref_entry(w, w->all_writer);
    for (uint32_t i = w->order_tail; i; i = w->entries[i].order_prev) {
        acs_entry *other = &w->entries[i];
        if (!other->observer && other->touches && (writes(access) || other->writes))
            acs_window_link(w, other, entry);
        /* Older ops stand behind the writer of all memory, so behind it is behind them. */
        if (other == all)
            break;
    }
}

/* What every op with a footprint owes to ops that touched all memory. */
static void collect_common(acs_window *w, acs_entry *entry, uint8_t access)
{
    note_poison(entry, w->poison_all_write);
    raise_level(entry, w->level_all);
    acs_entry *all = ref_entry(w, w->all_writer);
    if (all)
        acs_window_link(w, all, entry);
    if (!writes(access))
        return;
    note_poison(entry, w->poison_all_read);
    for (uint32_t i = 0; i < w->all_reader_count; i++) {
        acs_entry *reader = ref_entry(w, w->all_readers[i]);
        if (reader)
            acs_window_link(w, reader, entry);
    }
}

/* ---------------------------------------------------------------------------------------------------------- register */

/*
 * Parts are emptied: whoever touches one later overlaps this region too, and finds its writer here. Regions that are
 * only met in part keep what they know, since some of their bytes still come from there.
 */
static void register_write(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_empty(w, region);
    region->writer = ref_make(w, entry);
    region->level_write = entry->level;
    for (uint32_t i = 0; i < region->link_count; i++) {
        if (!region->links[i].covers)
            continue;
        acs_region *part = acs_region_at(w->regions, region->links[i].region);
        region_refresh(w, part);
        region_empty(w, part);
    }
}

static void register_read(acs_window *w, acs_entry *entry, acs_region *region)
{
    if (region->level_read < entry->level)
        region->level_read = entry->level;
    readers_add(w, region->readers, &region->reader_count, ACS_REGION_READERS, entry);
}

static void register_all(acs_window *w, acs_entry *entry, uint8_t access)
{
    if (!writes(access)) {
        readers_add(w, w->all_readers, &w->all_reader_count, ACS_ALL_READERS, entry);
        return;
    }
    for (uint32_t i = 0; i < w->all_reader_count; i++)
        ref_drop(w, &w->all_readers[i]);
    w->all_reader_count = 0;
    ref_drop(w, &w->all_writer);
    w->all_writer = ref_make(w, entry);
    /* One more than the op's own number: above the epoch of acs_window_init also for the very first op. */
    w->epoch = w->insertion + 1;
    w->level_all = entry->level;
}

/* ------------------------------------------------------------------------------------------------------------ insert */

/* Grows to the largest op seen and stays: an insertion allocates here only while the program warms up. Never empty. */
static bool scratch_fit(acs_window *w, uint32_t count)
{
    if (ACS_LIKELY(count < w->scratch_capacity))
        return true;
    uint32_t capacity = acs_round_up_pow2(count < 64 ? 64 : count + 1);
    acs_region **grown = realloc(w->scratch, 2 * (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    w->scratch = grown;
    w->scratch_capacity = capacity;
    return true;
}

/*
 * Regions of the op are pinned until it is registered where one of them might be evicted meanwhile: when another is made,
 * and when idle neighbours are dropped. Where all are known and none has a neighbour nothing is.
 */
static void pin(acs_window *w, const op_regions *found)
{
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins++;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins++;
    w->pinned = true;
}

static void unpin(acs_window *w, const op_regions *found)
{
    if (ACS_LIKELY(!w->pinned))
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins--;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins--;
    w->pinned = false;
}

/* The region of a segment that acs_regions_known does not know; NULL also where it is empty. False: no memory. */
static bool make_region(acs_window *w, const acs_segment *segment, op_regions *found, acs_region **region)
{
    acs_shape shape;
    *region = NULL;
    if (segment->extent == ACS_EXTENT_ALL) {
        found->all |= segment->access;
        return true;
    }
    if (acs_shape_of(segment, &shape) != ACS_OK)
        return true; /* empty; bad ones were refused at the launch */
    if (!w->pinned)
        pin(w, found);
    *region = acs_regions_get(w->regions, &shape);
    return *region != NULL;
}

/* When memory for the index is exhausted the op is ordered behind and before everything: slower, never wrong. */
static void find_nothing(acs_window *w, const acs_record *op, op_regions *found)
{
    unpin(w, found);
    found->read_count = found->write_count = 0;
    found->all = ACS_UPDATE;
    w->counters.barriers++;
    acs_log(ACS_LOG_WARN, "no memory to index a segment: op %llu is ordered against everything",
            (unsigned long long)op->seq);
}

/* Find the regions of an op's segments, and the access to all memory that it has. */
static void find_regions(acs_window *w, const acs_record *op, op_regions *found)
{
    uint32_t links = 0;
    *found = (op_regions){.all = op->any ? ACS_UPDATE : 0};
    if (!scratch_fit(w, op->segment_count)) {
        find_nothing(w, op, found);
        return;
    }
    found->reads = w->scratch;
    found->writes = w->scratch + w->scratch_capacity;
    for (const acs_segment *s = op->segments, *end = s + op->segment_count; s < end; s++) {
        acs_region *region = acs_regions_known(w->regions, s);
        if (ACS_UNLIKELY(!region) && !make_region(w, s, found, &region)) {
            find_nothing(w, op, found);
            return;
        }
        if (ACS_UNLIKELY(!region))
            continue;
        /* Into both lists, and counted in one: which one is not worth a branch that is guessed wrong. */
        found->reads[found->read_count] = found->writes[found->write_count] = region;
        found->read_count += !writes(s->access);
        found->write_count += writes(s->access);
        links |= region->link_count;
        if (ACS_UNLIKELY(w->pinned))
            region->pins++;
    }
    found->linked = links != 0;
    if (links && !w->pinned)
        pin(w, found);
}

/*
 * First all segments collect, then they register: an op must not find itself upstream. Reads register before writes, so
 * that a write empties also what the same op reads inside it, and leaves the op as the writer.
 */
static void insert_regions(acs_window *w, acs_entry *entry, const op_regions *found)
{
    bool collected = collect_many(w, entry, found);
    for (uint32_t i = 0; i < found->read_count && !collected; i++) {
        acs_region *region = found->reads[i];
        if (ACS_LIKELY(region->link_count == 0 && w->poisoned == 0))
            collect_read(w, entry, region);
        else
            collect_shape(w, entry, region, ACS_READ);
    }
    for (uint32_t i = 0; i < found->write_count; i++)
        collect_shape(w, entry, found->writes[i], ACS_UPDATE);
    if (ACS_UNLIKELY(entry->observer))
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        register_read(w, entry, found->reads[i]);
    for (uint32_t i = 0; i < found->write_count; i++)
        register_write(w, entry, found->writes[i]);
}

/* An op that only reads all memory may still write some: its segments are ordered like any op's. */
void acs_depend_insert(acs_window *w, acs_entry *entry)
{
    op_regions found;
    find_regions(w, entry->op, &found);
    uint8_t access = found.write_count ? ACS_UPDATE : found.read_count ? ACS_READ : 0, all = found.all;
    entry->touches = (access | all) != 0;
    entry->writes = writes((uint8_t)(access | all));
    if (all)
        collect_all(w, entry, all);
    /* An op that writes all memory is found through the window's own state: its regions would add nothing. */
    if (access && !writes(all)) {
        collect_common(w, entry, access);
        insert_regions(w, entry, &found);
    }
    if (all && !entry->observer)
        register_all(w, entry, all);
    unpin(w, &found);
}
