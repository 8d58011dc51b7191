/*
 * Pieces of regions in the search index: what is left of a tile once others hide parts of it. Called by regions.c. It adds
 * and removes tiles of one grid, and never changes which region a tile is of.
 */
#include "window/tile_grid.h"

/* A part of a tile: rows [row, row_end) of it, and columns alike. */
typedef struct part {
    uint64_t row, row_end, column, column_end;
} part;

/* Where [0, length) and [at, at + other) meet; `at` is below zero if it is above 2^63. */
static bool ranges_meet(uint64_t length, uint64_t at, uint64_t other, uint64_t *from, uint64_t *end)
{
    const int64_t behind = (int64_t)(at + other);
    *from = (int64_t)at < 0 ? 0 : at;
    *end = behind < 0 ? 0 : (uint64_t)behind < length ? (uint64_t)behind : length;
    return *from < *end;
}

/* The part of a tile that a rectangle meets under one of its names (see node_meets); `turn` is -1, 0 or 1. */
static bool part_met(const acs_tile_grid *grid, const acs_tile_node *node, const acs_tile_rect *q, int turn, part *p)
{
    const uint64_t names = (uint64_t)(int64_t)turn, row = q->row - node->row + names;
    const uint64_t column = q->column - node->column - names * grid->pitch;
    return ranges_meet(node->rows, row, q->rows, &p->row, &p->row_end) &&
           ranges_meet(node->width, column, q->width, &p->column, &p->column_end);
}

typedef struct piece_list {
    uint32_t first, count;
} piece_list;

static void piece_push(acs_tile_grid *grid, piece_list *list, uint32_t node)
{
    grid->nodes[node].sibling = list->first;
    list->first = node;
    list->count++;
}

/* Add what a tile has in these rows and columns; nothing, if that is empty. False: memory is exhausted. */
static bool piece_add(acs_tile_grid *grid, const acs_tile_node *of, const part *p, piece_list *list)
{
    acs_tile_rect r = {of->row + p->row, of->column + p->column, p->row_end - p->row, p->column_end - p->column};
    if (p->row >= p->row_end || p->column >= p->column_end)
        return true;
    if (r.column >= grid->pitch) { /* its first byte is in the next row of the plane */
        r.column -= grid->pitch;
        r.row++;
    }
    const uint32_t node = acs_tile_grid_insert(grid, r, of->id);
    if (node != 0)
        piece_push(grid, list, node);
    return node != 0;
}

/* Replace a tile by what is above, below, to the left and to the right of a part. False: the list is as before. */
static bool piece_cut(acs_tile_grid *grid, uint32_t index, const part *p, piece_list *list)
{
    const acs_tile_node of = grid->nodes[index];
    const part rest[] = {{0, p->row, 0, of.width}, {p->row_end, of.rows, 0, of.width},
                         {p->row, p->row_end, 0, p->column}, {p->row, p->row_end, p->column_end, of.width}};
    const uint32_t count = list->count;
    for (int i = 0; i < 4; i++) {
        if (piece_add(grid, &of, &rest[i], list))
            continue;
        for (; list->count > count; list->count--) {
            const uint32_t node = list->first;
            list->first = grid->nodes[node].sibling;
            acs_tile_grid_remove(grid, node);
        }
        return false;
    }
    acs_tile_grid_remove(grid, index);
    return true;
}

/* Take one name of a rectangle out of the pieces from *first on. False: a piece still meets it. *changed: one was cut. */
static bool pieces_cut(acs_tile_grid *grid, uint32_t *first, const acs_tile_rect *q, int turn, bool *changed)
{
    piece_list kept = {0, 0};
    uint32_t left = 0;
    bool all = true;
    for (uint32_t node = *first; node != 0; node = grid->nodes[node].sibling)
        left++;
    for (uint32_t node = *first, next; node != 0; node = next, left--) {
        part p = {0};
        next = grid->nodes[node].sibling;
        const acs_tile_node *of = &grid->nodes[node];
        const bool meets = part_met(grid, of, q, turn, &p);
        const uint32_t made = (p.row > 0) + (p.row_end < of->rows) + (p.column > 0) + (p.column_end < of->width);
        if (meets && kept.count + left - 1 + made <= ACS_TILE_PIECES && piece_cut(grid, node, &p, &kept)) {
            *changed = true;
            continue;
        }
        all = all && !meets;
        piece_push(grid, &kept, node);
    }
    *first = kept.first;
    return all;
}

bool acs_tile_set_cut(acs_tile_set *set, acs_tile_place *place, const acs_shape *shape, bool *changed)
{
    *changed = false;
    if (place->grid == ACS_TILE_MIXED)
        return false;
    acs_tile_grid *grid = &set->grids[place->grid];
    const acs_tile_rect q = acs_tile_rect_of(grid, shape);
    bool all = true;
    if ((shape->rows > 1 && shape->pitch != grid->pitch) || shape->row_bytes >= grid->pitch)
        return false; /* no rectangle of the plane */
    for (int turn = -1; turn <= 1; turn++)
        all = pieces_cut(grid, &place->node, &q, turn, changed) && all;
    return all;
}

bool acs_tile_set_meets(const acs_tile_set *set, acs_tile_place place, const acs_shape *shape)
{
    if (place.grid == ACS_TILE_MIXED)
        return true;
    const acs_tile_grid *grid = &set->grids[place.grid];
    for (uint32_t node = place.node; node != 0; node = grid->nodes[node].sibling) {
        const acs_tile_node *n = &grid->nodes[node];
        const acs_shape piece = {.base = acs_tile_first(grid, n), .row_bytes = n->width, .rows = n->rows,
                                 .pitch = n->rows > 1 ? grid->pitch : 0};
        if (acs_shape_overlap(&piece, shape))
            return true;
    }
    return false;
}
