/*
 * The choice of versions (window/versions.h): how many ops run side by side, and so which share of the device an op will
 * have. Called under the core's lock when a batch has been formed, by insert.c and by bundles. Pure bookkeeping; the call
 * that queued the op has said which version is best for each share.
 *
 * ConCo (section 3.5) fixes version and share of a model beforehand. Here the window tells what runs beside an op.
 */
#include "scheduler/core_internal.h"

#include "base/tuning.h"
#include "window/versions.h"

/* Ops of the device that may be running at once: a slot runs its ops one after the other, but for bundles. */
static uint32_t running_beside(const acs_core *core, uint32_t device)
{
    uint32_t ops = 0;
    for (uint32_t s = 0; s < core->slots.used; s++)
        if (core->slots.slot[s].outstanding > 0 && acs_slot_device(&core->slots, s) == device)
            ops += core->slots.slot[s].width;
    return ops;
}

/* Ready ops of the device that wait for no op that runs, as far as a short look tells. */
static uint32_t ready_beside(const acs_core *core, uint32_t device)
{
    const acs_window *w = &core->window;
    uint32_t ops = 0, looked = 0;
    for (uint32_t i = w->ready.head; i && looked < TUNE_VERSIONS_LOOK; i = w->entries[i].queue_next, looked++) {
        const acs_entry *entry = &w->entries[i];
        ops += entry->device == device && !entry->on_host && acs_slots_reached(&core->slots, entry);
    }
    return ops;
}

void acs_core_pick_versions_locked(acs_core *core, const acs_batch *batch, uint32_t more)
{
    const uint32_t beside = running_beside(core, batch->device) + ready_beside(core, batch->device);
    const uint32_t share = acs_share_among(beside > more ? beside : more);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_record *op = batch->items[i].op;
        if (op && op->flags & ACS_RECORD_VERSIONS)
            acs_versions_pick(op, share);
    }
    /* relaxed: a hint for calls that have to choose at once */
    atomic_store_explicit(&core->share_now, share, memory_order_relaxed);
}
