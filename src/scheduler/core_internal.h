/*
 * Private to the files of the core (step.c, insert.c, retire.c, replays.c, awaited.c, overdue.c, check_order.c) and to
 * the maker of bundles (src/bundles/form.c). Functions whose names end in _locked need the core's lock. None blocks,
 * and none calls submit or poll.
 */
#ifndef ACS_CORE_INTERNAL_H
#define ACS_CORE_INTERNAL_H

#include "scheduler/core.h"

/* ---------------------------------------------------------------------------------------------------------- entries */

/* Whether an op may be in a bundle. An op of a refused bundle is launched by itself. */
static inline bool acs_entry_is_bundleable(const acs_entry *entry)
{
    return entry->bundleable && !entry->bounced;
}

/* Whether a ready op is held back for a bundle, and not to be launched by itself. */
static inline bool acs_core_holds(const acs_core *core, const acs_entry *entry)
{
    return core->batching && acs_entry_is_bundleable(entry) && !entry->force_launch && !core->dead;
}

/* --------------------------------------------------------------------------------------------------------- insert.c */

/* Move at most `most` ops from the FIFO into the window, and collect those that end at once. */
void acs_core_insert_locked(acs_core *core, uint32_t most);
/* Fill the action's batch with single ops, or with a bundle. `inserted`: an op entered the window in this step. */
void acs_core_form_batch_locked(acs_core *core, acs_action *action, bool inserted);
/* An op was issued by this method: count it; change -1: it was not, after all. */
void acs_core_count_issued_locked(acs_core *core, const acs_entry *entry, acs_issue_method method, int change);
/* Book the results of a submitted batch. */
void acs_core_book_batch_locked(acs_core *core, acs_action *action);

/* --------------------------------------------------------------------------------------------------------- retire.c */

/* End the slot's completed ops, and those in other slots that are complete because of them. */
void acs_core_retire_locked(acs_core *core, uint32_t slot);
/* Report and free all ended ops; release their records. */
void acs_core_collect_locked(acs_core *core);
/* An op failed: report it now. `text`: static storage, or NULL. */
void acs_core_report_locked(acs_core *core, acs_entry *entry, acs_status status, int native, const char *text);
/* And end it once its slot waits are complete. */
void acs_core_fail_locked(acs_core *core, acs_entry *entry, acs_status status, int native, const char *text);
/* The device is lost: end all its ops with ACS_ERR_DEVICE. The first call reports `error`. */
void acs_core_fault_locked(acs_core *core, acs_error *error);
/* The queue of ops that run on the host. Pop needs an entry in it. */
void acs_core_push_host_locked(acs_core *core, acs_entry *entry);
acs_entry *acs_core_pop_host_locked(acs_core *core);
/* Change the number of running ops. */
void acs_core_running_locked(acs_core *core, int change);
/* A replay was taken that has so many numbers more than one. */
void acs_core_count_spans_locked(acs_core *core, uint32_t more);
/* Slots or host functions have changed: tell the activity, if there is one. */
void acs_core_tell_activity_locked(acs_core *core);
static inline void acs_core_activity_locked(acs_core *core)
{
    if (ACS_UNLIKELY(core->config.activity != NULL))
        acs_core_tell_activity_locked(core);
}
/* Tell the followers of the trace. `item`: of an ISSUE event to a slot, `batch`: also of BOOK; else NULL. */
void acs_core_trace_event_locked(acs_core *core, acs_trace_type type, const acs_entry *entry, const acs_item *item,
                                 const acs_batch *batch);
#define ACS_TRACE(core, type, entry, item, batch)                                                                      \
    do {                                                                                                               \
        if (ACS_UNLIKELY((core)->follower_count))                                                                      \
            acs_core_trace_event_locked(core, type, entry, item, batch);                                               \
    } while (0)

/* -------------------------------------------------------------------------------------------------------- awaited.c */

/* Move the awaited op, or ready ops that lead to it, to the front of the queue. True: they go before all others. */
bool acs_core_hasten_awaited_locked(acs_core *core);
/* The awaited op, if it is in the window and not issued; else 0. */
acs_op acs_core_awaited_locked(acs_core *core);
/* Whether all issued ops have ended once the awaited op has; also true if no single op is awaited. */
bool acs_core_awaits_end_locked(acs_core *core);
/* Add to the action a poll of the awaited op's slot, or a mark if the op has none behind it. */
void acs_core_form_look_locked(acs_core *core, acs_action *action);
/* Add a poll of the awaited op's slot, if it was issued and no other thread polls its device. */
void acs_core_list_awaited_locked(acs_core *core, acs_action *action);
/* Add a poll of a slot, if it has recorded marks. */
void acs_core_list_poll_locked(acs_core *core, acs_action *action, uint32_t slot);

/* ----------------------------------------------------------------------------------------------------------- late.c */

/*
 * Where an issuing thread could not launch an op: decide what follows from it. False: that must wait, and nothing may be
 * issued before.
 */
bool acs_core_late_locked(acs_core *core);

/* -------------------------------------------------------------------------------------------------------- replays.c */

/*
 * Whether an op with which memory is handed out again has to wait for replays before it enters the window: it makes
 * failures in that memory be forgotten. But a replay learns of failures before it through memory, when it is placed.
 */
bool acs_core_replays_hold_back_locked(const acs_core *core);
/* A replay was placed: take out the ops that are to be skipped because earlier ones failed. */
void acs_core_replay_placed_locked(acs_core *core, acs_entry *entry);
/* It was submitted: tell ops behind it of those that were refused. Before its edges are satisfied. */
void acs_core_replay_booked_locked(acs_core *core, const acs_entry *entry);
/* It has ended: report how its ops did. */
void acs_core_replay_ended_locked(acs_core *core, const acs_entry *entry);

/* -------------------------------------------------------------------------------------------------------- overdue.c */

/* Set the watchdog's limit from the options. */
void acs_core_overdue_init(acs_core *core);

/* ---------------------------------------------------------------------------------------------------- check_order.c */

/* Whether a path of the batch's edges leads from item `from` to item `to`. */
bool acs_check_batch_orders(const acs_batch *batch, uint32_t from, uint32_t to);
/* Report to config.on_check each op under way that conflicts with `entry` and is not ordered before it. */
void acs_core_check_issue_locked(acs_core *core, const acs_batch *batch, const acs_entry *entry);

#endif
