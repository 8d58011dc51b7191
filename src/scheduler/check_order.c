/*
 * ACS_CHECK=overlap: when an op is issued, find every op under way with conflicting segments, and verify from slots
 * and clocks alone that the two are ordered. Independent of the index that found the dependencies. Takes time
 * proportional to the window for each op: for debugging. Called by insert.c, and by bundles, under the core's lock. It
 * changes nothing.
 */
#include "scheduler/core_internal.h"

static bool segments_conflict(const acs_segment *a, const acs_segment *b)
{
    if (!((a->access | b->access) & ACS_WRITE))
        return false;
    acs_shape x, y;
    bool all_a = a->extent == ACS_EXTENT_ALL, all_b = b->extent == ACS_EXTENT_ALL;
    if (!all_a && acs_shape_of(a, &x) != ACS_OK)
        return false;
    if (!all_b && acs_shape_of(b, &y) != ACS_OK)
        return false;
    return all_a || all_b || acs_shape_overlap(&x, &y);
}

static bool touches(const acs_record *op)
{
    if (op->any)
        return true;
    acs_shape shape;
    for (uint32_t i = 0; i < op->segment_count; i++)
        if (op->segments[i].extent == ACS_EXTENT_ALL || acs_shape_of(&op->segments[i], &shape) == ACS_OK)
            return true;
    return false;
}

static bool ops_conflict(const acs_record *a, const acs_record *b)
{
    if (a->any || b->any)
        return touches(a) && touches(b);
    for (uint32_t i = 0; i < a->segment_count; i++)
        for (uint32_t j = 0; j < b->segment_count; j++)
            if (segments_conflict(&a->segments[i], &b->segments[j]))
                return true;
    return false;
}

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
        if ((under_way || earlier) && ops_conflict(other->op, entry->op) &&
            !(earlier && under_way && ordered(core, batch, other, entry)))
            core->config.on_check(core->config.user, entry->op, other->op);
    }
}
