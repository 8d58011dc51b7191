/*
 * Processes that fork, exec, exit and are killed while contexts are open and ops run: nothing hangs, a child's calls on its
 * parent's contexts are refused, and it may open its own, wherever the parent's other threads were. Some cases run this
 * program again, with a word as argument.
 */
#include "api_fixture.h"
#include "sanitizers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 50, HANG_S = 1800 };

/* ---------------------------------------------------------------------------------------------------- in the child */

static bool g_in_child;

/*
 * The leak sanitizer asks, where there is one, and finds only what the program exports. In a child it takes what its
 * parent's threads knew for lost, and waits for ever for the allocator's lock if one of these threads held it.
 */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return g_in_child;
}

static bool is_refused(acs_context *context)
{
    acs_error e = {.size = sizeof e};
    acs_launch_params launch = good_launch();
    bool refused = acs_sync(context) == ACS_ERR_STATE && acs_launch(context, &launch) == 0 &&
                   acs_last_error(&e) == ACS_ERR_STATE && acs_query(context, 1) == ACS_ERR_STATE &&
                   acs_step(context) == ACS_ERR_STATE && acs_clear(context) == ACS_ERR_STATE &&
                   acs_context_error(context, NULL) == ACS_ERR_STATE && acs_close(context) == ACS_ERR_STATE;
    return refused && strstr(e.text, "forked");
}

static bool own_context_works(void)
{
    acs_options options;
    acs_context *own = NULL;
    int x = 0;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_SIM; /* makes no threads */
    if (acs_open(&options, &own) != ACS_OK)
        return false;
    ACS_LAUNCH_ON(own, &g_increment, 1, 1, 0, ACS_ARGS(&x), ACS_USES(ACS_INOUT(&x, sizeof x)));
    return acs_group_begin(own, 0) == ACS_OK && acs_group_cancel(own) == ACS_OK && acs_sync(own) == ACS_OK && x == 1 &&
           acs_close(own) == ACS_OK;
}

/* How it ended: 0 is well, SIGALRM that it hung. */
static int status_of(pid_t child)
{
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* -------------------------------------------------------------------------------------------------- busy parents */

static atomic_bool g_stop;

static bool stopped(void)
{
    return atomic_load_explicit(&g_stop, memory_order_relaxed); /* nothing else is read by it */
}

static void *keep_launching(void *context)
{
    int x = 0;
    while (!stopped()) {
        for (int i = 0; i < 8; i++)
            ACS_LAUNCH_ON(context, &g_nothing, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(&x, sizeof x)));
        (void)acs_sync(context);
    }
    return NULL;
}

static void *keep_opening(void *unused)
{
    while (!stopped())
        (void)own_context_works();
    return unused;
}

/* The sanitizers' allocators of some compilers are not made ready for a fork beside other threads. */
static bool fork_beside_malloc_works(void)
{
    return !UNDER_ADDRESS_SANITIZER && !UNDER_THREAD_SANITIZER;
}

/* Whatever lock the other threads hold when the process forks, the loader's included. */
static void child_is_refused_and_may_open_its_own_wherever_threads_were(void **state)
{
    pthread_t launches, opens;
    int status = 0;
    if (!fork_beside_malloc_works())
        skip();
    atomic_store_explicit(&g_stop, false, memory_order_relaxed);
    assert_int_equal(pthread_create(&launches, NULL, keep_launching, *state), 0);
    assert_int_equal(pthread_create(&opens, NULL, keep_opening, NULL), 0);
    for (int i = 0; i < FORKS && status == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(HANG_S);
            _exit(!is_refused(*state) ? 2 : own_context_works() ? 0 : 1);
        }
        status = status_of(child);
    }
    atomic_store_explicit(&g_stop, true, memory_order_relaxed);
    pthread_join(launches, NULL);
    pthread_join(opens, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(acs_sync(*state), ACS_OK);
}

