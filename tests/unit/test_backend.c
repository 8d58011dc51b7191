/* What the CPU backends share: checks of launches, memory, library calls; and how a backend is chosen. */
#include "backend_fixture.h"

#include <pthread.h>

static void do_nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

static fixture *open_inline(uint32_t slots)
{
    fixture *f = fixture_make(ACS_BACKEND_HOST, slots);
    f->config.inline_only = true;
    fixture_open(f);
    return f;
}

/* ---------------------------------------------------------------------------------------------- check and memory */

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
        acs_record *op = fixture_kernel(f, rows[i].body ? do_nothing : NULL, NULL, 0);
        op->u.launch.kernel.function = rows[i].function ? rows : NULL;
        op->grid = rows[i].grid;
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
    acs_record *op = fixture_kernel(f, do_nothing, NULL, 0);

    (void)state;
    op->grid = (acs_dim3){0x7fffffff - 15, 65535, 65535};
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

/* -------------------------------------------------------------------------------------------------- library calls */

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

/* ----------------------------------------------------------------------------------------------------- choosing */

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
        cmocka_unit_test(check_of_a_bad_launch_names_value_and_limit),
        cmocka_unit_test(check_of_a_launch_at_the_limits_accepts_it),
        cmocka_unit_test(memory_is_aligned_and_impossible_sizes_are_refused),
        cmocka_unit_test(stream_record_gives_no_event),
        cmocka_unit_test(call_gets_scratch_of_its_size_and_keeps_its_place),
        cmocka_unit_test(call_with_many_place_keys_keeps_them_apart),
        cmocka_unit_test(call_that_reports_failure_gives_its_code),
        cmocka_unit_test(calls_at_once_get_different_slots),
        cmocka_unit_test(calls_at_once_with_one_slot_take_turns),
        cmocka_unit_test(open_never_falls_back_from_an_explicit_choice),
        cmocka_unit_test(open_of_an_unknown_backend_is_refused),
        cmocka_unit_test(open_auto_always_finds_a_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
