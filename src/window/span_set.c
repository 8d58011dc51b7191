/*
 * Ordered spans of bytes. Owns the chunks and directories. Called by tile_grid.c for the bounding ranges of shapes. It
 * knows regions by their ids only, and decides nothing about them.
 */
#include "window/span_set.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

enum { SPAN_MERGE = ACS_SPAN_CHUNK / 4, SPAN_DIRECTORY = 4 };

bool acs_id_list_grow(acs_id_list *list)
{
    uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
    uint32_t *ids = realloc(list->ids, capacity * sizeof *ids);

    if (ids == NULL)
        return false;
    list->ids = ids;
    list->capacity = capacity;
    return true;
}

/* Leaves an empty set that may be filled again. */
void acs_span_set_fini(acs_span_set *set)
{
    for (uint32_t l = 0; l < ACS_SPAN_LEVELS; l++) {
        for (uint32_t i = 0; i < set->levels[l].count; i++)
            free(set->levels[l].entries[i].chunk);
        free(set->levels[l].entries);
    }
    memset(set, 0, sizeof *set);
}

/* ----------------------------------------------------------------------------------------------------------- search */

/* The level of a span by its length; lengths of one level differ by a factor below 16. */
static uint32_t level_of(uint64_t first, uint64_t last)
{
    return (uint32_t)(63 - __builtin_clzll((last - first) | 1)) / 4;
}

/* Compares keys as numbers of 128 bits, without a branch, which would be mispredicted for every other address. */
static bool key_less(uint64_t a_first, uint32_t a_id, uint64_t b_first, uint32_t b_id)
{
    return ((u128)a_first << 64 | a_id) < ((u128)b_first << 64 | b_id);
}

/* `n` if the condition holds, else 0; faster than a multiplication or a branch. */
static uint32_t only_if(uint32_t n, bool condition)
{
    return n & (0u - (uint32_t)condition);
}

/* The chunk in which (first, id) belongs: the last one whose key is not above it, or the first one. */
static uint32_t entry_find(const acs_span_level *level, uint64_t first, uint32_t id)
{
    /* Binary search without branches: the answer stays in [base, base + n). */
    const acs_span_entry *base = level->entries;
    uint32_t n = level->count;

    ACS_ASSERT(n > 0);
    while (n > 1) {
        uint32_t half = n / 2;
        base += only_if(half, !key_less(first, id, base[half].first, base[half].id));
        n -= half;
    }
    return (uint32_t)(base - level->entries);
}

/* Index of the chunk's first span that is not below (first, id); the number of spans if all are below. */
static uint32_t span_find(const acs_span_entry *entry, uint64_t first, uint32_t id)
{
    /* As above, but the answer may be one past the end: the last step decides. */
    const acs_span *base = entry->chunk->spans;
    uint32_t n = entry->count;

    while (n > 1) {
        uint32_t half = n / 2;
        base += only_if(half, key_less(base[half - 1].first, base[half - 1].id, first, id));
        n -= half;
    }
    return (uint32_t)(base - entry->chunk->spans) + (n == 1 && key_less(base->first, base->id, first, id));
}

/* Find the overlapping spans of a level: each starts in [first - reach, last]. */
static bool level_query(const acs_span_level *level, uint64_t first, uint64_t last, acs_id_list *found)
{
    /* Earlier spans cannot reach `first`. Later ones may still end before it, and are skipped. */
    uint64_t low = first > level->reach ? first - level->reach : 0;
    uint32_t e = entry_find(level, low, 0);
    uint32_t i = span_find(&level->entries[e], low, 0);

    for (; e < level->count; e++, i = 0) {
        const acs_span_entry *entry = &level->entries[e];
        for (; i < entry->count; i++) {
            const acs_span *span = &entry->chunk->spans[i];
            if (span->first > last)
                return true;
            if (span->last >= first && !acs_id_list_push(found, span->id))
                return false;
        }
    }
    return true;
}

/* Only levels with spans are searched; a program uses few lengths at a time. */
bool acs_span_set_query(const acs_span_set *set, uint64_t first, uint64_t last, acs_id_list *found)
{
    for (uint32_t used = set->used; used; used &= used - 1)
        if (!level_query(&set->levels[__builtin_ctz(used)], first, last, found))
            return false;
    return true;
}

/* ----------------------------------------------------------------------------------------------- insertion, removal */

/* Make room for a new chunk at directory index `at`. False: memory is exhausted, and nothing has changed. */
static bool entry_open(acs_span_set *set, acs_span_level *level, uint32_t at)
{
    acs_span_chunk *chunk = malloc(sizeof *chunk);

    if (chunk == NULL)
        return false;
    if (level->count == level->capacity) {
        uint32_t capacity = level->capacity ? level->capacity * 2 : SPAN_DIRECTORY;
        acs_span_entry *entries = realloc(level->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            free(chunk);
            return false;
        }
        set->bytes += (capacity - level->capacity) * sizeof *entries;
        level->entries = entries;
        level->capacity = capacity;
    }
    /* The chunks stay in place; only the directory moves. */
    memmove(&level->entries[at + 1], &level->entries[at], (level->count - at) * sizeof *level->entries);
    level->entries[at] = (acs_span_entry){.chunk = chunk};
    level->count++;
    set->bytes += sizeof *chunk;
    return true;
}

