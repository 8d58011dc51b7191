/*
 * The allocations of a context without pools (ACS_POOL=off): each block of acs_malloc is an allocation of the driver. An
 * address finds the block that holds it. Freed blocks are remembered for a while, so that a second acs_free can be told
 * from a wrong one. Thread-safe.
 */
#ifndef ACS_ALLOCATIONS_H
#define ACS_ALLOCATIONS_H

#include "base/base.h"
#include "pool/memory.h"

typedef enum acs_allocation_state {
    ACS_ALLOCATION_LIVE,
    ACS_ALLOCATION_FREEING, /* its free op is queued; no later op may name it */
    ACS_ALLOCATION_FREED    /* remembered for diagnostics only; its address may belong to another block */
} acs_allocation_state;

typedef struct acs_allocation {
    uint64_t base, bytes;
    uint32_t id;       /* number from 1, never used again */
    uint8_t state;     /* acs_allocation_state */
    uint8_t memory;    /* kind of memory: ACS_MEMORY_* */
    uint8_t foreign;   /* not made by acs_malloc */
    acs_op freed_by;   /* the free op, once it is queued */
    const acs_site *site; /* call of acs_malloc */
} acs_allocation;

/* The same as a block of the pools. */
static inline acs_block acs_allocation_block(const acs_allocation *a)
{
    return (acs_block){(void *)(uintptr_t)a->base, a->bytes, a->memory, NULL, 0, a->site, a->id};
}

typedef struct acs_allocations acs_allocations;

acs_status acs_allocations_create(acs_allocations **table);
void acs_allocations_destroy(acs_allocations *table);
/* Add a block. Sets block->id. */
acs_status acs_allocations_add(acs_allocations *table, acs_block *block);
/*
 * LIVE -> FREEING for the block that starts at `ptr`. ACS_ERR_ARGUMENT through ACS_FAIL: there is none, or it was freed
 * before.
 */
acs_status acs_allocations_begin_free(acs_allocations *table, const void *ptr, acs_allocation *copy);
/* FREEING -> LIVE: the free op could not be queued. */
void acs_allocations_cancel_free(acs_allocations *table, const void *ptr);
/* Note the free op of the block with this id, which began to be freed; the op may have run already. */
void acs_allocations_set_freed_by(acs_allocations *table, const void *ptr, uint32_t id, acs_op op);
/* FREEING -> FREED: the memory was given back. */
void acs_allocations_end_free(acs_allocations *table, const void *ptr);
/*
 * Whether a block of this kind is being freed. *op: the first queued op that frees one; without any, the latest that
 * ran, whose memory may be on its way; 0: not known yet. *freed: number of blocks freed so far.
 */
bool acs_allocations_next_free(acs_allocations *table, int memory, acs_op *op, uint64_t *freed);
/* Find the block that holds the address, else the latest freed block that held it. False: none is known. */
bool acs_allocations_find(acs_allocations *table, uint64_t address, acs_allocation *copy);
/* Find a LIVE block that has a byte in the range. False: there is none. */
bool acs_allocations_meet(acs_allocations *table, uint64_t base, uint64_t bytes, acs_allocation *copy);
/* Call `visit` for each LIVE block. It must not call back. */
void acs_allocations_each(acs_allocations *table, void (*visit)(void *user, const acs_block *block), void *user);
/* Take any block out of the table, for acs_close to release. False: the table is empty. */
bool acs_allocations_take(acs_allocations *table, acs_allocation *copy);

#endif
