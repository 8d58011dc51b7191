/*
 * A hash table from graph nodes to numbers: which op a node belongs to. Used by graph.c and section_shape.c. One thread at
 * a time.
 */
#ifndef ACS_NODE_MAP_H
#define ACS_NODE_MAP_H

#include "base/base.h"

/* All zero: empty. The owner calls acs_node_map_fini. */
typedef struct acs_node_map {
    struct acs_node_map_entry *entries;
} acs_node_map;

void acs_node_map_fini(acs_node_map *map);
/* Whether the map has the node; then *number is its number. */
bool acs_node_map_get(const acs_node_map *map, void *node, uint32_t *number);
/* Give a node that the map does not have its number. False: no memory; the map is as before. */
bool acs_node_map_put(acs_node_map *map, void *node, uint32_t number);

#endif
