/*
 * Stepping in stepped mode: one thread plays several workers. Each takes the three parts of a step (decide, perform, book)
 * one at a time, in an order that the seed chooses, so that every interleaving of workers, callers and completions can
 * happen and can be replayed. Used instead of threads when the backend is `stepped`.
 */
#include "runtime/context.h"

#include <stdlib.h>

enum { STEPS_AFTER_CALL = 4 };

acs_status acs_virtual_init(acs_context *context)
{
    if (context->backend->ops->id != ACS_BACKEND_STEPPED)
        return ACS_OK;
    int64_t wanted = context->options.workers;
    uint32_t count = wanted < 1 ? 1 : wanted > ACS_VIRTUAL_WORKERS ? ACS_VIRTUAL_WORKERS : (uint32_t)wanted;
    context->random.state = (uint64_t)context->options.seed;
    for (uint32_t i = 0; i < count; i++) {
        context->virtual_workers[i].action = calloc(1, sizeof(acs_action));
        if (!context->virtual_workers[i].action)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for a virtual worker");
        context->virtual_count++;
    }
    return ACS_OK;
}

void acs_virtual_fini(acs_context *context)
{
    for (uint32_t i = 0; i < ACS_VIRTUAL_WORKERS; i++)
        free(context->virtual_workers[i].action);
    context->virtual_count = 0;
}

/* One part of one worker's step. */
static bool advance(acs_context *context, acs_virtual_worker *worker)
{
    acs_core *core = &context->core;
    if (worker->stage == 0) {
        if (!acs_core_next(core, ACS_MAY_ALL, worker->action))
            return worker->action->watched;
        worker->stage = 1;
    } else if (worker->stage == 1) {
        acs_inside_set(true);
        acs_core_perform(core, worker->action);
        acs_inside_set(false);
        worker->stage = 2;
    } else {
        acs_core_done(core, worker->action);
        worker->stage = 0;
    }
    return true;
}

bool acs_virtual_step(acs_context *context)
{
    uint32_t idle = 0;
    /* D: one thread at a time plays; what it did is visible to the next */
    if (!atomic_compare_exchange_strong_explicit(&context->stepping, &idle, 1, memory_order_acquire,
                                                 memory_order_relaxed)) /* relaxed: nothing was read */
        return false;
    bool progress = false;
    uint32_t first = acs_random_below(&context->random, context->virtual_count);
    for (uint32_t i = 0; i < context->virtual_count && !progress; i++)
        progress = advance(context, &context->virtual_workers[(first + i) % context->virtual_count]);
    atomic_store_explicit(&context->stepping, 0, memory_order_release); /* D */
    if (progress)
        acs_gate_open(&context->ends);
    return progress;
}

void acs_virtual_interleave(acs_context *context)
{
    uint32_t idle = 0, steps = 0;
    if (atomic_compare_exchange_strong_explicit(&context->stepping, &idle, 1, memory_order_acquire,
                                                memory_order_relaxed)) { /* D; relaxed: nothing was read */
        steps = acs_random_below(&context->random, STEPS_AFTER_CALL + 1);
        atomic_store_explicit(&context->stepping, 0, memory_order_release); /* D */
    }
    while (steps-- > 0)
        (void)acs_virtual_step(context);
}
