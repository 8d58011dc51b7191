/*
 * The transitive reduction of a growing graph (see reduction.h). Called by capture_order.c, under the lock of the
 * order's owner. Never looks at an op.
 */
#include "capture/reduction.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

typedef struct acs_reduction_node {
    uint32_t first, count; /* its edges to older nodes */
    uint32_t depth;        /* most nodes on a path to it, itself included */
    uint32_t seen;         /* number of the latest reduction whose walk came here */
    uint32_t base;         /* it is behind all nodes with lower numbers than this */
    bool followed;         /* a node has an edge to it */
} node;

/* A search for nodes of a list. */
typedef struct search {
    const uint32_t *list; /* newest first */
    uint32_t count;
    uint32_t next;        /* index of the node at which the walk began; sought nodes come later in the list */
    uint32_t last;        /* index of the oldest sought node */
    uint32_t shallowest;  /* least depth of the sought nodes */
    uint32_t left;        /* number of sought nodes that no walk has reached */
} search;

void acs_reduction_fini(acs_reduction *reduction)
{
    free(reduction->nodes);
    free(reduction->edges);
    free(reduction->stack);
    *reduction = (acs_reduction){0};
}

/* -------------------------------------------------------------------------------------------------------------- walks */

static int newest_first(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : -(x > y);
}

static bool was_seen(const acs_reduction *r, uint32_t number)
{
    return r->nodes[number].seen == r->walks;
}

/* Oldest nodes that were reached are no longer sought. */
static void drop_last(const acs_reduction *r, search *s)
{
    while (s->last > s->next && was_seen(r, s->list[s->last]))
        s->last--;
}

/* Begin a search: all nodes of the list but the first are sought that no other one is known to be behind. */
static search search_begin(const acs_reduction *r, const uint32_t *list, uint32_t count)
{
    search s = {.list = list, .count = count, .last = count - 1, .shallowest = UINT32_MAX};
    uint32_t base = 0;
    for (uint32_t i = 0; i < count; i++)
        base = r->nodes[list[i]].base > base ? r->nodes[list[i]].base : base;
    for (uint32_t i = count; i-- > 1;) {
        node *at = &r->nodes[list[i]];
        if (list[i] < base) {
            at->seen = r->walks;
            continue;
        }
        s.left++;
        s.shallowest = at->depth < s.shallowest ? at->depth : s.shallowest;
    }
    drop_last(r, &s);
    return s;
}

/* Go on to the next node of the list that no walk has reached; earlier ones are no longer sought. */
static void search_next(const acs_reduction *r, search *s)
{
    for (s->next++; s->next < s->count && was_seen(r, s->list[s->next]); s->next++)
        continue;
    s->left -= s->next < s->count;
    drop_last(r, s);
}

static bool is_sought(const search *s, uint32_t number)
{
    return bsearch(&number, s->list + s->next + 1, s->count - s->next - 1, sizeof number, newest_first) != NULL;
}

/* Whether a path may lead from the node to a sought one. */
static bool may_lead(const acs_reduction *r, const search *s, uint32_t number)
{
    return number > s->list[s->last] && r->nodes[number].depth > s->shallowest;
}

/* Whether walks may go on: all together take a bounded number of steps for each reduction. */
static bool may_step(const acs_reduction *r)
{
    return r->steps < (uint64_t)r->walks * TUNE_REDUCTION_STEPS;
}

/* Walk back from the current node of the list. */
static void walk(acs_reduction *r, search *s)
{
    uint32_t height = 0;
    r->stack[height++] = s->list[s->next];
    while (height && s->left && may_step(r)) {
        const node *at = &r->nodes[r->stack[--height]];
        for (uint32_t e = at->first; e < at->first + at->count && s->left; e++) {
            const uint32_t number = r->edges[e];
            r->steps++;
            if (number < s->list[s->last] || was_seen(r, number))
                continue;
            r->nodes[number].seen = r->walks;
            if (is_sought(s, number)) {
                s->left--;
                drop_last(r, s);
            }
            ACS_ASSERT(number < r->node_count && height < r->stack_room);
            if (may_lead(r, s, number))
                r->stack[height++] = number;
        }
    }
}

static uint32_t kept_first(const acs_reduction *r, uint32_t *list, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = list[i];
        if (was_seen(r, number))
            continue;
        memmove(list + kept + 1, list + kept, (i - kept) * sizeof *list);
        list[kept++] = number;
    }
    return kept;
}

uint32_t acs_reduction_reduce(acs_reduction *r, uint32_t *list, uint32_t count)
{
    if (count < 2)
        return count;
    qsort(list, count, sizeof *list, newest_first);
    r->walks++;
    for (search s = search_begin(r, list, count); s.left && may_step(r); search_next(r, &s))
        walk(r, &s);
    return kept_first(r, list, count);
}

/* ---------------------------------------------------------------------------------------------------------------- add */

/* Make the new node come behind one: what is known of that holds for it, too. */
static void come_behind(acs_reduction *r, node *new, uint32_t number)
{
    node *up = &r->nodes[number];
    const uint32_t base = up->base == number ? number + 1 : up->base;
    new->depth = up->depth >= new->depth ? up->depth + 1 : new->depth;
    new->base = base > new->base ? base : new->base;
    r->ends -= !up->followed;
    up->followed = true;
}

uint32_t acs_reduction_add(acs_reduction *r, const uint32_t *behind, uint32_t count)
{
    if (!ACS_GROW(r->nodes, r->node_room, (uint64_t)r->node_count + 2) ||
        !ACS_GROW(r->edges, r->edge_room, (uint64_t)r->edge_count + count) ||
        !ACS_GROW(r->stack, r->stack_room, (uint64_t)r->node_count + 2))
        return 0;
    if (!r->node_count)
        r->nodes[r->node_count++] = (node){0};
    node *new = &r->nodes[r->node_count];
    *new = (node){.first = r->edge_count, .count = count, .depth = 1};
    for (uint32_t i = 0; i < count; i++) {
        ACS_ASSERT(behind[i] != 0 && behind[i] < r->node_count);
        come_behind(r, new, behind[i]);
    }
    if (!r->ends) /* whatever there is leads to a node that this one is behind */
        new->base = r->node_count;
    r->ends++;
    if (count)
        memcpy(r->edges + r->edge_count, behind, count * sizeof *behind);
    r->edge_count += count;
    return r->node_count++;
}
