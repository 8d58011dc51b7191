/*
 * The core's way out: ends completed ops, reports failed ones, and ends all ops of a lost device. Called by step.c,
 * insert.c, overdue.c and bundles under the core's lock. It reports through the functions of acs_core_config, and
 * never blocks.
 */
#include "scheduler/core_internal.h"

#include "window/replay.h"

#include <stdio.h>
#include <string.h>

enum { SUSPECTS_NAMED = 4 };

void acs_core_running_locked(acs_core *core, int change)
{
    ACS_ASSERT((int64_t)core->running + change >= 0);
    core->running = (uint32_t)((int)core->running + change);
    if (core->counters.running_high < core->running)
        core->counters.running_high = core->running;
}

/*
 * Number of issued ops of a slot that may be running: their upstream ops, and the ops before them in the slot, have
 * ended. A slot holds a bundle as a whole, so inside one only its edges count.
 */
static uint32_t may_run(const acs_core *core, uint32_t s)
{
    const acs_slot *slot = &core->slots.slot[s];
    const acs_entry *entries = core->window.entries, *head = &entries[slot->head];
    if (!slot->head || !acs_slots_reached(&core->slots, head))
        return 0;
    if (!head->bundled)
        return 1;
    uint32_t count = 0;
    const acs_entry *end = &entries[0];
    for (const acs_entry *e = head; e != end && e->bundled && e->batch == head->batch; e = &entries[e->slot_next])
        count += e->inner_value <= slot->completed;
    return count;
}

void acs_core_tell_activity_locked(acs_core *core)
{
    uint32_t running = core->host_running;
    for (uint32_t s = 0; s < core->slots.used && !core->backend->ops->tells_running; s++)
        running += may_run(core, s);
    acs_activity_set(core->config.activity, ACS_ACTIVITY_CORE, running);
}

/* ---------------------------------------------------------------------------------------------------------- collect */

static void report_end(acs_core *core, const acs_entry *entry, int native, const char *text)
{
    acs_end end = {.op = entry->op,
                   .status = entry->status,
                   .failed_by = entry->status == ACS_ERR_SKIPPED ? entry->failed_by : 0,
                   .native = native,
                   .text = text,
                   .serialised_behind = entry->last};
    core->config.on_end(core->config.user, &end);
}

static void count_end(acs_core *core, const acs_entry *entry)
{
    const uint32_t span = acs_record_span(entry->op);
    core->counters.retired += span;
    core->spans -= span - 1;
    if (ACS_LIKELY(entry->status == ACS_OK) || entry->kind == ACS_KIND_REPLAY)
        return;
    core->counters.skipped += entry->status == ACS_ERR_SKIPPED;
    core->counters.failed += entry->status != ACS_ERR_SKIPPED;
}

/* End failed and skipped ops whose slot waits are complete (WIN-5). */
static bool end_drained(acs_core *core)
{
    bool ended = false;
    for (uint32_t left = core->window.draining.count; left > 0; left--) {
        acs_entry *entry = acs_window_pop_draining(&core->window);
        ended |= acs_slots_reached(&core->slots, entry);
        if (acs_slots_reached(&core->slots, entry))
            acs_window_end(&core->window, entry, entry->status, entry->failed_by);
        else
            acs_window_drain(&core->window, entry, entry->status, entry->failed_by);
    }
    return ended;
}

static void release_op(acs_core *core, const acs_entry *entry, acs_record_chain *chain)
{
    if (entry->kind == ACS_KIND_STREAM_WAIT && entry->op->u.stream.event)
        core->backend->ops->event_release(core->backend, entry->op->u.stream.event);
    if (ACS_UNLIKELY(entry->kind == ACS_KIND_REPLAY))
        acs_replay_give_back(entry->op->u.replay.replay);
    acs_record_gather(core->config.records, chain, entry->op);
}

void acs_core_count_spans_locked(acs_core *core, uint32_t more)
{
    core->spans += more;
    /* relaxed: a hint, see acs_core_ends */
    atomic_store_explicit(&core->ends, core->counters.retired + core->spans, memory_order_relaxed);
}

/*
 * Store the atomics that callers read without the lock.
 *
 * B: release of `settled`; pairs with the acquire in acs_core_settled. Seeing ops settled implies seeing their poison.
 */
static void publish(acs_core *core)
{
    if (core->published == core->counters.retired)
        return; /* nothing has ended since */
    core->published = core->counters.retired;
    acs_op oldest = acs_window_oldest(&core->window);
    ACS_ASSERT(oldest <= core->taken);
    atomic_store_explicit(&core->ends, core->counters.retired + core->spans, memory_order_relaxed); /* as above */
    atomic_store_explicit(&core->poisoned, core->window.poisoned != 0, memory_order_relaxed); /* published by B */
    if (!core->given_up) /* otherwise ended ops may still run */
        atomic_store_explicit(&core->settled, oldest ? oldest - 1 : core->taken, memory_order_release); /* B */
}

