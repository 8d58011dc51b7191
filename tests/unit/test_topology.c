/*
 * Unit tests of devices/topology: what is possible, what a copy takes, the text in any order of devices, files that are
 * wrong, and where the file of a set of devices is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/topology.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Device k's links differ from all others'. */
static acs_topology some(uint32_t count)
{
    acs_topology t = {.count = count};
    for (uint32_t i = 0; i < count; i++)
        snprintf(t.id[i], sizeof t.id[i], "GPU-%u", i);
    for (uint32_t a = 0; a <= count; a++)
        for (uint32_t b = 0; b <= count; b++)
            if (a != b)
                t.links[a][b] = (acs_route){1e9 * (10.5 + a + 2.0 * b), 1e-6 * (1 + a + b), a < count && b < count};
    return t;
}

static FILE *file_of(const char *text)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    rewind(file);
    return file;
}

static void assert_refused(acs_status is, acs_status status, const char *why)
{
    assert_int_equal(is, status);
    if (!strstr(acs_error_thread()->text, why))
        fail_msg("'%s' is not in '%s'", why, acs_error_thread()->text);
}

static void a_copy_takes_its_latency_and_its_bytes(void **state)
{
    (void)state;
    acs_topology t = some(2);
    t.links[0][1] = (acs_route){4e9, 8e-6, true};
    assert_true(fabs(acs_topology_seconds(&t, 0, 1, 4000000000u) - 1.000008) < 1e-12);
    assert_true(acs_topology_seconds(&t, 0, 1, 0) == 0);
    assert_true(acs_topology_seconds(&t, 1, 1, 1000) == 0);
    assert_string_equal(acs_topology_place(&t, 1), "GPU-1");
    assert_string_equal(acs_topology_place(&t, 2), "host");
    acs_topology_id(t.id[0], "\x4d\x6d\x78\xf4\xd6\x33\xa2\x94\x22\xe8\x57\xae\x9c\x76\xf4\xee");
    assert_string_equal(t.id[0], "GPU-4d6d78f4-d633-a294-22e8-57ae9c76f4ee");
}

static void what_cannot_be_is_named(void **state)
{
    static const struct {
        acs_route link;
        const char *why;
    } rows[] = {
        {{0, 0, false}, "from GPU-0 to host: 0 GB/s cannot be"},
        {{1e15, 0, false}, "1e+06 GB/s cannot be"},
        {{NAN, 0, false}, "nan GB/s cannot be"},
        {{-1e9, 0, false}, "-1 GB/s cannot be"},
        {{1e9, -1e-6, false}, "a latency of -1 us cannot be"},
        {{1e9, 2, false}, "a latency of 2e+06 us cannot be"},
        {{1e9, NAN, false}, "a latency of nan us"},
        {{1e12, 0, false}, "1000 GB/s, but"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_topology t = some(2);
        assert_int_equal(acs_topology_check(&t), ACS_OK);
        t.links[0][2] = rows[i].link;
        assert_refused(acs_topology_check(&t), ACS_ERR_CHECK, rows[i].why);
    }
}

/* Devices come in another order, and only some of them. */
static void links_go_with_the_devices_whatever_their_order(void **state)
{
    (void)state;
    static const uint32_t order[] = {3, 0, 2};
    const acs_topology all = some(4);
    FILE *file = tmpfile();
    assert_int_equal(acs_topology_write(&all, file), ACS_OK);
    rewind(file);
    acs_topology t = {.count = 3};
    for (uint32_t i = 0; i < 3; i++)
        memcpy(t.id[i], all.id[order[i]], sizeof t.id[i]);
    assert_int_equal(acs_topology_read(&t, file, "it"), ACS_OK);
    for (uint32_t a = 0; a <= 3; a++)
        for (uint32_t b = 0; b <= 3; b++) {
            const acs_route *right = &all.links[a < 3 ? order[a] : 4][b < 3 ? order[b] : 4], *is = &t.links[a][b];
            assert_true(fabs(is->bandwidth - right->bandwidth) <= 1e-5 * right->bandwidth);
            assert_true(fabs(is->latency - right->latency) <= 1e-5 * right->latency);
            assert_int_equal(is->peer, right->peer);
        }
    fclose(file);
}

static void files_that_are_wrong_are_told_by_line(void **state)
{
#define TEN "          "
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "end"
#define GOOD "acs-topology 1\ndevice GPU-0\nlink GPU-0 host 50 5 staged\n"
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it, line 1: the file ends, but there is no 'acs-topology 1'"},
        {"# so far\n", "it, line 2: the file ends"},
        {"topology\n", "it, line 1: 'topology' is not 'acs-topology 1'"},
        {"acs-topology 12\n", "line 1"},
        {GOOD, "it says nothing of the link from host to GPU-0"},
        {GOOD "link host GPU-0 fast 5 staged\n", "line 4: 'link host GPU-0 fast 5 staged' is not 'link FROM TO"},
        {GOOD "link host GPU-0 50 5 maybe\n", "line 4"},
        {GOOD "link host GPU-0 50 5\n", "line 4"},
        {GOOD "link host GPU-0 50 5 peer peer\n", "line 4"},
        {GOOD "link host host 50 5 peer\n", "line 4"},
        {GOOD "\n# all is well\nlunch\n", "line 6: 'lunch'"},
        {GOOD "#" LONG "\nlunch\n", "line 5: 'lunch'"},
        {GOOD "link host GPU-0 50 5 staged" LONG "\n", "line 4: 'link host GPU-0 50 5 staged  "},
        {GOOD "link host GPU-0 0 5 staged\n", "it, line 4: from host to GPU-0: 0 GB/s cannot be"},
        {GOOD "link host GPU-0 nan 5 staged\n", "it, line 4: from host to GPU-0: nan GB/s cannot be"},
        {GOOD "link host GPU-0 50 -5 staged\n", "it, line 4: from host to GPU-0: a latency of -5 us cannot be"},
        {GOOD "link host GPU-0 1 5 staged\n", "it, line 3: from GPU-0 to host: 50 GB/s, but 1 GB/s back, cannot be"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        acs_topology t = {.count = 1, .id = {"GPU-0"}};
        FILE *file = file_of(rows[i].text);
        assert_refused(acs_topology_read(&t, file, "it"), ACS_ERR_OPTION, rows[i].why);
        fclose(file);
    }
    acs_topology t = {.count = 1, .id = {"GPU-0"}};
    FILE *file = file_of("\n# by hand\nacs-topology 1\n\n  \nlink host GPU-0 60 4 staged\nlink GPU-0 GPU-9 1 1 peer\n"
                         "link GPU-0 host 50 5 staged\n");
    assert_int_equal(acs_topology_read(&t, file, "it"), ACS_OK);
    assert_true(t.links[1][0].bandwidth == 60e9);
    fclose(file);
}

/* ------------------------------------------------------------------------------------------------------------ the file */

static char g_folder[] = "/tmp/acs-topology-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(g_folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return system(command);
}

