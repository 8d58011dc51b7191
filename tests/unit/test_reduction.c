/*
 * The transitive reduction of random growing graphs, beside what a matrix of all paths says: alone, and in the files of
 * ACS_DOT, whose ops lie further apart than the order of captures remembers. The steps that it takes are counted.
 */
#include "report_fixture.h"

#include "base/base.h"
#include "base/tuning.h"
#include "capture/reduction.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

enum { NODES_MOST = 2400, WORDS = NODES_MOST / 64 + 1, EDGES_MOST = 24 };

static uint64_t g_paths[NODES_MOST][WORDS]; /* [later]: bits of the nodes that it is behind */

static bool has_bit(const uint64_t *words, uint32_t bit)
{
    return words[bit / 64] >> (bit % 64) & 1;
}

static void set_bit(uint64_t *words, uint32_t bit)
{
    words[bit / 64] |= 1ull << (bit % 64);
}

static void add_path(uint64_t *to, uint32_t from)
{
    set_bit(to, from);
    for (uint32_t w = 0; w < WORDS; w++)
        to[w] |= g_paths[from][w];
}

static uint32_t below(uint64_t *state, uint32_t bound)
{
    acs_random random = {*state};
    const uint64_t word = acs_random_next(&random);
    *state = random.state;
    return (uint32_t)(word % bound);
}

/* The reduction of a node's edges: those to nodes that no other of them is behind. */
static uint32_t reduce_by_paths(const uint32_t *list, uint32_t count, uint32_t *kept)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool implied = false;
        for (uint32_t j = 0; j < count; j++)
            implied |= has_bit(g_paths[list[j]], list[i]);
        if (!implied)
            kept[used++] = list[i];
    }
    return used;
}

static int newest_first(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : -(x > y);
}

static uint32_t add_once(uint32_t *list, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == number)
            return 0;
    list[count] = number;
    return 1;
}

/* Edges near and far; implied ones are added to the graph, or are not. */
static void kept_edges_are_those_that_no_path_implies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t random = seed;
        acs_reduction r = {0};
        memset(g_paths, 0, sizeof g_paths);
        const uint32_t far = seed % 3 ? NODES_MOST : 40, most = 1 + below(&random, EDGES_MOST);
        for (uint32_t node = 1; node < NODES_MOST; node++) {
            uint32_t list[EDGES_MOST], kept[EDGES_MOST], count = 0, wanted = node == 1 ? 0 : below(&random, most);
            for (uint32_t i = 0; i < wanted; i++)
                count += add_once(list, count, node - 1 - below(&random, node - 1 < far ? node - 1 : far));
            const uint32_t used = reduce_by_paths(list, count, kept);
            qsort(kept, used, sizeof *kept, newest_first);
            for (uint32_t i = 0; i < count; i++)
                add_path(g_paths[node], list[i]);
            assert_int_equal(acs_reduction_reduce(&r, list, count), used);
            assert_memory_equal(list, kept, used * sizeof *kept);
            assert_int_equal(acs_reduction_add(&r, list, seed % 2 ? count : used), node);
        }
        acs_reduction_fini(&r);
    }
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static uint32_t add_node(acs_reduction *r, uint32_t *list, uint32_t count)
{
    (void)acs_reduction_reduce(r, list, count);
    return acs_reduction_add(r, list, count);
}

/*
 * Rounds of copies behind which one node comes, as a kernel that reads all memory between copies of it. Copies name older
 * ones, too, at any distance. Twice as many rounds take twice as many steps.
 */
static void what_lies_behind_a_meeting_is_not_looked_for(void **state)
{
    (void)state;
    enum { COPIES = 40, FAR = 20 };
    uint64_t random = 1;
    acs_reduction r = {0};
    for (uint32_t round = 0, met = 0; round < 500; round++) {
        uint32_t list[COPIES + FAR], count, copy[COPIES];
        for (uint32_t c = 0; c < COPIES; c++) {
            for (count = 0; met && count < FAR;)
                count += add_once(list, count, count ? 1 + below(&random, met) : met);
            copy[c] = add_node(&r, list, count);
        }
        for (count = 0; count < COPIES; count++)
            list[count] = copy[count];
        met = add_node(&r, list, COPIES);
        assert_int_not_equal(met, 0);
    }
    assert_in_range(r.edge_count, 400000, 450000);
    assert_in_range(r.steps, 1, r.edge_count);
    acs_reduction_fini(&r);
}

