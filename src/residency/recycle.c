/*
 * Recycled memory (see recycle.h): a list of ranges that begin a new life, which the next op that is queued takes and
 * hands to the window. Called by acs_malloc, by binding, and by the calls that queue ops.
 */
#include "residency/recycle.h"

#include "api/threads.h"
#include "capture/capture.h"
#include "residency/room.h"

#include <sched.h>
#include <stdlib.h>

/*
 * `g_taken` stands in for the list from when an op takes all of it until that op is in the FIFO. Else another thread's
 * op, which names memory of its own acs_malloc, could overtake the op that carries the list.
 */
static acs_reuse g_taken;

/*
 * D: acquire; pairs with the releases of add_reuse, acs_recycle_queued and acs_recycle_put_back. Seeing a list implies
 * seeing its nodes; seeing NULL implies that the op that carries the previous list is in the FIFO.
 */
static acs_reuse *wait_while_taken(acs_context *context)
{
    acs_reuse *list;
    while ((list = atomic_load_explicit(&context->reuses, memory_order_acquire)) == &g_taken) /* D */
        if (context->stepper)
            context->stepper->wait_for_thread(context);
        else if (!acs_context_step(context))
            sched_yield(); /* the thread that took it is inside a call, perhaps waiting for room */
    return list;
}

static void add_reuse(acs_context *context, acs_reuse *reuse)
{
    do
        reuse->next = wait_while_taken(context);
    while (!atomic_compare_exchange_weak_explicit(&context->reuses, &reuse->next, reuse, memory_order_acq_rel, /* D */
                                                  memory_order_relaxed));
}

void acs_recycle_attach(acs_draft *draft)
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

void acs_recycle_queued(acs_draft *draft)
{
    acs_context *context = draft->context;
    if (!draft->reuses)
        return;
    atomic_store_explicit(&context->reuses, NULL, memory_order_release); /* D */
    atomic_fetch_sub_explicit(&context->modes, ACS_MODE_REUSE * draft->reuses, memory_order_release); /* E */
    draft->reuses = 0;
}

void acs_recycle_put_back(acs_draft *draft)
{
    if (!draft->reuses)
        return;
    draft->record->flags &= (uint8_t)~ACS_RECORD_REUSES;
    atomic_store_explicit(&draft->context->reuses, draft->record->reuses, memory_order_release); /* D */
    draft->reuses = 0;
}

/* An op can carry only ACS_REUSES_MOST ranges. Before there are more, an op that does nothing else takes them. */
acs_status acs_recycle_add(acs_context *context, uint64_t base, uint64_t bytes)
{
    static const acs_site site = {"acs_malloc", NULL, 0};
    acs_draft draft;
    acs_reuse *reuse = malloc(sizeof *reuse);
    if (!reuse)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to hand a block out again");
    *reuse = (acs_reuse){.base = base, .bytes = bytes};
    /*
     * Counted before it is listed, since any op that finds it in the list counts it down. E: relaxed; the range itself
     * is published by D.
     */
    const uint64_t modes = atomic_fetch_add_explicit(&context->modes, ACS_MODE_REUSE, memory_order_relaxed);
    add_reuse(context, reuse);
    if (modes / ACS_MODE_REUSE + 1 < ACS_REUSES_MOST || acs_capture_on(context))
        return ACS_OK;
    bool queued = acs_room_begin_observe(&draft, context, &site) && acs_draft_queue(&draft);
    return queued ? ACS_OK : acs_error_thread()->status;
}
