/*
 * The way of a batch to the simulated machine: its items in the order of issue, and refusals. Called by the core
 * through the ops table of sim.c, under no lock but its own. Marks and waits are sim_order.c's, the needs of kernels
 * sim_kernel.c's. Never lets time pass.
 */
#include "simulator/sim_internal.h"

static void launch(acs_sim_state *s, acs_record *op, uint32_t slot)
{
    uint32_t stream = s->slot[slot].stream;
    acs_sim_work *work = acs_sim_work_take(s, op, NULL, 0);
    acs_sim_kernel kernel = acs_sim_draw_kernel(s, op, slot);

    s->now += op->kind == ACS_KIND_KERNEL ? s->gpu.host.launch : s->gpu.host.copy;
    if (op->kind == ACS_KIND_KERNEL)
        acs_sim_launch(s->machine, s->now, stream, &kernel, work);
    else if (s->by_seed || op->kind == ACS_KIND_STREAM_WAIT)
        acs_sim_delay(s->machine, s->now, stream, s->by_seed ? kernel.cta_ns : 0, work);
    else
        acs_sim_copy(s->machine, s->now, stream, ACS_SIM_WITHIN, 0, acs_record_copied(op), work);
}

/* Set the item's status if it cannot be issued. */
static void judge_item(acs_sim_state *s, const acs_batch *batch, acs_item *item)
{
    if (!acs_item_may_follow(batch, item)) {
        acs_item_result(item, ACS_ERR_SKIPPED, 0, NULL);
        return;
    }
    if (item->slot < 0 || item->status != ACS_OK)
        return;
    if (!acs_host_runs(item->op))
        acs_item_result(item, ACS_ERR_INTERNAL, 0, "this kind of op is not for a slot of the sim backend");
    else
        acs_sim_fault_item(&s->faults, item);
}

static void issue_item(acs_sim_state *s, const acs_batch *batch, acs_item *item)
{
    const char *wrong;

    acs_item_result(item, ACS_ERR_INTERNAL, 0, "a slot or mark that does not exist");
    if (!acs_sim_item_exists(s, batch, item))
        return;
    acs_item_result(item, ACS_OK, 0, NULL);
    wrong = acs_sim_issue_order(s, batch, item);
    if (wrong)
        acs_item_result(item, ACS_ERR_INTERNAL, 0, wrong);
    judge_item(s, batch, item);
    if (item->status == ACS_OK && item->slot >= 0 && !(acs_sim_due_reserve(s, 1) && acs_sim_work_reserve(s, 1)))
        acs_sim_lose(s, item, 0, "no memory for an op that was issued");
    if (item->status == ACS_OK && item->slot >= 0)
        launch(s, item->op, (uint32_t)item->slot);
    wrong = item->mark_after ? acs_sim_record_mark(s, &item->after) : NULL;
    if (wrong && item->status == ACS_OK)
        acs_item_result(item, ACS_ERR_INTERNAL, 0, wrong);
    if ((item->mark_count || item->mark_after) && acs_sim_fault(&s->faults, ACS_FAULT_EVENT))
        acs_sim_lose(s, item, ACS_SIM_NATIVE_EVENT, "injected: an event could not be recorded");
    if (acs_sim_failed(s->machine))
        acs_sim_lose(s, item, 0, "no memory for the simulated machine");
}

void acs_sim_submit(acs_backend *backend, acs_batch *batch)
{
    acs_sim_state *s = acs_sim_state_of(backend);

    acs_lock_acquire(&s->lock);
    if (batch->bundle && !s->lost) {
        acs_sim_submit_bundle(s, batch);
        acs_lock_release(&s->lock);
        return;
    }
    for (uint32_t i = 0; i < batch->items_used; i++) {
        if (s->lost)
            acs_item_result(&batch->items[i], ACS_ERR_DEVICE, ACS_SIM_NATIVE_LOST, "the simulated device is lost");
        else
            issue_item(s, batch, &batch->items[i]);
    }
    acs_lock_release(&s->lock);
}
