/* The host backend: order in slots and across them, concurrency, checks, memory, library calls, and the inline mode. */
#include "backend_fixture.h"

#include <pthread.h>
#include <signal.h>

/* ---------------------------------------------------------------------------------------------------------- kernels */

typedef struct gate {
    sem_t open;
    int passed; /* plain: written and read by kernels that the backend orders */
    int seen;
} gate;

static void gate_pass(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    sem_wait(&g->open);
    g->passed = 1;
}

static void gate_look(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    g->seen = g->passed;
}

static void gate_open(const acs_grid *grid, void *const *args)
{
    gate *g = pointer_of(args);
    (void)grid;
    sem_post(&g->open);
}

static void meet(const acs_grid *grid, void *const *args)
{
    (void)grid;
    pthread_barrier_wait(pointer_of(args));
}

static void increment(const acs_grid *grid, void *const *args)
{
    (void)grid;
    ++*(int *)pointer_of(args);
}

/* Count the nonzero bytes of shared memory, then dirty it. */
static void shared_use(const acs_grid *grid, void *const *args)
{
    unsigned char *shared = grid->shared;
    int *dirty = pointer_of(args);

    for (uint64_t i = 0; i < grid->shared_bytes; i++) {
        *dirty += shared[i] != 0;
        shared[i] = 1;
    }
    *dirty += grid->shared_bytes == 0 && shared != NULL;
}

typedef struct thread_facts {
    int usr1_blocked, cpus;
} thread_facts;

static void facts_look(const acs_grid *grid, void *const *args)
{
    thread_facts *facts = pointer_of(args);
    sigset_t mask;
    cpu_set_t cpus;

    (void)grid;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    facts->usr1_blocked = sigismember(&mask, SIGUSR1);
    sched_getaffinity(0, sizeof cpus, &cpus);
    facts->cpus = CPU_COUNT(&cpus);
}

static fixture *open_host(uint32_t slots, int executors)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, slots);
    f->options.executors = executors;
    fixture_open(f);
    return f;
}

static fixture *open_inline(uint32_t slots)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, slots);
    f->config.inline_only = true;
    fixture_open(f);
    return f;
}

/* ------------------------------------------------------------------------------------------------------------ order */

