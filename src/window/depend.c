/*
 * Dependencies: which ops of the window a new op must wait for, found through the regions that its segments name. RAW, WAR
 * and WAW are kept (ACS, Algorithm 1, compares only the new op's writes and so misses RAW); reads share.
 *
 * A region remembers its newest writer and the readers since. A covering write empties the regions that it covers: who
 * touches them later also touches the covering one. Many readers become a join, an entry that stands for all of them, and
 * so do many writers of parts that a whole is read from, and many writers that one op after the other is behind: n readers
 * and m writers then need n + m edges, not n * m.
 */
#include "window/holders.h"

#include "base/tuning.h"

#include <stdlib.h>

static bool writes(uint8_t access)
{
    return (access & ACS_WRITE) != 0;
}

/* Forget who touched the region. Levels and poison stay: they outlive the ops that they come from. */
static void region_empty(acs_window *w, acs_region *region)
{
    acs_ref_drop(w, &region->writer);
    if (ACS_UNLIKELY(region->covered))
        acs_ref_drop(w, &region->cover);
    for (uint32_t i = 0; i < region->reader_count; i++)
        acs_ref_drop(w, &region->readers[i]);
    region->reader_count = 0;
    region->covered = 0;
}

/* Since a write of all memory everything that a region remembered is implied by that write. */
static inline void region_refresh(acs_window *w, acs_region *region)
{
    ACS_ASSERT(region->in_table); /* REG-3 */
    if (ACS_LIKELY(region->epoch >= w->epoch))
        return;
    region_empty(w, region);
    region->level_read = region->level_write = w->level_all;
    region->epoch = w->epoch;
}

/* ---------------------------------------------------------------------------------------------------------- collect */

/* The regions of the op that is being inserted: those that it only reads, and those that it writes. */
typedef struct op_regions {
    acs_region **reads, **writes;
    uint32_t read_count, write_count;
    uint8_t all; /* access to all memory */
    bool linked; /* one of them has neighbours */
    bool pinned; /* they are not evicted */
} op_regions;

/*
 * Regions of the op are pinned until it is registered where one of them might be evicted meanwhile: when another is made,
 * and when idle neighbours are dropped.
 */
static void pin(op_regions *found)
{
    if (found->pinned)
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins++;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins++;
    found->pinned = true;
}

static void unpin(op_regions *found)
{
    if (ACS_LIKELY(!found->pinned))
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        found->reads[i]->pins--;
    for (uint32_t i = 0; i < found->write_count; i++)
        found->writes[i]->pins--;
    found->pinned = false;
}

/* Levels are for statistics: what the longest chain was. They order nothing. */
static inline void raise_level(acs_entry *entry, uint32_t upstream)
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

/* RAW: what a region remembers that a reader depends on. */
static inline void collect_writer(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned))
        note_poison(entry, region->poison_write);
    raise_level(entry, region->level_write);
    acs_depend_on(w, region->writer, entry);
}

/*
 * Depend on a region's readers. Whether any is left. Many of a region that they stay in are met again by who writes another
 * part of it: they become a join for good.
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
 * WAR and WAW. Readers here came after the writer, since a write empties the list: behind a live one is behind the writer.
 * `stay`: the region is not written as a whole.
 */
static inline void collect_all_of(acs_window *w, acs_entry *entry, acs_region *region, bool stay)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned)) {
        note_poison(entry, region->poison_write);
        note_poison(entry, region->poison_read);
    }
    raise_level(entry, region->level_write);
    raise_level(entry, region->level_read);
    if (!collect_readers(w, entry, region, stay))
        acs_depend_on(w, region->writer, entry);
}

