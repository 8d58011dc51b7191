/*
 * How ops are named in errors, statistics and graphs: by the kernel's own name, else by the call site without a leading &.
 */
#include "report_fixture.h"

#include <stdlib.h>

enum { TEXT_BYTES = 8192 };

static const acs_kernel k_gemm = ACS_KERNEL_HOST_INIT("gemm", nothing_body);
static const acs_kernel k_trsm = ACS_KERNEL_HOST_INIT("trsm", nothing_body);
static const acs_kernel k_plain = ACS_KERNEL_HOST_INIT(NULL, nothing_body);

static acs_op launch(acs_context *context, const acs_kernel *kernel, void *x, unsigned blocks)
{
    return ACS_LAUNCH_ON(context, kernel, blocks, 1, 0, ACS_ARGS(x), ACS_USES(ACS_INOUT(x, 1)));
}

static void assert_refused_as(const char *text, const char *name)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(acs_last_error(&error), ACS_ERR_ARGUMENT);
    assert_says(error.text, text);
    assert_string_equal(error.site.name, name);
}

static void a_refused_launch_names_its_kernel(void **state)
{
    char x;
    assert_int_equal(launch(*state, &k_gemm, &x, 0), 0);
    assert_refused_as("'gemm'", "gemm");
    assert_int_equal(ACS_LAUNCH_ON(*state, &k_gemm, 0, 1, 0, ACS_ARGS(&x), ACS_USES_NONE), 0);
    assert_refused_as("'gemm'", "gemm");
    assert_int_equal(ACS_LAUNCH_ON(*state, &k_plain, 0, 1, 0, ACS_ARGS(&x), ACS_USES_NONE), 0);
    assert_refused_as("'k_plain'", "k_plain");
    assert_int_equal(ACS_LAUNCH_ON(*state, &k_gemm, UINT32_MAX, UINT32_MAX, 0, ACS_ARGS(&x), ACS_USES_NONE), 0);
    assert_refused_as("'gemm'", "gemm"); /* by the backend */
    assert_int_equal(ACS_LAUNCH_ON(*state, &k_plain, UINT32_MAX, UINT32_MAX, 0, ACS_ARGS(&x), ACS_USES_NONE), 0);
    assert_refused_as("'k_plain'", "k_plain");
    assert_int_equal(ACS_LAUNCH_ON(*state, &k_gemm, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_TILE_IN(&x, 8, 2, 4))), 0);
    assert_refused_as("'gemm'", "gemm"); /* for a segment */
    assert_int_not_equal(acs_clear(*state), ACS_ERR_DEVICE);
}

static int launches_inside(void *closure)
{
    char x;
    return launch(*(acs_context **)closure, &k_gemm, &x, 1) != 0;
}

static void a_launch_inside_a_callback_is_named(void **state)
{
    acs_error error = {.size = sizeof error};
    assert_true(acs_host(*state, launches_inside, state, sizeof *state, ACS_USES_NONE) > 0);
    assert_int_equal(acs_sync(*state), ACS_ERR_STATE);
    assert_int_equal(acs_context_error(*state, &error), ACS_ERR_STATE);
    assert_string_equal(error.site.name, "gemm");
    assert_int_equal(acs_clear(*state), ACS_OK);
}

static void a_skipped_op_is_named(void **state)
{
    char x;
    acs_error error = {.size = sizeof error};
    assert_true(acs_host(*state, failing_function, NULL, 0, ACS_USES(ACS_OUT(&x, 1))) > 0);
    const acs_op own = launch(*state, &k_gemm, &x, 1);
    const acs_op plain = ACS_LAUNCH_ON(*state, &k_plain, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(&x, 1)));
    assert_int_equal(acs_sync(*state), ACS_ERR_HOST);
    assert_int_equal(acs_op_error(*state, own, &error), ACS_ERR_SKIPPED);
    assert_says(error.text, "'gemm' (");
    assert_string_equal(error.site.name, "gemm");
    assert_int_equal(acs_op_error(*state, plain, &error), ACS_ERR_SKIPPED);
    assert_says(error.text, "'k_plain' (");
    assert_string_equal(error.site.name, "k_plain");
    assert_int_equal(acs_clear(*state), ACS_OK);
}

static size_t footprint(const acs_footprint_input *input, acs_segment *out, size_t room)
{
    (void)out;
    (void)room;
    strcpy((char *)(uintptr_t)input->user, input->name);
    return 0;
}

static void a_footprint_function_is_told_the_name(void **state)
{
    char name[64] = "";
    assert_true(ACS_LAUNCH_ON(*state, &k_gemm, 1, 1, 0, ACS_NO_ARGS, ACS_USES_FN(footprint, name)) > 0);
    assert_string_equal(name, "gemm");
    assert_true(ACS_LAUNCH_ON(*state, &k_plain, 1, 1, 0, ACS_NO_ARGS, ACS_USES_FN(footprint, name)) > 0);
    assert_string_equal(name, "k_plain");
}

/* One call site launches several kernels: each pair of them is counted apart. */
static void statistics_name_kernels(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    char text[TEXT_BYTES], x = 0;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    options.stats = 1;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    for (int i = 0; i < 6; i++)
        assert_true(launch(context, i % 2 ? &k_trsm : &k_gemm, &x, 1) > 0);
    assert_true(ACS_LAUNCH_ON(context, &k_plain, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(&x, 1))) > 0);
    close_and_read(context, text, sizeof text);
    assert_says(text, " x 'trsm' (");
    assert_says(text, " waited for 'gemm' (");
    assert_says(text, " x 'gemm' (");
    assert_says(text, " x 'k_plain' (");
    assert_says(text, " waited for 'trsm' (");
    assert_null(strstr(text, "'kernel'"));
}

static void graphs_name_kernels(void **state)
{
    (void)state;
    acs_options options;
    acs_context *context = NULL;
    char folder[] = "/tmp/acs-names-XXXXXX", text[TEXT_BYTES], x = 0;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_SIM;
    (void)snprintf(options.dot, sizeof options.dot, "%s/names.dot", folder);
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    assert_true(launch(context, &k_trsm, &x, 1) > 0);
    assert_true(ACS_LAUNCH_ON(context, &k_plain, 1, 1, 0, ACS_NO_ARGS, ACS_USES_NONE) > 0);
    assert_int_equal(acs_close(context), ACS_OK);
    FILE *file = fopen(options.dot, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_int_equal(remove(options.dot), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_says(text, "op1 [label=\"trsm\\nop 1\"");
    assert_says(text, "op2 [label=\"k_plain\\nop 2\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST(a_refused_launch_names_its_kernel),
        HOST(a_launch_inside_a_callback_is_named),
        SIM(a_skipped_op_is_named),
        SIM(a_footprint_function_is_told_the_name),
        cmocka_unit_test(statistics_name_kernels),
        cmocka_unit_test(graphs_name_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
