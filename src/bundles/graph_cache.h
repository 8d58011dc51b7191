/*
 * The index of cached graphs. A key is acs_dag.key, or another of the caller's. The index knows how often each key was
 * seen lately, and the copies that the backend has made, each behind an opaque pointer. A state machine under the
 * caller's lock: no threads, no clock, no backend calls. It allocates only when a copy is added. The number of nodes
 * of all copies is bounded, and so is the memory for keys without copies.
 *
 * CACHE-1  a copy is free, taken (between acs_graph_cache_take or _add, and _launched), or busy: until (slot, value)
 *          of its latest launch completed. An executable graph never overlaps with itself, so acs_graph_cache_take
 *          gives out free copies only.
 * CACHE-2  nodes of all copies <= the budget.
 * CACHE-3  only free copies are evicted, the least recently used first.
 */
#ifndef ACS_GRAPH_CACHE_H
#define ACS_GRAPH_CACHE_H

#include "base/base.h"

typedef struct acs_graph_cache acs_graph_cache;

/* A copy of a cached graph. The caller reads it; only the cache writes it. */
typedef struct acs_graph_copy acs_graph_copy;
struct acs_graph_copy {
    void *object;   /* object of the backend, such as an executable graph with the contents of its nodes */
    uint64_t key;
    uint32_t nodes;
};

/* `nodes`: most nodes of all copies. `slots`: slots that graphs are launched in. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_graph_cache_create(uint64_t nodes, uint32_t slots, acs_graph_cache **cache);
/* The caller has destroyed all objects (acs_graph_cache_drain). NULL is allowed. */
void acs_graph_cache_destroy(acs_graph_cache *cache);

/*
 * Count a sighting of the key. @return its sightings, this one included. Counting begins at 1 again if the key has not
 * come for long while many others did, or if its last copy was evicted.
 */
uint32_t acs_graph_cache_sight(acs_graph_cache *cache, uint64_t key);

/*
 * The time of the key's first sighting; 0: it came once, or not at all. For a graph that comes again and again no graph goes
 * that was used since. Else, with more of them than room, each would go before it comes again.
 */
uint64_t acs_graph_cache_since(acs_graph_cache *cache, uint64_t key);

/* Take the free copy that was used last. NULL: there is none. */
acs_graph_copy *acs_graph_cache_take(acs_graph_cache *cache, uint64_t key);
/*
 * Take a copy that may still run, for backends that can launch a graph behind itself: one launched last in `slot`.
 * Slot -1: in any slot, the one used longest ago. NULL: there is none.
 */
acs_graph_copy *acs_graph_cache_again(acs_graph_cache *cache, uint64_t key, int slot);
/* The number of copies of a key, in any state. `busy`, if not NULL: how many of them are not free. */
uint32_t acs_graph_copies(const acs_graph_cache *cache, uint64_t key, uint32_t *busy);
/* Give a taken copy back: it was launched, and its launch ends at `value` of `slot`. */
void acs_graph_cache_launched(acs_graph_cache *cache, acs_graph_copy *copy, int slot, uint64_t value);
/*
 * A slot has completed all ops up to `value`, as a mark tells. Progress reported from inside a bundle does not count,
 * since a graph may have more to do after its last op.
 */
void acs_graph_cache_completed(acs_graph_cache *cache, int slot, uint64_t value);

/*
 * Make room for `nodes` more. Copies that were used after the time `before` stay; UINT64_MAX: any may go. @return an
 * object that the caller has to destroy before it calls again. NULL: there is room, or nothing can be evicted;
 * acs_graph_cache_has_room tells which. acs_graph_cache_may_fit: false: there is no room, and nothing may go.
 */
void *acs_graph_cache_evict(acs_graph_cache *cache, uint64_t nodes, uint64_t before);
bool acs_graph_cache_may_fit(const acs_graph_cache *cache, uint64_t nodes, uint64_t before);
bool acs_graph_cache_has_room(const acs_graph_cache *cache, uint64_t nodes);
/* Add a copy, in the state taken. NULL: no room, or no memory; the object stays the caller's. */
acs_graph_copy *acs_graph_cache_add(acs_graph_cache *cache, uint64_t key, uint32_t nodes, void *object);
/* Remove a taken copy. @return its object, which is the caller's again. */
void *acs_graph_cache_drop(acs_graph_cache *cache, acs_graph_copy *copy);
/* Remove any copy, when no graph runs any more. @return its object, to be destroyed; NULL: none is left. */
void *acs_graph_cache_drain(acs_graph_cache *cache);

/* Nodes and copies in the cache now. */
uint64_t acs_graph_cache_nodes(const acs_graph_cache *cache);
uint32_t acs_graph_cache_count(const acs_graph_cache *cache);

#endif
