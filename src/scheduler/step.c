/*
 * The core's step (see core.h): choose an action under the lock, perform it without the lock, book its result. Called
 * by workers, waiting callers and tests. Owns the lock of window and slots. It makes no threads and never sleeps.
 */
#include "scheduler/core_internal.h"

#include "base/tuning.h"
#include "window/nvtx_op.h"

#include <string.h>

uint32_t acs_core_slots(const acs_options *options)
{
    return options->serial || options->disable ? 1 : (uint32_t)options->streams;
}

acs_status acs_core_init(acs_core *core, const acs_core_config *config)
{
    const acs_options *options = config->options;
    memset(core, 0, sizeof *core);
    core->config = *config;
    core->backend = config->backend;
    core->host_calls = config->backend->ops->host_calls;
    core->in_order = options->serial || options->disable;
    core->check_overlap = options->check >= ACS_CHECK_OVERLAP;
    core->batch_limit = (uint32_t)options->batch;
    core->next_in_order = 1;
    acs_core_overdue_init(core);
    if (acs_lock_init(&core->lock, ACS_RANK_CORE))
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cannot make a mutex");
    const uint32_t devices = config->backend->devices;
    acs_window_config window = {
        .limit = options->serial ? 1 : (uint32_t)options->window,
        .slots = acs_backend_slots(acs_core_slots(options), devices),
        .host_wait = options->serial || options->wait == ACS_WAIT_HOST,
        .sites = options->stats != 0,
    };
    acs_status status = acs_window_init(&core->window, &window);
    if (status == ACS_OK)
        status = acs_slots_init(&core->slots, window.slots, devices, &core->window);
    if (status == ACS_OK) {
        acs_slots_limit(&core->slots, config->backend->parallel);
        acs_slots_expect_long_ops(&core->slots, !config->backend->ops->notifies);
    }
    if (status == ACS_OK)
        status = acs_fifo_create((uint32_t)options->fifo, TUNE_REPEAT_NUMBERS, &core->fifo);
    core->batcher = core->in_order ? NULL : config->batcher;
    if (status == ACS_OK && core->batcher)
        status = core->batcher->open(core);
    if (status != ACS_OK)
        acs_core_fini(core);
    return status;
}

void acs_core_fini(acs_core *core)
{
    if (core->batcher)
        core->batcher->close(core);
    if (core->fifo)
        acs_fifo_destroy(core->fifo);
    acs_slots_fini(&core->slots);
    acs_window_fini(&core->window);
    acs_lock_fini(&core->lock);
    core->backend = NULL; /* tells the owner that there is nothing to release */
}

/* ------------------------------------------------------------------------------------------------------------ next */

/* Add polls of slots of these devices, at most `more`, in turn from the slot behind the last one polled. */
static void list_polls(acs_core *core, acs_action *action, uint32_t devices, uint32_t more)
{
    for (uint32_t d = 0; d < core->slots.devices; d++)
        action->judges |= core->slots.banks[d].unknown && core->slots.banks[d].wants_poll;
    const uint32_t used = core->slots.used, listed = action->poll_count;
    const uint32_t first = listed ? action->polls[0].slot : used;
    for (uint32_t k = 0; k < used && action->poll_count - listed < more; k++) {
        const uint32_t s = (core->poll_next + k) % used;
        if (s == first || !(devices >> acs_slot_device(&core->slots, s) & 1))
            continue;
        /* Marks behind refused ops take room too, and may be all that a slot has. Those of a lost device stay. */
        if (core->dead || (core->slots.slot[s].outstanding == 0 && core->slots.slot[s].mark_count == 0))
            continue;
        acs_core_list_poll_locked(core, action, s);
    }
    core->polling |= action->poll_devices;
}

/*
 * Beside a batch, poll its device if that is due: other slots might become active, or a bundle was issued; and all
 * devices once in half a window's ops. Without one nothing can be issued: see what has completed, until an op is queued.
 * If a caller awaits an op, poll its slot and then TUNE_POLL_BESIDE others in turn, even if an op is queued. If the
 * backend announces completions, all slots are polled, since a notified thread looks only once.
 *
 * Each poll holds up launches (3.6 us beside four threads that launch, 0.24 alone). So where no op waits for completions,
 * nothing but the awaited op's slot is polled while issuing threads have enough ops left; nor, in a step that may rest,
 * while the window has room.
 *
 * Marks that this needs are submitted first, and the next step polls, with new marks if need be: until the booking
 * their slots are taken, and other threads may need them.
 */
