/*
 * The list of those that follow the core's events (trace.h), and the call of each. Called by the other files of this
 * folder and by bundles under the core's lock; where nobody follows, an event costs one branch.
 */
#include "scheduler/core_internal.h"

void acs_core_trace_event_locked(acs_core *core, acs_trace_type type, const acs_entry *entry, const acs_item *item,
                                 const acs_batch *batch)
{
    acs_trace_event event = {.type = type, .seq = entry->seq, .op = entry->op, .entry = entry->index, .slot = -1,
                             .batch = entry->batch, .status = entry->status};
    if (batch)
        event.method = batch->bundle ? batch->method : (uint8_t)ACS_METHOD_LAUNCH;
    if (item) {
        event.slot = item->slot;
        event.value = item->value;
        event.waits = &batch->waits[item->first_wait];
        event.wait_count = item->wait_count;
        event.bundle = batch->bundle ? batch : NULL;
        event.item = (uint32_t)(item - batch->items);
    }
    for (uint32_t i = 0; i < core->follower_count; i++)
        core->followers[i].function(core->followers[i].user, &event);
}

bool acs_trace_add(acs_core *core, acs_trace_fn function, void *user)
{
    ACS_HOLD(&core->lock);
    const bool room = core->follower_count < ACS_TRACE_FOLLOWERS;
    if (room)
        core->followers[core->follower_count++] = (acs_trace_follower){function, user};
    return room;
}

void acs_trace_remove(acs_core *core, acs_trace_fn function, void *user)
{
    ACS_HOLD(&core->lock);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core->follower_count; i++)
        if (core->followers[i].function != function || core->followers[i].user != user)
            core->followers[kept++] = core->followers[i];
    core->follower_count = kept;
}
