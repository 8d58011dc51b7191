/*
 * A hash table from graph nodes to numbers (see node_map.h). Called by graph.c and section_shape.c. It knows nothing of
 * nodes but their addresses.
 */
#include "capture/node_map.h"

#include "base/hash.h"

#include <stdlib.h>

typedef struct acs_node_map_entry {
    void *node;
    uint32_t number;
    bool hash_failed;
    UT_hash_handle hh;
} entry;

void acs_node_map_fini(acs_node_map *map)
{
    entry *at, *next;
    HASH_ITER(hh, map->entries, at, next) {
        HASH_DEL(map->entries, at);
        free(at);
    }
}

bool acs_node_map_get(const acs_node_map *map, void *node, uint32_t *number)
{
    entry *found;
    HASH_FIND_PTR(map->entries, &node, found);
    if (found)
        *number = found->number;
    return found != NULL;
}

bool acs_node_map_put(acs_node_map *map, void *node, uint32_t number)
{
    entry *added = calloc(1, sizeof *added);
    if (!added)
        return false;
    added->node = node;
    added->number = number;
    HASH_ADD_PTR(map->entries, node, added);
    if (!added->hash_failed)
        return true;
    free(added);
    return false;
}
