/*
 * Passes through a repeat (acs_repeat_begin): which kernels are replayed, and that results, errors and waits are as
 * without the calls. On the sim backend. One test looks at open replays.
 */
#include "api_fixture.h"

#include "api/context.h"
#include "base/base.h"
#include "repeats/repeat_internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CELLS = 24, OPS = 40, KEY = 7 };

static uint64_t g_cells[CELLS], g_truth[CELLS];

/* Mixes two cells and a number into a third. The grid's width counts, too. */
static void mix(uint64_t *to, const uint64_t *a, const uint64_t *b, uint64_t number, uint32_t width)
{
    *to = acs_hash64(*to ^ *a * 3 ^ *b * 5 ^ number * 7 ^ width);
}

static void mix_body(const acs_grid *grid, void *const *args)
{
    mix(*(uint64_t **)args[0], *(uint64_t **)args[1], *(uint64_t **)args[2], *(uint64_t *)args[3], grid->grid.x);
}

static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);

/* One kernel of a pass: reads cells a and b, updates cell `to`. */
typedef struct kernel {
    uint32_t to, a, b, width;
    uint64_t number;
    uint32_t extra; /* bytes beyond its cell that it says it reads, to be another op by its footprint alone */
} kernel;

static kernel kernel_of(uint32_t i)
{
    return (kernel){.to = i % CELLS, .a = (i * 7 + 3) % CELLS, .b = (i * 5 + 1) % CELLS, .width = 1 + i % 3, .number = i};
}

static acs_op launch(acs_context *context, const kernel *k)
{
    uint64_t *to = &g_cells[k->to], *a = &g_cells[k->a], *b = &g_cells[k->b];
    mix(&g_truth[k->to], &g_truth[k->a], &g_truth[k->b], k->number, k->width);
    return ACS_LAUNCH_ON(context, &g_mix, k->width, 1, 0, ACS_ARGS(to, a, b, k->number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_IN(a, sizeof *a), ACS_IN(b, sizeof *b - k->extra)));
}

static acs_context *open_with(int64_t workers, int64_t fifo)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.workers = workers;
    options.fifo = fifo;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    memset(g_cells, 0, sizeof g_cells);
    memset(g_truth, 0, sizeof g_truth);
    return context;
}

static acs_context *open_sim(int64_t workers)
{
    return open_with(workers, 1024);
}

static int open_one(void **state)
{
    *state = open_sim(1);
    return 0;
}

static uint64_t replayed(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s.replayed;
}

static void assert_right(acs_context *context)
{
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_memory_equal(g_cells, g_truth, sizeof g_cells);
}

/* A pass of kernels 0 to OPS - 1, of which `changed` is another one. @return kernels that it replayed. */
static uint64_t pass(acs_context *context, uint32_t changed, const kernel *instead)
{
    const uint64_t before = replayed(context);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    acs_op last = 0;
    for (uint32_t i = 0; i < OPS; i++) {
        const kernel k = i == changed ? *instead : kernel_of(i);
        if (i == changed && k.width == 0)
            continue;
        const acs_op op = launch(context, &k);
        assert_true(op > last);
        last = op;
    }
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    assert_right(context);
    return replayed(context) - before;
}

