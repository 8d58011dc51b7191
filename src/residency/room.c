/*
 * Room for blocks where the pools have none (see room.h): freed blocks are waited for, then contents of other blocks are
 * spilled. Called by acs_malloc, by binding, and for groups, on the program's threads. While it waits it holds no lock,
 * except the lock of relocatable blocks where its caller has it.
 */
#include "residency/room.h"

#include "api/threads.h"
#include "api/wait.h"
#include "capture/capture.h"

#include <sched.h>

bool acs_room_begin_observe(acs_draft *draft, acs_context *context, const acs_site *site)
{
    *draft = (acs_draft){.context = context, .site = site, .own = true};
    return acs_draft_begin(draft, ACS_KIND_OBSERVE) != NULL;
}

acs_status acs_room_name_block(acs_draft *draft, void *ptr, size_t bytes)
{
    ACS_TRY(acs_record_reserve(draft->context->records, draft->record, 0, 0, 1));
    draft->record->segments[0] = ACS_OUT(ptr, bytes);
    draft->record->segment_count = 1;
    return ACS_OK;
}

/* Progress of a search without pools: frees that were counted, and the free op that was waited for. */
typedef struct search {
    uint64_t freed;
    acs_op waited;
} search;

/* True if a block came back since the last look, or one was waited for. False: no block is being freed. */
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

/* Wait for the ops that touch a freed block; no later op can name it. False: the device is lost. */
static bool wait_for_users(acs_context *context, const acs_block *block)
{
    static const acs_site site = {"acs_malloc", NULL, 0};
    acs_draft draft;
    if (!acs_room_begin_observe(&draft, context, &site))
        return false;
    const bool named = acs_room_name_block(&draft, block->ptr, block->bytes) == ACS_OK;
    acs_op op = named ? acs_draft_queue(&draft) : acs_draft_drop(&draft);
    if (op)
        acs_context_wait(context, ACS_WAIT_FOR_OP, op);
    return op && acs_room_check_alive(context) == ACS_OK;
}

/*
 * Wait for the ops of the block that has been in quarantine for longest; other ops may take as long as they like.
 * Without such a block, or inside a capture, wait for the latest op of all blocks that were freed.
 *
 * Blocks that were freed behind `until` are not waited for, since other threads may free blocks for ever. False: nothing
 * is in quarantine.
 */
static bool wait_for_quarantined(acs_context *context, int kind, acs_op until)
{
    acs_block block;
    if (!acs_capture_on(context) && acs_memory_oldest_quarantined(context->memory, kind, &block)) {
        if (block.behind > until || !wait_for_users(context, &block))
            return false;
        acs_memory_end_quarantine(context->memory, &block);
        return true;
    }
    acs_op last = acs_memory_quarantined_until(context->memory, kind);
    last = last < until ? last : until;
    if (last <= acs_core_settled(&context->core))
        return false;
    acs_context_wait(context, ACS_WAIT_FOR_ALL, last);
    return true;
}

void acs_room_wait_quarantine(acs_context *context, int kind)
{
    const acs_op until = acs_fifo_last(context->core.fifo);
    acs_block block;
    while (!acs_capture_on(context) && acs_memory_oldest_quarantined(context->memory, kind, &block) &&
           block.behind <= until && wait_for_users(context, &block))
        acs_memory_end_quarantine(context->memory, &block);
}

/* Freed blocks come back one after the other; then lazy blocks are spilled. */
acs_status acs_room_find(acs_context *context, acs_memory_request request, acs_room_fn spill, acs_block *block)
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
        bool more = context->pooled ? wait_for_quarantined(context, kind, until) : wait_for_free(context, kind, &s);
        ACS_TRY(acs_room_check_alive(context));
        if (more)
            continue;
        if (!acs_memory_is_device(kind) || !spill(context, acs_memory_device(kind))) {
            request.quiet = false; /* without `quiet` the error says why */
            status = acs_memory_take(context->memory, &request, block);
            if (status != ACS_NOT_READY) /* another thread ended a quarantine */
                return status;
        }
        until = acs_fifo_last(context->core.fifo);
    }
}
