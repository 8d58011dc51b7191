/*
 * ACS_CHECK=overlap: when an op is issued, find every op under way with conflicting segments, and verify from slots
 * and clocks alone that the two are ordered. Independent of the index that found the dependencies. Takes time
 * proportional to the window for each op: for debugging. Called by insert.c, and by bundles, under the core's lock. It
 * changes nothing.
 */
#include "scheduler/core_internal.h"

bool acs_check_batch_orders(const acs_batch *batch, uint32_t from, uint32_t to)
{
    bool behind[ACS_BATCH_ITEMS] = {false};
    behind[from] = true;
    for (uint32_t i = from + 1; i <= to; i++)
        for (uint32_t e = 0; e < batch->items[i].edge_count && !behind[i]; e++)
            behind[i] = behind[batch->edges[batch->items[i].first_edge + e]];
    return behind[to];
}

/* Whether `before` is in front of `entry`, which is in `batch`; both were placed. */
static bool ordered(acs_core *core, const acs_batch *batch, const acs_entry *before, const acs_entry *entry)
{
    if (before->slot < 0)
        return false;
    if (entry->bundled && before->bundled && before->batch == entry->batch)
        return acs_check_batch_orders(batch, before->batch_count, entry->batch_count);
    if (entry->slot == before->slot)
        return before->value < entry->value;
    const acs_slot *slot = &core->slots.slot[before->slot];
    return before->value <= slot->completed || acs_entry_clock(&core->window, entry)[before->slot] >= before->value;
}

void acs_core_check_issue_locked(acs_core *core, const acs_batch *batch, const acs_entry *entry)
{
    acs_window *w = &core->window;
    if (entry->slot < 0)
        return;
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next) {
        const acs_entry *other = &w->entries[i];
        if (other == entry || other->observer || other->kind == ACS_KIND_CALLBACK)
            continue;
        bool under_way = other->state == ACS_ENTRY_ISSUED || other->state == ACS_ENTRY_ISSUING;
        bool earlier = other->seq < entry->seq;
        if ((under_way || earlier) && acs_records_conflict(other->op, entry->op) &&
            !(earlier && under_way && ordered(core, batch, other, entry)))
            core->config.on_check(core->config.user, entry->op, other->op);
    }
}
