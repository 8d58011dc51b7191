/*
 * Single ops on their way to the simulated machine, through the queues that the CUDA backend uses (scheduler/issue_queue.h).
 * With ACS_ISSUERS, where the seed decides, the stepper plays the threads that take commands: the seed chooses the slot that
 * goes on, and ops are refused long after they were booked. Called by sim_issue.c and sim_bundle.c under the backend's lock,
 * and by sim_driver.c.
 */
#include "simulator/sim_internal.h"

#include "base/tuning.h"

void acs_sim_launch_op(acs_sim_state *s, acs_record *op, uint32_t slot, uint8_t share)
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

/* The share that the op asks for. */
static uint8_t share_of(const acs_record *op)
{
    return op->flags & ACS_RECORD_SHARE ? op->u.launch.attributes.share : 0;
}

void acs_sim_judge(acs_sim_state *s, acs_item *item)
{
    if (item->slot < 0 || item->status != ACS_OK || item->op->kind == ACS_KIND_REPLAY)
        return;
    if (item->share != share_of(item->op))
        acs_item_result(item, ACS_ERR_INTERNAL, 0, "an op with another share than its record has");
    else if (!acs_host_runs(item->op))
        acs_item_result(item, ACS_ERR_INTERNAL, 0, "this kind of op is not for a slot of the sim backend");
    else
        acs_sim_fault_item(&s->faults, item);
}

static bool late_lost(void *user)
{
    const acs_sim_state *s = user;
    return s->lost;
}

/* A breach of the rules of marks by the core: the next op fails with it. */
static void note_wrong(acs_sim_state *s, const char *wrong)
{
    s->wrong = s->wrong ? s->wrong : wrong;
}

static void late_mark(void *user, const acs_mark *mark)
{
    acs_sim_state *s = user;
    if (s->lost)
        return;
    note_wrong(s, acs_sim_record_mark(s, mark));
    s->lost |= acs_sim_fault(&s->faults, ACS_FAULT_EVENT) || acs_sim_failed(s->machine);
}

static void late_wait(void *user, uint32_t slot, uint8_t share, const acs_mark *mark)
{
    acs_sim_state *s = user;
    (void)share;
    if (!s->lost)
        note_wrong(s, acs_sim_send_wait(s, mark, slot));
}

static void late_op(void *user, acs_command *command)
{
    acs_sim_state *s = user;
    acs_item item = {.op = command->op, .slot = (int16_t)command->slot, .value = command->value, .share = command->share};
    const char *wrong = acs_sim_take_value(s, &item);
    acs_sim_judge(s, &item);
    if (item.status == ACS_NOT_READY) /* it was booked as issued: it cannot be put off */
        item.status = ACS_OK;
    if (wrong)
        acs_item_result(&item, ACS_ERR_INTERNAL, 0, wrong);
    command->status = item.status;
    command->native = item.native;
    command->text = item.text;
    if (item.status == ACS_OK && !(acs_sim_due_reserve(s, 1) && acs_sim_work_reserve(s, 1)))
        s->lost = true;
    else if (item.status == ACS_OK)
        acs_sim_launch_op(s, item.op, command->slot, command->share);
}

static void late_full(void *user)
{
    acs_sim_state *s = user;
    s->lost = true;
}

static bool play_taker(acs_sim_state *s);

static void late_pause(void *user)
{
    acs_sim_state *s = user;
    (void)play_taker(s);
}

static const acs_issue_ops g_ops = {.lost = late_lost, .mark = late_mark, .wait = late_wait, .op = late_op,
                                    .pause = late_pause, .full = late_full};

/* A slot, which the seed chooses among those that can, goes on. False: none can. */
static bool play_taker(acs_sim_state *s)
{
    acs_issue_taker taker = {.own = acs_random_next(&s->random), .next = acs_random_below(&s->random, s->slots)};
    const acs_issue_step step = acs_issue_queue_step(s->base.queue, &taker, &g_ops, s);
    return step == ACS_ISSUE_DONE || step == ACS_ISSUE_FAILED;
}

bool acs_sim_backend_issues(acs_backend *backend)
{
    acs_sim_state *s = acs_sim_state_of(backend);
    if (!s->takers)
        return false;
    ACS_HOLD(&s->lock);
    return play_taker(s);
}

void acs_sim_settle(acs_backend *backend)
{
    acs_sim_state *s = acs_sim_state_of(backend);
    ACS_HOLD(&s->lock);
    s->lost = true;
    while (play_taker(s))
        continue;
    ACS_ASSERT(!acs_issue_queue_busy(backend->queue));
}

acs_status acs_sim_queue_init(acs_sim_state *s, const acs_options *options)
{
    s->takers = options->issuers > 0 && s->by_seed && !options->serial && !options->disable;
    s->base.takers = s->takers ? (uint32_t)options->issuers : 0;
    return acs_issue_queue_create(s->slots, TUNE_ISSUE_COMMANDS * (uint32_t)options->window, &s->base.queue);
}

/* Whether the op may be given to threads that issue. */
static bool is_plain(const acs_record *op)
{
    return (op->kind == ACS_KIND_KERNEL || op->kind == ACS_KIND_MEMCPY || op->kind == ACS_KIND_MEMSET) &&
           !(op->flags & (ACS_RECORD_TIMED | ACS_RECORD_DECISION));
}

acs_issue_way acs_sim_send(acs_sim_state *s, const acs_batch *batch, const acs_item *item, bool follows)
{
    const bool awake = s->takers && acs_random_below(&s->random, 4) != 0;
    const bool gives = item->op && follows && is_plain(item->op);
    return acs_issue_queue_send(s->base.queue, batch, item, awake, gives, &g_ops, s);
}

void acs_sim_send_mark(acs_sim_state *s, const acs_mark *mark)
{
    acs_issue_queue_send_mark(s->base.queue, mark, false, &g_ops, s);
}
