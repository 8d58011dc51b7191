/*
 * Private to the table of regions (regions.c, regions_check.c, insert.c): its layout, and the hash of exact shapes.
 */
#ifndef ACS_REGIONS_INTERNAL_H
#define ACS_REGIONS_INTERNAL_H

#include "window/regions.h"
#include "window/tile_grid.h"

enum {
    CHUNK_BITS = 8,
    CHUNK_SLOTS = 1 << CHUNK_BITS /* slots per allocation; slots never move */
};

/* A region with the state of the search. Whole cache lines; the shape is in the first. */
typedef struct acs_region_slot {
    _Alignas(2 * ACS_CACHE_LINE) acs_region region; /* CPUs fetch lines in pairs */
    acs_tile_place place;     /* place in the search index; unused for a token */
    bool only_read;       /* the index is that of `only_read`, not of `others` */
    uint32_t visit;       /* `visit` of the last search that met it */
} slot;

/* The low half of the hash beside the id: a lookup of an unknown shape reads no region. */
typedef struct bucket {
    uint32_t tag;
    uint32_t id; /* ACS_NO_REGION: the bucket is empty */
} bucket;

struct acs_regions {
    slot **chunks;
    uint32_t chunk_count, chunk_capacity;
    uint32_t high;  /* ids 1 to high have been used */
    uint32_t free;  /* first free id up to `high`; a list through next_free */
    uint32_t count; /* regions in the table */
    uint32_t soft_cap;
    uint32_t hand;  /* id that the eviction clock looked at last */
    uint32_t visit; /* number of the current search */
    bucket *buckets; /* linear probing; at most half in use (a quarter while the table is small), if memory allows */
    uint32_t mask;
    acs_tile_set others, only_read; /* search indexes of the regions that have bytes, by whether they were only read */
    acs_id_list found;   /* result of the current search: overlapping regions, those in use first */
    uint32_t found_live;
    uint64_t link_bytes; /* bytes of links, and of readers outside of their regions */
    acs_region_idle idle;
    void *user;
};

/* Ids count from 1; 0 is ACS_NO_REGION. */
static inline slot *slot_at(const acs_regions *t, uint32_t id)
{
    ACS_ASSERT(id != ACS_NO_REGION && id <= t->high);
    return &t->chunks[(id - 1) >> CHUNK_BITS][(id - 1) & (CHUNK_SLOTS - 1)];
}

static inline slot *slot_of(acs_region *region)
{
    return (slot *)region; /* its first member */
}

static inline uint64_t shape_hash(const acs_shape *s)
{
    /* The products are independent of each other; the last step brings high bits down to where the mask takes them. */
    uint64_t h = s->base * 0x9e3779b97f4a7c15u + s->row_bytes * 0xd6e8feb86659fd93u + s->rows * 0xc2b2ae3d27d4eb4fu +
                 s->pitch * 0x165667b19e3779f9u + s->token;

    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* The hash of one row, as most segments are, without building a shape. */
static inline uint64_t run_hash(uint64_t base, uint64_t bytes)
{
    return shape_hash(&(acs_shape){.base = base, .row_bytes = bytes, .rows = 1});
}

#endif
