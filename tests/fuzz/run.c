/*
 * Runs a program: opens and closes contexts, performs each step through the public API, checks what is known at once,
 * and notes the rest for the judge. One thread; called once per input. Keeps nothing from one input to the next but
 * handles that are closed.
 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ROOM = 8192, BLOCK_MOST = 256 };

static fuzz_session g_sessions[FUZZ_CONTEXTS];
static _Alignas(256) uint8_t g_arenas[FUZZ_CONTEXTS][ARENA_ROOM]; /* segments may end behind the arena */

static void fill(fuzz_memory *m, uint64_t key)
{
    for (uint32_t i = 0; i < m->bytes; i++)
        m->real[i] = m->shadow[i] = (uint8_t)(fuzz_mix(key) >> (i % 8 * 8)) ^ (uint8_t)i;
}

/* ------------------------------------------------------------------------------------------------------------- open */

/* What an older header's struct leaves out has its default. */
static acs_options effective(const fuzz_open *open)
{
    acs_options defaults;
    (void)acs_options_init(&defaults, sizeof defaults);
    memcpy(&defaults, &open->options, open->size < sizeof defaults ? open->size : sizeof defaults);
    return defaults;
}

static const char *const g_choices[][3] = {{"gpu", "host", NULL}, {"off", "overlap", NULL}};

static void set_number(const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    setenv(name, text, 1);
}

/* The same options as environment variables; `wrong` is a value that none of them takes. */
static acs_status open_by_environment(const fuzz_open *open, acs_context **context)
{
    static const char *const names[] = {"ACS_BACKEND", "ACS_WINDOW", "ACS_FIFO", "ACS_STREAMS", "ACS_WORKERS", "ACS_BATCH",
                                        "ACS_SERIAL", "ACS_DISABLE", "ACS_SEED", "ACS_FAULTS", "ACS_SPIN_US",
                                        "ACS_EXECUTORS", "ACS_WAIT", "ACS_CHECK", "ACS_POOL", "ACS_REPEATS"};
    static const char *const bad[] = {"", "1x", "-1", " 1", "9999999999999999999999", "none", "GPU", "1 "};
    const acs_options *o = &open->options;
    const int64_t numbers[] = {0, o->window, o->fifo, o->streams, o->workers, o->batch, o->serial, o->disable, o->seed,
                               o->faults, o->spin_us, o->executors};
    setenv(names[0], o->backend == ACS_BACKEND_HOST ? "host" : FUZZ_BACKEND_NAME, 1);
    for (uint32_t i = 1; i < sizeof numbers / sizeof *numbers; i++)
        set_number(names[i], numbers[i]);
    setenv("ACS_WAIT", g_choices[0][o->wait], 1);
    setenv("ACS_CHECK", g_choices[1][o->check], 1);
    setenv("ACS_POOL", o->pool == ACS_POOL_OFF ? "off" : "on", 1);
    setenv("ACS_REPEATS", o->repeats == ACS_REPEATS_AUTO ? "auto" : "named", 1);
    if (open->wrong)
        setenv(names[(uint64_t)o->seed % (sizeof names / sizeof *names)], bad[open->wrong - 1], 1);
    acs_status status = acs_open(NULL, context);
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv(names[0], "none", 1); /* so that the default context never opens */
    return status;
}

static acs_status open_by_struct(const fuzz_open *open, acs_context **context)
{
    acs_options o = open->options;
    o.size = open->size;
    switch (open->wrong) {
    case 1: o.window = 0; break;
    case 2: o.backend = 99; break;
    case 3: o.size = 0; break;
    case 4: o.size = sizeof o + 8; break;
    case 5: return acs_open(&o, NULL);
    case 6: memset(o.cpus, '1', sizeof o.cpus); break;
    case 7: strcpy(o.cpus, "0-"); break;
    case 8: o.wait = -1; break;
    default: break;
    }
    return acs_open(&o, context);
}

static void forget_handle(const acs_context *context)
{
    for (uint32_t i = 0; i < FUZZ_CONTEXTS; i++)
        if (g_sessions[i].stale == context)
            g_sessions[i].stale = NULL; /* its struct is a new context now */
}

