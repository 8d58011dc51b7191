/*
 * Repeats that the context finds by itself (ACS_REPEATS=auto): where passes begin and end, what stops them, and that
 * results are as without them. And strands whose memory lies in columns of an array. On the sim backend.
 */
#include "api_fixture.h"

#include "api/context.h"
#include "base/base.h"
#include "repeats/repeat_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COLUMNS = 16, ROWS = 24, OPS = COLUMNS * ROWS };

/* A row has a cell for each column, so the cells of a column are not side by side. Each column lacks one row. */
enum { MANY = 32, TALL = 110 }; /* columns and rows of a larger array */

static uint64_t g_cells[TALL * MANY], g_truth[TALL * MANY];

static void mix(uint64_t *to, const uint64_t *from, uint64_t number)
{
    *to = acs_hash64(*to ^ *from * 3 ^ number * 7);
}

static void mix_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    mix(*(uint64_t **)args[0], *(uint64_t **)args[1], *(uint64_t *)args[2]);
}

static const acs_kernel g_mix = ACS_KERNEL_HOST_INIT("mix", mix_body);

static acs_op launch(acs_context *context, uint32_t at, uint32_t from_at, uint64_t number)
{
    uint64_t *to = &g_cells[at], *from = &g_cells[from_at];
    mix(&g_truth[at], &g_truth[from_at], number);
    return ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, from, number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_IN(from, sizeof *from)));
}

static bool is_missing(uint32_t row, uint32_t column)
{
    return row == 5 + column % 8;
}

/* The cell above, which this one takes from. */
static uint32_t above(uint32_t row, uint32_t column)
{
    const uint32_t up = row == 0 ? 0 : is_missing(row - 1, column) ? row - 2 : row - 1;
    return up * COLUMNS + column;
}

/* A kernel for each cell, row by row. */
static void launch_most(acs_context *context, uint64_t number)
{
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        if (!is_missing(i / COLUMNS, i % COLUMNS))
            assert_true(launch(context, i, above(i / COLUMNS, i % COLUMNS), number + i) > 0);
}

/* And at last the first row takes from the last one. */
static void launch_all(acs_context *context, uint64_t number)
{
    launch_most(context, number);
    for (uint32_t column = 0; column < COLUMNS; column++)
        assert_true(launch(context, column, (ROWS - 1) * COLUMNS + column, number) > 0);
}

static acs_context *open_with(int64_t workers, int64_t slack)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.sim_order = ACS_SIM_ORDER_TIME;
    options.workers = workers;
    options.memory_slack = slack;
    options.repeats = ACS_REPEATS_AUTO;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    memset(g_cells, 0, sizeof g_cells);
    memset(g_truth, 0, sizeof g_truth);
    return context;
}

static acs_context *open_automatic(int64_t workers)
{
    return open_with(workers, 1 << 20);
}

static int open_one(void **state)
{
    *state = open_automatic(1);
    return 0;
}

static acs_statistics stats(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

static void assert_right(acs_context *context)
{
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_memory_equal(g_cells, g_truth, sizeof g_cells);
}

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

/* Columns are strands of their own, though their cells are far apart: their replays are not cut by each other. */
static void columns_of_an_array_are_strands(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 4; p++) {
        const acs_statistics before = stats(context);
        launch_all(context, 0);
        assert_right(context);
        assert_true(p < 2 || stats(context).replays - before.replays <= COLUMNS);
    }
}

/* Those that are short, beside the pass, share strands; so several columns are in one. */
static void columns_share_strands(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 4; p++) {
        const acs_statistics before = stats(context);
        for (uint32_t i = 0; i < TALL * MANY; i++)
            assert_true(launch(context, i, i < MANY ? i : i - MANY, i) > 0);
        assert_right(context);
        assert_true(p < 2 || stats(context).replays - before.replays <= 2 * MANY);
    }
    assert_true(context->repeats->table->strand_count >= MANY / 2);
}

/* Where the window cannot tell strands apart, since their memory has no order, all ops are one. */
static void strands_without_order_are_one(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 4; p++) {
        const acs_statistics before = stats(context);
        for (uint32_t i = 0; i < TALL * MANY; i++) {
            const uint32_t half = (uint32_t)(acs_hash64(i) % 2), at = i * 2 % (TALL * MANY) + half;
            assert_true(launch(context, at, at ^ 1, i) > 0);
        }
        for (uint32_t i = 0; i < TALL * MANY / 4; i++) /* two strands of cells, at random */
            assert_true(launch(context, i * 4, (uint32_t)(acs_hash64(i) % (TALL * MANY / 4)) * 4, i) > 0 &&
                        launch(context, i * 4 + 2, (uint32_t)(acs_hash64(i) % (TALL * MANY / 4)) * 4 + 2, i) > 0);
        assert_right(context);
        assert_true(p < 2 || stats(context).replays - before.replays <= 3 * TALL * MANY / 100);
    }
}

