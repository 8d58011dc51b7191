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

static void launch(acs_sim_state *s, acs_record *op, uint32_t slot, uint8_t share)
{
    uint32_t stream = s->slot[slot].stream;
    acs_sim_work *work = acs_sim_work_take(s, op, NULL, 0);
    acs_sim_kernel kernel = acs_sim_draw_kernel(s, op, slot);

    acs_sim_share_use(s, slot, share, &kernel);
    s->now += op->kind == ACS_KIND_KERNEL ? s->gpu.host.launch : s->gpu.host.copy;
    if (op->kind == ACS_KIND_KERNEL)
        acs_sim_launch(s->machine, s->now, stream, &kernel, work);
    else if (s->by_seed || op->kind == ACS_KIND_STREAM_WAIT)
        acs_sim_delay(s->machine, s->now, stream, s->by_seed ? kernel.cta_ns : 0, work);
    else
        acs_sim_copy(s->machine, s->now, stream, ACS_SIM_WITHIN, 0, acs_record_copied(op), work);
}

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
        launch(launching->s, op, launching->slot, 0);
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

/* The share that the op asks for. */
static uint8_t share_of(const acs_record *op)
{
    return op->flags & ACS_RECORD_SHARE ? op->u.launch.attributes.share : 0;
}

/* Set the item's status if it cannot be issued. */
static void judge_item(acs_sim_state *s, const acs_batch *batch, acs_item *item)
{
    if (!acs_item_may_follow(batch, item)) {
        acs_item_result(item, ACS_ERR_SKIPPED, 0, NULL);
        return;
    }
    if (item->slot < 0 || item->status != ACS_OK || item->op->kind == ACS_KIND_REPLAY)
        return;
    if (item->share != share_of(item->op))
        acs_item_result(item, ACS_ERR_INTERNAL, 0, "an op with another share than its record has");
    else if (!acs_host_runs(item->op))
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
    const uint32_t ops = item->op && item->op->kind == ACS_KIND_REPLAY ? item->op->u.replay.replay->count : 1;
    if (item->status == ACS_OK && item->slot >= 0 && !(acs_sim_due_reserve(s, ops) && acs_sim_work_reserve(s, ops)))
        acs_sim_lose(s, item, 0, "no memory for an op that was issued");
    if (item->status == ACS_OK && item->slot >= 0 && item->op->kind == ACS_KIND_REPLAY)
        launch_replay(s, item);
    else if (item->status == ACS_OK && item->slot >= 0)
        launch(s, item->op, (uint32_t)item->slot, item->share);
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
