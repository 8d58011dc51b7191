/*
 * The watchdog: finds an op that has run for longer than ACS_WATCHDOG_S, and then gives the device up and ends all ops.
 * Called through acs_core_overdue by a thread that finds nothing to do, which passes the time. It ends no op while
 * others of the context end, and never blocks.
 *
 * Only the oldest op of a slot can be to blame, and only once all upstream ops of it, and of the ops that share its
 * mark, are complete. Completion is learnt by marks: n ops in front of one mark get n times the limit. An op may wait
 * for a free executor or for room on the GPU, behind ops of other slots. So its time restarts whenever another op ends,
 * until as many ops have ended as the window holds: by then all ops issued before it are gone.
 *
 * Time counts only between two looks that are close together, with a poll of the slot between them. A stopped process,
 * or a driver that blocks every call, is not an op that runs; and a poll may ask about some slots only.
 *
 * Actions under way are watched too: a host function by itself, a submission as its ops are. A library call, a copy of
 * pageable memory or a launch behind a full queue may block a submission. The ops of an overdue action end without its
 * thread, which books nothing if it ever returns.
 */
#include "scheduler/core_internal.h"

#include "base/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITERS_NAMED = 3 };

static _Atomic(uint64_t) g_unit_ns = 1000000000u;

void acs_core_overdue_unit(uint64_t unit_ns)
{
    /* relaxed: tests set it before they open contexts */
    atomic_store_explicit(&g_unit_ns, unit_ns, memory_order_relaxed);
}

void acs_core_overdue_init(acs_core *core)
{
    /* relaxed: as in acs_core_overdue_unit */
    core->overdue.limit_ns =
        (uint64_t)core->config.options->watchdog_s * atomic_load_explicit(&g_unit_ns, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------ actions under way */

bool acs_core_abandoned(acs_core *core, const acs_action *action)
{
    bool found = false;
    ACS_HOLD(&core->lock);
    /* Compare pointers in the list: once the action is not there its thread may have freed it. */
    for (const acs_action *a = core->under_way; a && !found; a = a->next_under_way)
        found = a == action && a->abandoned;
    return found;
}

uint32_t acs_core_left(acs_core *core)
{
    ACS_HOLD(&core->lock);
    return core->abandoned;
}

bool acs_core_given_up(acs_core *core)
{
    ACS_HOLD(&core->lock);
    return core->given_up;
}

/* ------------------------------------------------------------------------------------------------------------- text */

ACS_PRINTF(2, 3) static void say(acs_error *error, const char *format, ...)
{
    size_t used = strlen(error->text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text + used, sizeof error->text - used, format, args); /* a text that is too long is cut */
    va_end(args);
}

/* File names without directories: the text is short, and the error has the whole site. */
static void say_op(acs_error *error, const acs_entry *entry)
{
    const acs_site *site = entry->op->site;
    const char *slash = site->file ? strrchr(site->file, '/') : NULL;
    say(error, "op %llu '%.40s' (%.40s:%d)", (unsigned long long)entry->seq, acs_record_name(entry->op),
        slash ? slash + 1 : site->file ? site->file : "?", site->line);
}

/* Mark the downstream entries of `entry` as waiting, through joins. */
static void spread(const acs_window *w, const acs_entry *entry, bool *waits)
{
    for (uint32_t at = entry->edges; at; at = w->edges[at].next) {
        uint32_t down = w->edges[at].down;
        bool known = waits[down];
        waits[down] = true;
        if (!known && w->entries[down].kind == ACS_KIND_JOIN)
            spread(w, &w->entries[down], waits);
    }
}

/* Whether an entry without an edge from waiting ones runs behind `blamed` by its slot, its clock or its slot waits. */
static bool is_chained(acs_core *core, const acs_entry *entry, const acs_entry *blamed, const bool *waits)
{
    acs_window *w = &core->window;
    bool in_slot = blamed->slot >= 0;
    if (entry->slot >= 0)
        return in_slot && (entry->slot == blamed->slot ? entry->value > blamed->value
                                                       : acs_entry_clock(w, entry)[blamed->slot] >= blamed->value);
    const acs_slot_wait *slot_waits = acs_entry_waits(w, entry);
    for (uint64_t mask = entry->wait_mask; mask; mask &= mask - 1) {
        int s = __builtin_ctzll(mask);
        if (in_slot && s == blamed->slot && slot_waits[s].value >= blamed->value)
            return true;
        if (w->holds[slot_waits[s].entry].generation == slot_waits[s].generation && waits[slot_waits[s].entry])
            return true;
    }
    return false;
}

/*
 * Append the ops that wait for `blamed`, directly or not: their number, and the first few. Program order visits each
 * once.
 */
static void say_waiters(acs_core *core, acs_error *error, const acs_entry *blamed)
{
    acs_window *w = &core->window;
    bool *waits = calloc((size_t)w->entry_count + 1, sizeof *waits);
    uint32_t first[WAITERS_NAMED], count = 0;
    if (!waits)
        return; /* the error then says less */
    spread(w, blamed, waits);
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next) {
        const acs_entry *entry = &w->entries[i];
        waits[i] = entry != blamed && (waits[i] || is_chained(core, entry, blamed, waits));
        if (!waits[i])
            continue;
        spread(w, entry, waits);
        if (count++ < WAITERS_NAMED)
            first[count - 1] = i;
    }
    free(waits);
    say(error, "; %u op%s wait%s for it", count, count == 1 ? "" : "s", count == 1 ? "s" : "");
    for (uint32_t i = 0; i < count && i < WAITERS_NAMED; i++) {
        say(error, "%s", i ? ", " : count > WAITERS_NAMED ? ", first " : ": ");
        say_op(error, &w->entries[first[i]]);
    }
}

/* ---------------------------------------------------------------------------------------------------------- give up */

/* Ops that were issued, or that a thread executes, may be in use for ever: their records are never used again. */
static void leave_records(acs_window *w)
{
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next)
        w->entries[i].left |= w->entries[i].state == ACS_ENTRY_ISSUED || w->entries[i].state == ACS_ENTRY_ISSUING;
}

