/*
 * Forming of bundles: which ops leave the window together, to be issued by a method that costs less than one launch
 * each. Called by insert.c under the core's lock, through acs_bundle_batcher; never calls a backend.
 *
 * A search gathers the ops that could be issued, in program order: ready ops, and ops that wait for gathered ones
 * only. Ops that edges connect are a *part*. Parts that wait for the same slots form a group; parts that wait for none
 * are spread over a few groups. A group without outstanding upstream ops goes at once, since the GPU may be idle.
 * Another group is deferred, since the GPU has work and small bundles cost it time. It goes when it has its full size,
 * or when the GPU is about to run dry. It also goes when a caller waits for an op that was not issued, or when no op
 * came for a while. Small groups are launched one by one.
 *
 * A bundle takes at most `most` ops of the program's order, from the first that was not issued. So a program that repeats
 * itself gives the same bundles again if it waits between its repeats.
 */
#include "bundles/bundler.h"
#include "scheduler/core_internal.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

enum { GATHERED_NONE = UINT16_MAX };

/* ----------------------------------------------------------------------------------------------------------- gather */

static uint32_t part_root(acs_gathering *g, uint32_t at)
{
    while (g->part[at] != at)
        at = g->part[at] = g->part[g->part[at]];
    return at;
}

static void gather(acs_core *core, acs_entry *entry, uint64_t stamp)
{
    acs_gathering *g = &core->bundler->gathering;
    ACS_ASSERT(g->count < ACS_BATCH_ITEMS);
    uint32_t at = g->count++;
    if (entry->batch != stamp) { /* no gathered entry has an edge to it */
        entry->batch = stamp;
        entry->batch_edge = 0;
    }
    entry->batch_count = at;
    entry->force_launch = false;
    g->entries[at] = acs_entry_index(&core->window, entry);
    g->generations[at] = acs_entry_hold(&core->window, entry)->generation;
    g->part[at] = (uint16_t)at;
    for (uint32_t e = entry->batch_edge; e; e = g->edges[e].next)
        g->part[part_root(g, g->edges[e].from)] = (uint16_t)at;
}

/*
 * Follow an edge from a gathered entry: `down` then waits for one entry less. The caller gathers joins at once, ops in
 * program order.
 */
static void follow_edge(acs_core *core, uint32_t from, acs_entry *down, uint64_t stamp)
{
    acs_gathering *g = &core->bundler->gathering;
    const uint8_t device = core->window.entries[g->entries[from]].device;
    if (down->state != ACS_ENTRY_PENDING || down->failed_by || g->edge_count + 1 == ACS_BATCH_EDGES)
        return;
    if (down->batch != stamp) {
        down->batch = stamp;
        down->batch_count = 0;
        down->batch_edge = 0;
        if (down->kind == ACS_KIND_JOIN)
            down->device = device;
    }
    if (down->device != device)
        return; /* it waits for the issue of an op of another device, so it cannot share a bundle with this one */
    g->edge_count++;
    g->edges[g->edge_count].from = (uint16_t)from;
    g->edges[g->edge_count].next = (uint16_t)down->batch_edge;
    down->batch_edge = g->edge_count;
    down->batch_count++;
}

static void gather_with_joins(acs_core *core, acs_entry *entry, uint64_t stamp)
{
    acs_window *w = &core->window;
    acs_gathering *g = &core->bundler->gathering;
    uint32_t at = g->count;
    gather(core, entry, stamp);
    for (; at < g->count; at++)
        for (uint32_t e = w->entries[g->entries[at]].edges; e; e = w->edges[e].next) {
            acs_entry *down = &w->entries[w->edges[e].down];
            if (w->edges[e].type == ACS_EDGE_RETIRE)
                continue;
            follow_edge(core, at, down, stamp);
            if (down->kind == ACS_KIND_JOIN && down->batch == stamp && down->batch_count == down->pending &&
                down->state == ACS_ENTRY_PENDING && g->count < ACS_BATCH_ITEMS - 1)
                gather(core, down, stamp);
        }
}

static bool can_follow(const acs_entry *entry, uint64_t stamp)
{
    bool follows = entry->state == ACS_ENTRY_PENDING && !entry->failed_by && entry->batch == stamp &&
                   entry->batch_count == entry->pending;
    return (entry->state == ACS_ENTRY_READY || follows) && acs_entry_is_bundleable(entry);
}

