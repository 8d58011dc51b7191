/*
 * Unit tests of bundles/costs: the table's rows, the text of a GPU's rows, files that are wrong or of another GPU, and
 * where the file of a GPU is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/tuning.h"
#include "bundles/costs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const acs_costs_gpu g_ours = {"GPU-1", "NVIDIA One"};

static FILE *file_of(const char *text)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    rewind(file);
    return file;
}

static acs_status read_text(const char *text, acs_costs *costs)
{
    FILE *file = file_of(text);
    const acs_status status = acs_costs_read(costs, &g_ours, file, "it");
    (void)fclose(file);
    return status;
}

static void assert_refused(acs_status is, acs_status status, const char *why)
{
    assert_int_equal(is, status);
    if (!strstr(acs_error_thread()->text, why))
        fail_msg("'%s' is not in '%s'", why, acs_error_thread()->text);
}

/* Each row has another value than the table's. */
static acs_costs_measured some(void)
{
    acs_costs_measured m = {.gpu = g_ours};
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        *acs_cost_at(&m.costs, row) = 1000 + row;
    (void)snprintf(m.note[ACS_COST_ROW(hop_ns)], ACS_COST_NOTE_BYTES, "median of 15");
    return m;
}

static void the_table_has_the_rows_of_tuning(void **state)
{
    (void)state;
    assert_int_equal(acs_costs_table.launch_ns, TUNE_COST_LAUNCH_NS);
    assert_int_equal(acs_costs_table.overlap_most, TUNE_COST_OVERLAP_MOST);
    assert_int_equal(acs_cost_value(&acs_costs_table, ACS_COST_ROW(cell_ns)), TUNE_COST_CELL_NS);
    assert_string_equal(acs_cost_name(ACS_COST_ROW(cell_ns)), "cell_ns");
    for (uint32_t row = 0; row < ACS_COST_ROWS; row++)
        assert_in_range(acs_cost_value(&acs_costs_table, row), 1, ACS_COST_MOST);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    const acs_costs_measured m = some();
    acs_costs costs = acs_costs_table;
    char text[4096] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(acs_costs_write(&m, file), ACS_OK);
    rewind(file);
    assert_int_equal(acs_costs_read(&costs, &g_ours, file, "it"), ACS_OK);
    assert_memory_equal(&costs, &m.costs, sizeof costs);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_non_null(strstr(text, "# median of 15"));
    (void)fclose(file);
}

static void a_row_that_is_missing_keeps_its_value(void **state)
{
    (void)state;
    acs_costs costs = acs_costs_table, wanted = acs_costs_table;
    wanted.gpu_hop_ns = 9000;
    assert_int_equal(read_text("# by hand\nacs-costs 1\n\ngpu GPU-1 NVIDIA One\ngpu_hop_ns 9000 # slow\n", &costs), ACS_OK);
    assert_memory_equal(&costs, &wanted, sizeof costs);
    assert_int_equal(read_text("acs-costs 1\ngpu GPU-1\n", &costs), ACS_OK);
    assert_memory_equal(&costs, &wanted, sizeof costs);
}

static void rows_of_other_gpus_are_skipped(void **state)
{
#define HEAD "acs-costs 1\ngpu GPU-0 NVIDIA One\nhop_ns 1\n"
    (void)state;
    acs_costs costs = acs_costs_table;
    assert_int_equal(read_text(HEAD "gpu GPU-1 NVIDIA One\nhop_ns 22\ngpu any NVIDIA Two\nhop_ns 3\n", &costs), ACS_OK);
    assert_int_equal(costs.hop_ns, 22);
    assert_int_equal(read_text(HEAD "gpu any NVIDIA One \t\nhop_ns 33\n", &costs), ACS_OK);
    assert_int_equal(costs.hop_ns, 33);
    assert_refused(read_text(HEAD "gpu any NVIDIA\nhop_ns 44\n", &costs), ACS_ERR_OPTION,
                   "it is of another GPU: it says nothing of GPU-1 (NVIDIA One)");
    assert_int_equal(costs.hop_ns, 33);
}

