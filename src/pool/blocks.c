/*
 * An index of blocks by address (see blocks.h): a hash table for who knows where a block begins, and for those who do not a
 * bit for each possible beginning, in a table of chunks. Called by memory.c for each block that is taken or given back.
 */
#include "pool/blocks.h"

#include <stdlib.h>
#include <string.h>

void acs_blocks_clear(acs_blocks *b)
{
    HASH_CLEAR(hh, b->table);
    for (uint32_t i = 0; i < b->chunk_count; i++)
        free(b->chunks[i].starts);
    free(b->chunks);
    *b = (acs_blocks){0};
}

/* ------------------------------------------------------------------------------------------------------------ chunks */

/* How many chunks begin at the address or below it. */
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

static acs_chunk *chunk_of(const acs_blocks *b, uint64_t address)
{
    uint32_t count = chunks_up_to(b, address);
    acs_chunk *chunk = count ? &b->chunks[count - 1] : NULL;
    return chunk && address - chunk->base < chunk->bytes ? chunk : NULL;
}

const acs_chunk *acs_blocks_chunk(const acs_blocks *b, uint64_t address)
{
    return chunk_of(b, address);
}

static bool chunks_fit(acs_blocks *b)
{
    if (b->chunk_count < b->chunk_capacity)
        return true;
    uint32_t capacity = b->chunk_capacity ? 2 * b->chunk_capacity : 64;
    acs_chunk *grown = realloc(b->chunks, capacity * sizeof *grown);
    if (!grown)
        return false;
    b->chunks = grown;
    b->chunk_capacity = capacity;
    return true;
}

acs_status acs_blocks_add_chunk(acs_blocks *b, uint64_t base, uint64_t bytes)
{
    uint64_t *starts = calloc((size_t)(bytes / ACS_ARENA_ALIGN / 64 + 1), sizeof *starts);
    if (!starts || !chunks_fit(b)) {
        free(starts);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the table of chunks");
    }
    uint32_t at = chunks_up_to(b, base);
    memmove(&b->chunks[at + 1], &b->chunks[at], (b->chunk_count++ - at) * sizeof *b->chunks);
    b->chunks[at] = (acs_chunk){base, bytes, starts};
    return ACS_OK;
}

void acs_blocks_remove_chunk(acs_blocks *b, uint64_t base)
{
    uint32_t at = chunks_up_to(b, base) - 1;
    free(b->chunks[at].starts);
    memmove(&b->chunks[at], &b->chunks[at + 1], (--b->chunk_count - at) * sizeof *b->chunks);
}

/* ------------------------------------------------------------------------------------------------------------ blocks */

static void flip_start(const acs_blocks *b, const acs_range *range)
{
    const acs_chunk *chunk = chunk_of(b, range->base);
    uint64_t place = (range->base - chunk->base) / ACS_ARENA_ALIGN;
    chunk->starts[place / 64] ^= UINT64_C(1) << place % 64;
}

bool acs_blocks_add(acs_blocks *b, acs_range *range)
{
    range->hash_failed = 0;
    HASH_ADD(hh, b->table, base, sizeof range->base, range);
    if (range->hash_failed)
        return false;
    flip_start(b, range);
    return true;
}

void acs_blocks_remove(acs_blocks *b, acs_range *range)
{
    HASH_DELETE(hh, b->table, range);
    flip_start(b, range);
}

acs_range *acs_blocks_at(const acs_blocks *b, uint64_t address)
{
    acs_range *range;
    HASH_FIND(hh, b->table, &address, sizeof address, range);
    return range;
}

/* Of most addresses a block begins there; a chunk of one block's own is looked at next, since its beginning may be far. */
acs_range *acs_blocks_holding(const acs_blocks *b, uint64_t address)
{
    acs_range *range = acs_blocks_at(b, address);
    const acs_chunk *chunk = range ? NULL : chunk_of(b, address);
    if (!chunk)
        return range;
    range = acs_blocks_at(b, chunk->base);
    if (range && address - range->base < range->bytes)
        return range;
    uint64_t place = (address - chunk->base) / ACS_ARENA_ALIGN, word = place / 64;
    uint64_t bits = chunk->starts[word] & UINT64_MAX >> (63 - place % 64);
    while (!bits && word > 0)
        bits = chunk->starts[--word];
    if (!bits)
        return NULL;
    range = acs_blocks_at(b, chunk->base + (word * 64 + 63 - (uint64_t)__builtin_clzll(bits)) * ACS_ARENA_ALIGN);
    return address - range->base < range->bytes ? range : NULL;
}

acs_range *acs_blocks_next(const acs_blocks *b, const acs_range *range)
{
    return range ? range->hh.next : b->table;
}
