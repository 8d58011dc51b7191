/*
 * The search (see model.h): runs executions one after another, chooses at each step who goes on and what a load returns,
 * and finds out from each execution which other choices could matter. Called by main.c; what operations do to memory is
 * machine.c's.
 *
 * Dynamic partial-order reduction with source sets and sleep sets (Flanagan and Godefroid; Abdulla and others): two
 * operations depend on each other if they touch one object and one of them changes it. Where an operation could have come
 * before an earlier one that it depends on, the step of the earlier one gets a backtracking point. With a bound on
 * preemptions nothing is left out but what the bound forbids: reductions and bounds do not go together well.
 */
#include "fiber.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES = 1 << 14 };

typedef uint32_t mask; /* of threads */

typedef struct step {
    model_op op;
    int thread, choice, choices;
    uint32_t index;                        /* of the event among those of its thread, from 1 */
    uint32_t clock[MODEL_THREADS];         /* per thread the newest event that it comes after, by any dependency */
    int preemptions;                       /* up to here, this step included */
    mask enabled, backtrack, done, asleep; /* before the step */
} step;

typedef struct touch {
    uintptr_t object;
    bool changes;
} touch;

/* Latest event per thread that read, and that changed, an object; for the order of dependent events. */
typedef struct past {
    uint32_t changed[MODEL_THREADS], read[MODEL_THREADS];
} past;

static struct {
    const model_scenario *scenario;
    const model_limits *limits;
    model_result *result;
    step steps[MODEL_STEPS];
    uint32_t fixed, length;  /* steps that are given; steps of this execution */
    past pasts[MODEL_OBJECTS];
    uint32_t pasts_used;
    uint32_t clock[MODEL_THREADS][MODEL_THREADS];
    struct { void *(*function)(void *); void *argument; } spawned[MODEL_THREADS]; /* by setup */
    int spawned_count, scenario_threads;
    bool in_setup, cut;      /* cut: nothing new could follow */
    uint64_t states[STATES]; /* hashes that were seen */
    struct { int thread, choice; } replay[MODEL_STEPS];
    uint32_t replay_length;
} g;

static int g_all_seq_cst; /* its address names what seq_cst operations share */

/* ---------------------------------------------------------------------------------------------------- dependency */

static uint32_t touches(const model_op *op, touch *list)
{
    uint32_t n = 0;
    bool sc = op->order == memory_order_seq_cst;
    switch (op->kind) {
    case MODEL_FENCE:
        if (sc)
            list[n++] = (touch){(uintptr_t)&g_all_seq_cst, true};
        return n;
    case MODEL_WAIT:
        list[n++] = (touch){op->mutex, true};
        list[n++] = (touch){op->at, true};
        return n;
    case MODEL_RELOCK:
        list[n++] = (touch){op->mutex, true};
        list[n++] = (touch){op->at, false};
        return n;
    case MODEL_LOAD:
        list[n++] = (touch){op->at, false};
        break;
    case MODEL_STORE:
    case MODEL_ADD:
    case MODEL_EXCHANGE:
    case MODEL_CAS:
        list[n++] = (touch){op->at, true};
        break;
    default:
        list[n++] = (touch){op->at, true};
        return n;
    }
    if (sc)
        list[n++] = (touch){(uintptr_t)&g_all_seq_cst, false};
    return n;
}

static bool takes(const model_op *op)
{
    return op->kind == MODEL_LOCK || op->kind == MODEL_RELOCK;
}

/* `reversible`: only what could also happen in the other order: not an unlock before the lock that it allows. */
static bool dependent(const model_op *a, const model_op *b, bool reversible)
{
    touch ta[MODEL_TOUCHES], tb[MODEL_TOUCHES];
    uint32_t na = touches(a, ta), nb = touches(b, tb);
    for (uint32_t i = 0; i < na; i++)
        for (uint32_t j = 0; j < nb; j++) {
            if (ta[i].object != tb[j].object || (!ta[i].changes && !tb[j].changes))
                continue;
            if (!reversible || (takes(a) && takes(b)))
                return true;
            bool mutex = takes(a) || takes(b) || a->kind == MODEL_UNLOCK || b->kind == MODEL_UNLOCK;
            if (!mutex && a->kind < MODEL_SPAWN && b->kind < MODEL_SPAWN)
                return true;
        }
    return false;
}