static void learn(acs_context *context)
{
    assert_int_equal(pass(context, OPS, NULL), 0);
    assert_int_equal(pass(context, OPS, NULL), 0);
    assert_int_equal(pass(context, OPS, NULL), OPS);
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static void the_third_pass_is_replayed(void **state)
{
    acs_context *context = *state;
    acs_statistics s = {.size = sizeof s};
    learn(context);
    for (int i = 0; i < 20; i++)
        assert_int_equal(pass(context, OPS, NULL), OPS);
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    assert_int_equal(s.queued, 23 * OPS);
    assert_int_equal(s.retired, 23 * OPS);
    assert_int_equal(s.kernels, 23 * OPS);
    assert_int_equal(s.unmatched, 2 * OPS);
    assert_true(s.issued_by[ACS_ISSUE_REPLAY] >= 21 * OPS);
}

static void arguments_and_the_width_of_grids_may_change(void **state)
{
    acs_context *context = *state;
    learn(context);
    for (uint32_t i = 0; i < OPS; i++) {
        kernel k = kernel_of(i);
        k.number = 1000 + i;
        k.width = 5;
        assert_int_equal(pass(context, i, &k), OPS);
    }
}

static void a_kernel_that_differs_goes_by_itself(void **state)
{
    acs_context *context = *state;
    learn(context);
    kernel bytes = kernel_of(10), cell = kernel_of(10);
    bytes.extra = 1;
    cell.to = (cell.to + 1) % CELLS;
    assert_int_equal(pass(context, 10, &bytes), OPS - 1);
    assert_int_equal(pass(context, 10, &cell), OPS - 1);
    assert_int_equal(pass(context, OPS, NULL), OPS);
}

static void kernels_may_be_left_out(void **state)
{
    acs_context *context = *state;
    const kernel none = {.width = 0};
    learn(context);
    for (uint32_t i = 0; i < OPS; i++)
        assert_true(pass(context, i, &none) >= OPS / 4);
    for (uint32_t i = 0; i < OPS; i++) {
        uint64_t last = 0;
        for (int times = 0; times < 4; times++)
            last = pass(context, i, &none);
        assert_int_equal(last, OPS - 1);
    }
}

static void what_recurs_beside_the_list_is_learnt(void **state)
{
    acs_context *context = *state;
    kernel other = kernel_of(10);
    other.extra = 1;
    learn(context);
    uint64_t last = 0;
    for (int i = 0; i < 400 && last < OPS; i++)
        last = pass(context, 10, &other);
    assert_int_equal(last, OPS);
    assert_int_equal(pass(context, 10, &other), OPS);
}

/* The same kernel without a footprint, or as one that may touch any memory: all else is equal. */
static uint64_t pass_of_one(acs_context *context, uint32_t any)
{
    static uint64_t cell;
    uint64_t *to = &cell, number = 1;
    const acs_arg cell_arg = {.value = &to, .size = sizeof to}, number_arg = {.value = &number, .size = sizeof number};
    const acs_arg args[] = {cell_arg, cell_arg, cell_arg, number_arg};
    const acs_launch_params launched = {.size = sizeof launched, .kernel = &g_mix, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                        .args = {args, 4}, .uses = {.any = any}};
    const uint64_t before = replayed(context);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    for (int i = 0; i < TUNE_BUNDLE_LEAST; i++)
        assert_true(acs_launch(context, &launched) > 0);
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    return replayed(context) - before;
}

static void what_may_touch_any_memory_never_recurs(void **state)
{
    acs_context *context = *state;
    uint64_t last = 0;
    for (int i = 0; i < 4; i++)
        last = pass_of_one(context, 0);
    assert_int_equal(last, TUNE_BUNDLE_LEAST);
    assert_int_equal(pass_of_one(context, 1), 0);
    assert_int_equal(pass_of_one(context, 0), TUNE_BUNDLE_LEAST);
}

/* Two strands whose cells lie between each other: too many segments for the window, which sees all memory. */
static acs_op launch_among(acs_context *context, uint32_t cell)
{
    static uint64_t cells[1024];
    uint64_t *to = &cells[cell], number = 1;
    return ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, to, to, number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_INOUT(&cells[cell % 2], sizeof *to)));
}

