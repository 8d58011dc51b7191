/*
 * Late failures: ops that were booked as issued, and that a backend's issuing thread could not launch (issue_queue.h).
 * Called at the begin of steps, under the core's lock. Decides which of the other ops are to be skipped, by the memory
 * that they touch, as poison.c does for later ones. It waits for nothing: where the queues do not stand yet, a later step
 * decides.
 */
#include "scheduler/core_internal.h"

/* A batch that is being submitted may still give commands. */
static bool is_batch_under_way(const acs_core *core)
{
    const acs_action *action = core->under_way;
    while (action && !(action->type == ACS_ACTION_SUBMIT && action->batch.items_used))
        action = action->next_under_way;
    return action != NULL;
}

/* The command of an entry's op, if it has not been carried out; else NULL. */
static acs_command *find_command(acs_issue_queue *queue, const acs_entry *entry)
{
    acs_command *command;
    if (entry->slot < 0)
        return NULL;
    for (uint32_t i = 0; (command = acs_issue_queue_at(queue, (uint32_t)entry->slot, i)) != NULL; i++)
        if (command->type == ACS_COMMAND_OP && command->value == entry->value)
            return command;
    return NULL;
}

/*
 * Ops that are inserted later find the failure of an issued entry in memory, since regions may have forgotten the entry: an
 * issued reader implies those before it in its slot. Joins behind it are issued as well, and carry the failure on.
 */
static void tell_joins(acs_window *w, const acs_entry *entry, acs_op failed_by)
{
    for (uint32_t at = entry->edges; at; at = w->edges[at].next) {
        acs_entry *down = &w->entries[w->edges[at].down];
        if (down->kind != ACS_KIND_JOIN || down->never_skipped || down->failed_by)
            continue;
        down->failed_by = failed_by;
        tell_joins(w, down, failed_by);
    }
}

static void tell_later(acs_window *w, const acs_entry *entry)
{
    acs_depend_poison(w, entry->op, entry->failed_by);
    tell_joins(w, entry, entry->failed_by);
}

/* The op ends once its place in the slot is reached. */
static void fail(acs_core *core, acs_command *command)
{
    acs_entry *entry = acs_window_find(&core->window, command->op->seq);
    ACS_ASSERT(entry && entry->state == ACS_ENTRY_ISSUED && entry->status == ACS_OK); /* ISSUE-2 */
    command->told = true;
    acs_core_count_issued_locked(core, entry, ACS_METHOD_LAUNCH, -1);
    acs_core_report_locked(core, entry, command->status, command->native, command->text);
    entry->failed_by = entry->seq;
    tell_later(&core->window, entry);
}

/* The failure for which an op is to be skipped; 0: none. Of ops that failed, or will be skipped, before it. */
static acs_op find_cause(const acs_window *w, const acs_entry *entry)
{
    for (uint32_t i = w->order_head; i != entry->index; i = w->entries[i].order_next) {
        const acs_entry *before = &w->entries[i];
        /* of a replay some ops may be skipped, which it tells when it is booked (replays.c) */
        const bool told = before->failed_by && !before->observer && before->kind != ACS_KIND_REPLAY;
        if (told && acs_depend_follows(w, before->op, entry->op))
            return before->failed_by;
    }
    return 0;
}

/* Let an op that has not begun learn of failures before it. */
static void tell_entry(acs_core *core, acs_issue_queue *queue, acs_entry *entry)
{
    acs_window *w = &core->window;
    const bool waits = entry->state == ACS_ENTRY_PENDING || entry->state == ACS_ENTRY_READY;
    acs_command *command = entry->state == ACS_ENTRY_ISSUED ? find_command(queue, entry) : NULL;
    /* a replay looks for itself when it is placed */
    if ((!waits && !command) || entry->failed_by || entry->never_skipped || entry->kind == ACS_KIND_REPLAY)
        return;
    entry->failed_by = find_cause(w, entry);
    if (!entry->failed_by)
        return;
    if (command && !entry->propagates_failure) {
        command->skip = true;
        acs_core_count_issued_locked(core, entry, ACS_METHOD_LAUNCH, -1);
        entry->status = ACS_ERR_SKIPPED;
    }
    if (command)
        tell_later(w, entry);
}

/* Ready ops that are to be skipped are ready no more. */
static void skip_ready(acs_window *w)
{
    for (uint32_t i = w->ready.head; i;) {
        acs_entry *entry = &w->entries[i];
        const bool skipped = entry->failed_by && !entry->propagates_failure && entry->kind != ACS_KIND_REPLAY;
        if (skipped) {
            acs_window_remove_ready(w, entry);
            acs_window_release(w, entry);
        }
        i = skipped ? w->ready.head : entry->queue_next; /* others may have become ready */
    }
}

bool acs_core_late_locked(acs_core *core)
{
    acs_issue_queue *queue = core->backend->queue;
    acs_window *w = &core->window;
    if (core->dead)
        return true; /* all ops have ended, whatever the queues still drop */
    if (is_batch_under_way(core) || !acs_issue_queue_stands(queue))
        return false;
    for (uint32_t s = 0; s < core->slots.used; s++) {
        acs_command *first = acs_issue_queue_at(queue, s, 0);
        if (first && first->type == ACS_COMMAND_OP && first->status != ACS_OK && !first->told)
            fail(core, first);
    }
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next)
        tell_entry(core, queue, &w->entries[i]);
    skip_ready(w);
    acs_issue_queue_resume(queue);
    acs_core_collect_locked(core);
    return true;
}
