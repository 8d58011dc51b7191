/*
 * Lazy blocks (ACS_LAZY): addresses without memory. An op that names one is bound to device memory, like to a renamed
 * block. The first op gets the memory; spill.c takes it away where device memory is short, and the next op that reads the
 * contents copies them back. Called by acs_malloc and acs_free, and by rename.c for ops; under the lock of relocatable
 * blocks.
 */
#include "residency/naming.h"
#include "residency/recycle.h"
#include "residency/replicas.h"
#include "residency/spill.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define IDS (UINT64_C(1) << 48) /* of lazy blocks in the log: from here on */

/* -------------------------------------------------------------------------------------------------------- addresses */

/*
 * Nothing else in the process gets these addresses, nor does the driver, which places device memory in the same address
 * space.
 */
static acs_status obtain_addresses(void *user, int kind, size_t bytes, void **ptr)
{
    (void)user, (void)kind;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return ACS_FAIL(ACS_ERR_MEMORY, errno, "no %zu addresses for lazy blocks: %s", bytes, strerror(errno));
    *ptr = at;
    return ACS_OK;
}

static acs_status release_addresses(void *user, int kind, void *ptr, size_t bytes)
{
    (void)user, (void)kind;
    return munmap(ptr, bytes) == 0 ? ACS_OK : ACS_FAIL(ACS_ERR_INTERNAL, errno, "munmap: %s", strerror(errno));
}

/* No op uses these addresses. */
static acs_op settled(void *user)
{
    (void)user;
    return UINT64_MAX;
}

static acs_status open_addresses(acs_context *context)
{
    const acs_memory_config config = {.pooled = true, .obtain = obtain_addresses, .release = release_addresses,
                                      .settled = settled};
    acs_memory *addresses;
    if (acs_context_addresses(context))
        return ACS_OK;
    ACS_TRY(acs_memory_create(&config, &addresses));
    atomic_store_explicit(&context->addresses, addresses, memory_order_release); /* J */
    atomic_fetch_add_explicit(&context->relocatables->count, 1,
                              memory_order_relaxed); /* plus one for good: see acs_relocatables_none */
    return ACS_OK;
}

/* ----------------------------------------------------------------------------------------------------- malloc, free */

acs_status acs_lazy_malloc(acs_context *context, size_t bytes, const acs_site *site, acs_block *block)
{
    const acs_memory_request request = {.bytes = bytes, .kind = ACS_MEMORY_DEVICE, .site = site};
    ACS_HOLD_BLOCKS(context);
    ACS_TRY(open_addresses(context));
    ACS_TRY(acs_memory_take(acs_context_addresses(context), &request, block));
    acs_relocatable *m = acs_relocatable_make(context, block);
    if (m && context->device_choice && acs_replicas_make(context, m, ACS_ANY_PLACE) != ACS_OK) {
        acs_relocatable_unlink(context, m);
        m = NULL;
    }
    if (!m) {
        (void)acs_memory_free(acs_context_addresses(context), block->ptr, 0, block); /* it is a block: cannot fail */
        return acs_error_thread()->status;
    }
    m->lazy = true;
    m->named = context->relocatables->turn;
    m->group = context->hooks->group_number(context);
    acs_memory_mark(acs_context_addresses(context), block->ptr, m);
    block->id += IDS;
    return ACS_OK;
}

acs_status acs_lazy_free_locked(acs_context *context, const void *ptr, acs_block *block)
{
    const uint64_t address = (uint64_t)(uintptr_t)ptr;
    const acs_op last = acs_fifo_last(context->core.fifo);
    acs_memory *addresses = acs_context_addresses(context);
    if (!addresses || acs_memory_find(addresses, address, block) == ACS_PLACE_FOREIGN)
        return ACS_NOT_READY;
    acs_relocatable *m = acs_memory_marked(addresses, address);
    if (m && m->group && m->dying)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "%p was freed before, in a group that is held", ptr);
    ACS_TRY(acs_memory_free(addresses, ptr, last, block));
    acs_relocatable_free(context, m, last);
    block->id += IDS;
    return ACS_OK;
}

acs_status acs_lazy_free(acs_context *context, const void *ptr, acs_block *block)
{
    if (acs_relocatables_none(context))
        return ACS_NOT_READY;
    ACS_HOLD_BLOCKS(context);
    return acs_lazy_free_locked(context, ptr, block);
}

