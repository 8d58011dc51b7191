/*
 * Unit tests of devices/ledger: what fits, who waits for whom, what cannot be, children, and programs that are killed at any
 * instant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/tuning.h"
#include "devices/ledger.h"
#include "ledger_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 8 };
#ifndef KILLS
#define KILLS 1000
#endif

static acs_ledger *join(void)
{
    return join_on("GPU-1");
}

static void what_is_taken_is_missing_for_others_on_the_same_device(void **state)
{
    (void)state;
    acs_ledger *a = join(), *b = join(), *other = join_on("GPU-2");
    assert_int_equal(acs_ledger_take(a, 600), ACS_OK);
    assert_int_equal(acs_ledger_take(b, 401), ACS_NOT_READY);
    assert_int_equal(acs_ledger_take(b, 400), ACS_OK);
    assert_int_equal(acs_ledger_take(a, 1), ACS_NOT_READY);
    assert_int_equal(acs_ledger_take(other, TOTAL), ACS_OK);
    acs_ledger_obtained(a, 500);
    assert_int_equal(look().reserved, 2 * TOTAL);
    assert_int_equal(look().obtained, 500);
    acs_ledger_give(a, 300, 300);
    assert_int_equal(acs_ledger_reserved(a), 300);
    assert_int_equal(acs_ledger_take(b, 300), ACS_OK);
    acs_ledger_close(b);
    assert_int_equal(acs_ledger_take(a, 700), ACS_OK);
    acs_ledger_close(a);
    acs_ledger_close(other);
    assert_int_equal(look().lines, 0);
}

/* Memory of programs that did not join. */
static acs_status left_of(void *user, uint32_t number, uint64_t *bytes)
{
    (void)number;
    *bytes = *(uint64_t *)user;
    return *bytes == 77 ? ACS_FAIL(ACS_ERR_DEVICE, 1, "it does not answer") : ACS_OK;
}

static void what_the_device_has_left_counts_too(void **state)
{
    (void)state;
    acs_ledger *a = NULL, *b = join();
    uint64_t left = 500;
    const acs_ledger_config config = {.name = g_name, .device = "GPU-1", .total = TOTAL, .user = &left, .left = left_of};
    assert_int_equal(acs_ledger_open(&config, &a), ACS_OK);
    assert_int_equal(acs_ledger_take(a, 501), ACS_NOT_READY);
    assert_int_equal(acs_ledger_take(b, 200), ACS_OK);
    assert_int_equal(acs_ledger_take(a, 301), ACS_NOT_READY); /* 200 of what is left is another's, who has not fetched it */
    acs_ledger_obtained(b, 200);
    left = 300;
    assert_int_equal(acs_ledger_take(a, 300), ACS_OK);
    left = 77; /* no answer: only the account is left to go by */
    assert_int_equal(acs_ledger_take(a, 500), ACS_OK);
    acs_ledger_close(a);
    acs_ledger_close(b);
}

/* ------------------------------------------------------------------------------------------------------------ waiting */

typedef struct waiter {
    pthread_t thread;
    acs_ledger *ledger;
    uint64_t bytes;
    acs_status status;
} waiter;

static void *wait_for(void *argument)
{
    waiter *w = argument;
    w->status = acs_ledger_wait(w->ledger, w->bytes);
    return NULL;
}

static void start(waiter *w, acs_ledger *ledger, uint64_t bytes)
{
    *w = (waiter){.ledger = ledger, .bytes = bytes};
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for, w), 0);
}

static acs_status end(waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->status;
}

static void who_waits_gets_what_is_given(void **state)
{
    (void)state;
    acs_ledger *a = join(), *b = join(), *c = join();
    waiter first, second;
    assert_int_equal(acs_ledger_wait(a, 900), ACS_OK);
    start(&first, b, 800);
    await_waiting(1);
    start(&second, c, 700);
    await_waiting(2);
    acs_ledger_give(a, 900, 0);
    assert_int_equal(end(&first), ACS_OK); /* in the order in which they came */
    assert_int_equal(look().waiting, 1);
    acs_ledger_close(b);
    assert_int_equal(end(&second), ACS_OK);
    assert_int_equal(look().reserved, 700);
    acs_ledger_close(a);
    acs_ledger_close(c);
}