static void files_that_are_wrong_are_told_by_line(void **state)
{
#define GOOD "acs-costs 1\ngpu GPU-1 NVIDIA One\nhop_ns 22\n"
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it, line 1: the file ends, but there is no 'acs-costs 1'"},
        {"costs\n", "it, line 1: 'costs' is not 'acs-costs 1'"},
        {"acs-costs 12\n", "it, line 1: 'acs-costs 12' is not 'acs-costs 1'"},
        {"acs-costs 1\nhop_ns 22\n", "it, line 2: 'hop_ns 22' is not 'gpu ID NAME'"},
        {GOOD "hop_us 22\n", "it, line 4: there is no row 'hop_us'"},
        {GOOD "edge_ns\n", "it, line 4: 'edge_ns' is not 'ROW VALUE'"},
        {GOOD "edge_ns much\n", "it, line 4: 'edge_ns much' is not 'ROW VALUE'"},
        {GOOD "edge_ns 6.5\n", "it, line 4: 'edge_ns 6.5' is not 'ROW VALUE'"},
        {GOOD "edge_ns 6 7\n", "it, line 4: 'edge_ns 6 7' is not 'ROW VALUE'"},
        {GOOD "edge_ns -6\n", "it, line 4: edge_ns is -6; it must be from 1 to 1000000000"},
        {GOOD "\n# so far\nedge_ns 0\n", "it, line 6: edge_ns is 0"},
        {GOOD "edge_ns 1000000001\n", "it, line 4: edge_ns is 1000000001"},
        {GOOD "edge_ns 99999999999999999999\n", "it, line 4: 'edge_ns 99999999999999999999' is not"},
        {GOOD "hop_ns 23\n", "it, line 4: hop_ns is in line 3, too"},
        {GOOD "gpu\n", "it, line 4: 'gpu' is not 'ROW VALUE'"},
        {GOOD "gpu GPU-2 NVIDIA Two\nedge_us 6\n", "it, line 5: there is no row 'edge_us'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_costs costs = acs_costs_table;
        assert_refused(read_text(rows[i].text, &costs), ACS_ERR_OPTION, rows[i].why);
        assert_memory_equal(&costs, &acs_costs_table, sizeof costs);
    }
}

/* --------------------------------------------------------------------------------------------------------- the file */

static char g_folder[] = "/tmp/acs-costs-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(g_folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return system(command);
}

static void a_gpu_has_one_file(void **state)
{
    (void)state;
    const acs_costs_measured m = some();
    const acs_costs_gpu other = {"GPU-2", "NVIDIA One"};
    acs_costs costs = acs_costs_table;
    char path[ACS_CACHE_PATH_BYTES];
    struct stat file;
    setenv("XDG_CACHE_HOME", g_folder, 1);
    assert_int_equal(acs_costs_load(&costs, &g_ours), ACS_NOT_READY);
    assert_int_equal(acs_costs_store(&m), ACS_OK);
    assert_int_equal(acs_costs_store(&m), ACS_OK);
    assert_int_equal(acs_costs_load(&costs, &other), ACS_NOT_READY);
    assert_memory_equal(&costs, &acs_costs_table, sizeof costs);
    assert_int_equal(acs_costs_load(&costs, &g_ours), ACS_OK);
    assert_memory_equal(&costs, &m.costs, sizeof costs);
    assert_int_equal(acs_costs_path(&g_ours, path), ACS_OK);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(truncate(path, 5), 0);
    assert_refused(acs_costs_load(&costs, &g_ours), ACS_ERR_OPTION, path);
    setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
    assert_refused(acs_costs_store(&m), ACS_ERR_STATE, "/proc/nothing/acs");
}

static void a_file_that_is_named_is_opened(void **state)
{
    (void)state;
    const acs_costs_measured m = some();
    acs_costs costs = acs_costs_table;
    char path[ACS_CACHE_PATH_BYTES];
    setenv("XDG_CACHE_HOME", g_folder, 1);
    assert_int_equal(acs_costs_store(&m), ACS_OK);
    assert_int_equal(acs_costs_path(&g_ours, path), ACS_OK);
    assert_int_equal(acs_costs_open(&costs, &g_ours, path), ACS_OK);
    assert_memory_equal(&costs, &m.costs, sizeof costs);
    assert_refused(acs_costs_open(&costs, &g_ours, "/no/such/file"), ACS_ERR_OPTION,
                   "ACS_COSTS: '/no/such/file' cannot be read: No such file");
    assert_refused(acs_costs_open(&costs, &g_ours, g_folder), ACS_ERR_OPTION, "cannot be read: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_the_rows_of_tuning),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_row_that_is_missing_keeps_its_value),
        cmocka_unit_test(rows_of_other_gpus_are_skipped),
        cmocka_unit_test(files_that_are_wrong_are_told_by_line),
        cmocka_unit_test(a_gpu_has_one_file),
        cmocka_unit_test(a_file_that_is_named_is_opened),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