/* `after` is a stamp: writers up to it stand behind the region's join already. */
static uint32_t count_part_writers(acs_window *w, acs_entry *entry, const acs_region *region, uint64_t after)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->link_count; i++) {
        acs_region *part = region->links[i].region;
        region_refresh(w, part);
        if (ACS_UNLIKELY(w->poisoned))
            note_poison(entry, part->poison_write);
        raise_level(entry, part->level_write);
        const acs_entry *writer = acs_ref_entry(w, part->writer);
        count += writer && writer->own_stamp > after;
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
 * A whole that is read while many parts of it were written: the writers become a join, kept for the next reader. Returns
 * true if the part writers are taken care of. acs_window_has_room did not count its
 * edges, so without room for them the edges are made one by one.
 */
static bool collect_cover(acs_window *w, acs_entry *entry, acs_region *region)
{
    acs_entry *cover = acs_ref_entry(w, region->cover);
    uint64_t after = cover ? region->cover_stamp : 0;
    uint32_t newer = count_part_writers(w, entry, region, after);
    if (!cover && newer <= TUNE_JOIN_COVER_MANY)
        return false;
    if (newer > TUNE_JOIN_COVER_MANY && acs_join_fits(w, entry, 2 * newer + 1)) {
        acs_entry *join = acs_window_new_join(w, entry->seq);
        if (cover)
            acs_window_link(w, cover, join);
        link_part_writers(w, region, join, after);
        acs_window_close_join(w, join);
        acs_ref_drop(w, &region->cover);
        region->cover = acs_ref_make(w, join);
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
        if (*count == TUNE_JOIN_SHARED_MOST)
            return false;
        writers[(*count)++] = region->writer;
    }
    return true;
}

/* Reads of many regions. False: they are to be collected one by one. */
static bool collect_many(acs_window *w, acs_entry *entry, const op_regions *found)
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

/* Neighbours that are idle do no harm but cost a look each: they are dropped once there are many. */
static void drop_idle_links(acs_window *w, op_regions *found, acs_region *region)
{
    if (ACS_LIKELY(region->link_count <= TUNE_REGION_IDLE_LINKS))
        return;
    pin(found);
    acs_region_drop_idle_links(w->regions, region);
}

static void collect_read(acs_window *w, acs_entry *entry, op_regions *found, acs_region *region)
{
    collect_writer(w, entry, region);
    if (region->link_count == 0)
        return;
    drop_idle_links(w, found, region);
    if (ACS_UNLIKELY(region->link_count > TUNE_JOIN_COVER_MANY) && collect_cover(w, entry, region))
        return;
    for (const acs_link *link = region->links, *end = link + region->link_count; link < end; link++)
        collect_writer(w, entry, link->region);
}

/*
 * Parts are emptied: whoever touches one later overlaps this region too, and finds its writer here. Regions that are
 * only met in part keep what they know, since some of their bytes still come from there.
 */
static void collect_write(acs_window *w, acs_entry *entry, op_regions *found, acs_region *region)
{
    collect_all_of(w, entry, region, false);
    if (region->link_count == 0)
        return;
    drop_idle_links(w, found, region);
    for (const acs_link *link = region->links, *end = link + region->link_count; link < end; link++) {
        bool part = link->covers && !entry->observer;
        collect_all_of(w, entry, link->region, !part);
        if (part)
            region_empty(w, link->region);
    }
}

/* All memory: everything in the window back to the newest op that wrote all memory. */
static void collect_all(acs_window *w, acs_entry *entry, uint8_t access)
{
    raise_level(entry, writes(access) ? w->level_touched : w->level_written);
    note_poison(entry, w->poison_any_write);
    if (writes(access))
        note_poison(entry, w->poison_any_read);
    acs_entry *all = acs_ref_entry(w, w->all_writer);
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
    acs_entry *all = acs_ref_entry(w, w->all_writer);
    if (all)
        acs_window_link(w, all, entry);
    if (!writes(access))
        return;
    raise_level(entry, w->level_all_read);
    note_poison(entry, w->poison_all_read);
    for (uint32_t i = 0; i < w->all_reader_count; i++) {
        acs_entry *reader = acs_ref_entry(w, w->all_readers[i]);
        if (reader)
            acs_window_link(w, reader, entry);
    }
}

/* ---------------------------------------------------------------------------------------------------------- register */

/* What it covers was emptied before. */
static void register_write(acs_window *w, acs_entry *entry, acs_region *region)
{
    ACS_ASSERT(region->in_table); /* REG-3 */
    region_empty(w, region);
    region->writer = acs_ref_make(w, entry);
    region->level_write = entry->level;
}

static void register_read(acs_window *w, acs_entry *entry, acs_region *region)
{
    ACS_ASSERT(region->in_table); /* REG-3 */
    if (region->level_read < entry->level)
        region->level_read = entry->level;
    acs_readers_add(w, region, entry);
}

static void register_all(acs_window *w, acs_entry *entry, uint8_t access)
{
    if (!writes(access)) {
        w->level_all_read = entry->level > w->level_all_read ? entry->level : w->level_all_read;
        acs_readers_add_all(w, entry);
        return;
    }
    for (uint32_t i = 0; i < w->all_reader_count; i++)
        acs_ref_drop(w, &w->all_readers[i]);
    w->all_reader_count = 0;
    acs_ref_drop(w, &w->all_writer);
    w->all_writer = acs_ref_make(w, entry);
    /* One more than the op's own number: above the epoch of acs_window_init also for the very first op. */
    ACS_ASSERT(w->epoch <= w->insertion + 1);
    w->epoch = w->insertion + 1;
    w->level_all = entry->level;
}

/* ------------------------------------------------------------------------------------------------------------ insert */

/* Grows to the largest op seen and stays: an insertion allocates here only while the program warms up. Never empty. */
static bool scratch_reserve(acs_window *w, uint32_t count)
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
    pin(found);
    *region = acs_regions_get(w->regions, &shape);
    ACS_ASSERT(w->insertion % TUNE_CHECKED_INSERTIONS || acs_regions_count(w->regions) > TUNE_CHECKED_REGIONS ||
               acs_regions_check(w->regions)); /* REG-1, REG-2 */
    return *region != NULL;
}

/* When memory for the index is exhausted the op is ordered behind and before everything: slower, never wrong. */
static void find_nothing(acs_window *w, const acs_record *op, op_regions *found)
{
    unpin(found);
    found->read_count = found->write_count = 0;
    found->all = ACS_UPDATE;
    w->counters.barriers++;
    acs_log(ACS_LOG_WARN, "no memory to index a segment: op %llu is ordered against everything",
            (unsigned long long)op->seq);
}

