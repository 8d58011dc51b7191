/*
 * ACS_DOT on the host backend: which nodes and edges the file has, beside conflicts counted here, and what becomes of names,
 * failures, second contexts and files that cannot be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPS = 48, CELLS = 6, RUNS = 60, TEXT = 1 << 16 };

static char g_folder[] = "/tmp/acs-dot-XXXXXX", g_path[64];
static uint32_t g_contexts; /* of this process that wrote such a file */

static void start(acs_context **context, int64_t devices)
{
    acs_options options = host_options();
    options.devices = devices;
    options.pool = ACS_POOL_ON;
    (void)snprintf(options.dot, sizeof options.dot, "%s", g_path);
    assert_int_equal(acs_open(&options, context), ACS_OK);
    g_contexts++;
}

/* The newest context's file, which is removed. */
static const char *read_away(void)
{
    static char text[TEXT];
    char path[80];
    (void)snprintf(path, sizeof path, "%s", g_path);
    if (g_contexts > 1)
        (void)snprintf(path, sizeof path, "%s.%" PRIu32, g_path, g_contexts);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    (void)remove(path);
    return text;
}

static void nothing_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
}
static const acs_kernel g_nothing = ACS_KERNEL_HOST_INIT("nothing", nothing_body);

static bool has(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* Whether colours are numbers, and none is of a scheme, in which names mean something else. */
static bool colours_are_numbers(const char *text)
{
    for (const char *at = text; (at = strstr(at, "color=")) != NULL; at++)
        if (strncmp(at, "color=\"#", 8) != 0 || strspn(at + 8, "0123456789abcdef") != 6 || at[14] != '"')
            return false;
    return !strstr(text, "colorscheme");
}

static uint32_t edges_of(const char *text)
{
    uint32_t count = 0;
    while ((text = strstr(text, " -> "))) {
        count++;
        text++;
    }
    return count;
}

/* ------------------------------------------------------------------------------------------------------------- graphs */

typedef struct graph {
    uint8_t behind[OPS + 1][OPS + 1]; /* [later][earlier]: by conflicts, then by paths */
    uint8_t path[OPS + 1][OPS + 1];
} graph;

static void close_paths(uint8_t (*m)[OPS + 1])
{
    for (int later = 1; later <= OPS; later++)
        for (int between = later - 1; between >= 1; between--)
            for (int first = 1; m[later][between] && first < between; first++)
                m[later][first] |= m[between][first];
}

static void read_edges(const char *text, graph *g)
{
    unsigned long from, to;
    while ((text = strstr(text, " -> op"))) {
        const char *line = text;
        while (line[-1] != '\n')
            line--;
        assert_memory_equal(line, "op", 2); /* so few need no joins */
        from = strtoul(line + 2, NULL, 10);
        to = strtoul(text + 6, NULL, 10);
        assert_true(from >= 1 && from < to && to <= OPS);
        if (!g->behind[to][from])
            fail_msg("op %lu does not have to be behind op %lu", to, from);
        g->path[to][from] = 1;
        text++;
    }
}

/* Whatever conflicts is ordered by the file, and nothing else is; no matter what ended before what came in. */
static void edges_are_the_conflicts(void **state)
{
    (void)state;
    static graph g;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        uint64_t random = seed;
        acs_context *context;
        unsigned char cells[CELLS];
        uint8_t uses[OPS + 1][CELLS];
        memset(&g, 0, sizeof g);
        start(&context, 1);
        for (int op = 1; op <= OPS; op++) {
            acs_segment segments[CELLS];
            uint32_t count = 0;
            for (int c = 0; c < CELLS; c++) {
                uses[op][c] = (uint8_t)(below(&random, 3) ? 0 : 1 + below(&random, 2));
                if (uses[op][c])
                    segments[count++] = uses[op][c] == 1 ? ACS_IN(&cells[c], 1) : ACS_INOUT(&cells[c], 1);
                for (int before = 1; before < op; before++)
                    g.behind[op][before] |= uses[op][c] && uses[before][c] && uses[op][c] + uses[before][c] > 2;
            }
            const acs_uses all = {.segments = segments, .count = count};
            assert_int_equal(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, all), op);
            if (below(&random, 8) == 0)
                assert_int_equal(acs_sync(context), ACS_OK);
        }
        assert_int_equal(acs_close(context), ACS_OK);
        close_paths(g.behind);
        read_edges(read_away(), &g);
        close_paths(g.path);
        assert_memory_equal(g.path, g.behind, sizeof g.path);
    }
}

/* Many that read what many wrote: one join instead of all the edges. */
static void joins_keep_the_file_small(void **state)
{
    (void)state;
    enum { SIDE = 80 };
    acs_context *context;
    unsigned char cells[SIDE];
    start(&context, 1);
    for (int i = 0; i < SIDE; i++)
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_OUT(&cells[i], 1))) > 0);
    for (int i = 0; i < SIDE; i++)
        assert_true(ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_IN(cells, SIDE))) > 0);
    assert_int_equal(acs_close(context), ACS_OK);
    const char *text = read_away();
    assert_non_null(strstr(text, "\njoin1 [shape=point, label=\"\"]\n"));
    assert_in_range(edges_of(text), 2 * SIDE, 4 * SIDE);
}

/* -------------------------------------------------------------------------------------------------------------- nodes */

