/*
 * ACS_CHECK=writes through the public API: which kernels are found that leave bytes of an out segment as they were,
 * and that nothing else is, on the CPU, with threads and without, and in the simulator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_fixture.h"
#include "report_fixture.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000, PITCH = 256 };

static const struct {
    int32_t backend;
    int64_t workers;
} g_places[] = {{ACS_BACKEND_HOST, 0}, {ACS_BACKEND_HOST, 2}, {ACS_BACKEND_SIM, 1}};

enum { PLACES = sizeof g_places / sizeof *g_places };

static acs_context *open_checked(int place)
{
    acs_options options = host_options();
    acs_context *context = NULL;
    options.backend = g_places[place].backend;
    options.workers = g_places[place].workers;
    options.check = ACS_CHECK_WRITES;
    options.rename = -1; /* is not done meanwhile */
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

/* Writes `value` to all of `bytes` bytes, but for `left` of them from `at` on. */
static void fill_body(const acs_grid *grid, void *const *args)
{
    unsigned char *to = *(unsigned char **)args[0];
    const uint64_t bytes = *(uint64_t *)args[1], at = *(uint64_t *)args[2], left = *(uint64_t *)args[3];
    (void)grid;
    for (uint64_t i = 0; i < bytes; i++)
        if (i - at >= left)
            to[i] = (unsigned char)i;
}

static const acs_kernel g_fill = ACS_KERNEL_HOST_INIT("fill", fill_body);

static acs_op fill(acs_context *context, unsigned char *to, uint64_t bytes, uint64_t at, uint64_t left)
{
    acs_op op = ACS_LAUNCH_ON(context, &g_fill, 1, 1, 0, ACS_ARGS(to, bytes, at, left), ACS_USES(ACS_OUT(to, bytes)));
    assert_int_not_equal(op, 0);
    return op;
}

/* The context's error is this kernel's, and says so. */
static void assert_found(acs_context *context, acs_op op, const char *what)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_sync(context), ACS_ERR_CHECK);
    assert_int_equal(acs_context_error(context, &error), ACS_ERR_CHECK);
    assert_int_equal(error.op, op);
    if (!strstr(error.text, what) || !strstr(error.text, "test_out_segments.c:"))
        fail_msg("'%s' is not in '%s'", what, error.text);
    assert_int_equal(acs_clear(context), ACS_OK);
}

static void what_is_left_is_found(void **state)
{
    static const struct {
        uint64_t bytes, at, left;
        const char *says; /* NULL: so little is not found */
    } rows[] = {
        {BYTES, 0, BYTES, "did not write all 100000 bytes of segment 0"},
        {BYTES, BYTES - 4, 4, "4 of 100000 bytes of segment 0, which is out, from its byte 99996 on"}, /* a tail */
        {BYTES, 5000, 8, ", from its byte"},
        {BYTES, 0, 64, "which is out, from its first byte on: is it inout?"},
        {BYTES, 5000, 4, "4 of 100000 bytes"},
        {BYTES, 5001, 3, "3 of 100000 bytes"},
        {400, 200, 7, "7 of 400 bytes of segment 0, which is out, from its byte 200 on"},
        {4, 0, 4, "all 4 bytes"},
        {3, 0, 3, "all 3 bytes"},
        {BYTES, 0, 0, NULL},
    };
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        acs_context *context = open_checked(place);
        unsigned char *block = block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, BYTES);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            acs_op op = fill(context, block, rows[i].bytes, rows[i].at, rows[i].left);
            if (rows[i].says)
                assert_found(context, op, rows[i].says);
            else
                assert_int_equal(acs_sync(context), ACS_OK);
        }
        assert_int_equal(statistics_of(context).memory_versions, 0);
        acs_free(context, block);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* The report has the footprint as it is. One that is read loses no bytes, since reads are not seen; one that is out may. */