static void form_polls(acs_core *core, acs_action *action, uint32_t may, bool busy)
{
    const bool notifies = core->backend->ops->notifies;
    uint32_t devices = ((1u << core->slots.devices) - 1) & ~core->polling;
    const acs_window *w = &core->window;
    if (action->batch.items_used) {
        const uint32_t own = action->batch.device;
        core->since_poll += action->batch.items_used;
        action->marked = false;
        if (2 * core->since_poll < w->limit)
            devices &= core->slots.banks[own].wants_poll || action->batch.bundle ? 1u << own : 0;
        else if (!busy)
            core->since_poll = 0;
        if (devices && !busy)
            list_polls(core, action, devices, UINT32_MAX);
        return;
    }
    const bool waits = w->live > core->running + w->held; /* ops wait for completions */
    if (!waits && busy) {
        acs_core_list_awaited_locked(core, action);
        action->partial = true;
        core->polling |= action->poll_devices;
        return;
    }
    if (may & ACS_MAY_REST && !waits && !core->stalled && 2 * w->live <= w->limit)
        return;
    core->turned_away |= core->polling;
    acs_slots_mark_tails(&core->slots, &action->batch, action->batch_id, UINT64_MAX);
    action->entries[0] = 0;
    action->marked = action->batch.items_used > 0 && !action->marked;
    if (!devices || action->marked)
        return;
    if (!notifies)
        acs_core_list_awaited_locked(core, action);
    action->partial = action->poll_count > 0;
    core->since_poll = action->partial ? core->since_poll : 0;
    action->yields = !notifies && !action->partial && !core->stalled && !acs_fifo_ready(core->fifo);
    list_polls(core, action, devices, action->partial ? TUNE_POLL_BESIDE : UINT32_MAX);
}

/*
 * Before the memory is given back, its next owner must find neither failures nor the old block. After the device was
 * given up it is kept: a running op may use it, and CUDA would wait for that op.
 */
static void begin_free(acs_core *core, acs_action *action, const acs_entry *entry)
{
    if (core->given_up) {
        action->host_status = ACS_ERR_DEVICE;
        return;
    }
    acs_window_forget_block(&core->window, entry->op->segments[0].base, entry->op->segments[0].row_bytes);
    core->config.on_free(core->config.user, entry->op);
}

/* Whether a host op is the program's own work. */
static bool is_work(const acs_entry *entry)
{
    return entry->kind == ACS_KIND_HOST || entry->kind == ACS_KIND_CALL;
}

static void begin_host(acs_core *core, acs_action *action)
{
    acs_entry *entry = acs_core_pop_host_locked(core);
    ACS_ASSERT(entry->state == ACS_ENTRY_ISSUING); /* CORE-1 */
    action->type = ACS_ACTION_HOST;
    action->host_entry = acs_entry_index(&core->window, entry);
    action->host_op = entry->op;
    action->host_status = ACS_OK;
    action->host_native = 0;
    action->target_status = ACS_OK;
    if (entry->kind == ACS_KIND_CALLBACK)
        action->target_status = core->config.status_of(core->config.user, entry->op->u.callback.target);
    if (entry->kind == ACS_KIND_FREE)
        begin_free(core, action, entry);
    acs_core_running_locked(core, 1);
    core->host_running += is_work(entry);
    acs_core_activity_locked(core);
    ACS_TRACE(core, ACS_TRACE_ISSUE, entry, NULL, NULL);
}

/*
 * Fill the window. A thread that issues does so only when it is short of ready ops, since every lookup delays the
 * backend; idle threads fill the window meanwhile.
 */
