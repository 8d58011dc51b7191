/*
 * Replays in the core: which of their ops are to be skipped, and how each ended. Called by insert.c and retire.c under
 * the core's lock. The window treats a replay as one op, which ends well even if ops in it did not. So this file tells
 * their downstream ops of the failure.
 */
#include "scheduler/core_internal.h"

#include "window/replay.h"

/*
 * Let later ops know of the ops that were taken out. Only when the replay is booked, since it may be placed again, and
 * then its ops would learn of those that come behind them. True: there are such.
 */
static bool poison_ends(acs_core *core, acs_replay *replay)
{
    const uint32_t from = replay->ends_told;
    for (; replay->ends_told < replay->end_count; replay->ends_told++) {
        const acs_replay_end *end = &replay->ends[replay->ends_told];
        acs_depend_poison(&core->window, replay->shape->op[end->at], end->cause);
    }
    return from != replay->end_count;
}

/* Pending ops of the window were inserted before the failure, and depend on the replay as a whole. */
static void tell_pending(acs_core *core, const acs_entry *entry)
{
    acs_window *w = &core->window;
    for (uint32_t i = entry->order_next; i; i = w->entries[i].order_next) {
        acs_entry *down = &w->entries[i];
        /* a replay looks for itself when it is placed */
        if (down->state == ACS_ENTRY_PENDING && !down->failed_by && !down->never_skipped &&
            down->kind != ACS_KIND_REPLAY)
            down->failed_by = acs_depend_cause(w, down->op);
    }
}

bool acs_core_replays_hold_back_locked(const acs_core *core)
{
    const acs_window *w = &core->window;
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next) {
        const acs_entry *entry = &w->entries[i];
        if (entry->kind == ACS_KIND_REPLAY && entry->state < ACS_ENTRY_ISSUED)
            return true;
    }
    return false;
}

void acs_core_replay_placed_locked(acs_core *core, acs_entry *entry)
{
    acs_replay *replay = entry->op->u.replay.replay;
    entry->failed_by = 0; /* its downstream ops learn of failures through memory */
    if (ACS_LIKELY(!acs_window_has_poison(&core->window)))
        return;
    for (uint32_t at = 0; at < replay->shape->ops; at++) {
        if (!acs_replay_has(replay, at))
            continue;
        const acs_op before = acs_depend_cause(&core->window, acs_replay_op(replay, at));
        const acs_op cause = before ? before : acs_replay_cause(replay, at);
        const acs_replay_end end = {.at = at, .status = ACS_ERR_SKIPPED, .cause = cause};
        if (cause)
            acs_replay_take_out(replay, &end);
    }
    tell_pending(core, entry); /* of a failure before the replay: they follow the failed op by the replay alone */
}

void acs_core_replay_booked_locked(acs_core *core, const acs_entry *entry)
{
    if (ACS_UNLIKELY(poison_ends(core, entry->op->u.replay.replay)))
        tell_pending(core, entry);
}

static void report(acs_core *core, acs_replay *replay, uint32_t at, const acs_replay_end *how)
{
    const acs_end end = {.op = acs_replay_op(replay, at),
                         .status = how->status,
                         .failed_by = how->status == ACS_ERR_SKIPPED ? how->cause : 0,
                         .native = how->native,
                         .text = how->text};
    core->counters.skipped += how->status == ACS_ERR_SKIPPED;
    core->counters.failed += how->status != ACS_ERR_SKIPPED && how->status != ACS_OK;
    if (how->status != ACS_OK || !core->config.failures_only)
        core->config.on_end(core->config.user, &end);
}

void acs_core_replay_ended_locked(acs_core *core, const acs_entry *entry)
{
    acs_replay *replay = entry->op->u.replay.replay;
    const acs_replay_end how = {.status = entry->status};
    core->counters.unused_retired += entry->op->u.replay.span - replay->count;
    for (uint32_t i = 0; i < replay->end_count; i++)
        report(core, replay, replay->ends[i].at, &replay->ends[i]);
    for (uint32_t at = 0; at < replay->shape->ops && (how.status != ACS_OK || !core->config.failures_only); at++)
        if (acs_replay_has(replay, at))
            report(core, replay, at, &how);
}
