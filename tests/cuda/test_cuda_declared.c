/*
 * What the CUDA driver knows, for declared footprints: a kernel's name, asked for once, and the allocation in which memory
 * of the program lies. Over the twin. Which bytes a launch touches is told by failures, which spread to what conflicts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/context.h"
#include "twin.h"

#include <stdbool.h>
#include <string.h>

enum { BYTES = 4096 };

static const char g_symbol = 0;
static acs_context *g_context;
static CUkernel g_kernel;

static int open_context(int pool)
{
    acs_options options;
    (void)acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_CUDA;
    options.workers = 0;
    options.pool = pool;
    return acs_open(&options, &g_context) != ACS_OK;
}

static int setup(void **state)
{
    static const uint32_t sizes[] = {8};
    const twin_kernel_spec spec = {.name = "_Z3addPc", .symbol = &g_symbol, .param_count = 1, .param_bytes = sizes};
    (void)state;
    twin_reset();
    twin_set_strategy(TWIN_UNIFORM);
    g_kernel = twin_kernel(&spec);
    return open_context(ACS_POOL_ON);
}

static int teardown(void **state)
{
    (void)state;
    return acs_close(g_context) != ACS_OK || twin_breach();
}

static char *block_of(int kind)
{
    void *block = NULL;
    assert_int_equal(acs_malloc(g_context, BYTES, kind, &block), ACS_OK);
    return block;
}

static int refuse(void *closure)
{
    (void)closure;
    return 1;
}

static uint64_t unknown(void)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(g_context, &s), ACS_OK);
    return s.undeclared + s.unknown_memory;
}

static acs_op launch(const acs_kernel *kernel, char *argument)
{
    const acs_op op = ACS_LAUNCH_ON(g_context, kernel, 1, 1, 0, ACS_ARGS(argument));
    assert_true(op > 0);
    return op;
}

/* Whether the op is skipped behind one that failed with this byte. */
static bool touches(const acs_kernel *kernel, char *argument, const char *byte)
{
    assert_true(acs_host(g_context, refuse, NULL, 0, ACS_USES(ACS_INOUT(byte, 1))) > 0);
    const acs_status status = acs_wait(g_context, launch(kernel, argument));
    assert_int_equal(acs_clear(g_context), ACS_OK);
    return status == ACS_ERR_SKIPPED;
}

static size_t first_byte(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (char *, p));
    return ACS_SEGMENTS(out, capacity, ACS_INOUT(p, 1));
}

static size_t all_of_it(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    ACS_PARAMS(in, (char *, p));
    return ACS_SEGMENTS(out, capacity, ACS_INOUT(p, ACS_WHOLE));
}

static void kernels_are_found_by_the_name_of_the_driver(void **state)
{
    (void)state;
    const acs_kernel named = {.name = "_Z3addPc"};
    const acs_kernel forms[] = {{"a", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0},
                                {"b", (const void *)twin_function(g_kernel, 0), NULL, ACS_KERNEL_CUFUNCTION, 0},
                                {"c", &g_symbol, NULL, ACS_KERNEL_FUNCTION, 0}};
    char *x = block_of(ACS_MEMORY_DEVICE), *y = block_of(ACS_MEMORY_DEVICE);
    uint64_t before = 0;
    assert_int_equal(acs_declare(&named, first_byte, NULL), ACS_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(touches(&forms[i], x, x));
        assert_false(touches(&forms[i], x, x + 1) || touches(&forms[i], x, y));
    }
    assert_int_equal(unknown(), 0);
    before = twin_count("cuKernelGetName") + twin_count("cuFuncGetName");
    for (int i = 0; i < 3; i++)
        (void)launch(&forms[i], x);
    assert_int_equal(twin_count("cuKernelGetName") + twin_count("cuFuncGetName"), before); /* each was asked about once */
    assert_int_equal(acs_declare(&named, NULL, NULL), ACS_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(touches(&forms[i], x, y)); /* nothing is declared any more */
        assert_int_equal(acs_declare(&forms[i], NULL, NULL), ACS_OK); /* as before its code is unloaded */
    }
    assert_int_equal(unknown(), 3);
}

/* A driver that tells no names: the name in the acs_kernel counts, and the driver is not asked again. */
static void without_names_the_kernels_own_counts(void **state)
{
    (void)state;
    const acs_kernel kernel = {"own", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0}, own = {.name = "own"};
    char *x = block_of(ACS_MEMORY_DEVICE);
    assert_int_equal(acs_declare(&own, first_byte, NULL), ACS_OK);
    twin_fail("cuKernelGetName", CUDA_ERROR_NOT_SUPPORTED, 0, 1);
    assert_true(touches(&kernel, x, x));
    assert_false(touches(&kernel, x, x + 1));
    assert_int_equal(twin_count("cuKernelGetName"), 1);
    assert_int_equal(unknown(), 0);
    assert_int_equal(acs_declare(&own, NULL, NULL), ACS_OK);
    assert_int_equal(acs_declare(&kernel, NULL, NULL), ACS_OK);
}

static bool is_known(const char *at, const char *block)
{
    acs_backend *backend = g_context->backend;
    const char *reason = NULL;
    uint64_t first = 0, bytes = 0;
    const bool known = backend->ops->memory_range(backend, (uint64_t)(uintptr_t)at, &first, &bytes, &reason);
    assert_true(known ? first == (uint64_t)(uintptr_t)block && bytes == BYTES : reason != NULL);
    return known;
}

/* Memory of another context, without pools, stands for memory of cudaMalloc and its like. */
static void the_driver_knows_memory_of_the_program(void **state)
{
    (void)state;
    static const struct {
        twin_trait trait;
        bool known;
    } rows[] = {{TWIN_ORDINARY, true}, {TWIN_MANAGED, true}, {TWIN_OF_A_POOL, true}, {TWIN_MAPPED_ELSEWHERE, false}};
    static char pageable[BYTES];
    const acs_kernel kernel = {"k", (const void *)g_kernel, NULL, ACS_KERNEL_HANDLE, 0};
    char *own = block_of(ACS_MEMORY_DEVICE);
    acs_context *ours = g_context;
    assert_int_equal(acs_declare(&kernel, all_of_it, NULL), ACS_OK);
    assert_int_equal(open_context(ACS_POOL_OFF), 0);
    acs_context *program = g_context;
    char *memory = block_of(ACS_MEMORY_DEVICE), *pinned = block_of(ACS_MEMORY_HOST);
    g_context = ours;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        twin_block_is(memory, rows[i].trait);
        assert_int_equal(is_known(memory + 100, memory), rows[i].known);
    }
    twin_block_is(memory, TWIN_ORDINARY);
    assert_true(is_known(pinned + 9, pinned));
    assert_false(is_known(pageable, NULL));
    assert_true(touches(&kernel, memory + 100, memory) && touches(&kernel, memory + 100, memory + BYTES - 1));
    assert_false(touches(&kernel, memory, own));
    assert_int_equal(unknown(), 0);
    assert_true(touches(&kernel, pageable, own));
    assert_int_equal(unknown(), 1);
    assert_int_equal(acs_declare(&kernel, NULL, NULL), ACS_OK);
    assert_int_equal(acs_close(program), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_are_found_by_the_name_of_the_driver, setup, teardown),
        cmocka_unit_test_setup_teardown(without_names_the_kernels_own_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_driver_knows_memory_of_the_program, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
