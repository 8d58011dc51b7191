/*
 * Dependencies: the ops of the window that a new op must wait for, found through the regions that its segments name.
 * Orders RAW, WAR and WAW; reads share. (ACS, Algorithm 1, compares only the new op's writes and so misses RAW.)
 * Called by insert.c; owns the dependency state of regions. It decides neither when an op is ready nor where it runs.
 *
 * A region remembers its newest writer, and the readers and commuters (ACS_COMMUTE) since. Commuters depend on readers,
 * and readers on commuters, but neither on others of their kind. A covering write empties the regions that it covers: an
 * op that touches one of them later also touches the covering one. A join, an entry that stands for many ops, replaces
 * three kinds of lists: many readers, many writers of parts that one read covers, and many writers that several ops
 * depend on. So n readers and m writers need n + m edges, not n * m.
 */
#include "window/collect.h"

#include "base/tuning.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------------------------------------- register */

/* Covered regions have been emptied before. */
static void register_write(acs_window *w, acs_entry *entry, acs_region *region)
{
    ACS_ASSERT(region->in_table); /* REG-3 */
    acs_region_empty(w, region);
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
    if (!acs_writes(access)) {
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
    acs_region **grown = realloc(w->scratch, 3 * (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    w->scratch = grown;
    w->scratch_capacity = capacity;
    return true;
}

/* Make the region that acs_regions_known did not find; NULL: the segment is empty, or all memory. False: no memory. */
static bool make_region(acs_window *w, const acs_segment *segment, acs_op_regions *found, acs_region **region)
{
    acs_shape shape;
    *region = NULL;
    if (segment->extent == ACS_EXTENT_ALL) {
        found->all |= segment->access;
        return true;
    }
    if (acs_shape_of(segment, &shape) != ACS_OK)
        return true; /* empty; the launch has refused invalid ones */
    acs_op_regions_pin(found);
    *region = acs_regions_get(w->regions, &shape, segment->access);
    ACS_ASSERT(w->insertion % TUNE_CHECKED_INSERTIONS || acs_regions_count(w->regions) > TUNE_CHECKED_REGIONS ||
               acs_regions_check(w->regions)); /* REG-1, REG-2 */
    return *region != NULL;
}

/* No memory for the index: order the op against everything. Slower, never wrong. */
static void find_nothing(acs_window *w, const acs_record *op, acs_op_regions *found)
{
    acs_op_regions_unpin(found);
    found->read_count = found->write_count = found->commute_count = 0;
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
static void find_regions(acs_window *w, const acs_record *op, acs_op_regions *found)
{
    uint32_t links = 0;
    *found = (acs_op_regions){.all = op->any ? ACS_UPDATE : 0};
    if (!scratch_reserve(w, op->segment_count)) {
        find_nothing(w, op, found);
        return;
    }
    found->reads = w->scratch;
    found->writes = w->scratch + w->scratch_capacity;
    found->commutes = found->writes + w->scratch_capacity;
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
        found->read_count += !acs_writes(s->access);
        /* Without memory for it the op is ordered with the other commuters: slower, never wrong. */
        if (ACS_UNLIKELY(s->access == ACS_COMMUTE) && acs_commuters_reserve(w, region, op->seq))
            found->commutes[found->commute_count++] = region;
        else
            found->write_count += acs_writes(s->access);
        ACS_ASSERT(found->read_count < w->scratch_capacity && found->write_count < w->scratch_capacity);
        links |= region->link_count;
        if (ACS_UNLIKELY(found->pinned))
            region->pins++;
    }
    found->linked = links != 0;
}

/* Reads register first, then commuters: a write of the same region then leaves the op as the writer. */
static void insert_regions(acs_window *w, acs_entry *entry, acs_op_regions *found)
{
    acs_collect_regions(w, entry, found);
    if (ACS_UNLIKELY(entry->observer))
        return;
    for (uint32_t i = 0; i < found->read_count; i++)
        register_read(w, entry, found->reads[i]);
    for (uint32_t i = 0; i < found->commute_count; i++)
        acs_commuters_add(w, found->commutes[i], entry);
    for (uint32_t i = 0; i < found->write_count; i++)
        register_write(w, entry, found->writes[i]);
}

/* An op that only reads all memory may still write some of it: its segments are ordered like those of any op. */
void acs_depend_insert(acs_window *w, acs_entry *entry)
{
    acs_op_regions found;
    find_regions(w, entry->op, &found);
    const bool changes = found.write_count || found.commute_count;
    uint8_t access = changes ? ACS_UPDATE : found.read_count ? ACS_READ : 0, all = found.all;
    entry->touches = (access | all) != 0;
    entry->writes = acs_writes((uint8_t)(access | all));
    if (all)
        acs_collect_all(w, entry, all);
    /* A writer of all memory is found through the window's own state: its regions would add nothing. */
    if (access && !acs_writes(all)) {
        acs_collect_common(w, entry, access);
        insert_regions(w, entry, &found);
    }
    if (all && !entry->observer)
        register_all(w, entry, all);
    acs_op_regions_unpin(&found);
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
        else if (region && !acs_writes(op->segments[i].access) && region->level_read < entry->level)
            region->level_read = entry->level;
        else if (region && op->segments[i].access == ACS_COMMUTE && region->commuters)
            region->commuters->level = region->commuters->level > entry->level ? region->commuters->level : entry->level;
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
    acs_region *region = acs_regions_get(w->regions, &block, ACS_UPDATE);
    acs_op_regions found = {.writes = &region, .write_count = region != NULL};
    if (region) {
        acs_collect_common(w, join, ACS_UPDATE);
        acs_collect_write(w, join, &found, region);
    } else { /* no memory for the index: slower, never wrong */
        acs_collect_all(w, join, ACS_UPDATE);
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
    acs_op_regions_unpin(&found);
}
