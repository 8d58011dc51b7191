/*
 * The recorder, on the host backend: what it keeps of ops, waits and blocks, in which order, and what it leaves out; and
 * files of ACS_TRACE and ACS_REPORT that cannot be written, or are pipes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"

#include "api/context.h"
#include "report/path.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FEW = 1024 };

static void nothing_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}
static const acs_kernel g_nothing = ACS_KERNEL_HOST_INIT("nothing", nothing_body);

/* `repeats`: on a backend that replays. */
static acs_context *start(int64_t ops, int64_t percent, bool repeats)
{
    acs_context *context = NULL;
    acs_options options = host_options();
    (void)snprintf(options.trace, sizeof options.trace, "/dev/null");
    options.trace_ops = ops;
    options.trace_sample = percent;
    if (repeats) {
        options.backend = ACS_BACKEND_SIM;
        options.sim_order = ACS_SIM_ORDER_TIME;
        options.workers = 1;
    }
    options.repeats = ACS_REPEATS_NAMED;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_non_null(context->recorder);
    return context;
}

/* What was recorded so far. The context records no more. */
static acs_recording take(acs_context *context)
{
    acs_recording recording;
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_recorder_take(context->recorder, &recording), ACS_OK);
    return recording;
}

static void finish(acs_context *context, acs_recording *recording)
{
    acs_recording_free(recording);
    assert_int_equal(acs_close(context), ACS_OK);
}

static acs_op launch(acs_context *context, const acs_segment *segments, size_t count)
{
    static const acs_site site = {"launch", "here.c", 7};
    acs_launch_params p = {.size = sizeof p, .kernel = &g_nothing, .grid = {3, 2, 1}, .block = {32, 1, 1}, .site = &site};
    p.uses.segments = segments;
    p.uses.count = count;
    const acs_op op = acs_launch(context, &p);
    assert_true(op > 0);
    return op;
}

static void an_op_is_recorded_with_its_call_its_bytes_and_its_times(void **state)
{
    (void)state;
    acs_context *context = start(FEW, 100, false);
    int place[4];
    const acs_segment uses[] = {ACS_IN(&place[0], 4), ACS_OUT(&place[2], 8)};

    const acs_op op = launch(context, uses, 2);
    acs_recording r = take(context);

    assert_int_equal(r.op_count, 1);
    const acs_recorded_op *o = &r.ops[0];
    assert_int_equal(o->seq, op);
    assert_string_equal(acs_label_name(o->label), "nothing");
    assert_int_equal(acs_label_site(o->label).line, 7);
    assert_int_equal(o->blocks, 6);
    assert_int_equal(o->threads, 32);
    assert_int_equal(o->thread, acs_thread_number());
    assert_int_equal(o->segment_count, 2);
    assert_memory_equal(&r.segments[o->first_segment], uses, sizeof uses);
    assert_true(o->entered > 0 && o->entered <= o->inserted && o->inserted <= o->issued && o->issued <= o->booked);
    assert_true(o->issued <= o->ran_from && o->ran_from <= o->ran_to && o->ran_to <= o->ended && o->ended <= r.span_ns);
    assert_int_equal(o->status, ACS_OK);
    finish(context, &r);
}

static void the_newest_ops_are_kept_in_program_order(void **state)
{
    (void)state;
    acs_context *context = start(FEW, 100, false);
    char bytes[8];
    for (int i = 0; i < 3 * FEW; i++) {
        const acs_segment uses[] = {ACS_INOUT(&bytes[i % 8], 1)};
        launch(context, uses, 1);
    }

    acs_recording r = take(context);

    assert_int_equal(r.op_count, FEW);
    assert_int_equal(r.ops_seen, 3 * FEW);
    for (uint32_t i = 0; i < r.op_count; i++) {
        assert_int_equal(r.ops[i].seq, 2 * FEW + i + 1);
        assert_int_equal(r.segments[r.ops[i].first_segment].base, (uintptr_t)&bytes[(r.ops[i].seq - 1) % 8]);
    }
    finish(context, &r);
}