static void a_wait_ends_beside_a_strand_of_many_segments(void **state)
{
    acs_context *context = *state;
    const uint64_t before = replayed(context);
    for (int p = 0; p < 4; p++) {
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t i = 2; i < 600; i++) {
            const acs_op op = launch_among(context, i);
            assert_true(op > 0);
            if (i % 50 == 1)
                assert_int_equal(acs_wait(context, op), ACS_OK);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_true(replayed(context) - before >= 598);
}

/* Two fields are written in turn: passes of either kind recur. */
static void passes_of_two_kinds_in_turn_are_learnt(void **state)
{
    acs_context *context = *state;
    uint64_t last = 0;
    for (uint32_t p = 0; p < 12; p++) {
        const uint64_t before = replayed(context);
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t i = 0; i < OPS; i++) {
            kernel k = kernel_of(i);
            k.extra = p % 2;
            assert_true(launch(context, &k) > 0);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_right(context);
        last = replayed(context) - before;
    }
    assert_int_equal(last, OPS);
}

static void waits_inside_a_pass_end(void **state)
{
    acs_context *context = *state;
    learn(context);
    for (int p = 0; p < 4; p++) {
        acs_op ops[OPS];
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t i = 0; i < OPS; i++) {
            const kernel k = kernel_of(i);
            ops[i] = launch(context, &k);
            assert_true(ops[i] > 0);
            if (i % 13 == 5)
                assert_int_equal(acs_wait(context, ops[i - p]), ACS_OK);
            if (i % 13 == 9)
                assert_int_equal(acs_wait_range(context, &g_cells[k.to], sizeof g_cells[0], ACS_READ), ACS_OK);
            if (i % 13 == 9)
                assert_int_equal(g_cells[k.to], g_truth[k.to]);
            acs_status status = ACS_NOT_READY;
            for (int tries = 0; i % 13 == 11 && status == ACS_NOT_READY && tries < 100000; tries++)
                status = acs_query(context, ops[i]);
            assert_true(i % 13 != 11 || status == ACS_OK);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_right(context);
    }
}

/* Kernel i of a chain: only cell `chain` is touched, so chains are independent. */
static acs_op launch_link(acs_context *context, uint32_t chain, uint32_t i)
{
    const kernel k = {.to = chain, .a = chain, .b = chain, .width = 1 + i % 2, .number = i};
    return launch(context, &k);
}

/* Independent chains whose kernels come in another order in each pass. */
static void chains_recur_in_any_order(void **state)
{
    acs_context *context = *state;
    uint64_t last = 0;
    for (uint32_t p = 0; p < 6; p++) {
        const uint64_t before = replayed(context);
        uint32_t next[3] = {0, 0, 0};
        uint64_t draw = p + 1;
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t left = 3 * OPS; left > 0;) {
            const uint32_t chain = (uint32_t)((draw = acs_hash64(draw)) % 3);
            if (next[chain] == OPS)
                continue;
            assert_true(launch_link(context, chain, next[chain]++) > 0);
            left--;
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_right(context);
        last = replayed(context) - before;
    }
    assert_int_equal(last, 3 * OPS);
}

/* A fragment between two waits that two passes had is known wherever in a pass it comes, and however often. */
static void fragments_recur_within_a_pass(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 4; p++) {
        const uint64_t before = replayed(context);
        acs_op op = 0;
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t times = 0; times < 2 + p; times++) {
            for (uint32_t i = 0; i < 10; i++)
                op = launch_link(context, i % 2, 7);
            assert_int_equal(acs_wait(context, op), ACS_OK);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_right(context);
        assert_int_equal(replayed(context) - before, p < 2 ? 0 : 10 * (2 + p));
    }
}

/*
 * A wait ends the fragment of its op's strand, also where the op is of an earlier fragment, and the piece has more
 * kernels: every other fragment lacks the last one.
 */
static void a_wait_for_an_earlier_fragment_seals_the_open_one(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 8; p++) {
        uint64_t launched = replayed(context);
        acs_op before = 0, op = 0;
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t times = 0; times < 4; times++, before = op) {
            const uint32_t links = OPS - (p + times) % 2;
            for (uint32_t i = 0; i < links; i++)
                op = launch_link(context, 0, i);
            launched += links;
            if (before) {
                assert_int_equal(acs_wait(context, before), ACS_OK);
                assert_null(context->repeats->open_strands);
            }
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
        assert_right(context);
        assert_true(p <= 5 || replayed(context) == launched);
    }
}

typedef struct turns {
    acs_context *context;
    _Atomic uint32_t turn; /* even: the thread's in a pass, odd: the other's. A: release by the thread that hands it over */
    bool passes;           /* the other thread is in a pass of its own */
} turns;

static void await_turn(turns *t, uint32_t turn)
{
    while (atomic_load_explicit(&t->turn, memory_order_acquire) != turn) /* A */
        sched_yield();
}

