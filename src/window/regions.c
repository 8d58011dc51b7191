/*
 * The table of regions: a hash of exact shapes, links between overlapping regions, eviction of idle ones. Owns the
 * regions, their links and the search index. Called by depend.c and poison.c under the window's lock. It never reads
 * the dependency state inside a region: the callback `idle` tells whether a region may be forgotten.
 */
#include "window/regions_internal.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS_MIN = 256,
    LINKS_MIN = 4,
    READERS_BITS = 2      /* log2 of ACS_REGION_READERS */
};

/* -------------------------------------------------------------------------------------------------- create, destroy */

acs_status acs_regions_create(uint32_t soft_cap, acs_region_idle idle, void *user, acs_regions **regions)
{
    acs_regions *t = calloc(1, sizeof *t);
    bucket *buckets = calloc(BUCKETS_MIN, sizeof *buckets);

    if (t == NULL || buckets == NULL) {
        free(buckets);
        free(t);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a table of %u regions", soft_cap);
    }
    t->buckets = buckets;
    t->mask = BUCKETS_MIN - 1;
    t->soft_cap = soft_cap;
    t->idle = idle;
    t->user = user;
    acs_tile_set_init(&t->others);
    acs_tile_set_init(&t->only_read);
    *regions = t;
    return ACS_OK;
}

static void region_free(acs_region *region)
{
    free(region->links);
    if (region->readers != region->few)
        free(region->readers);
    free(region->commuters);
}

void acs_regions_destroy(acs_regions *regions)
{
    if (regions == NULL)
        return;
    for (uint32_t id = 1; id <= regions->high; id++)
        region_free(&slot_at(regions, id)->region);
    for (uint32_t c = 0; c < regions->chunk_count; c++)
        free(regions->chunks[c]);
    free(regions->chunks);
    free(regions->buckets);
    free(regions->found.ids);
    acs_tile_set_fini(&regions->others);
    acs_tile_set_fini(&regions->only_read);
    free(regions);
}

/* ----------------------------------------------------------------------------------------------- exact shapes: hash */

/* One branch for all fields: in the common path they are equal. */
static bool shape_equal(const acs_shape *a, const acs_shape *b)
{
    return ((a->base ^ b->base) | (a->row_bytes ^ b->row_bytes) | (a->rows ^ b->rows) | (a->pitch ^ b->pitch) |
            (uint64_t)(a->token ^ b->token)) == 0;
}

/* The region of exactly this shape; NULL: none. */
static slot *hash_find(const acs_regions *t, const acs_shape *shape, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash & t->mask; t->buckets[i].id != ACS_NO_REGION; i = (i + 1) & t->mask) {
        if (t->buckets[i].tag != (uint32_t)hash)
            continue;
        slot *s = slot_at(t, t->buckets[i].id);
        if (ACS_LIKELY(shape_equal(&s->region.shape, shape)))
            return s;
    }
    return NULL;
}

/* hash_reserve has ensured an empty bucket. */
static void hash_insert(acs_regions *t, bucket entry)
{
    uint32_t i = entry.tag & t->mask;

    ACS_ASSERT(t->count <= t->mask);
    while (t->buckets[i].id != ACS_NO_REGION)
        i = (i + 1) & t->mask;
    t->buckets[i] = entry;
}

/* Close the gap: move up each follower whose own place is not behind the gap. */
static void hash_remove(acs_regions *t, const acs_region *region)
{
    uint32_t gap = (uint32_t)region->hash & t->mask;

    ACS_ASSERT(region->in_table && region->hash == shape_hash(&region->shape));
    while (t->buckets[gap].id != region->id)
        gap = (gap + 1) & t->mask;
    for (uint32_t i = (gap + 1) & t->mask; t->buckets[i].id != ACS_NO_REGION; i = (i + 1) & t->mask) {
        uint32_t home = t->buckets[i].tag & t->mask;
        if (((i - home) & t->mask) < ((i - gap) & t->mask))
            continue;
        t->buckets[gap] = t->buckets[i];
        gap = i;
    }
    t->buckets[gap].id = ACS_NO_REGION;
}