/* Small ones may go first, but not for ever. */
static void who_waits_is_passed_so_many_times(void **state)
{
    (void)state;
    acs_ledger *a = join(), *b = join(), *c = join();
    waiter large, small;
    assert_int_equal(acs_ledger_wait(a, 500), ACS_OK);
    acs_ledger_reclaimable(a, 500);
    start(&large, b, 800);
    await_waiting(1);
    for (int i = 0; i < TUNE_LEDGER_PASSES; i++) {
        assert_int_equal(acs_ledger_wait(c, 10), ACS_OK);
        acs_ledger_give(c, 10, 0);
    }
    start(&small, c, 10);
    await_waiting(2);
    acs_ledger_give(a, 500, 0);
    assert_int_equal(end(&large), ACS_OK);
    assert_int_equal(end(&small), ACS_OK);
    acs_ledger_close(a);
    acs_ledger_close(b);
    acs_ledger_close(c);
}

/* Others wait for who holds some: to hold him up would hold up all. Nor is anybody held up for what he may keep for ever. */
static void who_waits_for_what_is_kept_holds_nobody_up(void **state)
{
    (void)state;
    acs_ledger *holder = join(), *b = join();
    waiter large;
    assert_int_equal(acs_ledger_take(holder, 500), ACS_OK);
    start(&large, b, 800);
    await_waiting(1);
    for (int i = 0; i < 3 * TUNE_LEDGER_PASSES; i++) {
        assert_int_equal(acs_ledger_wait(holder, 10), ACS_OK);
        assert_int_equal(acs_ledger_take(holder, 10), ACS_OK);
        acs_ledger_give(holder, 20, 0);
    }
    acs_ledger *late = join();
    assert_int_equal(acs_ledger_take(late, 10), ACS_OK);
    acs_ledger_give(late, 10, 0);
    assert_int_equal(acs_ledger_wait(late, 10), ACS_OK);
    acs_ledger_give(late, 10, 0);
    acs_ledger_reclaimable(holder, 300); /* now it will have room: who holds nothing is behind it */
    assert_int_equal(acs_ledger_take(late, 10), ACS_NOT_READY);
    acs_ledger_give(holder, 500, 0);
    assert_int_equal(end(&large), ACS_OK);
    assert_int_equal(acs_ledger_take(late, 10), ACS_OK);
    acs_ledger_close(late);
    acs_ledger_close(holder);
    acs_ledger_close(b);
}

/* The first to come will have no room beside what is kept; the second will. */
static void who_has_no_room_hides_nobody_who_has(void **state)
{
    (void)state;
    acs_ledger *holder = join(), *b = join(), *c = join();
    waiter hopeless, large;
    assert_int_equal(acs_ledger_take(holder, 600), ACS_OK);
    acs_ledger_reclaimable(holder, 400);
    start(&hopeless, b, 900);
    await_waiting(1);
    start(&large, c, 700);
    await_waiting(2);
    for (int i = 0; i < TUNE_LEDGER_PASSES; i++)
        assert_int_equal(acs_ledger_try_overtake(holder), ACS_OK);
    assert_int_equal(acs_ledger_try_overtake(holder), ACS_NOT_READY);
    acs_ledger_give(holder, 400, 0);
    acs_ledger_reclaimable(holder, 0);
    assert_int_equal(acs_ledger_give_way(holder), ACS_OK);
    assert_int_equal(end(&large), ACS_OK);
    assert_int_equal(look().waiting, 1);
    acs_ledger_close(c);
    acs_ledger_give(holder, 200, 0);
    assert_int_equal(end(&hopeless), ACS_OK);
    acs_ledger_close(holder);
    acs_ledger_close(b);
}

/* Gives back what it can, once it is asked. */
static bool give_when_asked(void *user)
{
    acs_ledger *const *holder = user;
    acs_ledger_give(*holder, acs_ledger_reserved(*holder), 0);
    return false;
}

/* It waits for those that began before it, not for whoever comes meanwhile. */
static void who_gives_way_waits_for_those_that_were_there(void **state)
{
    (void)state;
    acs_ledger *holder = NULL, *b = join();
    waiter large;
    const acs_ledger_config config = {.name = g_name, .device = "GPU-1", .total = TOTAL, .user = &holder,
                                      .give_back = give_when_asked};
    assert_int_equal(acs_ledger_open(&config, &holder), ACS_OK);
    assert_int_equal(acs_ledger_take(holder, 600), ACS_OK);
    acs_ledger_reclaimable(holder, 600);
    start(&large, b, 900);
    await_waiting(1);
    for (int i = 0; i < TUNE_LEDGER_PASSES; i++)
        assert_int_equal(acs_ledger_try_overtake(holder), ACS_OK);
    assert_int_equal(acs_ledger_give_way(holder), ACS_OK);
    assert_int_equal(acs_ledger_take(holder, 101), ACS_NOT_READY);
    assert_int_equal(end(&large), ACS_OK);
    acs_ledger_close(holder);
    acs_ledger_close(b);
}