bool model_unreduced(void)
{
    return g.limits->reduction == MODEL_NO_REDUCTION || g.limits->preemptions >= 0;
}

bool model_in_past(int thread, int of, uint32_t index)
{
    return g.clock[thread][of] >= index;
}

static void join_clock(uint32_t *to, const uint32_t *from)
{
    for (int t = 0; t < MODEL_THREADS; t++)
        if (to[t] < from[t])
            to[t] = from[t];
}

static past *past_of(uintptr_t object)
{
    uint32_t name = (uint32_t)machine_name(object);
    for (; g.pasts_used <= name; g.pasts_used++)
        memset(&g.pasts[g.pasts_used], 0, sizeof *g.pasts);
    return &g.pasts[name];
}

/* What an operation would come after if its thread did it now: all earlier events that it depends on. */
static void clock_of(int thread, const model_op *op, uint32_t *clock)
{
    touch list[MODEL_TOUCHES];
    uint32_t n = touches(op, list);
    memcpy(clock, g.clock[thread], sizeof g.clock[thread]);
    for (uint32_t i = 0; i < n; i++) {
        const past *p = past_of(list[i].object);
        join_clock(clock, p->changed);
        if (list[i].changes)
            join_clock(clock, p->read);
    }
    clock[thread]++;
}

static void order_event(step *s)
{
    touch list[MODEL_TOUCHES];
    uint32_t n = touches(&s->op, list);
    clock_of(s->thread, &s->op, s->clock);
    memcpy(g.clock[s->thread], s->clock, sizeof s->clock);
    for (uint32_t i = 0; i < n; i++) {
        past *p = past_of(list[i].object);
        join_clock(list[i].changes ? p->changed : p->read, s->clock);
    }
}

/* -------------------------------------------------------------------------------------------------- backtracking */

/*
 * A race: the operation that `thread` is about to do, which comes after `clock`, could come before step `at`. What would
 * then go first is whatever does not come after step `at`, and begins with a thread whose first such event comes after
 * none of the others (an initial). One initial has to be explored at that step.
 */
static mask initials(uint32_t at, int thread, const uint32_t *clock)
{
    const uint32_t *first[MODEL_THREADS] = {0}; /* the clocks of the first such events */
    const step *s = &g.steps[at];
    for (uint32_t j = at + 1; j < g.length; j++) {
        const step *later = &g.steps[j];
        if (!first[later->thread] && later->clock[s->thread] < s->index)
            first[later->thread] = later->clock;
    }
    if (!first[thread])
        first[thread] = clock;
    mask found = 0;
    for (int t = 0; t < MODEL_THREADS; t++) {
        bool initial = first[t] != NULL;
        for (int other = 0; other < MODEL_THREADS && initial; other++)
            initial = other == t || !first[other] || first[t][other] < first[other][other];
        if (initial)
            found |= 1u << t;
    }
    return found;
}

static void add_point(uint32_t at, int thread, const uint32_t *clock)
{
    step *s = &g.steps[at];
    mask could = initials(at, thread, clock) & s->enabled;
    if (could & s->backtrack)
        return;
    if (could & 1u << thread)
        s->backtrack |= 1u << thread;
    else
        s->backtrack |= could ? could & -could : s->enabled;
}

/*
 * The operation that `thread` is about to do, against the steps so far that are not in its past. Without a reduction each
 * step has all backtracking points from the start.
 */