static void ops_of_one_slot_run_in_order(void **state)
{
    fixture *f = open_host(1, 4);
    trace *t = calloc(1, sizeof *t);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        fixture_add(f, 0, fixture_kernel(f, append, t, i));
        if (f->batch.items_used == ACS_BATCH_ITEMS)
            fixture_submit(f);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(t->used, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(t->number[i], i);
    free(t);
    fixture_close(f);
}

/* The looking kernel is next in line for the second executor while the first one waits in the gate. */
static void wait_for_a_mark_of_another_slot_runs_behind_it(void **state)
{
    fixture *f = open_host(3, 2);
    gate g = {.passed = 0, .seen = -1};
    acs_item *upstream;

    (void)state;
    sem_init(&g.open, 0, 0);
    upstream = fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    fixture_add(f, 1, fixture_kernel(f, gate_look, &g, 0));
    fixture_wait(f, upstream->after);
    fixture_add(f, 2, fixture_kernel(f, gate_open, &g, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(g.seen, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

/* A chain through all slots, round and round: an unguarded counter ends right, and TSan sees every step ordered. */
static void waits_in_a_chain_over_all_slots_order_every_op(void **state)
{
    fixture *f = open_host(FIXTURE_SLOTS, 4);
    acs_mark before = {0, 0, 0, 0};
    int counter = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        acs_item *item = fixture_add(f, i % FIXTURE_SLOTS, fixture_kernel(f, increment, &counter, 0));
        if (i)
            fixture_wait(f, before);
        before = item->after;
        if (f->batch.items_used == 7)
            fixture_submit(f);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(counter, 2000);
    fixture_close(f);
}

static void op_with_many_waits_runs_behind_all_of_them(void **state)
{
    fixture *f = open_host(FIXTURE_SLOTS, 4);
    int counters[FIXTURE_SLOTS] = {0}, sum = -1;

    (void)state;
    for (int round = 0; round < 100; round++) {
        acs_mark marks[FIXTURE_SLOTS];
        for (int slot = 1; slot < FIXTURE_SLOTS; slot++) {
            marks[slot] = fixture_add(f, slot, fixture_kernel(f, increment, &counters[slot], 0))->after;
            if (round)
                fixture_wait(f, f->slots[0].marks[f->slots[0].used - 1]);
        }
        fixture_add(f, 0, fixture_kernel(f, increment, &counters[0], 0));
        for (int slot = 1; slot < FIXTURE_SLOTS; slot++)
            fixture_wait(f, marks[slot]);
        fixture_submit(f);
    }
    fixture_drain(f);

    sum = 0;
    for (int slot = 0; slot < FIXTURE_SLOTS; slot++)
        sum += counters[slot];
    assert_int_equal(sum, 100 * FIXTURE_SLOTS);
    fixture_close(f);
}

static void two_slots_with_two_executors_run_at_once(void **state)
{
    fixture *f = open_host(2, 2);
    pthread_barrier_t barrier;

    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 50; i++) {
        fixture_add(f, 0, fixture_kernel(f, meet, &barrier, 0));
        fixture_add(f, 1, fixture_kernel(f, meet, &barrier, 0));
        fixture_submit(f);
    }
    fixture_drain(f); /* then: it returns */
    pthread_barrier_destroy(&barrier);
    fixture_close(f);
}

/* Poll alone, without notify's semaphore to order anything, must make the op's writes visible (pair A). */
static void poll_that_sees_completion_sees_what_the_op_wrote(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, 2);
    int counter = 0;

    (void)state;
    f->config.notify = NULL;
    fixture_open(f);
    for (int i = 0; i < 200; i++) {
        fixture_add(f, i % 2, fixture_kernel(f, increment, &counter, 0));
        fixture_submit(f);
        while (!fixture_poll(f, i % 2))
            sched_yield();
        assert_int_equal(counter, i + 1);
    }
    fixture_close(f);
}

static void poll_before_completion_leaves_completed_untouched(void **state)
{
    fixture *f = open_host(1, 1);
    gate g = {.passed = 0};
    uint64_t completed = 77;

    (void)state;
    sem_init(&g.open, 0, 0);
    fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    fixture_submit(f);
    f->backend->ops->poll(f->backend, 0, f->slots[0].marks, 1, &completed);
    assert_int_equal(completed, 77);

    sem_post(&g.open);
    fixture_drain(f);
    f->backend->ops->poll(f->backend, 0, f->slots[0].marks, 1, &completed);
    assert_int_equal(completed, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

/* -------------------------------------------------------------------------------------------------- failing to issue */

static void item_behind_a_failed_one_is_skipped_and_marks_still_complete(void **state)
{
    fixture *f = open_host(3, 2);
    acs_item *bad, *behind, *further, *other;
    int ran = 0;

    (void)state;
    bad = fixture_add(f, 0, fixture_record(f, ACS_KIND_FREE)); /* not for a slot */
    behind = fixture_add(f, 1, fixture_kernel(f, increment, &ran, 0));
    fixture_edge(f, bad);
    fixture_wait(f, bad->after);
    further = fixture_add(f, 2, fixture_kernel(f, increment, &ran, 0));
    fixture_edge(f, behind);
    fixture_wait(f, behind->after);
    other = fixture_add(f, 0, fixture_kernel(f, increment, &ran, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(bad->status, ACS_ERR_INTERNAL);
    assert_non_null(bad->text);
    assert_int_equal(behind->status, ACS_ERR_SKIPPED);
    assert_int_equal(further->status, ACS_ERR_SKIPPED);
    assert_int_equal(other->status, ACS_OK);
    assert_int_equal(ran, 1);
    fixture_close(f);
}

/* A later op of the skipped op's slot may rely on the skipped op's wait. */
static void waits_of_a_skipped_item_still_hold_its_slot(void **state)
{
    fixture *f = open_host(3, 2);
    gate g = {.passed = 0, .seen = -1};
    acs_item *upstream, *bad;

    (void)state;
    sem_init(&g.open, 0, 0);
    upstream = fixture_add(f, 0, fixture_kernel(f, gate_pass, &g, 0));
    bad = fixture_add(f, 1, fixture_record(f, ACS_KIND_FREE));
    fixture_wait(f, upstream->after);
    fixture_add(f, 1, fixture_kernel(f, gate_look, &g, 0));
    fixture_add(f, 2, fixture_kernel(f, gate_open, &g, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(bad->status, ACS_ERR_INTERNAL);
    assert_int_equal(g.seen, 1);
    sem_destroy(&g.open);
    fixture_close(f);
}

static void mark_in_another_slot_completes_with_what_is_before_it(void **state)
{
    fixture *f = open_host(2, 2);
    acs_item *item;
    int counter = 0;

    (void)state;
    fixture_add(f, 0, fixture_kernel(f, increment, &counter, 0))->mark_after = false;
    f->slots[0].used = 0;
    item = fixture_add(f, 1, fixture_kernel(f, increment, &counter, 0));
    f->batch.marks[0] = (acs_mark){0, 0, 0, 1};
    item->mark_count = 1;
    f->slots[0].marks[f->slots[0].used++] = f->batch.marks[0];
    fixture_wait(f, f->batch.marks[0]);
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(counter, 2);
    fixture_close(f);
}

/* --------------------------------------------------------------------------------------------------- what ops do */

static void copy_and_fill_change_exactly_their_bytes(void **state)
{
    fixture *f = open_host(1, 1);
    char text[] = "abcdefgh";
    acs_record *copy = fixture_record(f, ACS_KIND_MEMCPY), *fill = fixture_record(f, ACS_KIND_MEMSET);
    acs_record *none = fixture_record(f, ACS_KIND_MEMCPY);

    (void)state;
    copy->u.copy.dst = text + 2; /* overlapping */
    copy->u.copy.src = text;
    copy->u.copy.bytes = 4;
    fill->u.copy.dst = text;
    fill->u.copy.value = '-';
    fill->u.copy.bytes = 1;
    fixture_add(f, 0, copy);
    fixture_add(f, 0, fill);
    fixture_add(f, 0, none);
    fixture_add(f, 0, fixture_record(f, ACS_KIND_STREAM_WAIT));
    fixture_submit(f);
    fixture_drain(f);

    assert_string_equal(text, "-babcdgh");
    fixture_close(f);
}

static void shared_memory_is_zeroed_for_every_kernel(void **state)
{
    static const uint64_t sizes[] = {227 * 1024, 16, 0, 227 * 1024};
    fixture *f = open_host(1, 1);
    int dirty = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        acs_record *op = fixture_kernel(f, shared_use, &dirty, 0);
        op->u.launch.shared_bytes = sizes[i];
        fixture_add(f, 0, op);
    }
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(dirty, 0);
    fixture_close(f);
}

static void executors_block_signals_and_pin_to_the_given_cpu(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, 4);
    thread_facts facts = {0, 0};
    cpu_set_t mine;

    (void)state;
    sched_getaffinity(0, sizeof mine, &mine);
    for (f->cpu = 0; !CPU_ISSET(f->cpu, &mine);)
        f->cpu++;
    f->options.executors = 3;
    fixture_open(f);
    fixture_add(f, 0, fixture_kernel(f, facts_look, &facts, 0));
    fixture_submit(f);
    fixture_drain(f);

    assert_int_equal(f->cpus_asked, 3);
    assert_int_equal(facts.usr1_blocked, 1);
    assert_int_equal(facts.cpus, 1);
    fixture_close(f);
}

/* ------------------------------------------------------------------------------------------------- check and memory */

typedef struct bad_launch {
    const char *names; /* a part of the error's text */
    acs_status status;
    acs_dim3 grid, block, cluster;
    uint64_t shared_bytes;
    int body, function;
} bad_launch;

static void check_of_a_bad_launch_names_value_and_limit(void **state)
{
    static const bad_launch rows[] = {
        {"null", ACS_ERR_ARGUMENT, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, 0, 0},
        {"no host body", ACS_ERR_UNSUPPORTED, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, 0, 1},
        {"(0, 1, 1)", ACS_ERR_ARGUMENT, {0, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, 1, 0},
        {"2147483647", ACS_ERR_ARGUMENT, {0x80000000u, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, 1, 0},
        {"65536", ACS_ERR_ARGUMENT, {1, 65536, 1}, {1, 1, 1}, {0, 0, 0}, 0, 1, 0},
        {"65535", ACS_ERR_ARGUMENT, {1, 1, 65536}, {1, 1, 1}, {0, 0, 0}, 0, 1, 0},
        {"block", ACS_ERR_ARGUMENT, {1, 1, 1}, {1, 0, 1}, {0, 0, 0}, 0, 1, 0},
        {"1024", ACS_ERR_ARGUMENT, {1, 1, 1}, {1025, 1, 1}, {0, 0, 0}, 0, 1, 0},
        {"65", ACS_ERR_ARGUMENT, {1, 1, 1}, {1, 1, 65}, {0, 0, 0}, 0, 1, 0},
        {"2048 threads", ACS_ERR_ARGUMENT, {1, 1, 1}, {1024, 2, 1}, {0, 0, 0}, 0, 1, 0},
        {"232449", ACS_ERR_ARGUMENT, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 227 * 1024 + 1, 1, 0},
        {"cluster (2, 1, 1)", ACS_ERR_ARGUMENT, {3, 1, 1}, {1, 1, 1}, {2, 1, 1}, 0, 1, 0},
        {"(2, 0, 1)", ACS_ERR_ARGUMENT, {2, 1, 1}, {1, 1, 1}, {2, 0, 1}, 0, 1, 0},
        {"32 blocks", ACS_ERR_ARGUMENT, {16, 2, 1}, {1, 1, 1}, {16, 2, 1}, 0, 1, 0},
    };
    fixture *f = open_inline(1);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        acs_record *op = fixture_kernel(f, rows[i].body ? increment : NULL, NULL, 0);
        op->u.launch.kernel.function = rows[i].function ? rows : NULL;
        op->u.launch.grid = rows[i].grid;
        op->u.launch.block = rows[i].block;
        op->u.launch.shared_bytes = rows[i].shared_bytes;
        op->u.launch.attributes.cluster = rows[i].cluster;
        assert_int_equal(f->backend->ops->check(f->backend, op), rows[i].status);
        assert_non_null(strstr(acs_error_thread()->text, rows[i].names));
        assert_non_null(strstr(acs_error_thread()->text, "test kernel"));
    }
    fixture_close(f);
}

static void check_of_a_launch_at_the_limits_accepts_it(void **state)
{
    fixture *f = open_inline(1);
    acs_record *op = fixture_kernel(f, increment, NULL, 0);

    (void)state;
    op->u.launch.grid = (acs_dim3){0x7fffffff - 15, 65535, 65535};
    op->u.launch.block = (acs_dim3){16, 1, 64};
    op->u.launch.shared_bytes = 227 * 1024;
    op->u.launch.attributes.cluster = (acs_dim3){16, 1, 1};
    op->u.launch.attributes.cooperative = 1;
    assert_int_equal(f->backend->ops->check(f->backend, op), ACS_OK);
    assert_int_equal(f->backend->ops->check(f->backend, fixture_record(f, ACS_KIND_MEMSET)), ACS_OK);
    fixture_close(f);
}

static void memory_is_aligned_and_impossible_sizes_are_refused(void **state)
{
    fixture *f = open_inline(1);
    const acs_backend_ops *ops = f->backend->ops;
    void *ptr = NULL, *untouched = &ptr;

    (void)state;
    assert_int_equal(ops->memory_alloc(f->backend, ACS_MEMORY_DEVICE, 1000, &ptr), ACS_OK);
    assert_int_equal((uintptr_t)ptr % 256, 0);
    memset(ptr, 1, 1000);
    assert_int_equal(ops->memory_free(f->backend, ACS_MEMORY_DEVICE, ptr), ACS_OK);
    assert_int_equal(ops->memory_alloc(f->backend, ACS_MEMORY_HOST, 0, &untouched), ACS_ERR_ARGUMENT);
    assert_int_equal(ops->memory_alloc(f->backend, ACS_MEMORY_HOST, SIZE_MAX - 3, &untouched), ACS_ERR_MEMORY);
    assert_ptr_equal(untouched, &ptr);
    fixture_close(f);
}

static void stream_record_gives_no_event(void **state)
{
    fixture *f = open_inline(1);
    void *event = f;

    (void)state;
    assert_int_equal(f->backend->ops->stream_record(f->backend, NULL, &event), ACS_OK);
    assert_null(event);
    assert_int_equal(f->backend->ops->stream_record(f->backend, NULL, NULL), ACS_OK);
    f->backend->ops->event_release(f->backend, event);
    fixture_close(f);
}

/* ----------------------------------------------------------------------------------------------------- library calls */

typedef struct call_log {
    acs_call_env env;
    void *place_before;
    int result;
    pthread_barrier_t *barrier;
} call_log;

/* Leaves a handle in its place, and writes all of its scratch. */
static int call_record(const acs_call_env *env, void *closure)
{
    call_log *log = closure;

    log->env = *env;
    if (env->scratch)
        memset(env->scratch, 5, env->scratch_bytes);
    if (env->place) {
        log->place_before = *env->place;
        if (!*env->place)
            *env->place = calloc(1, 16);
    }
    if (log->barrier)
        pthread_barrier_wait(log->barrier);
    return log->result;
}

static acs_record *call_op(fixture *f, call_log *log, uint64_t scratch, const void *key)
{
    acs_record *op = fixture_record(f, ACS_KIND_CALL);

    op->u.call.function = call_record;
    op->u.call.closure = log;
    op->u.call.scratch_bytes = scratch;
    op->u.call.place_key = key;
    op->u.call.place_destroy = free;
    return op;
}

static void call_gets_scratch_of_its_size_and_keeps_its_place(void **state)
{
    fixture *f = open_inline(2);
    call_log log = {.result = 0};
    void *first;
    int native = 0;

    (void)state;
    assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 0, NULL), &native), ACS_OK);
    assert_null(log.env.scratch);
    assert_null(log.env.place);
    assert_int_equal(log.env.device, -1);
    assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 100, "a"), &native), ACS_OK);
    assert_null(log.place_before);
    first = log.env.scratch;
    assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 50, "a"), &native), ACS_OK);
    assert_non_null(log.place_before);
    assert_ptr_equal(log.env.scratch, first);
    assert_int_equal(log.env.scratch_bytes, 50);
    assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 100000, NULL), &native), ACS_OK);
    assert_int_equal(log.env.scratch_bytes, 100000);
    fixture_close(f); /* then: ASan finds neither scratch nor place left */
}

