/*
 * The window's entries: places, states, edges and queues. It counts open edges, finds the ready ops, and passes
 * failures to downstream ops. depend.c finds the upstream ops. Called by the core, and by captures, under their lock.
 * It never calls a backend, never blocks and never allocates: window_life.c owns the memory.
 */
#include "window/window.h"

#include "base/tuning.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- queues */

/* An entry has one queue_next, so it is in one queue, or among the free entries, at a time. */
static void queue_push(acs_window *w, acs_queue *queue, acs_entry *entry)
{
    uint32_t index = acs_entry_index(w, entry);
    ACS_ASSERT(index != 0 && index <= w->entry_count);
    ACS_ASSERT((queue->head == 0) == (queue->count == 0));
    entry->queue_next = 0;
    if (queue->tail)
        w->entries[queue->tail].queue_next = index;
    else
        queue->head = index;
    queue->tail = index;
    queue->count++;
}

static acs_entry *queue_pop(acs_window *w, acs_queue *queue)
{
    if (!queue->head)
        return NULL;
    ACS_ASSERT(queue->count > 0);
    acs_entry *entry = &w->entries[queue->head];
    queue->head = entry->queue_next;
    if (!queue->head)
        queue->tail = 0;
    queue->count--;
    return entry;
}

/* Program order of the ops that have not ended; joins are not in it. collect_all walks it back from the tail. */
static void order_append(acs_window *w, acs_entry *entry)
{
    uint32_t index = acs_entry_index(w, entry);
    ACS_ASSERT(!w->order_tail || w->entries[w->order_tail].seq < entry->seq);
    entry->order_prev = w->order_tail;
    entry->order_next = 0;
    if (w->order_tail)
        w->entries[w->order_tail].order_next = index;
    else
        w->order_head = index;
    w->order_tail = index;
}

static void order_remove(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT((entry->order_prev ? w->entries[entry->order_prev].order_next : w->order_head) == entry->index);
    ACS_ASSERT((entry->order_next ? w->entries[entry->order_next].order_prev : w->order_tail) == entry->index);
    if (entry->order_prev)
        w->entries[entry->order_prev].order_next = entry->order_next;
    else
        w->order_head = entry->order_next;
    if (entry->order_next)
        w->entries[entry->order_next].order_prev = entry->order_prev;
    else
        w->order_tail = entry->order_prev;
}

/* Whether the number is the op's, or one of the numbers of a replay. */
static bool has_number(const acs_entry *entry, acs_op seq)
{
    return entry->seq == seq || (entry->kind == ACS_KIND_REPLAY && seq - entry->seq < entry->op->u.replay.span);
}

/*
 * Numbers are dense, so `by_seq` finds nearly every op at once. An op whose place in it was taken by a later one is
 * old, and so near the head of the order. A replay has the place of its first number alone.
 */
acs_entry *acs_window_find(acs_window *w, acs_op seq)
{
    acs_entry *entry = &w->entries[w->by_seq[seq & w->seq_mask]];
    if (entry->seq == seq && entry->op && entry->state != ACS_ENTRY_ENDED)
        return entry;
    for (uint32_t i = w->order_head; i && w->entries[i].seq <= seq; i = w->entries[i].order_next)
        if (has_number(&w->entries[i], seq))
            return &w->entries[i];
    return NULL;
}

acs_op acs_window_oldest(const acs_window *w)
{
    return w->order_head ? w->entries[w->order_head].seq : 0;
}

/* ---------------------------------------------------------------------------------------------------------- entries */

/*
 * Line by line: for one memset of this size the compiler emits an instruction whose start costs more than these
 * stores.
 */
static void entry_clear(acs_entry *entry)
{
    _Static_assert(sizeof *entry == 3 * ACS_CACHE_LINE, "as many as are cleared");
    unsigned char *lines = (unsigned char *)entry;
    memset(lines, 0, ACS_CACHE_LINE);
    memset(lines + ACS_CACHE_LINE, 0, ACS_CACHE_LINE);
    memset(lines + 2 * ACS_CACHE_LINE, 0, ACS_CACHE_LINE);
}

/* Take a place. Its generation keeps counting through all ops that have it, so references to earlier ones stay dead. */
acs_entry *acs_window_take(acs_window *w, acs_op seq, acs_record *op)
{
    const uint32_t index = w->free_entries;
    acs_entry *entry = &w->entries[index];
    ACS_ASSERT(index <= w->entry_count && entry->state == ACS_ENTRY_FREE); /* WIN-1, WIN-6 */
    w->free_entries = entry->queue_next ? entry->queue_next : index + 1;
    entry_clear(entry);
    w->holds[index].refs = 0;
    w->holds[index].stamp = 0;
    w->upstream[index].count = 0;
    entry->index = entry->clock = index;
    entry->seq = seq;
    entry->op = op;
    entry->slot = -1;
    entry->own_stamp = ++w->stamp;
    return entry;
}

