/*
 * The way of a batch to the simulated machine: marks, waits, ops, in the order of issue, and what is refused. Called
 * by the core through the ops table of sim.c, under no lock but its own. Breaches of the rules of marks and values in
 * backend.h, which a GPU would punish at random, fail the item with ACS_ERR_INTERNAL. Never lets time pass.
 */
#include "simulator/sim_internal.h"

#include <stdlib.h>

enum {
    VICTIM_ITEMS = 32,  /* after so many another slot starves */
    NEWEST_ITEMS = 40,
    SLOW_FACTOR = 1000,
    LONG_NS = 1000000
};

/* -------------------------------------------------------------------------------------- rules of marks and values */

acs_sim_mark *acs_sim_mark_at(const acs_sim_state *s, const acs_mark *mark)
{
    return &s->marks[(size_t)mark->slot * s->mark_capacity + mark->index];
}

static bool marks_exist(const acs_sim_state *s, const acs_mark *marks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i].slot >= s->slots || marks[i].index >= s->mark_capacity)
            return false;
    }
    return true;
}

/* Does the item name slots and marks that exist? If not, there is nothing that could be issued. */
bool acs_sim_item_exists(const acs_sim_state *s, const acs_batch *batch, const acs_item *item)
{
    return item->slot < (int32_t)s->slots && marks_exist(s, &batch->marks[item->first_mark], item->mark_count) &&
           marks_exist(s, &batch->waits[item->first_wait], item->wait_count) &&
           marks_exist(s, &item->after, item->mark_after);
}

static bool is_complete(const acs_sim_state *s, const acs_sim_mark *mark)
{
    return !mark->event || acs_sim_event_time(s->machine, mark->event - 1) != ACS_SIM_NEVER;
}

/* NULL, or what the core did wrong. */
static const char *mark_check(acs_sim_state *s, const acs_mark *mark)
{
    if (!is_complete(s, acs_sim_mark_at(s, mark)))
        return "a mark used again before it was complete";
    if (mark->value < s->slot[mark->slot].value)
        return "a mark with a value below one issued before it";
    return NULL;
}

/* Its value counts even if it breaks a rule: what comes behind is judged by itself. */
const char *acs_sim_record_mark(acs_sim_state *s, const acs_mark *mark)
{
    const char *wrong = mark_check(s, mark);
    acs_sim_mark *recorded = acs_sim_mark_at(s, mark);

    if (!recorded->event)
        recorded->event = acs_sim_event(s->machine) + 1; /* ACS_SIM_NONE becomes 0 */
    s->now += s->gpu.host.record;
    if (recorded->event)
        acs_sim_record(s->machine, s->now, s->slot[mark->slot].stream, recorded->event - 1);
    recorded->value = mark->value;
    if (s->slot[mark->slot].value < mark->value)
        s->slot[mark->slot].value = mark->value;
    return wrong;
}