static void *take_turns(void *argument)
{
    turns *t = argument;
    for (uint32_t p = 0; p < 6; p++) {
        for (uint32_t i = 0; i < OPS; i++) {
            await_turn(t, 2 * (p * OPS + i) + 1);
            if (i == 0 && t->passes)
                assert_int_equal(acs_repeat_begin(t->context, KEY + 1), ACS_OK);
            const kernel k = kernel_of(i + 5);
            assert_true(launch(t->context, &k) > 0);
            if (i + 1 == OPS && t->passes)
                assert_int_equal(acs_repeat_end(t->context), ACS_OK);
            atomic_store_explicit(&t->turn, 2 * (p * OPS + i) + 2, memory_order_release); /* A */
        }
    }
    return NULL;
}

/* Ops that another thread launches between those of a pass keep their place, though they touch the same memory. */
static void threads_take_turns(acs_context *context, bool passes)
{
    turns t = {.context = context, .passes = passes};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_turns, &t), 0);
    for (uint32_t p = 0; p < 6; p++) {
        for (uint32_t i = 0; i < OPS; i++) {
            await_turn(&t, 2 * (p * OPS + i));
            if (i == 0)
                assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
            const kernel k = kernel_of(i);
            assert_true(launch(context, &k) > 0);
            if (i + 1 == OPS)
                assert_int_equal(acs_repeat_end(context), ACS_OK);
            atomic_store_explicit(&t.turn, 2 * (p * OPS + i) + 1, memory_order_release); /* A */
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_right(context);
}

static void another_threads_ops_keep_their_place(void **state)
{
    threads_take_turns(*state, false);
}

static void passes_of_two_threads_keep_their_order(void **state)
{
    threads_take_turns(*state, true);
}

enum { MANY = 24000, NEW = 4000 };

/* A number of kernels that recur, of new ones, and of the first ones once more. All are one strand. */
typedef struct mixed_pass {
    uint32_t from, to, fresh, again;
} mixed_pass;

/* What a strand has of fragments must not outlive them: more new kernels come than a repeat keeps. */
static void what_never_recurs_is_forgotten(void **state)
{
    static const mixed_pass passes[] = {{0, 8, 0, 8},   {0, 8, 0, 0},   {0, 8, 0, 0},   {0, 0, NEW, 8},
                                        {0, 6, NEW, 0}, {0, 4, NEW, 0}, {1, 2, NEW, 8}, {0, 2, 0, 0}};
    static uint64_t cells[MANY], truth[MANY];
    uint32_t next = 8;
    (void)state;
    acs_context *context = open_with(1, 16);
    for (size_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
        const mixed_pass *one = &passes[p];
        assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
        for (uint32_t i = 0; i < one->to - one->from + one->fresh + one->again; i++) {
            const uint32_t recurs = one->to - one->from;
            const uint32_t at = i < recurs                ? one->from + i
                                : i < recurs + one->fresh ? next++
                                                          : i - recurs - one->fresh;
            uint64_t *to = &cells[at], *first = cells, number = p;
            mix(&truth[at], &truth[0], &truth[0], number, 1);
            assert_true(ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, first, first, number),
                                      ACS_USES(ACS_INOUT(to, sizeof *to), ACS_INOUT(first, sizeof *first))) > 0);
        }
        assert_int_equal(acs_repeat_end(context), ACS_OK);
    }
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_memory_equal(cells, truth, sizeof cells);
    assert_int_equal(acs_close(context), ACS_OK);
}

static int fails(void *closure)
{
    (void)closure;
    return 3;
}