/* Programs in a language that has commas instead of points. Where the system has none there is nothing to see. */
static void the_text_is_the_same_in_all_languages(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    (void)state;
    const acs_topology t = some(2);
    acs_topology same = some(2);
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !any; i++)
        any = setlocale(LC_ALL, names[i]) != NULL;
    FILE *file = file_of("");
    const acs_status written = acs_topology_write(&t, file);
    rewind(file);
    memset(same.links, 0, sizeof same.links);
    const acs_status read_again = acs_topology_read(&same, file, "it");
    const bool comma = any && strcmp(localeconv()->decimal_point, ",") == 0;
    setlocale(LC_ALL, "C");
    rewind(file);
    const acs_status read_plainly = acs_topology_read(&same, file, "it");
    fclose(file);
    assert_int_equal(written, ACS_OK);
    assert_int_equal(read_again, ACS_OK);
    assert_int_equal(read_plainly, ACS_OK);
    assert_true(fabs(same.links[0][1].bandwidth - t.links[0][1].bandwidth) < 1);
    if (!comma)
        skip();
}

static void a_set_of_devices_has_one_file(void **state)
{
    (void)state;
    char path[ACS_TOPOLOGY_PATH_BYTES], again[ACS_TOPOLOGY_PATH_BYTES], cache[64];
    struct stat file;
    const acs_topology t = some(3);
    acs_topology other = {.count = 3}, fewer = some(2), last = {.count = 2};
    snprintf(cache, sizeof cache, "%s/deep/er", g_folder);
    setenv("XDG_CACHE_HOME", cache, 1);
    for (uint32_t i = 0; i < 3; i++)
        memcpy(other.id[i], t.id[2 - i], sizeof t.id[i]);
    assert_int_equal(acs_topology_load(&other), ACS_NOT_READY);
    assert_int_equal(acs_topology_store(&t), ACS_OK);
    assert_int_equal(acs_topology_store(&t), ACS_OK);
    assert_int_equal(acs_topology_load(&other), ACS_OK);
    assert_true(other.links[0][2].bandwidth == t.links[2][0].bandwidth);
    fewer.links[0][2] = (acs_route){0};
    assert_int_equal(acs_topology_load(&fewer), ACS_OK); /* what a context with ACS_DEVICES=2 has */
    assert_true(fewer.links[0][2].bandwidth == t.links[0][3].bandwidth);
    for (uint32_t i = 0; i < 2; i++)
        memcpy(last.id[i], t.id[i + 1], sizeof t.id[i]);
    assert_int_equal(acs_topology_load(&last), ACS_NOT_READY);
    assert_int_equal(acs_topology_path(&t, path), ACS_OK);
    assert_int_equal(acs_topology_path(&other, again), ACS_OK);
    assert_string_equal(path, again);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(truncate(path, 40), 0);
    assert_refused(acs_topology_load(&other), ACS_ERR_OPTION, path);
}

static void folders_are_those_of_the_specification(void **state)
{
    (void)state;
    char path[ACS_TOPOLOGY_PATH_BYTES];
    const acs_topology t = some(1);
    setenv("HOME", g_folder, 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_int_equal(acs_topology_path(&t, path), ACS_OK);
    assert_int_equal(strncmp(path, g_folder, strlen(g_folder)), 0);
    assert_non_null(strstr(path, "/.cache/acs/topology-"));
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(acs_topology_store(&t), ACS_OK);
    unsetenv("HOME");
    assert_refused(acs_topology_path(&t, path), ACS_ERR_UNSUPPORTED, "XDG_CACHE_HOME");
    assert_refused(acs_topology_store(&t), ACS_ERR_UNSUPPORTED, "HOME");
    setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
    assert_refused(acs_topology_store(&t), ACS_ERR_STATE, "/proc/nothing/acs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_takes_its_latency_and_its_bytes),
        cmocka_unit_test(what_cannot_be_is_named),
        cmocka_unit_test(links_go_with_the_devices_whatever_their_order),
        cmocka_unit_test(files_that_are_wrong_are_told_by_line),
        cmocka_unit_test(the_text_is_the_same_in_all_languages),
        cmocka_unit_test(a_set_of_devices_has_one_file),
        cmocka_unit_test(folders_are_those_of_the_specification),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