static bool insert(acs_core *core, uint32_t may)
{
    acs_op taken = core->taken;
    bool only = may == ACS_MAY_INSERT;
    uint32_t waiting = core->window.live - core->running - core->window.held;
    bool is_short = core->batching ? waiting <= core->batch_ahead /* one op more shows where a bundle ends */
                                   : core->window.ready.count < core->batch_limit;
    if (only || ((may & ACS_MAY_INSERT) && is_short))
        acs_core_insert_locked(core, only ? TUNE_INSERT_BESIDE : TUNE_INSERT_MOST);
    return core->taken != taken;
}

static bool decide(acs_core *core, uint32_t may, acs_action *action)
{
    bool inserted = insert(core, may);
    action->type = ACS_ACTION_NONE;
    action->poll_count = action->poll_devices = 0;
    action->judges = false;
    action->batch.items_used = action->batch.waits_used = action->batch.marks_used = action->batch.edges_used = 0;
    action->batch.bundle = false;
    action->looks = may == ACS_MAY_LOOK;
    action->yields = false;
    action->partial = action->looks;
    if (may == ACS_MAY_INSERT)
        return inserted;
    if (action->looks)
        acs_core_form_look_locked(core, action);
    if (may & ACS_MAY_ISSUE) {
        action->batch_id = ++core->batch_ids;
        /* before a poll of all: ops to one device alone must not keep those of others from being seen complete */
        if (core->slots.devices > 1 && 2 * (core->since_poll + 1) >= core->window.limit)
            acs_slots_mark_tails(&core->slots, &action->batch, action->batch_id, UINT64_MAX);
        action->entries[0] = 0;
        const acs_issue_queue *queue = core->backend->queue;
        core->slots.starved = core->backend->takers && acs_issue_queue_load(queue) == 0;
        if (action->batch.items_used == 0)
            acs_core_form_batch_locked(core, action, inserted);
        /* whether issuing threads have enough ops left for a while */
        const bool busy = queue && acs_issue_queue_load(queue) > core->window.limit / TUNE_BUSY_PART;
        form_polls(core, action, may, busy);
        core->counters.submissions += action->batch.items_used > 0;
    }
    if (action->batch.items_used || action->poll_count)
        action->type = ACS_ACTION_SUBMIT;
    bool only_polls = action->batch.items_used == 0;
    if (only_polls && (may & ACS_MAY_HOST) && core->host_queue.head) {
        core->polling &= ~action->poll_devices; /* the polls are dropped with the action */
        begin_host(core, action);
    }
    /* Inserted ops may have ended at once, skipped: there is room for more, and no other thread looks. */
    return action->type != ACS_ACTION_NONE || inserted;
}

static bool true_locked(acs_core *core, const acs_wait_condition *condition)
{
    if (condition->type == ACS_WAIT_FOR_ROOM)
        return condition->since != core->popped + core->counters.retired;
    if (condition->op > core->taken)
        return false;
    if (condition->type == ACS_WAIT_FOR_OP)
        return !acs_window_find(&core->window, condition->op);
    acs_op oldest = acs_window_oldest(&core->window);
    return oldest == 0 || oldest > condition->op;
}

static acs_core_load look_locked(const acs_core *core)
{
    uint32_t live = core->window.live;
    bool blocked = live > core->running + core->window.held || core->stalled || acs_fifo_ready(core->fifo);
    return blocked ? ACS_LOAD_BLOCKED : live ? ACS_LOAD_RUNNING : ACS_LOAD_NONE;
}

/* What the calling thread should tell others once it has left the lock. */
static acs_core_news look_for_news(acs_core *core, acs_action_type type, uint32_t may)
{
    acs_core_news news = {.condition_met = false};
    for (acs_wait_condition *condition = core->polls_itself; condition; condition = condition->next) {
        bool came_true = !condition->told && true_locked(core, condition);
        condition->told |= came_true;
        news.condition_met |= came_true;
    }
    news.host_left = core->host_queue.head && (type != ACS_ACTION_NONE || !(may & ACS_MAY_HOST));
    bool ready = core->window.ready.head && !core->holding;
    news.issue_left = ready && (type != ACS_ACTION_NONE || !(may & ACS_MAY_ISSUE));
    news.load = look_locked(core);
    return news;
}