bool acs_window_has_room(const acs_window *w, const acs_record *op)
{
    uint32_t all = w->live + w->live_joins;
    if (all == 0)
        return true; /* no upstream ops: neither edges nor joins are needed */
    if (w->live >= w->limit)
        return false;
    /* At most two joins per segment, one edge from each entry, and the edges of those joins. */
    uint64_t joins = 2 * (uint64_t)op->segment_count + 2;
    uint64_t edges = all + (uint64_t)TUNE_JOIN_EDGES * (op->segment_count + 1);
    for (const acs_reuse *r = op->flags & ACS_RECORD_REUSES ? op->reuses : NULL; r; r = r->next) {
        joins += 5; /* those of an op with one segment, and the join of the block's former life */
        edges += all + 2 * TUNE_JOIN_EDGES;
    }
    return w->live_joins + joins <= w->joins && w->edges_used + edges <= w->edge_count;
}

acs_entry *acs_window_new_join(acs_window *w, acs_op seq)
{
    acs_entry *join = acs_window_take(w, seq, NULL);
    join->kind = ACS_KIND_JOIN;
    join->state = ACS_ENTRY_PENDING;
    w->live_joins++;
    ACS_ASSERT(w->live_joins <= w->joins); /* WIN-1, WIN-6 */
    w->counters.joins++;
    return join;
}

/* The holder of an ended op keeps no count: its place may belong to another op. */
static void drop_pending_wait(acs_window *w, acs_entry *entry, uint32_t slot)
{
    const acs_slot_wait *slot_wait = &acs_entry_waits(w, entry)[slot];
    acs_entry *holder = &w->entries[slot_wait->entry];
    if (w->holds[slot_wait->entry].generation == slot_wait->generation) {
        ACS_ASSERT(holder->pending_waits > 0);
        holder->pending_waits--;
    }
    entry->pending_wait_mask &= ~(1ull << slot);
}

void acs_entry_drop_pending_waits(acs_window *w, acs_entry *entry)
{
    while (entry->pending_wait_mask)
        drop_pending_wait(w, entry, (uint32_t)__builtin_ctzll(entry->pending_wait_mask));
}

/* A slot runs in order, so of several waits in one slot the newest implies the others. */
static void raise_wait(acs_window *w, acs_entry *entry, uint32_t slot, acs_slot_wait slot_wait)
{
    ACS_ASSERT(slot < w->slots);
    uint64_t bit = 1ull << slot;
    acs_slot_wait *mine = &acs_entry_waits(w, entry)[slot];
    if ((entry->wait_mask & bit) && mine->value >= slot_wait.value)
        return;
    if (entry->pending_wait_mask & bit)
        drop_pending_wait(w, entry, slot);
    *mine = slot_wait;
    entry->wait_mask |= bit;
    acs_entry *holder = &w->entries[slot_wait.entry];
    if (w->holds[slot_wait.entry].generation != slot_wait.generation)
        return;
    holder->pending_waits++;
    entry->pending_wait_mask |= bit;
}

void acs_entry_merge_waits(acs_window *w, acs_entry *entry, const acs_entry *from)
{
    const acs_slot_wait *slot_waits = acs_entry_waits(w, from);
    for (uint64_t mask = from->wait_mask; mask; mask &= mask - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(mask);
        raise_wait(w, entry, slot, slot_waits[slot]);
    }
}

void acs_entry_set_waits(acs_window *w, acs_entry *entry, uint64_t mask, const acs_slot_wait *slot_waits)
{
    acs_entry_drop_pending_waits(w, entry);
    entry->wait_mask = 0;
    for (; mask; mask &= mask - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(mask);
        raise_wait(w, entry, slot, slot_waits[slot]);
    }
}

/* A join is in no slot: an op behind it runs behind the newest of its upstream ops in each slot. */
void acs_entry_add_wait(acs_window *w, acs_entry *entry, const acs_entry *upstream)
{
    if (upstream->kind == ACS_KIND_JOIN) {
        acs_entry_merge_waits(w, entry, upstream);
    } else if (upstream->slot >= 0) {
        acs_slot_wait slot_wait = {upstream->value, upstream->index, w->holds[upstream->index].generation};
        raise_wait(w, entry, (uint32_t)upstream->slot, slot_wait);
    }
}

/* ------------------------------------------------------------------------------------------------------------ edges */

