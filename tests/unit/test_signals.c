/*
 * Signals, locks and the library's threads: a fault in the program's code on such a thread reaches the program's crash
 * handler, and signals from elsewhere do not come to such a thread. Faults happen in a child process. What runs there may
 * take a lock that a launching thread holds.
 */
#include "api_fixture.h"
#include "sanitizers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANDLED = 7, NOT_HANDLED = 1, HANG_SECONDS = 1800 };

static const int g_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static void crash_handler(int number)
{
    (void)number;
    _exit(HANDLED);
}

static void raise_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)raise(*(int *)args[0]);
}

static int raise_function(void *closure)
{
    (void)raise(*(int *)closure);
    return 0;
}

static const acs_kernel g_raise = ACS_KERNEL_HOST_INIT("raise", raise_body);

/* A child that raises the signal on a thread of the library; its exit status, or -1 where a signal ended it. */
static int child_that_raises(int number, bool kernel)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)signal(number, crash_handler);
        acs_context *context = open_on(ACS_BACKEND_HOST, 1);
        if (kernel)
            ACS_LAUNCH_ON(context, &g_raise, 1, 1, 0, ACS_ARGS(number), ACS_USES_NONE);
        else
            acs_host(context, raise_function, &number, sizeof number, ACS_USES_NONE);
        acs_sync(context);
        _exit(NOT_HANDLED); /* the signal waits for a thread that does not block it */
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fault_in_a_host_body_reaches_the_programs_handler(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_faults / sizeof g_faults[0]; i++)
        assert_int_equal(child_that_raises(g_faults[i], true), HANDLED);
}

static void fault_in_a_host_function_reaches_the_programs_handler(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof g_faults / sizeof g_faults[0]; i++)
        assert_int_equal(child_that_raises(g_faults[i], false), HANDLED);
}

/* ----------------------------------------------------------------------------------------------------------- masks */

static void mask_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)pthread_sigmask(SIG_SETMASK, NULL, *(sigset_t *const *)args[0]);
}

static const acs_kernel g_mask = ACS_KERNEL_HOST_INIT("mask", mask_body);

static sigset_t mask_of_an_executor(void)
{
    sigset_t mask, *to = &mask;
    sigemptyset(&mask);
    acs_context *context = open_on(ACS_BACKEND_HOST, 1);
    ACS_LAUNCH_ON(context, &g_mask, 1, 1, 0, ACS_ARGS(to), ACS_USES(ACS_OUT(to, sizeof mask)));
    assert_int_equal(acs_close(context), ACS_OK);
    return mask;
}

static void threads_of_the_library_block_other_signals(void **state)
{
    (void)state;
    sigset_t mask = mask_of_an_executor();
    static const int others[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGPROF};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_true(sigismember(&mask, others[i]));
}

static void signal_that_the_opening_thread_blocks_stays_blocked(void **state)
{
    (void)state;
    sigset_t trap, before;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &trap, &before);
    sigset_t mask = mask_of_an_executor();
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    assert_true(sigismember(&mask, SIGTRAP));
    assert_false(sigismember(&mask, SIGSEGV));
}

/* ------------------------------------------------------------------------------------------- the main thread is gone */

/* Wait until the main thread of a process has ended, and the process has not. */
static void wait_for_its_end(pid_t process)
{
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, process);
    for (;;) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file))
            abort();
        (void)fclose(file);
        if (strstr(line, ") Z"))
            return;
        (void)sched_yield();
    }
}

static void *close_behind_main(void *context)
{
    wait_for_its_end(getpid());
    return acs_close(context) == ACS_OK ? NULL : context;
}

/* A leak sanitizer would not find what the stack of the main thread, which has ended, pointed to. */
static void leave(int status, void *unused)
{
    (void)unused;
    _exit(status);
}

