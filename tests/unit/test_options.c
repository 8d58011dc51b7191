/* Unit tests of base/options: defaults, parsing, ranges, struct sizes, the dump, unknown variables, the document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/options.h"
#include "devices/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every test starts without any variable of ours. */
static int clear_environment(void **state)
{
    (void)state;
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help) unsetenv(env);
#define ACS_OPT_CHOICE(field, env, def, names, help) unsetenv(env);
#define ACS_OPT_TEXT(field, env, def, form, help) unsetenv(env);
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
    unsetenv("ACS_WINDOWS");
    return 0;
}

static acs_options defaults(void)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    return options;
}

/* The text of the latest error. */
static const char *error_text(void)
{
    return acs_error_thread()->text;
}

static void init_without_variables_gives_the_defaults(void **state)
{
    (void)state;
    acs_options options = defaults();

    assert_int_equal(options.size, sizeof options);
    assert_int_equal(options.backend, ACS_BACKEND_AUTO);
    assert_int_equal(options.streams, 64);
    assert_int_equal(options.wait, ACS_WAIT_GPU);
    assert_string_equal(options.cpus, "");
    assert_int_equal(acs_options_check(&options), ACS_OK);
}

static void init_reads_numbers_names_and_texts(void **state)
{
    (void)state;
    setenv("ACS_WINDOW", "4096", 1);
    setenv("ACS_BACKEND", "sim", 1);
    setenv("ACS_SERIAL", "1", 1);
    setenv("ACS_CPUS", "0,2,8-11", 1);
    setenv("ACS_SEED", "9223372036854775807", 1);

    acs_options options = defaults();

    assert_int_equal(options.window, 4096);
    assert_int_equal(options.backend, ACS_BACKEND_SIM);
    assert_int_equal(options.serial, 1);
    assert_string_equal(options.cpus, "0,2,8-11");
    assert_int_equal(options.seed, INT64_MAX);
}

static void init_with_a_bad_number_names_variable_value_and_range(void **state)
{
    (void)state;
    static const char *const bad[] = {"0", "4097", "-1", "12x", " 12", "12 ", "+12", "0x10", "", "1e3", "one",
                                      "99999999999999999999", "-99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        acs_options options;
        char expected[200];
        setenv("ACS_WINDOW", bad[i], 1);
        setenv("ACS_STREAMS", "3", 1);

        acs_status status = acs_options_init(&options, sizeof options);

        snprintf(expected, sizeof expected, "ACS_WINDOW is \"%s\"; it must be a whole number from 1 to 4096 ops", bad[i]);
        assert_int_equal(status, ACS_ERR_OPTION);
        assert_string_equal(error_text(), expected);
        assert_int_equal(options.window, 256); /* the default for it, */
        assert_int_equal(options.streams, 3);  /* the environment's for the others */
    }
}

static void init_with_a_number_beyond_64_bits_is_refused(void **state)
{
    (void)state;
    acs_options options;
    setenv("ACS_SEED", "9223372036854775808", 1);
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_ERR_OPTION);
    assert_int_equal(options.seed, 0);
}

static void init_with_two_bad_values_names_the_first(void **state)
{
    (void)state;
    acs_options options;
    setenv("ACS_FIFO", "x", 1);
    setenv("ACS_BATCH", "y", 1);
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_ERR_OPTION);
    assert_non_null(strstr(error_text(), "ACS_FIFO is \"x\""));
}

static void init_with_a_bad_name_lists_the_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"gp", "gpuu", "gpu|host", "GPU", "", "0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        acs_options options;
        setenv("ACS_WAIT", bad[i], 1);
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_ERR_OPTION);
        assert_non_null(strstr(error_text(), "it must be one of gpu|host"));
        assert_int_equal(options.wait, ACS_WAIT_GPU);
    }
}

static void init_with_a_text_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[ACS_OPTION_TEXT_BYTES + 1];
    acs_options options;
    memset(text, '1', sizeof text);
    text[ACS_OPTION_TEXT_BYTES - 1] = 0;

    setenv("ACS_CPUS", text, 1);
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    assert_string_equal(options.cpus, text);

    text[ACS_OPTION_TEXT_BYTES - 1] = '1';
    text[ACS_OPTION_TEXT_BYTES] = 0;
    setenv("ACS_CPUS", text, 1);
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_ERR_OPTION);
    assert_string_equal(options.cpus, "");
}

