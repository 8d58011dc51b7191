/*
 * Repeats that the context finds by itself (ACS_REPEATS=auto): where passes begin and end, what stops them, and that
 * results are as without them. On the sim backend.
 */
#include "columns_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What is queued from one wait for everything to the next is a pass. */
static void passes_end_at_waits_for_everything(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 6; p++) {
        const acs_statistics before = stats(context);
        launch_all(context, p);
        assert_right(context);
        assert_int_equal(stats(context).replayed - before.replayed, p < 2 ? 0 : OPS);
    }
}

/* Where replays have to be made ready first: until then kernels go the usual way, with arguments that change. */
static void what_recurs_is_tried_until_it_is_ready(void **state)
{
    enum { READY_LATER = 3, TRIALS = 3 }; /* a seed with which the simulator does so, after so many at most */
    acs_options options;
    uint64_t trials = 0, replayed = 0;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.seed = READY_LATER;
    assert_int_equal(acs_open(&options, (acs_context **)state), ACS_OK);
    memset(g_cells, 0, sizeof g_cells);
    memset(g_truth, 0, sizeof g_truth);
    for (uint32_t p = 0; replayed < OPS; p++) {
        const acs_statistics before = stats(*state);
        launch_all(*state, p);
        assert_int_equal(acs_wait(*state, launch(*state, 0, COLUMNS, p)), ACS_OK);
        launch_most(*state, 2 * p); /* a second fragment of each strand */
        assert_right(*state);
        replayed = stats(*state).replayed - before.replayed;
        trials += p > 1 && replayed == 0;
        assert_true(p > 1 || replayed == 0);
        assert_true(p < 2 + TRIALS || replayed >= OPS);
    }
    assert_true(trials > 0);
    const acs_statistics s = stats(*state);
    assert_int_equal(s.unmatched + s.replayed, s.queued);
    assert_int_equal(s.retired, s.queued);
}

/* A step of more kernels than passes have that end by their length, and more than any table begins with. */
static void a_long_step_recurs_whole(void **state)
{
    enum { STEP = TUNE_REPEAT_PASS_MOST + 4000, CELLS = TALL * MANY, PASSES = 5 };
    acs_context *context = *state;
    acs_statistics before = {0};
    for (int p = 0; p < PASSES; p++) {
        before = stats(context);
        for (uint32_t i = 0; i < STEP; i++) /* all different */
            assert_true(launch(context, i % CELLS, (i % CELLS * 7 + i / CELLS + 1) % CELLS, i) > 0);
        assert_right(context);
    }
    assert_int_equal(stats(context).replayed - before.replayed, STEP);
    assert_true(stats(context).replays - before.replays <= STEP / 100);
}

static int fails(void *closure)
{
    (void)closure;
    return 1;
}

static acs_op launch_on(acs_context *context, uint64_t *to, const uint64_t *from)
{
    const uint64_t number = 0;
    return ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, from, number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_INOUT(from, sizeof *from)));
}

/* A kernel of a replay is skipped for what its memory was before, although that is handed out again behind it. */
static void a_block_handed_out_again_hides_no_failure(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0); /* a freed block is handed out at once */
    for (int p = 0; p < 4; p++) {
        void *block = NULL, *again = NULL;
        uint64_t *cell = g_cells;
        if (p == 3) /* what comes behind it is skipped */
            assert_true(acs_host_op(context, fails, NULL, 0, ACS_USES(ACS_INOUT(cell, sizeof *cell)), NULL) > 0);
        assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_DEVICE, &block), ACS_OK);
        assert_true(launch_on(context, p == 3 ? cell + 1 : cell, p == 3 ? cell : block) > 0);
        assert_true(launch_on(context, block, p == 3 ? cell + 1 : cell) > 0);
        const acs_op op = launch_on(context, cell + 5, block);
        for (int i = 0; i < TUNE_BUNDLE_LEAST && p < 3; i++) /* fewer would not recur */
            assert_true(launch_on(context, cell + 5, cell + 5) > 0);
        assert_true(acs_free(context, block) > 0);
        assert_int_equal(acs_malloc(context, 64, ACS_MEMORY_DEVICE, &again), ACS_OK);
        assert_ptr_equal(again, block);
        assert_true(launch_on(context, again, again) > 0);
        assert_int_equal(acs_sync(context), p == 3 ? ACS_ERR_HOST : ACS_OK);
        assert_int_equal(acs_op_error(context, op, NULL), p == 3 ? ACS_ERR_SKIPPED : ACS_OK);
        assert_true(acs_free(context, again) > 0);
    }
    assert_true(stats(context).replays > 0);
    (void)acs_close(context);
}

