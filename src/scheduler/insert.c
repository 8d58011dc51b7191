/*
 * The core's way in: moves ops from the FIFO into the window, forms batches of single ops, and books the results of a
 * submitted batch. Called by step.c under the core's lock. It never calls a backend; slots.c owns the slots.
 */
#include "scheduler/core_internal.h"

#include "base/tuning.h"
#include "window/replay.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- insert */

static acs_entry_traits traits_of(const acs_core *core, const acs_record *op)
{
    acs_entry_traits traits = {0};
    switch (op->kind) {
    case ACS_KIND_HOST:
        traits.on_host = true;
        break;
    case ACS_KIND_FREE:
        traits.on_host = traits.never_skipped = true;
        break;
    case ACS_KIND_CALLBACK:
        traits.on_host = traits.never_skipped = true;
        traits.behind = op->u.callback.target;
        break;
    case ACS_KIND_CALL:
        traits.on_host = core->host_calls;
        break;
    case ACS_KIND_REPLAY:
        traits.held = !op->u.replay.replay;
        break;
    case ACS_KIND_OBSERVE:
        traits.on_host = traits.observer = true;
        break;
    case ACS_KIND_STREAM_SIGNAL:
        traits.observer = true;
        break;
    default:
        break;
    }
    return traits;
}

/* Announce this op and those behind it: their memory is prefetched together. */
static void expect(acs_core *core, acs_record *op, uint32_t most)
{
    acs_record *ops[TUNE_EXPECT_OPS] = {op};
    uint32_t count = 1;
    while (count < TUNE_EXPECT_OPS && count < most && (ops[count] = acs_fifo_peek(core->fifo, count - 1)))
        count++;
    acs_window_expect(&core->window, ops, count);
}

void acs_core_insert_locked(acs_core *core, uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        acs_record *op = core->stalled ? core->stalled : acs_fifo_pop(core->fifo);
        if (!op)
            break;
        core->popped += !core->stalled;
        core->stalled = NULL;
        if (i % TUNE_EXPECT_OPS == 0)
            expect(core, op, most);
        if (!acs_window_has_room(&core->window, op) ||
            (ACS_UNLIKELY(op->flags & ACS_RECORD_REUSES) && acs_core_replays_hold_back_locked(core))) {
            core->stalled = op;
            break;
        }
        acs_entry_traits traits = traits_of(core, op);
        ACS_ASSERT(op->seq == core->taken + 1); /* FIFO-1 */
        core->taken += acs_record_span(op);
        if (ACS_UNLIKELY(op->kind == ACS_KIND_REPLAY))
            acs_core_count_spans_locked(core, op->u.replay.span - 1);
        acs_entry *entry = acs_window_insert(&core->window, op, &traits);
        if (ACS_UNLIKELY(op->kind == ACS_KIND_REPLAY) && op->u.replay.replay)
            acs_depend_deepen(&core->window, entry, op->u.replay.depth);
        if (core->slots.devices > 1)
            entry->device = (uint8_t)op->device;
        ACS_TRACE(core, ACS_TRACE_INSERT, entry, NULL, NULL);
        acs_record_drop_reuses(op);
    }
    acs_core_collect_locked(core);
}

/* ------------------------------------------------------------------------------------------------------------ batch */

static bool runs_on_host(const acs_entry *entry)
{
    return entry->on_host && !entry->observer;
}

/* The device of a batch: all its ops belong to one. */
typedef struct choice {
    uint32_t device; /* device whose ops are preferred */
    bool chosen;     /* the batch has an op of that device */
    uint32_t barred; /* one bit per device whose slots other batches own */
} choice;

static bool may_join(const choice *c, const acs_entry *entry)
{
    if (runs_on_host(entry))
        return true;
    return c->chosen ? entry->device == c->device : !(c->barred >> entry->device & 1);
}

/* In order: the next op that has not been issued; NULL: it is not ready. Later ready ops stay in `ready`. */
static acs_entry *pop_in_order(acs_core *core, const choice *c)
{
    acs_window *w = &core->window;
    if (core->host_turn && acs_window_find(w, core->host_turn))
        return NULL;
    while (core->next_in_order <= core->taken) {
        acs_entry *next = acs_window_find(w, core->next_in_order);
        if (next && (next->state < ACS_ENTRY_READY || (next->state == ACS_ENTRY_READY && !may_join(c, next))))
            return NULL;
        core->next_in_order++;
        if (next && next->state == ACS_ENTRY_READY) { /* otherwise it was issued before an earlier one bounced */
            acs_window_remove_ready(w, next);
            return next;
        }
    }
    return NULL;
}