/* From now on the end of an op proves nothing (CORE-4). */
static void give_up_ops(acs_core *core)
{
    if (core->given_up)
        return;
    core->given_up = true;
    leave_records(&core->window);
    if (core->backend->ops->give_up)
        core->backend->ops->give_up(core->backend);
}

/* Give the device up. One of `among` ops, of which `blamed` is the first, does not end; `where`: the place of its run. */
static void give_up(acs_core *core, const acs_entry *blamed, uint32_t among, const char *where, uint64_t waited_ns)
{
    acs_error error;
    acs_error_fill(&error, ACS_ERR_DEVICE, ETIMEDOUT, "watchdog", "%s", "");
    error.op = blamed->seq;
    error.site = *blamed->op->site;
    say_op(&error, blamed);
    if (among > 1)
        say(&error, ", or one of the %u behind it,", among - 1);
    say(&error, " has not ended for %.3g s %s", (double)waited_ns / 1e9, where);
    say_waiters(core, &error, blamed);
    give_up_ops(core);
    acs_core_fault_locked(core, &error);
}

/* End the ops of an action whose thread is inside a call that may never return. */
static void abandon(acs_core *core, acs_action *action)
{
    acs_window *w = &core->window;
    give_up_ops(core);
    ACS_ASSERT(core->given_up && !action->abandoned); /* CORE-4 */
    action->abandoned = true;
    core->abandoned++;
    if (action->type == ACS_ACTION_HOST) {
        acs_entry *entry = acs_window_entry(w, action->host_entry);
        ACS_ASSERT(entry->state == ACS_ENTRY_ISSUING); /* CORE-1 */
        entry->left = 1;
        acs_core_running_locked(core, -1);
        acs_window_end(w, entry, ACS_ERR_DEVICE, 0);
        return;
    }
    for (uint32_t i = 0; i < action->batch.items_used; i++) {
        if (!action->entries[i] || !action->batch.items[i].op) /* joins of a bundle end with their upstream ops */
            continue;
        acs_entry *entry = acs_window_entry(w, action->entries[i]);
        acs_slots_cancel(&core->slots, entry->slot);
        acs_core_running_locked(core, -1);
        entry->left = 1;
        entry->slot = -1;
        entry->value = 0;
        /* the window is dead: it ends once the ops that it follows in the batch have ended */
        acs_window_release(w, entry);
    }
}

/* ------------------------------------------------------------------------------------------------------------- look */

typedef struct look {
    uint64_t elapsed_ns;
    uint64_t polled; /* one bit per slot polled since the last look */
    bool ended;      /* an op has ended since the last look */
} look;