/* A program that waits after every few kernels: each of them is launched, since a graph costs more than they do. */
static void kernels_between_waits_that_are_few_are_launched(void **state)
{
    (void)state;
    acs_context *context = open_with(0, 0);
    for (int pass = 0; pass < 100; pass++) {
        for (int i = 0; i + 1 < TUNE_BUNDLE_LEAST; i++)
            assert_true(launch_on(context, g_cells, g_cells + 1) > 0);
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_int_equal(stats(context).replays, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* A long program that never waits has passes, too. */
static void a_loop_without_waits_is_found(void **state)
{
    acs_context *context = *state;
    enum { PASSES = 8, TIMES = PASSES * (TUNE_REPEAT_PASS_MOST / OPS + 1) };
    for (uint32_t p = 0; p < TIMES; p++)
        launch_all(context, p);
    assert_right(context);
    assert_true(stats(context).replayed >= (PASSES - 2) * TUNE_REPEAT_PASS_MOST);
    assert_true(context->repeats->table->place_count <= TUNE_REPEAT_PASS_MOST);
}

/*
 * Passes become as long as what comes again, as often as a fragment may have of it. Then the same pieces serve all of
 * them. What comes again with other arguments ends it, and so does another program.
 */
static void passes_are_as_long_as_what_comes_again(void **state)
{
    enum { TIMES = 2 * TUNE_REPEAT_PASS_MOST / OPS, PASS = TUNE_REPEAT_SPAN / OPS * OPS };
    acs_context *context = *state;
    const acs_repeats *all = context->repeats;
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t p = 0; p < TIMES; p++)
            launch_all(context, 0);
        assert_int_equal(all->table->period, OPS);
        assert_int_equal(all->table->pass_most, PASS);
        assert_int_equal(all->table->place_count, PASS);
        assert_right(context);
        const acs_statistics before = stats(context);
        for (uint32_t p = 0; p < 10; p++)
            launch_all(context, 0);
        assert_right(context);
        assert_int_equal(stats(context).replayed - before.replayed, 10 * OPS);
        uint64_t draw = 1;
        for (uint32_t i = 0; i < 2 * PASS; i++) {
            draw = acs_hash64(draw + 1);
            if (turn == 0)
                assert_true(launch(context, i % OPS, i % OPS, draw) > 0);
            else
                assert_true(launch(context, (uint32_t)(draw % OPS), (uint32_t)(draw >> 32) % OPS, draw) > 0);
        }
        assert_int_equal(all->table->period, 0);
        assert_right(context);
    }
}

/* A kernel for each cell of the large array: more than a fragment takes from the program's order. */
static void launch_large(acs_context *context)
{
    for (uint32_t i = MANY; i < 60 * MANY; i++)
        assert_true(launch(context, i, i - MANY, 0) > 0);
}

/* The same piece is the newest one, so none was made. */
static uint64_t newest(const acs_context *context)
{
    return context->repeats->table->pieces->shape->id;
}

/* What comes between waits is the period once they are left out: pieces stay, and kernels go on to be replayed. */
static void a_program_that_stops_waiting_keeps_its_pieces(void **state)
{
    acs_context *context = *state;
    for (int p = 0; p < 8; p++) {
        launch_large(context);
        assert_right(context);
    }
    const uint64_t piece = newest(context);
    const acs_statistics before = stats(context);
    for (int p = 0; p < 30; p++)
        launch_large(context);
    assert_int_equal(newest(context), piece);
    assert_right(context);
    assert_int_equal(stats(context).replayed - before.replayed, 30 * 59 * MANY);
}

/* Short steps are joined once waits are left out: passes of several of them need fewer replays. */
static void short_steps_are_joined_once_waits_stop(void **state)
{
    enum { PASS = TUNE_REPEAT_SPAN / OPS * OPS };
    acs_context *context = *state;
    for (int p = 0; p < 8; p++) {
        launch_all(context, 0);
        assert_right(context);
    }
    assert_int_equal(context->repeats->table->period, OPS);
    for (int turn = 0; turn < 2; turn++) { /* pieces that were replaced go once their replays have ended */
        for (int p = 0; p < 10; p++)
            launch_all(context, 0);
        assert_right(context);
    }
    assert_int_equal(context->repeats->table->place_count, PASS);
}

/* Where a step has several waits, each part of it that begins with a call of its own has a period of its own. */
static void parts_between_waits_have_their_own_periods(void **state)
{
    acs_context *context = *state;
    for (int p = 0; p < 6; p++) {
        launch_all(context, 0);
        assert_right(context);
        assert_true(launch_on(context, &g_cells[0], &g_cells[1]) > 0);
        mix(&g_truth[0], &g_truth[1], 0);
        launch_large(context);
        assert_right(context);
    }
    uint32_t periods[2] = {0}, count = 0;
    for (const acs_repeat *repeat = context->repeats->table; repeat; repeat = repeat->hh.next)
        periods[count++ % 2] = repeat->period;
    assert_int_equal(count, 2);
    assert_int_equal(periods[0], OPS);
    assert_int_equal(periods[1], 59 * MANY + 1);
}

/* The same kernels with other arguments each time have no period, since each pass would set all arguments anew. */
static void other_arguments_each_time_have_no_period(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 3 * TUNE_REPEAT_PASS_MOST / OPS; p++)
        launch_all(context, p);
    assert_int_equal(context->repeats->table->period, 0);
    assert_int_equal(context->repeats->pass_most, TUNE_REPEAT_PASS_MOST);
    assert_right(context);
}

