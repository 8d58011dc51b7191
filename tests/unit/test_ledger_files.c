/*
 * Unit tests of devices/ledger: its file, who may use it, and what cannot be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/ledger.h"
#include "ledger_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static acs_status join_by(const char *name)
{
    acs_ledger *ledger = NULL;
    const acs_ledger_config config = {.name = name, .device = "GPU-1", .total = TOTAL};
    acs_status status = acs_ledger_open(&config, &ledger);
    acs_ledger_close(ledger);
    return status;
}

static void files_that_cannot_be_used_are_told(void **state)
{
    (void)state;
    ledger_seen s = {0};
    char long_name[ACS_LEDGER_NAME_BYTES + 8];
    memset(long_name, 'x', sizeof long_name);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    (void)shm_unlink(g_path);
    assert_int_equal(acs_ledger_each(g_name, add_line, &s), ACS_NOT_READY);
    assert_refused(join_by("acs"), ACS_ERR_OPTION, "'acs' is not the name of a ledger");
    assert_refused(join_by("/"), ACS_ERR_OPTION, "not the name");
    assert_refused(join_by("/a/b"), ACS_ERR_OPTION, "not the name");
    assert_refused(join_by(long_name), ACS_ERR_OPTION, "not the name");
    int file = shm_open(g_path, O_CREAT | O_RDWR, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, "something else", 14), 14);
    assert_refused(join_by(g_name), ACS_ERR_STATE, "it has another layout, or is damaged");
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(fchmod(file, 0644), 0);
    assert_refused(join_by(g_name), ACS_ERR_STATE, "others may reach it");
    assert_int_equal(fchmod(file, 0600), 0);
    assert_int_equal(join_by(g_name), ACS_OK); /* an empty one was begun by somebody who was killed */
    close(file);
}

/* As the first program to join, with nothing of the file there yet. */
static acs_status join_first(mode_t mask, rlim_t most)
{
    (void)shm_unlink(g_path);
    fflush(NULL);
    int how = -1;
    pid_t child = fork();
    if (child == 0) {
        umask(mask);
        (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
        _exit((int)join_by(g_name));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how)); /* no signal */
    return (acs_status)WEXITSTATUS(how);
}

/* What touching a page of it could not end the program for: all of it is there, or it is not used. */
static void the_first_makes_a_file_that_all_can_use(void **state)
{
    (void)state;
    struct stat is;
    assert_int_equal(join_first(0, 1000), ACS_ERR_STATE);
    assert_int_equal(join_first(0777, RLIM_INFINITY), ACS_OK);
    int file = shm_open(g_path, O_RDWR, 0);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
    assert_true(is.st_blocks * 512 >= is.st_size);
    const off_t bytes = is.st_size;
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(ftruncate(file, bytes), 0); /* the same size, and nothing in it */
    assert_int_equal(join_by(g_name), ACS_OK);
    assert_int_equal(fstat(file, &is), 0);
    assert_true(is.st_blocks * 512 >= bytes);
    close(file);
}

static void entries_come_to_an_end(void **state)
{
    (void)state;
    acs_ledger *all[600] = {NULL};
    const acs_ledger_config config = {.name = g_name, .device = "GPU-1", .total = TOTAL};
    uint32_t count = 0;
    acs_status status;
    while ((status = acs_ledger_open(&config, &all[count])) == ACS_OK)
        count++;
    assert_refused(status, ACS_ERR_STATE, "all 512 entries of the ledger are taken");
    assert_int_equal(count, 512);
    while (count > 0)
        acs_ledger_close(all[--count]);
    assert_int_equal(join_by(g_name), ACS_OK);
}

/* The test ends by SIGBUS where a page that is gone is touched. */
static void truncated_file_is_told_and_not_touched(void **state)
{
    (void)state;
    uint64_t room;
    bool awaited;
    acs_demand demand = {0}, others;
    acs_ledger *ledger = join_on("GPU-1");
    assert_int_equal(acs_ledger_take(ledger, 10), ACS_OK);
    int file = shm_open(g_path, O_RDWR, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 0), 0);

    assert_refused(acs_ledger_take(ledger, 10), ACS_ERR_STATE, "its file was truncated");
    assert_refused(acs_ledger_wait(ledger, 10), ACS_ERR_STATE, "its file was truncated");
    assert_refused(acs_ledger_look(ledger, &room, &others, &awaited), ACS_ERR_STATE, "its file was truncated");
    acs_ledger_obtained(ledger, 10);
    acs_ledger_reclaimable(ledger, 10);
    acs_ledger_runs(ledger, &demand);
    acs_ledger_nap(ledger);
    acs_ledger_give(ledger, 10, 10);
    assert_int_equal(acs_ledger_reserved(ledger), 0);

    acs_ledger *newcomer = join_on("GPU-1"); /* makes the file anew */
    assert_int_equal(acs_ledger_take(newcomer, TOTAL), ACS_OK);
    assert_int_equal(acs_ledger_take(ledger, 10), ACS_ERR_STATE);
    acs_ledger_close(ledger);
    acs_ledger_close(newcomer);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_cannot_be_used_are_told),
        cmocka_unit_test(the_first_makes_a_file_that_all_can_use),
        cmocka_unit_test(entries_come_to_an_end),
        cmocka_unit_test(truncated_file_is_told_and_not_touched),
    };
    return cmocka_run_group_tests(tests, make_name, remove_file);
}