static look look_begin(acs_core *core, uint64_t now_ns)
{
    acs_overdue *o = &core->overdue;
    /* Between looks further apart than this, no time counts. */
    uint64_t gap = o->limit_ns / 2 > TUNE_WATCHDOG_GAP_NS ? o->limit_ns / 2 : TUNE_WATCHDOG_GAP_NS;
    look l = {.elapsed_ns = now_ns - o->looked_ns,
              .polled = core->polled,
              .ended = o->ends_seen != core->counters.retired};
    if (o->looked_ns == 0 || now_ns <= o->looked_ns || l.elapsed_ns > gap)
        l.elapsed_ns = 0;
    o->looked_ns = now_ns;
    core->polled = 0;
    o->ends_seen = core->counters.retired;
    return l;
}

/* Whether the op may have waited for other ops, which still end. */
static bool others_go(const acs_core *core, const look *l, uint64_t ends_seen)
{
    return l->ended && core->counters.retired - ends_seen < core->window.limit;
}

/* Number of ops of a slot, from its oldest, one of which must be running; 0: perhaps none is. */
static uint32_t may_be_running(acs_core *core, uint32_t s)
{
    acs_mark marks[2];
    uint32_t count = 0;
    if (acs_slots_marks(&core->slots, s, marks, 2) == 0)
        return 0;
    for (uint32_t i = core->slots.slot[s].head; i; i = core->window.entries[i].slot_next) {
        const acs_entry *entry = &core->window.entries[i];
        if (entry->value > marks[0].value)
            break;
        if (!acs_slots_reached_elsewhere(&core->slots, entry))
            return 0;
        count++;
    }
    return count;
}

static bool slot_overdue(acs_core *core, const look *l, uint32_t s)
{
    acs_patience *p = &core->overdue.slots[s];
    uint32_t among = may_be_running(core, s);
    acs_op oldest = among ? core->window.entries[core->slots.slot[s].head].seq : 0;
    if (p->op != oldest) {
        *p = (acs_patience){oldest, 0, core->counters.retired};
        return false;
    }
    if (others_go(core, l, p->ends_seen))
        p->waited_ns = 0;
    else if (l->polled >> s & 1)
        p->waited_ns += l->elapsed_ns;
    if (!oldest || p->waited_ns < among * core->overdue.limit_ns)
        return false;
    char where[24];
    snprintf(where, sizeof where, "in stream %u", s);
    give_up(core, &core->window.entries[core->slots.slot[s].head], among, where, p->waited_ns);
    return true;
}

/* Number of ops that an action holds; marks alone count as none. */
static uint32_t ops_in(const acs_action *action)
{
    if (action->type == ACS_ACTION_HOST)
        return 1;
    return action->batch.items_used && action->entries[0] ? action->batch.items_used : 0;
}

/*
 * Whether an action is overdue. One with polls or marks only is watched once the device is lost: acs_close waits for
 * its thread.
 */
static bool action_overdue(acs_core *core, const look *l, acs_action *action)
{
    uint32_t among = ops_in(action);
    bool own_code = action->type == ACS_ACTION_HOST && action->host_op->kind != ACS_KIND_FREE;
    if (action->abandoned || (among == 0 && !core->dead))
        return false;
    if (!own_code && !core->dead && others_go(core, l, action->ends_seen))
        action->waited_ns = 0;
    else
        action->waited_ns += l->elapsed_ns;
    return action->waited_ns >= (among ? among : 1) * core->overdue.limit_ns;
}

static void give_up_action(acs_core *core, acs_action *action)
{
    bool host = action->type == ACS_ACTION_HOST;
    uint32_t among = ops_in(action);
    if (among) {
        uint32_t first = host ? action->host_entry : action->entries[0];
        give_up(core, acs_window_entry(&core->window, first), among, host ? "on the host" : "while it is issued",
                action->waited_ns);
    }
    abandon(core, action);
}

static bool look_locked(acs_core *core, uint64_t now_ns)
{
    bool gave_up = false;
    look l = look_begin(core, now_ns);
    for (uint32_t s = 0; s < core->slots.used && !gave_up; s++)
        gave_up = slot_overdue(core, &l, s);
    for (acs_action *action = core->under_way; action; action = action->next_under_way) {
        if (!action_overdue(core, &l, action))
            continue;
        give_up_action(core, action);
        gave_up = true;
    }
    if (gave_up)
        acs_core_collect_locked(core);
    return gave_up;
}

bool acs_core_overdue(acs_core *core, uint64_t now_ns)
{
    if (ACS_LIKELY(core->overdue.limit_ns == 0))
        return false;
    ACS_HOLD(&core->lock);
    return look_locked(core, now_ns);
}