/* An op beside a pass keeps its place, whichever cell of a column it touches. */
static void every_cell_of_a_column_keeps_its_order(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < ROWS * COLUMNS; p += 5) {
        acs_context *context = open_automatic(0); /* a worker would seal replays */
        for (uint32_t passes = 0; passes < 3; passes++) {
            launch_all(context, 0);
            assert_right(context);
        }
        launch_most(context, 0);
        assert_non_null(context->repeats->open_strands);
        assert_true(launch(context, p, (p + 1) % (ROWS * COLUMNS), UINT64_MAX) > 0);
        assert_right(context);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void nothing(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}

/* A kernel that says it touches these rows, 512 bytes apart. */
static acs_op launch_rows(acs_context *context, unsigned char *at, uint64_t row_bytes, uint64_t rows, acs_access access)
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("rows", nothing);
    static const acs_site site = {"rows", __FILE__, __LINE__};
    const acs_segment segment = acs_make_segment(ACS_EXTENT_BYTES, access, (uintptr_t)at, row_bytes, rows, 512);
    const acs_launch_params p = {.size = sizeof p, .kernel = &kernel, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                 .uses = {&segment, 1, NULL, NULL, 0}, .site = &site};
    return acs_launch(context, &p);
}

typedef struct rows {
    uint32_t at, bytes, rows;
    acs_access access;
} rows;

/*
 * Small strands share one. Such may have memory between the rows of others, and a wait for one needs no other. Which of
 * them share depends on the order of addresses, so several pages are tried.
 */
