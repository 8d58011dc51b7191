/*
 * The way of a batch to the simulated machine: its items in the order of issue, and refusals. Called by the core
 * through the ops table of sim.c, under no lock but its own. Marks and waits are sim_order.c's, the needs of kernels
 * sim_kernel.c's. Never lets time pass.
 */
#include "simulator/sim_internal.h"

/* A replay whose ops are launched one after another. */
typedef struct replay_launch {
    acs_sim_state *s;
    uint32_t slot;
} replay_launch;

/* One op of a replay that goes without a graph. */
static acs_status launch_of_replay(void *user, acs_record *op, int *native, const char **text)
{
    const replay_launch *launching = user;
    acs_item item = {.op = op, .status = ACS_OK};

    acs_sim_fault_item(&launching->s->faults, &item);
    if (item.status == ACS_NOT_READY) /* the replay has begun: its ops cannot be put off */
        item.status = ACS_OK;
    *native = item.native;
    *text = item.text;
    if (item.status == ACS_OK)
        acs_sim_launch_op(launching->s, op, launching->slot, 0);
    return item.status;
}

/* A replay goes as a bundle of its ops; where that is refused, they are launched in their order. */
static void launch_replay(acs_sim_state *s, const acs_item *item)
{
    acs_replay *replay = item->op->u.replay.replay;
    replay_launch launching = {s, (uint32_t)item->slot};

    if (!acs_sim_replay(s, replay, item))
        (void)acs_replay_one_by_one(replay, launch_of_replay, &launching);
}

static void issue_item(acs_sim_state *s, const acs_batch *batch, acs_item *item)
{
    const char *wrong;

    acs_item_result(item, ACS_ERR_INTERNAL, 0, "a slot or mark that does not exist");
    if (!acs_sim_item_exists(s, batch, item))
        return;
    acs_item_result(item, ACS_OK, 0, NULL);
    const bool follows = acs_item_may_follow(batch, item);
    const acs_issue_way way = acs_sim_send(s, batch, item, follows);
    if (way == ACS_ISSUE_LATER && item->mark_after)
        acs_sim_send_mark(s, &item->after);
    if (way == ACS_ISSUE_LATER)
        item->status = follows ? ACS_NOT_READY : ACS_ERR_SKIPPED;
    if (s->lost)
        acs_item_result(item, ACS_ERR_DEVICE, ACS_SIM_NATIVE_LOST, "the simulated device is lost");
    if (way != ACS_ISSUE_NOW || s->lost)
        return;
    wrong = acs_sim_take_value(s, item);
    if (wrong)
        acs_item_result(item, ACS_ERR_INTERNAL, 0, wrong);
    if (follows)
        acs_sim_judge(s, item);
    else
        acs_item_result(item, ACS_ERR_SKIPPED, 0, NULL);
    const uint32_t ops = item->op && item->op->kind == ACS_KIND_REPLAY ? item->op->u.replay.replay->count : 1;
    if (item->status == ACS_OK && item->slot >= 0 && !(acs_sim_due_reserve(s, ops) && acs_sim_work_reserve(s, ops)))
        acs_sim_lose(s, item, 0, "no memory for an op that was issued");
    if (item->status == ACS_OK && item->slot >= 0 && item->op->kind == ACS_KIND_REPLAY)
        launch_replay(s, item);
    else if (item->status == ACS_OK && item->slot >= 0)
        acs_sim_launch_op(s, item->op, (uint32_t)item->slot, item->share);
    wrong = item->mark_after ? acs_sim_record_mark(s, &item->after) : NULL;
    if (item->mark_after)
        acs_issue_queue_record(s->base.queue, &item->after);
    if (wrong && item->status == ACS_OK)
        acs_item_result(item, ACS_ERR_INTERNAL, 0, wrong);
    if (item->mark_after && acs_sim_fault(&s->faults, ACS_FAULT_EVENT))
        acs_sim_lose(s, item, ACS_SIM_NATIVE_EVENT, "injected: an event could not be recorded");
    if (acs_sim_failed(s->machine))
        acs_sim_lose(s, item, 0, "no memory for the simulated machine");
}

void acs_sim_submit(acs_backend *backend, acs_batch *batch)
{
    acs_sim_state *s = acs_sim_state_of(backend);

    acs_lock_acquire(&s->lock);
    if (s->bundles_after != UINT32_MAX)
        s->bundles_after -= s->bundles_after < batch->items_used ? s->bundles_after : batch->items_used;
    if (!s->bundles_after)
        atomic_store_explicit(&s->base.bundles_later, false, memory_order_release); /* B in backend.h */
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
