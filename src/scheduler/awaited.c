/*
 * The op that a caller waits for: while the device has little to do, what leads to it is issued before all else, and
 * its slot can be polled by itself. A program that reads a result to decide what comes next so waits for what the
 * result depends on, and not for what it happened to launch before. Called by the core's steps under its lock; what is
 * waited for is a hint that callers leave without it.
 */
#include "scheduler/core.h"

#include "base/tuning.h"

void acs_core_want(acs_core *core, acs_op op)
{
    atomic_store_explicit(&core->wanted, op, memory_order_relaxed); /* a hint; the newest caller's */
}

void acs_core_want_no_more(acs_core *core, acs_op op)
{
    if (atomic_load_explicit(&core->wanted, memory_order_relaxed) == op) /* both relaxed: as above */
        atomic_store_explicit(&core->wanted, 0, memory_order_relaxed);
}

/* The op that is waited for, if it is in the window. */
static acs_entry *find_wanted(acs_core *core)
{
    acs_op op = atomic_load_explicit(&core->wanted, memory_order_relaxed); /* a hint */
    return op && op <= core->taken ? acs_window_find(&core->window, op) : NULL;
}

bool acs_core_awaits_end_locked(acs_core *core)
{
    const acs_entry *entry = find_wanted(core);
    if (!entry)
        return atomic_load_explicit(&core->wanted, memory_order_relaxed) == 0; /* a hint */
    if (entry->state != ACS_ENTRY_ISSUED || entry->slot < 0)
        return false;
    const uint64_t *clock = acs_entry_clock(&core->window, entry);
    bool behind = true;
    for (uint32_t s = 0; s < core->slots.used && behind; s++) {
        const acs_slot *slot = &core->slots.slot[s];
        behind = slot->outstanding == 0 || ((int)s == entry->slot ? entry->value : clock[s]) >= slot->issued;
    }
    return behind;
}

/* ------------------------------------------------------------------------------------------------------------ issue */

static bool waits_for_issue(const acs_entry *entry)
{
    return entry->state == ACS_ENTRY_PENDING || entry->state == ACS_ENTRY_READY;
}

static bool leads_to_urgent(const acs_window *w, const acs_entry *entry, uint32_t joins)
{
    for (uint32_t e = entry->edges; e; e = w->edges[e].next) {
        const acs_entry *down = &w->entries[w->edges[e].down];
        bool leads = down->kind == ACS_KIND_JOIN ? joins > 0 && leads_to_urgent(w, down, joins - 1) : down->urgent;
        if (leads)
            return true;
    }
    return false;
}

/* Ops that have to be issued for `wanted`, newest first: how many, of `most` at most that are looked at. */
static uint32_t list_urgent(acs_core *core, const acs_entry *wanted, uint32_t *urgent, uint32_t most)
{
    acs_window *w = &core->window;
    uint32_t count = 0;
    for (uint32_t i = wanted->index; i && most > 0; i = w->entries[i].order_prev, most--) {
        acs_entry *entry = &w->entries[i];
        entry->urgent = waits_for_issue(entry) && (entry == wanted || leads_to_urgent(w, entry, TUNE_AWAITED_JOINS));
        if (entry->urgent)
            urgent[count++] = i;
    }
    return count;
}

acs_op acs_core_awaited_locked(acs_core *core)
{
    const acs_entry *entry = find_wanted(core);
    return entry && waits_for_issue(entry) ? entry->seq : 0;
}

bool acs_core_hurry_locked(acs_core *core)
{
    acs_window *w = &core->window;
    uint32_t urgent[TUNE_AWAITED_LOOK_BACK], ready = 0;
    acs_entry *wanted = core->in_order || core->running >= TUNE_BUSY_OPS ? NULL : find_wanted(core);
    if (!wanted || wanted->seq == core->hurried)
        return false;
    uint32_t count = waits_for_issue(wanted) ? list_urgent(core, wanted, urgent, TUNE_AWAITED_LOOK_BACK) : 0;
    bool ends_by_itself = count == 1 && wanted->on_host && wanted->state == ACS_ENTRY_PENDING;
    if (count == 0 || ends_by_itself || count >= core->batch_least) {
        core->hurried = wanted->seq; /* nothing is left to do for it, or so much that it is a bundle */
        return false;
    }
    for (uint32_t i = 0; i < count; i++) { /* the oldest ends up in front */
        acs_entry *entry = acs_window_entry(w, urgent[i]);
        entry->alone = true;
        if (entry->state != ACS_ENTRY_READY)
            continue;
        acs_window_remove_ready(w, entry);
        acs_window_push_ready(w, entry, true);
        ready++;
    }
    return ready > 0;
}

/* ------------------------------------------------------------------------------------------------------------- poll */

/* Another thread looks at its device. */
static bool is_polled(const acs_core *core, const acs_entry *entry)
{
    return core->polling >> acs_slot_device(&core->slots, (uint32_t)entry->slot) & 1;
}

void acs_core_list_poll_locked(acs_core *core, acs_action *action, uint32_t slot)
{
    ACS_ASSERT(action->poll_count < ACS_SLOTS_MAX);
    acs_poll *poll = &action->polls[action->poll_count];
    poll->slot = (uint16_t)slot;
    poll->completed = 0;
    poll->mark_count = (uint16_t)acs_slots_marks(&core->slots, slot, poll->marks, TUNE_POLL_EVENTS);
    action->poll_count += poll->mark_count > 0;
    action->poll_devices |= poll->mark_count > 0 ? 1u << acs_slot_device(&core->slots, slot) : 0;
}

void acs_core_list_awaited_locked(acs_core *core, acs_action *action)
{
    const acs_entry *entry = find_wanted(core);
    if (entry && entry->state == ACS_ENTRY_ISSUED && entry->slot >= 0 && !is_polled(core, entry))
        acs_core_list_poll_locked(core, action, (uint32_t)entry->slot);
}

void acs_core_form_look_locked(acs_core *core, acs_action *action)
{
    const acs_entry *entry = find_wanted(core);
    if (!entry || entry->state != ACS_ENTRY_ISSUED || entry->slot < 0 || is_polled(core, entry))
        return;
    const acs_slot *slot = &core->slots.slot[entry->slot];
    if (slot->marked < entry->value) {
        action->batch_id = ++core->batch_ids;
        action->entries[0] = 0;
        acs_slots_mark_tails(&core->slots, &action->batch, action->batch_id, 1ull << entry->slot);
    } else if (slot->stable >= entry->value) {
        acs_core_list_poll_locked(core, action, (uint32_t)entry->slot);
    }
    core->polling |= action->poll_devices;
}