static void ops_whose_segments_had_no_room_are_left_out(void **state)
{
    enum { MANY = 64 };
    (void)state;
    acs_context *context = start(FEW, 100, false);
    acs_segment uses[MANY];
    char bytes[MANY];
    for (int i = 0; i < MANY; i++)
        uses[i] = ACS_IN(&bytes[i], 1);
    for (int i = 0; i < FEW; i++)
        launch(context, uses, MANY);

    acs_recording r = take(context);

    assert_int_equal(r.op_count, FEW * TUNE_RECORD_SEGMENTS / MANY);
    for (uint32_t i = 0; i < r.op_count; i++) {
        const acs_recorded_op *op = &r.ops[i];
        assert_true(!op->any && op->segment_count == MANY);
        assert_int_equal(r.segments[op->first_segment + MANY - 1].base, (uintptr_t)&bytes[MANY - 1]);
    }
    finish(context, &r);
}

static void a_sample_is_made_of_runs_with_gaps_between(void **state)
{
    enum { RUN = TUNE_RECORD_RUN, RUNS = 20 };
    (void)state;
    acs_context *context = start(1 << 16, 25, false);
    char byte;
    const acs_segment uses[] = {ACS_IN(&byte, 1)};
    for (int i = 0; i < RUN * RUNS; i++)
        launch(context, uses, 1);

    acs_recording r = take(context);

    uint32_t gaps = 0;
    assert_int_equal(r.op_count, RUN * RUNS / 4);
    for (uint32_t i = 1; i < r.op_count; i++) {
        assert_int_equal(r.ops[i].gap, r.ops[i].seq != r.ops[i - 1].seq + 1);
        gaps += r.ops[i].gap;
    }
    assert_int_equal(gaps, RUNS / 4 - 1);
    finish(context, &r);
}

static void ops_that_recur_are_recorded_one_by_one(void **state)
{
    enum { PASSES = 64, OPS = 12 };
    (void)state;
    acs_context *context = start(1 << 16, 100, true);
    char bytes[OPS + 1];
    for (int i = 0; i < PASSES * OPS; i++) {
        const acs_segment uses[] = {ACS_IN(&bytes[i % OPS], 1), ACS_INOUT(&bytes[i % OPS + 1], 1)};
        if (i % OPS == 0)
            assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
        launch(context, uses, 2);
        if (i % OPS == OPS - 1)
            assert_int_equal(acs_repeat_end(context), ACS_OK);
    }

    acs_recording r = take(context);

    uint32_t ops = 0, replays = 0;
    acs_op before = 0;
    for (uint32_t i = 0; i < r.op_count; i++) {
        const acs_recorded_op *o = &r.ops[i];
        replays += o->kind == ACS_KIND_REPLAY;
        if (o->kind == ACS_KIND_REPLAY)
            continue;
        ops++;
        assert_true(o->seq > before);
        assert_true(o->segment_count == 2 && o->ended && o->entered && o->thread);
        assert_true(o->whole == ACS_PLACE_NONE || r.ops[o->whole].kind == ACS_KIND_REPLAY);
        assert_true(o->whole == ACS_PLACE_NONE || o->graph == r.ops[o->whole].graph);
        before = o->seq;
    }
    assert_int_equal(ops, PASSES * OPS);
    acs_statistics s = statistics_of(context);
    assert_true(replays > 0);
    assert_int_equal(replays, s.replays);
    finish(context, &r);
}

static void waits_and_blocks_are_recorded_with_the_newest_op(void **state)
{
    (void)state;
    acs_context *context = start(FEW, 100, false);
    char *block = (char *)block_of(context, ACS_MEMORY_DEVICE, 1000);
    const acs_segment uses[] = {ACS_OUT(block, 1000)};

    const acs_op op = launch(context, uses, 1);
    assert_int_equal(acs_wait(context, op), ACS_OK);
    assert_true(acs_free(context, block) > 0);
    acs_recording r = take(context);

    assert_int_equal(r.wait_count, 2);
    assert_int_equal(r.waits[0].type, ACS_RECORDED_WAIT_OP);
    assert_int_equal(r.waits[0].op, op);
    assert_int_equal(r.waits[0].newest, op);
    assert_true(r.waits[0].began && r.waits[0].began <= r.waits[0].ended);
    assert_int_equal(r.waits[1].type, ACS_RECORDED_WAIT_ALL);
    assert_int_equal(r.block_count, 2);
    assert_true(!r.blocks[0].freed && r.blocks[1].freed);
    assert_int_equal(r.blocks[0].base, (uintptr_t)block);
    assert_int_equal(r.blocks[0].newest, 0);
    assert_int_equal(r.blocks[1].newest, op);
    assert_true(r.blocks[0].live >= 1000 && r.blocks[1].live < r.blocks[0].live);
    finish(context, &r);
}

