/*
 * A set of byte spans, each with a region id, that answers which spans overlap a given one. Spans may nest, overlap
 * and be equal. They lie in sorted chunks under one sorted directory, a separate one (level) per class of lengths. So
 * a few long spans do not slow down the search among short ones. Private to src/window/; one thread at a time.
 *
 * SPAN-1  the spans of a level are sorted by (first, id), across its chunks; no chunk is empty.
 * SPAN-2  a directory entry's key is above the spans of the chunks before it, and not above its own. The first entry's
 *         key is not used.
 * SPAN-3  last - first <= reach for every span of a level.
 */
#ifndef ACS_SPAN_SET_H
#define ACS_SPAN_SET_H

#include "base/base.h"

/* A list of region ids that grows on demand. The searches of this folder append to it. */
typedef struct acs_id_list {
    uint32_t *ids;
    uint32_t count, capacity;
    uint32_t visited; /* tiles that searches looked at one by one, since its owner set it to 0 */
} acs_id_list;

/* Double the capacity. False: memory is exhausted; the list is as before. */
bool acs_id_list_grow(acs_id_list *list);

static inline bool acs_id_list_push(acs_id_list *list, uint32_t id)
{
    if (ACS_UNLIKELY(list->count == list->capacity) && !acs_id_list_grow(list))
        return false;
    list->ids[list->count++] = id;
    return true;
}

enum {
    ACS_SPAN_CHUNK = 32, /* spans per chunk; an insertion moves half of them at most */
    ACS_SPAN_LEVELS = 16 /* classes of length; each spans a factor of 16 */
};

typedef struct acs_span {
    uint64_t first, last; /* inclusive, so that the last byte of the address space has a name */
    uint32_t id;
} acs_span;

typedef struct acs_span_chunk {
    acs_span spans[ACS_SPAN_CHUNK];
} acs_span_chunk;

typedef struct acs_span_entry {
    uint64_t first; /* key, with id: SPAN-2 */
    uint32_t id;
    uint32_t count; /* spans in the chunk */
    acs_span_chunk *chunk;
} acs_span_entry;

typedef struct acs_span_level {
    acs_span_entry *entries;
    uint32_t count, capacity;
    uint64_t reach; /* SPAN-3; 0 again when the level becomes empty */
} acs_span_level;

/* All zero: empty. */
typedef struct acs_span_set {
    acs_span_level levels[ACS_SPAN_LEVELS];
    uint32_t used; /* one bit per level that has spans */
    uint32_t count;
    uint64_t bytes; /* allocated memory */
} acs_span_set;

void acs_span_set_fini(acs_span_set *set);
/*
 * Add a span; the set must not have the same span with the same id. False: memory is exhausted; the set is as before.
 */
bool acs_span_set_insert(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id);
/* Remove a span, named by the values of its insertion. Does nothing if it is not in the set. Never fails. */
void acs_span_set_remove(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id);
/* Append the id of each span that overlaps [first, last], once. False: memory is exhausted; the list is incomplete. */
bool acs_span_set_query(const acs_span_set *set, uint64_t first, uint64_t last, acs_id_list *found);

#endif