static void put_back(acs_core *core, acs_entry *entry)
{
    acs_window_push_ready(&core->window, entry, true);
    if (core->in_order && core->next_in_order > entry->seq)
        core->next_in_order = entry->seq;
}

/* Ops that may follow in the batch: ops whose upstream edges all come from ops of the batch, and the edges to them. */
typedef struct followers {
    uint32_t entries[TUNE_FOLLOWERS_MOST];
    uint32_t count;
    struct {
        uint32_t down;
        uint16_t item;
    } edges[TUNE_FOLLOWER_EDGES];
    uint32_t edge_count;
    bool awaited; /* only ops with the flag `awaited` may follow */
} followers;

static void follow(acs_core *core, acs_action *action, const acs_entry *entry, followers *follow)
{
    acs_window *w = &core->window;
    uint16_t item = (uint16_t)(action->batch.items_used - 1);
    if (entry->failed_by)
        return; /* its downstream ops must learn of the failure first */
    for (uint32_t at = entry->edges; at; at = w->edges[at].next) {
        if (w->edges[at].type != ACS_EDGE_ISSUE || follow->edge_count == TUNE_FOLLOWER_EDGES)
            continue;
        acs_entry *down = &w->entries[w->edges[at].down];
        if (down->state != ACS_ENTRY_PENDING || down->failed_by || acs_core_holds(core, down) ||
            (follow->awaited && !down->awaited) || down->device != entry->device)
            continue;
        if (down->batch != action->batch_id) {
            down->batch = action->batch_id;
            down->batch_count = 0;
        }
        down->batch_count++;
        ACS_ASSERT(down->batch_count <= down->pending); /* WIN-2 */
        acs_entry_add_wait(w, down, entry);
        follow->edges[follow->edge_count].down = w->edges[at].down;
        follow->edges[follow->edge_count++].item = item;
        if (down->batch_count == down->pending && follow->count < TUNE_FOLLOWERS_MOST)
            follow->entries[follow->count++] = w->edges[at].down;
    }
}

static void list_inner_edges(acs_action *action, const acs_entry *entry, uint32_t index, const followers *follow)
{
    acs_batch *batch = &action->batch;
    acs_item *item = &batch->items[batch->items_used - 1];
    item->first_edge = (uint16_t)batch->edges_used;
    if (entry->batch != action->batch_id)
        return;
    for (uint32_t i = 0; i < follow->edge_count; i++)
        if (follow->edges[i].down == index)
            batch->edges[batch->edges_used++] = follow->edges[i].item;
    ACS_ASSERT(batch->edges_used <= ACS_BATCH_EDGES);
    item->edge_count = (uint16_t)(batch->edges_used - item->first_edge);
}

/* Ops behind a library call would wait until the program's function returns, even if they do not depend on it. */
static bool ends_with_call(const acs_batch *batch)
{
    const acs_item *last = batch->items_used ? &batch->items[batch->items_used - 1] : NULL;
    return last && last->op && last->op->kind == ACS_KIND_CALL;
}

static bool place(acs_core *core, acs_action *action, acs_entry *entry, followers *follow_list)
{
    ACS_ASSERT(!core->dead);                                                                                  /* CORE-3 */
    ACS_ASSERT(entry->state == ACS_ENTRY_READY || (entry->state == ACS_ENTRY_PENDING && entry->batch_count)); /* WIN-2 */
    if (!acs_slots_place(&core->slots, &action->batch, action->batch_id, entry))
        return false;
    uint32_t index = acs_entry_index(&core->window, entry);
    uint32_t at = action->batch.items_used - 1;
    entry->state = ACS_ENTRY_ISSUING;
    if (ACS_UNLIKELY(entry->kind == ACS_KIND_REPLAY))
        acs_core_replay_placed_locked(core, entry);
    action->batch.device = entry->device;
    action->entries[at] = index;
    acs_core_running_locked(core, 1);
    ACS_TRACE(core, ACS_TRACE_ISSUE, entry, &action->batch.items[at], &action->batch);
    list_inner_edges(action, entry, index, follow_list);
    if (core->check_overlap)
        acs_core_check_issue_locked(core, &action->batch, entry);
    /* what follows a replay may have to be skipped for one of its ops, which only its booking tells */
    if (!core->in_order && entry->kind != ACS_KIND_STREAM_SIGNAL && entry->kind != ACS_KIND_REPLAY)
        follow(core, action, entry, follow_list);
    return true;
}