/* Where the regions of the op's first `count` segments may be. Ops come in the order in which they were expected, if so. */
static acs_region *const *find_expected(acs_window *w, const acs_record *op, uint32_t *count)
{
    acs_expected *e = &w->expected;
    *count = 0;
    if (e->next == e->op_count || e->seq[e->next] != op->seq)
        return NULL;
    ACS_ASSERT(e->next < e->op_count);
    uint32_t first = e->first[e->next++];
    *count = e->first[e->next] - first;
    return &e->regions[first];
}

static inline acs_region *known(acs_window *w, acs_region *region, const acs_segment *s)
{
    if (ACS_UNLIKELY(!region || !acs_region_is_run(region, s) || s->extent != ACS_EXTENT_BYTES || s->rows != 1))
        return acs_regions_known(w->regions, s);
    if (!region->touched)
        region->touched = 1;
    return region;
}

/* Find the regions of an op's segments, and the access to all memory that it has. */
static void find_regions(acs_window *w, const acs_record *op, op_regions *found)
{
    uint32_t links = 0;
    *found = (op_regions){.all = op->any ? ACS_UPDATE : 0};
    if (!scratch_reserve(w, op->segment_count)) {
        find_nothing(w, op, found);
        return;
    }
    found->reads = w->scratch;
    found->writes = w->scratch + w->scratch_capacity;
    uint32_t expected_count;
    acs_region *const *expected = find_expected(w, op, &expected_count);
    for (uint32_t i = 0; i < op->segment_count; i++) {
        const acs_segment *s = &op->segments[i];
        acs_region *region = known(w, i < expected_count ? expected[i] : NULL, s);
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
        ACS_ASSERT(found->read_count < w->scratch_capacity && found->write_count < w->scratch_capacity);
        links |= region->link_count;
        if (ACS_UNLIKELY(found->pinned))
            region->pins++;
    }
    found->linked = links != 0;
}

/*
 * First all segments collect, then they register: an op must not find itself upstream. Reads register before writes, so
 * that a write of the same region leaves the op as the writer.
 */
static void insert_regions(acs_window *w, acs_entry *entry, op_regions *found)
{
    bool collected = collect_many(w, entry, found);
    for (uint32_t i = 0; i < found->read_count && !collected; i++)
        collect_read(w, entry, found, found->reads[i]);
    for (uint32_t i = 0; i < found->write_count; i++)
        collect_write(w, entry, found, found->writes[i]);
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
    unpin(&found);
}

/* ------------------------------------------------------------------------------------------------------------- reuse */

/*
 * The join is the block's newest writer, and that of what larger blocks before it left here: parts of those may be handed
 * out again, too, and have to find it.
 */
static void register_life(acs_window *w, acs_entry *join, acs_region *block)
{
    register_write(w, join, block);
    for (const acs_link *link = block->links, *end = link + block->link_count; link < end; link++)
        if (!link->covers)
            register_write(w, join, link->region);
}

/* Those of which nobody is left make room. There is one for each live join at most. */
static void note_life(acs_window *w, const acs_shape *block, acs_op seq, const acs_entry *join)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; w->life_count == w->joins && i < w->life_count; i++)
        if (w->holds[w->lives[i].join].generation == w->lives[i].generation)
            w->lives[kept++] = w->lives[i];
    if (w->life_count == w->joins)
        w->life_count = kept;
    ACS_ASSERT(w->life_count < w->joins); /* WIN-1 */
    w->lives[w->life_count++] = (acs_life){*block, seq, join->index, w->holds[join->index].generation};
}

/*
 * All that touched the block before becomes a join, which stands for them from here on. It lives until nobody of the former
 * life is left that could fail, and acs_depend_poison looks for it.
 */
void acs_depend_reuse(acs_window *w, acs_op seq, const acs_reuse *reuse)
{
    const acs_shape block = {.base = reuse->base, .row_bytes = reuse->bytes, .rows = 1};
    acs_window_forget_block(w, block.base, block.row_bytes);
    const uint64_t edges = w->counters.edges;
    acs_entry *join = acs_window_new_join(w, seq);
    join->immune = 1;
    acs_region *region = acs_regions_get(w->regions, &block);
    op_regions found = {.writes = &region, .write_count = region != NULL};
    if (region) {
        collect_common(w, join, ACS_UPDATE);
        collect_write(w, join, &found, region);
    } else { /* no memory for the index: slower, never wrong */
        collect_all(w, join, ACS_UPDATE);
    }
    join->level -= join->level > 0; /* a join is no link of a chain */
    if (w->counters.edges == edges) { /* the join's own counts say nothing in a capture, which keeps its edges elsewhere */
        acs_window_free(w, join);
        w->live_joins--;
    } else {
        if (region)
            register_life(w, join, region);
        else
            register_all(w, join, ACS_UPDATE);
        acs_window_close_join(w, join);
        note_life(w, &block, seq, join);
    }
    unpin(&found);
}
