/*
 * The blocks that pools have handed out, by address: which chunks there are, which block begins at an address, and which
 * one holds it. A state machine under its owner's lock (memory.h). Never touches the memory of blocks.
 *
 * BLOCK-1  a block lies in one chunk, and begins at a multiple of ACS_ARENA_ALIGN from its start.
 * BLOCK-2  exactly the blocks that are out are in the table, and have their bit in their chunk.
 */
#ifndef ACS_POOL_BLOCKS_H
#define ACS_POOL_BLOCKS_H

#include "base/base.h"
#include "pool/arena.h"
#include "pool/places.h"

/* A range of addresses in which blocks may lie: one allocation of the device, or a span of pages (pages.h). */
typedef struct acs_chunk {
    uint64_t base, bytes;
    acs_places starts; /* starts of blocks, in units of ACS_ARENA_ALIGN from `base` */
} acs_chunk;

/* Empty when all zero. */
typedef struct acs_blocks {
    acs_range *table;  /* hash table of blocks by their base */
    acs_chunk *chunks; /* rising by address */
    uint32_t chunk_count, chunk_capacity;
} acs_blocks;

/* Remove all blocks and chunks. */
void acs_blocks_clear(acs_blocks *blocks);
/* Add a chunk. ACS_ERR_MEMORY through ACS_FAIL: nothing changed. */
acs_status acs_blocks_add_chunk(acs_blocks *blocks, uint64_t base, uint64_t bytes);
/* Remove a chunk in which there is no block. */
void acs_blocks_remove_chunk(acs_blocks *blocks, uint64_t base);
/* The chunk that holds the address, or NULL. */
acs_chunk *acs_blocks_chunk(const acs_blocks *blocks, uint64_t address);
/* The first chunk that begins behind the address, or NULL. */
const acs_chunk *acs_blocks_chunk_behind(const acs_blocks *blocks, uint64_t address);

/* Add a range that was handed out. False: no memory. */
bool acs_blocks_add(acs_blocks *blocks, acs_range *range);
void acs_blocks_remove(acs_blocks *blocks, acs_range *range);
/* The block that begins at the address, and the block that holds it. NULL: there is none. */
acs_range *acs_blocks_at(const acs_blocks *blocks, uint64_t address);
acs_range *acs_blocks_holding(const acs_blocks *blocks, uint64_t address);
/* The block that was added after `range`; of NULL the first. NULL: there are no more. */
acs_range *acs_blocks_next(const acs_blocks *blocks, const acs_range *range);

#endif
