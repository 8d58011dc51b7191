/*
 * What a profiler is told of bundles: over the twin their ranges name the kernels with their counts. With an argument, the
 * path of nvtx_tool, that is attached; without, nothing is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/bundle.h"
#include "base/nvtx.h"
#include "nvtx_tool.h"
#include "twin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOTORS = 20, JOINTS = 21, ROUNDS = 400 };

static bundle_world g_world;
static const nvtx_tool_seen *g_seen; /* NULL: no tool */

static int setup(void **state)
{
    (void)state;
    return bundle_open(&g_world) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    bundle_close(&g_world);
    return g_seen && (g_seen->pushed != g_seen->popped || g_seen->wrong);
}

/* Ranges of this category so far. */
static int ranges(acs_nvtx_kind kind)
{
    return g_seen ? g_seen->of_category[kind] : 0;
}

/* The range that was pushed last. */
static const nvtx_tool_range *last_range(void)
{
    return &g_seen->range[(g_seen->pushed - 1) % NVTX_TOOL_KEPT];
}

static const nvtx_tool_field *field(const nvtx_tool_range *range, const char *name)
{
    for (int i = 0; i < range->fields; i++)
        if (strcmp(range->field[i].name, name) == 0)
            return &range->field[i];
    fail_msg("the payload of '%s' has no '%s'", range->text, name);
    return NULL;
}

/* The payload of the bundle or replay that was pushed last. */
static void assert_bundle(const char *method, int ops)
{
    const nvtx_tool_range *range = last_range();
    if (!range->extended) /* NVTX's headers are old */
        return;
    assert_string_equal(field(range, "method")->text, method);
    assert_int_equal(field(range, "ops")->number, ops);
    (void)field(range, "first op");
    (void)field(range, "slot");
    (void)field(range, "device");
}

static void add_op(uint32_t i, const char *name)
{
    const bundle_op op = {.salt = i, .grid = {1, 1, 1}, .from = {-1, -1, -1}, .to = (int)i};
    acs_record *record = bundle_record(&g_world, 0, &op);
    record->u.launch.kernel.name = name;
    (void)bundle_add(&g_world, 0, record, NULL, 0);
}

/* Twenty motors and a joint more, side by side and mixed. */
static acs_issue_method issue(acs_issue_method by)
{
    acs_status status;
    bundle_begin(&g_world, by);
    for (uint32_t i = 0; i < MOTORS + JOINTS; i++)
        add_op(i, i % 2 ? "motor" : "joint");
    acs_issue_method went = bundle_submit(&g_world, 0, &status);
    bundle_wait(&g_world, 0);
    return went;
}

/* As often as it takes until bundles go by it. */
static void name_by(acs_issue_method by, const char *message)
{
    int pushed = ranges(ACS_NVTX_BUNDLE), went = 0;
    for (int round = 0; round < ROUNDS && went < 3; round++)
        went += issue(by) == by;
    assert_int_equal(went, 3);
    if (!g_seen)
        return;
    assert_int_equal(ranges(ACS_NVTX_BUNDLE) - pushed, 3); /* none for a bundle that was handed back */
    assert_string_equal(g_seen->last, message);
    assert_true(last_range()->registered > 0);
    assert_bundle("replay", MOTORS + JOINTS);
    const int registered = last_range()->registered, strings = g_seen->strings;
    assert_int_equal(issue(by), by);
    assert_int_equal(last_range()->registered, registered);
    assert_int_equal(g_seen->strings, strings);
}

static void ranges_name_the_kernels_with_every_method(void **state)
{
    (void)state;
    name_by(ACS_METHOD_REPLAY, "replay: 41 ops: joint x21, motor x20");
}

static void each_launch_has_a_range(void **state)
{
    (void)state;
    const int bundles = ranges(ACS_NVTX_BUNDLE), kernels = ranges(ACS_NVTX_KERNEL);
    for (int round = 0; round < 3; round++)
        assert_int_equal(issue(ACS_METHOD_LAUNCH), ACS_METHOD_LAUNCH);
    assert_int_equal(ranges(ACS_NVTX_BUNDLE), bundles);
    if (!g_seen)
        return;
    assert_int_equal(ranges(ACS_NVTX_KERNEL) - kernels, 3 * (MOTORS + JOINTS));
    assert_int_equal(strncmp(last_range()->text, "joint (bundle.c:", 16), 0);
    assert_true(last_range()->registered > 0);
}

