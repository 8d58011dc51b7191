/*
 * The ranges of NVTX that a profiler gets on CPU threads: messages, categories and payloads of single ops, and calls
 * that wait. With an argument, the path of nvtx_tool, that is attached; with NVTX_TOOL_PLAIN it takes no extended
 * payloads. Without an argument nothing is attached, and there are no ranges.
 */
#include "api_fixture.h"

#include "base/nvtx.h"
#include "base/tuning.h"
#include "cuda/nvtx_tool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const nvtx_tool_seen *g_seen; /* NULL: no tool */
static const nvtx_tool_seen g_none;

static const nvtx_tool_seen *seen(void)
{
    return g_seen ? g_seen : &g_none;
}

/* Once a context is closed, each range has ended, on its thread; and no rule of NVTX was broken. */
static int close_balanced(void **state)
{
    acs_close(*state);
    if (seen()->pushed != seen()->popped || seen()->wrong)
        fprintf(stderr, "%d ranges begun, %d ended, %d wrong calls\n", seen()->pushed, seen()->popped, seen()->wrong);
    return seen()->pushed != seen()->popped || seen()->wrong;
}

/* The only range of this message and category since the push of number `since`. NULL without a tool. */
static const nvtx_tool_range *find(int since, const char *category, const char *text)
{
    const nvtx_tool_range *found = NULL;
    int like = 0;
    if (!g_seen)
        return NULL;
    for (int i = since; i < g_seen->pushed; i++) {
        const nvtx_tool_range *range = &g_seen->range[i % NVTX_TOOL_KEPT];
        const bool same = strcmp(range->text, text) == 0 && strcmp(g_seen->category[range->category], category) == 0;
        like += same;
        found = same ? range : found;
    }
    if (like != 1)
        fail_msg("%d ranges '%s' of category '%s'", like, text, category);
    return found;
}

static const nvtx_tool_range *find_op(int since, const char *category, const char *name, int line)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%s (test_nvtx.c:%d)", name, line);
    return find(since, category, text);
}

static long long field(const nvtx_tool_range *range, const char *name)
{
    for (int i = 0; i < range->fields; i++)
        if (strcmp(range->field[i].name, name) == 0)
            return range->field[i].number;
    fail_msg("the payload of '%s' has no '%s'", range->text, name);
    return 0;
}

/* The number of the op in the payload of whatever kind. */
static void assert_op(const nvtx_tool_range *range, acs_op op)
{
    if (range)
        assert_int_equal(range->extended ? field(range, "op") : range->payload, (long long)op);
}

/* ------------------------------------------------------------------------------------------------------ single ops */

static void kernels_have_name_call_site_and_payload(void **state)
{
    int x = 0, since = seen()->pushed;
    const acs_dim3 g = {2, 3, 4}, b = {32, 2, 1};
    const int line = __LINE__ + 1; /* compilers differ about calls of several lines */
    acs_op op = ACS_LAUNCH_ON(*state, &g_increment, g, b, 100, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    assert_int_equal(acs_sync(*state), ACS_OK);
    const nvtx_tool_range *range = find_op(since, "kernel", "increment", line);
    assert_op(range, op);
    if (!range || !range->extended)
        return;
    static const struct {
        const char *name;
        int is;
    } fields[] = {{"grid x", 2}, {"grid y", 3}, {"grid z", 4}, {"block x", 32}, {"block y", 2}, {"block z", 1},
                  {"shared bytes", 100}, {"device", 0}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_int_equal(field(range, fields[i].name), fields[i].is);
    assert_true(field(range, "slot") >= 0);
}

static int call_nothing(const acs_call_env *env, void *closure)
{
    (void)env;
    (void)closure;
    return 0;
}

static int host_nothing(void *closure)
{
    (void)closure;
    return 0;
}

static void retired(void *user, acs_op op, acs_status status)
{
    (void)user;
    (void)op;
    (void)status;
}

static acs_op queue_call(acs_context *context)
{
    static const acs_site site = {"gemm", "dir/test_nvtx.c", 7};
    const acs_call_params call = {.size = sizeof call, .function = call_nothing, .site = &site};
    return acs_call(context, &call);
}

static void each_kind_of_op_has_its_category(void **state)
{
    int x = 0, y = 1, since = seen()->pushed;
    acs_op copied = acs_memcpy(*state, &x, &y, sizeof x), filled = acs_memset(*state, &y, 0, sizeof y);
    acs_op hosted = acs_host(*state, host_nothing, NULL, 0, ACS_USES(ACS_INOUT(&x, sizeof x)));
    const int line = __LINE__ - 2;
    acs_op called = queue_call(*state);
    acs_op told = acs_on_retire(*state, hosted, retired, NULL);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_op(find_op(since, "copy", "acs_memcpy", line), copied);
    assert_op(find_op(since, "fill", "acs_memset", line), filled);
    assert_op(find_op(since, "host function", "acs_host(host_nothing)", line + 1), hosted);
    assert_op(find_op(since, "library call", "gemm", 7), called);
    assert_op(find(since, "host function", "acs_on_retire"), told);
    const nvtx_tool_range *copy = find_op(since, "copy", "acs_memcpy", line);
    if (copy && copy->extended)
        assert_int_equal(field(copy, "grid x"), 0);
}

static void skipped_ops_have_no_range(void **state)
{
    int x = 0, since = seen()->pushed;
    assert_true(acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, sizeof x))) > 0);
    assert_true(queue_increment(*state, &x) > 0);
    assert_int_equal(acs_sync(*state), ACS_ERR_HOST);
    for (int i = since; i < seen()->pushed; i++)
        assert_null(strstr(seen()->range[i].text, "increment"));
    assert_int_equal(acs_clear(*state), ACS_OK);
}

