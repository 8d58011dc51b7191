/*
 * acs_malloc, acs_free, acs_trim: blocks in program order. Without pools a block is the driver's, and its free is an
 * op, which the thread of host functions runs. With them both are lists: a freed block is known to be used by no op
 * after the latest one, and who gets it while those may still run is ordered behind them, as the next op says that is
 * queued (acs_reuse). Called by the program's threads; waits only where there is no room.
 */
#include "residency/malloc.h"
#include "api/failures.h"
#include "api/threads.h"
#include "api/wait.h"

#include "capture/capture.h"
#include "debug/memory_log.h"
#include "residency/device_choice.h"

#include <sched.h>
#include <stdlib.h>

static bool begin(acs_draft *draft, acs_context *context, acs_op_kind kind, const acs_site *site)
{
    *draft = (acs_draft){.context = context, .site = site, .own = true};
    return acs_draft_begin(draft, kind) != NULL;
}

/* A record about one block. */
static acs_status name_block(acs_draft *draft, void *ptr, size_t bytes)
{
    ACS_TRY(acs_record_reserve(draft->context->records, draft->record, 0, 0, 1));
    draft->record->segments[0] = ACS_OUT(ptr, bytes);
    draft->record->segment_count = 1;
    return ACS_OK;
}

/* E: the fault's error is in `failures` */
static acs_status check_alive(const acs_context *context)
{
    if (acs_context_is_lost(context))
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "the device is lost; see acs_context_error");
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------ waits */

/* What is known of the blocks that were freed when there was no room, and which free op was waited for. */
typedef struct search {
    uint64_t freed;
    acs_op waited;
} search;

/* A block came back since, or one is waited for until it does. False: none is on its way. */
static bool wait_for_free(acs_context *context, int kind, search *s)
{
    uint64_t before = s->freed;
    acs_op op;
    bool any = acs_allocations_next_free(context->allocations, kind, &op, &s->freed);
    if (s->freed != before)
        return true;
    if (op && op != s->waited) {
        s->waited = op;
        acs_context_wait(context, ACS_WAIT_FOR_OP, op);
        return true;
    }
    if (!any || op || context->stepper)
        return false;
    if (!acs_context_step(context))
        sched_yield(); /* another thread is inside acs_free */
    return true;
}

/* For the ops that touch a block which was freed: it cannot be named in a call any more. False: the device is lost. */
static bool wait_for_users(acs_context *context, const acs_block *block)
{
    static const acs_site site = {"acs_malloc", NULL, 0};
    acs_draft draft;
    if (!begin(&draft, context, ACS_KIND_OBSERVE, &site))
        return false;
    acs_op op = name_block(&draft, block->ptr, block->bytes) == ACS_OK ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
    if (op)
        acs_context_wait(context, ACS_WAIT_FOR_OP, op);
    return op && check_alive(context) == ACS_OK;
}

/*
 * The block that has rested for longest is waited for by itself: other ops may take as long as they like. Only what was
 * handed out early before is known by its latest op alone, and inside a capture there is no op that could wait. Nothing
 * is waited for that was freed behind `until`, which others may go on to do for ever. False: nothing rests.
 */
static bool wait_for_rest(acs_context *context, int kind, acs_op until)
{
    acs_block block;
    if (!acs_capture_on(context) && acs_memory_oldest(context->memory, kind, &block)) {
        if (block.behind > until || !wait_for_users(context, &block))
            return false;
        acs_memory_settled(context->memory, &block);
        return true;
    }
    acs_op last = acs_memory_rests_until(context->memory, kind);
    last = last < until ? last : until;
    if (last <= acs_core_settled(&context->core))
        return false;
    acs_context_wait(context, ACS_WAIT_FOR_ALL, last);
    return true;
}

void acs_memory_wait_rests(acs_context *context, int kind)
{
    const acs_op until = acs_fifo_last(context->core.fifo);
    acs_block block;
    while (!acs_capture_on(context) && acs_memory_oldest(context->memory, kind, &block) && block.behind <= until &&
           wait_for_users(context, &block))
        acs_memory_settled(context->memory, &block);
}

/* Where there is no room blocks that are being freed come back one after the other; then lazy ones are spilled. */
acs_status acs_memory_find_room(acs_context *context, acs_memory_request request, acs_room_fn spill, acs_block *block)
{
    const int kind = request.kind;
    acs_op ignored, until = acs_fifo_last(context->core.fifo);
    search s = {0};
    (void)acs_allocations_next_free(context->allocations, kind, &ignored, &s.freed);
    for (;;) {
        request.quiet = true;
        acs_status status = acs_memory_take(context->memory, &request, block);
        if (status != ACS_NOT_READY)
            return status;
        bool more = context->pooled ? wait_for_rest(context, kind, until) : wait_for_free(context, kind, &s);
        ACS_TRY(check_alive(context));
        if (more)
            continue;
        if (!acs_memory_is_device(kind) || !spill(context, acs_memory_device(kind))) {
            request.quiet = false; /* say why */
            status = acs_memory_take(context->memory, &request, block);
            if (status != ACS_NOT_READY) /* another thread waited for what rested */
                return status;
        }
        until = acs_fifo_last(context->core.fifo);
    }
}

