/*
 * Regions: the address index of the window. A region is one exact shape that ops named: contiguous bytes, a tile of
 * strided rows, or a token. Shapes recur, so most insertions need one hash lookup. A new shape is searched by place
 * (tile_grid.h) and linked with the regions that it overlaps. depend.c owns the dependency state inside a region. One
 * thread at a time.
 *
 * Two things keep the links few. A write hides bytes of older regions (acs_region_hide): later ops that touch these find
 * the writer's region. And regions that were only read are not linked with each other. When such a region is named for
 * more than it serves, its links are made anew.
 *
 * REG-1  a region that serves reads is linked with all that overlap it with bytes that are not hidden; but with those that
 *        were only read, only if it serves writes, too.
 * REG-2  links are symmetric; `covers` at one end is `covered` at the other.
 * REG-3  a region that is not idle is never evicted. acs_regions_check() tells by brute force whether REG-1 and REG-2
 *        hold.
 */
#ifndef ACS_REGIONS_H
#define ACS_REGIONS_H

#include "base/base.h"
#include "base/tuning.h"

enum { ACS_REGION_READERS = 4, ACS_NO_REGION = 0 };

/* A reference to a window entry. It is live while the entry has the same generation. */
typedef struct acs_ref {
    uint32_t entry;
    uint32_t generation; /* 0: the null reference */
} acs_ref;

/* Normal form: rows == 1 and pitch 0 (contiguous), or rows > 1 and row_bytes < pitch. Never empty. Lengths in bytes. */
typedef struct acs_shape {
    uint64_t base, row_bytes, rows, pitch;
    uint8_t token; /* nonzero: `base` is a key and names no bytes */
} acs_shape;

typedef struct acs_region acs_region;

/* Ops that changed a region since its newest writer by ACS_COMMUTE: see depend.c. */
typedef struct acs_commuters {
    uint32_t count, capacity;
    uint32_t level; /* longest dependency chain that ends in one of them */
    acs_ref refs[];
} acs_commuters;

typedef struct acs_link {
    acs_region *region; /* region at the other end */
    uint32_t mirror;    /* index of the same link at the other end */
    uint8_t covers;     /* this region has every byte of the other */
    uint8_t covered;    /* the other region has every byte of this one */
} acs_link;

/*
 * Ordered by cache line: a lookup reads the first; an insertion needs the second of the region and of its neighbours.
 */
struct acs_region {
    /* index state: window/regions.c */
    acs_shape shape;
    acs_link *links;
    uint32_t link_count;
    uint32_t link_capacity;
    uint32_t id;           /* from 1 */
    uint8_t touched;       /* used since the eviction clock passed */
    uint8_t in_table;      /* 0: the slot is free */
    uint8_t serves;        /* accesses that it has the links for: bits of ACS_UPDATE */
    /* dependency state: window/depend.c */
    acs_ref writer;        /* newest writer */
    uint64_t epoch;        /* window.epoch of the state below, which is void if older than the window's */
    uint32_t level_read;   /* longest dependency chain that ends in a reader, and in a writer */
    uint32_t level_write;
    uint32_t reader_count;
    uint8_t readers_bits;  /* log2 of the capacity of `readers` */
    uint8_t covered;       /* `cover` is set */
    uint8_t commuted;      /* `commuters` may have some; here, as they are in a line that few insertions need */
    acs_ref *readers;      /* since the newest writer; `few`, or an allocated array */
    acs_ref few[ACS_REGION_READERS];
    acs_ref cover;         /* join that stands for writers of parts, see collect_cover */
    uint64_t cover_stamp;
    acs_commuters *commuters; /* NULL: there were none yet */
    uint32_t pins;         /* insertions under way that use the region */
    acs_op poison_read;    /* a failed op that read here, or for which a reader was skipped; 0: none */
    acs_op poison_write;   /* the same of writers */
    acs_op poison_commute; /* the same of commuters; a region with any of them is never idle */
    /* index state again */
    uint64_t hash;
    uint32_t next_free;    /* while the region is not in the table */
};

static inline bool acs_region_poisoned(const acs_region *region)
{
    return (region->poison_read | region->poison_write | region->poison_commute) != 0;
}

typedef struct acs_regions acs_regions;

/* Whether a region may be forgotten; answered by the owner of the dependency state. */
typedef bool (*acs_region_idle)(void *user, const acs_region *region);

/*
 * soft_cap: the number of regions that eviction of idle ones aims at; regions in use may exceed it. ACS_ERR_MEMORY:
 * *regions is untouched.
 */
acs_status acs_regions_create(uint32_t soft_cap, acs_region_idle idle, void *user, acs_regions **regions);
void acs_regions_destroy(acs_regions *regions);