/*
 * The backend orders two ops on the device once both are issued. If one end is the host, only retirement orders them.
 */
static uint8_t edge_type(const acs_window *w, const acs_entry *up, const acs_entry *down)
{
    if (down->kind == ACS_KIND_JOIN)
        return ACS_EDGE_JOIN;
    return w->host_wait || up->on_host || down->on_host ? ACS_EDGE_RETIRE : ACS_EDGE_ISSUE;
}

void acs_window_link(acs_window *w, acs_entry *up, acs_entry *down)
{
    /* One op is found through many overlapping regions; the stamp prevents a second edge without a search. */
    acs_hold *hold = acs_entry_hold(w, up);
    if (up == down || hold->stamp == down->own_stamp)
        return;
    hold->stamp = down->own_stamp;
    bool to_join = down->kind == ACS_KIND_JOIN;
    uint32_t level = to_join ? up->level : up->level + 1;
    if (down->level < level)
        down->level = level;
    w->counters.edges++;
    acs_upstream *upstream = &w->upstream[down->index];
    if (upstream->count < ACS_UPSTREAM_KEPT)
        upstream->refs[upstream->count++] = (acs_ref){up->index, hold->generation};
    if (ACS_UNLIKELY(w->linked != NULL)) {
        w->linked(w->user, up, down);
        return;
    }
    ACS_ASSERT(up->state != ACS_ENTRY_FREE && up->state != ACS_ENTRY_ENDED); /* WIN-4 */
    ACS_ASSERT(down->state == ACS_ENTRY_PENDING);
    uint8_t type = edge_type(w, up, down);
    bool issued = up->state == ACS_ENTRY_ISSUED;
    /* An ISSUE edge from an issued op is only a slot wait. A JOIN edge also counts the retirement, so it is made. */
    if (issued && type != ACS_EDGE_RETIRE) {
        acs_entry_add_wait(w, down, up);
        if (up->failed_by && !down->never_skipped && !down->failed_by)
            down->failed_by = up->failed_by; /* of issued entries: joins, and ops that propagate */
        if (type == ACS_EDGE_ISSUE)
            return;
    } else {
        down->pending++;
    }
    down->unretired += to_join;
    uint32_t index = w->edges_free;
    ACS_ASSERT(index <= w->edge_count && w->edges_used < w->edge_count); /* WIN-3, WIN-6 */
    acs_edge *edge = &w->edges[index];
    w->edges_free = edge->next ? edge->next : index + 1;
    w->edges_used++;
    edge->down = acs_entry_index(w, down);
    edge->next = up->edges;
    edge->type = type;
    up->edges = index;
    up->waiters++;
}

static void edge_free(acs_window *w, uint32_t index)
{
    ACS_ASSERT(index != 0 && w->edges_used > 0); /* WIN-3 */
    w->edges[index].next = w->edges_free;
    w->edges_free = index;
    w->edges_used--;
}

static void settle(acs_window *w);

/* Count one upstream edge of `down` as satisfied. */
static void satisfy(acs_window *w, acs_entry *up, acs_entry *down)
{
    if (up->failed_by && !down->never_skipped && !down->failed_by)
        down->failed_by = up->failed_by;
    ACS_ASSERT(down->state == ACS_ENTRY_PENDING || down->state == ACS_ENTRY_ISSUING);
    ACS_ASSERT(down->pending > 0); /* WIN-2 */
    if (--down->pending != 0)
        return;
    if (ACS_UNLIKELY(w->sites) && up->op)
        down->last = acs_record_label(up->op);
    if (down->state == ACS_ENTRY_PENDING)
        queue_push(w, &w->settle, down);
}

void acs_window_let_go(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->held && entry->state == ACS_ENTRY_PENDING && entry->pending > 0); /* WIN-2 */
    entry->held = false;
    w->held--;
    if (--entry->pending == 0)
        queue_push(w, &w->settle, entry);
    settle(w);
}

void acs_window_close_join(acs_window *w, acs_entry *join)
{
    (void)w;
    if (join->pending == 0)
        /* all upstream ops are issued; none has retired, since dead ones were not linked */
        join->state = ACS_ENTRY_ISSUED;
}

/* Whether `down` was issued in the same bundle, whose edges order the two. */
static bool placed_behind(const acs_entry *entry, const acs_entry *down)
{
    return down->bundled && down->state == ACS_ENTRY_ISSUING && down->slot == entry->slot;
}

