/*
 * An index of blocks by address (see blocks.h): a hash table for the starts of blocks, and for other addresses a set of
 * all starts in each chunk. Called by memory_blocks.c for each block that is taken, freed or looked up.
 */
#include "pool/blocks.h"

#include <stdlib.h>
#include <string.h>

void acs_blocks_clear(acs_blocks *b)
{
    HASH_CLEAR(hh, b->table);
    for (uint32_t i = 0; i < b->chunk_count; i++)
        acs_places_fini(&b->chunks[i].starts);
    free(b->chunks);
    *b = (acs_blocks){0};
}

/* ------------------------------------------------------------------------------------------------------------ chunks */

/* The number of chunks that begin at the address or below it. */
static uint32_t chunks_up_to(const acs_blocks *b, uint64_t address)
{
    uint32_t from = 0, to = b->chunk_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (b->chunks[middle].base <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

acs_chunk *acs_blocks_chunk(const acs_blocks *b, uint64_t address)
{
    uint32_t count = chunks_up_to(b, address);
    acs_chunk *chunk = count ? &b->chunks[count - 1] : NULL;
    return chunk && address - chunk->base < chunk->bytes ? chunk : NULL;
}

const acs_chunk *acs_blocks_chunk_behind(const acs_blocks *b, uint64_t address)
{
    uint32_t count = chunks_up_to(b, address);
    return count < b->chunk_count ? &b->chunks[count] : NULL;
}

acs_status acs_blocks_add_chunk(acs_blocks *b, uint64_t base, uint64_t bytes)
{
    acs_places starts = {.depth = 0};
    if (!ACS_GROW(b->chunks, b->chunk_capacity, b->chunk_count + 1) ||
        !acs_places_init(&starts, bytes / ACS_ARENA_ALIGN))
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of chunks");
    uint32_t at = chunks_up_to(b, base);
    ACS_ASSERT(at == 0 || b->chunks[at - 1].base + b->chunks[at - 1].bytes <= base);
    memmove(&b->chunks[at + 1], &b->chunks[at], (b->chunk_count++ - at) * sizeof *b->chunks);
    b->chunks[at] = (acs_chunk){base, bytes, starts};
    return ACS_OK;
}

void acs_blocks_remove_chunk(acs_blocks *b, uint64_t base)
{
    uint32_t at = chunks_up_to(b, base) - 1;
    ACS_ASSERT(at < b->chunk_count && b->chunks[at].base == base);
    acs_places_fini(&b->chunks[at].starts);
    memmove(&b->chunks[at], &b->chunks[at + 1], (--b->chunk_count - at) * sizeof *b->chunks);
}

/* ------------------------------------------------------------------------------------------------------------ blocks */

static uint64_t place_in(const acs_chunk *chunk, uint64_t address)
{
    return (address - chunk->base) / ACS_ARENA_ALIGN;
}

bool acs_blocks_add(acs_blocks *b, acs_range *range)
{
    range->hash_failed = 0;
    HASH_ADD(hh, b->table, base, sizeof range->base, range);
    if (range->hash_failed)
        return false;
    acs_chunk *chunk = acs_blocks_chunk(b, range->base);
    ACS_ASSERT(chunk && range->base - chunk->base + range->bytes <= chunk->bytes); /* BLOCK-1 */
    ACS_ASSERT((range->base - chunk->base) % ACS_ARENA_ALIGN == 0);                /* BLOCK-1 */
    acs_places_add(&chunk->starts, place_in(chunk, range->base));
    return true;
}

void acs_blocks_remove(acs_blocks *b, acs_range *range)
{
    HASH_DELETE(hh, b->table, range);
    acs_chunk *chunk = acs_blocks_chunk(b, range->base);
    acs_places_remove(&chunk->starts, place_in(chunk, range->base));
}

acs_range *acs_blocks_at(const acs_blocks *b, uint64_t address)
{
    acs_range *range;
    HASH_FIND(hh, b->table, &address, sizeof address, range);
    return range;
}

/* Most addresses that are looked up are starts of blocks, so the hash table is asked first. */
acs_range *acs_blocks_holding(const acs_blocks *b, uint64_t address)
{
    uint64_t place;
    acs_range *range = acs_blocks_at(b, address);
    const acs_chunk *chunk = range ? NULL : acs_blocks_chunk(b, address);
    if (!chunk)
        return range;
    if (!acs_places_up_to(&chunk->starts, place_in(chunk, address), &place))
        return NULL;
    range = acs_blocks_at(b, chunk->base + place * ACS_ARENA_ALIGN);
    return address - range->base < range->bytes ? range : NULL;
}

acs_range *acs_blocks_next(const acs_blocks *b, const acs_range *range)
{
    return range ? range->hh.next : b->table;
}