static void strands_may_lie_between_rows(void **state)
{
    (void)state;
    static const rows kernels[] = {
        {22720, 64, 3, ACS_READ}, {3456, 8, 1, ACS_UPDATE}, {16112, 8, 1, ACS_UPDATE}, {10432, 8, 1, ACS_UPDATE},
        {9352, 8, 8, ACS_UPDATE}, {21800, 8, 1, ACS_UPDATE}, {20760, 8, 1, ACS_UPDATE}, {27944, 8, 4, ACS_UPDATE},
        {12064, 8, 1, ACS_UPDATE}, {12808, 8, 8, ACS_UPDATE}, {19424, 8, 1, ACS_UPDATE}, {10072, 40, 1, ACS_UPDATE},
        {40000, 512, 1, ACS_READ}, {23952, 8, 1, ACS_UPDATE}, {8320, 40, 3, ACS_UPDATE}, {21520, 8, 7, ACS_READ},
        {3112, 8, 1, ACS_UPDATE}, {29376, 8, 1, ACS_UPDATE}, {11272, 8, 1, ACS_UPDATE}, {23896, 8, 1, ACS_UPDATE},
        {21184, 8, 4, ACS_READ}, {27264, 8, 1, ACS_UPDATE}, {11520, 8, 1, ACS_UPDATE}, {24960, 8, 7, ACS_UPDATE},
        {20560, 8, 1, ACS_UPDATE}, {24592, 8, 1, ACS_UPDATE}, {26312, 8, 1, ACS_UPDATE}, {28936, 8, 1, ACS_UPDATE},
        {3392, 8, 1, ACS_UPDATE}, {19392, 8, 4, ACS_UPDATE}, {1104, 8, 7, ACS_UPDATE}, {2960, 8, 1, ACS_UPDATE},
        {4624, 8, 1, ACS_UPDATE}, {15640, 8, 1, ACS_UPDATE}};
    enum { KERNELS = sizeof kernels / sizeof kernels[0], FIRST = 0, SECOND = 11, THIRD = 12, PAGES = 100 };
    static _Alignas(4096) unsigned char area[(PAGES + 16) * 4096];
    for (uint32_t page = 0; page < PAGES; page++) {
        acs_context *context = open_automatic(0); /* a worker would seal all */
        acs_op op = 0;
        for (int p = 0; p < 4; p++) {
            static const uint32_t some[3] = {FIRST, SECOND, THIRD};
            for (uint32_t i = 0; i < (p < 2 ? KERNELS : p == 2 ? 3u : 2u); i++) {
                const rows *k = &kernels[p < 2 ? i : some[i]];
                op = launch_rows(context, area + page * 4096 + k->at, k->bytes, k->rows, k->access);
                assert_true(op > 0);
            }
            assert_int_equal(p < 3 ? acs_sync(context) : acs_wait(context, op), ACS_OK);
            assert_int_equal(acs_context_error(context, NULL), ACS_OK);
        }
        assert_int_equal(acs_close(context), ACS_OK);
    }
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
        if (p < 3)
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

/* Pieces with ops of several strands. */
static uint32_t split_pieces(const acs_repeat *repeat)
{
    uint32_t split = 0;
    for (const acs_piece *piece = repeat->pieces; piece; piece = piece->next)
        for (uint32_t at = 1; at < piece->shape->ops; at++)
            split += piece->ops[at]->strand != piece->ops[0]->strand;
    return split;
}

/* In short passes many columns share a strand, and a piece. In longer ones they are apart, and such pieces go. */
static void longer_passes_take_shared_strands_apart(void **state)
{
    (void)state;
    enum { FEW_ROWS = 3, SHORT_PASSES = 4, PASSES = 5 };
    acs_context *context = open_automatic(0); /* a worker would seal replays */
    for (uint32_t p = 0; p < SHORT_PASSES; p++) {
        for (uint32_t i = 0; i < FEW_ROWS * COLUMNS; i++)
            assert_true(launch(context, i, above(i / COLUMNS, i % COLUMNS), p + i) > 0);
        assert_right(context);
    }
    const uint32_t shared = context->repeats->table->strand_count;
    assert_true(stats(context).replayed > 0);
    for (uint32_t p = 0; p < PASSES; p++) {
        launch_all(context, p);
        assert_right(context);
        assert_int_equal(split_pieces(context->repeats->table), 0);
    }
    assert_true(context->repeats->table->strand_count > shared);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* A kernel with this number, beside the cells of launch_all. */
static void launch_beside(acs_context *context, uint32_t number)
{
    enum { PLACES = TALL * MANY - OPS - 8 };
    unsigned char *at = (unsigned char *)&g_cells[OPS + number % PLACES];
    assert_true(launch_rows(context, at, 1 + number / PLACES, 1, ACS_UPDATE) > 0);
}

/*
 * Kernels of which five in six are new, and the others come the second and last time. `first`: number of the first new
 * one.
 */
static void launch_mostly_new(acs_context *context, uint32_t first, uint32_t count)
{
    assert_true(launch(context, 0, above(0, 0), first) > 0); /* which begins passes of the same repeat */
    for (uint32_t i = 0; i < count; i++) {
        launch_beside(context, first + i);
        if (i % 5 == 0 && first)
            launch_beside(context, first - count + i);
    }
}

/*
 * Passes that recur, in turn with such as hardly do: these teach nothing. What is known of them is forgotten after a while.
 * Then strands are as before.
 */
static void forgetting_keeps_strands_apart(void **state)
{
    (void)state;
    enum { ROUNDS = 16, NEW = 2500 };
    acs_context *context = open_automatic(0); /* a worker would seal replays */
    uint64_t most = 0;
    uint32_t known = 0, places = 0, forgotten = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const acs_statistics before = stats(context);
        launch_all(context, round);
        assert_right(context);
        const acs_repeat *repeat = context->repeats->table;
        const uint64_t replays = stats(context).replays - before.replays;
        most = round > 3 && replays > most ? replays : most;
        forgotten += repeat->known_count < known;
        known = repeat->known_count;
        if (round == 3)
            places = repeat->place_count;
        if (round < 3)
            continue;
        launch_mostly_new(context, (round - 3) * NEW, NEW);
        assert_right(context);
        assert_int_equal(repeat->place_count, places);
        known = repeat->known_count > known ? repeat->known_count : known;
    }
    assert_true(forgotten > 0);
    assert_true(most <= COLUMNS);
    assert_int_equal(acs_close(context), ACS_OK);
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
    acs_repeats_idle(context);
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
        cmocka_unit_test_setup_teardown(columns_of_an_array_are_strands, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(columns_share_strands, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(strands_without_order_are_one, open_one, close_quietly),
        cmocka_unit_test(every_cell_of_a_column_keeps_its_order),
        cmocka_unit_test(strands_may_lie_between_rows),
        cmocka_unit_test(a_block_handed_out_again_hides_no_failure),
        cmocka_unit_test_setup_teardown(a_loop_without_waits_is_found, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(what_never_waits_recurs_soon, open_one, close_quietly),
        cmocka_unit_test(longer_passes_take_shared_strands_apart),
        cmocka_unit_test(forgetting_keeps_strands_apart),
        cmocka_unit_test_setup_teardown(what_hardly_recurs_rests, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(a_named_pass_stops_it, open_one, close_quietly),
        cmocka_unit_test(an_idle_worker_seals),
        cmocka_unit_test_setup_teardown(threads_share_a_pass, open_one, close_quietly),
        cmocka_unit_test(the_report_says_why),
        cmocka_unit_test(a_pass_may_be_open_at_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