/* What fits is whole, and how many more there are is told. */
static void many_long_names_are_cut(void **state)
{
    static char names[64][200];
    acs_status status;
    unsigned more = 0;
    uint32_t seen = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        bundle_begin(&g_world, ACS_METHOD_REPLAY);
        for (uint32_t i = 0; i < 64; i++) {
            (void)snprintf(names[i], sizeof names[i], "%u%0*d", i, 20 + (int)i * 2, 0);
            add_op(i, names[i]);
        }
        if (bundle_submit(&g_world, 0, &status) == ACS_METHOD_REPLAY)
            break;
    }
    bundle_wait(&g_world, 0);
    if (!g_seen)
        return;
    assert_true(strlen(g_seen->last) < 512);
    for (const char *at = g_seen->last; (at = strstr(at, " x1")) != NULL; at++)
        seen++;
    const char *end = strstr(g_seen->last, ", and ");
    assert_non_null(end);
    assert_int_equal(sscanf(end, ", and %u more", &more), 1);
    assert_int_equal(seen + more, 64);
    assert_true(seen > 8);
}

/*
 * Launch kernels that recur; the first five passes end with a wait. `failing`: a function of the driver that always
 * fails, or NULL.
 */
static void launch_passes(int passes, const char *failing, int64_t fifo)
{
    static const acs_site site = {"motor", __FILE__, __LINE__};
    const twin_kernel_spec spec = {.name = "motor"};
    static char memory[8];
    const acs_segment uses[] = {acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, (uintptr_t)memory, sizeof memory, 1, 0)};
    acs_options options;
    acs_context *context = NULL;
    twin_reset();
    twin_set_strategy(TWIN_EAGER);
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 0; /* no thread builds graphs but this one */
    options.repeats = ACS_REPEATS_AUTO;
    options.fifo = fifo;
    if (failing)
        twin_fail(failing, CUDA_ERROR_OUT_OF_MEMORY, 0, UINT64_MAX);
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    const acs_kernel kernel = {"motor", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
    const acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .uses = {uses, 1, NULL, NULL, 0}, .site = &site};
    for (int pass = 0; pass < passes; pass++) {
        for (int i = 0; i < MOTORS; i++)
            assert_true(acs_launch(context, &launch) > 0);
        if (pass < 5)
            assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(g_seen ? g_seen->pushed - g_seen->popped + g_seen->wrong : 0, 0);
}

/* Kernels that recur are named, too, by the thread that launches their graph. */
static void ranges_name_the_kernels_of_replays(void **state)
{
    (void)state;
    launch_passes(5, NULL, 1024);
    if (!g_seen)
        return;
    assert_string_equal(g_seen->last, "replay: 20 ops: motor x20");
    assert_true(ranges(ACS_NVTX_REPLAY) > 0);
}

static void kernels_of_a_replay_without_graph_have_ranges(void **state)
{
    const int kernels = ranges(ACS_NVTX_KERNEL), replays = ranges(ACS_NVTX_REPLAY);
    (void)state;
    launch_passes(5, "cuGraphInstantiateWithFlags", 1024);
    assert_int_equal(ranges(ACS_NVTX_KERNEL) - kernels, g_seen ? 5 * MOTORS : 0);
    assert_int_equal(ranges(ACS_NVTX_REPLAY), replays);
}

/* A full FIFO holds up kernels of replays, and others. */
static void waits_for_room_name_the_op(void **state)
{
    const int before = g_seen ? g_seen->pushed : 0;
    int waits = 0;
    (void)state;
    launch_passes(100, NULL, 2);
    for (int i = before; g_seen && i < g_seen->pushed; i++)
        waits += strncmp(g_seen->range[i % NVTX_TOOL_KEPT].text, "full FIFO: motor (test_cuda_profiler.c:", 39) == 0;
    assert_true(!g_seen || waits > 0);
}

static void one_domain_serves_all_contexts(void **state)
{
    (void)state;
    bundle_close(&g_world);
    assert_true(bundle_open(&g_world));
    if (!g_seen) {
        assert_false(acs_nvtx_taken);
        return;
    }
    assert_int_equal(g_seen->attached, 1);
    assert_int_equal(g_seen->domains, 1);
    assert_string_equal(g_seen->domain, "ACS");
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

#define PROFILER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PROFILER_TEST(ranges_name_the_kernels_with_every_method),
        PROFILER_TEST(each_launch_has_a_range),
        PROFILER_TEST(many_long_names_are_cut),
        PROFILER_TEST(one_domain_serves_all_contexts),
        cmocka_unit_test(ranges_name_the_kernels_of_replays),
        cmocka_unit_test(kernels_of_a_replay_without_graph_have_ranges),
        cmocka_unit_test(waits_for_room_name_the_op),
    };
    (void)unsetenv("CUDA_INJECTION64_PATH");
    (void)unsetenv("NVTX_INJECTION64_PATH");
    if (argc > 1)
        attach(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