/* -------------------------------------------------------------------------------------------------------- messages */

static void a_call_site_and_name_is_one_registered_string(void **state)
{
    int x = 0;
    assert_int_equal(acs_wait_range(*state, &x, sizeof x, ACS_READ), ACS_OK); /* has its string from now on */
    const int since = seen()->pushed, strings = seen()->strings;
    for (int i = 0; i < 100; i++)
        (void)ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    (void)ACS_LAUNCH_ON(*state, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    const int line = __LINE__ - 1;
    assert_int_equal(acs_wait_range(*state, &x, sizeof x, ACS_READ), ACS_OK);
    const nvtx_tool_range *last = find_op(since, "kernel", "increment", line);
    if (!last)
        return;
    assert_int_equal(seen()->strings - strings, 2);
    assert_true(last->registered > 0);
}

/* A name in memory that the program uses again for another name. */
static void a_name_that_changes_is_another_message(void **state)
{
    static const acs_site site = {"kernel", "test_nvtx.c", 1};
    char name[16];
    acs_kernel kernel = g_nothing;
    acs_launch_params launch = good_launch();
    launch.site = &site;
    launch.kernel = &kernel;
    kernel.name = name;
    const int since = seen()->pushed;
    for (char letter = 'a'; letter <= 'c'; letter++) {
        (void)snprintf(name, sizeof name, "kernel_%c", letter);
        assert_true(acs_launch(*state, &launch) > 0);
        assert_int_equal(acs_sync(*state), ACS_OK);
    }
    (void)find_op(since, "kernel", "kernel_a", 1);
    (void)find_op(since, "kernel", "kernel_c", 1);
}

/* Of the two latest ranges, that of this message: the other one is of the wait. */
static const nvtx_tool_range *latest(const char *text)
{
    for (int i = 1; i <= 2; i++)
        if (strcmp(g_seen->range[(g_seen->pushed - i) % NVTX_TOOL_KEPT].text, text) == 0)
            return &g_seen->range[(g_seen->pushed - i) % NVTX_TOOL_KEPT];
    return NULL;
}

static void beyond_the_table_messages_are_not_registered(void **state)
{
    static char name[32];
    const nvtx_tool_range *last = NULL;
    int unregistered = 0;
    acs_kernel kernel = g_nothing;
    acs_launch_params launch = good_launch();
    launch.kernel = &kernel;
    kernel.name = name;
    const int strings = seen()->strings;
    for (int i = 0; i < TUNE_NVTX_MESSAGES * 3 / 2; i++) {
        (void)snprintf(name, sizeof name, "kernel_%d", i);
        const acs_op op = acs_launch(*state, &launch);
        assert_true(op > 0);
        assert_int_equal(acs_wait(*state, op), ACS_OK);
        last = g_seen ? latest(name) : NULL;
        assert_true(!g_seen || last);
        unregistered += last && !last->registered;
    }
    assert_true(seen()->strings - strings <= TUNE_NVTX_MESSAGES);
    assert_true(!g_seen || seen()->strings - strings > TUNE_NVTX_MESSAGES / 2);
    assert_true(!g_seen || unregistered >= TUNE_NVTX_MESSAGES / 2); /* so many more there were */
}

/* ----------------------------------------------------------------------------------------------------------- waits */

/* The waiting thread runs host functions, where there is no worker: their ranges are inside the wait's. */
static void calls_that_wait_have_ranges_around_what_they_run(void **state)
{
    int x = 0, since = seen()->pushed;
    acs_op hosted = acs_host(*state, host_nothing, NULL, 0, ACS_USES(ACS_INOUT(&x, sizeof x)));
    assert_int_equal(acs_wait(*state, hosted), ACS_OK);
    const nvtx_tool_range *wait = find(since, "wait", "acs_wait");
    assert_op(wait, hosted);
    acs_op last = queue_increment(*state, &x);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_op(find(since, "wait", "acs_sync"), last);
    assert_int_equal(acs_wait_range(*state, &x, sizeof x, ACS_READ), ACS_OK);
    assert_op(find(since, "wait", "acs_wait_range"), last + 1);
    if (!wait)
        return;
    const nvtx_tool_range *op = wait + 1; /* no other thread begins ranges */
    assert_int_equal(wait->depth, 0);
    assert_int_equal(op->depth, 1);
    assert_true(op->ended && op->ended <= wait->ended);
    assert_int_equal(op->thread, wait->thread);
}

static void a_full_fifo_has_a_range_of_the_op_that_waits(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    int x = 0;
    (void)state;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 0;
    options.fifo = 2;
    options.window = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    const int since = seen()->of_category[ACS_NVTX_WAIT], begun = seen()->pushed; /* nothing has run yet */
    for (int i = 0; i < 16; i++)
        assert_true(queue_increment(context, &x) > 0);
    assert_int_equal(acs_sync(context), ACS_OK); /* executors make no ranges from here on */
    int waits = 0;
    for (int i = begun; i < seen()->pushed; i++)
        if (strncmp(seen()->range[i % NVTX_TOOL_KEPT].text, "full FIFO: increment (api_fixture.h:", 36) == 0) {
            assert_true(seen()->range[i % NVTX_TOOL_KEPT].payload >= 1);
            assert_true(seen()->range[i % NVTX_TOOL_KEPT].payload <= 16);
            waits++;
        }
    assert_int_equal(seen()->of_category[ACS_NVTX_WAIT] - since, g_seen ? waits + 1 : 0);
    assert_true(!g_seen || waits > 0);
    assert_int_equal(acs_close(context), ACS_OK);
    (void)find(begun, "wait", "acs_close");
}

/* --------------------------------------------------------------------------------------------------------- threads */

enum { CALLERS = 4, LAUNCHES = 200 };

static void *launch_and_wait(void *context)
{
    int x = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        acs_op op = ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
        if (i % 16 == 0)
            (void)acs_wait(context, op);
    }
    return acs_wait_range(context, &x, sizeof x, ACS_WRITE) == ACS_OK ? context : NULL;
}