/*
 * Normal form of a segment. ACS_NOT_READY: it is empty, or ACS_EXTENT_ALL. ACS_ERR_ARGUMENT through ACS_FAIL: it wraps
 * the address space, or its access or extent is no valid value.
 */
acs_status acs_shape_of(const acs_segment *segment, acs_shape *shape);
/* Whether a segment is one row, valid, not empty and not ACS_WHOLE, as most are: it is its own normal form. */
static inline bool acs_segment_is_run(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && s->rows == 1 && s->base + (s->row_bytes - 1) >= s->base &&
           s->row_bytes - 1 < ACS_WHOLE - 1 && s->access - 1u < ACS_UPDATE;
}
/* Whether two shapes share a byte, or are the same token. Exact for any pitches. */
bool acs_shape_overlap(const acs_shape *a, const acs_shape *b);
/* Whether some segments touch common bytes with others, and one of them writes these, but not both by ACS_COMMUTE. */
bool acs_segments_conflict(const acs_segment *a, uint32_t a_count, const acs_segment *b, uint32_t b_count);
/* The same of two ops, by their segments alone. */
struct acs_record;
bool acs_records_conflict(const struct acs_record *a, const struct acs_record *b);
/* Whether a has every byte of b. May miss a cover between different pitches; never claims a false one. */
bool acs_shape_covers(const acs_shape *a, const acs_shape *b);

/*
 * Find or make the region of a shape, linked as REG-1 says for an access. NULL: memory is exhausted; the table is as
 * before. A region never moves, but the next call may evict an idle one.
 */
acs_region *acs_regions_get(acs_regions *regions, const acs_shape *shape, uint8_t access);
/* The region of a segment, if it is in the table and serves its access. NULL too if the segment is empty or invalid. */
acs_region *acs_regions_known(acs_regions *regions, const acs_segment *segment);
/*
 * Segments of the next ops to be inserted, and the prefetched regions that have the hashes of these segments. NULL: not
 * found. By the insertion the region may have another shape or be free.
 */
typedef struct acs_expected {
    uint32_t op_count, next; /* ops announced, and the first of them not inserted yet */
    uint32_t count;          /* segments announced */
    acs_op seq[TUNE_EXPECT_OPS];
    uint32_t first[TUNE_EXPECT_OPS + 1]; /* first segment of each op; the segments of the last op may be incomplete */
    uint32_t tags[TUNE_EXPECT_SEGMENTS];
    acs_region *regions[TUNE_EXPECT_SEGMENTS];
} acs_expected;
/* Announce the segments of one op; after the last op, fetch. */
void acs_regions_expect(const acs_regions *regions, acs_expected *expected, const acs_segment *segments, uint32_t count);
void acs_regions_fetch(acs_regions *regions, acs_expected *expected);
/* Whether the region is that of this segment, which is a run, and serves its access. */
static inline bool acs_region_is_run(const acs_region *region, const acs_segment *s)
{
    return ((region->shape.base ^ s->base) | (region->shape.row_bytes ^ s->row_bytes) | (region->shape.rows ^ 1) |
            (s->access & ACS_UPDATE & ~(unsigned)region->serves)) == 0;
}
/* Find the region of a shape; NULL: none. Does not count as a use. */
acs_region *acs_regions_find(acs_regions *regions, const acs_shape *shape);
acs_region *acs_region_at(acs_regions *regions, uint32_t id);
/* Make room for commuters: at least `capacity` in all. False: memory is exhausted; the region is as before. */
bool acs_region_more_commuters(acs_regions *regions, acs_region *region, uint32_t capacity);
/* Double the capacity of the readers. False: memory is exhausted; the region is as before. */
bool acs_region_more_readers(acs_regions *regions, acs_region *region);
/*
 * A region is written as a whole, so that its writer stands for all that touched these bytes before: hide them in the
 * neighbour of this link, which goes. True: the whole neighbour is hidden. Never fails: what cannot be hidden stays linked.
 */
bool acs_region_hide(acs_regions *regions, acs_region *region, uint32_t link);
/* Evict the idle neighbours of a region; for regions with many links. */
void acs_region_drop_idle_links(acs_regions *regions, acs_region *region);
/* Evict every idle region. */
void acs_regions_evict_idle(acs_regions *regions);
/* Call `visit` for each region in the table. */
void acs_regions_each(acs_regions *regions, void (*visit)(void *user, acs_region *region), void *user);
uint32_t acs_regions_count(const acs_regions *regions);
uint64_t acs_regions_bytes(const acs_regions *regions);
/* Whether REG-1 and REG-2 hold, by brute force. */
bool acs_regions_check(acs_regions *regions);

#endif
