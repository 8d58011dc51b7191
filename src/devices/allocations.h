/*
 * The table of allocations of a context that are the driver's: blocks of acs_malloc where these are apart (ACS_POOL=off).
 * An address finds the block that holds it. Freed blocks are remembered for a while so that a second acs_free
 * can be told from a wrong one. Thread-safe.
 */
#ifndef ACS_ALLOCATIONS_H
#define ACS_ALLOCATIONS_H

#include "base/base.h"
#include "pool/memory.h"

typedef enum acs_allocation_state {
    ACS_ALLOCATION_LIVE,
    ACS_ALLOCATION_FREEING, /* its free op is queued: no later op may name it */
    ACS_ALLOCATION_FREED    /* remembered for diagnostics only; its address may be anybody's */
} acs_allocation_state;

typedef struct acs_allocation {
    uint64_t base, bytes;
    uint32_t id;       /* from 1; never reused */
    uint8_t state;     /* acs_allocation_state */
    uint8_t memory;    /* ACS_MEMORY_* */
    uint8_t foreign;   /* not made by acs_malloc */
    uint16_t home;     /* device; 0 */
    uint32_t version;  /* 0 */
    acs_op freed_by;   /* the free op, once queued */
    const acs_site *site; /* of acs_malloc */
} acs_allocation;

/* What was taken from src/pool for it. */
static inline acs_block acs_allocation_block(const acs_allocation *a)
{
    return (acs_block){(void *)(uintptr_t)a->base, a->bytes, a->memory, NULL, 0, a->site, a->id};
}

typedef struct acs_allocations acs_allocations;

acs_status acs_allocations_create(acs_allocations **table);
void acs_allocations_destroy(acs_allocations *table);
/* Sets block->id. */
acs_status acs_allocations_add(acs_allocations *table, acs_block *block);
/* LIVE -> FREEING for the block that starts at ptr. ACS_ERR_ARGUMENT through ACS_FAIL: not one, or freed before. */
acs_status acs_allocations_begin_free(acs_allocations *table, const void *ptr, acs_allocation *copy);
/* Back to LIVE: the free op could not be queued. */
void acs_allocations_cancel_free(acs_allocations *table, const void *ptr);
/* The free op of the block with this id, which began to be freed; it may have run already. */
void acs_allocations_set_freed_by(acs_allocations *table, const void *ptr, uint32_t id, acs_op op);
/* FREEING -> FREED: the memory is given back. */
void acs_allocations_end_free(acs_allocations *table, const void *ptr);
/*
 * Whether a block of this kind is being freed, and by which op: of those that are known to be queued the first; of none the
 * latest that ran, whose memory may be on its way. 0: it is not known yet. *freed counts the blocks that were freed so far.
 */
bool acs_allocations_next_free(acs_allocations *table, int memory, acs_op *op, uint64_t *freed);
/* The block that holds the address, live ones first, else the latest freed one. False: none known. */
bool acs_allocations_find(acs_allocations *table, uint64_t address, acs_allocation *copy);
/* A LIVE block that has a byte in the range. False: none. */
bool acs_allocations_meet(acs_allocations *table, uint64_t base, uint64_t bytes, acs_allocation *copy);
/* Call `visit` for each LIVE block. It must not call back. */
void acs_allocations_each(acs_allocations *table, void (*visit)(void *user, const acs_block *block), void *user);
/* Take any block out of the table (close releases what the program did not). False: empty. */
bool acs_allocations_take(acs_allocations *table, acs_allocation *copy);

#endif