static void open_session(uint32_t which, const fuzz_open *open)
{
    fuzz_session *s = &g_sessions[which];
    acs_context *context = NULL;
    acs_status expected = !open->wrong ? ACS_OK : open->wrong == 5 && !open->environment ? ACS_ERR_ARGUMENT : ACS_ERR_OPTION;
    acs_status status = open->environment ? open_by_environment(open, &context) : open_by_struct(open, &context);
    if (status != expected || !context != (status != ACS_OK))
        fuzz_fail("acs_open returned %s and %s, should be %s", acs_status_name(status), context ? "a context" : "none",
                  acs_status_name(expected));
    if (!context)
        return;
    forget_handle(context);
    s->open = *open;
    if (!open->environment)
        s->open.options = effective(open);
    s->context = context;
    s->arena = (fuzz_memory){.real = g_arenas[which], .bytes = FUZZ_ARENA, .live = true};
    fill(&s->arena, which);
    s->block_count = s->count = s->epoch = 0;
    atomic_store(&s->refused, 0);
    s->last = 0;
    s->finished = false;
    atomic_store(&s->sequence, 0);
    atomic_store(&s->places, 0);
    atomic_store(&s->destroyed, 0);
    if (acs_context_backend(context) != s->open.options.backend)
        fuzz_fail("the backend is %d", acs_context_backend(context));
}

/* ------------------------------------------------------------------------------------------------------------ close */

static acs_error error_of(const fuzz_session *s, acs_op op)
{
    acs_error error = {.size = sizeof error};
    acs_status status = acs_op_error(s->context, op, &error);
    error.status = status;
    return error;
}

/* How each op ended, before that is forgotten. Everything has retired. */
static void collect(fuzz_session *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        fuzz_event *e = &s->events[i];
        if (e->op && e->epoch == s->epoch) {
            e->error = error_of(s, e->op);
            e->known = true;
        }
        e->retired = true;
    }
}