/* Satisfy the ISSUE edges of an entry, and the first half of its JOIN edges. */
static void satisfy_issue(acs_window *w, acs_entry *entry)
{
    uint32_t *at = &entry->edges;
    while (*at) {
        uint32_t index = *at;
        acs_edge *edge = &w->edges[index];
        acs_entry *down = &w->entries[edge->down];
        if (edge->type == ACS_EDGE_RETIRE) {
            at = &edge->next;
            continue;
        }
        if (!placed_behind(entry, down))
            acs_entry_add_wait(w, down, entry);
        if (edge->type == ACS_EDGE_ISSUE) {
            *at = edge->next;
            edge_free(w, index);
            entry->waiters--;
        } else {
            at = &edge->next;
        }
        satisfy(w, entry, down);
    }
}

/* Satisfy and free all remaining edges. `issued`: satisfy_issue has run before. */
static void satisfy_end(acs_window *w, acs_entry *entry, bool issued)
{
    while (entry->edges) {
        uint32_t index = entry->edges;
        acs_edge edge = w->edges[index];
        acs_entry *down = &w->entries[edge.down];
        entry->edges = edge.next;
        edge_free(w, index);
        if (edge.type == ACS_EDGE_JOIN) {
            ACS_ASSERT(down->kind == ACS_KIND_JOIN && down->unretired > 0);
            down->unretired--;
            if (!issued)
                satisfy(w, entry, down);
            else if (down->unretired == 0 && down->state == ACS_ENTRY_ISSUED)
                queue_push(w, &w->settle, down);
        } else {
            satisfy(w, entry, down);
        }
    }
    entry->waiters = 0;
}

/* ----------------------------------------------------------------------------------------------------------- settle */

/*
 * Called when all upstream ops are issued, which satisfies the join's ISSUE edges, and when all have retired. The two
 * may coincide.
 */
static void settle_join(acs_window *w, acs_entry *join)
{
    if (join->state == ACS_ENTRY_PENDING) {
        join->state = ACS_ENTRY_ISSUED;
        satisfy_issue(w, join);
    }
    if (join->unretired != 0)
        return;
    acs_entry_drop_pending_waits(w, join);
    acs_entry_hold(w, join)->generation++;
    satisfy_end(w, join, true);
    ACS_ASSERT(w->live_joins > 0);
    w->live_joins--;
    acs_window_free(w, join);
}

/* The entry waits for no edge: skip it, end it, or make it ready. */
static void settle_one(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->pending == 0); /* WIN-2 */
    if (entry->kind == ACS_KIND_JOIN) {
        settle_join(w, entry);
    } else if (entry->failed_by && !entry->never_skipped && !entry->propagates_failure &&
               entry->kind != ACS_KIND_REPLAY) { /* the core finds the ops of a replay that are to be skipped */
        acs_window_drain(w, entry, ACS_ERR_SKIPPED, entry->failed_by);
    } else if (entry->kind == ACS_KIND_OBSERVE || (entry->observer && entry->on_host)) {
        acs_window_end(w, entry, w->dead && !entry->never_skipped ? ACS_ERR_DEVICE : ACS_OK, 0);
    } else if (w->dead && !entry->never_skipped) {
        acs_window_end(w, entry, ACS_ERR_DEVICE, 0);
    } else {
        entry->bundleable &= entry->failed_by == 0; /* its downstream ops in a bundle would not learn of it */
        acs_window_push_ready(w, entry, false);
    }
}

/* A queue, not recursion: a failure at the head of a long chain must not deepen the stack. */
static void settle(acs_window *w)
{
    acs_entry *entry;
    while (ACS_UNLIKELY((entry = queue_pop(w, &w->settle)) != NULL))
        settle_one(w, entry);
}

acs_entry *acs_window_pop_ready(acs_window *w)
{
    acs_entry *entry = queue_pop(w, &w->ready);
    ACS_ASSERT(!entry || entry->state == ACS_ENTRY_READY);
    if (entry && w->ready.head)
        w->entries[w->ready.head].queue_prev = 0;
    return entry;
}

void acs_window_push_ready(acs_window *w, acs_entry *entry, bool front)
{
    ACS_ASSERT(entry->pending == 0 && entry->kind != ACS_KIND_JOIN); /* WIN-2 */
    entry->state = ACS_ENTRY_READY;
    if (!front || !w->ready.head) {
        entry->queue_prev = w->ready.tail;
        queue_push(w, &w->ready, entry);
        return;
    }
    entry->queue_prev = 0;
    entry->queue_next = w->ready.head;
    w->entries[w->ready.head].queue_prev = entry->index;
    w->ready.head = entry->index;
    w->ready.count++;
}

