/*
 * The table of allocations: live blocks in an array sorted by address, found by binary search, and the latest freed
 * ones in a ring for diagnostics. Called by acs_malloc, acs_free, ACS_CHECK and close, from any thread, under one lock.
 * It allocates only its own array, never the blocks, and never calls a backend.
 *
 * Blocks in the array never overlap, so the block that holds an address is the last one that starts at or below it.
 */
#include "devices/allocations.h"

#include "base/lock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FREED_KEPT = 1024, CAPACITY_FIRST = 64 };

struct acs_allocations {
    acs_lock lock; /* rank POOL; guards everything below */
    acs_allocation *blocks; /* LIVE and FREEING, sorted by base */
    size_t count, capacity;
    acs_allocation freed[FREED_KEPT]; /* ring: freed_total counts all that ever entered */
    uint64_t freed_total;
    uint32_t last_id;
};

acs_status acs_allocations_create(acs_allocations **table)
{
    acs_allocations *t = calloc(1, sizeof *t);
    if (!t)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a table of allocations");
    int error = acs_lock_init(&t->lock, ACS_RANK_POOL);
    if (error) {
        free(t);
        return ACS_FAIL(ACS_ERR_MEMORY, error, "no mutex for a table of allocations");
    }
    *table = t;
    return ACS_OK;
}

void acs_allocations_destroy(acs_allocations *table)
{
    if (!table)
        return;
    acs_lock_fini(&table->lock);
    free(table->blocks);
    free(table);
}

/* How many blocks start at or below the address: also where a block that starts there is inserted. */
static size_t count_up_to_locked(const acs_allocations *table, uint64_t address)
{
    /* All before `low` start at or below the address, all from `high` on above it. */
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->blocks[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block that starts at ptr, or NULL. */
static acs_allocation *starting_at_locked(acs_allocations *table, const void *ptr)
{
    uint64_t base = (uint64_t)(uintptr_t)ptr;
    size_t n = count_up_to_locked(table, base);
    return n > 0 && table->blocks[n - 1].base == base ? &table->blocks[n - 1] : NULL;
}

static bool holds(const acs_allocation *block, uint64_t address)
{
    return address - block->base < block->bytes; /* below the base the difference wraps and is large */
}

static acs_allocation *holding_locked(acs_allocations *table, uint64_t address)
{
    size_t n = count_up_to_locked(table, address);
    return n > 0 && holds(&table->blocks[n - 1], address) ? &table->blocks[n - 1] : NULL;
}

/*
 * Newest first: one address may have been in several blocks that were freed. The ring is for diagnostics, so a walk
 * will do.
 */
static acs_allocation *latest_freed_locked(acs_allocations *table, uint64_t address)
{
    uint64_t kept = table->freed_total < FREED_KEPT ? table->freed_total : FREED_KEPT;
    for (uint64_t i = 1; i <= kept; i++) {
        acs_allocation *block = &table->freed[(table->freed_total - i) % FREED_KEPT];
        if (holds(block, address))
            return block;
    }
    return NULL;
}

static void remove_locked(acs_allocations *table, acs_allocation *block)
{
    size_t after = table->count - (size_t)(block - table->blocks) - 1;
    memmove(block, block + 1, after * sizeof *block);
    table->count--;
}

/* Moves the block out of the array: pointers into it, `block` included, are stale afterwards. */
static void remember_freed_locked(acs_allocations *table, acs_allocation *block)
{
    block->state = ACS_ALLOCATION_FREED;
    table->freed[table->freed_total++ % FREED_KEPT] = *block;
    remove_locked(table, block);
}

/* Doubles and never shrinks: a program holds about as many blocks again. */
static acs_status grow_locked(acs_allocations *table)
{
    if (table->count < table->capacity)
        return ACS_OK;
    size_t capacity = table->capacity ? table->capacity * 2 : CAPACITY_FIRST;
    acs_allocation *blocks = realloc(table->blocks, capacity * sizeof *blocks);
    if (!blocks)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a table of %zu allocations", capacity);
    table->blocks = blocks;
    table->capacity = capacity;
    return ACS_OK;
}

/*
 * Make the range free of blocks. The allocator gave it out again, so a block there that is being freed has been given
 * back already and its end_free is on the way; a live one is a defect.
 */
static acs_status clear_range_locked(acs_allocations *table, uint64_t base, uint64_t bytes)
{
    size_t n;
    while ((n = count_up_to_locked(table, base + bytes - 1)) > 0) {
        acs_allocation *block = &table->blocks[n - 1];
        if (block->base + block->bytes <= base)
            break;
        if (block->state != ACS_ALLOCATION_FREEING)
            return ACS_FAIL(ACS_ERR_INTERNAL, 0,
                            "a new block of %" PRIu64 " bytes at 0x%" PRIx64 " overlaps a live one of %" PRIu64
                            " bytes at 0x%" PRIx64,
                            bytes, base, block->bytes, block->base);
        remember_freed_locked(table, block);
    }
    return ACS_OK;
}

static acs_status add_locked(acs_allocations *table, uint64_t base, uint64_t bytes, int memory, struct acs_range *range)
{
    ACS_TRY(clear_range_locked(table, base, bytes));
    ACS_TRY(grow_locked(table));
    if (table->last_id == UINT32_MAX)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "all %" PRIu32 " numbers of allocations are used up", table->last_id);

    /* Looked up only now: clearing and growing both move blocks. */
    acs_allocation *at = &table->blocks[count_up_to_locked(table, base)];
    memmove(at + 1, at, (size_t)(table->blocks + table->count - at) * sizeof *at);
    table->count++;
    *at = (acs_allocation){.base = base, .bytes = bytes, .id = ++table->last_id, .state = ACS_ALLOCATION_LIVE,
                           .memory = (uint8_t)memory, .range = range};
    return ACS_OK;
}

acs_status acs_allocations_add(acs_allocations *table, void *ptr, size_t bytes, int memory, struct acs_range *range)
{
    uint64_t base = (uint64_t)(uintptr_t)ptr;
    if (!ptr || bytes == 0 || base + bytes < base)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%zu bytes at %p are no block of memory", bytes, ptr);
    acs_lock_acquire(&table->lock);
    acs_status status = add_locked(table, base, bytes, memory, range);
    acs_lock_release(&table->lock);
    return status;
}

/* Say why ptr cannot be freed: the message is all that a program's author gets to see. */
static acs_status refuse_free_locked(acs_allocations *table, const void *ptr)
{
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    const acs_allocation *live = holding_locked(table, address);
    const acs_allocation *freed = live ? NULL : latest_freed_locked(table, address);

    if (live && live->base == address)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is being freed already, by op %" PRIu64, ptr, live->freed_by);
    if (live)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p lies %" PRIu64 " bytes inside the block of %" PRIu64 " bytes at 0x%" PRIx64
                        "; free its start",
                        ptr, address - live->base, live->bytes, live->base);
    if (freed)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "%p was freed before, by op %" PRIu64 ", as the block of %" PRIu64 " bytes at 0x%" PRIx64, ptr,
                        freed->freed_by, freed->bytes, freed->base);
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p is not a block of acs_malloc of this context", ptr);
}

