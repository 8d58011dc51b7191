/*
 * Waits: for everything, for one op, for a range. A waiting thread steps the core itself (worker.c), so no wait depends on a
 * sleeping worker. Nothing here changes what runs.
 */
#include "runtime/admission.h"
#include "runtime/movable.h"
#include "runtime/spread.h"

/* What waits for everything may go on to reach memory in any way; where a copy home fails that is an op's error. */
bool acs_context_drain(acs_context *context)
{
    (void)acs_movables_home(context);
    acs_context_wait(context, ACS_WATCH_ALL, acs_fifo_last(context->core.fifo));
    return acs_movables_came_home(context);
}

acs_status acs_sync(acs_context *context)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (acs_capture_on(context))
        return acs_capture_no_wait(__func__);
    if (acs_group_on(context))
        return acs_group_no_wait(__func__);
    (void)acs_context_drain(context);
    acs_admission_rest(context);
    return acs_failures_first(context, NULL);
}

static acs_status check_op(acs_context *context, acs_op op, const char *function)
{
    ACS_TRY(acs_capture_check_op(op, function));
    ACS_TRY(acs_group_check_op(op, function));
    if (op == 0 || op > acs_fifo_last(context->core.fifo))
        return acs_fail(ACS_ERR_ARGUMENT, 0, function, "op %llu was never queued", (unsigned long long)op);
    return ACS_OK;
}

acs_status acs_wait(acs_context *context, acs_op op)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    ACS_TRY(check_op(context, op, __func__));
    acs_context_wait(context, ACS_WATCH_OP, op);
    acs_spread_waited(context, op);
    acs_admission_rest(context);
    return acs_failures_of(context, op, NULL);
}

acs_status acs_query(acs_context *context, acs_op op)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    ACS_TRY(check_op(context, op, __func__));
    const acs_watch ended = {.type = ACS_WATCH_OP, .op = op};
    if (!acs_core_true(&context->core, &ended)) {
        if (acs_context_unattended(context))
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
    if (!acs_draft_begin(&draft, ACS_KIND_OBSERVE))
        return acs_error_thread()->status;
    const acs_segment segment = ACS_BYTES_(access, ptr, bytes);
    acs_uses uses = {&segment, 1, NULL, NULL, 0};
    acs_status status = acs_draft_uses(&draft, &uses, NULL, 0, 0);
    if (status != ACS_OK) {
        (void)acs_draft_drop(&draft);
        return status;
    }
    acs_op op = acs_draft_queue(&draft);
    if (!op) /* as its number, 0 would be an op that ended long ago */
        return acs_error_thread()->status;
    acs_context_wait(draft.context, ACS_WATCH_OP, op);
    acs_spread_waited(draft.context, op);
    status = acs_failures_of(draft.context, op, NULL);
    if (access & ACS_WRITE)
        acs_movable_part_came_home(draft.context, ptr, bytes, status);
    acs_admission_rest(draft.context);
    return status;
}

acs_status acs_step(acs_context *context)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    return acs_context_step(context) || acs_watchdog_look_now(context) ? ACS_OK : ACS_NOT_READY;
}