static void refused_file(const char *option, bool trace)
{
    acs_context *context = NULL;
    acs_error error = {.size = sizeof error};
    acs_options options = host_options();
    char *path = trace ? options.trace : options.report;
    (void)snprintf(path, sizeof options.trace, "/nonexistent/x.json");
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_null(context);
    (void)acs_last_error(&error);
    assert_non_null(strstr(error.text, option));
    assert_non_null(strstr(error.text, "/nonexistent/x.json"));
}

static void a_file_that_cannot_be_written_is_refused_at_open(void **state)
{
    (void)state;
    refused_file("ACS_TRACE", true);
    refused_file("ACS_REPORT", false);
}

static void a_page_in_the_file_of_the_trace_is_refused(void **state)
{
    (void)state;
    acs_context *context = NULL;
    acs_options options = host_options();
    (void)snprintf(options.trace, sizeof options.trace, "/dev/null");
    (void)snprintf(options.report, sizeof options.report, "/dev/null");
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    assert_null(context);
}

/* Reads a pipe to its end, which comes when nobody has it open for writing. */
static void *read_pipe(void *path)
{
    static char text[1 << 22];
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = 0;
    if (file)
        (void)fclose(file);
    return strdup(text);
}

static void a_pipe_gets_the_whole_file(const char *folder, bool trace, const char *end)
{
    pthread_t reader;
    void *text = NULL;
    char pipe[64];
    acs_context *context = start(FEW, 100, false);
    const uint32_t number = context->recorded_as + 1; /* of the next, whose file's name ends with it */
    assert_int_equal(acs_close(context), ACS_OK);
    acs_options options = host_options();
    char *path = trace ? options.trace : options.report;
    (void)snprintf(path, sizeof options.trace, "%s/pipe", folder);
    (void)snprintf(pipe, sizeof pipe, "%s/pipe.%" PRIu32, folder, number);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, pipe), 0);
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    const int64_t byte = 0;
    const acs_segment use = ACS_INOUT(&byte, 1);
    launch(context, &use, 1);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_int_equal(pthread_join(reader, &text), 0);
    assert_non_null(strstr(text, "nothing"));
    assert_true(strlen(text) > strlen(end));
    assert_string_equal((char *)text + strlen(text) - strlen(end), end);
    free(text);
    assert_int_equal(unlink(pipe), 0);
}

static void pipes_get_the_whole_trace_and_page(void **state)
{
    (void)state;
    char folder[] = "/tmp/acs-recording-XXXXXX";
    assert_non_null(mkdtemp(folder));
    a_pipe_gets_the_whole_file(folder, true, "}\n");
    a_pipe_gets_the_whole_file(folder, false, "</html>\n");
    assert_int_equal(rmdir(folder), 0);
}

/* Launches, and waits for ops and ranges, in any order. */
static void run_with_waits(acs_context *context, uint64_t seed, int ops)
{
    static char bytes[8];
    acs_random random = {seed};
    acs_op last = 1;
    for (int i = 0; i < ops; i++) {
        const acs_segment use = ACS_INOUT(&bytes[acs_random_below(&random, 8)], 1);
        launch(context, &use, 1);
        last++;
        if (acs_random_below(&random, 6) == 0)
            assert_int_equal(acs_wait_range(context, &bytes[acs_random_below(&random, 8)], 1, ACS_READ), ACS_OK);
        if (acs_random_below(&random, 20) == 0)
            assert_int_equal(acs_wait(context, 1 + acs_random_below(&random, (uint32_t)last - 1)), ACS_OK);
    }
}

