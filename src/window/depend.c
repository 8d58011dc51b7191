/*
 * Dependencies: the ops of the window that a new op must wait for, found through the regions that its segments name.
 * Orders RAW, WAR and WAW; reads share. (ACS, Algorithm 1, compares only the new op's writes and so misses RAW.)
 * Called by insert.c; owns the dependency state of regions. It decides neither when an op is ready nor where it runs.
 *
 * A region remembers its newest writer and the readers since. A covering write empties the regions that it covers: an
 * op that touches one of them later also touches the covering one. A join, an entry that stands for many ops, replaces
 * three kinds of lists: many readers, many writers of parts that one read covers, and many writers that several ops
 * depend on. So n readers and m writers need n + m edges, not n * m.
 */
#include "window/holders.h"

#include "base/tuning.h"

#include <stdlib.h>

static bool writes(uint8_t access)
{
    return (access & ACS_WRITE) != 0;
}

/* Forget the writer and readers of a region. Levels and poison stay: they outlive their ops. */
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

/* A write of all memory implies everything that the region remembered before it. */
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

/* Regions of the op that is being inserted: those that it only reads, and those that it writes. */
typedef struct op_regions {
    acs_region **reads, **writes;
    uint32_t read_count, write_count;
    uint8_t all; /* access to all memory; acs_access, 0: none */
    bool linked; /* at least one of them has neighbours */
    bool pinned; /* eviction leaves them alone */
} op_regions;

/*
 * Pin the op's regions until they are registered. Needed only if one may be evicted meanwhile: when another is made,
 * or idle neighbours are dropped.
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

/* RAW: depend on the region's writer. */
static inline void collect_writer(acs_window *w, acs_entry *entry, acs_region *region)
{
    region_refresh(w, region);
    if (ACS_UNLIKELY(w->poisoned))
        note_poison(entry, region->poison_write);
    raise_level(entry, region->level_write);
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
        note_poison(entry, region->poison_read);
    }
    raise_level(entry, region->level_write);
    raise_level(entry, region->level_read);
    if (!collect_readers(w, entry, region, stay))
        acs_depend_on(w, region->writer, entry);
}

/* Number of live writers of parts whose own_stamp exceeds `after`; older ones are in the region's join. */
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
 * The region is read as a whole after many parts of it were written: their writers become a join, kept for later
 * reads. Returns true if the writers of parts are handled. acs_window_has_room does not count the join's edges, so if
 * they do not fit, one edge is made to each writer.
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
        /* The op being inserted is not part of the join: if it writes a part too, it counts as newer. */
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
 * List the live writers of regions that an op only reads and that have no neighbours. A writer of several regions in a
 * row is listed once. False: there are more than TUNE_JOIN_SHARED_MOST.
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

/* Depend on the writers of many read regions at once. False: collect them one by one. */
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

/* Drop idle neighbours once there are many: each costs every insertion a look. */
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
 * Covered regions are emptied: an op that touches one later overlaps this region too, and finds its writer here.
 * Regions that overlap only in part keep their state, since it still describes some of their bytes.
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

/* Depend on the ops in the window, back to the newest op that wrote all memory. */
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
        /* Older ops precede the writer of all memory: it implies them. */
        if (other == all)
            break;
    }
}

/* Dependencies of every op with a footprint: on ops that touched all memory. */
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

/* Covered regions have been emptied before. */
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
    /* Above the epoch of acs_window_init even for the first op. */
    ACS_ASSERT(w->epoch <= w->insertion + 1);
    w->epoch = w->insertion + 1;
    w->level_all = entry->level;
}

/* ------------------------------------------------------------------------------------------------------------ insert */

/* Grows to the largest op seen and stays: insertion allocates here only while the program warms up. Never empty. */
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

/* Make the region that acs_regions_known did not find; NULL: the segment is empty, or all memory. False: no memory. */
static bool make_region(acs_window *w, const acs_segment *segment, op_regions *found, acs_region **region)
{
    acs_shape shape;
    *region = NULL;
    if (segment->extent == ACS_EXTENT_ALL) {
        found->all |= segment->access;
        return true;
    }
    if (acs_shape_of(segment, &shape) != ACS_OK)
        return true; /* empty; the launch has refused invalid ones */
    pin(found);
    *region = acs_regions_get(w->regions, &shape);
    ACS_ASSERT(w->insertion % TUNE_CHECKED_INSERTIONS || acs_regions_count(w->regions) > TUNE_CHECKED_REGIONS ||
               acs_regions_check(w->regions)); /* REG-1, REG-2 */
    return *region != NULL;
}

