/* Unit tests of base/lock: exclusion, time limits on the monotonic clock, and the order of ranks in debug builds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/lock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20000

struct shared {
    acs_lock lock;
    acs_cond cond;
    int count;  /* guarded by lock */
    bool ready; /* guarded by lock */
};

static int set_up(void **state)
{
    struct shared *shared = calloc(1, sizeof *shared);
    *state = shared;
    return !shared || acs_lock_init(&shared->lock, ACS_RANK_CORE) != 0 || acs_cond_init(&shared->cond) != 0;
}

static int tear_down(void **state)
{
    struct shared *shared = *state;
    acs_cond_fini(&shared->cond);
    acs_lock_fini(&shared->lock);
    free(shared);
    return 0;
}

static void *count_up(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        acs_lock_acquire(&shared->lock);
        shared->count++;
        acs_lock_release(&shared->lock);
    }
    return NULL;
}

static void acquire_by_two_threads_excludes(void **state)
{
    struct shared *shared = *state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, count_up, shared), 0);
    count_up(shared);
    pthread_join(thread, NULL);

    assert_int_equal(shared->count, 2 * ROUNDS);
}

static void *try_once(void *argument)
{
    struct shared *shared = argument;
    bool got = acs_lock_try(&shared->lock);
    if (got)
        acs_lock_release(&shared->lock);
    return got ? shared : NULL;
}

static void *try_in_another_thread(struct shared *shared)
{
    pthread_t thread;
    void *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, try_once, shared), 0);
    pthread_join(thread, &got);
    return got;
}

static void try_on_a_held_lock_fails_at_once(void **state)
{
    struct shared *shared = *state;

    acs_lock_acquire(&shared->lock);
    void *while_held = try_in_another_thread(shared);
    acs_lock_release(&shared->lock);

    assert_null(while_held);
    assert_non_null(try_in_another_thread(shared));
}

static void wait_without_signal_ends_after_its_time(void **state)
{
    struct shared *shared = *state;
    uint64_t start = acs_clock_ns();
    bool signalled = true;

    acs_lock_acquire(&shared->lock);
    while (signalled) /* a wait may end early without a reason */
        signalled = acs_cond_wait_us(&shared->cond, &shared->lock, 20000);
    acs_lock_release(&shared->lock);

    assert_true(acs_clock_ns() - start >= 20000000);
}

static void *make_ready(void *argument)
{
    struct shared *shared = argument;
    acs_lock_acquire(&shared->lock);
    shared->ready = true;
    acs_cond_signal(&shared->cond);
    acs_lock_release(&shared->lock);
    return NULL;
}

static void wait_with_a_signal_ends_before_its_time(void **state)
{
    struct shared *shared = *state;
    pthread_t thread;
    bool in_time = true;

    acs_lock_acquire(&shared->lock);
    int created = pthread_create(&thread, NULL, make_ready, shared);
    while (created == 0 && !shared->ready && in_time)
        in_time = acs_cond_wait_us(&shared->cond, &shared->lock, UINT64_MAX); /* must not overflow to the past */
    acs_lock_release(&shared->lock);

    assert_int_equal(created, 0);
    pthread_join(thread, NULL);
    assert_true(in_time);
}

static void init_with_an_unknown_rank_is_refused(void **state)
{
    (void)state;
    acs_lock lock;
    assert_int_equal(acs_lock_init(&lock, 0), EINVAL);
    assert_int_equal(acs_lock_init(&lock, ACS_RANK_LOG + 1), EINVAL);
}

/* Take locks of two ranks in a child, in the order given. Its wait status is returned, what it wrote goes to `text`. */
static int take_in_child(int first, int second, char *text, size_t bytes)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        acs_lock a, b;
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL); /* cmocka catches it */
        dup2(ends[1], STDERR_FILENO);
        acs_lock_init(&a, first);
        acs_lock_init(&b, second);
        acs_lock_acquire(&a);
        acs_lock_acquire(&b);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, bytes - 1);
    text[length > 0 ? length : 0] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void acquire_in_increasing_rank_is_allowed(void **state)
{
    (void)state;
    char text[256];
    int status = take_in_child(ACS_RANK_CORE, ACS_RANK_POOL, text, sizeof text);
    assert_true(WIFEXITED(status));
    assert_string_equal(text, "");
}

static void acquire_in_decreasing_rank_aborts_naming_both(void **state)
{
    (void)state;
#ifndef ACS_ASSERTIONS
    skip(); /* ranks are not checked */
#endif
    char text[256];
    int status = take_in_child(ACS_RANK_POOL, ACS_RANK_CORE, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "acs: error: lock order: CORE taken while POOL is held\n"));
}

static void acquire_twice_in_one_rank_aborts(void **state)
{
    (void)state;
#ifndef ACS_ASSERTIONS
    skip();
#endif
    char text[256];
    int status = take_in_child(ACS_RANK_CORE, ACS_RANK_CORE, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "acs: error: lock order: CORE taken while CORE is held\n"));
}

static void acquire_after_release_of_a_higher_rank_is_allowed(void **state)
{
    struct shared *shared = *state;
    acs_lock pool;
    assert_int_equal(acs_lock_init(&pool, ACS_RANK_POOL), 0);

    acs_lock_acquire(&pool);
    acs_lock_release(&pool);
    acs_lock_acquire(&shared->lock); /* aborts if the release was not noted */
    acs_lock_acquire(&pool);
    acs_lock_release(&shared->lock); /* any order of release */
    acs_lock_release(&pool);

    acs_lock_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(acquire_by_two_threads_excludes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(try_on_a_held_lock_fails_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wait_without_signal_ends_after_its_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wait_with_a_signal_ends_before_its_time, set_up, tear_down),
        cmocka_unit_test(init_with_an_unknown_rank_is_refused),
        cmocka_unit_test(acquire_in_increasing_rank_is_allowed),
        cmocka_unit_test(acquire_in_decreasing_rank_aborts_naming_both),
        cmocka_unit_test(acquire_twice_in_one_rank_aborts),
        cmocka_unit_test_setup_teardown(acquire_after_release_of_a_higher_rank_is_allowed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