/* Whatever the callers waited for, and if the first ops are no longer recorded. */
static void parts_of_the_path_are_the_whole_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        acs_context *context = start(FEW, 100, seed % 2 == 0);
        acs_analysis a;
        acs_path path;
        uint64_t all = 0;
        run_with_waits(context, seed, seed % 5 == 0 ? 2 * FEW : 200);
        acs_recording r = take(context);
        assert_int_equal(acs_analysis_make(&r, 256, false, &a), ACS_OK);
        assert_int_equal(acs_path_make(&a, &path), ACS_OK);
        for (uint32_t i = 0; i < path.count; i++)
            all += path.parts[i].to - path.parts[i].from;
        assert_int_equal(all, a.last_ns - a.first_ns);
        acs_path_free(&path);
        acs_analysis_free(&a);
        finish(context, &r);
    }
}

/* Find the longest way from op to op over direct dependences: `behind[a * n + b]`. */
static void close_over(const acs_analysis *a, bool *behind)
{
    const uint32_t n = a->op_count;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = a->ops[i].first_up; k < a->ops[i].first_up + a->ops[i].up_count; k++) {
            behind[i * n + a->ups[k]] = true;
            for (uint32_t x = 0; x < n; x++)
                behind[i * n + x] |= behind[a->ups[k] * n + x];
        }
}

static bool conflict(const acs_recording *r, const acs_recorded_op *a, const acs_recorded_op *b)
{
    return acs_segments_conflict(r->segments + a->first_segment, a->segment_count, r->segments + b->first_segment,
                                 b->segment_count);
}

/* Each conflict of two ops is a dependence, direct or over others, and there is no direct one without a conflict. */
static void dependences_are_the_conflicts_of_the_program(void **state)
{
    enum { OPS = 120, PLACES = 12 };
    (void)state;
    acs_context *context = start(FEW, 100, false);
    static char bytes[PLACES];
    acs_random random = {7};
    for (int i = 0; i < OPS; i++) {
        acs_segment uses[3];
        for (int k = 0; k < 3; k++) {
            char *at = &bytes[acs_random_below(&random, PLACES - 2)];
            const size_t length = 1 + acs_random_below(&random, 2);
            uses[k] = acs_random_below(&random, 3) ? ACS_IN(at, length) : ACS_OUT(at, length);
        }
        launch(context, uses, 1 + acs_random_below(&random, 3));
    }
    acs_recording r = take(context);
    acs_analysis a;
    static bool behind[OPS * OPS];

    assert_int_equal(acs_analysis_make(&r, 256, false, &a), ACS_OK);

    assert_int_equal(a.op_count, OPS);
    close_over(&a, behind);
    for (uint32_t i = 0; i < OPS; i++)
        for (uint32_t k = 0; k < i; k++)
            if (conflict(&r, &r.ops[k], &r.ops[i]))
                assert_true(behind[i * OPS + k]);
    for (uint32_t i = 0; i < OPS; i++)
        for (uint32_t k = a.ops[i].first_up; k < a.ops[i].first_up + a.ops[i].up_count; k++)
            assert_true(conflict(&r, &r.ops[a.ups[k]], &r.ops[i]));
    acs_analysis_free(&a);
    finish(context, &r);
}

/* A recording of a replay of three ops (5, 6, 7), a bundle of two (8, 9), and an op alone (10). */
typedef struct small_recording {
    acs_recording all;
    acs_recorded_op ops[7];
    acs_segment segments[6];
    acs_recorded_graph graphs[7];
} small_recording;

static void make_small(small_recording *small)
{
    static const acs_site site = {"op", "file.c", 1};
    static char bytes[6];
    *small = (small_recording){.all = {.op_count = 7, .graph_count = 1, .segment_count = 6, .began_ns = 1000}};
    small->all.ops = small->ops;
    small->all.segments = small->segments;
    small->all.graphs = small->graphs;
    for (uint32_t i = 0; i < 7; i++) {
        const bool whole = i == 0, part = i >= 1 && i <= 3, bundled = i == 4 || i == 5;
        small->ops[i] = (acs_recorded_op){.seq = whole ? 5 : 4 + i,
                                          .label = {&site, NULL},
                                          .inserted = 10,
                                          .issued = 20,
                                          .ended = 100000,
                                          .kind = whole ? ACS_KIND_REPLAY : ACS_KIND_KERNEL,
                                          .batch = whole || part ? 1 : bundled ? 2 : 3,
                                          .first_segment = whole ? 0 : i - 1,
                                          .segment_count = !whole,
                                          .whole = part ? 0 : ACS_PLACE_NONE,
                                          .graph = whole || part ? 0 : ACS_PLACE_NONE,
                                          .bundled = bundled,
                                          .slot = part || whole ? 0 : (int16_t)i};
        if (i)
            small->segments[i - 1] = ACS_INOUT(&bytes[part ? 0 : i], 1); /* the replay's ops are a chain */
    }
}