/* What hardly recurs is looked at less and less often. */
static void what_hardly_recurs_rests(void **state)
{
    acs_context *context = *state;
    uint64_t draw = 1;
    for (uint32_t p = 0; p < 12 * TUNE_REPEAT_TRIES; p++) {
        const acs_statistics before = stats(context);
        for (uint32_t i = 0; i < OPS; i++) {
            draw = acs_hash64(draw + 1);
            assert_true(launch(context, (uint32_t)(draw % OPS), (uint32_t)(draw >> 32) % OPS, draw) > 0);
        }
        assert_right(context);
        assert_true(p < 20 || stats(context).replayed - before.replayed < OPS / 10);
    }
    assert_true(context->repeats->table->rests >= 7);
    assert_int_equal(context->repeats->table->place_count, 0); /* by chance some kernels came before: too few */
}

/* The first passes are short, so that a program which waits for everything only at its end recurs soon. */
static void what_never_waits_recurs_soon(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 8; p++)
        launch_all(context, p);
    assert_right(context);
    assert_true(stats(context).replayed >= 2 * OPS);
}

/* The first call of acs_repeat_begin ends it: the program names what recurs. */
static void a_named_pass_stops_it(void **state)
{
    acs_context *context = *state;
    launch_all(context, 1);
    assert_int_equal(acs_repeat_begin(context, 1), ACS_OK);
    assert_int_equal(acs_repeat_end(context), ACS_OK);
    for (uint32_t p = 0; p < 4; p++) {
        launch_all(context, p);
        assert_right(context);
    }
    assert_int_equal(stats(context).replayed, 0);
    assert_int_equal(acs_context_modes(context) & ACS_MODE_REPEATS, 0);
}