/* Threads of callers and executors make ranges at once; close_balanced looks at the rest. */
static void ranges_of_many_threads_do_not_mix(void **state)
{
    pthread_t thread[CALLERS];
    void *good = NULL;
    const int kernels = seen()->of_category[ACS_NVTX_KERNEL], waits = seen()->of_category[ACS_NVTX_WAIT];
    const int strings = seen()->strings, threads = seen()->threads;
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, launch_and_wait, *state), 0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(thread[i], &good), 0);
        assert_non_null(good);
    }
    assert_int_equal(acs_close(*state), ACS_OK);
    *state = NULL;
    if (!g_seen)
        return;
    assert_int_equal(g_seen->of_category[ACS_NVTX_KERNEL] - kernels, CALLERS * LAUNCHES);
    assert_true(g_seen->of_category[ACS_NVTX_WAIT] - waits >= CALLERS * (LAUNCHES / 16 + 1));
    assert_true(g_seen->strings - strings <= 4); /* one kernel, and functions that wait */
    assert_true(g_seen->threads - threads > CALLERS);
}

/* ------------------------------------------------------------------------------------------------------------ main */

static void without_a_tool_nothing_is_taken(void **state)
{
    (void)state;
    assert_int_equal(acs_nvtx_taken, g_seen != NULL);
    assert_int_equal(seen()->attached, g_seen != NULL);
    assert_int_equal(seen()->domains, g_seen != NULL);
    if (!g_seen)
        return;
    assert_string_equal(g_seen->domain, "ACS");
    assert_string_equal(g_seen->category[ACS_NVTX_KERNEL], "kernel");
    assert_string_equal(g_seen->category[ACS_NVTX_FREE], "free");
    assert_string_equal(g_seen->category[ACS_NVTX_REPLAY], "replay");
    assert_true(g_seen->schemas == 0 || !getenv("NVTX_TOOL_PLAIN")); /* old headers have none, either */
}

/* Before NVTX's first call. */
static void attach(const char *path)
{
    nvtx_tool_look_function look;
    void *tool = dlopen(path, RTLD_NOW), *symbol = tool ? dlsym(tool, "nvtx_tool_look") : NULL;
    if (!symbol || setenv("NVTX_INJECTION64_PATH", path, 1) != 0) {
        fprintf(stderr, "%s cannot be had\n", path);
        exit(1);
    }
    memcpy(&look, &symbol, sizeof symbol);
    g_seen = look();
}

#define NO_WORKER(test) cmocka_unit_test_setup_teardown(test, setup_inline, close_balanced)
#define WORKER(test) cmocka_unit_test_setup_teardown(test, setup_host, close_balanced)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NO_WORKER(kernels_have_name_call_site_and_payload),
        NO_WORKER(each_kind_of_op_has_its_category),
        NO_WORKER(skipped_ops_have_no_range),
        NO_WORKER(a_call_site_and_name_is_one_registered_string),
        NO_WORKER(a_name_that_changes_is_another_message),
        NO_WORKER(calls_that_wait_have_ranges_around_what_they_run),
        NO_WORKER(a_full_fifo_has_a_range_of_the_op_that_waits),
        WORKER(ranges_of_many_threads_do_not_mix),
        NO_WORKER(without_a_tool_nothing_is_taken),
        NO_WORKER(beyond_the_table_messages_are_not_registered), /* last: it fills the table */
    };
    (void)unsetenv("NVTX_INJECTION64_PATH");
    if (argc > 1)
        attach(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
