/*
 * The blocks of pools that are out, by address: which chunks there are, which block begins at an address, and which holds
 * it. A state machine under its owner's lock (memory.h); never touches the memory that it knows of.
 *
 * BLOCK-1  a block lies in one chunk, and begins at a multiple of ACS_ARENA_ALIGN from its start.
 * BLOCK-2  exactly the blocks that are out are in the table, and have their bit in their chunk.
 */
#ifndef ACS_POOL_BLOCKS_H
#define ACS_POOL_BLOCKS_H

#include "base/base.h"
#include "pool/arena.h"
#include "pool/places.h"

/* Addresses in which blocks may lie: memory that the device gave in one piece, or a span of pages (pages.h). */
typedef struct acs_chunk {
    uint64_t base, bytes;
    acs_places starts; /* where blocks begin, in units of ACS_ARENA_ALIGN */
} acs_chunk;

/* All zero: empty. */
typedef struct acs_blocks {
    acs_range *table;  /* by base */
    acs_chunk *chunks; /* by address */
    uint32_t chunk_count, chunk_capacity;
} acs_blocks;

/* Forget all. */
void acs_blocks_clear(acs_blocks *blocks);
/* ACS_ERR_MEMORY through ACS_FAIL: nothing changed. */
acs_status acs_blocks_add_chunk(acs_blocks *blocks, uint64_t base, uint64_t bytes);
/* No block is in it. */
void acs_blocks_remove_chunk(acs_blocks *blocks, uint64_t base);
/* The chunk that holds the address, or NULL. */
const acs_chunk *acs_blocks_chunk(const acs_blocks *blocks, uint64_t address);
/* The first chunk that begins behind the address, or NULL. */
const acs_chunk *acs_blocks_chunk_behind(const acs_blocks *blocks, uint64_t address);

/* The range is out from here on. False: no memory. */
bool acs_blocks_add(acs_blocks *blocks, acs_range *range);
void acs_blocks_remove(acs_blocks *blocks, acs_range *range);
/* The block that begins at the address; the one that holds it; NULL: none. */
acs_range *acs_blocks_at(const acs_blocks *blocks, uint64_t address);
acs_range *acs_blocks_holding(const acs_blocks *blocks, uint64_t address);
/* All of them, in the order in which they were added; NULL at the end. `range` NULL: the first. */
acs_range *acs_blocks_next(const acs_blocks *blocks, const acs_range *range);

#endif