static acs_status take_block(acs_context *context, size_t bytes, int kind, const acs_site *site, acs_block *block)
{
    const acs_memory_request request = {.bytes = bytes, .kind = kind, .early = !acs_capture_on(context), .site = site};
    if (acs_memory_is_device(kind) && context->options.memory_limit && bytes > (uint64_t)context->options.memory_limit)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no %zu bytes of device memory: ACS_MEMORY_LIMIT is less", bytes);
    return acs_memory_find_room(context, request, acs_lazy_spill, block);
}

/* ----------------------------------------------------------------------------------------------------------- malloc */

/*
 * The next op takes all, and until it is in the FIFO `g_taken` stands for them: else the op of another thread, which
 * names memory of its own malloc, could overtake the one that carries it.
 */
static acs_reuse g_taken;

/* D: who finds the list finds what stands in it, and who finds it empty finds an op behind which that stands. */
static acs_reuse *wait_while_taken(acs_context *context)
{
    acs_reuse *list;
    while ((list = atomic_load_explicit(&context->reuses, memory_order_acquire)) == &g_taken) /* D */
        if (context->stepper)
            context->stepper->wait_for_thread(context);
        else if (!acs_context_step(context))
            sched_yield(); /* its thread is inside a call, perhaps waiting for room */
    return list;
}

static void add_reuse(acs_context *context, acs_reuse *reuse)
{
    do
        reuse->next = wait_while_taken(context);
    while (!atomic_compare_exchange_weak_explicit(&context->reuses, &reuse->next, reuse, memory_order_acq_rel, /* D */
                                                  memory_order_relaxed));
}

void acs_reuse_attach(acs_draft *draft)
{
    acs_context *context = draft->context;
    acs_reuse *list;
    do
        list = wait_while_taken(context);
    while (list && !atomic_compare_exchange_weak_explicit(&context->reuses, &list, &g_taken, memory_order_acq_rel, /* D */
                                                          memory_order_relaxed));
    if (!list)
        return;
    draft->record->reuses = list;
    draft->record->flags |= ACS_RECORD_REUSES;
    for (draft->reuses = 0; list; list = list->next)
        draft->reuses++;
}

void acs_reuse_queued(acs_draft *draft)
{
    acs_context *context = draft->context;
    if (!draft->reuses)
        return;
    atomic_store_explicit(&context->reuses, NULL, memory_order_release); /* D */
    atomic_fetch_sub_explicit(&context->modes, ACS_MODE_REUSE * draft->reuses, memory_order_release); /* E */
    draft->reuses = 0;
}

void acs_reuse_put_back(acs_draft *draft)
{
    if (!draft->reuses)
        return;
    draft->record->flags &= (uint8_t)~ACS_RECORD_REUSES;
    atomic_store_explicit(&draft->context->reuses, draft->record->reuses, memory_order_release); /* D */
    draft->reuses = 0;
}

/* An op takes few of them: one that does nothing else takes them before they are more. */
acs_status acs_reuse_add(acs_context *context, uint64_t base, uint64_t bytes)
{
    static const acs_site site = {"acs_malloc", NULL, 0};
    acs_draft draft;
    acs_reuse *reuse = malloc(sizeof *reuse);
    if (!reuse)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to hand a block out again");
    *reuse = (acs_reuse){.base = base, .bytes = bytes};
    /*
     * Counted before it is listed, so that who finds it in the list may count it down. E: relaxed, nothing goes with
     * it.
     */
    const uint64_t modes = atomic_fetch_add_explicit(&context->modes, ACS_MODE_REUSE, memory_order_relaxed);
    add_reuse(context, reuse);
    if (modes / ACS_MODE_REUSE + 1 < ACS_REUSES_MOST || acs_capture_on(context))
        return ACS_OK;
    bool queued = begin(&draft, context, ACS_KIND_OBSERVE, &site) && acs_draft_queue(&draft);
    return queued ? ACS_OK : acs_error_thread()->status;
}

acs_status acs_memory_begin_life(acs_context *context, const acs_block *block)
{
    if (block->behind)
        return acs_reuse_add(context, block->range->base, block->range->bytes);
    acs_core_forget_block(&context->core, (uint64_t)(uintptr_t)block->ptr, block->bytes);
    return ACS_OK;
}

/* The one that acs_on said; else the first, or for blocks that need not be used there the one with the least in use. */
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

