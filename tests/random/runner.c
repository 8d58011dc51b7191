/*
 * Runs a random program through the public API, on one thread or several, and records what it observes: op numbers,
 * statuses, callbacks, bytes seen after range waits. Called by main.c; it leaves all verdicts that it can to oracle.c.
 */
#include "bodies.h"
#include "checker.h"
#include "declared.h"
#include "fibers.h"
#include "moving.h"
#include "passing.h"
#include "sections.h"
#include "simulator/sim_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    program *p;
    acs_context *context;
    verdict *v;
    random_totals *totals;
    pthread_mutex_t lock;      /* guards turn, the verdict and the program's memory */
    pthread_cond_t passed;
    uint32_t turn;             /* baton: the step whose turn it is */
    uint32_t collected;        /* steps whose errors were read; only the thread with the baton moves it */
} run;

typedef struct producer {
    run *r;
    uint32_t thread;
} producer;

static const int g_place_key = 0;

static void *run_alloc(run *r, size_t bytes)
{
    pthread_mutex_lock(&r->lock);
    void *memory = program_alloc(r->p, bytes);
    pthread_mutex_unlock(&r->lock);
    return memory;
}

static void run_fail(run *r, const step *s, const char *what)
{
    acs_error e = {.size = sizeof e};
    acs_last_error(&e);
    pthread_mutex_lock(&r->lock);
    verdict_fail(r->v, "step %u (%s): %s; last error of the thread: %s \"%s\"", s->index, step_name(s), what,
                 acs_status_name(e.status), e.text);
    pthread_mutex_unlock(&r->lock);
}

/* ---------------------------------------------------------------------------------------------- from spans to calls */

static uint64_t real_address(const run *r, const span *s)
{
    return (uint64_t)(uintptr_t)r->p->arenas[s->arena].real + s->offset; /* where there is no block, no pointer either */
}

static acs_segment segment_of(const run *r, const span *s)
{
    uint64_t base = s->arena >= 0 ? real_address(r, s) : s->offset;
    return acs_make_segment((acs_extent)s->extent, (acs_access)s->access, base, s->row_bytes, s->rows, s->pitch);
}

static acs_uses uses_of(run *r, step *s)
{
    uint32_t computed = s->computed ? s->work_count - s->computed_from : 0;
    s->segment_count = s->given_count + computed;
    s->segments = run_alloc(r, 2 * s->segment_count * sizeof *s->segments);
    for (uint32_t i = 0; i < s->given_count; i++)
        s->segments[i] = segment_of(r, &s->given[i]);
    for (uint32_t i = 0; i < computed; i++)
        s->segments[s->given_count + i] = segment_of(r, &s->work[s->computed_from + i]);
    const acs_uses uses = {s->segments, s->given_count, s->computed ? mix_footprint : NULL, &s->computed_from, s->any};
    return declared_uses(r->p, s, uses);
}

static void fill_pieces(const run *r, const step *s, mix_piece *pieces)
{
    for (uint32_t i = 0; i < s->work_count; i++) {
        const span *w = &s->work[i];
        pieces[i] = (mix_piece){real_address(r, w), w->row_bytes, w->rows, w->pitch, w->access, 0};
    }
}

/* Where the pointers are in a kernel's first argument, as long as all that there are can be told. */
static uint32_t pointers_of(const run *r, const step *s)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < s->work_count; i++) {
        size_t word = (sizeof(mix_head) + i * sizeof(mix_piece)) / sizeof(uint64_t);
        if (word >= 30 || !r->p->config.relocatable)
            return ACS_ARG_VALUE;
        words |= ACS_POINTER_AT(word);
    }
    return ACS_ARG_POINTERS | words;
}

