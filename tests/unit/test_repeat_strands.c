/*
 * Strands of automatic repeats: which ops are in one, by which ranges or tiles the window sees them, and when they are
 * found anew. On the sim backend.
 */
#include "columns_fixture.h"

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

enum { NETS = 4, LAYERS = 110 };

/* A layer of a network. Its weights are read by all; those of the first network lie between its cells. */
static acs_op launch_layer(acs_context *context, uint32_t net, uint32_t layer, uint64_t number)
{
    const uint32_t first = net * 3 * LAYERS, stride = net ? 1 : 3, at = first + layer * stride;
    const uint32_t before = layer ? at - stride : at;
    uint64_t *to = &g_cells[at], *from = &g_cells[before];
    const uint64_t *weights = &g_cells[3 * layer + 1];
    mix(&g_truth[at], &g_truth[before], number);
    return ACS_LAUNCH_ON(context, &g_mix, 1, 1, 0, ACS_ARGS(to, from, number),
                         ACS_USES(ACS_INOUT(to, sizeof *to), ACS_IN(from, sizeof *from), ACS_IN(weights, sizeof *weights),
                                  ACS_IN(weights + 1, sizeof *weights)));
}

/*
 * What several strands only read is one range of each, whatever lies between it, so each network has one replay. An op
 * that writes a weight waits for all of them, and they for it.
 */
static void what_is_only_read_joins_no_strands(void **state)
{
    (void)state;
    acs_context *context = open_automatic(0); /* a worker would seal replays */
    for (uint32_t p = 0; p < 4; p++) {
        const acs_statistics before = stats(context);
        for (uint32_t net = 0; net < NETS; net++)
            for (uint32_t layer = 0; layer < LAYERS; layer++)
                assert_true(launch_layer(context, net, layer, p) > 0);
        assert_right(context);
        assert_true(p < 2 || stats(context).replays - before.replays == NETS);
    }
    assert_true(context->repeats->table->strand_count >= NETS);
    for (uint32_t net = 0; net < NETS; net++)
        assert_true(launch_layer(context, net, 0, net) > 0);
    assert_int_equal(count_open(context), NETS);
    assert_true(launch(context, 3 * (LAYERS - 1) + 1, 0, 0) > 0);
    assert_int_equal(count_open(context), 0);
    assert_right(context);
    assert_int_equal(acs_close(context), ACS_OK);
}

static uint32_t g_noted; /* ops that ran */
static bool g_in_order;

static void count_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)__atomic_fetch_add(*(uint64_t **)args[0], **(uint64_t **)args[1] ^ *(uint64_t *)args[2], __ATOMIC_RELAXED);
}

static acs_op launch_count(acs_context *context, uint32_t at, uint32_t from_at, uint64_t number)
{
    static const acs_kernel count = ACS_KERNEL_HOST_INIT("count", count_body);
    uint64_t *to = &g_cells[at], *from = &g_cells[from_at];
    g_truth[at] += g_truth[from_at] ^ number;
    return ACS_LAUNCH_ON(context, &count, 1, 1, 0, ACS_ARGS(to, from, number),
                         ACS_USES(ACS_INOUTSET(to, sizeof *to), ACS_IN(from, sizeof *from)));
}