static void find_races(int thread)
{
    if (model_unreduced())
        return;
    const model_op *op = &g_fibers[thread].op;
    mask left = ((1u << MODEL_THREADS) - 1) & ~(1u << thread);
    uint32_t clock[MODEL_THREADS];
    clock_of(thread, op, clock);
    for (uint32_t i = g.length; i-- > 0 && left;) {
        const step *s = &g.steps[i];
        if (!(left & 1u << s->thread))
            continue;
        if (s->index <= g.clock[thread][s->thread]) {
            left &= ~(1u << s->thread); /* and all before it */
        } else if (dependent(&s->op, op, true)) {
            left &= ~(1u << s->thread);
            add_point(i, thread, clock);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ one execution */

static bool enabled(int thread)
{
    const model_fiber *f = &g_fibers[thread];
    if (f->ended)
        return false;
    switch (f->op.kind) {
    case MODEL_LOCK:
        return machine_mutex_free(f->op.at);
    case MODEL_RELOCK:
        return f->signalled && machine_mutex_free(f->op.mutex);
    case MODEL_JOIN:
        return ((const model_fiber *)f->op.at)->ended;
    default:
        return true;
    }
}

static mask all_enabled(void)
{
    mask m = 0;
    for (int t = 0; t < model_threads(); t++)
        if (enabled(t))
            m |= 1u << t;
    return m;
}

static int preemptions_with(uint32_t at, int thread)
{
    if (at == 0)
        return 0;
    const step *last = &g.steps[at - 1];
    bool preempts = last->thread != thread && (g.steps[at].enabled & 1u << last->thread);
    return last->preemptions + preempts;
}

/* Who goes on at a new step: the thread that ran, if it may. -1: nobody who could show anything new. */
static int pick(uint32_t at)
{
    step *s = &g.steps[at];
    if (at < g.replay_length) {
        int thread = g.replay[at].thread;
        if (thread < 0 || thread >= model_threads() || !(s->enabled & 1u << thread))
            model_fail("this is not how the scenario runs: '%c' cannot take step %u", 'a' + thread, at + 1);
        return thread;
    }
    mask may = s->enabled & ~s->asleep;
    if (!may)
        return -1;
    int last = at ? g.steps[at - 1].thread : 0;
    return may & 1u << last ? last : __builtin_ctz(may);
}

/* Threads whose next operation was explored before and is still the same. */
static mask still_asleep(const step *s)
{
    mask m = 0, before = (s->asleep | s->done) & ~(1u << s->thread);
    if (model_unreduced())
        return 0;
    for (int t = 0; t < model_threads(); t++)
        if ((before & 1u << t) && !dependent(&g_fibers[t].op, &s->op, false))
            m |= 1u << t;
    return m;
}

/* What an operation does to threads; what it does to memory is the machine's. */
static void act_on_threads(int thread, model_op *op)
{
    if (op->kind == MODEL_EXIT)
        g_fibers[thread].ended = true;
    if (op->kind == MODEL_JOIN)
        machine_join(thread, (int)((const model_fiber *)op->at - g_fibers));
    if (op->kind == MODEL_SPAWN) {
        int child = fiber_add(NULL, (void *(*)(void *))(uintptr_t)op->operand, (void *)(uintptr_t)op->expected);
        op->value = (uint64_t)child;
        g_fibers[child].daemon = true;
        machine_spawn(thread, child);
        memcpy(g.clock[child], g.clock[thread], sizeof g.clock[child]);
        fiber_run(child);
    }
    if (op->kind != MODEL_WAKE)
        return;
    for (int t = 0; t < model_threads(); t++)
        if (g_fibers[t].op.kind == MODEL_RELOCK && g_fibers[t].op.at == op->at)
            g_fibers[t].signalled = true;
}

static void perform(step *s)
{
    model_fiber *f = &g_fibers[s->thread];
    s->choices = machine_choices(s->thread, &f->op);
    if (g.length < g.replay_length)
        s->choice = g.replay[g.length].choice;
    if (s->choice >= s->choices)
        model_fail("this is not how the scenario runs: thread %c has %d choices", 'a' + s->thread, s->choices);
    find_races(s->thread);
    s->index = g.clock[s->thread][s->thread] + 1;
    machine_perform(s->thread, &f->op, s->choice, s->index);
    s->op = f->op;
    order_event(s);
    g.length++;
    g.result->operations++;
    act_on_threads(s->thread, &f->op);
}

void model_outcome(uint32_t outcome)
{
    g.result->outcomes |= 1ull << outcome;
    if (g.scenario->outcomes && !(g.scenario->outcomes & 1ull << outcome))
        model_fail("outcome %#x must not happen", outcome);
}

/* A set by open addressing; a full one counts no further. */
static void note_state(uint64_t state)
{
    uint64_t at = state;
    for (uint32_t tries = 0; tries < STATES; tries++, at++) {
        uint64_t *place = &g.states[at % STATES];
        if (*place == state)
            return;
        if (*place)
            continue;
        *place = state;
        g.result->states++;
        return;
    }
}

static void end_execution(void)
{
    if (g.result->threads < model_threads())
        g.result->threads = model_threads();
    for (int t = 0; t < model_threads(); t++)
        if (!g_fibers[t].ended)
            find_races(t);
    if (g.cut)
        return;
    for (int t = 0; t < model_threads(); t++)
        if (!g_fibers[t].ended && !g_fibers[t].daemon)
            model_fail("deadlock: thread %c waits forever", 'a' + t);
    if (g.scenario->check)
        g.scenario->check();
    if (g.limits->states)
        note_state(arena_hash());
}

static void begin_execution(void)
{
    g.length = g.pasts_used = 0;
    g.cut = false;
    memset(g.clock, 0, sizeof g.clock);
    machine_restore();
    arena_restore();
    if (g.scenario->reset)
        g.scenario->reset();
    machine_reset();
    fibers_reset();
    for (int t = 0; t < g.scenario_threads; t++)
        (void)fiber_add(g.scenario->threads[t], NULL, NULL);
    for (int t = 0; t < g.spawned_count; t++)
        g_fibers[fiber_add(NULL, g.spawned[t].function, g.spawned[t].argument)].daemon = true;
    for (int t = 0; t < g.scenario_threads + g.spawned_count; t++)
        fiber_run(t);
}

static void run(void)
{
    begin_execution();
    mask asleep = 0, now;
    while ((now = all_enabled())) {
        step *s = &g.steps[g.length];
        if (g.length >= g.fixed) {
            *s = (step){.enabled = now, .asleep = asleep};
            s->thread = pick(g.length);
            if (s->thread < 0) {
                g.cut = true;
                break;
            }
            s->backtrack = g.limits->reduction != MODEL_REDUCED || model_unreduced() ? now : 1u << s->thread;
        } else if (s->enabled != now) {
            model_fail("the scenario does not repeat itself: it depends on something outside of the explorer");
        }
        s->preemptions = preemptions_with(g.length, s->thread);
        s->asleep = asleep;
        perform(s);
        asleep = still_asleep(s);
        if (!g_fibers[s->thread].ended)
            fiber_run(s->thread);
        if (g.length == MODEL_STEPS)
            model_fail("no end after %d operations", MODEL_STEPS);
    }
    end_execution();
}

/* ----------------------------------------------------------------------------------------------------------- search */

static bool within_bound(uint32_t at, int thread)
{
    return g.limits->preemptions < 0 || preemptions_with(at, thread) <= g.limits->preemptions;
}

/* The next execution: the last step that has another choice takes it. False: there is none. */
static bool advance(void)
{
    for (uint32_t n = g.length; n-- > 0;) {
        step *s = &g.steps[n];
        if (s->choice + 1 < s->choices) {
            s->choice++;
            g.fixed = n + 1;
            return true;
        }
        s->done |= 1u << s->thread;
        mask more = s->backtrack & s->enabled & ~s->done & ~s->asleep;
        for (int t = 0; t < MODEL_THREADS; t++) {
            if (!(more & 1u << t))
                continue;
            if (!within_bound(n, t)) {
                g.result->complete = false;
                continue;
            }
            s->thread = t;
            s->choice = 0;
            g.fixed = n + 1;
            return true;
        }
    }
    return false;
}

static void print_steps(void)
{
    for (uint32_t i = 0; i < g.length; i++)
        trace_print(&g.steps[i].op, g.steps[i].thread, i + 1);
}

/* Steps as text: the thread, how many of its steps follow each other with this choice, .choice if it is not 0. */
static void write_replay(char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0, count; i < g.length && used + 32 < size; i += count) {
        const step *s = &g.steps[i];
        for (count = 1; i + count < g.length && s[count].thread == s->thread && s[count].choice == s->choice;)
            count++;
        used += (size_t)snprintf(text + used, size - used, "%c", 'a' + s->thread);
        if (count > 1)
            used += (size_t)snprintf(text + used, size - used, "%u", count);
        if (s->choice)
            used += (size_t)snprintf(text + used, size - used, ".%d", s->choice);
    }
    text[used] = 0;
}

static void read_replay(const char *text)
{
    g.replay_length = 0;
    while (text && *text) {
        int thread = *text++ - 'a';
        char *end;
        unsigned long count = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : (end = (char *)(uintptr_t)text, 1);
        int choice = *end == '.' ? (int)strtoul(end + 1, &end, 10) : 0;
        for (; count > 0 && g.replay_length < MODEL_STEPS; count--) {
            g.replay[g.replay_length].thread = thread;
            g.replay[g.replay_length++].choice = choice;
        }
        text = end;
    }
}

static void note_failure(void)
{
    model_result *r = g.result;
    r->failed = true;
    snprintf(r->text, sizeof r->text, "%s", fiber_failure());
    write_replay(r->replay, sizeof r->replay);
    if (g.limits->quiet)
        return;
    print_steps();
}

static void set_up(const model_scenario *scenario)
{
    fibers_reset();
    machine_restore();
    machine_reset();
    arena_clear();
    g.scenario_threads = g.spawned_count = 0;
    while (g.scenario_threads < 4 && scenario->threads[g.scenario_threads])
        g.scenario_threads++;
    g.in_setup = true;
    scenario->setup();
    g.in_setup = false;
    arena_keep();
}

void explore(const model_scenario *scenario, const model_limits *limits, model_result *result)
{
    *result = (model_result){.complete = true};
    g.scenario = scenario;
    g.limits = limits;
    g.result = result;
    g.fixed = 0;
    memset(g.states, 0, sizeof g.states);
    set_up(scenario);
    read_replay(limits->replay);
    do {
        if (!fiber_guard(run)) {
            note_failure();
            return;
        }
        if (g.cut)
            result->redundant++;
        else
            result->executions++;
        if (result->longest < g.length)
            result->longest = g.length;
        if (limits->replay) {
            print_steps();
            return;
        }
        if (limits->executions && result->executions + result->redundant >= limits->executions) {
            result->cut_off = advance();
            result->complete = !result->cut_off && result->complete;
            return;
        }
    } while (advance());
}

/* ----------------------------------------------------------------------------------------------------------- threads */

int model_spawn(model_site *site, void *(*function)(void *), void *argument)
{
    if (g.in_setup) {
        g.spawned[g.spawned_count].function = function;
        g.spawned[g.spawned_count].argument = argument;
        return g.scenario_threads + g.spawned_count++;
    }
    model_op op = {.kind = MODEL_SPAWN, .at = (uintptr_t)&g_fibers[model_current()]};
    op.operand = (uint64_t)(uintptr_t)function;
    op.expected = (uint64_t)(uintptr_t)argument;
    return (int)fiber_visible(site, op)->value;
}

void model_join(model_site *site, int thread)
{
    if (model_current() >= 0)
        (void)fiber_visible(site, (model_op){.kind = MODEL_JOIN, .at = (uintptr_t)&g_fibers[thread]});
}