/* Whether ops wait to enter the window. */
static bool ops_come(const acs_core *core)
{
    return core->stalled || acs_fifo_ready(core->fifo);
}

/* Search a piece of the program's order, from the first op that was not issued; if no op of it can go, the next one. */
static void gather_all(acs_core *core)
{
    acs_window *w = &core->window;
    acs_gathering *g = &core->bundler->gathering;
    uint64_t stamp = ++core->batch_ids;
    acs_op first = 0, last = 0;
    g->count = g->edge_count = 0;
    g->complete = false;
    for (uint32_t i = w->order_head; i && g->count < ACS_BATCH_ITEMS - 1; i = w->entries[i].order_next) {
        acs_entry *entry = &w->entries[i];
        acs_window_fetch_behind(w, entry);
        last = entry->seq;
        if (first && last >= first + core->bundler->most) {
            g->complete = true;
            if (g->count)
                return;
            first = 0; /* no op of this piece can go, and later pieces need not wait for it */
        }
        if (entry->state > ACS_ENTRY_READY)
            continue;
        first = first ? first : entry->seq;
        if (can_follow(entry, stamp))
            gather_with_joins(core, entry, stamp);
    }
    g->complete = first && last + 1 == first + core->bundler->most;
}

/* ------------------------------------------------------------------------------------------------------------ group */

/* Sum up the ops and slots of each part, at its root. */
static void sum_parts(acs_core *core)
{
    acs_gathering *g = &core->bundler->gathering;
    memset(g->ops_of, 0, g->count * sizeof g->ops_of[0]);
    memset(g->behind, 0, g->count * sizeof g->behind[0]);
    for (uint32_t at = 0; at < g->count; at++) {
        const acs_entry *entry = acs_window_entry(&core->window, g->entries[at]);
        uint32_t part = part_root(g, at);
        g->ops_of[part] += entry->kind != ACS_KIND_JOIN;
        if (entry->wait_mask)
            g->behind[part] |= acs_slots_unreached(&core->slots, entry);
    }
}

/*
 * Groups of parts: of one device, and waiting for the same slots. Parts that wait for none go into a few groups of
 * about the same size.
 */
typedef struct grouping {
    uint64_t behind[TUNE_BUNDLE_GROUPS_MOST];
    uint16_t group[TUNE_BUNDLE_GROUPS_MOST]; /* root of the group's first part */
    uint32_t count;              /* number of groups */
    /* groups that wait for no slot, by device: how many there may be, and are */
    uint32_t spread[ACS_DEVICES_MOST], free[ACS_DEVICES_MOST];
} grouping;

static uint8_t device_of(const acs_core *core, uint32_t at)
{
    return core->window.entries[core->bundler->gathering.entries[at]].device;
}

/* The group for a part: the smallest that waits for the same slots. The part itself: it begins a new group. */
static uint32_t group_for(const acs_core *core, grouping *all, uint32_t at)
{
    const acs_gathering *g = &core->bundler->gathering;
    const uint8_t device = device_of(core, at);
    bool more = g->behind[at] == 0 && all->free[device] < all->spread[device];
    uint32_t best = TUNE_BUNDLE_GROUPS_MOST;
    for (uint32_t k = 0; k < all->count; k++)
        if (all->behind[k] == g->behind[at] && device_of(core, all->group[k]) == device &&
            (best == TUNE_BUNDLE_GROUPS_MOST || g->ops_of[all->group[k]] < g->ops_of[all->group[best]]))
            best = k;
    if ((best != TUNE_BUNDLE_GROUPS_MOST && !more) || all->count == TUNE_BUNDLE_GROUPS_MOST)
        return best == TUNE_BUNDLE_GROUPS_MOST ? at : all->group[best];
    all->behind[all->count] = g->behind[at];
    all->group[all->count++] = (uint16_t)at;
    all->free[device] += g->behind[at] == 0;
    return at;
}

static void merge_parts(acs_core *core)
{
    acs_gathering *g = &core->bundler->gathering;
    grouping all = {.count = 0};
    uint32_t ops[ACS_DEVICES_MOST] = {0};
    for (uint32_t at = 0; at < g->count; at++)
        ops[device_of(core, at)] += g->part[at] == at && g->behind[at] == 0 ? g->ops_of[at] : 0;
    for (uint32_t d = 0; d < core->slots.devices; d++)
        all.spread[d] = ops[d] / TUNE_BUNDLE_SPREAD_OPS < TUNE_BUNDLE_SPREAD_MOST ? ops[d] / TUNE_BUNDLE_SPREAD_OPS
                                                                                  : TUNE_BUNDLE_SPREAD_MOST;
    for (uint32_t at = 0; at < g->count; at++) {
        if (g->part[at] != at)
            continue;
        uint32_t group = group_for(core, &all, at);
        if (group == at)
            continue;
        g->part[at] = (uint16_t)group;
        g->ops_of[group] = (uint16_t)(g->ops_of[group] + g->ops_of[at]);
    }
}

