/*
 * Bundles: which ready ops, and which of those that follow them, leave the window together, to be issued by a vehicle that
 * costs less than a launch for each. Called by core_submit.c under the core's lock; never calls a backend.
 *
 * A bundle is what is in the window now. While others are under way it must be at least as large as what is left of them:
 * the GPU has work, so that a little more is waited for costs nothing, and small bundles would cost it time. An idle GPU
 * gets what there is at once.
 */
#include "scheduler/core.h"

#include <string.h>

enum { BUNDLE_LEAST = 6, HELD_STEPS = 32, REFUSALS_MOST = 5 };

/* Ops and joins in the order in which they may be issued, and the edges between them. */
typedef struct gathering {
    acs_window *window;
    uint64_t batch_id;
    uint32_t most, ops, count;
    uint32_t entries[ACS_BATCH_ITEMS];
    bool used[ACS_BATCH_ITEMS]; /* something gathered follows it */
    struct {
        uint16_t from; /* place in `entries` */
        uint16_t next; /* of the edges to the same entry; 0: last */
    } edges[ACS_BATCH_EDGES]; /* from 1 on */
    uint32_t edge_count;
} gathering;

void acs_core_bundle_init(acs_core *core)
{
    const acs_options *options = core->config.options;
    uint32_t most = (uint32_t)options->window / 2;
    core->vehicle = (acs_vehicle)options->issue;
    core->bundle_most = core->backend->bundle_most < most ? core->backend->bundle_most : most;
    if (core->in_order || core->vehicle == ACS_VEHICLE_LAUNCH)
        core->bundle_most = 0;
    uint32_t least = core->vehicle == ACS_VEHICLE_AUTO ? BUNDLE_LEAST : 1;
    core->bundle_least = least < core->bundle_most ? least : core->bundle_most;
}

static bool rides(const acs_entry *entry)
{
    return entry->kind == ACS_KIND_KERNEL && entry->op->u.launch.type != 0 && !entry->bounced;
}

static void gather(gathering *g, acs_entry *entry)
{
    if (entry->batch != g->batch_id) { /* a ready one: nothing leads to it */
        entry->batch = g->batch_id;
        entry->batch_edge = 0;
    }
    g->used[g->count] = entry->kind != ACS_KIND_JOIN;
    g->entries[g->count++] = acs_entry_index(g->window, entry);
    g->ops += entry->kind != ACS_KIND_JOIN;
}

/* An edge from what was gathered: if it was the last that `down` waited for, it can follow. */
static void follow_edge(gathering *g, uint32_t from, acs_entry *down)
{
    bool join = down->kind == ACS_KIND_JOIN;
    if (down->state != ACS_ENTRY_PENDING || down->cause || (!join && !rides(down)))
        return;
    if (down->batch != g->batch_id) {
        down->batch = g->batch_id;
        down->batch_count = 0;
        down->batch_edge = 0;
    }
    if (++g->edge_count == ACS_BATCH_EDGES) {
        g->edge_count--; /* no room to say so: it does not follow */
        return;
    }
    g->edges[g->edge_count].from = (uint16_t)from;
    g->edges[g->edge_count].next = (uint16_t)down->batch_edge;
    down->batch_edge = g->edge_count;
    bool room = g->count < ACS_BATCH_ITEMS && (join || g->ops < g->most);
    if (++down->batch_count == down->pending && room)
        gather(g, down);
}

static void gather_all(gathering *g)
{
    acs_window *w = g->window;
    for (uint32_t i = w->ready.head; i && g->ops < g->most; i = w->entries[i].queue_next)
        if (rides(&w->entries[i]))
            gather(g, &w->entries[i]);
    for (uint32_t at = 0; at < g->count; at++)
        for (uint32_t e = w->entries[g->entries[at]].edges; e; e = w->edges[e].next)
            if (w->edges[e].type != ACS_EDGE_RETIRE)
                follow_edge(g, at, &w->entries[w->edges[e].down]);
}

/* Joins that nothing gathered follows are left to the window. From the back: a join may follow a join. */
static void drop_joins(gathering *g)
{
    uint16_t place[ACS_BATCH_ITEMS];
    for (uint32_t at = g->count; at-- > 0;)
        for (uint32_t e = g->used[at] ? g->window->entries[g->entries[at]].batch_edge : 0; e; e = g->edges[e].next)
            g->used[g->edges[e].from] = true;
    uint32_t kept = 0;
    for (uint32_t at = 0; at < g->count; at++) {
        place[at] = (uint16_t)kept;
        g->entries[kept] = g->entries[at];
        kept += g->used[at];
    }
    g->count = kept;
    for (uint32_t e = 1; e <= g->edge_count; e++)
        g->edges[e].from = place[g->edges[e].from];
}