static void devices_are_colours(void **state)
{
    (void)state;
    enum { BYTES = 4096 };
    acs_context *context;
    start(&context, 2);
    unsigned char *x = block_of(context, ACS_MEMORY_DEVICE | ACS_LAZY, BYTES);
    const acs_attributes second = ACS_ON(1);
    assert_int_equal(acs_on(context, 0), ACS_OK);
    assert_int_equal(acs_memset(context, x, 1, BYTES), 1);
    assert_int_equal(ACS_LAUNCH_WITH(context, second, &g_nothing, 1, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, BYTES))), 3);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(acs_close(context), ACS_OK);
    const char *text = read_away();
    assert_true(has(text, "device0 [label=\"device 0\", shape=plaintext, fillcolor=\"#8dd3c7\"]"));
    assert_true(has(text, "device1 [label=\"device 1\", shape=plaintext, fillcolor=\"#ffffb3\"]"));
    assert_true(has(text, "op1 [label=\"acs_memset\\nop 1, 4096 bytes\", shape=ellipse, fillcolor=\"#8dd3c7\"]"));
    assert_non_null(strstr(text, "op2 [label=\"transfer\\nop 2, 4096 bytes\", shape=ellipse, fillcolor="));
    assert_true(has(text, "op3 [label=\"nothing\\nop 3\", shape=box, fillcolor=\"#ffffb3\"]"));
    assert_true(has(text, "op1 -> op2"));
    assert_true(has(text, "op2 -> op3"));
    assert_int_equal(edges_of(text), 2);
    assert_non_null(strstr(text, "op3 [tooltip=\"device 1, slot "));
    assert_string_equal(text + strlen(text) - 2, "}\n");
}

static int fails(void *closure)
{
    (void)closure;
    return 7;
}

static void failures_are_red_and_names_are_whole(void **state)
{
    (void)state;
    static const acs_kernel odd = ACS_KERNEL_HOST_INIT("say \"a\\b\"\n", nothing_body);
    acs_context *context;
    unsigned char cell;
    start(&context, 1);
    acs_segment segment = ACS_INOUT(&cell, 1);
    acs_launch_params params = {.size = sizeof params, .kernel = &odd, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                .uses = {.segments = &segment, .count = 1}};
    assert_int_equal(acs_host(context, fails, NULL, 0, ACS_USES(ACS_INOUT(&cell, 1))), 1);
    assert_int_equal(acs_launch(context, &params), 2);
    assert_int_not_equal(acs_wait_range(context, &cell, 1, ACS_READ), ACS_OK); /* an op that is not drawn */
    assert_int_equal(acs_launch(context, &params), 4);
    assert_int_not_equal(acs_sync(context), ACS_OK);
    assert_int_not_equal(acs_close(context), ACS_OK);
    const char *text = read_away();
    assert_true(has(text, "op2 [label=\"say \\\"a\\\\b\\\" \\nop 2\", shape=box, fillcolor=\"#8dd3c7\"]"));
    assert_non_null(strstr(text, "op1 [label=\"acs_host(fails)\\nop 1\", shape=hexagon]"));
    assert_true(has(text, "op1 [color=\"#ff0000\", penwidth=3, xlabel=\"ACS_ERR_HOST\"]"));
    assert_true(has(text, "op2 [color=\"#ff0000\", penwidth=3, xlabel=\"ACS_ERR_SKIPPED\"]"));
    assert_true(colours_are_numbers(text));
    assert_null(strstr(text, "op3"));
    assert_true(has(text, "op2 -> op4"));
}

/* acs_site may leave its name out. */
static void sites_without_a_name_are_drawn(void **state)
{
    (void)state;
    static const acs_site site = {NULL, NULL, 0};
    static const acs_kernel unnamed = ACS_KERNEL_HOST_INIT(NULL, nothing_body);
    acs_context *context;
    start(&context, 1);
    acs_launch_params params = {.size = sizeof params, .kernel = &unnamed, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                .site = &site};
    assert_int_equal(acs_launch(context, &params), 1);
    assert_int_equal(acs_close(context), ACS_OK);
    assert_non_null(strstr(read_away(), "op1 [label=\"?\\nop 1\""));
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    acs_options options = host_options();
    acs_context *context = NULL;
    acs_error error = {.size = sizeof error};
    (void)snprintf(options.dot, sizeof options.dot, "/nowhere/at/all.dot");
    assert_int_equal(acs_open(&options, &context), ACS_ERR_OPTION);
    g_contexts++;
    assert_null(context);
    assert_int_equal(acs_last_error(&error), ACS_ERR_OPTION);
    assert_non_null(strstr(error.text, "ACS_DOT: '/nowhere/at/all.dot"));
}

/* Neither a graph nor a log of memory is a reason not to run. */
static void files_of_the_environment_that_cannot_be_written_are_no_error(void **state)
{
    static const char *const variables[] = {"ACS_DOT", "ACS_MEMORY_LOG", "ACS_TRACE", "ACS_REPORT"};
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        acs_context *context = NULL;
        char byte = 0;
        assert_int_equal(setenv(variables[i], "/nowhere/at/all", 1), 0);
        const acs_options options = host_options();
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        g_contexts += i == 0;
        assert_int_equal(unsetenv(variables[i]), 0);
        assert_int_equal(acs_wait(context, acs_memset(context, &byte, 3, 1)), ACS_OK);
        assert_int_equal(byte, 3);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_the_conflicts),
        cmocka_unit_test(joins_keep_the_file_small),
        cmocka_unit_test(devices_are_colours),
        cmocka_unit_test(failures_are_red_and_names_are_whole),
        cmocka_unit_test(sites_without_a_name_are_drawn),
        cmocka_unit_test(a_file_that_cannot_be_written_is_told),
        cmocka_unit_test(files_of_the_environment_that_cannot_be_written_are_no_error),
    };
    if (!mkdtemp(g_folder))
        return 1;
    (void)snprintf(g_path, sizeof g_path, "%s/program.dot", g_folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(g_folder);
    return failed;
}