/* Remove a chunk that is empty, or whose spans were moved. */
static void entry_close(acs_span_set *set, acs_span_level *level, uint32_t at)
{
    free(level->entries[at].chunk);
    level->count--;
    memmove(&level->entries[at], &level->entries[at + 1], (level->count - at) * sizeof *level->entries);
    set->bytes -= sizeof(acs_span_chunk);
}

/* Move the upper half of a full chunk to a new one behind it. False: memory is exhausted, and nothing has changed. */
static bool entry_split(acs_span_set *set, acs_span_level *level, uint32_t at)
{
    if (!entry_open(set, level, at + 1))
        return false;

    acs_span_entry *low = &level->entries[at], *high = low + 1;
    high->count = low->count / 2;
    low->count -= high->count;
    memcpy(high->chunk->spans, &low->chunk->spans[low->count], high->count * sizeof(acs_span));
    high->first = high->chunk->spans[0].first;
    high->id = high->chunk->spans[0].id;
    ACS_ASSERT(low->count > 0 && high->count > 0); /* SPAN-1 */
    return true;
}

/*
 * Append the chunk behind `at` to the one at `at`, if the result is at most half full: the next insertion must not
 * split it.
 */
static void entry_merge(acs_span_set *set, acs_span_level *level, uint32_t at)
{
    if (at + 1 >= level->count)
        return;

    acs_span_entry *low = &level->entries[at], *high = low + 1;
    if (low->count + high->count > ACS_SPAN_CHUNK / 2)
        return;
    ACS_ASSERT(low->count > 0 && !key_less(high->first, high->id, low->chunk->spans[low->count - 1].first,
                                           low->chunk->spans[low->count - 1].id)); /* SPAN-2 */
    memcpy(&low->chunk->spans[low->count], high->chunk->spans, high->count * sizeof(acs_span));
    low->count += high->count;
    entry_close(set, level, at + 1);
}

/* A span below the first key goes into the first chunk, whose key is not used (SPAN-2), so keys are never lowered. */
bool acs_span_set_insert(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id)
{
    uint32_t l = level_of(first, last);
    acs_span_level *level = &set->levels[l];
    uint32_t e = 0;

    /* First find a chunk with room: the only steps that can fail. */
    if (level->count == 0) {
        if (!entry_open(set, level, 0))
            return false;
    } else {
        e = entry_find(level, first, id);
        if (level->entries[e].count == ACS_SPAN_CHUNK) {
            if (!entry_split(set, level, e))
                return false;
            e += !key_less(first, id, level->entries[e + 1].first, level->entries[e + 1].id);
        }
    }

    acs_span_entry *entry = &level->entries[e];
    uint32_t i = span_find(entry, first, id);
    acs_span *span = &entry->chunk->spans[i];
    ACS_ASSERT(first <= last && entry->count < ACS_SPAN_CHUNK);
    ACS_ASSERT(i == 0 || key_less(span[-1].first, span[-1].id, first, id));      /* SPAN-1 */
    ACS_ASSERT(i == entry->count || key_less(first, id, span->first, span->id)); /* SPAN-1 */
    ACS_ASSERT(e == 0 || !key_less(first, id, entry->first, entry->id));         /* SPAN-2 */
    memmove(span + 1, span, (entry->count - i) * sizeof *span);
    *span = (acs_span){first, last, id};
    entry->count++;
    /* Only raised here: a lower value would need a search, and a reach that is too large costs time, not results. */
    if (last - first > level->reach)
        level->reach = last - first;
    set->used |= 1u << l;
    set->count++;
    return true;
}

void acs_span_set_remove(acs_span_set *set, uint64_t first, uint64_t last, uint32_t id)
{
    uint32_t l = level_of(first, last);
    acs_span_level *level = &set->levels[l];

    if (level->count == 0)
        return;

    uint32_t e = entry_find(level, first, id);
    acs_span_entry *entry = &level->entries[e];
    uint32_t i = span_find(entry, first, id);
    acs_span *span = &entry->chunk->spans[i];
    /* SPAN-1 leaves one possible place. */
    if (i == entry->count || span->first != first || span->id != id)
        return;
    ACS_ASSERT(span->last - span->first <= level->reach); /* SPAN-3 */
    /*
     * The chunk keeps its key even if its first span goes: SPAN-2 only asks that the key is not above any of its
     * spans.
     */
    entry->count--;
    memmove(span, span + 1, (entry->count - i) * sizeof *span);
    set->count--;
    if (entry->count == 0) {
        entry_close(set, level, e);
    } else if (entry->count <= SPAN_MERGE) {
        /* Merge the next chunk into this one, then this one into the one before, where they fit. */
        entry_merge(set, level, e);
        if (e > 0)
            entry_merge(set, level, e - 1);
    }
    if (level->count == 0) {
        level->reach = 0;
        set->used &= ~(1u << l);
    }
}