void acs_window_remove_ready(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->state == ACS_ENTRY_READY && w->ready.count > 0);
    ACS_ASSERT((entry->queue_prev ? w->entries[entry->queue_prev].queue_next : w->ready.head) == entry->index);
    if (entry->queue_prev)
        w->entries[entry->queue_prev].queue_next = entry->queue_next;
    else
        w->ready.head = entry->queue_next;
    if (entry->queue_next)
        w->entries[entry->queue_next].queue_prev = entry->queue_prev;
    else
        w->ready.tail = entry->queue_prev;
    w->ready.count--;
}

void acs_window_issued(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->state == ACS_ENTRY_ISSUING && entry->pending == 0); /* WIN-2 */
    entry->state = ACS_ENTRY_ISSUED;
    satisfy_issue(w, entry);
    settle(w);
}

/*
 * Downstream ops in the window learn of a failure through their edges; later ops learn of it through the poison in
 * regions.
 */
void acs_window_end(acs_window *w, acs_entry *entry, acs_status status, acs_op failed_by)
{
    bool issued = entry->state == ACS_ENTRY_ISSUED;
    ACS_ASSERT(entry->kind != ACS_KIND_JOIN && entry->state != ACS_ENTRY_FREE && entry->state != ACS_ENTRY_ENDED);
    ACS_ASSERT(entry->pending == 0); /* WIN-5 */
    acs_entry_drop_pending_waits(w, entry);
    entry->state = ACS_ENTRY_ENDED;
    entry->status = status;
    bool propagates = entry->propagates_failure && status == ACS_OK;
    entry->failed_by = entry->never_skipped ? 0 : propagates ? entry->failed_by : failed_by;
    /* Before the edges: from here on, references to this op must be dead (WIN-4). */
    acs_entry_hold(w, entry)->generation++;
    if ((status != ACS_OK || propagates) && entry->failed_by && !entry->observer)
        acs_depend_poison(w, entry->op, entry->failed_by);
    order_remove(w, entry);
    satisfy_end(w, entry, issued);
    ACS_ASSERT(entry->pending_wait_mask == 0 && !entry->edges);
    queue_push(w, &w->ended, entry);
}

/* An op without slot waits ends at once. */
void acs_window_drain(acs_window *w, acs_entry *entry, acs_status status, acs_op failed_by)
{
    if (!entry->wait_mask) {
        acs_window_end(w, entry, status, failed_by);
        return;
    }
    ACS_ASSERT(status != ACS_OK);
    entry->state = ACS_ENTRY_DRAINING;
    entry->status = status;
    entry->failed_by = failed_by;
    queue_push(w, &w->draining, entry);
}

acs_entry *acs_window_pop_draining(acs_window *w)
{
    return queue_pop(w, &w->draining);
}

acs_entry *acs_window_pop_ended(acs_window *w)
{
    settle(w);
    return queue_pop(w, &w->ended);
}

/* Free a place. Between the end and this call the core still reads the op's record and status. */
void acs_window_free(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->kind == ACS_KIND_JOIN || entry->state == ACS_ENTRY_ENDED);
    ACS_ASSERT(entry->kind == ACS_KIND_JOIN || w->live > 0); /* WIN-1 */
    ACS_ASSERT(!entry->edges);                               /* WIN-3 */
    if (entry->kind != ACS_KIND_JOIN)
        w->live--;
    entry->op = NULL;
    entry->state = ACS_ENTRY_FREE;
    entry->queue_next = w->free_entries;
    w->free_entries = acs_entry_index(w, entry);
}

/* ----------------------------------------------------------------------------------------------------------- insert */

void acs_window_count_level(acs_window *w, const acs_entry *entry)
{
    if (entry->observer)
        return;
    if (w->counters.levels < entry->level)
        w->counters.levels = entry->level;
    if (entry->touches && w->level_touched < entry->level)
        w->level_touched = entry->level;
    if (entry->writes && w->level_written < entry->level)
        w->level_written = entry->level;
}

void acs_window_inserted(acs_window *w, acs_entry *entry)
{
    order_append(w, entry);
    w->by_seq[entry->seq & w->seq_mask] = acs_entry_index(w, entry);
    w->counters.inserted++;
    if (w->counters.window_high < w->live)
        w->counters.window_high = w->live;
    acs_window_count_level(w, entry);
    if (entry->pending == 0)
        settle_one(w, entry);
    settle(w);
}

void acs_window_release(acs_window *w, acs_entry *entry)
{
    ACS_ASSERT(entry->state == ACS_ENTRY_READY || entry->state == ACS_ENTRY_ISSUING);
    entry->state = ACS_ENTRY_PENDING;
    if (entry->pending == 0)
        queue_push(w, &w->settle, entry);
    settle(w);
}
