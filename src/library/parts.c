/*
 * The parts of this library: its backends, its batcher, and what optional parts do beside a launch or a wait, and while
 * a context opens and closes. The order of the parts matters. src/api calls it through the tables acs_parts and
 * acs_op_hooks alone. Keeps nothing.
 */
#include "api/program_order.h"
#include "api/decisions.h"
#include "api/draft.h"
#include "api/failures.h"
#include "bundles/bundler.h"
#include "capture/capture.h"
#include "checks/launch_check.h"
#include "debug/debug_options.h"
#include "groups/admission.h"
#include "groups/group_schedule.h"
#include "groups/group.h"
#include "groups/ledger_member.h"
#include "library/select.h"
#include "report/report.h"
#include "residency/bind.h"
#include "residency/device_choice.h"
#include "repeats/repeat.h"
#include "residency/recycle.h"
#include "simulator/sim_driver.h"
#include "variants/variants.h"

/* ----------------------------------------------------------------------------------------------------------- launch */

/* Refuse an op that cannot become a node. It leaves a hole in program order, which a wait does not. */
static bool admit_to_capture(acs_draft *draft, acs_op_kind kind)
{
    if (acs_capture_check(kind) == ACS_OK)
        return true;
    acs_draft_blame(draft);
    if (kind != ACS_KIND_OBSERVE)
        (void)acs_failures_refuse(draft->context, NULL);
    return false;
}

/* Most places at which an op may have to look at a block: an op that only observes looks at all places. */
static uint8_t places_of(const acs_context *context, acs_op_kind kind)
{
    const bool looks = kind == ACS_KIND_OBSERVE || kind == ACS_KIND_STREAM_WAIT || kind == ACS_KIND_STREAM_SIGNAL;
    return looks && context->device_choice ? (uint8_t)(context->device_choice->count + 1) : 1;
}

static void clear(acs_context *context)
{
    acs_capture_abandon(context);
    acs_checks_clear(context);
}

static void report(acs_context *context, const acs_statistics *statistics)
{
    acs_repeats_report(context);
    acs_book_report(context->variants);
    acs_device_choice_report(context, statistics);
}

static bool idle(acs_context *context)
{
    acs_ledger_member_give_back_if_idle(context);
    return acs_repeats_idle(context);
}

static acs_op launch_beside(acs_context *context, const acs_launch_params *params)
{
    const uint64_t modes = acs_context_modes(context);
    if (modes & ACS_MODE_CHECK)
        return acs_check_launch(context, params);
    if ((modes & ACS_MODE_DECISIONS || params->grid_from.word) && acs_decisions_decides(context, params))
        return acs_decisions_launch(context, params);
    acs_op op = (modes & ACS_MODES_LAUNCH) == ACS_MODE_REPEATS ? acs_repeats_launch(context, params) : 0;
    return op ? op : acs_launch_unchecked(context, params);
}

static acs_op launch_version(acs_context *context, const acs_launch_params *params)
{
    return acs_variant_launch(context, params, launch_beside);
}

static void opened(acs_context *context)
{
    if (acs_variant_sets_exist())
        acs_context_add_mode(context, ACS_MODE_VARIANTS);
}

static bool begin_op(acs_draft *draft, acs_op_kind kind)
{
    acs_order_enter(draft);
    draft->captured = acs_capture_on(draft->context);
    draft->group = draft->own ? NULL : acs_group_on(draft->context);
    draft->places = places_of(draft->context, kind);
    if ((draft->captured && !admit_to_capture(draft, kind)) || (draft->group && !acs_group_begin_op(draft, kind))) {
        acs_order_leave(draft);
        return false;
    }
    return true;
}

static acs_status bind(acs_draft *draft)
{
    if (acs_relocatables_none(draft->context))
        return ACS_OK;
    return draft->group ? acs_bind_check(draft) : acs_bind(draft);
}

static void queued(acs_draft *draft, acs_op op)
{
    acs_recycle_queued(draft);
    if (draft->bound)
        acs_bind_end(draft, op);
    if (draft->check)
        acs_check_op_end(draft, op);
    acs_order_leave(draft);
}

/*
 * Hold the op in a group, or make it a node. Otherwise blocks that it overwrites begin a new life, and it takes the
 * lives that begin with the next op. False: the caller queues it.
 */
static bool submit(acs_draft *draft, acs_op *op)
{
    if (draft->group) {
        *op = acs_group_hold(draft);
        acs_order_leave(draft);
        return true;
    }
    if (acs_draft_begin_contents(draft) != ACS_OK) {
        *op = acs_draft_drop(draft);
        return true;
    }
    if (draft->modes & ACS_MODE_REPEATS && !draft->captured && (*op = acs_repeats_queue(draft)) != 0)
        return true;
    if (draft->captured) {
        *op = acs_capture_add(draft);
        queued(draft, *op);
        return true;
    }
    if (draft->modes & ACS_MODE_CHECK)
        acs_check_op_begin(draft);
    if (draft->modes & ACS_MODE_BARRIERS)
        acs_barriers_mark(draft);
    if (acs_context_modes(draft->context) & ACS_MODE_REUSES) /* blocks that it overwrites may have begun lives */
        acs_recycle_attach(draft);
    return false;
}

static void drop(acs_draft *draft)
{
    if (draft->context->device_choice && draft->record)
        /* Under the lock while it is bound; else it is not counted. */
        acs_device_choice_drop(draft->context, draft->record);
    if (draft->bound)
        acs_bind_end(draft, 0);
    acs_recycle_put_back(draft);
    acs_check_op_drop(draft);
    acs_order_leave(draft);
}