/* Two strands that never meet, each of whose nodes has edges to some at its beginning: searches for these are given up. */
static void walks_together_take_so_many_steps_for_each_node(void **state)
{
    (void)state;
    enum { NODES = 6000, FAR = 15, BEGIN = NODES * FAR };
    acs_reduction r = {0};
    uint32_t last[2] = {0, 0};
    for (uint32_t node = 1; node <= BEGIN; node++)
        assert_int_equal(acs_reduction_add(&r, NULL, 0), node);
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t list[FAR + 1], count = 0;
        if (last[node % 2])
            list[count++] = last[node % 2];
        for (uint32_t i = 0; i < FAR; i++)
            list[count++] = 1 + node * FAR + i;
        last[node % 2] = add_node(&r, list, count);
    }
    assert_in_range(r.steps, (uint64_t)NODES * TUNE_REDUCTION_STEPS / 2, (uint64_t)NODES * TUNE_REDUCTION_STEPS + FAR);
    acs_reduction_fini(&r);
}

/* ------------------------------------------------------------------------------------------------------------ programs */

static char g_folder[] = "/tmp/acs-reduction-XXXXXX";
static uint32_t g_contexts;

static acs_context *open_drawing(acs_options *options)
{
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(options, sizeof *options), ACS_OK);
    options->backend = ACS_BACKEND_SIM;
    (void)snprintf(options->dot, sizeof options->dot, "%s/program", g_folder);
    assert_int_equal(acs_open(options, &context), ACS_OK);
    g_contexts++;
    return context;
}

