/*
 * Ordered spans of bytes, each with the id of a region: which spans overlap a given one? Spans may nest, overlap and be
 * equal. Flat: sorted chunks under one sorted directory, apart for each class of lengths, so that a few long spans do
 * not make the search among short ones slow. Private to src/window/; single owner.
 *
 * SPAN-1  the spans of a level are sorted by (first, id), across its chunks; no chunk is empty.
 * SPAN-2  a directory entry's key is above the spans of the chunks before it and not above its own; the first one's is
 *         not used.
 * SPAN-3  last - first <= reach for every span of a level.
 */
#ifndef ACS_SPAN_SET_H
#define ACS_SPAN_SET_H

#include "base/base.h"

/* A list of region ids that grows on demand; the searches of this directory append to it. */
typedef struct acs_id_list {
    uint32_t *ids;
    uint32_t count, capacity;
} acs_id_list;

/* False: memory is exhausted, the list is as before. */
bool acs_id_list_grow(acs_id_list *list);

static inline bool acs_id_list_push(acs_id_list *list, uint32_t id)
{
    if (ACS_UNLIKELY(list->count == list->capacity) && !acs_id_list_grow(list))
        return false;
    list->ids[list->count++] = id;
    return true;
}

enum {
    ACS_SPAN_CHUNK = 32, /* spans in a chunk: an insertion moves half of them at most */
    ACS_SPAN_LEVELS = 16 /* classes of length, each 16 times the one before */
};

typedef struct acs_span {
    uint64_t first, last; /* both inclusive, so that the last byte of the address space can be named */
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
    uint64_t reach; /* SPAN-3; falls back to 0 when the level becomes empty */
} acs_span_level;

/* All zero: empty. */
typedef struct acs_span_set {
    acs_span_level levels[ACS_SPAN_LEVELS];
    uint32_t used; /* bit per level that has spans */
    uint32_t count;
    uint64_t bytes; /* allocated */
} acs_span_set;

void acs_span_set_fini(acs_span_set *set);
/* False: memory is exhausted; the set is as before. A pair of span and id must not be in the set twice. */
bool acs_span_set_insert(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id);
/* The same three values as given to the insertion; does nothing if they are not there. Never fails. */
void acs_span_set_remove(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id);
/* Append the id of each span that overlaps [first, last], once. False: memory is exhausted, the list is partial. */
bool acs_span_set_query(const acs_span_set *set, uint64_t first, uint64_t last, acs_id_list *found);

#endif
