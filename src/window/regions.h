/*
 * Regions: the address index of the window. A region is one exact shape (contiguous bytes, a tile of strided rows, or a
 * token) that ops named. Shapes recur, so the common insertion is one hash lookup; a shape not seen before is searched
 * by place (tile_grid.h) and linked with the regions that it overlaps. The dependency state inside a region belongs to
 * window/depend.c. No threads, no clock; single owner.
 *
 * REG-1  two regions in the table whose bytes overlap are linked with each other, unless one was idle when the other was
 *        made and has since been evicted.
 * REG-2  links are symmetric; `covers` at one end is `covered` at the other.
 * REG-3  a region that is not idle is never evicted.
 * acs_regions_check() tells by brute force whether REG-1 and REG-2 hold.
 */
#ifndef ACS_REGIONS_H
#define ACS_REGIONS_H

#include "base/base.h"
#include "base/tuning.h"

enum { ACS_REGION_READERS = 4, ACS_NO_REGION = 0 };

/* A reference to a window entry that goes dead by itself: valid while that entry's generation is the same. */
typedef struct acs_ref {
    uint32_t entry;
    uint32_t generation; /* 0: none */
} acs_ref;

/* Normal form: rows == 1 (contiguous: pitch 0) or rows > 1 and row_bytes < pitch. Never empty. */
typedef struct acs_shape {
    uint64_t base, row_bytes, rows, pitch;
    uint8_t token; /* nonzero: `base` is a key, no bytes */
} acs_shape;

typedef struct acs_region acs_region;

typedef struct acs_link {
    acs_region *region; /* the other end */
    uint32_t mirror;    /* index of the same link at the other end */
    uint8_t covers;     /* this region covers every byte of the other */
    uint8_t covered;    /* the other covers every byte of this one */
} acs_link;

/* By cache line: a lookup reads the first; the second is what an insertion needs of the region, and of its neighbours. */
struct acs_region {
    /* index state: window/regions.c */
    acs_shape shape;
    acs_link *links;
    uint32_t link_count;
    uint32_t link_capacity;
    uint32_t id;           /* index, from 1 */
    uint8_t touched;       /* clock bit for eviction */
    uint8_t in_table;      /* else it is free */
    /* dependency state: window/depend.c */
    acs_ref writer;        /* newest writer */
    uint64_t epoch;        /* state is void if older than the window's epoch */
    uint32_t level_read;   /* longest chain of dependent ops that ends in a reader, in a writer */
    uint32_t level_write;
    uint32_t reader_count;
    uint8_t readers_bits;  /* there is room for 1 << readers_bits readers */
    uint8_t covered;       /* `cover` is set */
    acs_ref *readers;      /* since the newest writer: `few`, or more */
    acs_ref few[ACS_REGION_READERS];
    acs_ref cover;         /* join that stands for part writers, see depend.c */
    uint64_t cover_stamp;
    uint32_t pins;         /* held by an insertion that is under way */
    acs_op poison_read;    /* a failed op that read here, directly or through the ops it made skip; 0: none */
    acs_op poison_write;   /* the same for writers; a region with either is never idle */
    /* index state again */
    uint64_t hash;
    uint32_t next_free;    /* while it is not in the table */
};

typedef struct acs_regions acs_regions;

/* Whether a region may be forgotten: asked of the owner of the dependency state. */
typedef bool (*acs_region_idle)(void *user, const acs_region *region);

/*
 * soft_cap: idle regions are evicted to stay near this count; live ones may exceed it.
 */
acs_status acs_regions_create(uint32_t soft_cap, acs_region_idle idle, void *user, acs_regions **regions);
void acs_regions_destroy(acs_regions *regions);

/*
 * Segment -> normal shape. ACS_NOT_READY: it is empty (or ACS_EXTENT_ALL); ACS_ERR_ARGUMENT through ACS_FAIL: it wraps
 * the address space, or its access or extent is not one.
 */
acs_status acs_shape_of(const acs_segment *segment, acs_shape *shape);
/* Most segments: one row that is neither empty nor wraps, with an access that there is. A normal shape as it stands. */
static inline bool acs_segment_is_run(const acs_segment *s)
{
    return s->extent == ACS_EXTENT_BYTES && s->rows == 1 && s->base + (s->row_bytes - 1) >= s->base && s->row_bytes &&
           s->access - 1u < ACS_UPDATE;
}
/* Exact overlap of bytes (or equality of tokens), any pitches. */
bool acs_shape_overlap(const acs_shape *a, const acs_shape *b);
/* Whether a's bytes include every byte of b. May answer false for a true cover of unlike pitches, never the reverse. */
bool acs_shape_covers(const acs_shape *a, const acs_shape *b);

/*
 * Find or make the region of a shape, linked as REG-1 says. NULL: memory is exhausted; the table is as before. A region
 * never moves, but one that is idle may be gone after the next call.
 */
acs_region *acs_regions_get(acs_regions *regions, const acs_shape *shape);
/* The same for a segment whose region is in the table; NULL: it is not, or the segment is empty or bad. */
acs_region *acs_regions_known(acs_regions *regions, const acs_segment *segment);
/*
 * Segments of ops that will be inserted next: where their regions may be, if these are runs, is looked up, and asked of the
 * cache. NULL: not known. By the insertion the region may be another's, or none's.
 */
typedef struct acs_expected {
    uint32_t op_count, next; /* ops, and the first that was not inserted yet */
    uint32_t count;          /* of segments */
    acs_op seq[TUNE_EXPECT_OPS];
    uint32_t first[TUNE_EXPECT_OPS + 1]; /* segment of each op; the last op may have more than are here */
    uint32_t tags[TUNE_EXPECT_SEGMENTS];
    acs_region *regions[TUNE_EXPECT_SEGMENTS];
} acs_expected;
/* Add the segments of one op; then, when all were added, fetch. */
void acs_regions_expect(const acs_regions *regions, acs_expected *expected, const acs_segment *segments, uint32_t count);
void acs_regions_fetch(acs_regions *regions, acs_expected *expected);
/* Whether it is the region of this segment, which is a run. */
static inline bool acs_region_is_run(const acs_region *region, const acs_segment *s)
{
    return region->in_table && ((region->shape.base ^ s->base) | (region->shape.row_bytes ^ s->row_bytes) |
                                (region->shape.rows ^ 1)) == 0;
}
/* Find only. */
acs_region *acs_regions_find(acs_regions *regions, const acs_shape *shape);
acs_region *acs_region_at(acs_regions *regions, uint32_t id);
/* Make room for twice as many readers. False: memory is exhausted; the region is as before. */
bool acs_region_more_readers(acs_regions *regions, acs_region *region);
/* Unlink and forget regions linked to `region` that are idle. Call it when link_count is large. */
void acs_region_drop_idle_links(acs_regions *regions, acs_region *region);
/* Forget every idle region. */
void acs_regions_evict_idle(acs_regions *regions);
/* Call `visit` for each region in the table. */
void acs_regions_each(acs_regions *regions, void (*visit)(void *user, acs_region *region), void *user);
uint32_t acs_regions_count(const acs_regions *regions);
uint64_t acs_regions_bytes(const acs_regions *regions);
/* Invariants REG-1, REG-2 by brute force, for tests. */
bool acs_regions_check(acs_regions *regions);

#endif