static void ended(acs_context *context, const acs_end *end)
{
    acs_device_choice_ended(context, end->op, end->status);
}

/* ------------------------------------------------------------------------------------------------------------ waits */

static acs_status may_wait(acs_context *context, const char *function)
{
    if (acs_capture_on(context))
        return acs_capture_no_wait(function);
    return acs_group_on(context) ? acs_group_no_wait(function) : ACS_OK;
}

static void before_drain(acs_context *context)
{
    (void)acs_relocatables_make_canonical(context);
}

static void waited(acs_context *context, acs_op op)
{
    if (op)
        acs_device_choice_waited(context, op);
    acs_ledger_member_give_back_if_idle(context);
}

static acs_status check_op(acs_op op, const char *function)
{
    ACS_TRY(acs_capture_check_op(op, function));
    return acs_group_check_op(op, function);
}

static bool free_in_group(acs_context *context, void *ptr, const acs_site *site, acs_op *op)
{
    if (!acs_group_on(context))
        return false;
    *op = acs_group_free(context, ptr, site);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- statistics */

static void count(acs_context *context, acs_statistics *s)
{
    s->captured = acs_captures_count(context);
    acs_relocatables_count(context, s);
    acs_device_choice_count(context, s);
    acs_repeats_count(context, s);
    acs_book_count(context->variants, &s->variants, &s->trials);
}

static const acs_op_hooks g_hooks = {
    .launch = launch_beside,
    .launch_version = launch_version,
    .recur = acs_repeats_launch,
    .begin = begin_op,
    .bind = bind,
    .pin = acs_relocatable_pin,
    .registered = acs_checks_registered,
    .submit = submit,
    .queued = queued,
    .drop = drop,
    .ended = ended,
    .push = acs_repeats_push,
    .flush = acs_repeats_flush,
    .may_wait = may_wait,
    .before_drain = before_drain,
    .drained = acs_relocatables_hand_over,
    .came_home = acs_relocatables_hand_over_part,
    .waited = waited,
    .check_op = check_op,
    .free = free_in_group,
    .capture = acs_capture_current,
    .capture_memory = acs_capture_memory,
    .group_number = acs_group_number,
    .kept = acs_ledger_member_kept,
    .count = count,
    .report = report,
    .clear = clear,
    .opened = opened,
    .idle = idle,
};

/* --------------------------------------------------------------------------------------------------- open and close */

static acs_status begin_parts(acs_context *context)
{
    if (context->options.check >= ACS_CHECK_WRITES) {
        ACS_TRY(acs_order_open(context));
        ACS_TRY(acs_checks_open(context));
        acs_context_add_mode(context, ACS_MODE_CHECK);
    }
    ACS_TRY(acs_barriers_open(context));
    return acs_captures_init(context);
}

/*
 * Limit each device's memory. Devices that share a GPU have a share of it each; what one of them leaves idle is not
 * given to the others.
 */
static acs_status find_limit(acs_context *context, uint64_t *limit)
{
    acs_backend *backend = context->backend;
    for (uint32_t d = 0; context->device_choice && context->device_choice->topology.shared && d < backend->devices;
         d++) {
        acs_capacity has;
        ACS_TRY(backend->ops->capacity(backend, d, &has));
        if (has.memory < UINT64_MAX && (!*limit || has.memory < *limit))
            *limit = has.memory;
    }
    return ACS_OK;
}

static acs_status open_pools(acs_context *context, acs_memory_config *config)
{
    ACS_TRY(find_limit(context, &config->limit));
    ACS_TRY(acs_ledger_member_join(context));
    acs_admission_config(context, config);
    ACS_TRY(acs_memory_log_open(context));
    return acs_relocatables_open(context);
}

static acs_status core_opened(acs_context *context)
{
    ACS_TRY(acs_group_schedule_open(context));
    ACS_TRY(acs_dot_open(context));
    acs_op_log_open(context);
    ACS_TRY(acs_repeats_open(context));
    ACS_TRY(acs_variant_book_open(context));
    ACS_TRY(acs_sim_driver_open(context));
    return acs_report_open(context);
}

static void all_ended(acs_context *context)
{
    acs_groups_fini(context);
    acs_relocatables_close(context);
    acs_memory_log_leaks(context);
    acs_memory_log_close(context);
    acs_dot_close(context);
    acs_report_write(context);
    acs_tune_close(context);
}

static void close_parts(acs_context *context)
{
    acs_checks_close(context);
    acs_barriers_close(context);
    acs_dot_close(context);
    acs_report_close(context);
    acs_repeats_close(context);
    acs_sim_driver_close(context);
    acs_captures_fini(context);
    acs_relocatables_close(context);
    acs_group_schedule_close(context);
    acs_device_choice_close(context);
    acs_memory_log_close(context);
    acs_variant_book_close(context);
}

static void pools_closed(acs_context *context, bool keep)
{
    acs_memory_destroy(acs_context_addresses(context), keep);
    acs_ledger_member_leave(context);
    acs_order_close(context);
}

const acs_parts acs_library_parts = {
    .open_backend = acs_backend_open,
    .batcher = &acs_bundle_batcher,
    .hooks = &g_hooks,
    .begin = begin_parts,
    .backend_opened = acs_device_choice_open,
    .pools = open_pools,
    .core_opened = core_opened,
    .drained = all_ended,
    .close = close_parts,
    .closed = pools_closed,
};