/* A child with a context whose main thread ends; the context ends too, where `closes`. */
static pid_t child_without_main(bool handles, bool closes)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)on_exit(leave, NULL);
        if (handles)
            (void)signal(SIGTERM, crash_handler);
        acs_context *context = open_on(ACS_BACKEND_HOST, 1);
        if (closes && pthread_create(&thread, NULL, close_behind_main, context))
            _exit(NOT_HANDLED);
        pthread_exit(NULL);
    }
    assert_true(child > 0);
    return child;
}

static void process_whose_main_thread_has_ended_obeys_signals(void **state)
{
    (void)state;
    for (int handles = 0; handles < 2; handles++) {
        int status = 0;
        pid_t child = child_without_main(handles, false);
        wait_for_its_end(child);
        assert_int_equal(kill(child, SIGTERM), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (handles)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
}

static void process_whose_main_thread_has_ended_ends_with_its_last_thread(void **state)
{
    (void)state;
    int status = 0;
    if (UNDER_THREAD_SANITIZER) /* it has a thread of its own, which goes on */
        skip();
    pid_t child = child_without_main(false, true);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --------------------------------------------------------------------------------------------------- program's locks */

typedef struct held_lock {
    pthread_mutex_t mutex; /* checks errors: its own thread is refused instead of hung */
    int refused, ran;
} held_lock;

static int take_the_lock(void *closure)
{
    held_lock *l = closure;
    const int error = pthread_mutex_lock(&l->mutex);
    l->refused += error != 0;
    l->ran++;
    if (!error)
        (void)pthread_mutex_unlock(&l->mutex);
    return 0;
}

static void retired_takes_the_lock(void *user, acs_op op, acs_status status)
{
    (void)op;
    (void)status;
    (void)take_the_lock(user);
}

/* Program order holds too: what comes behind a host function is not issued before it. */
static void lock_that_is_held_over_launches_may_be_taken_in_functions_and_callbacks(void **state)
{
    acs_options options;
    acs_context *context = NULL;
    pthread_mutexattr_t attributes;
    held_lock l = {.ran = 0};
    int x = 0;
    (void)state;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&l.mutex, &attributes);
    for (int mode = 0; mode < 4; mode++) {
        assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
        options.backend = ACS_BACKEND_HOST;
        options.disable = mode & 1;
        options.serial = mode >> 1;
        assert_int_equal(acs_open(&options, &context), ACS_OK);
        pthread_mutex_lock(&l.mutex);
        for (int i = 0; i < 20; i++) {
            int *to = &x;
            const acs_op op =
                ACS_LAUNCH_ON(context, &g_increment, 1, 1, 0, ACS_ARGS(to), ACS_USES(ACS_INOUT(to, sizeof x)));
            assert_true(acs_host(context, take_the_lock, &l, 0, ACS_USES(ACS_INOUT(&x, sizeof x))) > 0);
            assert_true(acs_on_retire(context, op, retired_takes_the_lock, &l) > 0);
        }
        pthread_mutex_unlock(&l.mutex);
        assert_int_equal(acs_sync(context), ACS_OK);
        assert_int_equal(l.ran, 40 * (mode + 1));
        assert_int_equal(l.refused, 0);
        assert_int_equal(acs_close(context), ACS_OK);
    }
    pthread_mutex_destroy(&l.mutex);
    pthread_mutexattr_destroy(&attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_in_a_host_body_reaches_the_programs_handler),
        cmocka_unit_test(fault_in_a_host_function_reaches_the_programs_handler),
        cmocka_unit_test(threads_of_the_library_block_other_signals),
        cmocka_unit_test(signal_that_the_opening_thread_blocks_stays_blocked),
        cmocka_unit_test(process_whose_main_thread_has_ended_obeys_signals),
        cmocka_unit_test(process_whose_main_thread_has_ended_ends_with_its_last_thread),
        cmocka_unit_test(lock_that_is_held_over_launches_may_be_taken_in_functions_and_callbacks),
    };
    alarm(HANG_SECONDS); /* a process that signals do not end */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
