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
} node;

/* A search for nodes of a list. */
typedef struct search {
    const uint32_t *list; /* newest first */
    uint32_t count;
    uint32_t next;        /* index of the node at which the walk began; sought nodes come later in the list */
    uint32_t last;        /* index of the oldest sought node */
    uint32_t shallowest;  /* least depth of the sought nodes */
    uint32_t left;        /* number of sought nodes that no walk has reached */
    uint32_t visits;      /* number of nodes that walks may still visit */
} search;

/* Make room for `wanted` elements. False: there is no memory. */
static bool grow_array(void **array, uint32_t *room, uint64_t wanted, size_t bytes)
{
    if (wanted <= *room)
        return true;
    if (wanted > UINT32_MAX / 2)
        return false;
    const uint32_t grown = acs_round_up_pow2(wanted < 64 ? 64 : (uint32_t)wanted);
    void *moved = realloc(*array, grown * bytes);
    if (!moved)
        return false;
    *array = moved;
    *room = grown;
    return true;
}

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

/* Begin a search: all nodes of the list but the first are sought. */
static search search_begin(const acs_reduction *r, const uint32_t *list, uint32_t count)
{
    search s = {.list = list, .count = count, .left = count - 1, .shallowest = UINT32_MAX,
                .visits = TUNE_REDUCTION_VISITS};
    for (uint32_t i = 1; i < count; i++)
        s.shallowest = r->nodes[list[i]].depth < s.shallowest ? r->nodes[list[i]].depth : s.shallowest;
    s.last = count - 1;
    return s;
}

/* Go on to the next node of the list that no walk has reached; earlier ones are no longer sought. */
static void search_next(const acs_reduction *r, search *s)
{
    for (s->next++; s->next < s->count && was_seen(r, s->list[s->next]); s->next++)
        continue;
    s->left -= s->next < s->count;
    while (s->last > s->next && was_seen(r, s->list[s->last]))
        s->last--;
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

/* Walk back from the current node of the list. */
static void walk(acs_reduction *r, search *s)
{
    uint32_t height = 0;
    r->stack[height++] = s->list[s->next];
    while (height && s->left && s->visits) {
        const node *at = &r->nodes[r->stack[--height]];
        s->visits--;
        for (uint32_t e = at->first; e < at->first + at->count && s->left; e++) {
            const uint32_t number = r->edges[e];
            if (number < s->list[s->last] || was_seen(r, number))
                continue;
            r->nodes[number].seen = r->walks;
            s->left -= is_sought(s, number);
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
    for (search s = search_begin(r, list, count); s.left && s.visits; search_next(r, &s))
        walk(r, &s);
    return kept_first(r, list, count);
}

/* ---------------------------------------------------------------------------------------------------------------- add */

/* Make room for one more node with `count` edges. */
static bool reserve_node(acs_reduction *r, uint32_t count)
{
    return grow_array((void **)&r->nodes, &r->node_room, (uint64_t)r->node_count + 2, sizeof *r->nodes) &&
           grow_array((void **)&r->edges, &r->edge_room, (uint64_t)r->edge_count + count, sizeof *r->edges) &&
           grow_array((void **)&r->stack, &r->stack_room, (uint64_t)r->node_count + 2, sizeof *r->stack);
}

uint32_t acs_reduction_add(acs_reduction *r, const uint32_t *behind, uint32_t count)
{
    if (!reserve_node(r, count))
        return 0;
    if (!r->node_count)
        r->nodes[r->node_count++] = (node){0};
    uint32_t depth = 0;
    for (uint32_t i = 0; i < count; i++)
        ACS_ASSERT(behind[i] != 0 && behind[i] < r->node_count);
    for (uint32_t i = 0; i < count; i++)
        depth = r->nodes[behind[i]].depth > depth ? r->nodes[behind[i]].depth : depth;
    if (count)
        memcpy(r->edges + r->edge_count, behind, count * sizeof *behind);
    r->nodes[r->node_count] = (node){.first = r->edge_count, .count = count, .depth = depth + 1};
    r->edge_count += count;
    return r->node_count++;
}