/* What the thread that forks holds is its parent's. */
static void child_may_make_groups_though_its_parent_holds_one(void **state)
{
    if (!fork_beside_malloc_works()) /* the context's threads */
        skip();
    assert_int_equal(acs_group_begin(*state, 0), ACS_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        g_in_child = true;
        _exit(acs_group_cancel(*state) != ACS_ERR_STATE ? 2 : own_context_works() ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(acs_group_cancel(*state), ACS_OK);
}

static void *open_default(void *unused)
{
    (void)acs_default();
    return unused;
}

static void stderr_to(int descriptor)
{
    fflush(stderr);
    dup2(descriptor, STDERR_FILENO);
    close(descriptor);
}

/* Start a thread that opens the default context and stands still in the midst of that: its log goes to a full pipe. */
static pthread_t open_default_halfway(int *pipe_end)
{
    static const char filling[4000];
    int ends[2], before = 0, now = 0;
    pthread_t opener;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(write(ends[1], filling, sizeof filling), sizeof filling); /* one line fits, of two or more */
    assert_int_equal(ioctl(ends[0], FIONREAD, &before), 0);
    stderr_to(ends[1]);
    setenv("ACS_LOG", "info", 1);
    setenv("ACS_BACKEND", "sim", 1);
    assert_int_equal(pthread_create(&opener, NULL, open_default, NULL), 0);
    do {
        sched_yield();
        assert_int_equal(ioctl(ends[0], FIONREAD, &now), 0);
    } while (now == before);
    *pipe_end = ends[0];
    return opener;
}

/* In a process of its own: the level of the log is the process's, and stays. */
static int fork_halfway(void)
{
    char drained[4096];
    int end;
    alarm(HANG_S);
    pthread_t opener = open_default_halfway(&end);
    pid_t child = fork();
    stderr_to(open("/dev/null", O_WRONLY));
    if (child == 0) {
        int x = 0;
        alarm(HANG_S);
        acs_context *own = acs_default();
        acs_op op = own ? queue_increment(own, &x) : 0;
        _exit(op && acs_wait(own, op) == ACS_OK && x == 1 ? 0 : 1);
    }
    bool well = status_of(child) == 0;
    while (read(end, drained, sizeof drained) > 0)
        continue;
    pthread_join(opener, NULL);
    return well && acs_sync(acs_default()) == ACS_OK ? 0 : 1;
}

static void child_may_use_a_default_context_that_its_parent_was_opening(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_fork", "halfway", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(status_of(child), 0);
}

/* ------------------------------------------------------------------------------------------- exit, exec, kill */

static atomic_int g_inside;

static void endless_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    (void)args;
    atomic_fetch_add_explicit(&g_inside, 1, memory_order_relaxed); /* a signal without data */
    while (!stopped())
        sched_yield();
}

static const acs_kernel g_endless = ACS_KERNEL_HOST_INIT("endless", endless_body);

/* An op that runs, one behind it, one in the FIFO perhaps. */
static void queue_what_does_not_end(acs_context *context, int *x)
{
    atomic_store_explicit(&g_inside, 0, memory_order_relaxed);
    for (int i = 0; i < 3; i++)
        ACS_LAUNCH_ON(context, &g_endless, 1, 1, 0, ACS_NO_ARGS, ACS_USES(ACS_INOUT(x, sizeof *x)));
    while (!atomic_load_explicit(&g_inside, memory_order_relaxed))
        sched_yield();
}

/* exit() runs what the library registered for it, which must leave the parent's default context alone. */
static void child_may_exit_or_exec_while_ops_run(void **state)
{
    static int x;
    int status[2] = {0};
    atomic_store_explicit(&g_stop, false, memory_order_relaxed);
    queue_what_does_not_end(*state, &x);
    assert_non_null(acs_default());
    for (int exec = 0; exec < 2; exec++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(HANG_S);
            if (exec)
                execl("/proc/self/exe", "test_fork", "work", (char *)NULL);
            g_in_child = true;
            exit(exec);
        }
        status[exec] = status_of(child);
    }
    atomic_store_explicit(&g_stop, true, memory_order_relaxed);
    assert_int_equal(acs_sync(*state), ACS_OK);
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], 0);
}

/* This program, started anew: a context with a thread and executors. */
static acs_context *open_host(void)
{
    acs_options options;
    acs_context *context = NULL;
    acs_options_init(&options, sizeof options);
    options.backend = ACS_BACKEND_HOST;
    return acs_open(&options, &context) == ACS_OK ? context : NULL;
}

static int work(void)
{
    int x = 0;
    acs_context *context = open_host();
    acs_op op = context ? queue_increment(context, &x) : 0;
    return op && acs_wait(context, op) == ACS_OK && acs_close(context) == ACS_OK && x == 1 ? 0 : 1;
}

/* A child that outlives its parent, and says at the end that all was well; the pipe's other end is closed with it. */
static void outlive(acs_context *context, pid_t parent, int end)
{
    alarm(HANG_S);
    while (getppid() == parent)
        sched_yield();
    bool well = is_refused(context) && own_context_works();
    _exit(write(end, well ? "well" : "bad!", 4) == 4 ? 0 : 1);
}

/* Ops run for ever, a child is there, and then the parent is killed. */
static int be_killed(int end)
{
    static int x;
    acs_context *context = open_host();
    pid_t self = getpid();
    alarm(HANG_S);
    if (!context)
        return 1;
    queue_what_does_not_end(context, &x);
    if (fork() == 0)
        outlive(context, self, end);
    if (write(end, "up", 2) != 2)
        return 1;
    return (int)acs_sync(context); /* never returns */
}

static void process_that_is_killed_while_ops_run_ends_and_its_child_goes_on(void **state)
{
    int ends[2], status = 0;
    char number[16], said[8] = "";
    (void)state;
    if (!fork_beside_malloc_works()) /* ops run, and threads begin, while it forks */
        skip();
    assert_int_equal(pipe(ends), 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_fork", "be-killed", number, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], said, 2), 2);
    assert_string_equal(said, "up");
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(read(ends[0], said, 4), 4);
    assert_string_equal(said, "well");
    assert_int_equal(read(ends[0], said, 1), 0); /* nobody is left */
    close(ends[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_may_use_a_default_context_that_its_parent_was_opening),
        HOST(child_is_refused_and_may_open_its_own_wherever_threads_were),
        HOST(child_may_make_groups_though_its_parent_holds_one),
        HOST(child_may_exit_or_exec_while_ops_run),
        cmocka_unit_test(process_that_is_killed_while_ops_run_ends_and_its_child_goes_on),
    };
    if (argc == 2 && !strcmp(argv[1], "halfway"))
        return fork_halfway();
    if (argc == 2 && !strcmp(argv[1], "work"))
        return work();
    if (argc == 3 && !strcmp(argv[1], "be-killed"))
        return be_killed(atoi(argv[2]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
