/*
 * The op that a caller awaits. While the device has little to do, its upstream ops are issued before all others, and
 * its slot can be polled alone. So a program that reads a result, to decide what comes next, does not wait for
 * unrelated earlier ops. Called by the core's steps under its lock. Callers set the awaited op without the lock: it is
 * a hint.
 */
#include "scheduler/core_internal.h"

#include "base/tuning.h"

void acs_core_await(acs_core *core, acs_op op)
{
    atomic_store_explicit(&core->awaited, op, memory_order_relaxed); /* relaxed: a hint; the newest caller's */
}

void acs_core_await_no_more(acs_core *core, acs_op op)
{
    if (atomic_load_explicit(&core->awaited, memory_order_relaxed) == op) /* both relaxed: a hint, as above */
        atomic_store_explicit(&core->awaited, 0, memory_order_relaxed);
}

/* The awaited op; NULL: none is in the window. */
static acs_entry *find_awaited(acs_core *core)
{
    acs_op op = atomic_load_explicit(&core->awaited, memory_order_relaxed); /* relaxed: a hint */
    return op && op <= core->taken ? acs_window_find(&core->window, op) : NULL;
}

bool acs_core_awaits_end_locked(acs_core *core)
{
    const acs_entry *entry = find_awaited(core);
    if (!entry)
        return atomic_load_explicit(&core->awaited, memory_order_relaxed) == 0; /* relaxed: a hint */
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

static bool leads_to_awaited(const acs_window *w, const acs_entry *entry, uint32_t joins)
{
    for (uint32_t e = entry->edges; e; e = w->edges[e].next) {
        const acs_entry *down = &w->entries[w->edges[e].down];
        bool leads = down->kind == ACS_KIND_JOIN ? joins > 0 && leads_to_awaited(w, down, joins - 1) : down->awaited;
        if (leads)
            return true;
    }
    return false;
}

/*
 * List the ops to be issued for `awaited`, newest first, itself included; looks at `most` ops at most. Returns their
 * number.
 */
static uint32_t list_awaited(acs_core *core, const acs_entry *awaited, uint32_t *list, uint32_t most)
{
    acs_window *w = &core->window;
    uint32_t count = 0;
    for (uint32_t i = awaited->index; i && most > 0; i = w->entries[i].order_prev, most--) {
        acs_entry *entry = &w->entries[i];
        entry->awaited = waits_for_issue(entry) && (entry == awaited || leads_to_awaited(w, entry, TUNE_AWAITED_JOINS));
        if (entry->awaited)
            list[count++] = i;
    }
    return count;
}

acs_op acs_core_awaited_locked(acs_core *core)
{
    const acs_entry *entry = find_awaited(core);
    return entry && waits_for_issue(entry) ? entry->seq : 0;
}

bool acs_core_hasten_awaited_locked(acs_core *core)
{
    acs_window *w = &core->window;
    uint32_t list[TUNE_AWAITED_LOOK_BACK], ready = 0;
    acs_entry *awaited = core->in_order || core->running >= TUNE_BUSY_OPS ? NULL : find_awaited(core);
    if (!awaited || awaited->seq == core->awaited_hastened)
        return false;
    uint32_t count = waits_for_issue(awaited) ? list_awaited(core, awaited, list, TUNE_AWAITED_LOOK_BACK) : 0;
    bool ends_by_itself = count == 1 && awaited->on_host && awaited->state == ACS_ENTRY_PENDING;
    if (count == 0 || ends_by_itself || (core->batching && count >= core->batch_least)) {
        core->awaited_hastened = awaited->seq; /* nothing is left to do for it, or enough for a bundle */
        return false;
    }
    for (uint32_t i = 0; i < count; i++) { /* the oldest ends up in front */
        acs_entry *entry = acs_window_entry(w, list[i]);
        entry->force_launch = true;
        if (entry->state != ACS_ENTRY_READY)
            continue;
        acs_window_remove_ready(w, entry);
        acs_window_push_ready(w, entry, true);
        ready++;
    }
    return ready > 0;
}

/* ------------------------------------------------------------------------------------------------------------- poll */

/* Whether another thread polls the entry's device. */
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
    const acs_entry *entry = find_awaited(core);
    if (entry && entry->state == ACS_ENTRY_ISSUED && entry->slot >= 0 && !is_polled(core, entry))
        acs_core_list_poll_locked(core, action, (uint32_t)entry->slot);
}

void acs_core_form_look_locked(acs_core *core, acs_action *action)
{
    const acs_entry *entry = find_awaited(core);
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