static void collect_ended(acs_core *core)
{
    acs_record_chain chain = {0};
    acs_entry *entry;
    while ((entry = acs_window_pop_ended(&core->window))) {
        ACS_ASSERT(entry->state == ACS_ENTRY_ENDED && entry->pending == 0); /* WIN-5 */
        ACS_ASSERT(!entry->left || core->given_up);                         /* CORE-4 */
        ACS_ASSERT(!entry->reported || entry->status != ACS_OK);            /* CORE-2 */
        ACS_TRACE(core, ACS_TRACE_RETIRE, entry, NULL, NULL);
        count_end(core, entry);
        core->bundled_out -= entry->bundled;
        if (ACS_UNLIKELY(entry->kind == ACS_KIND_REPLAY))
            acs_core_replay_ended_locked(core, entry);
        else if (!entry->reported &&
                 (entry->status != ACS_OK || !core->config.failures_only || entry->op->flags & ACS_RECORD_TIMED))
            report_end(core, entry, 0, NULL);
        if (!entry->left) /* CORE-4 */
            release_op(core, entry, &chain);
        acs_window_free(&core->window, entry);
    }
    acs_record_release_all(core->config.records, &chain);
    publish(core);
}

void acs_core_collect_locked(acs_core *core)
{
    do
        collect_ended(core);
    while (core->window.draining.count && end_drained(core));
}

void acs_core_replay_sealed(acs_core *core, acs_record *record, acs_replay *replay)
{
    const uint32_t depth = core->config.depths ? acs_replay_depth(replay) : 1;
    acs_lock_acquire(&core->lock);
    record->u.replay.replay = replay;
    record->u.replay.depth = depth;
    core->counters.unused += record->u.replay.span - replay->count;
    acs_entry *entry = record->seq <= core->taken ? acs_window_find(&core->window, record->seq) : NULL;
    if (entry) {
        acs_depend_deepen(&core->window, entry, depth);
        acs_window_let_go(&core->window, entry);
        acs_core_collect_locked(core); /* it ends at once if the device is lost */
    }
    acs_lock_release(&core->lock);
}

void acs_core_report_locked(acs_core *core, acs_entry *entry, acs_status status, int native, const char *text)
{
    ACS_ASSERT(!entry->reported && status != ACS_OK); /* CORE-2 */
    entry->status = status;
    if (ACS_LIKELY(entry->kind != ACS_KIND_REPLAY)) /* its ops are reported when it ends */
        report_end(core, entry, native, text);
    entry->reported = 1;
}

void acs_core_fail_locked(acs_core *core, acs_entry *entry, acs_status status, int native, const char *text)
{
    acs_core_report_locked(core, entry, status, native, text);
    acs_window_drain(&core->window, entry, status, status == ACS_ERR_DEVICE ? 0 : entry->seq);
}

/* A completed op vouches for all that it ran behind in other slots. Returns one bit per slot in which that is new. */
static uint64_t learn_completed(acs_core *core, const acs_entry *entry)
{
    const uint64_t *clock = acs_entry_clock(&core->window, entry);
    uint64_t learnt = 0;
    for (uint32_t s = 0; s < core->slots.used; s++) {
        if ((int)s == entry->slot || clock[s] <= core->slots.slot[s].completed)
            continue;
        acs_slots_completed(&core->slots, s, clock[s]);
        learnt |= 1ull << s;
    }
    return learnt;
}

/*
 * Of a slot's completed ops the newest vouches for all: a slot's clock never falls (SLOT-4), so no older op's clock
 * exceeds the newest one's anywhere.
 */
void acs_core_retire_locked(acs_core *core, uint32_t slot)
{
    uint64_t slots = 1ull << slot;
    int ended = 0;
    while (slots) {
        uint32_t s = (uint32_t)__builtin_ctzll(slots);
        slots &= slots - 1;
        acs_entry *entry, *newest = NULL;
        while ((entry = acs_slots_pop_complete(&core->slots, s))) {
            newest = entry;
            acs_window_fetch_behind(&core->window, entry);
            __builtin_prefetch(entry->op, 1); /* returns to its pool soon */
            acs_window_end(&core->window, entry, entry->status, entry->status == ACS_OK ? 0 : entry->failed_by);
            ended++;
        }
        if (newest)
            slots |= learn_completed(core, newest);
    }
    if (ended)
        acs_core_running_locked(core, -ended);
}

/* ------------------------------------------------------------------------------------------------------------ fault */