/* With several devices: the first ready op of the preferred device, or else of any that may join; 0: none. */
static uint32_t next_of_devices(const acs_core *core, const choice *c)
{
    const acs_window *w = &core->window;
    uint32_t other = 0;
    for (uint32_t i = w->ready.head; i; i = w->entries[i].queue_next) {
        const acs_entry *entry = &w->entries[i];
        if (acs_core_holds(core, entry) || !may_join(c, entry))
            continue;
        if (entry->device == c->device || runs_on_host(entry))
            return i;
        other = other ? other : i;
    }
    return other;
}

/* Take the next ready op that is not held for a bundle. `awaited`: only awaited ops, which are at the front. */
static acs_entry *pop_free(acs_core *core, bool awaited, const choice *c)
{
    acs_window *w = &core->window;
    if (core->in_order)
        return pop_in_order(core, c);
    uint32_t i = w->ready.head;
    if (awaited && i && !w->entries[i].awaited)
        return NULL;
    if (ACS_UNLIKELY(core->slots.devices > 1))
        i = next_of_devices(core, c);
    else if (!core->batching)
        return acs_window_pop_ready(w);
    while (i && acs_core_holds(core, &w->entries[i]))
        i = w->entries[i].queue_next;
    if (i)
        acs_window_remove_ready(w, &w->entries[i]);
    return i ? &w->entries[i] : NULL;
}

void acs_core_form_batch_locked(acs_core *core, acs_action *action, bool inserted)
{
    core->holding = false;
    if (ACS_UNLIKELY(core->batcher && !core->batching))
        core->batching = !atomic_load_explicit(&core->backend->bundles_later, memory_order_acquire); /* B in backend.h */
    bool awaited = acs_core_hasten_awaited_locked(core);
    if (!awaited && core->batching && core->batcher->form(core, action, inserted))
        return;
    followers list;
    list.count = list.edge_count = 0;
    list.awaited = awaited;
    uint32_t followed = 0;
    choice c = {.device = action->device};
    while (action->batch.items_used < core->batch_limit && !ends_with_call(&action->batch)) {
        if (followed < list.count) {
            acs_entry *entry = acs_window_entry(&core->window, list.entries[followed++]);
            (void)place(core, action, entry, &list); /* if it fails, the op becomes ready when the batch is booked */
            continue;
        }
        acs_entry *entry = pop_free(core, awaited, &c);
        if (!entry && awaited && action->batch.items_used == 0) { /* the awaited ops run on the host */
            awaited = list.awaited = false;
            continue;
        }
        if (!entry)
            break;
        if (runs_on_host(entry)) {
            acs_core_push_host_locked(core, entry);
            core->host_turn = core->in_order ? entry->seq : 0;
        } else if (place(core, action, entry, &list)) {
            c.device = entry->device;
            c.chosen = true;
        } else {
            put_back(core, entry);
            c.barred |= 1u << entry->device;
            if (c.chosen || core->in_order || core->slots.devices == 1)
                break;
        }
    }
    const acs_window *w = &core->window;
    core->holding = action->batch.items_used == 0 && w->ready.head && acs_core_holds(core, &w->entries[w->ready.head]);
}

/* ------------------------------------------------------------------------------------------------------------- book */

/* The program asked for an op of this kind, and it was issued as a kernel. */
static void count_became_kernel(acs_core *core, acs_op_kind asked, uint64_t change)
{
    core->counters.kinds[asked] += change;
    core->counters.copies_as_kernels += asked != ACS_KIND_CALL ? change : 0;
    core->counters.calls_as_kernels += asked == ACS_KIND_CALL ? change : 0;
}

void acs_core_count_issued_locked(acs_core *core, const acs_entry *entry, acs_issue_method method, int change)
{
    acs_core_counters *c = &core->counters;
    const uint64_t by = (uint64_t)(int64_t)change;
    if (ACS_UNLIKELY(entry->asked != entry->kind))
        count_became_kernel(core, entry->asked, by);
    else
        c->kinds[entry->asked] += by;
    if (entry->asked == ACS_KIND_KERNEL)
        c->methods[method] += by;
    if (entry->asked == ACS_KIND_KERNEL && method == ACS_METHOD_LAUNCH)
        *(!core->batching || !entry->bundleable ? &c->launched_unfit
          : entry->bounced                     ? &c->launched_refused
                                               : &c->launched_few) += by;
    c->shares += entry->share != 0 ? by : 0;
}