/* Make room for one more. If memory is exhausted, probe sequences grow until three quarters are in use. */
static bool hash_reserve(acs_regions *t)
{
    uint32_t size = t->mask + 1;

    /* A sparse table saves a mispredicted second probe; in a large one its cache misses would cost more. */
    if (t->count < (size <= TUNE_REGION_BUCKETS_SPARSE ? size / 4 : size / 2))
        return true;

    bucket *old = t->buckets, *grown = calloc(size * 2, sizeof *grown);
    if (grown == NULL)
        return t->count < size / 4 * 3;
    t->buckets = grown;
    t->mask = size * 2 - 1;
    for (uint32_t i = 0; i < size; i++)
        if (old[i].id != ACS_NO_REGION)
            hash_insert(t, old[i]);
    free(old);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ slots */

/* Add a chunk of slots, which is kept until the table is destroyed. Regions never move, since callers hold pointers. */
static bool chunk_add(acs_regions *t)
{
    if (t->chunk_count == t->chunk_capacity) {
        uint32_t capacity = t->chunk_capacity ? t->chunk_capacity * 2 : 8;
        slot **chunks = realloc(t->chunks, capacity * sizeof *chunks);
        if (chunks == NULL)
            return false;
        t->chunks = chunks;
        t->chunk_capacity = capacity;
    }

    slot *chunk = aligned_alloc(2 * ACS_CACHE_LINE, CHUNK_SLOTS * sizeof *chunk);
    if (chunk == NULL)
        return false;
    memset(chunk, 0, CHUNK_SLOTS * sizeof *chunk);
    t->chunks[t->chunk_count++] = chunk;
    return true;
}

/* A free slot. It stays free until slot_take, so a failure in between has nothing to undo. */
static slot *slot_peek(acs_regions *t)
{
    if (t->free != ACS_NO_REGION)
        return slot_at(t, t->free);
    if (t->high == t->chunk_count * CHUNK_SLOTS && !chunk_add(t))
        return NULL;
    slot *s = slot_at(t, ++t->high);
    s->region.id = t->high;
    s->region.readers = s->region.few;
    s->region.readers_bits = READERS_BITS;
    s->region.next_free = ACS_NO_REGION;
    t->free = t->high;
    return s;
}

/* Make the slot of slot_peek a region without links. Regions evicted meanwhile precede it in the free list. */
static void slot_take(acs_regions *t, slot *s, const acs_shape *shape, uint64_t hash)
{
    acs_region *region = &s->region, was = *region;
    uint32_t *at = &t->free;

    ACS_ASSERT(!was.in_table && was.link_count == 0);
    while (*at != was.id)
        at = &slot_at(t, *at)->region.next_free;
    *at = was.next_free;
    *region = (acs_region){.shape = *shape, .hash = hash, .id = was.id, .links = was.links,
                           .link_capacity = was.link_capacity, .readers = was.readers, .readers_bits = was.readers_bits};
    region->in_table = true;
    t->count++;
}

/* ------------------------------------------------------------------------------------------------------------ links */

/* Make room for `count` links in all. Powers of two, so that links added one by one are seldom copied. */
static bool links_reserve(acs_regions *t, acs_region *region, uint32_t count)
{
    if (count <= region->link_capacity)
        return true;

    uint32_t capacity = acs_round_up_pow2(count < LINKS_MIN ? LINKS_MIN : count);
    acs_link *links = realloc(region->links, capacity * sizeof *links);
    if (links == NULL)
        return false;
    t->link_bytes += (capacity - region->link_capacity) * sizeof *links;
    region->links = links;
    region->link_capacity = capacity;
    return true;
}

static size_t commuters_bytes(const acs_commuters *commuters)
{
    return commuters ? sizeof *commuters + commuters->capacity * sizeof commuters->refs[0] : 0;
}

bool acs_region_more_commuters(acs_regions *regions, acs_region *region, uint32_t capacity)
{
    acs_commuters *was = region->commuters;
    acs_commuters *grown = realloc(was, sizeof *grown + capacity * sizeof grown->refs[0]);
    if (grown == NULL)
        return false;
    if (was == NULL)
        *grown = (acs_commuters){0};
    regions->link_bytes -= was ? commuters_bytes(grown) : 0;
    grown->capacity = capacity;
    regions->link_bytes += commuters_bytes(grown);
    region->commuters = grown;
    return true;
}

bool acs_region_more_readers(acs_regions *regions, acs_region *region)
{
    size_t bytes = sizeof *region->readers << region->readers_bits;
    bool inside = region->readers == region->few;
    acs_ref *readers = realloc(inside ? NULL : region->readers, 2 * bytes);
    if (readers == NULL)
        return false;
    if (inside)
        memcpy(readers, region->few, sizeof region->few);
    regions->link_bytes += inside ? 2 * bytes : bytes;
    region->readers = readers;
    region->readers_bits++;
    return true;
}

/* Link two regions; both have room. */
static void link_add(acs_region *a, acs_region *b)
{
    /* The cover flags are computed once, when the link is made; insertions only read them. */
    uint8_t covers = acs_shape_covers(&a->shape, &b->shape), covered = acs_shape_covers(&b->shape, &a->shape);

    ACS_ASSERT(a != b && acs_shape_overlap(&a->shape, &b->shape)); /* REG-1 */
    ACS_ASSERT(a->link_count < a->link_capacity && b->link_count < b->link_capacity);
    a->links[a->link_count] = (acs_link){b, b->link_count, covers, covered};
    b->links[b->link_count] = (acs_link){a, a->link_count, covered, covers};
    a->link_count++;
    b->link_count++;
}

/* Remove one end of a link: the last link takes its place, and the mirror index at its other end is updated. */
static void link_drop(acs_region *region, uint32_t index)
{
    ACS_ASSERT(index < region->link_count);
    acs_link moved = region->links[--region->link_count];

    if (index == region->link_count)
        return;
    region->links[index] = moved;
    ACS_ASSERT(moved.region->links[moved.mirror].region == region); /* REG-2 */
    moved.region->links[moved.mirror].mirror = index;
}

/* ----------------------------------------------------------------------------------------------------- search index */

/* A token is not in a search index: it overlaps only its equal, which the hash finds. */
static void index_remove(acs_regions *t, slot *s)
{
    if (!s->region.shape.token)
        acs_tile_set_remove(s->only_read ? &t->only_read : &t->others, &s->region.shape, s->region.id, s->place);
}

/* Candidates: all regions that overlap, perhaps others, some several times. */
static bool index_query(acs_regions *t, const acs_shape *shape, bool only_read)
{
    return shape->token || (acs_tile_set_query(&t->others, shape, &t->found) &&
                            (only_read || acs_tile_set_query(&t->only_read, shape, &t->found)));
}

/* Fill t->found with the regions that overlap the slot's future shape, each once, those in use first. */
static bool search(acs_regions *t, slot *of, const acs_shape *shape, bool only_read)
{
    acs_id_list *found = &t->found;
    uint32_t kept = 0;

    found->count = found->visited = t->found_live = 0;
    if (!index_query(t, shape, only_read))
        return false;
    t->visit++;
    of->visit = t->visit;
    for (uint32_t i = 0; i < found->count; i++) {
        uint32_t id = found->ids[i];
        slot *s = slot_at(t, id);
        if (s->visit == t->visit || !acs_shape_overlap(shape, &s->region.shape))
            continue;
        s->visit = t->visit;
        found->ids[kept++] = id;
        if (!t->idle(t->user, &s->region)) {
            found->ids[kept - 1] = found->ids[t->found_live];
            found->ids[t->found_live++] = id;
        }
    }
    found->count = kept;
    return true;
}

/* Search, and take the slot's place in an index and the room for its links. False: memory is exhausted; as before. */
static bool find_links(acs_regions *t, slot *s, const acs_shape *shape, bool only_read, acs_tile_place *place)
{
    if (!search(t, s, shape, only_read) || !links_reserve(t, &s->region, t->found_live))
        return false;
    for (uint32_t i = 0; i < t->found_live; i++) {
        acs_region *other = &slot_at(t, t->found.ids[i])->region;
        if (!links_reserve(t, other, other->link_count + 1))
            return false;
    }
    return shape->token || acs_tile_set_insert(only_read ? &t->only_read : &t->others, shape, s->region.id, place);
}

/* Link the slot with what was found. */
static void link_found(acs_regions *t, slot *s, bool only_read, acs_tile_place place)
{
    s->place = place;
    s->only_read = only_read;
    s->region.serves = only_read ? ACS_READ : ACS_UPDATE;
    for (uint32_t i = 0; i < t->found_live; i++)
        link_add(&s->region, &slot_at(t, t->found.ids[i])->region);
}

static void drop_links(acs_region *region)
{
    for (uint32_t i = 0; i < region->link_count; i++)
        link_drop(region->links[i].region, region->links[i].mirror);
    region->link_count = 0;
}

bool acs_region_hide(acs_regions *regions, acs_region *region, uint32_t link)
{
    acs_region *other = region->links[link].region;
    slot *s = slot_of(other);
    acs_tile_set *set = s->only_read ? &regions->only_read : &regions->others;
    if (other->shape.token)
        return false;
    bool changed;
    const bool hidden = acs_tile_set_cut(set, &s->place, &region->shape, &changed);
    if (hidden || changed)
        other->serves = 0;
    if (hidden) {
        const uint32_t mirror = region->links[link].mirror;
        link_drop(region, link);
        link_drop(other, mirror);
    }
    return hidden && !s->place.node;
}

/* --------------------------------------------------------------------------------------------------------- eviction */

/*
 * Forget a region and its links. Never allocates, so it may run while another region is made. The slot keeps a small
 * array of links for its next region, since most regions have a few.
 */
static void evict(acs_regions *t, slot *s)
{
    acs_region *region = &s->region;

    ACS_ASSERT(region->in_table && t->idle(t->user, region)); /* REG-3 */
    drop_links(region);
    if (region->link_capacity > TUNE_REGION_LINKS_FEW) {
        t->link_bytes -= region->link_capacity * sizeof *region->links;
        free(region->links);
        region->links = NULL;
        region->link_capacity = 0;
    }
    if (region->readers_bits > TUNE_REGION_READERS_LOG2) {
        t->link_bytes -= sizeof *region->readers << region->readers_bits;
        free(region->readers);
        region->readers = region->few;
        region->readers_bits = READERS_BITS;
    }
    t->link_bytes -= commuters_bytes(region->commuters);
    free(region->commuters);
    region->commuters = NULL;
    index_remove(t, s);
    hash_remove(t, region);
    region->in_table = false;
    region->serves = 0;
    region->next_free = t->free;
    t->free = region->id;
    t->count--;
}

/*
 * Evict idle regions that were not used since the clock passed them; a few steps per call, so that none is long. A search
 * that looks at many tiles, most of them idle ones, takes steps for them, too: then the next ones look at fewer.
 */
static void evict_some(acs_regions *t)
{
    const uint32_t searched = t->found.visited / TUNE_REGION_EVICTION_STEPS;
    for (uint32_t i = 0; i < searched || (i < TUNE_REGION_EVICTION_STEPS && t->count >= t->soft_cap); i++) {
        /* `high` is not 0: slot_peek came before. */
        t->hand = t->hand % t->high + 1;
        slot *s = slot_at(t, t->hand);
        if (s->region.touched)
            s->region.touched = 0;
        else if (s->region.in_table && t->idle(t->user, &s->region))
            evict(t, s);
    }
}

void acs_region_drop_idle_links(acs_regions *regions, acs_region *region)
{
    /* Backwards: an eviction moves the last link into the free place. */
    for (uint32_t i = region->link_count; i-- > 0;) {
        slot *s = slot_of(region->links[i].region);
        if (regions->idle(regions->user, &s->region))
            evict(regions, s);
    }
}

/* Visits every id ever used: not for the path of an op. */
void acs_regions_evict_idle(acs_regions *regions)
{
    for (uint32_t id = 1; id <= regions->high; id++) {
        slot *s = slot_at(regions, id);
        if (s->region.in_table && regions->idle(regions->user, &s->region))
            evict(regions, s);
    }
}

/* ---------------------------------------------------------------------------------------------------- find and make */

/* An idle region orders nothing: to forget it is cheaper than a link to it. */
static void evict_found(acs_regions *t)
{
    for (uint32_t i = t->found_live; i < t->found.count; i++)
        evict(t, slot_at(t, t->found.ids[i]));
}

/* Make a region. All steps that can fail come first and leave no trace. */
static acs_region *region_make(acs_regions *t, const acs_shape *shape, uint64_t hash, bool only_read)
{
    slot *s = slot_peek(t);
    acs_tile_place place = {0};

    if (s == NULL || !hash_reserve(t) || !find_links(t, s, shape, only_read, &place))
        return NULL;
    evict_found(t);
    evict_some(t);
    slot_take(t, s, shape, hash);
    link_found(t, s, only_read, place);
    hash_insert(t, (bucket){(uint32_t)hash, s->region.id});
    ACS_ASSERT(hash_find(t, shape, hash) == s);
    return &s->region;
}

/* Make the links of a region anew, for more than it serves; nothing of it is hidden any more. */
static acs_region *region_renew(acs_regions *t, slot *s, bool only_read)
{
    acs_tile_place place = {0};

    if (!find_links(t, s, &s->region.shape, only_read, &place))
        return NULL;
    drop_links(&s->region);
    index_remove(t, s);
    evict_found(t);
    link_found(t, s, only_read, place);
    return &s->region;
}

/* Keep the eviction clock away for one round. */
static acs_region *used(acs_region *region)
{
    if (!region->touched)
        region->touched = 1;
    return region;
}

/* Whether a region has the links that an access needs. */
static bool serves(const acs_region *region, uint8_t access)
{
    return (access & ACS_UPDATE & ~(unsigned)region->serves) == 0;
}

/* In the common path one hash lookup, without a search or an allocation. */
acs_region *acs_regions_get(acs_regions *regions, const acs_shape *shape, uint8_t access)
{
    uint64_t hash = shape_hash(shape);
    slot *s = hash_find(regions, shape, hash);

    if (ACS_UNLIKELY(s == NULL))
        return region_make(regions, shape, hash, !(access & ACS_WRITE));
    if (ACS_UNLIKELY(!serves(&s->region, access)))
        return region_renew(regions, s, s->only_read && !(access & ACS_WRITE));
    return used(&s->region);
}

/*
 * Find the region of one row, as most segments are, without building a shape or comparing fields that all rows share.
 */
static slot *run_find(const acs_regions *t, uint64_t base, uint64_t bytes)
{
    uint64_t hash = run_hash(base, bytes);

    for (uint32_t i = (uint32_t)hash & t->mask; t->buckets[i].id != ACS_NO_REGION; i = (i + 1) & t->mask) {
        if (t->buckets[i].tag != (uint32_t)hash)
            continue;
        slot *s = slot_at(t, t->buckets[i].id);
        const acs_shape *shape = &s->region.shape;
        /* In normal form one row has pitch 0, and a token has no rows. */
        if (ACS_LIKELY(((shape->base ^ base) | (shape->row_bytes ^ bytes) | (shape->rows ^ 1)) == 0))
            return s;
    }
    return NULL;
}

/* A function of its own, so that the common case needs no stack frame. */
__attribute__((noinline)) static acs_region *known_shape(acs_regions *t, const acs_segment *segment)
{
    acs_shape shape;

    if (acs_shape_of(segment, &shape) != ACS_OK)
        return NULL;
    slot *s = hash_find(t, &shape, shape_hash(&shape));
    if (s == NULL || !serves(&s->region, segment->access))
        return NULL;
    return used(&s->region);
}

/* No region was ever made for a run that is empty or wraps the address space. */
acs_region *acs_regions_known(acs_regions *regions, const acs_segment *segment)
{
    if (ACS_UNLIKELY(segment->extent != ACS_EXTENT_BYTES || segment->rows != 1))
        return known_shape(regions, segment);
    slot *s = run_find(regions, segment->base, segment->row_bytes);
    if (ACS_UNLIKELY(s == NULL || !serves(&s->region, segment->access)))
        return NULL;
    return used(&s->region);
}

/* Does not set `touched`: a look does not count as a use. */
acs_region *acs_regions_find(acs_regions *regions, const acs_shape *shape)
{
    slot *s = hash_find(regions, shape, shape_hash(shape));

    return s == NULL ? NULL : &s->region;
}

acs_region *acs_region_at(acs_regions *regions, uint32_t id)
{
    return &slot_at(regions, id)->region;
}

void acs_regions_each(acs_regions *regions, void (*visit)(void *user, acs_region *region), void *user)
{
    for (uint32_t id = 1; id <= regions->high; id++) {
        slot *s = slot_at(regions, id);
        if (s->region.in_table)
            visit(user, &s->region);
    }
}

uint32_t acs_regions_count(const acs_regions *regions)
{
    return regions->count;
}

uint64_t acs_regions_bytes(const acs_regions *regions)
{
    const acs_regions *t = regions;

    return sizeof *t + t->chunk_capacity * sizeof *t->chunks + (uint64_t)t->chunk_count * CHUNK_SLOTS * sizeof(slot) +
           (t->mask + 1ull) * sizeof *t->buckets + t->found.capacity * sizeof *t->found.ids + t->link_bytes +
           acs_tile_set_bytes(&t->others) + acs_tile_set_bytes(&t->only_read);
}