static void call_with_many_place_keys_keeps_them_apart(void **state)
{
    static const char keys[20];
    fixture *f = open_inline(1);
    call_log log = {.result = 0};
    void *values[20];
    int native = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 0, &keys[i]), &native), ACS_OK);
        assert_null(log.place_before);
    }
    for (int i = 0; i < 20; i++) {
        acs_backend_call(f->backend, call_op(f, &log, 0, &keys[i]), &native);
        values[i] = log.place_before;
        assert_non_null(values[i]);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(values[i], values[j]);
    }
    fixture_close(f);
}

static void call_that_reports_failure_gives_its_code(void **state)
{
    fixture *f = open_inline(1);
    call_log log = {.result = 42};
    int native = 0;

    (void)state;
    assert_int_equal(acs_backend_call(f->backend, call_op(f, &log, 0, NULL), &native), ACS_ERR_HOST);
    assert_int_equal(native, 42);
    fixture_close(f);
}

typedef struct caller {
    fixture *f;
    acs_record *op;
    acs_status status;
} caller;

static void *caller_main(void *arg)
{
    caller *c = arg;
    int native = 0;

    for (int i = 0; i < 100 && c->status == ACS_OK; i++)
        c->status = acs_backend_call(c->f->backend, c->op, &native);
    return NULL;
}

