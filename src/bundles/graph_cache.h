/*
 * The index of cached graphs: for each key (acs_dag.key, or any other of the caller's) how often it was seen lately,
 * and the copies that the backend has made, each behind an opaque pointer. A state machine under the caller's lock: no
 * threads, no clock, no backend calls. Memory is taken when a copy is added only; the number of nodes of all copies is
 * bounded, and so is what is remembered of keys without copies.
 *
 * CACHE-1  a copy is free, taken (between acs_graph_cache_take or _add, and _launched), or busy: until (slot, value) of
 * its latest
 *         launch completed. An executable graph never overlaps with itself, so only free copies are given
 *         out.
 * CACHE-2  nodes of all copies <= the budget.
 * CACHE-3  only free copies are evicted, the least recently used first.
 */
#ifndef ACS_GRAPH_CACHE_H
#define ACS_GRAPH_CACHE_H

#include "base/base.h"

typedef struct acs_graph_cache acs_graph_cache;

/* A copy of a cached graph. Read by the caller, written here only. */
typedef struct acs_graph_copy acs_graph_copy;
struct acs_graph_copy {
    void *object;   /* the backend's, e.g. an executable graph with what its nodes hold */
    uint64_t key;
    uint32_t nodes;
};

/* At most `nodes` nodes are kept in all, of graphs launched in slots below `slots`. ACS_ERR_MEMORY through ACS_FAIL. */
acs_status acs_graph_cache_create(uint64_t nodes, uint32_t slots, acs_graph_cache **cache);
/* The caller has destroyed all objects (acs_graph_cache_drain). NULL: nothing. */
void acs_graph_cache_destroy(acs_graph_cache *cache);

/*
 * The key came again: how often that makes, this time included. Counts of keys that have not come for long, while many
 * others did, begin at 1 again, and so do those of keys whose last copy was evicted.
 */
uint32_t acs_graph_cache_sight(acs_graph_cache *cache, uint64_t key);

/* A free copy, now taken; of several the one used last. NULL: there is none. */
acs_graph_copy *acs_graph_cache_take(acs_graph_cache *cache, uint64_t key);
/*
 * A copy whose latest launch was in this slot and may still run, now taken, for backends that can launch it behind
 * itself; slot -1: in any slot, the longest ago. NULL: there is none.
 */
acs_graph_copy *acs_graph_cache_again(acs_graph_cache *cache, uint64_t key, int slot);
/* The copies of a key, in any state; with `busy`, how many of them are not free. */
uint32_t acs_graph_copies(const acs_graph_cache *cache, uint64_t key, uint32_t *busy);
/* A taken copy was launched as the work that ends at `value` of `slot`. */
void acs_graph_cache_launched(acs_graph_cache *cache, acs_graph_copy *copy, int slot, uint64_t value);
/*
 * A slot has completed all up to `value`, as a mark tells. What is told of ops inside a bundle does not count: a graph
 * may have more to do when its last op has ended.
 */
void acs_graph_cache_completed(acs_graph_cache *cache, int slot, uint64_t value);

/*
 * Make room for `nodes` more: gives one object after another that the caller has to destroy, NULL when there is room or
 * nothing that could go. acs_graph_cache_has_room says which.
 */
void *acs_graph_cache_evict(acs_graph_cache *cache, uint64_t nodes);
bool acs_graph_cache_has_room(const acs_graph_cache *cache, uint64_t nodes);
/* A new copy, taken. NULL: no room, or no memory; the object stays the caller's. */
acs_graph_copy *acs_graph_cache_add(acs_graph_cache *cache, uint64_t key, uint32_t nodes, void *object);
/* Forget a taken copy: its object, the caller's again. */
void *acs_graph_cache_drop(acs_graph_cache *cache, acs_graph_copy *copy);
/* Nothing runs any more, or never will: an object to destroy, in whatever state its copy is; NULL: none is left. */
void *acs_graph_cache_drain(acs_graph_cache *cache);

/* Nodes and copies kept now. */
uint64_t acs_graph_cache_nodes(const acs_graph_cache *cache);
uint32_t acs_graph_cache_count(const acs_graph_cache *cache);

#endif