/* The failed function writes a cell, so of a replay those kernels are skipped that depend on it, and no others. */
static void kernels_behind_a_failure_are_skipped_one_by_one(void **state)
{
    acs_context *context = *state;
    learn(context);
    acs_op ops[OPS];
    bool bad[CELLS] = {false}, read_by_bad[CELLS] = {false};
    const acs_op failed = acs_host(context, fails, NULL, 0, ACS_USES(ACS_OUT(&g_cells[4], sizeof g_cells[0])));
    assert_true(failed > 0);
    bad[4] = true;
    uint64_t truth[CELLS];
    uint32_t skipped = 0;
    memcpy(truth, g_truth, sizeof truth);
    const uint64_t before = replayed(context);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    for (uint32_t i = 0; i < OPS; i++) {
        const kernel k = kernel_of(i);
        ops[i] = launch(context, &k);
        assert_true(ops[i] > 0);
    }
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_ERR_HOST);
    for (uint32_t i = 0; i < OPS; i++) {
        const kernel k = kernel_of(i);
        acs_error error = {.size = sizeof error};
        const bool skips = bad[k.to] || bad[k.a] || bad[k.b] || read_by_bad[k.to];
        assert_int_equal(acs_op_error(context, ops[i], &error), skips ? ACS_ERR_SKIPPED : ACS_OK);
        assert_true(!skips || error.cause == failed);
        bad[k.to] |= skips;
        read_by_bad[k.a] |= skips;
        read_by_bad[k.b] |= skips;
        skipped += skips;
        if (!skips)
            mix(&truth[k.to], &truth[k.a], &truth[k.b], k.number, k.width);
    }
    assert_in_range(skipped, 2, OPS - 2);
    assert_int_equal(replayed(context) - before, OPS - skipped);
    assert_memory_equal(g_cells, truth, sizeof truth);
    assert_int_equal(acs_clear(context), ACS_OK);
    memcpy(g_truth, truth, sizeof truth);
    assert_int_equal(pass(context, OPS, NULL), OPS);
}

static void a_pass_is_one_threads(void **state);

static void *other_thread(void *argument)
{
    acs_context *context = argument;
    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_repeat_end(context), ACS_ERR_STATE);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_ERR_STATE);
    assert_int_equal(acs_last_error(&error), ACS_ERR_STATE);
    assert_non_null(strstr(error.text, "another thread"));
    assert_int_equal(acs_repeat_begin(context, KEY + 1), ACS_OK);
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    return NULL;
}

static void a_pass_is_one_threads(void **state)
{
    acs_context *context = *state;
    acs_error error = {.size = sizeof error};
    pthread_t thread;
    assert_int_equal(acs_repeat_end(context), ACS_ERR_STATE);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    assert_int_equal(acs_repeat_begin(context, KEY + 1), ACS_ERR_STATE);
    assert_int_equal(acs_last_error(&error), ACS_ERR_STATE);
    assert_non_null(strstr(error.text, "in a pass of repeat 7"));
    assert_int_equal(pthread_create(&thread, NULL, other_thread, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    assert_int_equal(acs_repeat_end(context), ACS_OK);
}

/* Kernels that are held back are run when the context closes, and the thread may begin a pass of another one. */
static void a_pass_may_be_open_at_close(void **state)
{
    (void)state;
    acs_context *context = open_sim(1);
    learn(context);
    assert_int_equal(acs_repeat_begin(context, KEY), ACS_OK);
    for (uint32_t i = 0; i < OPS / 2; i++) {
        const kernel k = kernel_of(i);
        assert_true(launch(context, &k) > 0);
    }
    assert_int_equal(acs_close(context), ACS_OK);
    assert_memory_equal(g_cells, g_truth, sizeof g_cells);
    context = open_sim(0);
    learn(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

static void the_host_backend_has_no_replays(void **state)
{
    (void)state;
    acs_context *context = open_on(ACS_BACKEND_HOST, 1);
    memset(g_cells, 0, sizeof g_cells);
    memset(g_truth, 0, sizeof g_truth);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pass(context, OPS, NULL), 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_third_pass_is_replayed, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(arguments_and_the_width_of_grids_may_change, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_kernel_that_differs_goes_by_itself, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(kernels_may_be_left_out, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(what_recurs_beside_the_list_is_learnt, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(what_may_touch_any_memory_never_recurs, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_wait_ends_beside_a_strand_of_many_segments, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(passes_of_two_kinds_in_turn_are_learnt, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(waits_inside_a_pass_end, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_wait_for_an_earlier_fragment_seals_the_open_one, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(chains_recur_in_any_order, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(fragments_recur_within_a_pass, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(another_threads_ops_keep_their_place, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(passes_of_two_threads_keep_their_order, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(kernels_behind_a_failure_are_skipped_one_by_one, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_pass_is_one_threads, open_one, close_quietly),
        cmocka_unit_test(what_never_recurs_is_forgotten),
        cmocka_unit_test(a_pass_may_be_open_at_close),
        cmocka_unit_test(the_host_backend_has_no_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