/* Takes some and gives it back, whenever it is asked: what is reserved changes all the time. */
static bool take_and_give(void *user)
{
    acs_ledger *const *restless = user;
    assert_int_equal(acs_ledger_take(*restless, 50), ACS_OK);
    acs_ledger_give(*restless, 50, 0);
    return false;
}

static void pass_to_the_end(acs_ledger *l)
{
    while (acs_ledger_try_overtake(l) == ACS_OK)
        continue;
}

/*
 * What another could give back may never come: then those that were let go are to be passed as often again, by whoever gave
 * way and by whoever waits behind them, each time later.
 */
static void who_gives_way_in_vain_goes_on(void **state)
{
    enum { PATIENCE_MS = 20, TURNS = 4 };
    (void)state;
    acs_ledger *holder = join(), *b = join(), *c = NULL, *newcomer = join();
    waiter large, small;
    const acs_ledger_config config = {.name = g_name, .device = "GPU-1", .total = TOTAL, .user = &holder,
                                      .give_back = take_and_give};
    acs_ledger_patience(PATIENCE_MS);
    assert_int_equal(acs_ledger_open(&config, &c), ACS_OK);
    assert_int_equal(acs_ledger_take(holder, 600), ACS_OK);
    acs_ledger_reclaimable(holder, 600); /* and it does nothing about it */
    start(&large, b, 900);
    await_waiting(1);
    for (int turn = 0; turn < TURNS; turn++) {
        const uint64_t begun = acs_clock_ns();
        for (int i = 0; i < TUNE_LEDGER_PASSES; i++)
            assert_int_equal(acs_ledger_try_overtake(c), ACS_OK);
        assert_int_equal(acs_ledger_try_overtake(c), ACS_NOT_READY);
        assert_int_equal(acs_ledger_give_way(c), ACS_OK);
        assert_true(acs_clock_ns() - begun >= (uint64_t)PATIENCE_MS * 1000000 << turn); /* at least, on any machine */
    }
    pass_to_the_end(c);
    start(&small, newcomer, 100);
    assert_int_equal(end(&small), ACS_OK);
    acs_ledger_give(newcomer, 100, 0);
    acs_ledger_give(holder, 600, 0);
    assert_int_equal(end(&large), ACS_OK);
    acs_ledger_patience(NEVER_MS);
    acs_ledger_close(holder);
    acs_ledger_close(b);
    acs_ledger_close(c);
    acs_ledger_close(newcomer);
}

/* Who could let others have it may not go on with it for ever; whoever keeps it may. */
static void who_takes_its_own_again_passes_others_so_many_times(void **state)
{
    (void)state;
    acs_ledger *holder = join(), *b = join(), *c = join();
    waiter large, again;
    assert_int_equal(acs_ledger_take(holder, 600), ACS_OK);
    assert_int_equal(acs_ledger_take(c, 100), ACS_OK);
    start(&large, b, 800);
    await_waiting(1);
    for (int i = 0; i < 3 * TUNE_LEDGER_PASSES; i++)
        assert_int_equal(acs_ledger_try_overtake(holder), ACS_OK);
    acs_ledger_reclaimable(holder, 400); /* with the 300 that are left it is too little */
    assert_int_equal(acs_ledger_try_overtake(holder), ACS_OK);
    acs_ledger_reclaimable(c, 5000);     /* no more than it has */
    assert_int_equal(acs_ledger_try_overtake(holder), ACS_NOT_READY);
    assert_int_equal(acs_ledger_try_overtake(c), ACS_NOT_READY);
    acs_ledger_give(holder, 400, 0);
    acs_ledger_reclaimable(holder, 0);
    start(&again, holder, 100); /* it was first, but was told to wait */
    await_waiting(2);
    assert_int_equal(acs_ledger_reserved(holder), 200);
    acs_ledger_give(c, 100, 0);
    assert_int_equal(end(&large), ACS_OK);
    assert_int_equal(look().waiting, 1);
    acs_ledger_give(b, 800, 0);
    assert_int_equal(end(&again), ACS_OK);
    assert_int_equal(acs_ledger_try_overtake(c), ACS_OK);
    acs_ledger_close(holder);
    acs_ledger_close(b);
    acs_ledger_close(c);
}