static void do_kernel(run *r, step *s)
{
    struct {
        mix_head head;
        mix_piece pieces[MIX_PIECES];
    } work = {.head = step_head(r->p, s)};
    _Alignas(16) unsigned char extra[ACS_ARG_BYTES_MAX];
    acs_arg list[MIX_EXTRAS + 1] = {{0}};
    const uint16_t *sizes = NULL;
    uint32_t fit = 0, used = 0;
    acs_kernel kernel = ACS_KERNEL_INIT(s->signature < 0 ? "nothing" : "mix", gpu_kernel(s->signature),
                                        s->signature < 0 ? nothing_body : mix_body);
    acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {s->grid, 1, 1},
                                .block = {s->block, 1, 1}, .shared_bytes = s->shared_bytes};
    if (!kernel.function)
        kernel.kind = ACS_KERNEL_NONE;
    if (s->counted)
        sections_count(&launch, r->p, s);
    if (s->signature >= 0) {
        work.head.extras = signature_extras(s->signature, &sizes, &fit);
        fill_pieces(r, s, work.pieces);
        list[0] = (acs_arg){&work, (uint32_t)(sizeof work.head + fit * sizeof work.pieces[0]),
                            pointers_of(r, s)};
        for (uint32_t j = 0; j < work.head.extras; j++) {
            list[j + 1] = (acs_arg){extra + used, sizes[j], ACS_ARG_VALUE};
            work.head.extra_bytes[j] = sizes[j];
            for (uint32_t k = 0; k < sizes[j]; k++)
                extra[used++] = mix_extra_byte(s->id, j, k);
        }
        launch.args = (acs_args){list, work.head.extras + 1};
    }
    launch.uses = uses_of(r, s);
    s->op = moving_launch(&r->p->config, r->context, s, &launch);
}

/* The closure's bytes; its size comes back. */
static closure_head *make_closure(run *r, const step *s, size_t *bytes)
{
    size_t extra = 0;
    for (uint32_t j = 0; j < s->extra_count; j++)
        extra += s->extra_bytes[j];
    *bytes = sizeof(closure_head) + s->work_count * sizeof(mix_piece) + extra;
    closure_head *c = run_alloc(r, *bytes);
    c->fail = s->fail;
    c->mix = step_head(r->p, s);
    mix_piece *pieces = (mix_piece *)(c + 1);
    fill_pieces(r, s, pieces);
    unsigned char *out = (unsigned char *)(pieces + s->work_count);
    for (uint32_t j = 0; j < s->extra_count; j++) {
        c->mix.extra_bytes[j] = s->extra_bytes[j];
        for (uint32_t k = 0; k < s->extra_bytes[j]; k++)
            *out++ = mix_extra_byte(s->id, j, k);
    }
    return c;
}

static void do_host(run *r, step *s)
{
    size_t bytes;
    closure_head *c = make_closure(r, s, &bytes);
    s->op = acs_host(r->context, mix_host, c, s->borrowed ? 0 : bytes, uses_of(r, s));
    if (!s->borrowed)
        memset(c, 0xee, bytes); /* it was copied */
}

static void do_call(run *r, step *s)
{
    size_t bytes;
    closure_head *c = make_closure(r, s, &bytes);
    acs_call_params call = {.size = sizeof call, .function = mix_call, .closure = c, .closure_bytes = bytes,
                            .uses = uses_of(r, s), .repeatable = step_repeats(s),
                            .pointers = step_repeats(s) ? closure_pointers(s->work_count) : 0};
    if (s->scratch) {
        call.scratch_bytes = call.repeatable ? 256 : 16 + s->index % 700;
        call.place_key = &g_place_key;
        call.place_destroy = place_destroy;
    }
    s->op = acs_call(r->context, &call);
    memset(c, 0xee, bytes);
}

static void do_copy(run *r, step *s)
{
    void *dst = (void *)(uintptr_t)real_address(r, &s->work[0]);
    uses_of(r, s);
    if (s->kind == STEP_MEMCPY)
        s->op = acs_memcpy(r->context, dst, (const void *)(uintptr_t)real_address(r, &s->work[1]), s->work[0].row_bytes);
    else
        s->op = acs_memset(r->context, dst, s->value, s->work[0].row_bytes);
}

/* What was refused because the device is lost, where that can be. */
static bool lost_it(const run *r)
{
    return r->p->config.may_lose && acs_last_error(NULL) == ACS_ERR_DEVICE;
}

/* It names memory that could not be allocated any more, so its addresses are none. */
static bool lost_its_memory(const run *r, const step *s)
{
    bool lost = false;
    for (uint32_t i = 0; i < s->work_count; i++)
        lost = lost || (s->work[i].arena >= 0 && !r->p->arenas[s->work[i].arena].real);
    return lost && r->p->config.may_lose;
}