static void footprints_are_corrected_as_far_as_writes_tell(void **state)
{
    static const struct {
        bool out;
        const char *corrected;
    } rows[] = {{true, "ACS_USES(ACS_OUT(to, 64))\n"}, {false, "ACS_USES(ACS_INOUT(to, 68))\n"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        acs_context *context = open_checked(0);
        unsigned char *to = block_of(context, ACS_MEMORY_DEVICE, 256);
        const uint64_t bytes = 64, none = 0;
        char text[4096];
        capture report;
        assert_int_not_equal(acs_memset(context, to, 200, 256), 0); /* the kernel changes each byte that it writes */
        capture_begin(&report);
        const acs_op op = ACS_LAUNCH_ON(context, &g_fill, 1, 1, 0, ACS_ARGS(to, bytes, none, none),
                                        ACS_USES(rows[i].out ? ACS_OUT(to + 4, 64) : ACS_INOUT(to + 4, 64)));
        capture_end(&report, text, sizeof text);
        assert_says(text, "op 2 'fill'");
        assert_says(text, "footprint, as it is (arguments and segments count from 0): ACS_USES(ACS_");
        assert_says(text, "OUT((char *)(to) + 4, 64))\n");
        assert_says(text, rows[i].corrected);
        assert_found(context, op, "changed 4 bytes outside its footprint (segment 0 starts 4 bytes too late), from 'to' on");
        close_and_read(context, text, sizeof text);
        assert_string_equal(text, "acs: check: 1 of 1 ops were checked\n");
    }
}

/* Rows of a tile; what lies between them is nobody's. */
static void tile_body(const acs_grid *grid, void *const *args)
{
    unsigned char *to = *(unsigned char **)args[0];
    const int rows = *(int *)args[1], forgotten = *(int *)args[2];
    (void)grid;
    for (int row = 0; row < rows; row++)
        if (row != forgotten)
            memset(to + row * PITCH, row, 64);
}

static const acs_kernel g_tile = ACS_KERNEL_HOST_INIT("tile", tile_body);

static void a_row_of_a_tile_is_missed(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        acs_context *context = open_checked(place);
        unsigned char *block = block_of(context, ACS_MEMORY_DEVICE, 16 * PITCH);
        const int rows = 16, none = -1, row = 9;
        acs_memset(context, block, 77, 16 * PITCH);
        assert_int_not_equal(ACS_LAUNCH_ON(context, &g_tile, 1, 1, 0, ACS_ARGS(block, rows, none),
                                           ACS_USES(ACS_TILE_OUT(block, 64, 16, PITCH))), 0);
        assert_int_equal(acs_sync(context), ACS_OK);
        acs_op op = ACS_LAUNCH_ON(context, &g_tile, 1, 1, 0, ACS_ARGS(block, rows, row),
                                  ACS_USES(ACS_TILE_OUT(block, 64, 16, PITCH)));
        assert_found(context, op, "64 of 1024 bytes of segment 0, which is out, from its byte 2304 on");
        unsigned char seen[16 * PITCH];
        acs_memcpy(context, seen, block, sizeof seen);
        assert_int_equal(acs_sync(context), ACS_OK);
        for (int r = 0; r < 16; r++)
            for (int i = 64; i < PITCH; i++)
                assert_int_equal(seen[r * PITCH + i], 77);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* The footprint is a function's; it is the second segment, and the first is read. */
static size_t second_half(const acs_footprint_input *input, acs_segment *segments, size_t room)
{
    unsigned char *block = *(unsigned char *const *)input->args[0];
    const acs_segment named[] = {ACS_IN(block, 512), ACS_OUT(block + 512, 512)};
    memcpy(segments, named, (room < 2 ? room : 2) * sizeof *named);
    return 2;
}

static void double_body(const acs_grid *grid, void *const *args)
{
    unsigned char *block = *(unsigned char **)args[0];
    const int count = *(int *)args[1];
    (void)grid;
    for (int i = 0; i < count; i++)
        block[512 + i] = (unsigned char)(2 * block[i]);
}

static const acs_kernel g_double = ACS_KERNEL_HOST_INIT("double", double_body);

static void footprints_by_a_function_are_looked_at(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        acs_context *context = open_checked(place);
        unsigned char *block = block_of(context, ACS_MEMORY_DEVICE, 1024), seen[1024];
        const int all = 512, less = 500;
        acs_memset(context, block, 3, 1024);
        acs_op whole = ACS_LAUNCH_ON(context, &g_double, 1, 1, 0, ACS_ARGS(block, all), ACS_USES_FN(second_half, NULL));
        assert_int_not_equal(whole, 0);
        acs_memcpy(context, seen, block, 1024);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(seen[0], 3);
        assert_int_equal(seen[1023], 6);
        acs_op op = ACS_LAUNCH_ON(context, &g_double, 1, 1, 0, ACS_ARGS(block, less), ACS_USES_FN(second_half, NULL));
        assert_found(context, op, "12 of 512 bytes of segment 1, which is out, from its byte 500 on");
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* What is read as well may stay, although it is declared out, too. */
static void what_is_read_too_is_left_alone(void **state)
{
    (void)state;
    acs_context *context = open_checked(0);
    unsigned char *block = block_of(context, ACS_MEMORY_DEVICE, 1024), seen[1024];
    const uint64_t bytes = 1024, at = 0, left = 1024;
    acs_memset(context, block, 5, 1024);
    assert_int_not_equal(ACS_LAUNCH_ON(context, &g_fill, 1, 1, 0, ACS_ARGS(block, bytes, at, left),
                                       ACS_USES(ACS_OUT(block + 1000, 24), ACS_IN(block, 1024))), 0);
    assert_int_not_equal(ACS_LAUNCH_ON(context, &g_fill, 1, 1, 0, ACS_ARGS(block, bytes, at, left),
                                       ACS_USES(ACS_INOUT(block, 1024))), 0);
    acs_memcpy(context, seen, block, 1024);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(seen[0], 5);
    assert_int_equal(seen[1023], 5);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* A launch that is refused, or may not wait, or is held, goes as it would without the check. */
static void launches_that_are_not_looked_at_work(void **state)
{
    (void)state;
    acs_context *context = open_checked(0);
    unsigned char *block = block_of(context, ACS_MEMORY_DEVICE, 64);
    const uint64_t bytes = 64, at = 0, left = 64;
    const acs_segment out = ACS_OUT(block, 64);
    const acs_launch_params hurried = {.size = sizeof hurried, .kernel = &g_fill, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                       .args = ACS_ARGS(block, bytes, at, left), .uses = {&out, 1, NULL, NULL, 0},
                                       .no_wait = 1};
    acs_launch_params wrong = hurried;
    wrong.no_wait = 0;
    wrong.block.x = 0;
    assert_int_not_equal(acs_launch(context, &hurried), 0);
    refused(acs_launch(context, &wrong), ACS_ERR_ARGUMENT, "a dimension is zero");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_group_begin(context, 0), ACS_OK);
    assert_int_not_equal(fill(context, block, 64, 0, 64), 0);
    assert_int_equal(acs_group_submit(context, NULL, NULL), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    assert_int_equal(statistics_of(context).memory_live, 256);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* Many kernels that write what they say, of all lengths: chance is not taken for a fault. */
static void what_is_written_is_never_found(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        acs_context *context = open_checked(place);
        unsigned char *block = block_of(context, ACS_MEMORY_DEVICE, BYTES);
        uint64_t random = 1;
        for (int i = 0; i < 300; i++) {
            uint64_t bytes = 1 + below(&random, 1u << below(&random, 16)), first = below(&random, BYTES - (uint32_t)bytes);
            (void)fill(context, block + first, bytes, 0, 0);
        }
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* ------------------------------------------------------------------------------------ what it must leave as it was */

/* A program that waits for its kernel may do as it likes with the memory. */
static void memory_is_the_programs_once_its_kernel_was_waited_for(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        acs_context *context = open_checked(place);
        for (int i = 0; i < 20; i++) {
            unsigned char *memory = malloc(5000);
            assert_int_equal(acs_wait(context, fill(context, memory, 5000, 0, 0)), ACS_OK);
            assert_int_equal(memory[4999], (unsigned char)4999);
            free(memory);
        }
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

static void what_a_refused_launch_names_stays(void **state)
{
    (void)state;
    acs_context *context = open_checked(0);
    unsigned char memory[64];
    const uint64_t bytes = 64, at = 0, left = 0;
    const unsigned char *none = NULL;
    memset(memory, 5, sizeof memory);
    unsigned char *to = memory;
    assert_int_equal(ACS_LAUNCH_ON(context, &g_fill, 0, 1, 0, ACS_ARGS(to, bytes, at, left), ACS_USES(ACS_OUT(to, 64))), 0);
    assert_int_equal(acs_last_error(NULL), ACS_ERR_ARGUMENT);
    const acs_arg bad[] = {{none, 8, ACS_ARG_POINTER}};
    const acs_launch_params wrong = {.size = sizeof wrong, .kernel = &g_double, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                     .args = {bad, 1}, .uses = ACS_USES_FN(second_half, NULL)};
    refused(acs_launch(context, &wrong), ACS_ERR_ARGUMENT, "argument 0 (from 0) has value");
    assert_int_equal(acs_clear(context), ACS_OK);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(memory[i], 5);
    assert_int_equal(acs_close(context), ACS_OK);
}

/*
 * While the launch computes its footprint for the n-th time, another thread takes all memory that is left. The kernel
 * writes a large block, which is filled with made-up bytes. The small block is too small to be filled, and finds no
 * memory.
 */
typedef struct taker {
    acs_context *context;
    unsigned char *large, *small;
    void *taken;
    int calls, at_call;
} taker;

enum { LIMIT = 1 << 20, LEFT = 1 << 16, LARGE = LIMIT - LEFT, SMALL = 3 };

static void *take_what_is_left(void *argument)
{
    taker *t = argument;
    if (acs_malloc(t->context, LEFT, ACS_MEMORY_DEVICE, &t->taken) != ACS_OK)
        t->taken = NULL;
    return NULL;
}

static size_t two_blocks(const acs_footprint_input *input, acs_segment *segments, size_t room)
{
    taker *t = (taker *)(uintptr_t)input->user;
    pthread_t thread;
    const acs_segment named[] = {ACS_OUT(t->large, LARGE), ACS_OUT(t->small, SMALL)};
    if (++t->calls == t->at_call && pthread_create(&thread, NULL, take_what_is_left, t) == 0)
        pthread_join(thread, NULL);
    memcpy(segments, named, (room < 2 ? room : 2) * sizeof *named);
    return 2;
}

static void two_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    memset(*(void *const *)args[0], 9, LARGE);
    memset(*(void *const *)args[1], 9, SMALL);
}

static const acs_kernel g_two = ACS_KERNEL_HOST_INIT("two blocks", two_body);

/* Returns how often the launch computed the footprint. */
static int launch_while_memory_is_taken(int at_call)
{
    static unsigned char seen[LARGE];
    acs_options options = host_options();
    taker t = {.at_call = at_call};
    options.check = ACS_CHECK_WRITES;
    options.memory_limit = LIMIT;
    assert_int_equal(acs_open(&options, &t.context), ACS_OK);
    t.large = block_of(t.context, ACS_MEMORY_DEVICE | ACS_LAZY, LARGE);
    t.small = block_of(t.context, ACS_MEMORY_DEVICE | ACS_LAZY, SMALL);
    assert_int_not_equal(acs_memset(t.context, t.large, 1, LARGE), 0);
    assert_int_equal(acs_sync(t.context), ACS_OK);
    const acs_op op = ACS_LAUNCH_ON(t.context, &g_two, 1, 1, 0, ACS_ARGS(t.large, t.small),
                                    ACS_USES_FN(two_blocks, &t));
    assert_int_equal(op == 0, t.taken != NULL);
    assert_true(op || acs_last_error(NULL) == ACS_ERR_MEMORY);
    assert_int_equal(acs_clear(t.context), ACS_OK);
    assert_int_equal(acs_wait(t.context, acs_memcpy(t.context, seen, t.large, LARGE)), ACS_OK);
    for (size_t i = 0; i < LARGE; i += 1000)
        assert_int_equal(seen[i], op ? 9 : 1);
    assert_int_equal(acs_close(t.context), ACS_OK);
    return t.calls;
}

static void launch_refused_since_another_thread_took_the_memory_leaves_contents(void **state)
{
    (void)state;
    const int calls = launch_while_memory_is_taken(0);
    for (int call = 1; call <= calls; call += 2) /* between, that thread would wait for this one */
        launch_while_memory_is_taken(call);
}

/* Writes what it reads at the same place, in memory that it declares out and in: read by the last of many segments. */
static void add_one_body(const acs_grid *grid, void *const *args)
{
    unsigned char *to = *(unsigned char **)args[0];
    (void)grid;
    for (int i = 0; i < 64; i++)
        to[i]++;
}

static const acs_kernel g_add_one = ACS_KERNEL_HOST_INIT("add one", add_one_body);

static void many_segments_or_all_memory_are_not_looked_at(void **state)
{
    (void)state;
    acs_context *context = open_checked(0);
    unsigned char memory[64] = {0}, *to = memory, others[70];
    acs_segment segments[70] = {ACS_OUT(to, 64)};
    for (int i = 1; i < 69; i++)
        segments[i] = ACS_IN(&others[i], 1);
    segments[69] = ACS_IN(to, 64);
    const acs_launch_params many = {.size = sizeof many, .kernel = &g_add_one, .grid = {1, 1, 1}, .block = {1, 1, 1},
                                    .args = ACS_ARGS(to), .uses = {segments, 70, NULL, NULL, 0}};
    acs_launch_params any = many;
    any.uses = (acs_uses){segments, 1, NULL, NULL, 1};
    assert_int_not_equal(acs_launch(context, &many), 0);
    assert_int_not_equal(acs_launch(context, &any), 0);
    assert_int_equal(acs_sync(context), ACS_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(memory[i], 2);
    assert_int_equal(acs_close(context), ACS_OK);
}

/* One thread writes all of it again and again; what another copies is a whole version of it, not what was made up. */
typedef struct reader {
    acs_context *context;
    unsigned char *block;
    uint32_t wrong;
} reader;

static void *copy_and_look(void *argument)
{
    reader *r = argument;
    unsigned char seen[512];
    for (int i = 0; i < 300; i++) {
        acs_op op = acs_memcpy(r->context, seen, r->block, sizeof seen);
        r->wrong += acs_wait(r->context, op) != ACS_OK;
        for (size_t k = 0; k < sizeof seen; k++)
            r->wrong += seen[k] != (unsigned char)k;
    }
    return NULL;
}

static void other_threads_never_see_what_was_made_up(void **state)
{
    (void)state;
    acs_context *context = open_checked(1);
    reader r = {context, block_of(context, ACS_MEMORY_DEVICE | ACS_RELOCATABLE, 512), 0};
    pthread_t thread;
    (void)fill(context, r.block, 512, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, copy_and_look, &r), 0);
    for (int i = 0; i < 300; i++)
        (void)fill(context, r.block, 512, 0, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_found),
        cmocka_unit_test(footprints_are_corrected_as_far_as_writes_tell),
        cmocka_unit_test(a_row_of_a_tile_is_missed),
        cmocka_unit_test(footprints_by_a_function_are_looked_at),
        cmocka_unit_test(what_is_read_too_is_left_alone),
        cmocka_unit_test(launches_that_are_not_looked_at_work),
        cmocka_unit_test(what_is_written_is_never_found),
        cmocka_unit_test(memory_is_the_programs_once_its_kernel_was_waited_for),
        cmocka_unit_test(what_a_refused_launch_names_stays),
        cmocka_unit_test(launch_refused_since_another_thread_took_the_memory_leaves_contents),
        cmocka_unit_test(many_segments_or_all_memory_are_not_looked_at),
        cmocka_unit_test(other_threads_never_see_what_was_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
