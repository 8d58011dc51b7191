/*
 * The watchdog's state machine: which op has run for longer than ACS_WATCHDOG_S, and giving the device up because of
 * it. Called through acs_core_overdue by whoever finds nothing to do; time is passed in. Ends no op while others of the
 * context end, and waits for nothing.
 *
 * Only the oldest op of a slot can be to blame, and only when all is complete that it and those that share its mark run
 * behind: completion is learnt by marks, so n ops in front of one mark get n times the limit. An op may have to wait
 * for a free executor, or for room on the GPU, behind ops of other slots. So while others end its clock starts again,
 * until as many as the window holds have ended since it became the oldest: by then all that was issued before it is
 * gone.
 *
 * Time counts only between two looks that are close together, with a poll of the slot between them: a process that was
 * stopped, or a driver that held every call, is no op that runs, and not every poll asks about all slots.
 *
 * An action under way is watched too: a host function by itself, a submission (a library call, a copy of pageable
 * memory, a launch behind a full queue) as ops are. Its ops end without it, and when it comes back, if ever, it books
 * nothing.
 */
#include "scheduler/core.h"

#include "base/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITERS_NAMED = 3 };

static _Atomic(uint64_t) g_unit_ns = 1000000000u;

void acs_core_overdue_unit(uint64_t unit_ns)
{
    atomic_store_explicit(&g_unit_ns, unit_ns, memory_order_relaxed); /* set by tests before they open contexts */
}

void acs_core_overdue_init(acs_core *core)
{
    /* Relaxed: see acs_core_overdue_unit. */
    core->overdue.limit_ns =
        (uint64_t)core->config.options->watchdog_s * atomic_load_explicit(&g_unit_ns, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------ actions under way */

bool acs_core_abandoned(acs_core *core, const acs_action *action)
{
    bool found = false;
    acs_lock_acquire(&core->lock);
    /* By its place in the list: once it is not there its thread may have freed it. */
    for (const acs_action *a = core->under_way; a && !found; a = a->next_under_way)
        found = a == action && a->abandoned;
    acs_lock_release(&core->lock);
    return found;
}

uint32_t acs_core_left(acs_core *core)
{
    acs_lock_acquire(&core->lock);
    uint32_t left = core->abandoned;
    acs_lock_release(&core->lock);
    return left;
}

bool acs_core_given_up(acs_core *core)
{
    acs_lock_acquire(&core->lock);
    bool given_up = core->given_up;
    acs_lock_release(&core->lock);
    return given_up;
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

/* Names without directories: the text is short, and the op's whole site is in the error. */
static void say_op(acs_error *error, const acs_entry *entry)
{
    const acs_site *site = entry->op->site;
    const char *slash = site->file ? strrchr(site->file, '/') : NULL;
    say(error, "op %llu '%.40s' (%.40s:%d)", (unsigned long long)entry->seq, acs_record_name(entry->op),
        slash ? slash + 1 : site->file ? site->file : "?", site->line);
}

/* The downstream entries of `entry` wait; a join stands for those behind it. */
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

/* Whether an entry that no edge leads to any more is chained behind `blamed` by its slot, its clock or its needs. */
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
 * What waits for `blamed`, directly or not: how many ops, and the first of them. In program order, so each is seen
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

/* What the backend was handed, or a thread is inside, may be in use for ever: its records must never be used again. */
static void leave_records(acs_window *w)
{
    for (uint32_t i = w->order_head; i; i = w->entries[i].order_next)
        w->entries[i].left |= w->entries[i].state == ACS_ENTRY_ISSUED || w->entries[i].state == ACS_ENTRY_ISSUING;
}

/* From now on nothing may rest on an op's end (CORE-4). */
static void give_up_ops(acs_core *core)
{
    if (core->given_up)
        return;
    core->given_up = true;
    leave_records(&core->window);
    if (core->backend->ops->give_up)
        core->backend->ops->give_up(core->backend);
}

/* `among`: how many ops, `blamed` the first, may be the one. `where`: what it is doing. */
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

/* End the ops of an action whose thread is inside something that may never return. */
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
        if (!action->entries[i] || !action->batch.items[i].op) /* a bundle's joins end with what they stand for */
            continue;
        acs_entry *entry = acs_window_entry(w, action->entries[i]);
        acs_slots_cancel(&core->slots, entry->slot);
        acs_core_running_locked(core, -1);
        entry->left = 1;
        entry->slot = -1;
        entry->value = 0;
        acs_window_release(w, entry); /* the window is dead: it ends when those of the batch that it follows have */
    }
}

/* ------------------------------------------------------------------------------------------------------------- look */

typedef struct look {
    uint64_t elapsed_ns;
    uint64_t polled; /* slots, since the last look */
    bool ended;      /* an op has ended since */
} look;

static look look_begin(acs_core *core, uint64_t now_ns)
{
    acs_overdue *o = &core->overdue;
    /* Looks that are further apart count no time. */
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

/* Whether the ends of other ops, the last of them just now, may be what this one had to wait for. */
static bool others_go(const acs_core *core, const look *l, uint64_t ends_seen)
{
    return l->ended && core->counters.retired - ends_seen < core->window.limit;
}

/* How many ops of a slot, from its oldest on, one of which must be running; 0: none need be. */
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

/* How many ops an action has in hand. Marks alone are none. */
static uint32_t ops_in(const acs_action *action)
{
    if (action->type == ACS_ACTION_HOST)
        return 1;
    return action->batch.items_used && action->entries[0] ? action->batch.items_used : 0;
}

/* Polls and marks alone are watched once nothing else can come of them: acs_close waits for their thread. */
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
    acs_lock_acquire(&core->lock);
    bool gave_up = look_locked(core, now_ns);
    acs_lock_release(&core->lock);
    return gave_up;
}