/* An allocation that was made to fail is tried again, as programs do. */
static acs_status allocate(run *r, const arena *a, void **memory)
{
    acs_status status = ACS_ERR_MEMORY;
    int kind = a->kind == ARENA_DEVICE ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST;
    int moves = a->lazy ? ACS_LAZY : r->p->config.relocatable ? ACS_RELOCATABLE : 0;
    if (r->p->config.options.devices > 1 && !r->p->config.lazy)
        (void)acs_on(r->context, (int)(a->bytes % (uint64_t)r->p->config.options.devices));
    for (int tries = 0; status == ACS_ERR_MEMORY && tries < (r->p->config.options.faults ? 1000 : 1); tries++)
        status = acs_malloc(r->context, a->bytes, kind | moves, memory);
    if (r->p->config.options.devices > 1 && !r->p->config.lazy)
        (void)acs_on(r->context, ACS_ANY_DEVICE);
    return status;
}

static void arena_make(run *r, const step *s, arena *a)
{
    void *memory = NULL;
    if (a->kind == ARENA_PLAIN) {
        memory = run_alloc(r, a->bytes);
    } else if (allocate(r, a, &memory)) {
        if (!lost_it(r))
            run_fail(r, s, "acs_malloc failed");
    }
    else if ((uintptr_t)memory % 256)
        run_fail(r, s, "acs_malloc gave memory that is not 256-byte aligned");
    a->real = memory;
}

static void do_alloc(run *r, step *s)
{
    arena *a = &r->p->arenas[s->arena];
    arena_make(r, s, a);
    if (!a->real)
        return;
    if (!r->p->direct_init || a->lazy) {
        do_copy(r, s);
        return;
    }
    /* Ops of its former life may still use it. */
    acs_status status = acs_wait_range(r->context, a->real, a->bytes, ACS_UPDATE);
    bool lost = status == ACS_ERR_DEVICE && r->p->config.may_lose;
    if (status != ACS_OK && status != ACS_ERR_SKIPPED && !lost) /* skipped: an op that may touch anything failed */
        run_fail(r, s, "acs_wait_range on new memory failed");
    if (!r->p->config.gpu)
        memset(a->real, s->value, a->bytes);
    else if (gpu_fill(a->real, s->value, a->bytes) != 0)
        run_fail(r, s, "the program cannot fill new memory");
}

static void do_free(run *r, step *s)
{
    s->op = acs_free(r->context, r->p->arenas[s->arena].real);
}

static void on_retire(void *user, acs_op op, acs_status status)
{
    step *s = user;
    s->callbacks++;
    s->callback_op = op;
    s->callback_status = status;
}

static void do_callback(run *r, step *s)
{
    s->op = acs_on_retire(r->context, s->target->op, on_retire, s);
    if (s->op && s->index % 5 == 0 && !r->p->config.may_lose && (acs_wait(r->context, s->op) != ACS_OK || s->callbacks != 1))
        run_fail(r, s, "acs_wait on a callback returned before it had run once");
}

/* Wait for a range, keep what is there, perhaps write it: the library must have nothing left to do with it. */
static void do_range(run *r, step *s)
{
    const span *w = &s->work[0];
    unsigned char *bytes = (unsigned char *)(uintptr_t)real_address(r, w);
    acs_uses uses = uses_of(r, s);
    if (s->kind == STEP_WAIT_RANGE)
        s->result = acs_wait_range(r->context, bytes, w->row_bytes, (acs_access)w->access);
    else
        s->result = acs_stream_after(r->context, NULL, uses);
    if (s->kind == STEP_STREAM_AFTER && r->p->config.gpu)
        return; /* there it orders only the stream */
    if (r->p->arenas[w->arena].lazy || (r->p->config.gpu && r->p->arenas[w->arena].kind == ARENA_DEVICE))
        return; /* there is nothing to be seen */
    s->seen = run_alloc(r, w->row_bytes);
    if (!r->p->arenas[w->arena].real)
        return; /* never allocated: the device was lost */
    memcpy(s->seen, bytes, w->row_bytes);
    /* A wait that was refused says nothing: an op on the host may still be at it. */
    s->program_writes = s->program_writes && s->result != ACS_ERR_DEVICE;
    for (uint32_t i = 0; s->program_writes && i < w->row_bytes; i++)
        bytes[i] = mix_extra_byte(s->index, 0, i);
}

