/*
 * Public calls that wait (for all ops, one op, a range), that step once, and that read errors and statistics. wait.c
 * has the waiting itself. Changes nothing that runs.
 */
#include "api/draft.h"

#include "api/decisions.h"
#include "api/failures.h"
#include "api/stats.h"
#include "api/threads.h"
#include "api/wait.h"
#include "api/watchdog.h"
#include "base/nvtx.h"

/* ------------------------------------------------------------------------------------------------------------ waits */

/* Grids that were too large: the first since the last look. */
static acs_status too_large(acs_context *context)
{
    return ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_DECISIONS) ? acs_decisions_look(context) : ACS_OK;
}

/* A wait for `op` is over; 0: for all ops. */
static void end_wait(acs_context *context, acs_op op)
{
    if (ACS_UNLIKELY(acs_context_modes(context) != 0) && context->hooks)
        context->hooks->waited(context, op);
}

acs_status acs_sync(acs_context *context)
{
    ACS_ENTER(context);
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_SECTIONS))
        ACS_TRY(context->hooks->may_wait(context, __func__));
    (void)acs_context_drain(context, __func__);
    end_wait(context, 0);
    (void)too_large(context);
    return acs_failures_first(context, NULL);
}

acs_status acs_context_check_op(acs_context *context, acs_op op, const char *function)
{
    if (ACS_LIKELY(op != 0 && op <= acs_fifo_last(context->core.fifo)))
        return ACS_OK;
    if (context->hooks)
        ACS_TRY(context->hooks->check_op(op, function));
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "op %llu was never queued", (unsigned long long)op);
}

acs_status acs_wait(acs_context *context, acs_op op)
{
    ACS_ENTER(context);
    ACS_TRY(acs_context_check_op(context, op, __func__));
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_push_wait(__func__, op);
    acs_context_wait(context, ACS_WAIT_FOR_OP, op);
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_pop();
    end_wait(context, op);
    ACS_TRY(too_large(context));
    return acs_failures_of(context, op, NULL);
}

acs_status acs_query(acs_context *context, acs_op op)
{
    ACS_ENTER(context);
    ACS_TRY(acs_context_check_op(context, op, __func__));
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_REPEATS))
        context->hooks->flush(context, op, false);
    const acs_wait_condition ended = {.type = ACS_WAIT_FOR_OP, .op = op};
    if (!acs_core_true(&context->core, &ended)) {
        if (acs_workers_asleep(context))
            (void)acs_context_step(context);
        (void)acs_watchdog_look_now(context);
        if (!acs_core_true(&context->core, &ended))
            return ACS_NOT_READY;
    }
    return acs_failures_of(context, op, NULL);
}

acs_status acs_wait_range(acs_context *context, const void *ptr, size_t bytes, acs_access access)
{
    static const acs_site site = {"acs_wait_range", NULL, 0};
    acs_draft draft = {.context = acs_context_enter(context, __func__), .site = &site};
    if (!draft.context)
        return acs_error_thread()->status;
    if (ACS_UNLIKELY(bytes == ACS_WHOLE))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_wait_range: ACS_WHOLE is for footprints: give the number of bytes");
    if (!acs_draft_begin(&draft, ACS_KIND_OBSERVE))
        return acs_error_thread()->status;
    const acs_segment segment = ACS_BYTES_(access == ACS_COMMUTE ? ACS_UPDATE : access, ptr, bytes);
    acs_uses uses = {&segment, 1, NULL, NULL, 0};
    acs_status status = acs_draft_uses(&draft, &uses, 0, 0);
    if (status != ACS_OK) {
        (void)acs_draft_drop(&draft);
        return status;
    }
    acs_op op = acs_draft_queue(&draft);
    if (!op) /* a wait for number 0 would return at once */
        return acs_error_thread()->status;
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_push_wait(__func__, op);
    acs_context_wait(draft.context, ACS_WAIT_FOR_OP, op);
    if (ACS_UNLIKELY(acs_nvtx_taken))
        acs_nvtx_pop();
    status = acs_failures_of(draft.context, op, NULL);
    if (ACS_UNLIKELY(acs_context_modes(draft.context) & ACS_MODE_BLOCKS) && (access & ACS_WRITE))
        draft.context->hooks->came_home(draft.context, ptr, bytes, status);
    end_wait(draft.context, op);
    ACS_TRY(too_large(draft.context));
    return status;
}

acs_status acs_step(acs_context *context)
{
    ACS_ENTER(context);
    if (ACS_UNLIKELY(acs_context_modes(context) & ACS_MODE_REPEATS))
        context->hooks->flush(context, UINT64_MAX, false);
    return acs_context_step(context) || acs_watchdog_look_now(context) ? ACS_OK : ACS_NOT_READY;
}

/* ---------------------------------------------------------------------------------------------------------- queries */

acs_status acs_context_error(acs_context *context, acs_error *error)
{
    ACS_ENTER(context);
    (void)too_large(context);
    return acs_failures_first(context, error);
}

acs_status acs_op_error(acs_context *context, acs_op op, acs_error *error)
{
    context = acs_context_enter(context, __func__);
    return context ? acs_failures_of(context, op, error) : acs_error_thread()->status;
}

acs_status acs_clear(acs_context *context)
{
    ACS_ENTER(context);
    if (context->hooks)
        context->hooks->clear(context);
    const bool again = acs_context_drain(context, __func__);
    (void)too_large(context);
    acs_failures_clear(context);
    acs_core_clear(&context->core);
    if (again) /* copies home failed: they are made again now; the next call reports those that fail again */
        (void)acs_context_drain(context, __func__);
    return acs_context_is_lost(context) ? ACS_ERR_DEVICE : ACS_OK;
}

acs_status acs_stats(acs_context *context, acs_statistics *stats)
{
    ACS_ENTER(context);
    acs_statistics now;
    if (!stats || stats->size < sizeof stats->size || stats->size > sizeof now)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_stats: stats->size is %zu; it must be set, and at most %zu",
                        stats ? (size_t)stats->size : (size_t)0, sizeof now);
    acs_stats_read(context, &now);
    now.size = stats->size;
    memcpy(stats, &now, stats->size);
    return ACS_OK;
}

acs_status acs_reaches(acs_context *context, const void *ptr)
{
    ACS_ENTER(context);
    const acs_backend_ops *ops = context->backend->ops;
    return ops->reaches ? ops->reaches(context->backend, (uint64_t)(uintptr_t)ptr) : ACS_OK;
}

int acs_context_backend(acs_context *context)
{
    context = acs_context_enter(context, "acs_context_backend");
    return context ? context->backend->ops->id : -1;
}