/* A worker without work seals what is held back, though the program neither waits nor goes on. */
static void an_idle_worker_seals(void **state)
{
    (void)state;
    acs_context *context = open_automatic(0); /* the test is its worker */
    for (uint32_t p = 0; p < 3; p++) {
        launch_all(context, 0);
        assert_right(context);
    }
    launch_most(context, 0);
    assert_non_null(context->repeats->open_strands);
    assert_true(acs_repeats_idle(context)); /* the program is launching */
    assert_non_null(context->repeats->open_strands);
    context->repeats->looked_ns = UINT64_MAX / 2; /* another worker has just looked, as it were */
    assert_true(acs_repeats_idle(context));
    assert_non_null(context->repeats->open_strands);
    context->repeats->looked_ns = 0; /* long ago */
    assert_false(acs_repeats_idle(context));
    assert_null(context->repeats->open_strands);
    assert_right(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* A thread that needs room waits for what runs. Only where nothing runs, what is held back has to make room. */
static void a_thread_without_room_seals_where_nothing_runs(void **state)
{
    (void)state;
    acs_context *context = open_automatic(0);
    for (uint32_t p = 0; p < 3; p++) {
        launch_all(context, 0);
        assert_right(context);
    }
    launch_most(context, 0);
    assert_int_equal(context->core.running, 0);
    context->core.running = 1;
    acs_repeats_flush(context, 0, false);
    assert_non_null(context->repeats->open_strands);
    context->core.running = 0;
    acs_repeats_flush(context, 0, false);
    assert_null(context->repeats->open_strands);
    assert_right(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

typedef struct half {
    acs_context *context;
    uint32_t first;
    atomic_bool failed;
} half;

/* Half of the columns. */
static void *launch_half(void *argument)
{
    half *h = argument;
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t column = h->first; column < h->first + COLUMNS / 2; column++)
            if (!is_missing(row, column) && !launch(h->context, row * COLUMNS + column, above(row, column), row))
                atomic_store(&h->failed, true);
    return NULL;
}

/* Threads share the pass, and each strand keeps its order. */
static void threads_share_a_pass(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 20; p++) {
        half halves[2] = {{.context = context}, {.context = context, .first = COLUMNS / 2}};
        pthread_t threads[2];
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, launch_half, &halves[t]), 0);
        for (int t = 0; t < 2; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_false(atomic_load(&halves[t].failed));
        }
        assert_right(context);
    }
    assert_true(stats(context).replayed > 10 * OPS);
}

/* What acs_close writes to standard error. */
static void close_and_read(acs_context *context, char *text, size_t bytes)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    const acs_status closed = acs_close(context);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = 0;
    (void)fclose(file);
    assert_int_equal(closed, ACS_OK);
}

/* ACS_STATS names the call whose kernels recur least, and why. */
static void the_report_says_why(void **state)
{
    (void)state;
    char text[8192];
    setenv("ACS_STATS", "1", 1);
    acs_context *context = open_automatic(0);
    unsetenv("ACS_STATS");
    for (uint32_t p = 0; p < 200; p++) {
        launch_all(context, 0);
        uint64_t *to = &g_cells[p], number = p;
        mix(&g_truth[p], &g_truth[p], number);
        assert_true(ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, to, number),
                                  ACS_USES(ACS_INOUT(to, sizeof *to))) > 0);
        assert_right(context);
    }
    assert_true(stats(context).replays <= 10 * 200); /* new strands do not tear what was learnt */
    close_and_read(context, text, sizeof text);
    const char *line = strstr(text, "did not recur: its segments differ\n");
    assert_non_null(line);
    while (line > text && line[-1] != '\n')
        line--;
    assert_non_null(strstr(line, "199 x 'g_mix' ("));
    assert_true(strstr(line, "199 x 'g_mix' (") < strchr(line, '\n'));
}

/* Kernels that are held back are run when the context closes. */
static void a_pass_may_be_open_at_close(void **state)
{
    (void)state;
    for (int64_t workers = 0; workers < 2; workers++) {
        acs_context *context = open_automatic(workers);
        for (uint32_t p = 0; p < 3; p++) {
            launch_all(context, 0);
            assert_right(context);
        }
        launch_most(context, 0);
        assert_int_equal(acs_close(context), ACS_OK);
        assert_memory_equal(g_cells, g_truth, sizeof g_cells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_end_at_waits_for_everything, open_one, close_quietly),
        cmocka_unit_test_teardown(what_recurs_is_tried_until_it_is_ready, close_quietly),
        cmocka_unit_test_setup_teardown(a_long_step_recurs_whole, open_one, close_quietly),
        cmocka_unit_test(a_block_handed_out_again_hides_no_failure),
        cmocka_unit_test(kernels_between_waits_that_are_few_are_launched),
        cmocka_unit_test_setup_teardown(a_loop_without_waits_is_found, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(passes_are_as_long_as_what_comes_again, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_program_that_stops_waiting_keeps_its_pieces, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(short_steps_are_joined_once_waits_stop, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(parts_between_waits_have_their_own_periods, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(other_arguments_each_time_have_no_period, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(what_never_waits_recurs_soon, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(what_hardly_recurs_rests, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_named_pass_stops_it, open_one, close_quietly),
        cmocka_unit_test(an_idle_worker_seals),
        cmocka_unit_test(a_thread_without_room_seals_where_nothing_runs),
        cmocka_unit_test_setup_teardown(threads_share_a_pass, open_one, close_quietly),
        cmocka_unit_test(the_report_says_why),
        cmocka_unit_test(a_pass_may_be_open_at_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