static void do_after_stream(run *r, step *s)
{
    s->op = acs_after_stream(r->context, NULL, uses_of(r, s));
}

/* Read how the ops ended: acs_clear would forget it. Everything queued has retired. */
static void collect(run *r, uint32_t end)
{
    for (; r->collected < end; r->collected++) {
        step *s = &r->p->steps[r->collected];
        s->error.size = sizeof s->error;
        bool own = s->kind != STEP_FREE || r->p->config.options.pool == ACS_POOL_OFF; /* a pool's free is no op */
        if (s->op && own)
            s->error.status = acs_op_error(r->context, s->op, &s->error);
    }
}

static void do_clear(run *r, step *s)
{
    if (r->p->config.threads == 1 || r->p->config.baton) {
        acs_sync(r->context);
        collect(r, s->index);
    }
    s->result = acs_clear(r->context);
}

static void do_refused(run *r, const step *s)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("refused", nothing_body);
    acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 0, 1}, .block = {1, 1, 1}};
    if (acs_launch(r->context, &launch) != 0)
        run_fail(r, s, "a launch with a zero grid was taken");
    else if (acs_last_error(NULL) != ACS_ERR_ARGUMENT && !lost_it(r))
        run_fail(r, s, "a launch with a zero grid is no ACS_ERR_ARGUMENT");
}

static void do_step(run *r, step *s)
{
    if (s->target && sections_missed(r->p, s->target))
        s->kind = STEP_NOTHING;
    moving_hint(&r->p->config, r->context, s);
    if (r->p->config.trace)
        fprintf(stderr, "  thread %u: step %u, %s\n", s->thread, s->index, step_name(s));
    switch (s->kind) {
    case STEP_KERNEL: do_kernel(r, s); break;
    case STEP_MEMCPY:
    case STEP_MEMSET: do_copy(r, s); break;
    case STEP_HOST: do_host(r, s); break;
    case STEP_CALL: do_call(r, s); break;
    case STEP_AFTER_STREAM: do_after_stream(r, s); break;
    case STEP_ALLOC: do_alloc(r, s); break;
    case STEP_FREE: do_free(r, s); break;
    case STEP_CALLBACK: do_callback(r, s); break;
    case STEP_WAIT: s->result = acs_wait(r->context, s->target->op); break;
    case STEP_QUERY: s->result = acs_query(r->context, s->target->op); break;
    case STEP_WAIT_RANGE:
    case STEP_STREAM_AFTER: do_range(r, s); break;
    case STEP_SYNC: s->result = acs_sync(r->context); break;
    case STEP_CLEAR: do_clear(r, s); break;
    case STEP_REFUSED: do_refused(r, s); break;
    case STEP_NOTHING: return;
    default:
        acs_step(r->context);
        break;
    }
    bool queued = s->kind <= STEP_CALLBACK && !(s->kind == STEP_ALLOC && r->p->direct_init) &&
                  !(s->kind == STEP_CALLBACK && !s->target->op); /* which was refused, and judged, itself */
    if (queued && s->op == 0 && !lost_it(r) && !lost_its_memory(r, s))
        run_fail(r, s, "the library took no op");
}

/* ---------------------------------------------------------------------------------------------------------- threads */

static bool in_fibers(const run *r)
{
    return r->p->config.threads > 1 && r->p->config.options.backend == ACS_BACKEND_SIM;
}

/* Wait for the baton, where there is one. False: the run has failed. */
static bool wait_turn(run *r, uint32_t index)
{
    const bool baton = r->p->config.baton;
    while (baton && in_fibers(r) && r->turn != index)
        fibers_yield(true);
    pthread_mutex_lock(&r->lock);
    while (baton && r->turn != index)
        pthread_cond_wait(&r->passed, &r->lock);
    bool go = !r->v->failed;
    pthread_mutex_unlock(&r->lock);
    return go;
}