static void init_with_a_shorter_struct_stays_inside_it(void **state)
{
    (void)state;
    acs_options options;
    memset(&options, 0x5a, sizeof options);

    assert_int_equal(acs_options_init(&options, offsetof(acs_options, streams)), ACS_OK);

    assert_int_equal(options.size, offsetof(acs_options, streams));
    assert_int_equal(options.fifo, 1024);
    assert_int_equal(options.streams, 0x5a5a5a5a5a5a5a5a);
}

static void init_with_an_impossible_size_or_no_struct_is_refused(void **state)
{
    (void)state;
    acs_options options;
    assert_int_equal(acs_options_init(&options, 0), ACS_ERR_OPTION);
    assert_int_equal(acs_options_init(&options, sizeof options + 8), ACS_ERR_OPTION);
    assert_int_equal(acs_options_init(NULL, sizeof options), ACS_ERR_ARGUMENT);
}

static void adopt_of_a_whole_struct_keeps_every_field(void **state)
{
    (void)state;
    acs_options from = defaults(), to;
    from.window = 7;
    from.faults = 1000;
    strcpy(from.cpus, "3");

    assert_int_equal(acs_options_adopt(&to, &from), ACS_OK);

    assert_memory_equal(&to, &from, sizeof to);
}

static void adopt_of_an_older_struct_gives_defaults_to_the_rest(void **state)
{
    (void)state;
    acs_options from = defaults(), to;
    from.window = 7;
    from.streams = 60;                                  /* last field that is whole */
    from.workers = 33;                                  /* this one is cut */
    from.size = offsetof(acs_options, workers) + 4;

    assert_int_equal(acs_options_adopt(&to, &from), ACS_OK);

    assert_int_equal(to.size, sizeof to);
    assert_int_equal(to.window, 7);
    assert_int_equal(to.streams, 60);
    assert_int_equal(to.workers, 1);
}

static void adopt_of_an_impossible_size_is_refused(void **state)
{
    (void)state;
    acs_options from = defaults(), to;
    from.size = 0;
    assert_int_equal(acs_options_adopt(&to, &from), ACS_ERR_OPTION);
    from.size = sizeof from + 1;
    assert_int_equal(acs_options_adopt(&to, &from), ACS_ERR_OPTION);
}

static void check_of_a_bad_value_names_it_and_its_range(void **state)
{
    (void)state;
    acs_options options = defaults();
    options.streams = 65;
    assert_int_equal(acs_options_check(&options), ACS_ERR_OPTION);
    assert_string_equal(error_text(), "option streams (ACS_STREAMS) is 65; it must be a whole number from 1 to 64 streams");

    options = defaults();
    options.wait = 2;
    assert_int_equal(acs_options_check(&options), ACS_ERR_OPTION);
    assert_string_equal(error_text(), "option wait (ACS_WAIT) is 2; it must be one of gpu|host");
    options.wait = -1;
    assert_int_equal(acs_options_check(&options), ACS_ERR_OPTION);
}

static void check_of_a_text_without_end_is_refused(void **state)
{
    (void)state;
    acs_options options = defaults();
    memset(options.cpus, '1', sizeof options.cpus);
    assert_int_equal(acs_options_check(&options), ACS_ERR_OPTION);
}

/* ----------------------------------------------------------------------------------------------------------- dump */

static void dump_tells_where_each_value_came_from(void **state)
{
    (void)state;
    char text[4096];
    setenv("ACS_WINDOW", "32", 1);
    setenv("ACS_FIFO", "64", 1);
    setenv("ACS_BATCH", "16", 1);
    acs_options options = defaults();
    options.fifo = 128;              /* the program's, over the environment's */
    options.wait = ACS_WAIT_HOST;    /* the program's */

    size_t length = acs_options_dump(&options, text, sizeof text);

    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "ACS_WINDOW=32 (environment)\n"));
    assert_non_null(strstr(text, "ACS_FIFO=128 (program)\n"));
    assert_non_null(strstr(text, "ACS_BATCH=16 (environment)\n"));
    assert_non_null(strstr(text, "ACS_WAIT=host (program)\n"));
    assert_non_null(strstr(text, "ACS_STREAMS=64 (default)\n"));
    assert_non_null(strstr(text, "ACS_CPUS= (default)\n"));
}

static void dump_without_room_returns_what_it_needs(void **state)
{
    (void)state;
    char text[4096], little[10];
    acs_options options = defaults();

    size_t length = acs_options_dump(&options, text, sizeof text);

    assert_int_equal(acs_options_dump(&options, NULL, 0), length);
    assert_int_equal(acs_options_dump(&options, little, sizeof little), length);
    assert_memory_equal(little, text, sizeof little - 1);
    assert_int_equal(little[sizeof little - 1], 0);
}

