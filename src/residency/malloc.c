/*
 * acs_malloc, acs_free, acs_trim: blocks in program order. Without pools a block is the driver's, and freeing it is an
 * op that the thread of host functions runs.
 *
 * With pools both calls only change lists. No op after the latest one uses a freed block. If the block is taken again
 * while earlier ops may run, the next op that is queued orders its users behind them (recycle.h). Called by the
 * program's threads; waits only where there is no room.
 */
#include "api/failures.h"
#include "api/program_order.h"
#include "api/threads.h"
#include "capture/capture.h"
#include "debug/debug_options.h"
#include "residency/device_choice.h"
#include "residency/recycle.h"
#include "residency/relocatable.h"
#include "residency/room.h"
#include "residency/spill.h"

static acs_status take_block(acs_context *context, size_t bytes, int kind, const acs_site *site, acs_block *block)
{
    const acs_memory_request request = {.bytes = bytes, .kind = kind, .early = !acs_capture_on(context), .site = site};
    if (acs_memory_is_device(kind) && context->options.memory_limit && bytes > (uint64_t)context->options.memory_limit)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no %zu bytes of device memory: ACS_MEMORY_LIMIT is less", bytes);
    return acs_room_find(context, request, acs_spill, block);
}

/* ----------------------------------------------------------------------------------------------------------- malloc */

/*
 * The device for a block: the one of acs_on, else the first; for a block that need not be used there, the one with the
 * least memory in use.
 */
static uint32_t device_for(acs_context *context, bool relocatable)
{
    const uint32_t hint = acs_device_choice_hint(context);
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t d = 0; d < context->device_choice->count && relocatable && !hint; d++) {
        const uint64_t live = acs_memory_count(context->memory, acs_memory_kind(d)).live;
        if (live < least) {
            best = d;
            least = live;
        }
    }
    return hint ? hint - 1 : best;
}

static acs_status refuse_kind(int kind)
{
    const char *why = "it is none of ACS_MEMORY_DEVICE and ACS_MEMORY_HOST, with ACS_RELOCATABLE or ACS_LAZY added";
    if ((kind & ~(ACS_MEMORY_HOST | ACS_RELOCATABLE)) == ACS_LAZY)
        why = kind & ACS_RELOCATABLE ? "ACS_LAZY and ACS_RELOCATABLE exclude each other: a lazy block moves by itself"
                                 : "ACS_LAZY goes with ACS_MEMORY_DEVICE alone";
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_malloc: kind %#x: %s", (unsigned)kind, why);
}

static acs_status malloc_at(acs_context *context, size_t bytes, int kind, void **ptr, const acs_site *site)
{
    const bool lazy = kind == (ACS_MEMORY_DEVICE | ACS_LAZY),
               relocatable = (kind & ~ACS_MEMORY_HOST) == ACS_RELOCATABLE;
    acs_block block;
    ACS_NOT_CANCELLED;
    context = acs_context_enter_at(context, "acs_malloc", site);
    if (!context)
        return acs_error_thread()->status;
    kind = relocatable || lazy ? kind & ACS_MEMORY_HOST : kind;
    if (kind != ACS_MEMORY_DEVICE && kind != ACS_MEMORY_HOST)
        return refuse_kind(kind);
    if (!ptr || bytes == 0)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_malloc: %zu bytes to %p", bytes, (void *)ptr);
    ACS_TRY(acs_room_check_alive(context));
    const uint64_t began = ACS_RECORDER_NOW(context->recorder);
    if (lazy && context->pooled) {
        ACS_TRY(acs_lazy_malloc(context, bytes, site, &block));
        *ptr = block.ptr;
        acs_memory_event(context, false, &block, acs_fifo_last(context->core.fifo), began);
        return ACS_OK;
    }
    if (context->device_choice && kind == ACS_MEMORY_DEVICE)
        kind = acs_memory_kind(device_for(context, relocatable));
    acs_status status = take_block(context, bytes, kind, site, &block);
    if (status == ACS_ERR_DEVICE)
        acs_failures_lost(context);
    if (status != ACS_OK)
        return status;
    acs_context_kept(context, kind);
    status = context->pooled ? acs_recycle_begin_life(context, &block) : acs_allocations_add(context->allocations, &block);
    if (status == ACS_OK && relocatable && (kind != ACS_MEMORY_HOST || context->device_choice))
        status = acs_relocatable_add(context, &block);
    if (status != ACS_OK) {
        if (context->pooled) /* the first error is reported */
            (void)acs_memory_free(context->memory, block.ptr, acs_fifo_last(context->core.fifo), &block);
        else
            (void)acs_memory_give(context->memory, &block);
        return status;
    }
    *ptr = block.ptr;
    acs_memory_event(context, false, &block, acs_fifo_last(context->core.fifo), began);
    return ACS_OK;
}

acs_status acs_malloc_op(acs_context *context, size_t bytes, int kind, void **ptr, const acs_op_params *params)
{
    static const acs_site unnamed = {"acs_malloc", NULL, 0};
    const acs_site *site = params && params->site ? params->site : &unnamed;
    const acs_status status = malloc_at(context, bytes, kind, ptr, site);
    if (status != ACS_OK)
        acs_error_at(site);
    return status;
}

/*
 * Trim one kind of memory; a failure does not keep the others. Returns the first error of all kinds, or a lost device.
 */