static void close_session(fuzz_session *s)
{
    s->finished = s->open.sync_before_close;
    if (s->finished) {
        s->result = acs_sync(s->context);
        collect(s);
        fuzz_judge(s);
    }
    acs_status status = acs_close(s->context);
    if (s->finished && status != s->result)
        fuzz_fail("acs_close returned %s, acs_sync before it %s", acs_status_name(status), acs_status_name(s->result));
    s->result = status;
    if (!s->finished)
        fuzz_judge(s);
    if (atomic_load(&s->places) != atomic_load(&s->destroyed))
        fuzz_fail("%u places were made and %u destroyed", atomic_load(&s->places), atomic_load(&s->destroyed));
    s->stale = s->context;
    s->context = NULL;
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/* The latest ops first: they are the ones that may still be under way. */
static int pick_target(const fuzz_session *s, uint32_t which)
{
    uint32_t ops = 0;
    for (uint32_t i = 0; i < s->count; i++)
        ops += s->events[i].op != 0;
    if (!ops)
        return -1;
    which %= ops;
    for (uint32_t i = s->count; i-- > 0;)
        if (s->events[i].op && which-- == 0)
            return (int)i;
    return -1;
}

static void note_return(fuzz_event *e)
{
    atomic_store(&e->began, atomic_fetch_add(&e->session->sequence, 1) + 1);
}

/* Where there is no room acs_malloc waits for what was freed, by ops of its own. */
static void note_ops(fuzz_session *s)
{
    acs_statistics stats = {.size = sizeof stats};
    if (acs_stats(s->context, &stats) != ACS_OK || stats.queued < s->last)
        fuzz_fail("acs_malloc took ops back");
    s->last = stats.queued;
}

static void do_malloc(fuzz_session *s, fuzz_event *e)
{
    const fuzz_step *step = e->step;
    void *block = NULL;
    size_t bytes = 1 + step->a % BLOCK_MOST;
    int kind = step->a & 1;
    acs_status expected = ACS_OK, status;
    if (step->wrong == FUZZ_KIND_OF_MEMORY || step->wrong == FUZZ_EMPTY_BLOCK || step->wrong == FUZZ_NULL_PLACE)
        expected = ACS_ERR_ARGUMENT;
    if (step->wrong == FUZZ_HUGE_BLOCK)
        expected = ACS_ERR_MEMORY;
    if (expected == ACS_OK && s->block_count == FUZZ_BLOCKS)
        return;
    if (step->wrong == FUZZ_KIND_OF_MEMORY)
        kind = (step->a & 1) ? -1 - step->a : 2 + step->a % 254; /* below ACS_RELOCATABLE */
    if (step->wrong == FUZZ_EMPTY_BLOCK || step->wrong == FUZZ_HUGE_BLOCK)
        bytes = step->wrong == FUZZ_EMPTY_BLOCK ? 0 : SIZE_MAX - step->a;
    status = acs_malloc(s->context, bytes, kind, step->wrong == FUZZ_NULL_PLACE ? NULL : &block);
    note_ops(s);
    if (status == ACS_ERR_MEMORY && s->open.options.faults && strstr(s->open.options.fault_kinds, "memory"))
        return; /* on purpose */
    fuzz_expect(e, status, expected);
    if (!block != (status != ACS_OK) || (uintptr_t)block % 256)
        fuzz_fail("step %u: acs_malloc gave %p", step->index, block);
    if (!block)
        return;
    e->block = &s->blocks[s->block_count++];
    *e->block = (fuzz_memory){.real = block, .bytes = (uint32_t)bytes, .live = true};
    fill(e->block, step->index);
}

static void do_wait(fuzz_session *s, fuzz_event *e)
{
    acs_op op = e->target >= 0 ? s->events[e->target].op : 0;
    if (e->step->wrong == FUZZ_OP_ZERO || e->step->wrong == FUZZ_OP_LATER)
        op = e->step->wrong == FUZZ_OP_ZERO ? 0 : s->last + 1 + e->step->a;
    e->result = e->step->kind == FUZZ_WAIT ? acs_wait(s->context, op) : acs_query(s->context, op);
    note_return(e);
    if (op == 0 || op > s->last) {
        fuzz_expect(e, e->result, ACS_ERR_ARGUMENT);
        e->target = -1;
        return;
    }
    fuzz_event *target = &s->events[e->target];
    if (e->result == ACS_NOT_READY && (e->step->kind == FUZZ_WAIT || target->retired))
        fuzz_fail("step %u: op %" PRIu64 " has retired, or was waited for, and is not ready", e->step->index, op);
    target->retired = target->retired || e->result != ACS_NOT_READY;
}

static void do_range(fuzz_session *s, fuzz_event *e)
{
    fuzz_queue(s, e);
    note_return(e);
    if (!e->op || e->step->kind != FUZZ_WAIT_RANGE || !e->memory[0])
        return;
    uint64_t offset = e->segments[0].base - (uint64_t)(uintptr_t)e->memory[0]->real, bytes = e->segments[0].row_bytes;
    uint64_t left = offset < e->memory[0]->bytes ? e->memory[0]->bytes - offset : 0;
    bytes = bytes < left ? bytes : left;
    e->length = (uint32_t)(bytes < FUZZ_SEEN ? bytes : FUZZ_SEEN);
    memcpy(e->seen, e->memory[0]->real + offset, e->length);
    if ((e->step->a & 1) && (e->segments[0].access & ACS_WRITE))
        memset(e->memory[0]->real + offset, e->step->index, e->length);
}

/* A clear forgets how ops ended: it is noted first, but for programs in which it is known anyway. */
static void do_sync(fuzz_session *s, fuzz_event *e)
{
    bool clear = e->step->kind == FUZZ_CLEAR, first = !clear || !e->step->calls_inside || s->open.options.faults;
    if (first)
        e->result = acs_sync(s->context);
    e->refused = s->refused; /* bodies have ended: what they called is among them */
    if (clear && first)
        collect(s);
    if (clear && acs_clear(s->context) != ACS_OK)
        fuzz_fail("step %u: acs_clear failed", e->step->index);
    note_return(e);
    for (uint32_t i = 0; i < s->count; i++)
        s->events[i].retired = true;
    if (clear) {
        s->epoch++;
        s->refused = 0;
        if (acs_context_error(s->context, NULL) != ACS_OK)
            fuzz_fail("step %u: an error is left after acs_clear", e->step->index);
    }
    e->known = first;
    e->seen_all = fuzz_hash_memory(s, false);
}

static void ask_stats(const fuzz_session *s, const fuzz_event *e)
{
    acs_statistics stats = {.size = sizeof stats};
    if (acs_stats(s->context, &stats) != ACS_OK || stats.queued != s->last || stats.retired > stats.queued ||
        stats.failed + stats.skipped > stats.retired || stats.window_high > (uint64_t)s->open.options.window + 64 ||
        stats.running_high > stats.queued || stats.slots_used > (uint64_t)s->open.options.streams)
        fuzz_fail("step %u: the statistics contradict themselves", e->step->index);
    if (acs_stats(s->context, NULL) != ACS_ERR_ARGUMENT)
        fuzz_fail("step %u: acs_stats took NULL", e->step->index);
    stats.size = 0;
    if (acs_stats(s->context, &stats) != ACS_ERR_ARGUMENT)
        fuzz_fail("step %u: acs_stats took a struct without a size", e->step->index);
}

static void do_ask(fuzz_session *s, fuzz_event *e)
{
    acs_error error = {.size = 8 + e->step->a % (sizeof error - 8)}; /* as an older header's */
    char text[64];
    acs_status status;
    int target = e->target;
    e->target = -1;
    switch (e->step->a % 4) {
    case 0: ask_stats(s, e); break;
    case 1:
        status = acs_context_error(s->context, &error);
        if (status != ACS_OK && error.size != 8 + e->step->a % (sizeof error - 8))
            fuzz_fail("step %u: acs_context_error changed the size", e->step->index);
        break;
    case 2:
        e->target = target;
        if (target >= 0)
            e->result = acs_op_error(s->context, s->events[target].op, &error);
        break;
    default:
        if (acs_options_dump(&s->open.options, text, e->step->a % sizeof text) < sizeof text)
            fuzz_fail("step %u: the dump of the options is too short", e->step->index);
    }
}

/* A step for a context that is not open: its old handle, or NULL for the default context, which cannot be opened. */
static void do_closed(const fuzz_session *s, const fuzz_step *step)
{
    acs_status expected = s->stale ? ACS_ERR_STATE : ACS_ERR_OPTION;
    acs_status status = fuzz_any_call(s->stale, step->index + step->a);
    if (status != expected)
        fuzz_fail("step %u: call %u with %s returned %s", step->index, step->index + step->a,
                  s->stale ? "a closed handle" : "no default context", acs_status_name(status));
}

static void run_step(const fuzz_step *step)
{
    fuzz_session *s = &g_sessions[step->context];
    if (step->kind == FUZZ_OPEN_CLOSE) {
        if (s->context)
            close_session(s);
        else
            open_session(step->context, &step->open);
        return;
    }
    if (!s->context) {
        do_closed(s, step);
        return;
    }
    fuzz_event *e = &s->events[s->count];
    memset(e, 0, sizeof *e);
    *e = (fuzz_event){.step = step, .session = s, .epoch = s->epoch, .target = pick_target(s, step->a)};
    switch (step->kind) {
    case FUZZ_MALLOC: do_malloc(s, e); break;
    case FUZZ_WAIT:
    case FUZZ_QUERY: do_wait(s, e); break;
    case FUZZ_WAIT_RANGE:
    case FUZZ_STREAM_AFTER: do_range(s, e); break;
    case FUZZ_SYNC:
    case FUZZ_CLEAR: do_sync(s, e); break;
    case FUZZ_STEP: (void)acs_step(s->context); break;
    case FUZZ_ASK: do_ask(s, e); break;
    default: fuzz_queue(s, e); break;
    }
    s->count++;
}

void fuzz_run(const fuzz_program *p)
{
    for (uint32_t i = 0; i < FUZZ_CONTEXTS; i++)
        g_sessions[i].context = g_sessions[i].stale = NULL; /* structs of earlier inputs may be in use again */
    open_session(0, &p->first);
    for (uint32_t i = 0; i < p->count; i++)
        run_step(&p->steps[i]);
    for (uint32_t i = 0; i < FUZZ_CONTEXTS; i++)
        if (g_sessions[i].context)
            close_session(&g_sessions[i]);
}
