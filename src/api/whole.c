/*
 * The allocation in which an address lies (expand.h): asks the context's own tables, then memory that the program
 * registered, then the backend. Called by expand.c in the caller's thread. Keeps nothing: memory of others may be freed,
 * and given out anew, between two calls.
 */
#include "api/expand.h"

/* Look among the blocks of one table of pools. */
static acs_whole find_pooled(acs_memory *memory, uint64_t address, acs_block *block)
{
    switch (memory ? acs_memory_find(memory, address, block) : ACS_PLACE_FOREIGN) {
    case ACS_PLACE_BLOCK: return ACS_WHOLE_FOUND;
    case ACS_PLACE_FREED: return ACS_WHOLE_FREED;
    case ACS_PLACE_IDLE: *block = (acs_block){0}; return ACS_WHOLE_FREED;
    case ACS_PLACE_FOREIGN: break;
    }
    return ACS_WHOLE_UNKNOWN;
}

/* Look among allocations without pools. Of a freed one the allocator may have given the address to the program itself. */
static acs_whole find_apart(acs_allocations *table, uint64_t address, acs_block *block)
{
    acs_allocation allocation;
    if (!acs_allocations_find(table, address, &allocation) || allocation.state == ACS_ALLOCATION_FREED)
        return ACS_WHOLE_UNKNOWN;
    *block = acs_allocation_block(&allocation);
    block->behind = allocation.freed_by;
    return allocation.state == ACS_ALLOCATION_LIVE ? ACS_WHOLE_FOUND : ACS_WHOLE_FREED;
}

static acs_whole find_own(acs_context *context, uint64_t address, acs_block *block)
{
    if (!context->pooled)
        return find_apart(context->allocations, address, block);
    const acs_whole found = find_pooled(context->memory, address, block);
    return found != ACS_WHOLE_UNKNOWN ? found : find_pooled(acs_context_addresses(context), address, block);
}

/* Memory that the context did not make. */
static bool find_foreign(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes, const char **reason)
{
    acs_backend *backend = context->backend;
    *reason = "it is no memory of acs_malloc, nor registered";
    if (context->hooks && context->hooks->registered(context, address, first, bytes))
        return true;
    return backend->ops->memory_range && backend->ops->memory_range(backend, address, first, bytes, reason);
}

bool acs_whole_find_known(acs_context *context, uint64_t address, uint64_t *first, uint64_t *bytes)
{
    acs_block block;
    if (find_own(context, address, &block) != ACS_WHOLE_FOUND)
        return context->hooks && context->hooks->registered(context, address, first, bytes);
    *first = (uint64_t)(uintptr_t)block.ptr;
    *bytes = block.bytes;
    return true;
}

acs_whole acs_whole_find(acs_context *context, uint64_t address, acs_block *block, const char **reason)
{
    uint64_t first, bytes;
    const acs_whole own = find_own(context, address, block);
    if (own != ACS_WHOLE_UNKNOWN)
        return own;
    if (find_foreign(context, address, &first, &bytes, reason)) {
        *block = (acs_block){.ptr = (void *)(uintptr_t)first, .bytes = bytes};
        return ACS_WHOLE_FOUND;
    }
    /* Contexts are not ordered among each other; with ACS_CHECK the op is refused for the block. */
    if (acs_context_other(context, address, block) && address - (uint64_t)(uintptr_t)block->ptr < block->bytes)
        return ACS_WHOLE_FOUND;
    return ACS_WHOLE_UNKNOWN;
}