/* Until delist the watchdog may abandon the action (overdue.c). */
static void enlist(acs_core *core, acs_action *action)
{
    ACS_ASSERT(core->under_way != action); /* CORE-1 */
    action->abandoned = false;
    action->waited_ns = 0;
    action->ends_seen = core->counters.retired;
    action->next_under_way = core->under_way;
    core->under_way = action;
}

/* False: the action was abandoned, and there is nothing to book. */
static bool delist(acs_core *core, acs_action *action)
{
    acs_action **at = &core->under_way;
    while (*at != action)
        at = &(*at)->next_under_way;
    *at = action->next_under_way;
    ACS_ASSERT(core->abandoned >= action->abandoned);
    core->abandoned -= action->abandoned;
    return !action->abandoned;
}

bool acs_core_next(acs_core *core, uint32_t may, acs_action *action)
{
    acs_lock_acquire(&core->lock);
    action->retired_before = core->counters.retired;
    const acs_issue_queue *queue = core->backend->queue;
    const bool halted = queue && acs_issue_queue_halted(queue) && !acs_core_late_locked(core);
    bool found = decide(core, halted ? may & ~(uint32_t)(ACS_MAY_ISSUE | ACS_MAY_LOOK) : may, action);
    if (action->type != ACS_ACTION_NONE)
        enlist(core, action);
    action->news = look_for_news(core, action->type, may);
    acs_lock_release(&core->lock);
    return found;
}

