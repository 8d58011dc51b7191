/*
 * The public API from the outside: what it refuses and how the error says so, options, contexts, fork, and calls from
 * inside user code. Nothing here needs a GPU.
 */
#include "api_fixture.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------- launches refused */

static void launch_of_no_kernel_is_refused(void **state)
{
    static const acs_kernel empty = ACS_KERNEL_HOST_INIT("empty", NULL);
    acs_launch_params launch = good_launch();
    launch.kernel = NULL;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "kernel");
    launch.kernel = &empty;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "kernel");
    assert_int_equal(acs_launch(*state, NULL), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
}

static void launch_with_a_zero_or_too_large_size_names_it(void **state)
{
    acs_launch_params launch = good_launch();
    launch.grid.y = 0;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "grid");
    launch = good_launch();
    launch.grid.z = 70000;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "70000");
    launch = good_launch();
    launch.block.x = 0;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "block");
    launch.block = (acs_dim3){64, 64, 1};
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "block");
    launch = good_launch();
    launch.shared_bytes = 1u << 30;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "shared");
}

static void launch_with_a_segment_that_wraps_is_refused(void **state)
{
    acs_segment wraps[] = {ACS_IN(16, 8), ACS_IN(UINT64_MAX - 10, 100)};
    acs_segment tile_wraps = ACS_TILE_OUT(4096, 16, 1ull << 40, 1ull << 40);
    acs_launch_params launch = good_launch();
    launch.uses = (acs_uses){wraps, 2, NULL, NULL, 0};
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "segment");
    launch.uses = (acs_uses){&tile_wraps, 1, NULL, NULL, 0};
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "segment");
}

/* A pitch that counts elements instead of bytes, say. Rows may touch. */
static void launch_with_rows_that_overlap_is_refused(void **state)
{
    acs_segment tile = ACS_TILE_INOUT(4096, 128, 16, 127);
    acs_launch_params launch = good_launch();
    launch.uses = (acs_uses){&tile, 1, NULL, NULL, 0};
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "segment 0 at 0x1000: pitch_bytes is 127, less than");
    tile.pitch_bytes = 0;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "pitch_bytes is 0");
    tile.pitch_bytes = 128;
    assert_int_not_equal(acs_launch(*state, &launch), 0);
    tile.pitch_bytes = 1;
    tile.rows = 1;
    assert_int_not_equal(acs_launch(*state, &launch), 0);
    tile.rows = 0;
    assert_int_not_equal(acs_launch(*state, &launch), 0);
}

static void launch_with_reserved_fields_is_refused(void **state)
{
    acs_segment segment = ACS_IN(4096, 16);
    acs_launch_params launch = good_launch();
    launch.uses = (acs_uses){&segment, 1, NULL, NULL, 0};
    segment.device = 3;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "device and version are 3 and 0");
    segment.device = 0;
    segment.version = 7;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "device and version are 0 and 7");
}

static void launch_with_an_unknown_access_or_extent_is_refused(void **state)
{
    acs_segment segment = ACS_IN(4096, 16);
    acs_launch_params launch = good_launch();
    launch.uses = (acs_uses){&segment, 1, NULL, NULL, 0};
    segment.access = 9;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "access");
    segment = ACS_IN(4096, 16);
    segment.extent = 9;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "extent");
}

static void arguments_up_to_the_limit_are_taken_and_no_byte_more(void **state)
{
    static unsigned char bytes[ACS_ARG_BYTES_MAX + 1];
    acs_arg arg = {bytes, ACS_ARG_BYTES_MAX, ACS_ARG_VALUE};
    acs_launch_params launch = good_launch();
    launch.args = (acs_args){&arg, 1};
    assert_int_not_equal(acs_launch(*state, &launch), 0);
    arg.size++;
    assert_launch_refused(*state, &launch, ACS_ERR_ARGUMENT, "32764");
    assert_int_equal(acs_host(*state, failing_function, bytes, sizeof bytes, ACS_USES_NONE), 0);
    assert_error(ACS_ERR_ARGUMENT, "32764");
}

static void programmatic_launch_is_refused_as_it_weakens_order(void **state)
{
    acs_launch_params launch = good_launch();
    launch.attributes.programmatic = 1;
    assert_launch_refused(*state, &launch, ACS_ERR_UNSUPPORTED, "programmatic");
}