static void pass_turn(run *r)
{
    pthread_mutex_lock(&r->lock);
    r->turn++;
    pthread_cond_broadcast(&r->passed);
    pthread_mutex_unlock(&r->lock);
}

static void do_step_of_loop(void *user, step *s)
{
    do_step(user, s);
}

static void *produce(void *argument)
{
    const producer *me = argument;
    run *r = me->r;
    bool baton = r->p->config.baton;
    passing pass = {0, false};
    section_stack sections = {.depth = 0};
    for (uint32_t i = 0; i < r->p->step_count; i++) {
        step *s = &r->p->steps[i];
        if (s->thread != me->thread)
            continue;
        const bool go = wait_turn(r, i);
        const uint32_t end = sections_loop_end(r->p, i);
        if (go && !passing_next(&pass, r->p, r->context, s))
            run_fail(r, s, "a pass that was begun cannot be ended");
        if (end > i) { /* such a program has one thread */
            if (!sections_loop(&sections, r->p, r->context, i, do_step_of_loop, r))
                run_fail(r, s, "a loop cannot begin or end");
            i = end - 1;
            continue;
        }
        if (go && !sections_move(&sections, r->p, r->context, s->section))
            run_fail(r, s, "a section cannot be begun or ended");
        if (go)
            do_step(r, s);
        if (baton)
            pass_turn(r);
    }
    (void)sections_move(&sections, r->p, r->context, (section_place){-1, false});
    passing_last(&pass, r->p, r->context);
    return NULL;
}

static void yield_to_another(void *user)
{
    (void)user;
    fibers_yield(false);
}

/* On the sim backend the seed picks who goes on, too. */
static void run_fibers(run *r)
{
    producer producers[FIBERS_MOST];
    void *arguments[FIBERS_MOST];
    for (uint32_t i = 0; i < r->p->config.threads; i++) {
        producers[i] = (producer){r, i};
        arguments[i] = &producers[i];
    }
    r->context->sim_driver->yield = yield_to_another;
    fibers_run(r->p->config.threads, produce, arguments, r->p->config.seed);
    r->context->sim_driver->yield = NULL;
}

