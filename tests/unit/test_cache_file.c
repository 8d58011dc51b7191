/*
 * Files in the user's cache: where they are, and what becomes of a store that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/cache_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char g_folder[] = "/tmp/acs-cache-XXXXXX";

static acs_status write_text(const void *what, FILE *file)
{
    return fputs(what, file) < 0 ? ACS_FAIL(ACS_ERR_STATE, 0, "the text was not written") : ACS_OK;
}

static acs_status write_nothing(const void *what, FILE *file)
{
    (void)what;
    (void)file;
    return ACS_FAIL(ACS_ERR_DEVICE, 7, "there is nothing to write");
}

static void make_path(char path[ACS_CACHE_PATH_BYTES], const char *name)
{
    (void)snprintf(path, ACS_CACHE_PATH_BYTES, "%s/%s", g_folder, name);
}

/* The file has this line alone. */
static void assert_text(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fgets(text, sizeof text, file) != NULL);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
}

static void assert_failed(acs_status status, acs_status expected, const char *names)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(status, expected);
    assert_int_equal(acs_last_error(&error), expected);
    assert_non_null(strstr(error.text, names));
}

static void folders_are_made_and_older_files_replaced(void **state)
{
    (void)state;
    char path[ACS_CACHE_PATH_BYTES];
    make_path(path, "a/b/file");
    assert_int_equal(acs_cache_store(path, write_text, "one"), ACS_OK);
    assert_int_equal(acs_cache_store(path, write_text, "two"), ACS_OK);
    assert_text(path, "two");
    assert_int_equal(unlink(path), 0);
}

static void an_older_file_stays_if_the_writer_fails(void **state)
{
    (void)state;
    char path[ACS_CACHE_PATH_BYTES];
    make_path(path, "a/b/kept");
    assert_int_equal(acs_cache_store(path, write_text, "old"), ACS_OK);
    assert_failed(acs_cache_store(path, write_nothing, NULL), ACS_ERR_DEVICE, "nothing to write");
    assert_text(path, "old");
    assert_int_equal(unlink(path), 0);
    make_path(path, "a/b");
    assert_int_equal(rmdir(path), 0); /* the new file is gone, too */
    make_path(path, "a");
    assert_int_equal(rmdir(path), 0);
}

static void a_store_that_fails_tells_where(void **state)
{
    (void)state;
    char path[ACS_CACHE_PATH_BYTES], name[251];
    make_path(path, "plain");
    assert_int_equal(acs_cache_store(path, write_text, "x"), ACS_OK);
    make_path(path, "plain/below/file"); /* a file is no folder */
    assert_failed(acs_cache_store(path, write_text, "x"), ACS_ERR_STATE, "making the folders of");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    make_path(path, name); /* the new file's name is too long, the file's own is not */
    assert_failed(acs_cache_store(path, write_text, "x"), ACS_ERR_STATE, "writing");
    make_path(path, "folder/");
    assert_int_equal(mkdir(path, 0700), 0);
    make_path(path, "folder");
    assert_failed(acs_cache_store(path, write_text, "x"), ACS_ERR_STATE, "replacing");
    assert_int_equal(rmdir(path), 0);
    make_path(path, "plain");
    assert_int_equal(unlink(path), 0);
}

static void the_folder_comes_from_the_environment(void **state)
{
    (void)state;
    char path[ACS_CACHE_PATH_BYTES], *longest = malloc(ACS_CACHE_PATH_BYTES + 1);
    assert_non_null(longest);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/cache", 1), 0);
    assert_int_equal(acs_cache_path("links", 0xabc, path), ACS_OK);
    assert_string_equal(path, "/cache/acs/links-0000000000000abc");
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", "/home", 1), 0);
    assert_int_equal(acs_cache_path("links", 1, path), ACS_OK);
    assert_string_equal(path, "/home/.cache/acs/links-0000000000000001");
    assert_int_equal(setenv("HOME", "", 1), 0);
    assert_failed(acs_cache_path("links", 1, path), ACS_ERR_UNSUPPORTED, "HOME");
    memset(longest, '/', ACS_CACHE_PATH_BYTES);
    longest[ACS_CACHE_PATH_BYTES] = '\0';
    assert_int_equal(setenv("HOME", longest, 1), 0);
    assert_failed(acs_cache_path("links", 1, path), ACS_ERR_UNSUPPORTED, "too long");
    free(longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_made_and_older_files_replaced),
        cmocka_unit_test(an_older_file_stays_if_the_writer_fails),
        cmocka_unit_test(a_store_that_fails_tells_where),
        cmocka_unit_test(the_folder_comes_from_the_environment),
    };
    if (!mkdtemp(g_folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(g_folder);
    return failed;
}