static void other_ops_without_their_function_or_memory_are_refused(void **state)
{
    acs_call_params call = {.size = sizeof call};
    int x = 0;
    assert_int_equal(acs_host(*state, NULL, NULL, 0, ACS_USES_NONE), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_call(*state, &call), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_memcpy(*state, NULL, &x, sizeof x), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_on_retire(*state, 1, NULL, NULL), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
}

static void refused_launch_is_remembered_until_cleared(void **state)
{
    acs_launch_params launch = good_launch();
    acs_error e = {.size = sizeof e};
    launch.grid.x = 0;
    assert_int_equal(acs_launch(*state, &launch), 0);
    assert_int_equal(acs_sync(*state), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_context_error(*state, &e), ACS_ERR_ARGUMENT);
    assert_non_null(strstr(e.text, "grid"));
    assert_int_equal(acs_clear(*state), ACS_OK);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(acs_context_error(*state, NULL), ACS_OK);
}

static void full_fifo_without_waiting_is_an_error_and_retry_works(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    (void)state;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 0; /* nobody takes anything out until this thread steps */
    options.fifo = 4;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    acs_launch_params launch = good_launch();
    launch.no_wait = 1;
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(acs_launch(context, &launch), 0);
    assert_int_equal(acs_launch(context, &launch), 0);
    assert_error(ACS_ERR_FULL, "4");
    const acs_op_params params = {NULL, 1};
    assert_int_equal(acs_after_stream_op(context, NULL, ACS_USES_NONE, &params), 0);
    assert_error(ACS_ERR_FULL, "full");
    acs_sync(context);
    assert_int_not_equal(acs_after_stream_op(context, NULL, ACS_USES_NONE, &params), 0);
    acs_op after = acs_launch(context, &launch);
    assert_int_not_equal(after, 0);
    assert_int_equal(acs_wait(context, after), ACS_OK);
    acs_clear(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* --------------------------------------------------------------------------------------------- options and contexts */

static void open_with_a_value_out_of_range_names_option_and_value(void **state)
{
    acs_options options;
    acs_context *context = (acs_context *)&options; /* must stay as it is */
    (void)state;
    acs_options_init(&options, sizeof options);
    options.window = 5000;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "ACS_WINDOW");
    assert_error(ACS_ERR_OPTION, "5000");
    assert_ptr_equal(context, &options);
    acs_options_init(&options, sizeof options);
    options.backend = 17;
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "ACS_BACKEND");
}

static void open_with_a_bad_environment_names_the_variable(void **state)
{
    acs_context *context = NULL;
    (void)state;
    setenv("ACS_STREAMS", "many", 1);
    acs_status status = acs_open(NULL, &context);
    unsetenv("ACS_STREAMS");
    assert_int_equal(status, ACS_ERR_OPTION);
    assert_error(ACS_ERR_OPTION, "ACS_STREAMS");
    assert_error(ACS_ERR_OPTION, "many");
}

static void calls_after_close_are_refused(void **state)
{
    acs_context *context = open_on(ACS_BACKEND_SIM, 1);
    acs_launch_params launch = good_launch();
    (void)state;
    assert_int_equal(acs_close(context), ACS_OK);
    assert_launch_refused(context, &launch, ACS_ERR_STATE, "closed");
    assert_int_equal(acs_sync(context), ACS_ERR_STATE);
    assert_int_equal(acs_close(context), ACS_ERR_STATE);
    assert_int_equal(acs_context_backend(context), -1);
}

static void close_finishes_what_is_in_flight(void **state)
{
    int values[40] = {0};
    (void)state;
    for (int64_t workers = 0; workers <= 2; workers++) {
        acs_context *context = open_on(ACS_BACKEND_HOST, workers);
        memset(values, 0, sizeof values);
        for (int i = 0; i < 400; i++)
            queue_increment(context, &values[i % 40]);
        assert_int_equal(acs_close(context), ACS_OK);
        for (int i = 0; i < 40; i++)
            assert_int_equal(values[i], 1023);
    }
    assert_int_equal(acs_close(NULL), ACS_OK);
}

static void close_returns_the_error_that_was_not_cleared(void **state)
{
    acs_context *context = open_on(ACS_BACKEND_SIM, 1);
    (void)state;
    assert_int_not_equal(acs_host(context, failing_function, NULL, 0, ACS_USES_NONE), 0);
    assert_int_equal(acs_close(context), ACS_ERR_HOST);
}

static void two_contexts_do_not_share_ops_errors_or_memory(void **state)
{
    acs_context *a = open_on(ACS_BACKEND_HOST, 1), *b = open_on(ACS_BACKEND_SIM, 0);
    int x = 0, y = 0;
    void *memory = NULL;
    (void)state;
    assert_int_not_equal(acs_host(a, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x))), 0);
    assert_int_equal(queue_increment(b, &x), 1);
    queue_increment(b, &y);
    assert_int_equal(acs_sync(b), ACS_OK);
    assert_int_equal(acs_sync(a), ACS_ERR_HOST);
    assert_int_equal(x, 1);
    assert_int_equal(acs_malloc(a, 100, ACS_MEMORY_HOST, &memory), ACS_OK);
    assert_int_equal(acs_free(b, memory), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_close(b), ACS_ERR_ARGUMENT);
    assert_int_equal(acs_close(a), ACS_ERR_HOST);
}

