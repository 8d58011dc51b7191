/*
 * The shape of a graph (see graph_shape.h): parts by union-find, chains for each part, then list scheduling. Called by
 * graph_end.c. It knows neither nodes nor footprints.
 */
#include "capture/graph_shape.h"

#include "base/tuning.h"
#include "capture/reduction.h"

#include <stdlib.h>

/* What is known about an op. */
typedef struct op {
    uint32_t height;  /* steps of the longest path from it to an end, its own included */
    uint32_t waits;   /* ops that it is behind and that are not placed */
    uint32_t ready;   /* step in which it may begin */
    uint32_t finish;  /* step behind it, once it is placed */
    uint32_t level;   /* ops on the longest path to it, itself included, once it is placed */
    uint32_t number;  /* its number in the reduction, once it is placed */
    uint32_t part;    /* while parts are found: an op of the same part; then the part's number */
} op;

/* Ops that edges connect, and the chains that they share with no other part, or with other parts as a whole. */
typedef struct part {
    uint64_t steps;            /* of all its ops */
    uint32_t ops, levels;      /* how many they are, and how many are on the longest path */
    uint32_t first_chain, chains;
} part;

typedef struct chain {
    uint32_t last;   /* its last op */
    uint32_t finish; /* step behind that; 0: it has none */
} chain;

typedef struct work {
    const acs_graph_plan *graph;
    op *ops;
    uint32_t *next_first, *next; /* ops that follow each op, laid out like the graph's */
    uint32_t *heap, heap_count;  /* ops that may be placed */
    chain *chains;
    uint64_t *load; /* steps that each chain has, where parts share them */
    part *parts, **largest;
    uint32_t part_count;
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

/* When the op could begin on the chain. */
static uint32_t begin_on(const work *w, uint32_t placed, const chain *on)
{
    return on->finish > w->ops[placed].ready ? on->finish : w->ops[placed].ready;
}

/*
 * Choose the chain of the op's part on which it can begin first. Among equals first a chain whose last op it follows, then
 * the chain that has been without work for the shortest time: other chains stay free for ops that are ready later.
 */
static chain *choose(const work *w, uint32_t placed)
{
    const part *of = &w->parts[w->ops[placed].part];
    chain *best = &w->chains[of->first_chain];
    bool best_follows = best->finish && is_behind(w->graph, placed, best->last);
    for (chain *at = best + 1; at < &w->chains[of->first_chain + of->chains]; at++) {
        const bool follows = at->finish && is_behind(w->graph, placed, at->last);
        const uint32_t begin = begin_on(w, placed, at), least = begin_on(w, placed, best);
        if (begin < least || (begin == least && (follows > best_follows ||
                                                 (follows == best_follows && at->finish > best->finish)))) {
            best = at;
            best_follows = follows;
        }
    }
    return best;
}

/* --------------------------------------------------------------------------------------------------------------- edges */

static bool add_edge(work *w, uint32_t from, uint32_t to)
{
    acs_graph_shape *shape = w->shape;
    if (!ACS_GROW(shape->edges, w->edges_room, shape->edge_count + 1))
        return false;
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
    w->ops[placed].level = 1;
    for (uint32_t i = 0; i < kept; i++) {
        const uint32_t from = w->placed[w->list[i]], level = w->ops[from].level + 1;
        w->ops[placed].level = level > w->ops[placed].level ? level : w->ops[placed].level;
        if (!add_edge(w, from, placed))
            return false;
    }
    w->ops[placed].number = acs_reduction_add(&w->reduction, w->list, kept);
    if (!w->ops[placed].number)
        return false;
    w->placed[w->ops[placed].number] = placed;
    return true;
}

static bool place(work *w, uint32_t placed)
{
    op *o = &w->ops[placed];
    chain *on = choose(w, placed);
    if (!link_op(w, placed, on->finish ? on : NULL))
        return false;
    w->shape->chains += !on->finish;
    o->finish = begin_on(w, placed, on) + w->graph->steps[placed];
    *on = (chain){placed, o->finish};
    w->shape->steps = o->finish > w->shape->steps ? o->finish : w->shape->steps;
    w->shape->levels = o->level > w->shape->levels ? o->level : w->shape->levels;
    for (uint32_t e = w->next_first[placed]; e < w->next_first[placed + 1]; e++) {
        op *next = &w->ops[w->next[e]];
        next->ready = o->finish > next->ready ? o->finish : next->ready;
        if (--next->waits == 0)
            heap_push(w, w->next[e]);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- the whole */

static bool reserve(work *w, uint32_t chains)
{
    const size_t count = (size_t)w->graph->count + 1;
    w->ops = calloc(count, sizeof *w->ops);
    w->next_first = calloc(count + 1, sizeof *w->next_first);
    w->next = calloc((size_t)w->graph->first[w->graph->count] + 1, sizeof *w->next);
    w->heap = calloc(count, sizeof *w->heap);
    w->chains = calloc((size_t)chains + 1, sizeof *w->chains);
    w->load = calloc((size_t)chains + 1, sizeof *w->load);
    w->parts = calloc(count, sizeof *w->parts);
    w->largest = calloc(count, sizeof *w->largest);
    w->list = calloc(count + 1, sizeof *w->list);
    w->placed = calloc(count + 1, sizeof *w->placed);
    return w->ops && w->next_first && w->next && w->heap && w->chains && w->load && w->parts && w->largest && w->list &&
           w->placed;
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
        w->ops[i].height += g->steps[i];
        w->ops[i].waits = g->first[i + 1] - g->first[i];
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
            op *up = &w->ops[g->behind[e]];
            up->height = w->ops[i].height > up->height ? w->ops[i].height : up->height;
        }
    }
}

/* An op that stands for the part of this one. */
static uint32_t part_of(work *w, uint32_t at)
{
    while (w->ops[at].part != at)
        at = w->ops[at].part = w->ops[w->ops[at].part].part;
    return at;
}

/* Find the parts, and number them by their first ops, which stand for them. */
static void find_parts(work *w)
{
    const acs_graph_plan *g = w->graph;
    for (uint32_t i = 0; i < g->count; i++) {
        w->ops[i].part = i;
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
            const uint32_t a = part_of(w, g->behind[e]), b = part_of(w, i);
            w->ops[a > b ? a : b].part = a > b ? b : a;
        }
    }
    for (uint32_t i = 0; i < g->count; i++)
        w->ops[i].part = part_of(w, i);
    for (uint32_t i = 0; i < g->count; i++) {
        op *first = &w->ops[w->ops[i].part];
        if (first == &w->ops[i])
            first->number = w->part_count++;
        w->ops[i].part = first->number;
    }
}