static acs_status trim_kind(acs_context *context, int kind, size_t keep_bytes, acs_status before)
{
    const acs_error error = *acs_error_thread();
    const acs_status status = acs_memory_trim(context->memory, kind, keep_bytes);
    if (before == ACS_OK || status == ACS_ERR_DEVICE)
        return status;
    *acs_error_thread() = error;
    return before;
}

acs_status acs_trim(acs_context *context, size_t keep_bytes)
{
    ACS_NOT_CANCELLED;
    ACS_ENTER(context);
    ACS_TRY(acs_room_check_alive(context)); /* to give memory back may wait for an op that never ends */
    acs_status status = trim_kind(context, ACS_MEMORY_HOST, keep_bytes, ACS_OK);
    for (uint32_t d = 0; d < context->backend->devices && status != ACS_ERR_DEVICE; d++)
        status = trim_kind(context, acs_memory_kind(d), keep_bytes, status);
    if (status == ACS_ERR_DEVICE)
        acs_failures_lost(context);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- free */

/*
 * Free a block without pools. The driver's call may wait, so it is an op for the thread of host functions, behind the
 * block's users.
 */
static acs_op free_apart(acs_context *context, void *ptr, const acs_op_params *params, const acs_site *site)
{
    acs_draft draft = {.context = context, .site = site, .no_wait = params && params->no_wait};
    acs_allocation block;
    const uint64_t began = ACS_RECORDER_NOW(context->recorder);
    if (!acs_draft_begin(&draft, ACS_KIND_FREE))
        return 0;
    if (acs_allocations_begin_free(context->allocations, ptr, &block) != ACS_OK)
        return acs_draft_drop(&draft);
    if (!context->options.disable) /* a free runs none of the program's code, so the caller may do it */
        acs_host_thread_start(context);
    draft.record->u.free.ptr = ptr;
    draft.record->u.free.memory = block.memory;
    draft.record->u.free.bytes = block.bytes;
    acs_op op = acs_room_name_block(&draft, ptr, block.bytes) == ACS_OK ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
    if (!op) {
        acs_allocations_cancel_free(context->allocations, ptr);
        return 0;
    }
    acs_allocations_set_freed_by(context->allocations, ptr, block.id, op);
    const acs_block freed = acs_allocation_block(&block);
    acs_memory_event(context, true, &freed, op, began);
    return op;
}

static bool begins_block(acs_memory *memory, const void *ptr)
{
    acs_block block;
    return memory && acs_memory_find(memory, (uint64_t)(uintptr_t)ptr, &block) == ACS_PLACE_BLOCK && block.ptr == ptr;
}

/* The context's latest op. If there is none yet an op that does nothing is queued. 0: that could not be queued. */
static acs_op latest_op(acs_context *context, const acs_site *site)
{
    acs_draft draft;
    acs_op last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(last != 0))
        return last;
    return acs_room_begin_observe(&draft, context, site) ? acs_draft_queue(&draft) : 0;
}

/*
 * Find the latest op, behind which the block is freed; 0 for a free that will be refused. False: the op could not be
 * queued.
 */
static bool find_latest(acs_context *context, const void *ptr, const acs_site *site, acs_op *last)
{
    *last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(*last != 0) || !(begins_block(context->memory, ptr) || begins_block(acs_context_addresses(context), ptr)))
        return true;
    *last = latest_op(context, site);
    return *last != 0;
}

/* Freeing NULL succeeds, also inside a capture, which takes no op that does nothing. */
static acs_op free_null(acs_context *context, const acs_site *site)
{
    if (ACS_UNLIKELY(acs_capture_on(context)) && acs_fifo_last(context->core.fifo) == 0)
        return ACS_OP_CAPTURED;
    return latest_op(context, site);
}

static acs_op refuse_free(acs_context *context, const acs_site *site)
{
    (void)acs_failures_refuse(context, site);
    return 0;
}

static acs_op free_pooled(acs_context *context, void *ptr, const acs_site *site)
{
    acs_block block;
    const uint64_t began = ACS_RECORDER_NOW(context->recorder);
    if (acs_capture_on(context) && acs_capture_check(ACS_KIND_FREE) != ACS_OK)
        return refuse_free(context, site);
    if (acs_room_check_alive(context) != ACS_OK) {
        acs_error_at(site);
        return 0;
    }
    acs_op last;
    if (!find_latest(context, ptr, site, &last))
        return 0;
    acs_status status = acs_lazy_free(context, ptr, &block);
    if (status == ACS_NOT_READY) {
        last = acs_relocatable_remove(context, ptr, last);
        status = acs_memory_free(context->memory, ptr, last, &block);
    }
    if (status != ACS_OK)
        return refuse_free(context, site);
    acs_memory_event(context, true, &block, last, began);
    return last;
}

acs_op acs_free_op(acs_context *context, void *ptr, const acs_op_params *params)
{
    static const acs_site unnamed = {"acs_free", NULL, 0};
    const acs_site *site = params && params->site ? params->site : &unnamed;
    context = acs_context_enter_op(context, "acs_free", site);
    if (!context)
        return 0;
    if (!ptr)
        return free_null(context, site);
    acs_op op;
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS) && context->hooks->free(context, ptr, site, &op))
        return op;
    acs_order_lock(context); /* a check has copies of all blocks */
    op = context->pooled ? free_pooled(context, ptr, site) : free_apart(context, ptr, params, site);
    acs_order_unlock(context);
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_LEDGER))
        context->hooks->idle(context);
    return op;
}
