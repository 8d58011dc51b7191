/*
 * The search index of regions by place. Owns the grids of the pitches in use, and the sets of bounding ranges. Called
 * by regions.c alone. It returns candidates, which its caller tests exactly, and knows regions by their ids only.
 */
#include "window/tile_grid.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES_MIN = 64,
    BUCKET_BITS_MIN = 8,
    LEVELS_MIN = 4
};

static uint64_t last_byte(const acs_shape *s)
{
    return s->base + (s->rows - 1) * s->pitch + (s->row_bytes - 1);
}

void acs_tile_set_init(acs_tile_set *set)
{
    memset(set, 0, sizeof *set);
    /* The plane of contiguous regions has rows of 2^48 bytes: nearly all of them lie within one row. */
    set->grids[ACS_TILE_RUNS].pitch = 1ull << ACS_TILE_PITCH_BITS;
    set->grid_count = 1;
}

void acs_tile_set_fini(acs_tile_set *set)
{
    for (uint32_t i = 0; i < set->grid_count; i++) {
        free(set->grids[i].nodes);
        free(set->grids[i].buckets);
        free(set->grids[i].levels);
        acs_span_set_fini(&set->grids[i].bounds);
    }
    acs_span_set_fini(&set->mixed);
    memset(set, 0, sizeof *set);
}

