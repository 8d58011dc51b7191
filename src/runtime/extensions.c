/*
 * What the library's optional parts do beside a launch and a wait, one part after the other, in the order that matters: the
 * table acs_op_hooks of every context that acs_open makes. Called by launch.c, wait.c, worker.c and context.c through that
 * table alone. Keeps nothing.
 */
#include "runtime/admission.h"
#include "runtime/spread.h"
#include "runtime/written.h"

/* ------------------------------------------------------------------------------------------------------------- launch */

/* Ops that cannot become nodes are refused; they leave a hole in program order, which a wait does not. */
static bool may_capture(acs_draft *draft, acs_op_kind kind)
{
    if (acs_capture_check(kind) == ACS_OK)
        return true;
    acs_draft_blame(draft);
    if (kind != ACS_KIND_OBSERVE)
        (void)acs_failures_refuse(draft->context, NULL);
    return false;
}

/* What looks at a block that is at several places looks at all of them. */
static uint8_t places_of(const acs_context *context, acs_op_kind kind)
{
    const bool looks = kind == ACS_KIND_OBSERVE || kind == ACS_KIND_STREAM_WAIT || kind == ACS_KIND_STREAM_SIGNAL;
    return looks && context->spread ? (uint8_t)(context->spread->count + 1) : 1;
}

static bool begin_op(acs_draft *draft, acs_op_kind kind)
{
    acs_written_enter(draft);
    draft->captured = acs_capture_on(draft->context);
    draft->group = draft->own ? NULL : acs_group_on(draft->context);
    draft->places = places_of(draft->context, kind);
    if ((draft->captured && !may_capture(draft, kind)) || (draft->group && !acs_group_begin_op(draft, kind))) {
        acs_written_leave(draft);
        return false;
    }
    return true;
}

static acs_status bind(acs_draft *draft)
{
    if (acs_movables_none(draft->context))
        return ACS_OK;
    return draft->group ? acs_bind_check(draft) : acs_bind(draft);
}

acs_status acs_draft_begin_contents(acs_draft *draft)
{
    if (!draft->bound || draft->begun)
        return ACS_OK;
    draft->begun = true;
    return acs_bind_begin(draft);
}

static void queued(acs_draft *draft, acs_op op)
{
    acs_reuse_queued(draft);
    if (draft->bound)
        acs_bound(draft, op);
    acs_written_leave(draft);
}

/* Held, or made a node. Else what it begins anew begins now, and it takes the lives that begin with the next op. */
static bool submit(acs_draft *draft, acs_op *op)
{
    if (draft->group) {
        *op = acs_group_hold(draft);
        acs_written_leave(draft);
        return true;
    }
    if (acs_draft_begin_contents(draft) != ACS_OK) {
        *op = acs_draft_drop(draft);
        return true;
    }
    if (draft->captured) {
        *op = acs_capture_add(draft);
        queued(draft, *op);
        return true;
    }
    if (acs_context_modes(draft->context) & ACS_MODE_REUSES) /* what it begins anew may have begun lives */
        acs_reuse_attach(draft);
    return false;
}

static void drop(acs_draft *draft)
{
    if (draft->context->spread && draft->record)
        acs_spread_drop(draft->context, draft->record); /* while it is bound, or it is not counted */
    if (draft->bound)
        acs_bound(draft, 0);
    acs_reuse_put_back(draft);
    acs_written_leave(draft);
}

static void ended(acs_context *context, const acs_end *end)
{
    acs_spread_ended(context, end->op, end->status);
}

/* --------------------------------------------------------------------------------------------------------------- waits */

static acs_status may_wait(acs_context *context, const char *function)
{
    if (acs_capture_on(context))
        return acs_capture_no_wait(function);
    return acs_group_on(context) ? acs_group_no_wait(function) : ACS_OK;
}

static void before_drain(acs_context *context)
{
    (void)acs_movables_home(context);
}

static void waited(acs_context *context, acs_op op)
{
    if (op)
        acs_spread_waited(context, op);
    acs_admission_rest(context);
}

static acs_status check_op(acs_op op, const char *function)
{
    ACS_TRY(acs_capture_check_op(op, function));
    return acs_group_check_op(op, function);
}

const acs_op_hooks acs_extension_hooks = {
    .launch = acs_written_launch,
    .begin = begin_op,
    .bind = bind,
    .submit = submit,
    .queued = queued,
    .drop = drop,
    .ended = ended,
    .may_wait = may_wait,
    .before_drain = before_drain,
    .drained = acs_movables_came_home,
    .came_home = acs_movable_part_came_home,
    .waited = waited,
    .check_op = check_op,
    .clear = acs_capture_abandon,
    .idle = acs_admission_rest,
};
