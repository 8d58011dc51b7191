/*
 * The index of cached graphs (graph_cache.h). Called by backends that issue bundles by graphs, under a lock of theirs.
 * Never makes or destroys a graph, and never looks into one.
 *
 * Copies are in a list by use, the latest first, and in a list of their key. Completion only stores how far a slot has
 * come; whether a copy is busy is computed when it is asked for.
 */
#include "bundles/graph_cache.h"

#include "base/hash.h"
#include "base/tuning.h"

#include <utlist.h>

#include <stdlib.h>

typedef struct keyed keyed;

typedef struct copy {
    acs_graph_copy shown; /* must be first: callers hold pointers to it */
    bool taken;
    int slot;       /* slot of the latest launch, which ends at `value` */
    uint64_t value;
    uint64_t used;  /* when it was added or handed out last */
    keyed *of;
    struct copy *prev, *next;         /* list by use */
    struct copy *of_prev, *of_next;   /* list of the key, by use */
} copy;

/* A key that has copies. */
struct keyed {
    uint64_t key;
    copy *copies;
    UT_hash_handle hh;
    int hash_failed;
};

typedef struct seen {
    uint64_t key;
    uint64_t when;  /* number of the latest sighting; 0: the place is empty */
    uint32_t count;
    uint64_t since; /* time of the first of these sightings */
} seen;

struct acs_graph_cache {
    uint64_t budget, nodes;
    uint32_t count;
    uint32_t slots;
    uint64_t *completed; /* highest completed value of each slot */
    keyed *table;
    copy *by_use;
    uint64_t sightings;
    uint64_t uses;       /* the time: copies that were added or handed out */
    seen seen[TUNE_SEEN_SETS][TUNE_SEEN_WAYS];
};

/* ------------------------------------------------------------------------------------------------- life, sightings */

acs_status acs_graph_cache_create(uint64_t nodes, uint32_t slots, acs_graph_cache **cache)
{
    acs_graph_cache *k = calloc(1, sizeof *k);

    if (k)
        k->completed = calloc(slots, sizeof *k->completed);
    if (!k || !k->completed) {
        free(k);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "kept graphs: no memory for their index");
    }
    k->budget = nodes;
    k->slots = slots;
    *cache = k;
    return ACS_OK;
}

void acs_graph_cache_destroy(acs_graph_cache *cache)
{
    if (!cache)
        return;
    free(cache->completed);
    free(cache);
}

/* The place of a key in its set, or the place whose key was sighted longest ago. */
static seen *sighting_of(acs_graph_cache *cache, uint64_t key)
{
    seen *set = cache->seen[acs_hash64(key) % TUNE_SEEN_SETS], *oldest = set;

    for (uint32_t way = 0; way < TUNE_SEEN_WAYS; way++) {
        if (set[way].when && set[way].key == key)
            return &set[way];
        if (set[way].when < oldest->when)
            oldest = &set[way];
    }
    return oldest;
}

uint32_t acs_graph_cache_sight(acs_graph_cache *cache, uint64_t key)
{
    seen *place = sighting_of(cache, key);
    uint64_t now = ++cache->sightings;

    if (!place->when || place->key != key || now - place->when > TUNE_SEEN_AGE) {
        place->key = key;
        place->count = 0;
        place->since = cache->uses;
    }
    place->when = now;
    if (place->count < UINT32_MAX)
        place->count++;
    return place->count;
}

uint64_t acs_graph_cache_since(acs_graph_cache *cache, uint64_t key)
{
    const seen *place = sighting_of(cache, key);
    return place->key == key && place->count > 1 ? place->since : 0;
}

/* --------------------------------------------------------------------------------------------------------- copies */

static copy *copy_of(acs_graph_copy *shown)
{
    return (copy *)shown;
}

static keyed *find_keyed(const acs_graph_cache *cache, uint64_t key)
{
    keyed *found;

    HASH_FIND(hh, cache->table, &key, sizeof key, found);
    return found;
}

static bool is_free(const acs_graph_cache *cache, const copy *c)
{
    return !c->taken && c->value <= cache->completed[c->slot];
}

/* Put a copy at the front of both lists. */
static void list(acs_graph_cache *cache, copy *c)
{
    c->used = ++cache->uses;
    DL_PREPEND(cache->by_use, c);
    DL_PREPEND2(c->of->copies, c, of_prev, of_next);
}

static void unlist(acs_graph_cache *cache, copy *c)
{
    DL_DELETE(cache->by_use, c);
    DL_DELETE2(c->of->copies, c, of_prev, of_next);
}

/* Hand a copy out, which is then the latest used one. */
static acs_graph_copy *hand_out(acs_graph_cache *cache, copy *c)
{
    unlist(cache, c);
    list(cache, c);
    ACS_ASSERT(!c->taken); /* CACHE-1 */
    c->taken = true;
    return &c->shown;
}

acs_graph_copy *acs_graph_cache_take(acs_graph_cache *cache, uint64_t key)
{
    keyed *of = find_keyed(cache, key);

    for (copy *c = of ? of->copies : NULL; c; c = c->of_next)
        if (is_free(cache, c))
            return hand_out(cache, c);
    return NULL;
}

