/*
 * The search index of regions by place: candidates that may overlap a given shape. All tiles of one pitch lie in a
 * plane (row = address / pitch, column = address % pitch), in a hash of cells. Each size class of tiles (level) has
 * its own cells, at least as large as its tiles. A tile is in the cell of its first byte. So a search for tiles of the
 * same pitch visits a few cells, however many tiles there are. Contiguous regions are tiles of one row in a plane of
 * their own.
 *
 * A shape that does not fit the plane, or touches many of its cells, searches an ordered set of bounding ranges
 * instead. A plane keeps that set only while searches use it. Private to src/window/; one thread at a time.
 *
 * A region may be in several pieces: what acs_tile_set_cut left of its shape. Each piece is a tile of its own.
 *
 * TILE-1  a tile's level has cells of 2^row_shift by 2^column_shift, at least the tile's rows and width.
 * TILE-2  the bounds of a grid, while `bounded`, hold the bounding range of each of its tiles.
 * TILE-3  every tile of a grid lies within [low, high], and the first byte of every tile of a level within its rows and
 *         columns.
 */
#ifndef ACS_TILE_GRID_H
#define ACS_TILE_GRID_H

#include "window/regions.h"
#include "window/span_set.h"

enum {
    ACS_TILE_RUNS = 0,             /* the grid of contiguous regions */
    ACS_TILE_GRIDS = 32, /* that one, and grids of one pitch each; tiles of further pitches share a set of ranges */
    ACS_TILE_MIXED = ACS_TILE_GRIDS, /* value of acs_tile_place.grid for that set */
    ACS_TILE_PITCH_BITS = 48,      /* longer pitches and runs go to that set, so that sums of columns cannot wrap */
    ACS_TILE_PIECES = 2            /* most pieces of a region */
};

/* The place of a region; the caller keeps it for the removal. */
typedef struct acs_tile_place {
    uint32_t grid;
    uint32_t node; /* of its first piece; 0: nothing is left of it */
} acs_tile_place;

/* A rectangle of the plane; `column + width` may exceed the pitch. */
typedef struct acs_tile_rect {
    uint64_t row, column, rows, width;
} acs_tile_rect;

typedef struct acs_tile_node {
    uint64_t row, column; /* of the first byte */
    uint64_t rows, width;
    uint32_t id;          /* the region's; 0: the node is free */
    uint32_t level;
    uint32_t next;        /* in the bucket, or among the free nodes */
    uint32_t sibling;     /* next piece of the same region */
    uint32_t level_next, level_prev;
} acs_tile_node;

typedef struct acs_tile_level {
    uint8_t row_shift, column_shift;
    uint32_t count; /* nodes; 0: the level may be given to another size */
    uint32_t first; /* head of the list of its nodes */
    uint64_t row_low, row_high, column_low, column_high; /* of first bytes, inclusive; they grow until the level is empty */
} acs_tile_level;

typedef struct acs_tile_grid {
    uint64_t pitch; /* bytes; 0: the grid was never used */
    uint64_t low, high;
    uint32_t count;
    uint32_t wrapping;    /* tiles that extend past the end of a row of the plane */
    acs_tile_node *nodes; /* index 0 is not used */
    uint32_t node_high, node_capacity, node_free;
    uint32_t *buckets;
    uint32_t bucket_bits;
    acs_tile_level *levels;
    uint32_t level_count, level_capacity;
    bool bounded;
    uint32_t bounds_unused; /* insertions since the last search that used the bounds */
    acs_span_set bounds;    /* of nodes */
} acs_tile_grid;

typedef struct acs_tile_set {
    acs_tile_grid grids[ACS_TILE_GRIDS];
    uint32_t grid_count;
    acs_span_set mixed;
} acs_tile_set;

void acs_tile_set_init(acs_tile_set *set);
void acs_tile_set_fini(acs_tile_set *set);
/* Add a shape that has bytes. False: memory is exhausted; the set holds the same regions as before. */
bool acs_tile_set_insert(acs_tile_set *set, const acs_shape *shape, uint32_t id, acs_tile_place *place);
void acs_tile_set_remove(acs_tile_set *set, const acs_shape *shape, uint32_t id, acs_tile_place place);
/* tile_cut.c */
/*
 * Take the bytes of a shape out of a region's pieces. False: some piece still meets the shape, since memory is exhausted,
 * there would be too many pieces, or they have another pitch. *changed: bytes were taken out all the same.
 */
bool acs_tile_set_cut(acs_tile_set *set, acs_tile_place *place, const acs_shape *shape, bool *changed);
/* Whether a piece of the region meets the shape. */
bool acs_tile_set_meets(const acs_tile_set *set, acs_tile_place place, const acs_shape *shape);

/* tile_grid.c again */
/*
 * Append the ids of regions that may overlap the shape: all that do, some that do not, some twice. False: memory is
 * exhausted; the list is incomplete.
 */
bool acs_tile_set_query(acs_tile_set *set, const acs_shape *shape, acs_id_list *found);
uint64_t acs_tile_set_bytes(const acs_tile_set *set);

/* For tile_cut.c: */
/* The place of a shape in the plane of a grid. */
static inline acs_tile_rect acs_tile_rect_of(const acs_tile_grid *grid, const acs_shape *s)
{
    return (acs_tile_rect){s->base / grid->pitch, s->base % grid->pitch, s->rows, s->row_bytes};
}
/* The first and the last byte of a tile. */
static inline uint64_t acs_tile_first(const acs_tile_grid *grid, const acs_tile_node *n)
{
    return n->row * grid->pitch + n->column;
}
static inline uint64_t acs_tile_last(const acs_tile_grid *grid, const acs_tile_node *n)
{
    return acs_tile_first(grid, n) + (n->rows - 1) * grid->pitch + n->width - 1;
}
/* Add a tile. Returns its node; 0: memory is exhausted. */
uint32_t acs_tile_grid_insert(acs_tile_grid *grid, acs_tile_rect r, uint32_t id);
/* Remove it. Never fails and frees no memory: the next tile takes the node. */
void acs_tile_grid_remove(acs_tile_grid *grid, uint32_t node);

#endif