static void dump_of_values_out_of_range_prints_numbers(void **state)
{
    (void)state;
    char text[4096];
    acs_options options = defaults();
    options.backend = 99;
    memset(options.cpus, '7', sizeof options.cpus);
    options.executors = '8'; /* the byte behind the text that has no end */

    acs_options_dump(&options, text, sizeof text);

    assert_non_null(strstr(text, "ACS_BACKEND=99 (program)\n"));
    assert_non_null(strstr(text, "7777 (program)\n"));
}

/* ------------------------------------------------------------------------------------------------ unknown variables */

static void read_options(void)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    assert_int_equal(options.stats, 0);
    assert_int_equal(options.log, ACS_LOG_OFF);
    assert_string_equal(options.dot, "");
    assert_int_equal(options.window, 32);
}

static void capture(void (*function)(void), char *text, size_t bytes)
{
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    function();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t length = read(ends[0], text, bytes - 1);
    text[length > 0 ? length : 0] = 0;
    close(ends[0]);
}

static void unknown_variable_is_told_once_with_the_nearest_whatever_the_log_level(void **state)
{
    (void)state;
    char text[1024];
    setenv("ACS_WINDOW", "32", 1);
    setenv("ACS_WINDOWS", "5", 1);

    capture(read_options, text, sizeof text);

    assert_non_null(strstr(text, " acs: warn: unknown variable ACS_WINDOWS is ignored; the nearest known is ACS_WINDOW\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    setenv("ACS_STREEMS", "5", 1);
    capture(read_options, text, sizeof text);
    assert_non_null(strstr(text, "ACS_STREEMS is ignored; the nearest known is ACS_STREAMS\n"));
    assert_null(strstr(text, "ACS_WINDOWS"));
    capture(read_options, text, sizeof text);
    assert_string_equal(text, "");
}

static void unknown_variables_are_not_those_of_tools_or_of_other_prefixes(void **state)
{
    (void)state;
    char text[1024];
    setenv("ACS_WINDOW", "32", 1);
    setenv("ACS_STREAMS", "5", 1);
    setenv("MACS_WINDOW", "5", 1);
    setenv("ACS_LIBRARY", "/libacs.so", 1); /* the Python package's */

    capture(read_options, text, sizeof text);

    unsetenv("MACS_WINDOW");
    unsetenv("ACS_LIBRARY");
    assert_string_equal(text, "");
}

static void bad_value_of_an_option_that_changes_no_result_is_told_once(void **state)
{
    (void)state;
    char text[2048], path[ACS_OPTION_TEXT_BYTES + 1];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    setenv("ACS_STATS", "yes", 1);
    setenv("ACS_LOG", "loud", 1);
    setenv("ACS_DOT", path, 1);
    setenv("ACS_WINDOW", "32", 1);

    capture(read_options, text, sizeof text);

    assert_non_null(strstr(text, "acs: warn: ACS_STATS is \"yes\"; it must be one of 0|1; the default is used\n"));
    assert_non_null(strstr(text, "ACS_LOG is \"loud\""));
    assert_non_null(strstr(text, "ACS_DOT is \"xxx"));
    capture(read_options, text, sizeof text);
    assert_string_equal(text, "");
}

/* ---------------------------------------------------------------------------------------------------- set-user-ID */

static int g_secure;
char *__real_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);

char *__wrap_secure_getenv(const char *name)
{
    return g_secure ? NULL : __real_secure_getenv(name);
}

static void names_of_files_are_not_taken_from_the_environment_of_a_secure_program(void **state)
{
    (void)state;
    setenv("ACS_DOT", "graph", 1);
    setenv("ACS_MEMORY_LOG", "log", 1);
    setenv("ACS_TOPOLOGY", "links", 1);
    setenv("ACS_LEDGER", "/shared", 1);
    setenv("ACS_TRACE", "trace", 1);
    setenv("ACS_REPORT", "page", 1);
    setenv("ACS_WINDOW", "32", 1);
    acs_options usual = defaults();
    g_secure = 1;
    acs_options secure = defaults();
    g_secure = 0;

    assert_string_equal(usual.dot, "graph");
    assert_string_equal(usual.memory_log, "log");
    assert_string_equal(usual.topology, "links");
    assert_string_equal(usual.ledger, "/shared");
    assert_string_equal(usual.trace, "trace");
    assert_string_equal(usual.report, "page");
    assert_string_equal(secure.trace, "");
    assert_string_equal(secure.report, "");
    assert_string_equal(secure.ledger, "");
    assert_string_equal(secure.dot, "");
    assert_string_equal(secure.memory_log, "");
    assert_string_equal(secure.topology, "");
    assert_int_equal(secure.window, 32);
}

/* The links that acs-info --measure keeps, below a folder that the caller may choose. */
static void a_secure_program_reads_no_links_from_its_callers_cache(void **state)
{
    (void)state;
    const acs_topology t = {.count = 1};
    char path[ACS_TOPOLOGY_PATH_BYTES] = "";
    setenv("XDG_CACHE_HOME", "/somewhere", 1);
    setenv("HOME", "/elsewhere", 1);
    assert_int_equal(acs_topology_path(&t, path), ACS_OK);
    g_secure = 1;
    const acs_status secure = acs_topology_path(&t, path);
    g_secure = 0;
    assert_int_equal(secure, ACS_ERR_UNSUPPORTED);
}

static void markdown_has_a_line_for_every_option(void **state)
{
    (void)state;
    size_t length = acs_options_markdown(NULL, 0);
    char *text = malloc(length + 1);
    assert_non_null(text);

    assert_int_equal(acs_options_markdown(text, length + 1), length);

    assert_int_equal(strlen(text), length);
#define ACS_OPT_NUMBER(field, env, def, lo, hi, unit, help) assert_non_null(strstr(text, "| `" env "` | `" #field "` |"));
#define ACS_OPT_CHOICE(field, env, def, names, help) assert_non_null(strstr(text, "| `" env "` | `" #field "` |"));
#define ACS_OPT_TEXT(field, env, def, form, help) assert_non_null(strstr(text, "| `" env "` | `" #field "` |"));
#include "acs_options.def"
#undef ACS_OPT_NUMBER
#undef ACS_OPT_CHOICE
#undef ACS_OPT_TEXT
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(init_without_variables_gives_the_defaults, clear_environment),
        cmocka_unit_test_setup(init_reads_numbers_names_and_texts, clear_environment),
        cmocka_unit_test_setup(init_with_a_bad_number_names_variable_value_and_range, clear_environment),
        cmocka_unit_test_setup(init_with_a_number_beyond_64_bits_is_refused, clear_environment),
        cmocka_unit_test_setup(init_with_two_bad_values_names_the_first, clear_environment),
        cmocka_unit_test_setup(init_with_a_bad_name_lists_the_names, clear_environment),
        cmocka_unit_test_setup(init_with_a_text_that_is_too_long_is_refused, clear_environment),
        cmocka_unit_test_setup(init_with_a_shorter_struct_stays_inside_it, clear_environment),
        cmocka_unit_test_setup(init_with_an_impossible_size_or_no_struct_is_refused, clear_environment),
        cmocka_unit_test_setup(adopt_of_a_whole_struct_keeps_every_field, clear_environment),
        cmocka_unit_test_setup(adopt_of_an_older_struct_gives_defaults_to_the_rest, clear_environment),
        cmocka_unit_test_setup(adopt_of_an_impossible_size_is_refused, clear_environment),
        cmocka_unit_test_setup(check_of_a_bad_value_names_it_and_its_range, clear_environment),
        cmocka_unit_test_setup(check_of_a_text_without_end_is_refused, clear_environment),
        cmocka_unit_test_setup(dump_tells_where_each_value_came_from, clear_environment),
        cmocka_unit_test_setup(dump_without_room_returns_what_it_needs, clear_environment),
        cmocka_unit_test_setup(dump_of_values_out_of_range_prints_numbers, clear_environment),
        cmocka_unit_test_setup(unknown_variable_is_told_once_with_the_nearest_whatever_the_log_level,
                               clear_environment),
        cmocka_unit_test_setup(unknown_variables_are_not_those_of_tools_or_of_other_prefixes, clear_environment),
        cmocka_unit_test_setup(bad_value_of_an_option_that_changes_no_result_is_told_once, clear_environment),
        cmocka_unit_test_setup(names_of_files_are_not_taken_from_the_environment_of_a_secure_program, clear_environment),
        cmocka_unit_test_setup(a_secure_program_reads_no_links_from_its_callers_cache, clear_environment),
        cmocka_unit_test_setup(markdown_has_a_line_for_every_option, clear_environment),
    };
    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
