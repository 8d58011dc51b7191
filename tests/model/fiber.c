/*
 * Coroutines for the threads of a scenario. Made once by makecontext; switched by setjmp and longjmp, which make no system
 * call; a thread that is left in the middle of an execution starts again from the bottom of its stack. Called by the
 * search; never chooses who runs.
 */
#include "fiber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

model_fiber g_fibers[MODEL_THREADS];

static struct {
    jmp_buf bottom, here;
    ucontext_t context;
    bool made, started;
} g_places[MODEL_THREADS];

static jmp_buf g_search, g_guard;
static bool g_guarded;
static int g_current = -1, g_count;
static char g_failure[400];

int model_current(void)
{
    return g_current;
}

int model_threads(void)
{
    return g_count;
}

const char *model_place(int thread)
{
    static char text[80];
    const model_site *site = g_fibers[thread].op.site;
    if (!site)
        return "its beginning";
    const char *file = strrchr(site->file, '/');
    snprintf(text, sizeof text, "%s:%d", file ? file + 1 : site->file, site->line);
    return text;
}

const char *fiber_failure(void)
{
    return g_failure;
}

void model_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(g_failure, sizeof g_failure, format, args);
    va_end(args);
    if (!g_guarded) {
        fprintf(stderr, "model: outside of an execution: %s\n", g_failure);
        exit(2);
    }
    g_current = -1;
    _longjmp(g_guard, 1);
}

bool fiber_guard(void (*body)(void))
{
    g_guarded = true;
    bool good = _setjmp(g_guard) == 0;
    if (good)
        body();
    g_guarded = false;
    return good;
}

void fibers_reset(void)
{
    g_count = 0;
    g_current = -1;
    for (int t = 0; t < MODEL_THREADS; t++)
        g_places[t].started = false;
}

int fiber_add(void (*scenario)(void), void *(*function)(void *), void *argument)
{
    if (g_count == MODEL_THREADS)
        model_fail("the explorer has room for %d threads", MODEL_THREADS);
    g_fibers[g_count] = (model_fiber){.scenario = scenario, .function = function, .argument = argument};
    return g_count++;
}

static void to_search(void)
{
    if (_setjmp(g_places[g_current].here) == 0)
        _longjmp(g_search, 1);
}

static void bottom(void)
{
    static model_site end = {"model", 0, "end", "thread", MODEL_EXIT, -1, -1, NULL, 0};
    (void)_setjmp(g_places[g_current].bottom);
    model_fiber *f = &g_fibers[g_current];
    if (f->scenario)
        f->scenario();
    else
        (void)f->function(f->argument);
    f = &g_fibers[g_current];
    f->op = (model_op){.kind = MODEL_EXIT, .site = &end, .at = (uintptr_t)f};
    to_search();
    abort(); /* nobody runs a thread that has ended */
}

static void make(int thread)
{
    ucontext_t *context = &g_places[thread].context;
    getcontext(context);
    context->uc_stack.ss_sp = arena_stack(thread);
    context->uc_stack.ss_size = MODEL_STACK;
    makecontext(context, bottom, 0);
    g_places[thread].made = true;
    setcontext(context);
}

void fiber_run(int thread)
{
    int before = g_current;
    g_current = thread;
    if (_setjmp(g_search) == 0) {
        bool started = g_places[thread].started;
        g_places[thread].started = true;
        if (started)
            _longjmp(g_places[thread].here, 1);
        if (g_places[thread].made)
            _longjmp(g_places[thread].bottom, 1);
        make(thread);
    }
    g_current = before;
}

/* ------------------------------------------------------------------------------------------------ visible operations */

model_site *g_sites;
uint32_t g_scenario;

static void see(model_site *site)
{
    if (!site->scenarios) {
        site->next = g_sites;
        g_sites = site;
    }
    site->scenarios |= 1ull << g_scenario;
}

const model_op *fiber_visible(model_site *site, model_op op)
{
    see(site);
    op.site = site;
    op.kind = op.kind ? op.kind : site->kind;
    g_fibers[g_current].op = op;
    to_search();
    return &g_fibers[g_current].op;
}

static uint64_t direct_read(const volatile void *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)at, bytes);
    return value;
}

uint64_t model_load(model_site *site, const volatile void *at, size_t bytes, int order)
{
    if (g_current < 0)
        return direct_read(at, bytes);
    return fiber_visible(site, (model_op){.at = (uintptr_t)at, .bytes = (uint32_t)bytes, .order = order})->value;
}

void model_store(model_site *site, volatile void *at, size_t bytes, uint64_t value, int order)
{
    if (g_current < 0)
        memcpy((void *)(uintptr_t)at, &value, bytes);
    else
        fiber_visible(site, (model_op){.at = (uintptr_t)at, .bytes = (uint32_t)bytes, .operand = value, .order = order});
}

uint64_t model_change(model_site *site, volatile void *at, size_t bytes, uint64_t operand, int order)
{
    if (g_current >= 0)
        return fiber_visible(site, (model_op){.at = (uintptr_t)at, .bytes = (uint32_t)bytes, .operand = operand,
                                        .order = order})->value;
    uint64_t before = direct_read(at, bytes), after = site->kind == MODEL_ADD ? before + operand : operand;
    memcpy((void *)(uintptr_t)at, &after, bytes);
    return before;
}

bool model_compare(model_site *site, volatile void *at, size_t bytes, uint64_t *expected, uint64_t desired, int order,
                   int fail_order)
{
    if (g_current >= 0) {
        const model_op *op = fiber_visible(site, (model_op){.at = (uintptr_t)at, .bytes = (uint32_t)bytes,
                                                      .operand = desired, .expected = *expected, .order = order,
                                                      .fail_order = fail_order});
        *expected = op->value;
        return op->done;
    }
    uint64_t before = direct_read(at, bytes);
    if (before == *expected)
        memcpy((void *)(uintptr_t)at, &desired, bytes);
    bool done = before == *expected;
    *expected = before;
    return done;
}

void model_fence(model_site *site, int order)
{
    if (g_current >= 0)
        fiber_visible(site, (model_op){.order = order});
}

void model_mutex(model_site *site, model_kind kind, void *mutex)
{
    if (g_current >= 0)
        fiber_visible(site, (model_op){.kind = kind, .at = (uintptr_t)mutex});
}

void model_wait(model_site *site, void *cond, void *mutex)
{
    if (g_current < 0)
        model_fail("setup or check waits for a condition");
    g_fibers[g_current].signalled = false;
    fiber_visible(site, (model_op){.at = (uintptr_t)cond, .mutex = (uintptr_t)mutex});
    fiber_visible(site, (model_op){.kind = MODEL_RELOCK, .at = (uintptr_t)cond, .mutex = (uintptr_t)mutex});
}

void model_wake(model_site *site, void *cond)
{
    if (g_current >= 0)
        fiber_visible(site, (model_op){.at = (uintptr_t)cond});
}

void model_daemon(void)
{
    g_fibers[g_current].daemon = true;
}
