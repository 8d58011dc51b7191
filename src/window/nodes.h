/*
 * Lists of graph nodes, as a backend names them. Used where ops become nodes of a graph that somebody else captures.
 */
#ifndef ACS_NODES_H
#define ACS_NODES_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* All zero: empty. Its owner frees it. */
typedef struct acs_nodes {
    void **list;
    uint32_t count, capacity;
} acs_nodes;

static inline void acs_nodes_fini(acs_nodes *nodes)
{
    free(nodes->list);
    *nodes = (acs_nodes){NULL, 0, 0};
}

/* Room for so many in all; false: there is no memory, and the list is as before. */
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

/* Once: a node that is in the list already stays alone. */
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