/* The newest context's file, which is removed. */
static char *read_away(const acs_options *options)
{
    char path[sizeof options->dot + 16];
    if (g_contexts == 1)
        (void)snprintf(path, sizeof path, "%s", options->dot);
    else
        (void)snprintf(path, sizeof path, "%s.%" PRIu32, options->dot, g_contexts);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long bytes = ftell(file);
    assert_true(bytes > 0);
    rewind(file);
    char *text = malloc((size_t)bytes + 1);
    assert_non_null(text);
    text[fread(text, 1, (size_t)bytes, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_int_equal(remove(path), 0);
    return text;
}

/* A node as the file names it: ops are 1 to `ops`, joins come behind these. */
static uint32_t node_of(const char *name, uint32_t ops)
{
    const bool join = strncmp(name, "join", 4) == 0;
    const uint32_t number = (uint32_t)strtoul(name + (join ? 4 : 2), NULL, 10);
    assert_true(join || (strncmp(name, "op", 2) == 0 && number >= 1 && number <= ops));
    assert_true(number + (join ? ops : 0) < NODES_MOST);
    return number + (join ? ops : 0);
}

/* Fills g_paths from the edges of the file, each of which must add something; returns how many there are. */
static uint32_t read_edges(const char *text, uint32_t ops)
{
    uint32_t edges = 0, list[NODES_MOST], count = 0, to = 0;
    memset(g_paths, 0, sizeof g_paths);
    for (const char *arrow = strstr(text, " -> ");; arrow = strstr(arrow + 1, " -> ")) {
        const uint32_t node = arrow ? node_of(arrow + 4, ops) : 0;
        if (node != to && count) { /* the edges of a node stand together */
            uint32_t kept[NODES_MOST];
            assert_int_equal(reduce_by_paths(list, count, kept), count);
            for (uint32_t i = 0; i < count; i++)
                add_path(g_paths[to], list[i]);
            count = 0;
        }
        if (!arrow)
            return edges;
        const char *line = arrow;
        while (line[-1] != '\n')
            line--;
        list[count++] = node_of(line, ops);
        to = node;
        edges++;
    }
}

enum { OPS = 1500, CELLS = 900, USES = 4, LATE = 64 };

typedef struct use {
    uint16_t cell;
    bool writes;
} use;

/* Everything that conflicts is ordered by the file, and nothing else. */
static void assert_orders(use (*uses)[USES])
{
    static uint64_t wanted[OPS + 1][WORDS];
    memset(wanted, 0, sizeof wanted);
    for (uint32_t op = 1; op <= OPS; op++) {
        for (uint32_t before = op - 1; before >= 1; before--) {
            bool conflict = false;
            for (int i = 0; i < USES; i++)
                for (int j = 0; j < USES; j++)
                    conflict |= uses[op][i].cell == uses[before][j].cell && (uses[op][i].writes || uses[before][j].writes);
            if (!conflict || has_bit(wanted[op], before))
                continue;
            set_bit(wanted[op], before);
            for (uint32_t w = 0; w < WORDS; w++)
                wanted[op][w] |= wanted[before][w];
        }
        for (uint32_t before = 1; before < op; before++)
            assert_int_equal(has_bit(wanted[op], before), has_bit(g_paths[op], before));
    }
}

/* Few conflicts, so that ops depend on some that are far back; some cells are read by many, which makes joins. */
static void files_have_no_edge_that_others_imply(void **state)
{
    (void)state;
    static use uses[OPS + 1][USES];
    static char cells[CELLS];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t random = seed;
        acs_options options;
        acs_context *context = open_drawing(&options);
        for (uint32_t op = 1; op <= OPS; op++) {
            acs_segment segments[USES];
            for (int i = 0; i < USES; i++) {
                const bool often = below(&random, 8) == 0;
                use *u = &uses[op][i];
                *u = (use){(uint16_t)(often ? below(&random, 5) : below(&random, CELLS)), false};
                u->writes = below(&random, often ? LATE : 2) == 0;
                segments[i] = u->writes ? ACS_INOUT(&cells[u->cell], 1) : ACS_IN(&cells[u->cell], 1);
            }
            const acs_uses all = {.segments = segments, .count = USES};
            assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, all), op);
        }
        assert_int_equal(acs_close(context), ACS_OK);
        char *text = read_away(&options);
        assert_in_range(read_edges(text, OPS), OPS / 2, OPS * USES * 2);
        assert_orders(uses);
        free(text);
    }
}

/* A stencil between two buffers, whose ops read three rows in one piece and write one: footprints overlap in part. */
static void a_stencil_has_few_edges_an_op(void **state)
{
    (void)state;
    enum { ROWS = 64, STEPS = 20, ROW = 16, ALL = ROWS * STEPS + 2 };
    static char buffers[2][(ROWS + 2) * ROW];
    acs_options options;
    acs_context *context = open_drawing(&options);
    for (int b = 0; b < 2; b++)
        assert_true(acs_memset(context, buffers[b], 0, sizeof buffers[b]) > 0);
    for (int step = 0; step < STEPS; step++)
        for (int row = 1; row <= ROWS; row++) {
            const char *from = buffers[step % 2] + (row - 1) * ROW;
            char *to = buffers[(step + 1) % 2] + row * ROW;
            assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS,
                                      ACS_USES(ACS_IN(from, 3 * ROW), ACS_OUT(to, ROW))) > 0);
        }
    assert_int_equal(acs_close(context), ACS_OK);
    char *text = read_away(&options);
    assert_in_range(read_edges(text, ALL), ALL, 4 * ALL);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_edges_are_those_that_no_path_implies),
        cmocka_unit_test(what_lies_behind_a_meeting_is_not_looked_for),
        cmocka_unit_test(walks_together_take_so_many_steps_for_each_node),
        cmocka_unit_test(files_have_no_edge_that_others_imply),
        cmocka_unit_test(a_stencil_has_few_edges_an_op),
    };
    if (!mkdtemp(g_folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(g_folder);
    return failed;
}