/*
 * The state changes when the free is asked for, not when it runs: a second acs_free and a later op that names the block
 * are refused on the caller's thread, where the mistake is.
 */
acs_status acs_allocations_begin_free(acs_allocations *table, const void *ptr, acs_allocation *copy)
{
    acs_status status = ACS_OK;
    acs_lock_acquire(&table->lock);
    acs_allocation *block = starting_at_locked(table, ptr);
    if (block && block->state == ACS_ALLOCATION_LIVE) {
        block->state = ACS_ALLOCATION_FREEING;
        *copy = *block;
    } else {
        status = refuse_free_locked(table, ptr);
    }
    acs_lock_release(&table->lock);
    return status;
}

void acs_allocations_cancel_free(acs_allocations *table, const void *ptr)
{
    acs_lock_acquire(&table->lock);
    acs_allocation *block = starting_at_locked(table, ptr);
    if (block && block->state == ACS_ALLOCATION_FREEING)
        block->state = ACS_ALLOCATION_LIVE;
    acs_lock_release(&table->lock);
}

/* The block that started at ptr and was freed last, or NULL. */
static acs_allocation *freed_at_locked(acs_allocations *table, const void *ptr)
{
    acs_allocation *block = latest_freed_locked(table, (uint64_t)(uintptr_t)ptr);
    return block && block->base == (uint64_t)(uintptr_t)ptr ? block : NULL;
}

void acs_allocations_set_freed_by(acs_allocations *table, const void *ptr, acs_op op)
{
    acs_lock_acquire(&table->lock);
    acs_allocation *block = starting_at_locked(table, ptr);
    /* The free op may have run already when its queuing thread comes here to note its number. */
    if (!block || block->state != ACS_ALLOCATION_FREEING)
        block = freed_at_locked(table, ptr);
    if (block && block->freed_by == 0)
        block->freed_by = op;
    acs_lock_release(&table->lock);
}

/* Nothing to do where the address was given out again already: clear_range_locked has moved the block. */
void acs_allocations_end_free(acs_allocations *table, const void *ptr)
{
    acs_lock_acquire(&table->lock);
    acs_allocation *block = starting_at_locked(table, ptr);
    if (block && block->state == ACS_ALLOCATION_FREEING)
        remember_freed_locked(table, block);
    acs_lock_release(&table->lock);
}

acs_op acs_allocations_next_free(acs_allocations *table, int memory)
{
    acs_op oldest = 0;
    acs_lock_acquire(&table->lock);
    for (size_t i = 0; i < table->count; i++) {
        const acs_allocation *block = &table->blocks[i];
        bool queued = block->state == ACS_ALLOCATION_FREEING && block->memory == memory && block->freed_by;
        if (queued && (oldest == 0 || block->freed_by < oldest))
            oldest = block->freed_by;
    }
    if (oldest == 0 && table->freed_total > 0)
        oldest = table->freed[(table->freed_total - 1) % FREED_KEPT].freed_by;
    acs_lock_release(&table->lock);
    return oldest;
}

bool acs_allocations_find(acs_allocations *table, uint64_t address, acs_allocation *copy)
{
    acs_lock_acquire(&table->lock);
    const acs_allocation *block = holding_locked(table, address);
    if (!block)
        block = latest_freed_locked(table, address);
    if (block)
        *copy = *block;
    acs_lock_release(&table->lock);
    return block != NULL;
}

bool acs_allocations_take(acs_allocations *table, acs_allocation *copy)
{
    acs_lock_acquire(&table->lock);
    bool any = table->count > 0;
    if (any)
        /* The last one, so that no other has to move. */
        *copy = table->blocks[--table->count];
    acs_lock_release(&table->lock);
    return any;
}