static void times_of_the_device_are_those_of_their_ops(void **state)
{
    (void)state;
    small_recording small;
    acs_device_time list[] = {
        {.op = 4, .began_ns = 1500, .ended_ns = 1600},                /* not recorded */
        {.op = 5, .began_ns = 2000, .ended_ns = 5000},                /* the replay */
        {.op = 6, .began_ns = 2700, .ended_ns = 2800, .node = true},  /* an op of it */
        {.op = 8, .began_ns = 7000, .ended_ns = 9000},                /* the bundle */
        {.op = 10, .began_ns = 9500, .ended_ns = 9600},               /* two kernels of one op */
        {.op = 10, .began_ns = 9700, .ended_ns = 9900},
        {.op = 11, .began_ns = 9900, .ended_ns = 9950},               /* not recorded */
    };
    make_small(&small);
    assert_int_equal(acs_recording_add_times(&small.all, &(acs_device_times){list, 7, "kernels"}), ACS_OK);

    const acs_recorded_op *ops = small.ops;
    assert_int_equal(small.all.graph_count, 2);
    assert_true(small.graphs[0].began == 1000 && small.graphs[0].ended == 4000);
    assert_true(ops[2].ran_from == 1700 && ops[2].ran_to == 1800);
    assert_true(!ops[0].ran_to && !ops[1].ran_to && !ops[3].ran_to && !ops[4].ran_to && !ops[5].ran_to);
    assert_true(ops[4].graph == 1 && ops[5].graph == 1);
    assert_true(small.graphs[1].began == 6000 && small.graphs[1].ended == 8000);
    assert_true(ops[6].graph == ACS_PLACE_NONE && ops[6].ran_from == 8500 && ops[6].ran_to == 8900);
}

static void ops_of_a_graph_share_its_time_by_levels(void **state)
{
    (void)state;
    small_recording small;
    acs_analysis a;
    acs_device_time list[] = {{.op = 5, .began_ns = 2000, .ended_ns = 5000}, {.op = 8, .began_ns = 7000, .ended_ns = 9000}};
    make_small(&small);
    assert_int_equal(acs_recording_add_times(&small.all, &(acs_device_times){list, 2, "graphs"}), ACS_OK);
    assert_int_equal(acs_analysis_make(&small.all, 256, false, &a), ACS_OK);
    assert_int_equal(a.op_count, 6);
    for (uint32_t i = 0; i < 3; i++) { /* a chain, one behind the other */
        assert_int_equal(a.ops[i].began, 1000 + 1000 * i);
        assert_int_equal(a.ops[i].ended, 2000 + 1000 * i);
    }
    for (uint32_t i = 3; i < 5; i++) { /* side by side */
        assert_int_equal(a.ops[i].began, 6000);
        assert_int_equal(a.ops[i].ended, 8000);
    }
    acs_analysis_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_is_recorded_with_its_call_its_bytes_and_its_times),
        cmocka_unit_test(the_newest_ops_are_kept_in_program_order),
        cmocka_unit_test(ops_whose_segments_had_no_room_are_left_out),
        cmocka_unit_test(a_sample_is_made_of_runs_with_gaps_between),
        cmocka_unit_test(ops_that_recur_are_recorded_one_by_one),
        cmocka_unit_test(waits_and_blocks_are_recorded_with_the_newest_op),
        cmocka_unit_test(a_file_that_cannot_be_written_is_refused_at_open),
        cmocka_unit_test(a_page_in_the_file_of_the_trace_is_refused),
        cmocka_unit_test(pipes_get_the_whole_trace_and_page),
        cmocka_unit_test(parts_of_the_path_are_the_whole_time),
        cmocka_unit_test(dependences_are_the_conflicts_of_the_program),
        cmocka_unit_test(times_of_the_device_are_those_of_their_ops),
        cmocka_unit_test(ops_of_a_graph_share_its_time_by_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
