/*
 * Lists of graph nodes, as opaque pointers of a backend. Used where ops become nodes of a graph that the program
 * captures. One thread at a time.
 */
#ifndef ACS_NODES_H
#define ACS_NODES_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* All zero: empty. The owner calls acs_nodes_fini. */
typedef struct acs_nodes {
    void **list;
    uint32_t count, capacity;
} acs_nodes;

static inline void acs_nodes_fini(acs_nodes *nodes)
{
    free(nodes->list);
    *nodes = (acs_nodes){NULL, 0, 0};
}

/* Make room for `count` nodes in all. False: memory is exhausted; the list is as before. */
static inline bool acs_nodes_reserve(acs_nodes *nodes, uint32_t count)
{
    if (count <= nodes->capacity)
        return true;
    uint32_t capacity = acs_round_up_pow2(count < 8 ? 8 : count);
    void **grown = realloc(nodes->list, capacity * sizeof *grown);
    if (!grown)
        return false;
    nodes->list = grown;
    nodes->capacity = capacity;
    return true;
}

/* Add a node, unless the list has it. False: memory is exhausted; the list is as before. */
static inline bool acs_nodes_add(acs_nodes *nodes, void *node)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->list[i] == node)
            return true;
    if (!acs_nodes_reserve(nodes, nodes->count + 1))
        return false;
    nodes->list[nodes->count++] = node;
    return true;
}

static inline bool acs_nodes_set(acs_nodes *nodes, void *const *list, uint32_t count)
{
    if (!acs_nodes_reserve(nodes, count))
        return false;
    if (count)
        memcpy(nodes->list, list, count * sizeof *list);
    nodes->count = count;
    return true;
}

static inline bool acs_nodes_equal(const acs_nodes *a, const acs_nodes *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
}

#endif
