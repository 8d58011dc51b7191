/*
 * The shape of a graph (see graph_shape.h): list scheduling with ops that take one step each. Called by graph.c. It knows
 * neither nodes nor footprints.
 */
#include "capture/graph_shape.h"

#include "capture/reduction.h"

#include <stdlib.h>
#include <string.h>

/* What is known about an op. */
typedef struct op {
    uint32_t height;  /* ops on the longest path from it to an end, itself included */
    uint32_t waits;   /* ops that it is behind and that are not placed */
    uint32_t ready;   /* step in which it may begin */
    uint32_t finish;  /* step behind it, once it is placed */
    uint32_t number;  /* its number in the reduction, once it is placed */
} op;

typedef struct chain {
    uint32_t last;   /* its last op */
    uint32_t finish; /* step behind that */
} chain;

typedef struct work {
    const acs_graph_plan *graph;
    op *ops;
    uint32_t *next_first, *next; /* ops that follow each op, laid out like the graph's */
    uint32_t *heap, heap_count;  /* ops that may be placed */
    chain *chains;
    uint32_t chains_most;
    acs_reduction reduction;
    uint32_t *list;   /* numbers of the ops that the current one is behind */
    uint32_t *placed; /* op of each number */
    acs_graph_shape *shape;
    uint32_t edges_room;
} work;

/* ----------------------------------------------------------------------------------------------------------- ready ops */

/* Whether op a is placed before op b: it is ready sooner, or has more ops behind it, or was launched sooner. */
static bool sooner(const work *w, uint32_t a, uint32_t b)
{
    const op *x = &w->ops[a], *y = &w->ops[b];
    if (x->ready != y->ready)
        return x->ready < y->ready;
    if (x->height != y->height)
        return x->height > y->height;
    return a < b;
}