/* Two threads that call at once, `slots` to share. */
static void call_at_once(uint32_t slots, pthread_barrier_t *barrier, call_log log[2])
{
    fixture *f = open_inline(slots);
    caller callers[2];
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        log[i] = (call_log){.barrier = barrier};
        callers[i] = (caller){f, call_op(f, &log[i], 1000, "key"), ACS_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].status, ACS_OK);
    }
    fixture_close(f);
}

static void calls_at_once_get_different_slots(void **state)
{
    pthread_barrier_t barrier;
    call_log log[2];

    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    call_at_once(2, &barrier, log);
    assert_int_not_equal(log[0].env.slot, log[1].env.slot);
    pthread_barrier_destroy(&barrier);
}

static void calls_at_once_with_one_slot_take_turns(void **state)
{
    call_log log[2];

    (void)state;
    call_at_once(1, NULL, log);
    assert_int_equal(log[0].env.slot, 0);
    assert_int_equal(log[1].env.slot, 0);
}

/* ------------------------------------------------------------------------------------------------ inline and opening */

static void inline_backend_runs_in_poll_and_respects_waits(void **state)
{
    fixture *f = open_inline(3);
    trace *t = calloc(1, sizeof *t);
    acs_mark mark;

    (void)state;
    assert_true(f->backend->ops->single_thread);
    mark = fixture_add(f, 2, fixture_kernel(f, append, t, 0))->after;
    fixture_add(f, 0, fixture_kernel(f, append, t, 1));
    fixture_wait(f, mark);
    fixture_add(f, 0, fixture_kernel(f, append, t, 2));
    fixture_submit(f);
    assert_int_equal(t->used, 0);
    assert_true(fixture_poll(f, 0)); /* one poll runs the ops of all slots */

    assert_int_equal(t->used, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t->number[i], i);
    free(t);
    fixture_close(f);
}

