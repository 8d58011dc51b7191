/*
 * Unit tests of backend/cuda_costs: which figures the cost model of an open device has: by ACS_COSTS, by the file that
 * acs-info keeps, or by the table; and the messages where there is no file, or a wrong one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/internal.h"
#include "twin.h"
#include "api/context.h"
#include "unit/report_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { SAID_BYTES = 16384 };

static char g_folder[] = "/tmp/acs-costs-XXXXXX", g_path[64];
static const acs_costs_gpu g_gpus[2] = {{"cuda-0", "Twin 0"}, {"cuda-1", "Twin 1"}};

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(g_folder) || setenv("XDG_CACHE_HOME", g_folder, 1) != 0)
        return -1;
    (void)snprintf(g_path, sizeof g_path, "%s/named", g_folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return system(command);
}

static int setup(void **state)
{
    (void)state;
    twin_reset();
    twin_set_strategy(TWIN_EAGER);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* With ACS_COSTS=path, NULL: without; `said`: the log. */
static acs_status open_with(const char *path, int backend, int64_t devices, acs_context **context, char said[SAID_BYTES])
{
    acs_options options;
    capture c;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = backend;
    options.devices = devices;
    options.workers = 0;
    options.log = ACS_LOG_INFO;
    (void)snprintf(options.costs, sizeof options.costs, "%s", path ? path : "");
    capture_begin(&c);
    const acs_status status = acs_open(&options, context);
    capture_end(&c, said, SAID_BYTES);
    acs_log_set_level(ACS_LOG_OFF);
    return status;
}

static const acs_costs *costs_of(acs_context *context, uint32_t device)
{
    return &((acs_cuda *)context->backend)->members[device]->costs;
}

static void close_all(acs_context *context)
{
    assert_int_equal(acs_close(context), ACS_OK);
    assert_null(twin_breach());
}

static void a_gpu_that_was_never_measured_has_the_table_and_is_told(void **state)
{
    acs_context *context = NULL;
    char said[SAID_BYTES];
    (void)state;
    assert_int_equal(open_with(NULL, ACS_BACKEND_CUDA, 1, &context, said), ACS_OK);
    assert_memory_equal(costs_of(context, 0), &acs_costs_table, sizeof(acs_costs));
    assert_says(said, "cuda: Twin 0 was never measured: the cost model has an H200's figures; 'acs-info --measure'");
    close_all(context);
}

static void a_file_that_is_named_counts_for_each_gpu_that_it_has(void **state)
{
    acs_context *context = NULL;
    char said[SAID_BYTES];
    (void)state;
    write_file(g_path, "acs-costs 1\ngpu cuda-0 Twin 0\nhop_ns 1234\ngpu any Twin 1\nhop_ns 2345\n");
    assert_int_equal(open_with(g_path, ACS_BACKEND_CUDA, 2, &context, said), ACS_OK);
    assert_int_equal(costs_of(context, 0)->hop_ns, 1234);
    assert_int_equal(costs_of(context, 1)->hop_ns, 2345);
    assert_int_equal(costs_of(context, 1)->edge_ns, acs_costs_table.edge_ns);
    assert_int_equal(times_said(said, "never measured"), 0);
    close_all(context);
}

static void a_file_that_is_named_and_wrong_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"acs-costs 1\ngpu cuda-0 Twin 0\nhop_us 3\n", "ACS_COSTS: '%s', line 3: there is no row 'hop_us'"},
        {"acs-costs 1\ngpu cuda-0 Twin 0\nhop_ns\n", "ACS_COSTS: '%s', line 3: 'hop_ns' is not 'ROW VALUE'"},
        {"acs-costs 1\ngpu GPU-5 Other\nhop_ns 3\n",
         "ACS_COSTS: '%s' is of another GPU: it says nothing of cuda-0 (Twin 0)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_context *context = NULL;
        char said[SAID_BYTES], why[256];
        const char *end = strstr(rows[i].why, "%s") + 2;
        (void)snprintf(why, sizeof why, "%.*s%s%s", (int)(end - 2 - rows[i].why), rows[i].why, g_path, end);
        write_file(g_path, rows[i].text);
        assert_int_equal(open_with(g_path, ACS_BACKEND_CUDA, 1, &context, said), ACS_ERR_OPTION);
        assert_says(acs_error_thread()->text, why);
        assert_int_equal(open_with(g_path, ACS_BACKEND_AUTO, 1, &context, said), ACS_ERR_OPTION); /* no reason for the CPU */
        assert_null(twin_breach());
    }
}

/* As acs-info keeps it, and then as somebody has cut it off. */
static void a_file_that_was_found_is_a_hint(void **state)
{
    acs_context *context = NULL;
    acs_costs_measured m = {.gpu = g_gpus[0], .costs = acs_costs_table};
    char said[SAID_BYTES], path[ACS_CACHE_PATH_BYTES];
    (void)state;
    m.costs.hop_ns = 1234;
    assert_int_equal(acs_costs_store(&m), ACS_OK);
    assert_int_equal(open_with(NULL, ACS_BACKEND_CUDA, 2, &context, said), ACS_OK);
    assert_int_equal(costs_of(context, 0)->hop_ns, 1234);
    assert_int_equal(costs_of(context, 1)->hop_ns, acs_costs_table.hop_ns);
    assert_int_equal(times_said(said, "never measured"), 1);
    assert_says(said, "Twin 1 was never measured");
    close_all(context);

    assert_int_equal(acs_costs_path(&m.gpu, path), ACS_OK);
    assert_int_equal(truncate(path, 20), 0);
    acs_error_thread()->status = ACS_OK;
    assert_int_equal(open_with(NULL, ACS_BACKEND_CUDA, 1, &context, said), ACS_OK);
    assert_memory_equal(costs_of(context, 0), &acs_costs_table, sizeof(acs_costs));
    assert_says(said, "the cost model has an H200's figures for Twin 0, since a file is wrong");
    assert_says(said, path);
    assert_int_equal(acs_error_thread()->status, ACS_OK);
    close_all(context);
    assert_int_equal(unlink(path), 0);
}

static void the_cpu_has_no_such_costs(void **state)
{
    acs_context *context = NULL;
    char said[SAID_BYTES];
    (void)state;
    assert_int_equal(open_with("/no/such/file", ACS_BACKEND_HOST, 1, &context, said), ACS_OK);
    assert_says(said, "ACS_COSTS has no effect");
    assert_int_equal(acs_close(context), ACS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_gpu_that_was_never_measured_has_the_table_and_is_told, setup),
        cmocka_unit_test_setup(a_file_that_is_named_counts_for_each_gpu_that_it_has, setup),
        cmocka_unit_test_setup(a_file_that_is_named_and_wrong_is_refused, setup),
        cmocka_unit_test_setup(a_file_that_was_found_is_a_hint, setup),
        cmocka_unit_test_setup(the_cpu_has_no_such_costs, setup),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