/* Behind one that waits for what others keep, who holds some does not wait: here each would wait for the other. */
static void who_holds_some_waits_for_nobody_who_waits_for_it(void **state)
{
    (void)state;
    acs_ledger *holder = join(), *b = join();
    waiter large;
    assert_int_equal(acs_ledger_take(holder, 600), ACS_OK);
    start(&large, b, 800);
    await_waiting(1);
    for (int i = 0; i < TUNE_LEDGER_PASSES; i++)
        assert_int_equal(acs_ledger_try_overtake(holder), ACS_OK);
    acs_ledger_reclaimable(holder, 400);
    assert_int_equal(acs_ledger_try_overtake(holder), ACS_NOT_READY);
    acs_ledger_give(holder, 350, 0); /* the rest cannot go for what it keeps */
    acs_ledger_reclaimable(holder, 0);
    assert_int_equal(acs_ledger_wait(holder, 350), ACS_OK);
    acs_ledger_give(holder, 600, 0);
    assert_int_equal(end(&large), ACS_OK);
    acs_ledger_close(holder);
    acs_ledger_close(b);
}

/* Threads of one program: another of its own that waits is passed by what the program uses again, no more often. */
static void who_waits_is_passed_by_its_own_program_no_more(void **state)
{
    (void)state;
    acs_ledger *a = join(), *b = join();
    waiter own;
    assert_int_equal(acs_ledger_take(a, 600), ACS_OK);
    assert_int_equal(acs_ledger_take(b, 300), ACS_OK);
    acs_ledger_reclaimable(a, 600);
    start(&own, a, 400);
    await_waiting(1);
    for (int i = 0; i < TUNE_LEDGER_PASSES; i++)
        assert_int_equal(acs_ledger_try_overtake(a), ACS_OK);
    assert_int_equal(acs_ledger_try_overtake(a), ACS_NOT_READY);
    acs_ledger_give(a, 600, 0);
    assert_int_equal(end(&own), ACS_OK);
    acs_ledger_close(a);
    acs_ledger_close(b);
}

static bool g_over;

static bool is_over(void *user)
{
    (void)user;
    return g_over;
}

/* Nobody in the ledger could give it. */
static void what_outsiders_keep_is_not_waited_for_long(void **state)
{
    (void)state;
    acs_ledger *a = NULL;
    uint64_t left = 100;
    const acs_ledger_config config = {.name = g_name, .device = "GPU-1", .total = TOTAL, .user = &left, .left = left_of,
                                      .ended = is_over};
    assert_int_equal(acs_ledger_open(&config, &a), ACS_OK);
    assert_refused(acs_ledger_wait(a, 200), ACS_ERR_MEMORY, "the rest is taken outside of the ledger");
    assert_int_equal(look().waiting, 0);
    g_over = true;
    assert_refused(acs_ledger_wait(a, 200), ACS_ERR_DEVICE, "the device was lost");
    assert_int_equal(look().waiting, 0);
    assert_int_equal(acs_ledger_wait(a, 100), ACS_OK);
    acs_ledger_close(a);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    acs_ledger *a = join(), *b = join();
    waiter first;
    assert_refused(acs_ledger_wait(a, TOTAL + 1), ACS_ERR_MEMORY, "this cannot fit");
    assert_int_equal(acs_ledger_take(a, 600), ACS_OK);
    assert_refused(acs_ledger_wait(a, 401), ACS_ERR_MEMORY,
                   "it has 1000, the programs in the ledger reserve 600, this one 600");
    assert_int_equal(acs_ledger_take(b, 300), ACS_OK);
    start(&first, a, 400);
    await_waiting(1);
    assert_refused(acs_ledger_wait(b, 200), ACS_ERR_MEMORY, "all programs that have some wait for more");
    acs_ledger_give(b, 300, 0);
    assert_int_equal(end(&first), ACS_OK);
    acs_ledger_close(a);
    acs_ledger_close(b);
}

/* ------------------------------------------------------------------------------------------------- children, and death */