acs_graph_copy *acs_graph_cache_again(acs_graph_cache *cache, uint64_t key, int slot)
{
    keyed *of = find_keyed(cache, key);
    copy *found = NULL;

    for (copy *c = of ? of->copies : NULL; c; c = c->of_next)
        if (!c->taken && (slot < 0 || c->slot == slot))
            found = c;
    return found ? hand_out(cache, found) : NULL;
}

uint32_t acs_graph_copies(const acs_graph_cache *cache, uint64_t key, uint32_t *busy)
{
    const keyed *of = find_keyed(cache, key);
    uint32_t all = 0, not_free = 0;

    for (const copy *c = of ? of->copies : NULL; c; c = c->of_next) {
        all++;
        not_free += !is_free(cache, c);
    }
    if (busy)
        *busy = not_free;
    return all;
}

void acs_graph_cache_launched(acs_graph_cache *cache, acs_graph_copy *shown, int slot, uint64_t value)
{
    copy *c = copy_of(shown);

    (void)cache;
    ACS_ASSERT(c->taken && slot >= 0 && (uint32_t)slot < cache->slots); /* CACHE-1 */
    c->taken = false;
    c->slot = slot;
    c->value = value;
}

void acs_graph_cache_completed(acs_graph_cache *cache, int slot, uint64_t value)
{
    if (slot >= 0 && (uint32_t)slot < cache->slots && cache->completed[slot] < value)
        cache->completed[slot] = value;
}

/* ----------------------------------------------------------------------------------------------------- room, bounds */

/* Remove a copy, and its key if it was the last one. */
static void *forget_copy(acs_graph_cache *cache, copy *c)
{
    void *object = c->shown.object;
    keyed *of = c->of;

    ACS_ASSERT(cache->count > 0 && cache->nodes >= c->shown.nodes);
    unlist(cache, c);
    cache->nodes -= c->shown.nodes;
    cache->count--;
    if (!of->copies) {
        HASH_DEL(cache->table, of);
        free(of);
    }
    free(c);
    return object;
}

bool acs_graph_cache_has_room(const acs_graph_cache *cache, uint64_t nodes)
{
    return nodes <= cache->budget - cache->nodes;
}

/*
 * The sightings of a key that lost its last copy begin anew. Otherwise, with more shapes than room, graphs would be
 * built and evicted in turn.
 */
static void *throw_out(acs_graph_cache *cache, copy *c)
{
    uint64_t key = c->of->key;
    ACS_ASSERT(is_free(cache, c)); /* CACHE-3 */
    void *object = forget_copy(cache, c);
    seen *place = sighting_of(cache, key);

    if (place->key == key && !find_keyed(cache, key))
        place->count = 0;
    return object;
}

/*
 * The search begins with the copy used longest ago. If all copies that may go together would not make room, none is
 * evicted.
 */
void *acs_graph_cache_evict(acs_graph_cache *cache, uint64_t nodes, uint64_t before)
{
    uint64_t room = cache->budget - cache->nodes;
    copy *c, *victim = NULL;

    if (nodes <= room || nodes > cache->budget || !cache->by_use)
        return NULL;
    for (c = cache->by_use->prev; c->used <= before; c = c->prev) {
        if (is_free(cache, c)) {
            room += c->shown.nodes;
            victim = victim ? victim : c;
        }
        if (room >= nodes)
            return throw_out(cache, victim);
        if (c == cache->by_use)
            return NULL;
    }
    return NULL;
}

bool acs_graph_cache_may_fit(const acs_graph_cache *cache, uint64_t nodes, uint64_t before)
{
    return acs_graph_cache_has_room(cache, nodes) || (cache->by_use && cache->by_use->prev->used <= before);
}

/* The entry of a key, created if needed; NULL: no memory. */
static keyed *entry_of(acs_graph_cache *cache, uint64_t key)
{
    keyed *of = find_keyed(cache, key);

    if (of)
        return of;
    of = calloc(1, sizeof *of);
    if (!of)
        return NULL;
    of->key = key;
    HASH_ADD(hh, cache->table, key, sizeof of->key, of);
    if (of->hash_failed) {
        free(of);
        return NULL;
    }
    return of;
}

acs_graph_copy *acs_graph_cache_add(acs_graph_cache *cache, uint64_t key, uint32_t nodes, void *object)
{
    copy *c = acs_graph_cache_has_room(cache, nodes) ? malloc(sizeof *c) : NULL;
    keyed *of = c ? entry_of(cache, key) : NULL;

    if (!of) {
        free(c);
        return NULL;
    }
    *c = (copy){.shown = {object, key, nodes}, .taken = true, .of = of};
    list(cache, c);
    cache->nodes += nodes;
    cache->count++;
    ACS_ASSERT(cache->nodes <= cache->budget); /* CACHE-2 */
    return &c->shown;
}

void *acs_graph_cache_drop(acs_graph_cache *cache, acs_graph_copy *shown)
{
    ACS_ASSERT(copy_of(shown)->taken); /* CACHE-1 */
    return forget_copy(cache, copy_of(shown));
}

void *acs_graph_cache_drain(acs_graph_cache *cache)
{
    return cache->by_use ? forget_copy(cache, cache->by_use) : NULL;
}

uint64_t acs_graph_cache_nodes(const acs_graph_cache *cache)
{
    return cache->nodes;
}

uint32_t acs_graph_cache_count(const acs_graph_cache *cache)
{
    return cache->count;
}