static void heap_push(work *w, uint32_t added)
{
    uint32_t at = w->heap_count++;
    for (; at && sooner(w, added, w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = added;
}

static uint32_t heap_pop(work *w)
{
    const uint32_t first = w->heap[0], moved = w->heap[--w->heap_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < w->heap_count; at = child) {
        if (child + 1 < w->heap_count && sooner(w, w->heap[child + 1], w->heap[child]))
            child++;
        if (!sooner(w, w->heap[child], moved))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = moved;
    return first;
}

/* -------------------------------------------------------------------------------------------------------------- chains */

static bool is_behind(const acs_graph_plan *graph, uint32_t number, uint32_t other)
{
    for (uint32_t e = graph->first[number]; e < graph->first[number + 1]; e++)
        if (graph->behind[e] == other)
            return true;
    return false;
}

/*
 * Choose a chain. First one whose last op this one follows, the latest of them: it then waits for no other chain's
 * signal if that op is the last to finish. Then the chain that has been without work for the shortest time. Then a new
 * chain. Then the chain that is the first to be without work.
 */
static uint32_t choose(const work *w, uint32_t placed)
{
    uint32_t follows = UINT32_MAX, idle = UINT32_MAX, first = 0;
    const uint32_t ready = w->ops[placed].ready;
    for (uint32_t c = 0; c < w->shape->chains; c++) {
        const chain *at = &w->chains[c];
        if (is_behind(w->graph, placed, at->last)) {
            if (follows == UINT32_MAX || at->finish > w->chains[follows].finish)
                follows = c;
        } else if (at->finish <= ready && (idle == UINT32_MAX || at->finish > w->chains[idle].finish)) {
            idle = c;
        }
        if (at->finish < w->chains[first].finish)
            first = c;
    }
    if (follows != UINT32_MAX)
        return follows;
    if (idle != UINT32_MAX)
        return idle;
    return w->shape->chains < w->chains_most ? w->shape->chains : first;
}

/* --------------------------------------------------------------------------------------------------------------- edges */

static bool add_edge(work *w, uint32_t from, uint32_t to)
{
    acs_graph_shape *shape = w->shape;
    if (shape->edge_count == w->edges_room) {
        const uint32_t room = w->edges_room ? 2 * w->edges_room : 256;
        acs_graph_edge *grown = realloc(shape->edges, room * sizeof *grown);
        if (!grown)
            return false;
        shape->edges = grown;
        w->edges_room = room;
    }
    shape->edges[shape->edge_count++] = (acs_graph_edge){from, to};
    return true;
}

/* Give the op its edges: those of the graph, and one to the last op of its chain; without those that others imply. */
static bool link_op(work *w, uint32_t placed, const chain *behind)
{
    const acs_graph_plan *graph = w->graph;
    uint32_t count = 0;
    for (uint32_t e = graph->first[placed]; e < graph->first[placed + 1]; e++)
        w->list[count++] = w->ops[graph->behind[e]].number;
    if (behind && !is_behind(graph, placed, behind->last))
        w->list[count++] = w->ops[behind->last].number;
    const uint32_t kept = acs_reduction_reduce(&w->reduction, w->list, count);
    for (uint32_t i = 0; i < kept; i++)
        if (!add_edge(w, w->placed[w->list[i]], placed))
            return false;
    w->ops[placed].number = acs_reduction_add(&w->reduction, w->list, kept);
    if (!w->ops[placed].number)
        return false;
    w->placed[w->ops[placed].number] = placed;
    return true;
}

static bool place(work *w, uint32_t placed)
{
    op *o = &w->ops[placed];
    const uint32_t c = choose(w, placed);
    const bool is_new = c == w->shape->chains;
    chain *on = &w->chains[c];
    if (!link_op(w, placed, is_new ? NULL : on))
        return false;
    w->shape->chains += is_new;
    const uint32_t begin = !is_new && on->finish > o->ready ? on->finish : o->ready;
    o->finish = begin + 1;
    *on = (chain){placed, o->finish};
    w->shape->levels = o->finish > w->shape->levels ? o->finish : w->shape->levels;
    for (uint32_t e = w->next_first[placed]; e < w->next_first[placed + 1]; e++) {
        op *next = &w->ops[w->next[e]];
        next->ready = o->finish > next->ready ? o->finish : next->ready;
        if (--next->waits == 0)
            heap_push(w, w->next[e]);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- the whole */

static bool reserve(work *w, const acs_graph_plan *graph, uint32_t chains)
{
    const size_t count = (size_t)graph->count + 1;
    w->chains_most = chains < graph->count ? chains : graph->count;
    w->ops = calloc(count, sizeof *w->ops);
    w->next_first = calloc(count + 1, sizeof *w->next_first);
    w->next = calloc((size_t)graph->first[graph->count] + 1, sizeof *w->next);
    w->heap = calloc(count, sizeof *w->heap);
    w->chains = calloc((size_t)w->chains_most + 1, sizeof *w->chains);
    w->list = calloc(count + 1, sizeof *w->list);
    w->placed = calloc(count + 1, sizeof *w->placed);
    return w->ops && w->next_first && w->next && w->heap && w->chains && w->list && w->placed;
}

/* Find which ops follow each op, and how long the paths from it are. */
static void look_ahead(work *w)
{
    const acs_graph_plan *g = w->graph;
    for (uint32_t e = 0; e < g->first[g->count]; e++)
        w->next_first[g->behind[e] + 2]++; /* moved by two: the loop below leaves each list's start one element before */
    for (uint32_t i = 2; i <= g->count; i++)
        w->next_first[i] += w->next_first[i - 1];
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            w->next[w->next_first[g->behind[e] + 1]++] = i;
    for (uint32_t i = g->count; i-- > 0;) {
        w->ops[i].height++;
        w->ops[i].waits = g->first[i + 1] - g->first[i];
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
            op *up = &w->ops[g->behind[e]];
            up->height = w->ops[i].height > up->height ? w->ops[i].height : up->height;
        }
    }
}

static bool place_all(work *w)
{
    look_ahead(w);
    for (uint32_t i = 0; i < w->graph->count; i++)
        if (!w->ops[i].waits)
            heap_push(w, i);
    while (w->heap_count)
        if (!place(w, heap_pop(w)))
            return false;
    return true;
}

bool acs_graph_shape_make(const acs_graph_plan *graph, uint32_t chains, acs_graph_shape *shape)
{
    work w = {.graph = graph, .shape = shape};
    *shape = (acs_graph_shape){0};
    ACS_ASSERT(chains != 0);
    const bool made = reserve(&w, graph, chains) && place_all(&w);
    free(w.ops);
    free(w.next_first);
    free(w.next);
    free(w.heap);
    free(w.chains);
    free(w.list);
    free(w.placed);
    acs_reduction_fini(&w.reduction);
    if (!made)
        acs_graph_shape_fini(shape);
    return made;
}

void acs_graph_shape_fini(acs_graph_shape *shape)
{
    free(shape->edges);
    *shape = (acs_graph_shape){0};
}