static uint32_t outstanding_in(const acs_core *core, uint64_t slots)
{
    uint32_t ops = 0;
    for (; slots; slots &= slots - 1)
        ops += core->slots.slot[__builtin_ctzll(slots)].outstanding;
    return ops;
}

/* Whether a group of `ops` goes now, as a bundle or by launches. */
static bool is_due(const acs_core *core, uint32_t ops, uint64_t behind)
{
    const acs_gathering *g = &core->bundler->gathering;
    if (!behind || g->complete || core->bundler->deferred >= TUNE_BUNDLE_DEFERRED_STEPS ||
        (g->awaited && !ops_come(core)))
        return true;
    return ops >= 2 * outstanding_in(core, behind);
}

/*
 * List the members of each group. Joins without a follower stay in the window. The pass goes backwards, since a join
 * may follow a join.
 */
static void list_groups(const acs_window *w, acs_gathering *g)
{
    bool used[ACS_BATCH_ITEMS];
    memset(used, 0, g->count * sizeof used[0]);
    memset(g->first, 0xff, g->count * sizeof g->first[0]);
    for (uint32_t at = g->count; at-- > 0;) {
        const acs_entry *entry = &w->entries[g->entries[at]];
        if (entry->kind == ACS_KIND_JOIN && !used[at])
            continue;
        for (uint32_t e = entry->batch_edge; e; e = g->edges[e].next)
            used[g->edges[e].from] = true;
        uint32_t group = part_root(g, at);
        g->next[at] = g->first[group];
        g->first[group] = (uint16_t)at;
    }
}

/*
 * Whether a group is too small for a bundle; counts small groups.
 *
 * An idle GPU begins a launch sooner than a bundle. A busy GPU begins both alike, but two launches cost the host as
 * much as a bundle. A refused bundle costs the host most, so for a while the next bundles must be larger.
 */
static bool count_few(acs_core *core, uint32_t ops)
{
    bool busy = core->running >= TUNE_BUSY_OPS && core->batch_least > TUNE_BUNDLE_BUSY_LEAST &&
                core->bundler->least_now == core->batch_least;
    bool few = ops < (busy ? TUNE_BUNDLE_BUSY_LEAST : core->bundler->least_now);
    if (few && ops >= core->batch_least && ++core->bundler->few % TUNE_BUNDLE_LEAST_GROUPS == 0)
        core->bundler->least_now = core->batch_least;
    return few;
}

/* Decide on each group: a bundle (listed in `due`), launches one by one, or nothing yet. */
static void decide_groups(acs_core *core)
{
    acs_gathering *g = &core->bundler->gathering;
    bool refused = core->bundler->refusals > 0;
    core->bundler->refusals = 0;
    g->due_count = g->due_next = 0;
    for (uint32_t group = 0; group < g->count; group++) {
        if (g->part[group] != group || !is_due(core, g->ops_of[group], g->behind[group]))
            continue;
        if (!refused && !count_few(core, g->ops_of[group]))
            g->due[g->due_count++] = (uint16_t)group;
        else
            for (uint32_t at = g->first[group]; at != GATHERED_NONE; at = g->next[at])
                acs_window_entry(&core->window, g->entries[at])->force_launch = true;
    }
}

/* ------------------------------------------------------------------------------------------------------------- form */

typedef struct selection {
    uint32_t count, ops;
    uint32_t entries[ACS_BATCH_ITEMS];
    uint16_t place[ACS_BATCH_ITEMS]; /* by index in the gathering: the item of the batch */
} selection;

/* Select the members of a group. False: one of them has changed since the search, and a new search is needed. */
static bool select_group(acs_core *core, uint32_t group, selection *s)
{
    const acs_gathering *g = &core->bundler->gathering;
    s->count = s->ops = 0;
    for (uint32_t at = g->first[group]; at != GATHERED_NONE; at = g->next[at]) {
        const acs_entry *entry = &core->window.entries[g->entries[at]];
        bool as_was = core->window.holds[g->entries[at]].generation == g->generations[at] &&
                      entry->state <= ACS_ENTRY_READY && entry->state >= ACS_ENTRY_PENDING && !entry->failed_by;
        if (!as_was)
            return false;
        s->place[at] = (uint16_t)s->count;
        s->entries[s->count++] = g->entries[at];
        s->ops += entry->kind != ACS_KIND_JOIN;
    }
    return true;
}