acs_status acs_lazy_check(const acs_draft *draft, const acs_segment *s, uint32_t i)
{
    acs_memory *addresses = acs_context_addresses(draft->context);
    acs_block block;
    if (!addresses || !acs_segment_has_bytes(s))
        return ACS_OK;
    acs_memory_place place = acs_memory_find(addresses, s->base, &block);
    if (place == ACS_PLACE_FOREIGN)
        return ACS_OK;
    if (place != ACS_PLACE_BLOCK)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u at %#llx names an ACS_LAZY block that was freed",
                        acs_draft_name(draft), i, (unsigned long long)s->base);
    uint64_t base = (uint64_t)(uintptr_t)block.ptr, end = acs_segment_end(s);
    if (end <= base + block.bytes)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%s': segment %u ends %llu bytes behind its ACS_LAZY block of %zu bytes at %p",
                    acs_draft_name(draft), i, (unsigned long long)(end - base - block.bytes), block.bytes, block.ptr);
}

/* ------------------------------------------------------------------------------------------------------------ fetch */

/* All blocks that the op names are in memory together, so that no two ops take each other's blocks for ever. */
static acs_status check_memory_limit(const acs_draft *draft)
{
    const acs_context *context = draft->context;
    const uint64_t limit = (uint64_t)context->options.memory_limit;
    uint64_t bytes = 0;
    uint32_t blocks = 0;
    for (const acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched) {
        bytes += m->lazy ? m->bytes : 0;
        blocks += m->lazy;
    }
    if (!limit || bytes <= limit)
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%s' needs %llu bytes in %u ACS_LAZY blocks at once: ACS_MEMORY_LIMIT is %llu",
                    acs_draft_name(draft), (unsigned long long)bytes, blocks, (unsigned long long)limit);
}

static acs_status fetch(acs_context *context, acs_relocatable *m)
{
    acs_block block;
    ACS_TRY(acs_spill_find_memory(context, m, ACS_MEMORY_DEVICE, &block));
    acs_status status = acs_recycle_begin_life(context, &block);
    m->at = m->to = (uint64_t)(uintptr_t)block.ptr;
    m->last = 0;
    m->fresh = m->overwritten;
    if (status == ACS_OK && m->host_valid && !m->fresh) {
        acs_op op = acs_relocatable_copy(context, m, m->at, m->host);
        status = op ? ACS_OK : acs_error_thread()->status;
        /* Copies of the parts before one that failed count, too. */
        m->last = m->host_last = op ? op : acs_fifo_last(context->core.fifo);
        atomic_fetch_add_explicit(&context->relocatables->returned, m->bytes, memory_order_relaxed); /* relaxed: a counter */
    }
    if (status != ACS_OK)
        acs_relocatable_drop(context, m,
                             acs_fifo_last(context->core.fifo)); /* the host copy still holds the contents */
    return status;
}

/* Give memory to the op's blocks that have none, the largest first, so that smaller ones have more ways to fit. */
static acs_status fetch_missing(acs_context *context)
{
    for (;;) {
        acs_relocatable *largest = NULL;
        for (acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
            if (m->lazy && !m->at && (!largest || m->bytes > largest->bytes))
                largest = m;
        if (!largest)
            return ACS_OK;
        ACS_TRY(fetch(context, largest));
    }
}

/* Move the op's own blocks out as well: where they lie now may leave no free range that is large enough. */
static bool move_own_out(acs_context *context)
{
    bool moved = false;
    for (acs_relocatable *m = context->relocatables->touched; m; m = m->next_touched)
        if (m->lazy && m->at && !m->borrowed)
            moved |= acs_spill_move_out(context, m) == ACS_OK;
    return moved;
}

acs_status acs_lazy_fetch(acs_draft *draft)
{
    acs_context *context = draft->context;
    ACS_TRY(check_memory_limit(draft));
    acs_error_hush(true);
    acs_status status = fetch_missing(context);
    const acs_error first = *acs_error_thread();
    const bool again = status == ACS_ERR_MEMORY && move_own_out(context);
    acs_error_hush(false);
    if (status == ACS_OK || again)
        return again ? fetch_missing(context) : status;
    *acs_error_thread() = first;
    acs_error_log();
    return status;
}

void acs_lazy_borrow(acs_relocatable *m, uint32_t device, uint64_t at)
{
    if (m->replicas) {
        m->replicas->places[device] = (acs_replica){.at = at, .borrowed = true};
        return;
    }
    m->at = m->to = at;
    m->borrowed = m->fresh = true;
    m->last = 0;
}

void acs_lazy_undo(acs_context *context, acs_relocatable *m)
{
    if (m->fresh)
        acs_relocatable_drop(context, m, 0); /* no op has used it */
}