/* The list of suspects at the end of an error's text. */
typedef struct suspects {
    acs_error *error;
    size_t used;
    uint32_t named, more;
} suspects;

static void name_suspect(suspects *s, const acs_record *op)
{
    acs_error *error = s->error;
    if (s->named >= SUSPECTS_NAMED || s->used + 1 >= sizeof error->text) {
        s->more++;
        return;
    }
    s->used += (size_t)snprintf(error->text + s->used, sizeof error->text - s->used, "%s op %llu '%.40s' (%s:%d)",
                                s->named ? "," : "; suspects:", (unsigned long long)op->seq, acs_record_name(op),
                                op->site->file ? op->site->file : "?", op->site->line);
    if (s->used >= sizeof error->text)
        s->used = sizeof error->text - 1;
    if (s->named++ == 0) {
        error->op = op->seq;
        error->site = acs_label_site(acs_record_label(op));
    }
}

static void name_replay(suspects *s, const acs_replay *replay)
{
    for (uint32_t at = 0; at < replay->shape->ops; at++) {
        if (!acs_replay_has(replay, at))
            continue;
        acs_record op = *replay->shape->op[at]; /* another thread may be filling the replay's own */
        op.seq = acs_replay_number(replay, at);
        name_suspect(s, &op);
    }
}

/* Name the issued ops: one of them is to blame. */
static void name_suspects(acs_core *core, acs_error *error)
{
    const acs_window *w = &core->window;
    suspects s = {.error = error, .used = strlen(error->text)};
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next) {
        const acs_entry *entry = &w->entries[i];
        const bool runs = entry->state == ACS_ENTRY_ISSUED && entry->status == ACS_OK; /* else it failed, or is skipped */
        if (runs && entry->kind == ACS_KIND_REPLAY)
            name_replay(&s, entry->op->u.replay.replay);
        else if (runs)
            name_suspect(&s, entry->op);
    }
    if (s.more && s.used + 1 < sizeof error->text)
        snprintf(error->text + s.used, sizeof error->text - s.used, " and %u more", s.more);
}

static void end_slot_ops(acs_core *core, acs_slot *slot)
{
    while (slot->head) {
        acs_entry *entry = acs_window_entry(&core->window, slot->head);
        ACS_ASSERT(entry->state == ACS_ENTRY_ISSUED && slot->outstanding > 0);
        slot->head = entry->slot_next;
        slot->outstanding--;
        acs_core_running_locked(core, -1);
        acs_window_end(&core->window, entry, entry->status == ACS_OK ? ACS_ERR_DEVICE : entry->status,
                       entry->status == ACS_OK ? 0 : entry->failed_by);
    }
    slot->tail = 0;
}

void acs_core_push_host_locked(acs_core *core, acs_entry *entry)
{
    uint32_t index = acs_entry_index(&core->window, entry);
    entry->state = ACS_ENTRY_ISSUING; /* chosen: no longer among the ready ones */
    entry->queue_next = 0;
    if (core->host_queue.tail)
        core->window.entries[core->host_queue.tail].queue_next = index;
    else
        core->host_queue.head = index;
    core->host_queue.tail = index;
    core->host_queue.count++;
}

acs_entry *acs_core_pop_host_locked(acs_core *core)
{
    acs_entry *entry = &core->window.entries[core->host_queue.head];
    ACS_ASSERT(core->host_queue.count > 0 && entry->state == ACS_ENTRY_ISSUING);
    core->host_queue.head = entry->queue_next;
    if (!core->host_queue.head)
        core->host_queue.tail = 0;
    core->host_queue.count--;
    return entry;
}

/* Issued and ready ops end now; the others end when the window finds them ready (window.dead). */
void acs_core_fault_locked(acs_core *core, acs_error *error)
{
    if (!core->dead) {
        core->dead = true;
        if (!error->op)
            name_suspects(core, error);
        core->config.on_fault(core->config.user, error);
    }
    core->window.dead = true;
    for (uint32_t s = 0; s < core->slots.used; s++)
        end_slot_ops(core, &core->slots.slot[s]);
    for (uint32_t left = core->window.ready.count; left > 0; left--)
        acs_window_release(&core->window, acs_window_pop_ready(&core->window));
    for (uint32_t left = core->host_queue.count; left > 0; left--) {
        acs_entry *entry = acs_core_pop_host_locked(core);
        if (entry->never_skipped)
            acs_core_push_host_locked(core, entry);
        else
            acs_window_release(&core->window, entry);
    }
}

void acs_core_lose(acs_core *core, acs_error *error)
{
    if (core->backend->queue)
        core->backend->ops->settle(core->backend);
    ACS_HOLD(&core->lock);
    acs_core_fault_locked(core, error);
    acs_core_collect_locked(core);
}