static void list_edges(const acs_gathering *g, const selection *s, acs_batch *batch, acs_item *item, uint32_t edge)
{
    item->first_edge = (uint16_t)batch->edges_used;
    for (uint32_t e = edge; e; e = g->edges[e].next) {
        ACS_ASSERT(s->place[g->edges[e].from] < item - batch->items && batch->edges_used < ACS_BATCH_EDGES);
        batch->edges[batch->edges_used++] = s->place[g->edges[e].from];
    }
    item->edge_count = (uint16_t)(batch->edges_used - item->first_edge);
}

/* The bundle has its slot: its ops leave the ready list and belong to the action. */
static void take_group(acs_core *core, acs_action *action, const selection *s)
{
    acs_batch *batch = &action->batch;
    ACS_ASSERT(!core->dead && s->count <= ACS_BATCH_ITEMS && batch->items_used == s->count); /* CORE-3 */
    batch->bundle = true;
    batch->device = core->window.entries[s->entries[0]].device;
    batch->method = (uint8_t)core->bundler->method;
    for (uint32_t i = 0; i < s->count; i++) {
        acs_entry *entry = acs_window_entry(&core->window, s->entries[i]);
        entry->batch = action->batch_id;
        action->entries[i] = s->entries[i];
        list_edges(&core->bundler->gathering, s, batch, &batch->items[i], entry->batch_edge);
        if (entry->kind == ACS_KIND_JOIN)
            continue;
        ACS_ASSERT(entry->state == ACS_ENTRY_READY || entry->batch_edge); /* WIN-2 */
        if (entry->state == ACS_ENTRY_READY)
            acs_window_remove_ready(&core->window, entry);
        entry->state = ACS_ENTRY_ISSUING;
        entry->bundled = true;
        entry->batch_count = i;
        ACS_TRACE(core, ACS_TRACE_ISSUE, entry, &batch->items[i], batch);
        if (core->check_overlap)
            acs_core_check_issue_locked(core, batch, entry);
    }
    acs_core_running_locked(core, (int)s->ops);
    core->bundled_out += s->ops;
}

/* Form the next group that is due. False: there is none, or it cannot be placed now. */
static bool form_next(acs_core *core, acs_action *action)
{
    acs_gathering *g = &core->bundler->gathering;
    selection s;
    if (g->due_next == g->due_count)
        return false;
    if (!select_group(core, g->due[g->due_next], &s)) {
        g->due_count = 0;
        g->seen = 0;
        return false;
    }
    if (!acs_slots_place_bundle(&core->slots, &action->batch, action->batch_id, s.entries, s.count))
        return false;
    g->due_next++;
    take_group(core, action, &s);
    return true;
}

/* Note what happened since the last search. True: it could change what a search finds. */
static bool note_news(acs_core *core, bool inserted)
{
    acs_gathering *g = &core->bundler->gathering;
    bool more = inserted || ops_come(core);
    core->bundler->deferred = more ? 0 : core->bundler->deferred + 1;
    uint64_t now = core->window.counters.inserted + core->counters.retired + core->bundler->bookings + 1;
    acs_op awaited = acs_core_awaited_locked(core);
    bool news = now != g->seen || core->bundler->deferred == TUNE_BUNDLE_DEFERRED_STEPS ||
                (awaited && awaited != g->awaited);
    g->seen = now;
    g->awaited = awaited;
    return news;
}

/* Whether the next step inserts more ops while the GPU has work: a search now would be repeated then. */
static bool more_comes(const acs_core *core, bool inserted)
{
    uint32_t waiting = core->window.live - core->running - core->window.held;
    return inserted && !core->stalled && acs_fifo_ready(core->fifo) && waiting <= core->bundler->most &&
           core->bundled_out >= core->bundler->most / 2;
}

/*
 * Whether to skip this decision. A long search that formed no bundle puts the next one off for as long, while the GPU
 * has work.
 */
static bool skip_for_backoff(acs_core *core)
{
    acs_gathering *g = &core->bundler->gathering;
    bool skips = g->backoff > 0 && core->running > 0;
    g->backoff -= skips;
    return skips;
}