/* A mark that is complete may have been used again since the wait was decided: as on a GPU, the wait is for that then. */
static const char *send_wait(acs_sim_state *s, const acs_mark *mark, uint32_t slot)
{
    const acs_sim_mark *recorded = acs_sim_mark_at(s, mark);

    if (!recorded->event || recorded->value < mark->value)
        return "a wait for a mark that was not recorded";
    s->now += s->gpu.host.wait;
    acs_sim_wait(s->machine, s->now, s->slot[slot].stream, recorded->event - 1);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------- issuing */

/* Told by the machine. One in four runs when it starts: then what should have waited for it may see too much, not less. */
void acs_sim_on_told(void *owner, void *user, bool ended, uint64_t when)
{
    acs_sim_state *s = owner;
    acs_sim_work *work = user;
    const acs_record *op = work->op;
    bool at_start = s->by_seed && op && (acs_hash64(op->seq + s->salt) & 3) == 0;

    if (ended)
        acs_sim_work_ended(s, work, when);
    if (!op)
        return;
    if (acs_log_enabled(ACS_LOG_DEBUG))
        acs_log(ACS_LOG_DEBUG, "sim: %llu ns: op %llu %s%s", (unsigned long long)when, (unsigned long long)op->seq,
                ended ? "ended" : "started", ended != at_start ? ", its body runs" : "");
    s->told |= ended || at_start;
    if (ended != at_start)
        s->due[s->due_count++] = op;
}

static uint64_t drawn_ns(acs_sim_state *s, uint32_t slot)
{
    uint32_t some = acs_random_below(&s->random, 1000);

    if (s->issued % VICTIM_ITEMS == 0 && s->strategy == ACS_SIM_STARVE)
        s->victim = acs_random_below(&s->random, s->slots);
    if (s->strategy == ACS_SIM_NEWEST) /* mostly longer than all that come after it together */
        return ((uint64_t)LONG_NS << 20 >> s->issued % NEWEST_ITEMS) + some;
    if (s->strategy == ACS_SIM_STARVE && slot == s->victim)
        return (uint64_t)LONG_NS * 1000;
    return some;
}

static acs_sim_kernel kernel_of(const acs_sim_state *s, const acs_record *op, uint64_t ns)
{
    const acs_dim3 *g = &op->grid, *b = &op->u.launch.block;
    uint64_t ctas = (uint64_t)g->x * g->y * g->z;
    acs_sim_kernel kernel = {.ctas = ctas > UINT32_MAX ? UINT32_MAX : (uint32_t)ctas, .threads = b->x * b->y * b->z,
                             .shared_bytes = (uint32_t)op->u.launch.shared_bytes, .cta_ns = ns};

    if (s->by_seed && kernel.ctas > 64) /* more would only take real time */
        kernel.ctas = 64;
    if (s->describe)
        s->describe(s->describe_user, op, &kernel);
    return kernel;
}

uint64_t acs_sim_kernel_ns(const acs_sim_state *s, const acs_record *op)
{
    return kernel_of(s, op, s->kernel_ns).cta_ns;
}

uint64_t acs_sim_threads(const acs_sim_state *s, const acs_record *op)
{
    acs_sim_kernel kernel = kernel_of(s, op, 0);

    return (uint64_t)kernel.ctas * kernel.threads;
}

acs_sim_kernel acs_sim_draw_kernel(acs_sim_state *s, const acs_record *op, uint32_t slot)
{
    uint64_t ns = s->by_seed ? drawn_ns(s, slot) : s->kernel_ns;
    acs_sim_kernel kernel = {.cta_ns = ns};

    if (op->kind == ACS_KIND_KERNEL)
        kernel = kernel_of(s, op, ns);
    if (acs_sim_fault(&s->faults, ACS_FAULT_SLOW))
        kernel.cta_ns = ns * SLOW_FACTOR;
    if (op->kind == ACS_KIND_KERNEL && acs_sim_fault(&s->faults, ACS_FAULT_ENDLESS))
        kernel.cta_ns = ACS_SIM_NEVER;
    s->in_flight++;
    s->issued++;
    return kernel;
}

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

/* Every op that was issued has room among those that are due. */
bool acs_sim_due_reserve(acs_sim_state *s, uint32_t ops)
{
    uint32_t capacity = acs_round_up_pow2(s->in_flight + ops < 64 ? 64 : s->in_flight + ops);
    const acs_record **grown;

    if (s->in_flight + ops <= s->due_capacity)
        return true;
    grown = realloc(s->due, capacity * sizeof *grown);
    if (!grown)
        return false;
    s->due = grown;
    s->due_capacity = capacity;
    return true;
}

/* Set the item's status where it cannot be issued. */
static void judge(acs_sim_state *s, const acs_batch *batch, acs_item *item)
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

void acs_sim_lose(acs_sim_state *s, acs_item *item, int native, const char *text)
{
    s->lost = true;
    acs_item_result(item, ACS_ERR_DEVICE, native, text);
}

/*
 * Marks, waits and values, in the order of issue, so that the item's waits may name its own marks. All of them take effect,
 * also where the core did something wrong.
 */
const char *acs_sim_issue_order(acs_sim_state *s, const acs_batch *batch, const acs_item *item)
{
    const char *wrong = NULL, *next;

    for (uint32_t i = 0; i < item->mark_count; i++) {
        next = acs_sim_record_mark(s, &batch->marks[item->first_mark + i]);
        wrong = wrong ? wrong : next;
    }
    for (uint32_t i = 0; i < item->wait_count && item->slot >= 0; i++) {
        next = send_wait(s, &batch->waits[item->first_wait + i], (uint32_t)item->slot);
        wrong = wrong ? wrong : next;
    }
    if (item->slot >= 0 && item->value <= s->slot[item->slot].value)
        wrong = wrong ? wrong : "a value that is not above the ones issued before it";
    else if (item->slot >= 0)
        s->slot[item->slot].value = item->value;
    return wrong;
}

static void issue(acs_sim_state *s, const acs_batch *batch, acs_item *item)
{
    const char *wrong;

    acs_item_result(item, ACS_ERR_INTERNAL, 0, "a slot or mark that does not exist");
    if (!acs_sim_item_exists(s, batch, item))
        return;
    acs_item_result(item, ACS_OK, 0, NULL);
    wrong = acs_sim_issue_order(s, batch, item);
    if (wrong)
        acs_item_result(item, ACS_ERR_INTERNAL, 0, wrong);
    judge(s, batch, item);
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
            issue(s, batch, &batch->items[i]);
    }
    acs_lock_release(&s->lock);
}