/* No memory for the index: order the op against everything. Slower, never wrong. */
static void find_nothing(acs_window *w, const acs_record *op, op_regions *found)
{
    unpin(found);
    found->read_count = found->write_count = 0;
    found->all = ACS_UPDATE;
    w->counters.barriers++;
    acs_log(ACS_LOG_WARN, "no memory to index a segment: op %llu is ordered against everything",
            (unsigned long long)op->seq);
}

/* Prefetched regions of the op's first `count` segments, if ops come in the announced order; else NULL. */
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

/* Find the regions of an op's segments, and its access to all memory. */
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
        /* Store into both lists and count in one: a branch on the access would be mispredicted. */
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
 * All segments collect before any registers, so that an op does not depend on itself. Reads register first: a write of
 * the same region then leaves the op as the writer.
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

/* An op that only reads all memory may still write some of it: its segments are ordered like those of any op. */
void acs_depend_insert(acs_window *w, acs_entry *entry)
{
    op_regions found;
    find_regions(w, entry->op, &found);
    uint8_t access = found.write_count ? ACS_UPDATE : found.read_count ? ACS_READ : 0, all = found.all;
    entry->touches = (access | all) != 0;
    entry->writes = writes((uint8_t)(access | all));
    if (all)
        collect_all(w, entry, all);
    /* A writer of all memory is found through the window's own state: its regions would add nothing. */
    if (access && !writes(all)) {
        collect_common(w, entry, access);
        insert_regions(w, entry, &found);
    }
    if (all && !entry->observer)
        register_all(w, entry, all);
    unpin(&found);
}

void acs_depend_deepen(acs_window *w, acs_entry *entry, uint32_t depth)
{
    ACS_ASSERT(depth > 0);
    if (depth == 1)
        return;
    const acs_record *op = entry->op;
    entry->level += depth - 1;
    for (uint32_t i = 0; i < op->segment_count; i++) {
        acs_region *region = acs_regions_known(w->regions, &op->segments[i]);
        if (region && acs_ref_entry(w, region->writer) == entry)
            region->level_write = entry->level;
        else if (region && !writes(op->segments[i].access) && region->level_read < entry->level)
            region->level_read = entry->level;
    }
    if (acs_ref_entry(w, w->all_writer) == entry)
        w->level_all = entry->level;
    acs_window_count_level(w, entry);
}

/* ------------------------------------------------------------------------------------------------------------- reuse */

/*
 * The join becomes the newest writer of the block, and of larger or overlapping former blocks: parts of those may be
 * handed out again too, and must find it.
 */
static void register_life(acs_window *w, acs_entry *join, acs_region *block)
{
    register_write(w, join, block);
    if (!block->link_count) /* `links` may be NULL, to which C does not let 0 be added */
        return;
    for (const acs_link *link = block->links, *end = link + block->link_count; link < end; link++)
        if (!link->covers)
            register_write(w, join, link->region);
}

/* Remember a new life. Entries whose join has ended make room; there is at most one per live join. */
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
 * All ops that touched the block before become a join, which later ops depend on. It lives until all ops of
 * the former life have ended, since each may still fail; acs_depend_poison looks for it.
 */
void acs_depend_reuse(acs_window *w, acs_op seq, const acs_reuse *reuse)
{
    const acs_shape block = {.base = reuse->base, .row_bytes = reuse->bytes, .rows = 1};
    acs_window_forget_block(w, block.base, block.row_bytes);
    const uint64_t edges = w->counters.edges;
    acs_entry *join = acs_window_new_join(w, seq);
    join->never_skipped = 1;
    acs_region *region = acs_regions_get(w->regions, &block);
    op_regions found = {.writes = &region, .write_count = region != NULL};
    if (region) {
        collect_common(w, join, ACS_UPDATE);
        collect_write(w, join, &found, region);
    } else { /* no memory for the index: slower, never wrong */
        collect_all(w, join, ACS_UPDATE);
    }
    join->level -= join->level > 0; /* a join is no link of a chain */
    /* not the join's own counts: in a capture these stay 0, since its edges are kept elsewhere */
    if (w->counters.edges == edges) {
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