/* A child of fork that lives on does not keep its parent's entry. */
static void an_entry_ends_with_the_process_that_made_it(void **state)
{
    (void)state;
    int ready[2], leave[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(leave), 0);
    pid_t parent = fork();
    if (parent == 0) {
        acs_ledger *ledger = join();
        (void)acs_ledger_take(ledger, 700);
        if (fork() == 0) { /* the grandchild */
            (void)!write(ready[1], "x", 1);
            close(leave[1]);
            (void)!read(leave[0], &byte, 1);
            _exit(0);
        }
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(look().reserved, 700);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_int_equal(look().lines, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(leave[i]);
    }
}

static acs_ledger *join_or_exit(const char *device)
{
    acs_ledger *ledger = NULL;
    const acs_ledger_config config = {.name = g_name, .device = device, .total = TOTAL};
    if (acs_ledger_open(&config, &ledger) != ACS_OK)
        _exit(3);
    return ledger;
}

/* Takes, gives, waits and joins for ever, for one device or two; ends badly where an account is wrong. */
static void live(uint64_t seed)
{
    acs_random random = {seed};
    for (;;) {
        const uint32_t count = 1 + acs_random_below(&random, 2);
        acs_ledger *of[2] = {join_or_exit("GPU-1"), count == 2 ? join_or_exit("GPU-2") : NULL};
        uint64_t held[2] = {0};
        for (int i = 0; i < 50; i++) {
            const uint64_t bytes = 1 + acs_random_below(&random, 400);
            uint32_t which = acs_random_below(&random, count);
            if (acs_random_below(&random, 2))
                for (uint32_t d = 0; d < count; d++) {
                    acs_ledger_give(of[d], held[d], 0);
                    held[d] = 0;
                }
            const bool holds = held[0] + held[1] > 0;
            acs_ledger_runs(of[which], &(acs_demand){.threads = bytes});
            acs_status status = holds ? acs_ledger_take(of[which], bytes)
                                      : acs_ledger_wait_any(of, count, (1u << count) - 1, bytes, &which);
            if (status == ACS_OK)
                held[which] += bytes;
            else if (status != ACS_NOT_READY)
                _exit(4);
            for (uint32_t d = 0; d < count; d++)
                if (acs_ledger_reserved(of[d]) != held[d])
                    _exit(5);
        }
        acs_ledger_close(of[0]);
        acs_ledger_close(of[1]);
    }
}

static pid_t spawn(uint64_t seed)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody lives on where the test itself is killed */
        live(seed);
    }
    return child;
}

static void whoever_is_killed_is_nobodys_loss(void **state)
{
    (void)state;
    pid_t children[CHILDREN];
    acs_random random = {7};
    uint64_t seeds = 0;
    int how;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = spawn(++seeds);
    for (int kills = 0; kills < KILLS; kills++) {
        const uint32_t victim = acs_random_below(&random, CHILDREN);
        for (uint32_t i = acs_random_below(&random, 4); i > 0; i--) {
            const ledger_seen s = look();
            assert_true(s.of_second <= TOTAL);
            assert_true(s.reserved - s.of_second <= TOTAL);
            assert_true(s.lines <= 2 * CHILDREN);
        }
        assert_int_equal(waitpid(children[victim], &how, WNOHANG), 0); /* nobody ends by himself */
        assert_int_equal(kill(children[victim], SIGKILL), 0);
        assert_int_equal(waitpid(children[victim], &how, 0), children[victim]);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        children[victim] = spawn(++seeds);
    }
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(kill(children[i], SIGKILL), 0);
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
    }
    assert_int_equal(look().lines, 0);
    for (int d = 0; d < 2; d++) {
        acs_ledger *ledger = join_on(d ? "GPU-2" : "GPU-1");
        acs_demand others;
        uint64_t room = 0;
        bool awaited = true;
        assert_int_equal(acs_ledger_look(ledger, &room, &others, &awaited), ACS_OK);
        assert_false(awaited);
        assert_true(room == TOTAL && others.threads == 0);
        assert_int_equal(acs_ledger_wait(ledger, TOTAL), ACS_OK);
        acs_ledger_close(ledger);
    }
}

int main(void)
{
    acs_ledger_patience(NEVER_MS); /* who goes on where it should not have to hangs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_missing_for_others_on_the_same_device),
        cmocka_unit_test(what_the_device_has_left_counts_too),
        cmocka_unit_test(who_waits_gets_what_is_given),
        cmocka_unit_test(who_waits_is_passed_so_many_times),
        cmocka_unit_test(who_waits_for_what_is_kept_holds_nobody_up),
        cmocka_unit_test(who_has_no_room_hides_nobody_who_has),
        cmocka_unit_test(who_gives_way_waits_for_those_that_were_there),
        cmocka_unit_test(who_gives_way_in_vain_goes_on),
        cmocka_unit_test(who_takes_its_own_again_passes_others_so_many_times),
        cmocka_unit_test(who_holds_some_waits_for_nobody_who_waits_for_it),
        cmocka_unit_test(who_waits_is_passed_by_its_own_program_no_more),
        cmocka_unit_test(what_outsiders_keep_is_not_waited_for_long),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(an_entry_ends_with_the_process_that_made_it),
        cmocka_unit_test(whoever_is_killed_is_nobodys_loss),
    };
    return cmocka_run_group_tests(tests, make_name, remove_file);
}