uint64_t acs_tile_set_bytes(const acs_tile_set *set)
{
    uint64_t bytes = set->mixed.bytes;

    for (uint32_t i = 0; i < set->grid_count; i++) {
        const acs_tile_grid *g = &set->grids[i];
        bytes += g->node_capacity * sizeof *g->nodes + g->level_capacity * sizeof *g->levels + g->bounds.bytes;
        if (g->buckets != NULL)
            bytes += sizeof *g->buckets << g->bucket_bits;
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------------ cells and buckets */

/*
 * Cells are not stored. A bucket chains the nodes of all cells that hash to it. That is as fast while chains are
 * short, and the empty cells of a plane as large as the address space cost nothing.
 */
static uint32_t *bucket_of(const acs_tile_grid *grid, uint32_t level, uint64_t cell_row, uint64_t cell_column)
{
    uint64_t h = cell_row * 0x9e3779b97f4a7c15u + cell_column * 0xc2b2ae3d27d4eb4fu + level;

    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return &grid->buckets[h >> (64 - grid->bucket_bits)];
}

static uint32_t *bucket_of_node(const acs_tile_grid *grid, const acs_tile_node *node)
{
    const acs_tile_level *level = &grid->levels[node->level];

    return bucket_of(grid, node->level, node->row >> level->row_shift, node->column >> level->column_shift);
}

static void bucket_insert(acs_tile_grid *grid, uint32_t index)
{
    uint32_t *bucket = bucket_of_node(grid, &grid->nodes[index]);

    grid->nodes[index].next = *bucket;
    *bucket = index;
}

/* The chain has the few nodes of one cell and its collisions: a walk is cheaper than a second link. */
static void bucket_remove(acs_tile_grid *grid, uint32_t index)
{
    uint32_t *at = bucket_of_node(grid, &grid->nodes[index]);

    while (*at != index)
        at = &grid->nodes[*at].next;
    *at = grid->nodes[index].next;
}

/* Called before a node is added, so that a failure leaves nothing half done. */
static bool buckets_resize(acs_tile_grid *grid, uint32_t bits)
{
    uint32_t *buckets = calloc((size_t)1 << bits, sizeof *buckets);

    if (buckets == NULL)
        return false;
    free(grid->buckets);
    grid->buckets = buckets;
    grid->bucket_bits = bits;
    for (uint32_t i = 1; i <= grid->node_high; i++)
        if (grid->nodes[i].id != ACS_NO_REGION)
            bucket_insert(grid, i);
    return true;
}

/* ------------------------------------------------------------------------------------------------- nodes and levels */

/* Ensure a free node at grid->node_free. Nodes are named by index, since the array moves when it grows. */
static bool node_reserve(acs_tile_grid *grid)
{
    if (grid->node_free != 0)
        return true;
    if (grid->node_high + 1 >= grid->node_capacity) {
        uint32_t capacity = grid->node_capacity ? grid->node_capacity * 2 : NODES_MIN;
        acs_tile_node *nodes = realloc(grid->nodes, capacity * sizeof *nodes);
        if (nodes == NULL)
            return false;
        grid->nodes = nodes;
        grid->node_capacity = capacity;
    }
    /* Index 0 means none, so the array has one place more than nodes. */
    if (grid->buckets == NULL || (grid->node_high + 1ull) * TUNE_TILE_BUCKETS > 1ull << grid->bucket_bits)
        if (!buckets_resize(grid, grid->buckets ? grid->bucket_bits + 1 : BUCKET_BITS_MIN))
            return false;
    grid->node_free = ++grid->node_high;
    grid->nodes[grid->node_free] = (acs_tile_node){0};
    return true;
}

/* The smallest s with n <= 2^s. */
static uint8_t shift_for(uint64_t n)
{
    return n <= 1 ? 0 : (uint8_t)(64 - __builtin_clzll(n - 1));
}

/*
 * Find or make the level of tiles of this size. A program has few sizes at a time, so the levels are a short array. A
 * level without tiles is given to a new size. False: memory is exhausted.
 */
static bool level_find(acs_tile_grid *grid, uint64_t rows, uint64_t width, uint32_t *index)
{
    uint8_t row_shift = shift_for(rows), column_shift = shift_for(width);
    uint32_t unused = grid->level_count;

    for (uint32_t i = 0; i < grid->level_count; i++) {
        const acs_tile_level *level = &grid->levels[i];
        if (level->count == 0)
            unused = i;
        else if (level->row_shift == row_shift && level->column_shift == column_shift)
            return *index = i, true;
    }
    /* A new level counts no node until level_add, so a failure in between has nothing to undo. */
    if (unused == grid->level_capacity) {
        uint32_t capacity = grid->level_capacity ? grid->level_capacity * 2 : LEVELS_MIN;
        acs_tile_level *levels = realloc(grid->levels, capacity * sizeof *levels);
        if (levels == NULL)
            return false;
        grid->levels = levels;
        grid->level_capacity = capacity;
    }
    if (unused == grid->level_count)
        grid->level_count++;
    grid->levels[unused] = (acs_tile_level){.row_shift = row_shift, .column_shift = column_shift};
    *index = unused;
    return true;
}

/* Add a node to its level's list, which level_scan walks when a search would touch more cells than there are nodes. */
static void level_add(acs_tile_grid *grid, uint32_t index)
{
    acs_tile_node *node = &grid->nodes[index];
    acs_tile_level *level = &grid->levels[node->level];

    node->level_prev = 0;
    node->level_next = level->first;
    if (level->first != 0)
        grid->nodes[level->first].level_prev = index;
    level->first = index;
    const bool empty = level->count++ == 0;
    level->row_low = empty || node->row < level->row_low ? node->row : level->row_low;
    level->row_high = empty || node->row > level->row_high ? node->row : level->row_high;
    level->column_low = empty || node->column < level->column_low ? node->column : level->column_low;
    level->column_high = empty || node->column > level->column_high ? node->column : level->column_high;
}

static void level_remove(acs_tile_grid *grid, const acs_tile_node *node)
{
    acs_tile_level *level = &grid->levels[node->level];

    if (node->level_prev != 0)
        grid->nodes[node->level_prev].level_next = node->level_next;
    else
        level->first = node->level_next;
    ACS_ASSERT(level->count > 0);
    if (node->level_next != 0)
        grid->nodes[node->level_next].level_prev = node->level_prev;
    level->count--;
}

/* -------------------------------------------------------------------------------------------- insertion and removal */

/* Each insertion and removal must keep the bounds sorted, so they exist only while searches use them. */
static void bounds_drop(acs_tile_grid *grid)
{
    acs_span_set_fini(&grid->bounds);
    grid->bounded = false;
}

/* All that can fail is done before anything changes. */
uint32_t acs_tile_grid_insert(acs_tile_grid *grid, acs_tile_rect r, uint32_t id)
{
    uint32_t level;

    if (!node_reserve(grid) || !level_find(grid, r.rows, r.width, &level))
        return 0;
    /* A larger grid keeps unused bounds longer, since making them again visits each of its nodes. */
    if (grid->bounded && ++grid->bounds_unused > TUNE_TILE_BOUNDS_UNUSED + grid->count)
        bounds_drop(grid);
    const uint32_t index = grid->node_free;
    const acs_tile_node made = {r.row, r.column, r.rows, r.width, .id = id, .level = level};
    const uint64_t first = acs_tile_first(grid, &made), last = acs_tile_last(grid, &made);
    if (grid->bounded && !acs_span_set_insert(&grid->bounds, first, last, index))
        return 0;

    ACS_ASSERT((r.rows - 1) >> grid->levels[level].row_shift == 0);     /* TILE-1 */
    ACS_ASSERT((r.width - 1) >> grid->levels[level].column_shift == 0); /* TILE-1 */
    grid->node_free = grid->nodes[index].next;
    grid->nodes[index] = made;
    bucket_insert(grid, index);
    level_add(grid, index);
    /* [low, high] only grows until the grid is empty: a range that is too wide costs a search, never a result. */
    grid->wrapping += r.column + r.width > grid->pitch;
    if (grid->count == 0 || first < grid->low)
        grid->low = first;
    if (grid->count == 0 || last > grid->high)
        grid->high = last;
    grid->count++;
    ACS_ASSERT(!grid->bounded || grid->bounds.count == grid->count); /* TILE-2 */
    return index;
}

void acs_tile_grid_remove(acs_tile_grid *grid, uint32_t index)
{
    acs_tile_node *node = &grid->nodes[index];
    const uint64_t first = acs_tile_first(grid, node), last = acs_tile_last(grid, node);

    ACS_ASSERT(node->id != ACS_NO_REGION && grid->count > 0);
    ACS_ASSERT(grid->low <= first && last <= grid->high); /* TILE-3 */
    if (grid->bounded)
        acs_span_set_remove(&grid->bounds, first, last, index);
    bucket_remove(grid, index);
    level_remove(grid, node);
    grid->wrapping -= node->column + node->width > grid->pitch;
    node->id = ACS_NO_REGION;
    node->next = grid->node_free;
    grid->node_free = index;
    grid->count--;
    ACS_ASSERT(!grid->bounded || grid->bounds.count == grid->count); /* TILE-2 */
}

/* The grid of a shape's pitch, or an empty one; ACS_TILE_MIXED: none. */
static uint32_t grid_for(acs_tile_set *set, const acs_shape *shape)
{
    uint64_t pitch = shape->pitch;
    uint32_t empty = set->grid_count;

    if ((pitch | shape->row_bytes) >> ACS_TILE_PITCH_BITS)
        return ACS_TILE_MIXED;
    if (shape->rows == 1)
        return ACS_TILE_RUNS;
    for (uint32_t i = ACS_TILE_RUNS + 1; i < set->grid_count; i++) {
        if (set->grids[i].count == 0)
            empty = i;
        else if (set->grids[i].pitch == pitch)
            return i;
    }
    /* No grid is left: the shared set of bounding ranges takes shapes of any pitch. */
    if (empty == ACS_TILE_GRIDS)
        return ACS_TILE_MIXED;
    /* An empty grid takes a new pitch: no node was placed by the old one. */
    if (empty == set->grid_count)
        set->grid_count++;
    set->grids[empty].pitch = pitch;
    return empty;
}

bool acs_tile_set_insert(acs_tile_set *set, const acs_shape *shape, uint32_t id, acs_tile_place *place)
{
    uint32_t grid = grid_for(set, shape), node = 0;

    if (grid == ACS_TILE_MIXED) {
        if (!acs_span_set_insert(&set->mixed, shape->base, last_byte(shape), id))
            return false;
    } else {
        node = acs_tile_grid_insert(&set->grids[grid], acs_tile_rect_of(&set->grids[grid], shape), id);
        if (node == 0)
            return false;
    }
    *place = (acs_tile_place){grid, node};
    return true;
}

void acs_tile_set_remove(acs_tile_set *set, const acs_shape *shape, uint32_t id, acs_tile_place place)
{
    if (place.grid == ACS_TILE_MIXED) {
        acs_span_set_remove(&set->mixed, shape->base, last_byte(shape), id);
        return;
    }
    acs_tile_grid *grid = &set->grids[place.grid];
    for (uint32_t node = place.node, next; node != 0; node = next) {
        ACS_ASSERT(grid->nodes[node].id == id);
        next = grid->nodes[node].sibling;
        acs_tile_grid_remove(grid, node);
    }
}

/* ----------------------------------------------------------------------------------------------------------- search */

/*
 * One address has three names in the plane around a rectangle. They are (row, column), (row - 1, column + pitch) and
 * (row + 1, column - pitch). `turn` 0 to 2 selects a tile's name: (row - turn + 1, column + (turn - 1) * pitch).
 */
static bool node_meets(const acs_tile_grid *grid, const acs_tile_node *a, const acs_tile_rect *q, uint64_t turn)
{
    uint64_t row = q->row + turn, column = q->column + grid->pitch, at = a->column + turn * grid->pitch;

    return a->row + 1 < row + q->rows && row < a->row + 1 + a->rows && at < column + q->width && column < at + a->width;
}

/* The first bytes that tiles of a level can have if they meet the rectangle: rows [row, row_end), columns alike. */
typedef struct window {
    uint64_t row, row_end, column, column_end;
} window;

static bool window_of(const acs_tile_grid *grid, const acs_tile_level *level, const acs_tile_rect *q, uint64_t turn,
                      window *w)
{
    uint64_t cell_rows = 1ull << level->row_shift, cell_columns = 1ull << level->column_shift;
    /* Columns are counted from one pitch (turn 1), two (0) or none (2) to the left, to stay above zero. */
    uint64_t left = turn * grid->pitch, column = q->column + grid->pitch + 1, end = column + q->width - 1;

    w->row = q->row + turn > cell_rows ? q->row + turn - cell_rows : 0;
    w->row_end = q->row + q->rows + turn - 1;
    w->column = column > left + cell_columns ? column - cell_columns - left : 0;
    w->column_end = end > left ? end - left : 0;
    if (w->row < level->row_low)
        w->row = level->row_low;
    if (w->row_end > level->row_high + 1)
        w->row_end = level->row_high + 1;
    if (w->column < level->column_low)
        w->column = level->column_low;
    if (w->column_end > level->column_high + 1)
        w->column_end = level->column_high + 1;
    return w->row < w->row_end && w->column < w->column_end;
}

/* Append the tiles of one cell that meet the rectangle. */
static bool cell_query(const acs_tile_grid *grid, uint32_t level, uint64_t cell_row, uint64_t cell_column,
                       const acs_tile_rect *q, uint64_t turn, acs_id_list *found)
{
    const acs_tile_level *l = &grid->levels[level];

    for (uint32_t i = *bucket_of(grid, level, cell_row, cell_column); i != 0; i = grid->nodes[i].next) {
        const acs_tile_node *node = &grid->nodes[i];
        /* Other cells may share the bucket: only nodes of this cell, so that no cell is seen twice. */
        bool here = node->level == level && node->row >> l->row_shift == cell_row &&
                    node->column >> l->column_shift == cell_column;
        if (here && node_meets(grid, node, q, turn) && !acs_id_list_push(found, node->id))
            return false;
    }
    return true;
}

/* The turns [*first, *end) that a search needs: 0 finds tiles that wrap, 2 those that a wrapping rectangle meets below. */
static void turns_of(const acs_tile_grid *grid, const acs_tile_rect *q, uint64_t *first, uint64_t *end)
{
    *first = grid->wrapping ? 0 : 1;
    *end = q->column + q->width > grid->pitch ? 3 : 2;
}

/* Append all tiles of a level that meet the rectangle; for rectangles that touch more cells than there are tiles. */
static bool level_scan(const acs_tile_grid *grid, const acs_tile_level *level, const acs_tile_rect *q, acs_id_list *found)
{
    uint64_t first, end;
    turns_of(grid, q, &first, &end);
    found->visited += level->count;
    for (uint32_t i = level->first; i != 0; i = grid->nodes[i].level_next) {
        const acs_tile_node *node = &grid->nodes[i];
        bool meets = false; /* under any of its names: it is appended once */
        for (uint64_t turn = first; turn < end && !meets; turn++)
            meets = node_meets(grid, node, q, turn);
        if (meets && !acs_id_list_push(found, node->id))
            return false;
    }
    return true;
}

/* Whether no tile of the level is so near that it meets the rectangle under its own name; cheaper than window_of. */
static bool is_apart(const acs_tile_level *level, const acs_tile_rect *q)
{
    return q->row + q->rows <= level->row_low || q->row > level->row_high + ((1ull << level->row_shift) - 1) ||
           q->column + q->width <= level->column_low ||
           q->column > level->column_high + ((1ull << level->column_shift) - 1);
}

/* Append the tiles of one level that meet the rectangle, cell by cell. */
static bool level_query(const acs_tile_grid *grid, uint32_t index, const acs_tile_rect *q, acs_id_list *found)
{
    const acs_tile_level *level = &grid->levels[index];
    uint64_t turn, turns;
    window w;

    turns_of(grid, q, &turn, &turns);
    if (turn == 1 && turns == 2 && is_apart(level, q))
        return true;
    for (; turn < turns; turn++) {
        if (!window_of(grid, level, q, turn, &w))
            continue;

        uint64_t row_end = (w.row_end - 1) >> level->row_shift, column_end = (w.column_end - 1) >> level->column_shift;
        uint64_t row = w.row >> level->row_shift, first = w.column >> level->column_shift;
        uint64_t rows = row_end - row + 1, columns = column_end - first + 1;
        if (rows > level->count || columns > level->count || rows * columns > level->count)
            return level_scan(grid, level, q, found);
        for (; row <= row_end; row++)
            for (uint64_t column = first; column <= column_end; column++)
                if (!cell_query(grid, index, row, column, q, turn, found))
                    return false;
    }
    return true;
}

static bool grid_query(const acs_tile_grid *grid, const acs_tile_rect *q, acs_id_list *found)
{
    for (uint32_t i = 0; i < grid->level_count; i++)
        if (grid->levels[i].count > 0 && !level_query(grid, i, q, found))
            return false;
    return true;
}

/* Make the bounding ranges of a grid. False: memory is exhausted. */
static bool bounds_build(acs_tile_grid *grid)
{
    for (uint32_t i = 1; i <= grid->node_high; i++) {
        const acs_tile_node *n = &grid->nodes[i];
        if (n->id == ACS_NO_REGION)
            continue;
        if (!acs_span_set_insert(&grid->bounds, acs_tile_first(grid, n), acs_tile_last(grid, n), i)) {
            bounds_drop(grid);
            return false;
        }
    }
    grid->bounded = true;
    ACS_ASSERT(grid->bounds.count == grid->count); /* TILE-2 */
    return true;
}

static bool bounds_query(acs_tile_grid *grid, uint64_t first, uint64_t last, acs_id_list *found)
{
    if (!grid->bounded && !bounds_build(grid))
        return false;
    /* A search keeps the bounds for another while. */
    grid->bounds_unused = 0;
    const uint32_t from = found->count;
    const bool complete = acs_span_set_query(&grid->bounds, first, last, found);
    for (uint32_t i = from; i < found->count; i++)
        found->ids[i] = grid->nodes[found->ids[i]].id;
    return complete;
}

/*
 * Contiguous regions that overlap [first, last]. They have any length: a long range among many short regions touches
 * thousands of cells, most of them empty. The ordered bounds name only regions that overlap.
 */
static bool runs_query(acs_tile_grid *grid, uint64_t first, uint64_t last, acs_id_list *found)
{
    acs_tile_rect q = {first / grid->pitch, first % grid->pitch, 1, last - first + 1};
    uint64_t cells = 0;

    /* A rectangle must be narrower than a row of the plane; see node_meets. */
    if (last - first >= grid->pitch - 1)
        return bounds_query(grid, first, last, found);
    for (uint32_t i = 0; i < grid->level_count; i++) {
        const acs_tile_level *level = &grid->levels[i];
        /* An estimate: the range may begin and end inside a cell. */
        uint64_t touched = (q.width >> level->column_shift) + 2;
        cells += touched < level->count ? touched : level->count;
    }
    if (cells > (grid->bounded ? TUNE_TILE_CELLS_BOUNDED : TUNE_TILE_CELLS_MOST))
        return bounds_query(grid, first, last, found);
    return grid_query(grid, &q, found);
}

/* Tiles of the grid that may overlap a shape. */
static bool tiles_query(acs_tile_grid *grid, const acs_shape *shape, acs_id_list *found)
{
    /* A run of bytes shorter than a row is a tile of one row in any plane. */
    if (shape->pitch == grid->pitch || (shape->rows == 1 && shape->row_bytes < grid->pitch)) {
        acs_tile_rect q = acs_tile_rect_of(grid, shape);
        return grid_query(grid, &q, found);
    }
    return bounds_query(grid, shape->base, last_byte(shape), found);
}

bool acs_tile_set_query(acs_tile_set *set, const acs_shape *shape, acs_id_list *found)
{
    uint64_t first = shape->base, last = last_byte(shape);

    for (uint32_t i = 0; i < set->grid_count; i++) {
        acs_tile_grid *grid = &set->grids[i];
        /* Most pitches belong to matrices elsewhere in memory. */
        if (grid->count == 0 || last < grid->low || first > grid->high)
            continue;
        if (!(i == ACS_TILE_RUNS ? runs_query(grid, first, last, found) : tiles_query(grid, shape, found)))
            return false;
    }
    return acs_span_set_query(&set->mixed, first, last, found);
}
