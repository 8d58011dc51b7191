/*
 * What a profiler is told of bundles: over the twin each issue method's ranges name the kernels with their counts, and
 * with a profiler `auto` leaves GPU-side issue out. With an argument, the path of nvtx_tool, that is attached;
 * without, nothing is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/bundle.h"
#include "nvtx_tool.h"
#include "gpu_issue_double.h"
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
    return g_seen && g_seen->pushed != g_seen->popped;
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
    int pushed = g_seen ? g_seen->pushed : 0, went = 0;
    for (int round = 0; round < ROUNDS && went < 3; round++)
        went += issue(by) == by;
    assert_int_equal(went, 3);
    if (!g_seen)
        return;
    assert_int_equal(g_seen->pushed - pushed, 3); /* none for a bundle that was handed back */
    assert_string_equal(g_seen->last, message);
}

static void ranges_name_the_kernels_with_every_method(void **state)
{
    (void)state;
    name_by(ACS_METHOD_REPLAY, "replay: 41 ops: joint x21, motor x20");
    name_by(ACS_METHOD_LAYERS, "layers: 41 ops: joint x21, motor x20");
}

static void launches_need_no_range(void **state)
{
    (void)state;
    int pushed = g_seen ? g_seen->pushed : 0;
    for (int round = 0; round < 3; round++)
        assert_int_equal(issue(ACS_METHOD_LAUNCH), ACS_METHOD_LAUNCH);
    assert_int_equal(g_seen ? g_seen->pushed : 0, pushed);
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
        bundle_begin(&g_world, ACS_METHOD_LAYERS);
        for (uint32_t i = 0; i < 64; i++) {
            (void)snprintf(names[i], sizeof names[i], "%u%0*d", i, 20 + (int)i * 2, 0);
            add_op(i, names[i]);
        }
        if (bundle_submit(&g_world, 0, &status) == ACS_METHOD_LAYERS)
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

/* The double of the driver lacks GPU-side issue, which is found out when it is first tried. */
static bool auto_tries_the_gpu(void)
{
    const acs_cuda *self = (const acs_cuda *)g_world.backend;
    for (int round = 0; round < 3; round++) {
        acs_status status;
        bundle_begin(&g_world, ACS_METHOD_AUTO);
        for (uint32_t i = 0; i < 200; i++) {
            const bundle_op op = {
                .kernel = (int)i % 4, .salt = i, .grid = {1, 1, 1}, .from = {-1, -1, -1}, .to = (int)i};
            (void)bundle_add(&g_world, 0, bundle_record(&g_world, 0, &op), NULL, 0);
        }
        (void)bundle_submit(&g_world, 0, &status);
        bundle_wait(&g_world, 0);
    }
    return self->gpu_issue->state != ACS_GPU_ISSUE_UNTRIED;
}

static void auto_leaves_the_gpu_out_where_a_profiler_is_attached(void **state)
{
    (void)state;
    assert_int_equal(auto_tries_the_gpu(), g_seen == NULL);
    assert_int_equal(setenv("CUDA_INJECTION64_PATH", "a profiler that takes no ranges", 1), 0);
    bundle_close(&g_world);
    assert_true(bundle_open(&g_world));
    assert_false(auto_tries_the_gpu());
    assert_int_equal(unsetenv("CUDA_INJECTION64_PATH"), 0);
}

static void ranges_name_what_the_gpu_launches(void **state)
{
    static acs_batch batch;
    static acs_dag dag;
    static acs_record records[3];
    int pushed = g_seen ? g_seen->pushed : 0;
    (void)state;
    double_open(1, 4096);
    acs_cuda_profiler_init(g_double.self);
    memset(&batch, 0, sizeof batch);
    batch.method = ACS_METHOD_GPU;
    for (uint32_t i = 0; i < 3; i++) {
        acs_record *op = batch.items[batch.items_used++].op = &records[i];
        op->type = 1;
        op->grid = g_double.op[i].grid = (acs_dim3){1, 1, 1};
        op->u.launch.kernel.name = i ? "joint" : "motor";
        op->args = op->inline_args;
        op->arg_bytes = op->inline_bytes;
        op->arg_count = double_params(1);
        for (uint32_t k = 0; k < op->arg_count; k++)
            op->args[k] = (acs_arg_slot){.offset = 8 * k, .size = 8};
        memcpy(op->arg_bytes, &i, sizeof i);
        memcpy(g_double.op[g_double.ops++].args, &i, sizeof i);
    }
    acs_dag_make(&batch, &dag);
    assert_true(acs_cuda_gpu_issue_issue(g_double.self, &batch, &dag, 0));
    while (double_step())
        ;
    double_close();
    if (g_seen) {
        assert_int_equal(g_seen->pushed, pushed + 1);
        assert_int_equal(g_seen->popped, g_seen->pushed);
        assert_string_equal(g_seen->last, "gpu: 3 ops: motor x1, joint x2");
    }
}

/* Kernels that recur are named, too, by the thread that launches their graph. */
static void ranges_name_the_kernels_of_replays(void **state)
{
    (void)state;
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
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    const acs_kernel kernel = {"motor", (const void *)twin_kernel(&spec), NULL, ACS_KERNEL_HANDLE, 0};
    const acs_launch_params launch = {.size = sizeof launch, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                      .uses = {uses, 1, NULL, NULL, 0}, .site = &site};
    for (int pass = 0; pass < 5; pass++) {
        for (int i = 0; i < MOTORS; i++)
            assert_true(acs_launch(context, &launch) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(acs_close(context), ACS_OK);
    if (g_seen)
        assert_string_equal(g_seen->last, "replay: 20 ops: motor x20");
}

static void one_domain_serves_all_contexts(void **state)
{
    (void)state;
    bundle_close(&g_world);
    assert_true(bundle_open(&g_world));
    if (!g_seen) {
        assert_null(((const acs_cuda *)g_world.backend)->ranges);
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
        PROFILER_TEST(launches_need_no_range),
        PROFILER_TEST(many_long_names_are_cut),
        PROFILER_TEST(auto_leaves_the_gpu_out_where_a_profiler_is_attached),
        PROFILER_TEST(one_domain_serves_all_contexts),
        cmocka_unit_test(ranges_name_what_the_gpu_launches),
        cmocka_unit_test(ranges_name_the_kernels_of_replays),
    };
    (void)unsetenv("CUDA_INJECTION64_PATH");
    (void)unsetenv("NVTX_INJECTION64_PATH");
    if (argc > 1)
        attach(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