static void forked_child_may_not_use_the_context_but_may_open_its_own(void **state)
{
    int value = 0, status = 0;
    queue_increment(*state, &value);
    acs_sync(*state);
    pid_t child = fork();
    if (child == 0) {
        acs_context *own = NULL;
        acs_options options;
        acs_options_init(&options, sizeof options);
        options.backend = ACS_BACKEND_SIM;
        bool refused = acs_sync(*state) == ACS_ERR_STATE && acs_close(*state) == ACS_ERR_STATE;
        bool opened = acs_open(&options, &own) == ACS_OK && acs_sync(own) == ACS_OK && acs_close(own) == ACS_OK;
        _exit(refused && opened ? 0 : refused ? 2 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    queue_increment(*state, &value);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(value, 3);
}

static void open_with_options_ignores_a_bad_environment(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    (void)state;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    setenv("ACS_WINDOW", "none", 1);

    acs_status given = acs_open(&options, &context);
    acs_status read = acs_open(NULL, &(acs_context *){NULL});

    unsetenv("ACS_WINDOW");
    assert_int_equal(given, ACS_OK);
    assert_int_equal(read, ACS_ERR_OPTION);
    assert_int_equal(acs_close(context), ACS_OK);
}

static int ask_for_default(void *closure)
{
    *(acs_context **)closure = acs_default();
    return 0;
}

/* From inside a host function it is refused, which is no reason to say that it cannot be opened. */
static void ask_from_inside(void)
{
    acs_options options;
    acs_context *context = NULL, *given = (acs_context *)&options;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_int_not_equal(acs_host(context, ask_for_default, &given, 0, ACS_USES_ANY), 0);
    (void)acs_close(context);
    assert_null(given);
}

/* Runs before the tests that open the default context, which stays open. */
static void default_context_that_cannot_be_opened_is_told_once(void **state)
{
    char text[1024];
    int ends[2], saved = dup(STDERR_FILENO);
    (void)state;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    ask_from_inside();
    setenv("ACS_BACKEND", "none", 1);
    acs_context *first = acs_default(), *second = acs_default();
    unsetenv("ACS_BACKEND");
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    close(ends[0]);

    assert_null(first);
    assert_null(second);
    assert_non_null(strstr(text, "acs: error: the default context cannot be opened"));
    assert_non_null(strstr(text, "ACS_BACKEND is \"none\""));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
}

static void calls_without_a_default_context_tell_why(void **state)
{
    acs_error error = {.size = sizeof error};
    (void)state;
    setenv("ACS_BACKEND", "none", 1);

    acs_status statuses[] = {acs_sync(NULL), acs_clear(NULL), acs_context_error(NULL, &error), acs_op_error(NULL, 1, &error),
                             acs_query(NULL, 1)};

    unsetenv("ACS_BACKEND");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_int_equal(statuses[i], ACS_ERR_OPTION);
}

static void null_context_is_the_default_one(void **state)
{
    int x = 0;
    (void)state;
    setenv("ACS_BACKEND", "sim", 1);
    acs_op op = ACS_LAUNCH(&g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    unsetenv("ACS_BACKEND");
    assert_int_not_equal(op, 0);
    assert_int_equal(acs_sync(NULL), ACS_OK);
    assert_int_equal(x, 1);
    assert_non_null(acs_default());
    assert_int_equal(acs_context_backend(NULL), ACS_BACKEND_SIM);
    assert_int_equal(acs_query(acs_default(), op), ACS_OK);
}

static void segments_may_be_a_list_made_at_run_time(void **state)
{
    int x[2] = {1, 1}, *at[2] = {&x[0], &x[1]};
    acs_segment list[2];
    for (int i = 0; i < 2; i++)
        list[i] = ACS_INOUT(at[i], sizeof *at[i]);
    acs_memset(*state, x, 0, sizeof x);
    ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(at[0]), ACS_USES_LIST(list, 2));
    memset(list, 0, sizeof list);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(x[0], 1);
}

/* The struct of the closed context serves the next one, which must not become the default by that. */
static void default_context_that_was_closed_is_opened_anew_at_the_next_use(void **state)
{
    (void)state;
    setenv("ACS_BACKEND", "sim", 1);
    assert_int_equal(acs_close(acs_default()), ACS_OK);
    acs_context *other = open_on(ACS_BACKEND_HOST, 1);
    acs_context *fresh = acs_default();
    unsetenv("ACS_BACKEND");
    assert_non_null(fresh);
    assert_ptr_not_equal(fresh, other);
    assert_int_equal(acs_context_backend(NULL), ACS_BACKEND_SIM);
    assert_int_equal(acs_sync(NULL), ACS_OK);
    assert_int_equal(acs_close(other), ACS_OK);
    assert_ptr_equal(acs_default(), fresh);
}

/* -------------------------------------------------------------------------------------------- calls from the inside */

typedef struct inside {
    acs_context *context;
    acs_op launched;
    acs_status sync, wait, stats, close, open, last;
    int calls;
} inside;

static void call_everything(inside *in)
{
    acs_statistics stats = {.size = sizeof stats};
    acs_launch_params launch = good_launch();
    acs_context *other = NULL;
    in->launched = acs_launch(in->context, &launch);
    in->last = acs_last_error(NULL);
    in->sync = acs_sync(in->context);
    in->wait = acs_wait(in->context, 1);
    in->stats = acs_stats(in->context, &stats);
    in->open = acs_open(NULL, &other);
    in->close = acs_close(in->context);
    in->calls++;
}

static void assert_all_refused(const inside *in)
{
    assert_int_equal(in->calls, 1);
    assert_int_equal(in->launched, 0);
    assert_int_equal(in->last, ACS_ERR_STATE);
    assert_int_equal(in->sync, ACS_ERR_STATE);
    assert_int_equal(in->wait, ACS_ERR_STATE);
    assert_int_equal(in->stats, ACS_ERR_STATE);
    assert_int_equal(in->open, ACS_ERR_STATE);
    assert_int_equal(in->close, ACS_ERR_STATE);
}

static int calling_host(void *closure)
{
    call_everything(closure);
    return 0;
}

static int calling_call(const acs_call_env *env, void *closure)
{
    (void)env;
    call_everything(*(inside **)closure);
    return 0;
}

static void calling_callback(void *user, acs_op op, acs_status status)
{
    (void)op;
    (void)status;
    call_everything(user);
}

static size_t calling_footprint(const acs_footprint_input *input, acs_segment *out, size_t capacity)
{
    (void)out;
    (void)capacity;
    call_everything(*(inside *const *)input->args[0]);
    return 0;
}

static void calls_inside_user_code_are_refused(void **state)
{
    inside host = {.context = *state}, call = host, callback = host, footprint = host;
    inside *call_pointer = &call, *footprint_pointer = &footprint;
    acs_call_params params = {.size = sizeof params, .function = calling_call, .closure = &call_pointer,
                              .closure_bytes = sizeof call_pointer};
    acs_op op = acs_host(*state, calling_host, &host, 0, ACS_USES_NONE);
    assert_int_not_equal(op, 0);
    assert_int_not_equal(acs_call(*state, &params), 0);
    assert_int_not_equal(acs_on_retire(*state, op, calling_callback, &callback), 0);
    assert_int_not_equal(ACS_LAUNCH_ON(*state, &g_nothing, 1, 1, 0, ACS_ARGS(footprint_pointer),
                                       ACS_USES_FN(calling_footprint, NULL)), 0);
    acs_sync(*state);
    assert_all_refused(&host);
    assert_all_refused(&call);
    assert_all_refused(&callback);
    assert_all_refused(&footprint);
}

static const acs_site g_lost_site = {"lost", "inside.c", 17};

typedef struct lost_call {
    acs_context *context;
    bool copies;
} lost_call;

static int launching_host(void *closure)
{
    static int x;
    const lost_call *call = closure;
    const acs_op_params params = {&g_lost_site, 0};
    acs_launch_params launch = good_launch();
    launch.site = &g_lost_site;
    acs_op op = call->copies ? acs_memset_op(call->context, &x, 0, sizeof x, &params) : acs_launch(call->context, &launch);
    return op != 0;
}

/* Program order has a hole, so the context tells it, with the call site. */
static void ops_refused_inside_user_code_are_told_by_the_context(void **state)
{
    for (int how = 0; how < 2; how++) {
        const lost_call closure = {*state, how == 1};
        acs_error e = {.size = sizeof e};
        assert_int_not_equal(acs_host(*state, launching_host, &closure, sizeof closure, ACS_USES_NONE), 0);
        assert_int_equal(acs_sync(*state), ACS_ERR_STATE);
        assert_int_equal(acs_context_error(*state, &e), ACS_ERR_STATE);
        assert_non_null(strstr(e.text, "inside a callback"));
        assert_string_equal(e.site.name, how == 1 ? "lost" : "nothing");
        assert_int_equal(e.site.line, 17);
        assert_int_equal(acs_clear(*state), ACS_OK);
        assert_int_equal(acs_sync(*state), ACS_OK);
    }
}

static void *last_error_elsewhere(void *argument)
{
    *(acs_status *)argument = acs_last_error(NULL);
    return NULL;
}

static void last_error_belongs_to_its_thread(void **state)
{
    pthread_t thread;
    acs_status elsewhere = ACS_ERR_INTERNAL;
    acs_launch_params launch = good_launch();
    launch.grid.x = 0;
    acs_launch(*state, &launch);
    assert_int_equal(pthread_create(&thread, NULL, last_error_elsewhere, &elsewhere), 0);
    pthread_join(thread, NULL);
    assert_int_equal(elsewhere, ACS_OK);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM(launch_of_no_kernel_is_refused),
        SIM(segments_may_be_a_list_made_at_run_time),
        SIM(launch_with_a_zero_or_too_large_size_names_it),
        SIM(launch_with_a_segment_that_wraps_is_refused),
        SIM(launch_with_rows_that_overlap_is_refused),
        SIM(launch_with_reserved_fields_is_refused),
        SIM(launch_with_an_unknown_access_or_extent_is_refused),
        SIM(arguments_up_to_the_limit_are_taken_and_no_byte_more),
        SIM(programmatic_launch_is_refused_as_it_weakens_order),
        SIM(other_ops_without_their_function_or_memory_are_refused),
        SIM(refused_launch_is_remembered_until_cleared),
        cmocka_unit_test(full_fifo_without_waiting_is_an_error_and_retry_works),
        cmocka_unit_test(open_with_a_value_out_of_range_names_option_and_value),
        cmocka_unit_test(open_with_a_bad_environment_names_the_variable),
        cmocka_unit_test(calls_after_close_are_refused),
        cmocka_unit_test(close_finishes_what_is_in_flight),
        cmocka_unit_test(close_returns_the_error_that_was_not_cleared),
        cmocka_unit_test(two_contexts_do_not_share_ops_errors_or_memory),
        HOST(forked_child_may_not_use_the_context_but_may_open_its_own),
        cmocka_unit_test(open_with_options_ignores_a_bad_environment),
        cmocka_unit_test(default_context_that_cannot_be_opened_is_told_once),
        cmocka_unit_test(calls_without_a_default_context_tell_why),
        cmocka_unit_test(null_context_is_the_default_one),
        cmocka_unit_test(default_context_that_was_closed_is_opened_anew_at_the_next_use),
        SIM(calls_inside_user_code_are_refused),
        SIM(ops_refused_inside_user_code_are_told_by_the_context),
        HOST(calls_inside_user_code_are_refused),
        INLINE(calls_inside_user_code_are_refused),
        SIM(last_error_belongs_to_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