static bool form(acs_core *core, acs_action *action, bool inserted)
{
    acs_window *w = &core->window;
    acs_gathering *g = &core->bundler->gathering;
    if (form_next(core, action))
        return true;
    if (skip_for_backoff(core) || g->due_next < g->due_count || !w->ready.head)
        return false;
    if (!acs_entry_is_bundleable(&w->entries[w->ready.head]) || more_comes(core, inserted) || !note_news(core, inserted))
        return false; /* an op that cannot be in a bundle and came first goes first: many ops may wait for it */
    gather_all(core);
    sum_parts(core);
    merge_parts(core);
    list_groups(w, g);
    decide_groups(core);
    g->backoff = g->due_count ? 0 : (g->count + g->edge_count) / TUNE_BUNDLE_BACKOFF_EDGES;
    return form_next(core, action);
}

/* ------------------------------------------------------------------------------------------------------------- book */

/*
 * For statistics: store, for each op, the value of the newest op of the bundle that it is behind. Ops of a bundle end
 * in their order, as far as polls tell.
 */
static void note_inner(acs_core *core, const acs_action *action)
{
    const acs_batch *batch = &action->batch;
    uint64_t behind[ACS_BATCH_ITEMS];
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        behind[i] = 0;
        for (uint32_t e = 0; e < item->edge_count; e++) {
            const uint16_t from = batch->edges[item->first_edge + e];
            const uint64_t value = batch->items[from].op ? batch->items[from].value : behind[from];
            behind[i] = value > behind[i] ? value : behind[i];
        }
        if (item->op)
            core->window.entries[action->entries[i]].inner_value = behind[i];
    }
}

static void books(acs_core *core, const acs_action *action)
{
    acs_bundler *b = core->bundler;
    b->bookings += action->type == ACS_ACTION_HOST || action->batch.items_used > 0;
    if (!action->batch.bundle)
        return;
    const bool refused = action->batch.items[0].status == ACS_NOT_READY;
    ACS_ASSERT(action->batch.items[0].op && action->batch.items[0].slot >= 0);
    if (core->config.activity && !refused)
        note_inner(core, action);
    core->counters.bundles += !refused;
    core->counters.bundles_refused += refused;
    b->refusals = refused && b->method == ACS_METHOD_AUTO;
    const uint32_t most = b->most < TUNE_BUNDLE_LEAST_MOST ? b->most : TUNE_BUNDLE_LEAST_MOST;
    const uint32_t more = action->batch.items_used < most ? action->batch.items_used + 1 : most;
    if (b->refusals && more > b->least_now) {
        b->least_now = more;
        b->few = 0;
    }
}

/*
 * The device reports the end of a bundle's ops by itself, maybe before they were booked. No later poll would report
 * them, so they are retired here.
 */
static void booked(acs_core *core, const acs_action *action)
{
    if (action->batch.bundle && core->slots.slot[action->batch.items[0].slot].outstanding)
        acs_core_retire_locked(core, (uint32_t)action->batch.items[0].slot);
}

/* ------------------------------------------------------------------------------------------------------------- open */

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Ops before one mark share the watchdog's limit. */
static uint32_t most_ops(const acs_core *core)
{
    const acs_options *options = core->config.options;
    uint32_t most = lower(core->backend->bundle_most, (uint32_t)options->window / 2);
    most = options->watchdog_s ? lower(most, TUNE_BUNDLE_WATCHED_MOST) : most;
    return options->issue == ACS_ISSUE_LAUNCH ? 0 : most;
}

static acs_status open_bundler(acs_core *core)
{
    const uint32_t most = most_ops(core);
    if (!most) {
        core->batcher = NULL;
        return ACS_OK;
    }
    acs_bundler *b = acs_zeros(1, sizeof *b);
    if (!b)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for bundles of kernels");
    b->method = (acs_issue_method)core->config.options->issue;
    b->most = most;
    b->least_now = lower(b->method == ACS_METHOD_AUTO ? TUNE_BUNDLE_LEAST : 1, most);
    core->bundler = b;
    core->batch_ahead = most;
    core->batch_least = b->least_now;
    return ACS_OK;
}

static void close_bundler(acs_core *core)
{
    acs_zeros_free(core->bundler);
}

const acs_batcher acs_bundle_batcher = {
    .open = open_bundler,
    .close = close_bundler,
    .form = form,
    .books = books,
    .booked = booked,
};