static void run_threads(run *r)
{
    producer producers[8];
    pthread_t threads[8];
    uint32_t count = r->p->config.threads, started = 1;
    for (uint32_t i = 0; i < count; i++)
        producers[i] = (producer){r, i};
    while (started < count && pthread_create(&threads[started], NULL, produce, &producers[started]) == 0)
        started++;
    if (started < count) {
        fprintf(stderr, "test_random: cannot start threads\n");
        exit(2);
    }
    produce(&producers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* -------------------------------------------------------------------------------------------------- a whole program */

static void arenas_prepare(run *r)
{
    static const step start = {.kind = STEP_ALLOC};
    for (uint32_t i = 0; i < r->p->arena_count; i++) {
        arena *a = &r->p->arenas[i];
        if (a->temporary)
            continue;
        arena_make(r, &start, a);
        if (!a->real)
            return;
        /* Memory that lazy ones gave up may be handed out while it is still copied. */
        if (r->p->config.lazy && acs_wait_range(r->context, a->real, a->bytes, ACS_UPDATE) != ACS_OK)
            run_fail(r, &start, "acs_wait_range on a new arena failed");
        const bool apart = r->p->config.gpu || a->lazy;
        unsigned char *bytes = apart ? run_alloc(r, a->bytes) : a->real;
        for (uint32_t k = 0; k < a->bytes; k++)
            bytes[k] = mix_extra_byte(i, 99, k);
        if (apart && (!acs_memcpy(r->context, a->real, bytes, a->bytes) || acs_sync(r->context)))
            run_fail(r, &start, "the first copy to an arena failed");
    }
}

/* Keep the final bytes in plain memory; give half of the arenas back, the other half is left to acs_close. */
static void arenas_finish(run *r)
{
    static const step end = {.kind = STEP_FREE};
    for (uint32_t i = 0; i < r->p->arena_count; i++) {
        arena *a = &r->p->arenas[i];
        if (a->kind == ARENA_PLAIN || !a->live || !a->real)
            continue;
        unsigned char *memory = a->real;
        a->real = run_alloc(r, a->bytes);
        bool by_hand = (!r->p->config.gpu && !a->lazy) || r->p->lost.status != ACS_OK; /* a lost GPU is a double */
        bool copied = !by_hand && acs_memcpy(r->context, a->real, memory, a->bytes) && acs_sync(r->context) == ACS_OK;
        by_hand |= !copied && r->p->config.may_lose && acs_context_error(r->context, NULL) == ACS_ERR_DEVICE;
        if (!copied && !by_hand)
            run_fail(r, &end, "the last copy from an arena failed");
        if (by_hand)
            memcpy(a->real, memory, a->bytes);
        if ((i % 2 || r->p->config.lazy) && !acs_free(r->context, memory) && !lost_it(r))
            run_fail(r, &end, "acs_free of an arena was refused");
    }
}

/* Before the first op. The lock: workers look already. */
static void shape_core(acs_context *context, const random_config *c)
{
    acs_core *core = &context->core;
    if (context->sim_driver)
        context->sim_driver->ahead = c->ahead;
    acs_lock_acquire(&core->lock);
    acs_slots_shape(&core->slots, c->slots_first, c->slots_deep, c->slots_eager);
    if (c->marks && c->marks < core->slots.mark_capacity)
        core->slots.mark_capacity = c->marks;
    if (c->joins) {
        core->window.joins = c->joins;
        core->window.edge_count = c->edges;
    }
    acs_lock_release(&core->lock);
}

static void run_and_close(run *r, checker *record)
{
    shape_core(r->context, &r->p->config);
    if (record || r->p->config.trace)
        (void)acs_trace_add(&r->context->core, record ? checker_event : trace_print, record);
    arenas_prepare(r);
    /* Not while arenas are filled and read: only the program itself copes with refusals. */
    if (r->p->config.gpu)
        gpu_faults((uint32_t)r->p->config.options.faults);
    if (!r->v->failed && in_fibers(r))
        run_fibers(r);
    else if (!r->v->failed)
        run_threads(r);
    acs_sync(r->context);
    gpu_faults(0);
    collect(r, r->p->step_count);
    acs_status cleared = acs_clear(r->context);
    r->p->lost.size = sizeof r->p->lost;
    if (cleared == ACS_ERR_DEVICE && r->p->config.may_lose)
        acs_context_error(r->context, &r->p->lost);
    else if (cleared != ACS_OK)
        verdict_fail(r->v, "acs_clear at the end returned %s", acs_status_name(cleared));
    totals_add(r->totals, r->context, r->p, r->v);
    arenas_finish(r);
    if (r->p->config.lazy && !r->p->config.drop)
        moving_check(r->context, r->v);
    acs_status closed = acs_close(r->context);
    bool lost_at_last = closed == ACS_ERR_DEVICE && r->p->config.may_lose; /* by what gives the arenas back */
    if (closed != r->p->lost.status && !lost_at_last)
        verdict_fail(r->v, "acs_close after acs_clear returned %s", acs_status_name(closed));
    bodies_check(r->v);
}

void program_run(program *p, verdict *v, random_totals *totals)
{
    run r = {.p = p, .v = v, .totals = totals};
    if (p->config.gpu)
        gpu_begin(&p->config);
    acs_status opened = acs_open(&p->config.options, &r.context);
    if (opened == ACS_OK && p->config.gpu && gpu_opened(r.context) != ACS_OK)
        verdict_fail(v, "gpu_opened failed");
    if (opened != ACS_OK) {
        acs_error e = {.size = sizeof e};
        acs_last_error(&e);
        verdict_fail(v, "acs_open: %s, %s", acs_status_name(opened), e.text);
        return;
    }
    if (!sections_begin(p, r.context))
        verdict_fail(v, "sections cannot begin");
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.passed, NULL);
    checker *record = p->config.checker ? checker_create() : NULL;
    run_and_close(&r, record);
    if (p->config.gpu)
        gpu_end(v);
    totals_check(totals, record, p, v);
    checker_destroy(record);
    pthread_cond_destroy(&r.passed);
    pthread_mutex_destroy(&r.lock);
}