bool acs_core_insert_try(acs_core *core, acs_core_news *news, bool *inserted)
{
    if (!acs_lock_try(&core->lock))
        return false;
    *inserted = insert(core, ACS_MAY_INSERT);
    *news = look_for_news(core, ACS_ACTION_NONE, ACS_MAY_INSERT);
    acs_lock_release(&core->lock);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- perform */

static void perform_polls(acs_core *core, acs_action *action)
{
    for (uint32_t i = 0; i < action->poll_count && action->poll_status == ACS_OK; i++) {
        acs_poll *poll = &action->polls[i];
        action->poll_status =
            core->backend->ops->poll(core->backend, poll->slot, poll->marks, poll->mark_count, &poll->completed);
        if (action->yields && i + 1 < action->poll_count && acs_fifo_ready(core->fifo)) {
            action->poll_count = i + 1; /* each poll takes as long as a launch */
            action->partial = true;
        }
    }
    if (action->judges && core->config.now_ns)
        action->polls_end_ns = core->config.now_ns(core->config.user);
    if (action->poll_status != ACS_OK)
        action->fault = *acs_error_thread();
}

static void perform_host(acs_core *core, acs_action *action)
{
    acs_record *op = action->host_op;
    int native = 0;
    const bool decided = op->flags & ACS_RECORD_DECIDED;
    const acs_status runs = ACS_UNLIKELY(decided) ? acs_backend_decide(core->backend, op) : ACS_OK;
    if (ACS_UNLIKELY(runs != ACS_OK)) {
        action->host_status = runs == ACS_NOT_READY ? ACS_OK : runs;
        action->host_native = 0;
        return;
    }
    switch (op->kind) {
    case ACS_KIND_HOST:
        native = op->u.host.function(op->u.host.closure);
        action->host_status = native ? ACS_ERR_HOST : ACS_OK;
        break;
    case ACS_KIND_CALL:
        action->host_status = acs_backend_call(core->backend, op, &native);
        break;
    case ACS_KIND_CALLBACK:
        op->u.callback.function(op->u.callback.user, op->u.callback.target, action->target_status);
        break;
    case ACS_KIND_FREE:
        if (action->host_status == ACS_OK) /* otherwise begin_free has refused it */
            action->host_status = core->config.give_back(core->config.user, op);
        break;
    default:
        action->host_status = ACS_ERR_INTERNAL;
    }
    action->host_native = native;
}

void acs_core_perform(acs_core *core, acs_action *action)
{
    action->poll_status = ACS_OK;
    if (action->type == ACS_ACTION_HOST) {
        const bool shown = ACS_UNLIKELY(acs_nvtx_taken) && acs_nvtx_op_push(action->host_op, -1);
        perform_host(core, action);
        if (ACS_UNLIKELY(shown))
            acs_nvtx_pop();
        return;
    }
    if (action->batch.items_used)
        core->backend->ops->submit(core->backend, &action->batch);
    perform_polls(core, action);
    if (ACS_UNLIKELY(core->backend->queue && (action->poll_status != ACS_OK || acs_batch_fatal(&action->batch))))
        core->backend->ops->settle(core->backend);
}

/* ------------------------------------------------------------------------------------------------------------ done */

static void book_host(acs_core *core, acs_action *action)
{
    acs_entry *entry = acs_window_entry(&core->window, action->host_entry);
    ACS_ASSERT(entry->state == ACS_ENTRY_ISSUING && entry->op == action->host_op); /* CORE-1 */
    ACS_ASSERT(core->host_running >= is_work(entry));
    core->counters.kinds[entry->kind]++;
    core->host_running -= is_work(entry);
    acs_core_running_locked(core, -1);
    if (action->host_status == ACS_OK)
        acs_window_end(&core->window, entry, ACS_OK, 0);
    else
        acs_core_fail_locked(core, entry, action->host_status, action->host_native, NULL);
}

/* Whether the first ops of a device had time to show how long they are: TUNE_WORKER_NAP_US since all were launched. */
static bool is_judged(acs_core *core, const acs_action *action, uint32_t device)
{
    acs_bank *bank = &core->slots.banks[device];
    const acs_issue_queue *queue = core->backend->queue;
    if (!bank->held_ns || (queue && acs_issue_queue_busy(queue)))
        bank->held_ns = action->polls_end_ns;
    return action->polls_end_ns - bank->held_ns >= TUNE_WORKER_NAP_US * 1000ull;
}

static void book_polls(acs_core *core, acs_action *action)
{
    if (action->poll_count == 0)
        return;
    /* with little to issue, the device takes the time; a full batch shows that launches do */
    const bool idle = action->batch.items_used <= core->batch_limit / 4 && !core->window.ready.head;
    const bool bundled = action->batch.bundle && action->batch.items[0].status == ACS_OK;
    const acs_issue_queue *queue = core->backend->queue;
    const bool halted = queue && acs_issue_queue_halted(queue); /* what completed may have failed: see late.c */
    core->polling &= ~action->poll_devices;
    core->turned_away &= ~action->poll_devices;
    if (action->partial && !action->looks) /* the others in turn, whichever slot was the first */
        core->poll_next = action->polls[action->poll_count - 1].slot + 1u;
    for (uint32_t i = 0; i < action->poll_count; i++) {
        const acs_poll *poll = &action->polls[i];
        ACS_ASSERT(poll->mark_count > 0);
        core->polled |= 1ull << poll->slot;
        acs_slots_looked_at(&core->slots, poll->slot, poll->marks[poll->mark_count - 1].value);
        acs_slots_completed(&core->slots, poll->slot, halted ? 0 : poll->completed);
        acs_core_retire_locked(core, poll->slot);
    }
    for (uint32_t d = 0; d < core->slots.devices; d++) {
        if (!(action->poll_devices >> d & 1))
            continue;
        const bool all = !action->partial || acs_slots_all_looked_at(&core->slots, d);
        const bool shown = ACS_UNLIKELY(action->judges && core->slots.banks[d].unknown) ? is_judged(core, action, d) : idle;
        if (all) /* one slot shows nothing of the others */
            acs_slots_polled(&core->slots, d, shown, bundled && action->batch.device == d);
    }
    if (action->poll_status != ACS_OK)
        acs_core_fault_locked(core, &action->fault);
}

/* For assertions: from time to time, and when the action has emptied a small window. */
static inline bool is_check_due(const acs_core *core, const acs_action *action)
{
    bool emptied = core->window.live == 0 && core->counters.retired != action->retired_before;
    return core->batch_ids % TUNE_CHECKED_STEPS == 0 ||
           (emptied && core->window.entry_count <= TUNE_CHECKED_ENTRIES);
}

void acs_core_done(acs_core *core, acs_action *action)
{
    acs_lock_acquire(&core->lock);
    if (!delist(core, action)) {
        action->progress = true; /* the thread may look for other work */
        action->news = look_for_news(core, action->type, 0);
        acs_lock_release(&core->lock);
        return;
    }
    if (core->batcher)
        core->batcher->books(core, action);
    const bool turned_away = core->turned_away & action->poll_devices;
    if (action->type == ACS_ACTION_HOST) {
        book_host(core, action);
    } else {
        acs_core_book_batch_locked(core, action);
        if (core->batcher)
            core->batcher->booked(core, action);
        book_polls(core, action);
    }
    acs_core_activity_locked(core);
    acs_core_collect_locked(core);
    ACS_ASSERT(core->window.live || !(core->window.live_joins | core->window.edges_used)); /* WIN-3 */
    ACS_ASSERT(!is_check_due(core, action) || acs_window_check(&core->window));            /* WIN-1, WIN-2, WIN-3 */
    const bool cut = action->yields && action->partial; /* an op was queued: the caller should not rest */
    action->progress = action->type == ACS_ACTION_HOST || action->batch.items_used > 0 || cut ||
                       core->counters.retired != action->retired_before;
    action->news = look_for_news(core, action->type, 0);
    /* completions of which the other thread was notified may have come since */
    action->news.issue_left |= turned_away && core->backend->ops->notifies;
    acs_lock_release(&core->lock);
}

/* ----------------------------------------------------------------------------------------------------------- look */

bool acs_core_true(acs_core *core, const acs_wait_condition *condition)
{
    ACS_HOLD(&core->lock);
    return true_locked(core, condition);
}

bool acs_core_stalled(acs_core *core)
{
    ACS_HOLD(&core->lock);
    return core->stalled != NULL;
}

bool acs_core_rests(acs_core *core)
{
    ACS_HOLD(&core->lock);
    return core->running <= core->host_running;
}

void acs_core_add_condition(acs_core *core, acs_wait_condition *condition)
{
    ACS_HOLD(&core->lock);
    condition->since = core->popped + core->counters.retired;
    condition->told = false;
    condition->next = core->polls_itself;
    core->polls_itself = condition;
}

void acs_core_remove_condition(acs_core *core, acs_wait_condition *condition)
{
    ACS_HOLD(&core->lock);
    acs_wait_condition **at = &core->polls_itself;
    while (*at != condition)
        at = &(*at)->next;
    *at = condition->next;
}

uint64_t acs_core_ends(acs_core *core)
{
    /* relaxed: a hint; the caller takes the lock to be sure */
    return atomic_load_explicit(&core->ends, memory_order_relaxed);
}

acs_op acs_core_settled(const acs_core *core)
{
    return atomic_load_explicit(&core->settled, memory_order_acquire); /* B: acquire; pairs with publish */
}

void acs_core_forget_block(acs_core *core, uint64_t base, uint64_t bytes)
{
    /* relaxed: stored before `settled`, which the caller has read (B) */
    if (ACS_LIKELY(!atomic_load_explicit(&core->poisoned, memory_order_relaxed)))
        return;
    ACS_HOLD(&core->lock);
    acs_window_forget_block(&core->window, base, bytes);
}

acs_core_load acs_core_look(acs_core *core)
{
    ACS_HOLD(&core->lock);
    return look_locked(core);
}

bool acs_core_look_try(acs_core *core, const acs_wait_condition *condition, uint32_t few, bool *is_true,
                       acs_core_load *load)
{
    if (!acs_lock_try(&core->lock))
        return false;
    if (condition)
        *is_true = true_locked(core, condition);
    *load = look_locked(core);
    if (*load == ACS_LOAD_RUNNING && core->running > few && !acs_core_awaits_end_locked(core))
        *load = ACS_LOAD_BLOCKED;
    acs_lock_release(&core->lock);
    return true;
}

void acs_core_clear(acs_core *core)
{
    ACS_HOLD(&core->lock);
    acs_window_clear_poison(&core->window);
    atomic_store_explicit(&core->poisoned, false, memory_order_relaxed); /* relaxed: acs_malloc may learn of it late */
}