static void book_replay(acs_core *core, const acs_entry *entry)
{
    const acs_replay *replay = entry->op->u.replay.replay;
    const acs_replay_shape *shape = replay->shape;
    acs_core_counters *c = &core->counters;
    c->replays++;
    for (uint32_t word = 0; word < ACS_REPLAY_WORDS; word++) {
        const uint64_t kernels = (uint64_t)__builtin_popcountll(replay->on[word] & ~shape->became_kernel[word]);
        c->replayed += (uint64_t)__builtin_popcountll(replay->on[word]);
        c->kinds[ACS_KIND_KERNEL] += kernels;
        c->methods[ACS_METHOD_REPLAY] += kernels;
        for (uint64_t left = replay->on[word] & shape->became_kernel[word]; left; left &= left - 1)
            count_became_kernel(core, shape->op[word * 64 + (uint32_t)__builtin_ctzll(left)]->asked, 1);
    }
    acs_core_replay_booked_locked(core, entry);
}

static void book_issued(acs_core *core, acs_entry *entry, acs_issue_method method)
{
    acs_core_count_issued_locked(core, entry, method, 1);
    if (ACS_UNLIKELY(entry->kind == ACS_KIND_REPLAY))
        book_replay(core, entry);
    if (entry->slot >= 0)
        acs_slots_append(&core->slots, entry);
    acs_window_issued(&core->window, entry);
    if (entry->slot >= 0)
        return;
    acs_core_running_locked(core, -1);
    acs_window_end(&core->window, entry, ACS_OK, 0); /* the foreign stream waits now: done */
}

/* The op was not issued, and leaves its slot. */
static void book_refused(acs_core *core, acs_entry *entry, const acs_item *item)
{
    acs_slots_cancel(&core->slots, item->slot);
    acs_core_running_locked(core, -1);
    entry->slot = -1;
    entry->value = 0;
    core->bundled_out -= entry->bundled;
    entry->bundled = false;
    if (item->status == ACS_NOT_READY) {
        entry->bounced++;
        put_back(core, entry);
    } else if (item->status == ACS_ERR_SKIPPED || entry->pending > 0) {
        /*
         * An upstream op of the batch failed or bounced: the op is skipped, waits for it, or is ready again. If the
         * device was lost with that op, this one ends after it (WIN-5).
         */
        acs_window_release(&core->window, entry);
    } else {
        acs_core_fail_locked(core, entry, item->status, item->native, item->text);
    }
}

void acs_core_book_batch_locked(acs_core *core, acs_action *action)
{
    if (action->batch.items_used == 0)
        return;
    const acs_item *fatal = acs_batch_fatal(&action->batch);
    core->window.dead |= fatal != NULL; /* before any op settles: no downstream op of a lost one may end well */
    acs_slots_batch_done(&core->slots, action->batch_id);
    uint64_t complete = 0; /* slots whose ops another thread's poll saw complete, while they were not booked */
    acs_issue_method method = action->batch.bundle ? (acs_issue_method)action->batch.method : ACS_METHOD_LAUNCH;
    for (uint32_t i = 0; i < action->batch.items_used; i++) {
        const acs_item *item = &action->batch.items[i];
        acs_entry *entry = acs_window_entry(&core->window, action->entries[i]);
        if (i + TUNE_BOOK_FETCH_OPS < action->batch.items_used)
            acs_entry_fetch(acs_window_entry(&core->window, action->entries[i + TUNE_BOOK_FETCH_OPS]));
        if (!item->op)
            continue;
        ACS_ASSERT(entry->state == ACS_ENTRY_ISSUING && entry->op == item->op); /* CORE-1 */
        ACS_ASSERT(entry->slot == item->slot && entry->value == item->value);
        if (item->status != ACS_OK) {
            book_refused(core, entry, item);
            continue;
        }
        /* Not once the device is known to be lost: what it ran behind has ended with the device. */
        if (ACS_UNLIKELY(item->slot >= 0 && item->value <= core->slots.slot[item->slot].completed && !core->dead))
            complete |= 1ull << item->slot;
        ACS_TRACE(core, ACS_TRACE_BOOK, entry, NULL, &action->batch);
        book_issued(core, entry, method);
    }
    for (; complete; complete &= complete - 1)
        acs_core_retire_locked(core, (uint32_t)__builtin_ctzll(complete));
    if (!fatal && !core->dead)
        return;
    acs_error error;
    acs_error_fill(&error, ACS_ERR_DEVICE, fatal ? fatal->native : 0, "submit", "%s",
                   fatal && fatal->text ? fatal->text : "the device is lost");
    acs_core_fault_locked(core, &error);
}