static void open_and_close_without_work_leaves_nothing(void **state)
{
    (void)state;
    for (int executors = 0; executors < 4; executors++) {
        fixture *f = open_host(2, executors);
        assert_int_equal(f->backend->ops->id, ACS_BACKEND_HOST);
        fixture_close(f);
    }
}

static void open_never_falls_back_from_an_explicit_choice(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_CUDA, 2);

    (void)state;
    if (acs_backend_open(&f->config, &f->backend) == ACS_OK)
        assert_int_equal(f->backend->ops->id, ACS_BACKEND_CUDA);
    else
        assert_null(f->backend);
    fixture_close(f);
}

static void open_of_an_unknown_backend_is_refused(void **state)
{
    fixture *f = fixture_make(99, 2);

    (void)state;
    assert_int_equal(acs_backend_open(&f->config, &f->backend), ACS_ERR_OPTION);
    assert_non_null(strstr(acs_error_thread()->text, "99"));
    fixture_close(f);
}

static void open_auto_always_finds_a_backend(void **state)
{
    fixture *f = fixture_make(ACS_BACKEND_AUTO, 2);

    (void)state;
    fixture_open(f);
    assert_non_null(f->backend->calls);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_of_one_slot_run_in_order),
        cmocka_unit_test(wait_for_a_mark_of_another_slot_runs_behind_it),
        cmocka_unit_test(waits_in_a_chain_over_all_slots_order_every_op),
        cmocka_unit_test(op_with_many_waits_runs_behind_all_of_them),
        cmocka_unit_test(two_slots_with_two_executors_run_at_once),
        cmocka_unit_test(poll_that_sees_completion_sees_what_the_op_wrote),
        cmocka_unit_test(poll_before_completion_leaves_completed_untouched),
        cmocka_unit_test(item_behind_a_failed_one_is_skipped_and_marks_still_complete),
        cmocka_unit_test(waits_of_a_skipped_item_still_hold_its_slot),
        cmocka_unit_test(mark_in_another_slot_completes_with_what_is_before_it),
        cmocka_unit_test(copy_and_fill_change_exactly_their_bytes),
        cmocka_unit_test(shared_memory_is_zeroed_for_every_kernel),
        cmocka_unit_test(executors_block_signals_and_pin_to_the_given_cpu),
        cmocka_unit_test(check_of_a_bad_launch_names_value_and_limit),
        cmocka_unit_test(check_of_a_launch_at_the_limits_accepts_it),
        cmocka_unit_test(memory_is_aligned_and_impossible_sizes_are_refused),
        cmocka_unit_test(stream_record_gives_no_event),
        cmocka_unit_test(call_gets_scratch_of_its_size_and_keeps_its_place),
        cmocka_unit_test(call_with_many_place_keys_keeps_them_apart),
        cmocka_unit_test(call_that_reports_failure_gives_its_code),
        cmocka_unit_test(calls_at_once_get_different_slots),
        cmocka_unit_test(calls_at_once_with_one_slot_take_turns),
        cmocka_unit_test(inline_backend_runs_in_poll_and_respects_waits),
        cmocka_unit_test(open_and_close_without_work_leaves_nothing),
        cmocka_unit_test(open_never_falls_back_from_an_explicit_choice),
        cmocka_unit_test(open_of_an_unknown_backend_is_refused),
        cmocka_unit_test(open_auto_always_finds_a_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