acs_status acs_malloc_op(acs_context *context, size_t bytes, int kind, void **ptr, const acs_op_params *params)
{
    static const acs_site unnamed = {"acs_malloc", NULL, 0};
    const acs_site *site = params && params->site ? params->site : &unnamed;
    const bool lazy = kind == (ACS_MEMORY_DEVICE | ACS_LAZY),
               relocatable = (kind & ~ACS_MEMORY_HOST) == ACS_RELOCATABLE;
    acs_block block;
    ACS_NOT_CANCELLED;
    context = acs_context_enter(context, "acs_malloc");
    if (!context)
        return acs_error_thread()->status;
    kind = relocatable || lazy ? kind & ACS_MEMORY_HOST : kind;
    if (kind != ACS_MEMORY_DEVICE && kind != ACS_MEMORY_HOST)
        return refuse_kind(kind);
    if (!ptr || bytes == 0)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_malloc: %zu bytes to %p", bytes, (void *)ptr);
    ACS_TRY(check_alive(context));
    if (lazy && context->pooled) {
        ACS_TRY(acs_lazy_malloc(context, bytes, site, &block));
        *ptr = block.ptr;
        acs_memory_log_block(context, "malloc", &block, acs_fifo_last(context->core.fifo));
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
    status = context->pooled ? acs_memory_begin_life(context, &block) : acs_allocations_add(context->allocations, &block);
    if (status == ACS_OK && relocatable && (kind != ACS_MEMORY_HOST || context->device_choice))
        status = acs_relocatable_add(context, &block);
    if (status != ACS_OK) {
        if (context->pooled) /* the first error counts */
            (void)acs_memory_free(context->memory, block.ptr, acs_fifo_last(context->core.fifo), &block);
        else
            (void)acs_memory_give(context->memory, &block);
        return status;
    }
    *ptr = block.ptr;
    acs_memory_log_block(context, "malloc", &block, acs_fifo_last(context->core.fifo));
    return ACS_OK;
}

/*
 * Memory of one kind that does not go back keeps none of the others. Returns the first error of all, or a lost device.
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
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    ACS_TRY(check_alive(context)); /* giving back may wait for an op that never ends */
    acs_status status = trim_kind(context, ACS_MEMORY_HOST, keep_bytes, ACS_OK);
    for (uint32_t d = 0; d < context->backend->devices && status != ACS_ERR_DEVICE; d++)
        status = trim_kind(context, acs_memory_kind(d), keep_bytes, status);
    if (status == ACS_ERR_DEVICE)
        acs_failures_lost(context);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- free */

/* The driver gives it back, once its users have ended: an action of the thread of host functions, since it may wait. */
static acs_op free_apart(acs_context *context, void *ptr, const acs_op_params *params, const acs_site *site)
{
    acs_draft draft = {.context = context, .site = site, .no_wait = params && params->no_wait};
    acs_allocation block;
    if (!acs_draft_begin(&draft, ACS_KIND_FREE))
        return 0;
    if (acs_allocations_begin_free(context->allocations, ptr, &block) != ACS_OK)
        return acs_draft_drop(&draft);
    acs_host_thread_start(context);
    draft.record->u.free.ptr = ptr;
    draft.record->u.free.memory = block.memory;
    draft.record->u.free.bytes = block.bytes;
    acs_op op = name_block(&draft, ptr, block.bytes) == ACS_OK ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
    if (!op) {
        acs_allocations_cancel_free(context->allocations, ptr);
        return 0;
    }
    acs_allocations_set_freed_by(context->allocations, ptr, block.id, op);
    const acs_block freed = acs_allocation_block(&block);
    acs_memory_log_block(context, "free", &freed, op);
    return op;
}

static bool begins_block(acs_memory *memory, const void *ptr)
{
    acs_block block;
    return memory && acs_memory_find(memory, (uint64_t)(uintptr_t)ptr, &block) == ACS_PLACE_BLOCK && block.ptr == ptr;
}

/*
 * The context's latest op. Before the first one there is none: an op that does nothing becomes it. 0: it was not
 * queued.
 */
static acs_op latest_op(acs_context *context, const acs_site *site)
{
    acs_draft draft;
    acs_op last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(last != 0))
        return last;
    return begin(&draft, context, ACS_KIND_OBSERVE, site) ? acs_draft_queue(&draft) : 0;
}

/* The latest op, which a free is behind; 0 for a free that is to be refused. False: the op could not be queued. */
static bool find_latest(acs_context *context, const void *ptr, const acs_site *site, acs_op *last)
{
    *last = acs_fifo_last(context->core.fifo);
    if (ACS_LIKELY(*last != 0) || !(begins_block(context->memory, ptr) || begins_block(context->addresses, ptr)))
        return true;
    *last = latest_op(context, site);
    return *last != 0;
}

/* NULL frees nothing, so it succeeds: also inside a capture, which takes no op that does nothing. */
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
    if (acs_capture_on(context) && acs_capture_check(ACS_KIND_FREE) != ACS_OK)
        return refuse_free(context, site);
    if (check_alive(context) != ACS_OK) {
        acs_error_thread()->site = *site;
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
    acs_memory_log_block(context, "free", &block, last);
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
    op = context->pooled ? free_pooled(context, ptr, site) : free_apart(context, ptr, params, site);
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_LEDGER))
        context->hooks->idle(context);
    return op;
}