/* Ops of a pass commute on cells that others read, so an op that commutes there beside the pass has an order with it. */
static void a_strand_does_not_commute_as_a_whole(void **state)
{
    acs_context *context = *state;
    for (uint32_t p = 0; p < 6; p++) {
        const acs_statistics before = stats(context);
        for (uint32_t i = COLUMNS; i < ROWS * COLUMNS; i++)
            assert_true(launch_count(context, i, i - COLUMNS, p) > 0);
        if (p > 3)
            for (uint32_t i = 0; i < ROWS * COLUMNS; i += 3)
                assert_true(launch_count(context, i, (i + 7) % (ROWS * COLUMNS), i) > 0);
        assert_right(context);
        assert_true(p < 2 || stats(context).replays > before.replays);
    }
    const acs_repeat *repeat = context->repeats->table;
    for (uint32_t s = 0; s < repeat->strand_count; s++) {
        for (uint32_t i = 0; i < repeat->strands[s].view_count; i++)
            assert_in_range(repeat->strands[s].view[i].access, ACS_READ, ACS_UPDATE);
        for (uint32_t i = 0; i < repeat->strands[s].segment_count; i++) /* else two open replays may wait for each other */
            assert_in_range(repeat->strands[s].segments[i].access, ACS_READ, ACS_UPDATE);
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

static void note_number(const acs_grid *grid, void *const *args)
{
    (void)grid;
    uint32_t number;
    memcpy(&number, args[0], sizeof number);
    g_in_order &= number == g_noted++;
}

/* A range that ends with the last byte of the address space has no address behind it. */
static void ops_with_the_last_byte_keep_their_order(void **state)
{
    acs_context *context = *state;
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("number", note_number);
    const uintptr_t last = UINTPTR_MAX;
    g_noted = 0;
    g_in_order = true;
    for (uint32_t pass = 0; pass < 6; pass++) {
        for (uint32_t i = 0, number = pass * 32; i < 32; i++, number++) {
            const bool behind = i % 8 == 7 && pass != 2; /* at times not, so that strands go on without them */
            const acs_segment own = acs_make_segment(ACS_EXTENT_BYTES, ACS_UPDATE, last - 4095, 1024, 1, 0);
            const acs_segment end = acs_make_segment(ACS_EXTENT_BYTES, ACS_WRITE, last - 3499, 3500, 1, 0);
            assert_true(ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_ARGS(number), ACS_USES(behind ? end : own)) > 0);
        }
        assert_int_equal(acs_sync(context), ACS_OK);
    }
    assert_true(stats(context).replayed > 0);
    assert_true(g_in_order);
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

/* What a program did long ago, over the whole array, does not join columns for ever: it is forgotten. */
static void what_is_past_joins_no_strands(void **state)
{
    (void)state;
    enum { PAST = 4, TIMES = 3, PASSES = 8 };
    acs_context *context = open_automatic(0); /* a worker would seal replays */
    for (uint32_t p = 0; p < PAST; p++) {
        assert_true(launch(context, 0, 0, p) > 0); /* which begins passes of the same repeat */
        for (uint32_t row = 0; row < ROWS; row++)
            assert_true(launch_rows(context, (unsigned char *)&g_cells[row * COLUMNS], COLUMNS * sizeof *g_cells, 1,
                                    ACS_UPDATE) > 0);
        assert_right(context);
    }
    acs_repeat *repeat = context->repeats->table;
    for (uint32_t p = 0; p < TIMES * PASSES; p++) {
        assert_true(p != PASSES || repeat->known_count > OPS);
        repeat->kept_ops = p % PASSES == PASSES - 1 ? TUNE_REPEAT_KEPT : 0; /* as if so many kernels had come */
        launch_all(context, p);
        assert_right(context);
    }
    assert_int_equal(repeat->known_count, OPS);
    assert_true(repeat->strand_count >= COLUMNS / 2); /* two share one */
    assert_int_equal(split_pieces(repeat), 0);
    assert_true(stats(context).replayed >= (TIMES * PASSES - 4) * OPS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(columns_of_an_array_are_strands, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(columns_share_strands, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(strands_without_order_are_one, open_one, close_quietly),
        cmocka_unit_test(what_is_only_read_joins_no_strands),
        cmocka_unit_test_setup_teardown(a_strand_does_not_commute_as_a_whole, open_one, close_quietly),
        cmocka_unit_test_setup_teardown(ops_with_the_last_byte_keep_their_order, open_one, close_quietly),
        cmocka_unit_test(every_cell_of_a_column_keeps_its_order),
        cmocka_unit_test(strands_may_lie_between_rows),
        cmocka_unit_test(longer_passes_take_shared_strands_apart),
        cmocka_unit_test(what_is_past_joins_no_strands),
        cmocka_unit_test(forgetting_keeps_strands_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
