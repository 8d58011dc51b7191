/*
 * ACS_TOPOLOGY through the public API, on virtual devices: what a file may say and what it may not, and how acs_open
 * refuses one that is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "add_kernel.h"
#include "memory_fixture.h"
#include "api/context.h"
#include "residency/device_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 4096, LOG_BYTES = 16384 };

static char g_path[] = "/tmp/acs-links-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int file = mkstemp(g_path);
    return file < 0 || close(file) != 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(g_path);
}

static acs_status open_by(const char *path, int64_t devices, acs_context **context)
{
    acs_options options = host_options();
    options.devices = devices;
    options.pool = ACS_POOL_ON;
    (void)snprintf(options.topology, sizeof options.topology, "%s", path);
    return acs_open(&options, context);
}

static void write_file(const char *text)
{
    FILE *file = fopen(g_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* All links of two virtual devices: `between` them, and to and from the host. */
static void write_links(const char *between, const char *host)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "acs-topology 1\nlink virtual-0 virtual-1 300 3 %s\nlink virtual-1 virtual-0 300 3 %s\n"
                   "link virtual-0 host 50 3 %s\nlink host virtual-0 50 3 %s\n"
                   "link virtual-1 host 50 3 %s\nlink host virtual-1 50 3 %s\n",
                   between, between, host, host, host, host);
    write_file(text);
}

/* A kernel that reads memory of a device that it does not reach would fault. */
static void a_file_takes_peers_away_and_makes_none(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        acs_context *context = NULL;
        unsigned char *x[2];
        write_links(i ? "peer" : "staged", "peer");
        assert_int_equal(open_by(g_path, 2, &context), ACS_OK);
        const acs_topology *t = &context->device_choice->topology;
        assert_int_equal(t->links[0][1].peer, i);
        assert_false(t->links[0][2].peer); /* the backend says so */
        assert_false(t->links[2][1].peer);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(acs_on(context, k), ACS_OK);
            x[k] = block_of(context, ACS_MEMORY_DEVICE, BYTES);
            assert_true(acs_memset(context, x[k], 1, BYTES) > 0);
        }
        size_t bytes = BYTES;
        acs_op op = ACS_LAUNCH_ON(context, &g_add, 1, 1, 0, ACS_ARGS(x[0], x[1], bytes),
                                  ACS_USES(ACS_OUT(x[0], BYTES), ACS_IN(x[1], BYTES)));
        if (i)
            assert_true(op > 0);
        else
            refused(op, ACS_ERR_UNSUPPORTED, "which no device reaches");
        (void)acs_clear(context);
        assert_int_equal(acs_close(context), ACS_OK);
    }
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static void assert_bad(const char *path, int native, const char *why)
{
    acs_context *context = NULL;
    acs_error error = {.size = sizeof error};
    assert_int_equal(open_by(path, 2, &context), ACS_ERR_OPTION);
    assert_int_equal(acs_last_error(&error), ACS_ERR_OPTION);
    assert_int_equal(error.native, native);
    if (!strstr(error.text, "ACS_TOPOLOGY") || !strstr(error.text, path) || !strstr(error.text, why))
        fail_msg("'%s' is not in '%s', or what it is about", why, error.text);
}

static void bad_files_are_refused_by_name_and_line(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "line 1: "},
        {"topology\n", "line 1: 'topology'"},
        {"acs-topology 1\n# nothing\nlink virtual-0 host fast 3 staged\n", "line 3: 'link virtual-0 host fast"},
        {"acs-topology 1\n", "says nothing of the link from virtual-0 to virtual-1"},
    };
    (void)state;
    assert_bad("/no/such/file", ENOENT, "No such file");
    assert_bad("/tmp", EISDIR, "Is a directory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(rows[i].text);
        assert_bad(g_path, 0, rows[i].why);
    }
    write_links("peer", "peer\nlink host virtual-0 nan 3 staged");
    assert_bad(g_path, 0, "from host to virtual-0: nan GB/s cannot be");
    write_links("peer", "peer\nlink host virtual-0 0 3 staged");
    assert_bad(g_path, 0, "line 11: from host to virtual-0: 0 GB/s cannot be");
    write_links("peer", "peer\nlink host virtual-1 50 -1 staged");
    assert_bad(g_path, 0, "a latency of -1 us cannot be");
}

/* What acs_open logs, with the standard error of this process. */
static void log_of_open(acs_options *options, char text[LOG_BYTES])
{
    acs_context *context = NULL;
    FILE *log = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_true(log && before >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    options->log = ACS_LOG_INFO;
    acs_status status = acs_open(options, &context);
    if (status == ACS_OK)
        status = acs_close(context);
    assert_true(dup2(before, STDERR_FILENO) >= 0 && close(before) == 0);
    assert_int_equal(status, ACS_OK);
    rewind(log);
    text[fread(text, 1, LOG_BYTES - 1, log)] = '\0';
    assert_int_equal(fclose(log), 0);
}

static void a_file_that_has_no_effect_is_told(void **state)
{
    (void)state;
    char text[LOG_BYTES];
    acs_options options = host_options();
    (void)snprintf(options.topology, sizeof options.topology, "/no/such/file");
    log_of_open(&options, text);
    assert_non_null(strstr(text, "ACS_TOPOLOGY has no effect: there is one device"));
}

/* Nothing is recommended that cannot be done. */
static void virtual_devices_are_not_to_be_measured(void **state)
{
    (void)state;
    char text[LOG_BYTES];
    acs_options options = host_options();
    options.devices = 2;
    log_of_open(&options, text);
    assert_non_null(strstr(text, "ACS_DEVICES")); /* the log came here */
    assert_null(strstr(text, "--measure"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_takes_peers_away_and_makes_none),
        cmocka_unit_test(bad_files_are_refused_by_name_and_line),
        cmocka_unit_test(a_file_that_has_no_effect_is_told),
        cmocka_unit_test(virtual_devices_are_not_to_be_measured),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