static void list_edges(const gathering *g, acs_batch *batch, acs_item *item, const acs_entry *entry)
{
    item->first_edge = (uint16_t)batch->edges_used;
    for (uint32_t e = entry->batch_edge; e; e = g->edges[e].next)
        batch->edges[batch->edges_used++] = g->edges[e].from;
    item->edge_count = (uint16_t)(batch->edges_used - item->first_edge);
}

/* The bundle has its slot: its ops belong to the action, and ready ones are ready no more. */
static void take(acs_core *core, acs_action *action, const gathering *g)
{
    acs_batch *batch = &action->batch;
    batch->bundle = true;
    batch->vehicle = (uint8_t)core->vehicle;
    for (uint32_t at = 0; at < g->count; at++) {
        acs_entry *entry = acs_window_entry(&core->window, g->entries[at]);
        action->entries[at] = g->entries[at];
        list_edges(g, batch, &batch->items[at], entry);
        if (entry->kind == ACS_KIND_JOIN)
            continue;
        entry->state = ACS_ENTRY_ISSUING;
        entry->bundled = true;
        entry->batch_count = at;
        acs_core_trace_locked(core, ACS_TRACE_ISSUE, entry, &batch->items[at], batch);
        if (core->check_overlap)
            acs_core_check_issue_locked(core, batch, entry);
    }
    acs_core_running_locked(core, (int)g->ops);
    core->bundled_out += g->ops;
}

/* Whether ops that could ride wait for more of them: only while the GPU has work, and not for long where none come. */
static bool may_hold(acs_core *core, bool inserted)
{
    bool more = inserted || core->stalled || acs_fifo_ready(core->fifo);
    core->held = more ? 0 : core->held + 1;
    return core->bundled_out > 0 && core->held < HELD_STEPS;
}

static bool form(acs_core *core, acs_action *action, uint32_t least)
{
    gathering g;
    g.window = &core->window;
    g.batch_id = action->batch_id;
    g.most = core->bundle_most;
    g.ops = g.count = g.edge_count = 0;
    gather_all(&g);
    if (g.ops < least)
        return false;
    drop_joins(&g);
    if (!acs_slots_place_bundle(&core->slots, &action->batch, action->batch_id, g.entries, g.count))
        return false;
    acs_window_unready(&core->window, action->batch_id);
    take(core, action, &g);
    return true;
}

bool acs_core_form_bundle_locked(acs_core *core, acs_action *action, bool inserted)
{
    const acs_window *w = &core->window;
    bool hold = may_hold(core, inserted);
    uint32_t least = hold && core->bundled_out > core->bundle_least ? core->bundled_out : core->bundle_least;
    uint32_t waiting = w->live + w->live_reserved - core->running;
    bool enough = waiting >= least;
    core->holding = hold;
    if (!enough || !w->ready.head || core->refused_turns) {
        core->refused_turns -= core->refused_turns > 0;
        return false;
    }
    /* Others that came first go first, one by one, and what can ride waits for its turn. */
    if (!rides(&w->entries[w->ready.head])) {
        core->holding = true;
        return false;
    }
    if (form(core, action, least)) {
        core->holding = false;
        return true;
    }
    action->batch_id = ++core->batch_ids; /* what was counted for the bundle means nothing to a batch */
    return false;
}

bool acs_core_holds(const acs_core *core, const acs_entry *entry)
{
    return core->holding && rides(entry);
}

void acs_core_bundle_booked_locked(acs_core *core, const acs_action *action)
{
    if (!action->batch.bundle)
        return;
    bool refused = action->batch.items[0].status == ACS_NOT_READY;
    core->counters.bundles += !refused;
    core->counters.bundles_refused += refused;
    core->refusals = !refused ? 0 : core->refusals < REFUSALS_MOST ? core->refusals + 1 : REFUSALS_MOST;
    core->refused_turns = core->vehicle == ACS_VEHICLE_AUTO ? (1u << core->refusals) - 1 : 0;
}

void acs_core_count_vehicle_locked(acs_core *core, const acs_entry *entry, acs_vehicle vehicle)
{
    acs_core_counters *c = &core->counters;
    c->vehicles[vehicle]++;
    if (vehicle != ACS_VEHICLE_LAUNCH)
        return;
    if (core->bundle_most == 0 || entry->op->u.launch.type == 0)
        c->launched_unfit++;
    else if (entry->bounced)
        c->launched_refused++;
    else if (core->prefers_launches)
        c->launched_long++;
    else
        c->launched_few++;
}

/* ---------------------------------------------------------------------------------------------------------------- check */

bool acs_core_bundle_orders(const acs_batch *batch, uint32_t from, uint32_t to)
{
    bool behind[ACS_BATCH_ITEMS] = {false};
    behind[from] = true;
    for (uint32_t i = from + 1; i <= to; i++)
        for (uint32_t e = 0; e < batch->items[i].edge_count && !behind[i]; e++)
            behind[i] = behind[batch->edges[batch->items[i].first_edge + e]];
    return behind[to];
}