/* Find how much there is to do in each part. */
static void measure_parts(work *w)
{
    const acs_graph_plan *g = w->graph;
    for (uint32_t i = 0; i < g->count; i++) {
        part *of = &w->parts[w->ops[i].part];
        uint32_t level = 0;
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            level = w->ops[g->behind[e]].level > level ? w->ops[g->behind[e]].level : level;
        w->ops[i].level = level + 1; /* until it is placed: without the edges that chains add */
        of->steps += g->steps[i];
        of->ops++;
        of->levels = level + 1 > of->levels ? level + 1 : of->levels;
    }
}

static int most_steps_first(const void *a, const void *b)
{
    const part *x = *(const part *const *)a, *y = *(const part *const *)b;
    if (x->steps != y->steps)
        return x->steps < y->steps ? 1 : -1;
    return x < y ? -1 : x > y;
}

/*
 * There are more parts than chains: each part goes, as a whole, to the chain that has the least to do, the largest first
 * (Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
 */
static void share_few(work *w, uint32_t chains)
{
    for (uint32_t p = 0; p < w->part_count; p++)
        w->largest[p] = &w->parts[p];
    qsort(w->largest, w->part_count, sizeof *w->largest, most_steps_first);
    for (uint32_t p = 0; p < w->part_count; p++) {
        uint32_t to = 0;
        for (uint32_t c = 1; c < chains; c++)
            to = w->load[c] < w->load[to] ? c : to;
        w->largest[p]->first_chain = to;
        w->largest[p]->chains = 1;
        w->load[to] += w->largest[p]->steps;
    }
}

/* Whether one more chain is of more use to part a than to part b, by the ops that each has in a level for one chain. */
static bool wants_more(const part *a, const part *b)
{
    if ((uint64_t)a->chains * a->levels >= (uint64_t)TUNE_GRAPH_PART_CHAINS * a->ops)
        return false;
    return !b || (uint64_t)a->ops * b->levels * b->chains > (uint64_t)b->ops * a->levels * a->chains;
}

/* Each part has chains of its own; those that are left go one by one to the part with the most ops in a level for each. */
static void share_many(work *w, uint32_t chains)
{
    for (uint32_t p = 0; p < w->part_count; p++)
        w->parts[p].chains = 1;
    for (uint32_t left = chains - w->part_count; left; left--) {
        part *best = NULL;
        for (uint32_t p = 0; p < w->part_count; p++)
            if (wants_more(&w->parts[p], best))
                best = &w->parts[p];
        if (!best)
            break;
        best->chains++;
    }
    for (uint32_t p = 1; p < w->part_count; p++)
        w->parts[p].first_chain = w->parts[p - 1].first_chain + w->parts[p - 1].chains;
}

static bool place_all(work *w, uint32_t chains)
{
    look_ahead(w);
    find_parts(w);
    measure_parts(w);
    if (w->part_count > chains)
        share_few(w, chains);
    else
        share_many(w, chains);
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
    chains = chains < graph->count ? chains : graph->count;
    const bool made = reserve(&w, chains) && place_all(&w, chains);
    free(w.ops);
    free(w.next_first);
    free(w.next);
    free(w.heap);
    free(w.chains);
    free(w.load);
    free(w.parts);
    free(w.largest);
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
