/*
 * The watchdog's state machine, with time passed in: which op is blamed, which never is, and what the core does once the
 * device was given up, also with actions that come back late. No thread, no clock.
 */
#include "core_fixture.h"

#include <errno.h>

#define MS 1000000ull

static uint64_t g_now;

static rig *rig_watched(void)
{
    rig *r = rig_make();
    r->options.watchdog_s = 1;
    g_now = 1;
    return rig_start(r);
}

/* As worker and caller do: a step, and a look when it found nothing. */
static bool pass(rig *r, uint64_t ms)
{
    g_now += ms * MS;
    for (int i = 0; i < 3; i++)
        step(r);
    return acs_core_overdue(&r->core, g_now);
}

/* Until something is given up; how many milliseconds that took. */
static uint64_t wait_given_up(rig *r, uint64_t most_ms)
{
    uint64_t begin = g_now;
    while (!pass(r, 100))
        if (g_now - begin >= most_ms * MS)
            fail_msg("nothing was given up within %d ms", (int)most_ms);
    return (g_now - begin) / MS;
}

/* All ended with ACS_ERR_DEVICE, and nothing of the core is in use; what the backend was handed keeps its records. */
static void rig_close_given_up(rig *r, acs_op from, acs_op to)
{
    for (int i = 0; i < 20; i++)
        step(r);
    for (acs_op op = from; op <= to; op++)
        assert_int_equal(r->status[op], ACS_ERR_DEVICE);
    assert_true(acs_core_given_up(&r->core));
    assert_int_equal(r->faults, 1);
    assert_int_equal(r->backend.breaches, 0);
    assert_int_equal(acs_window_oldest(&r->core.window), 0);
    assert_int_equal(r->core.window.live + r->core.window.live_joins, 0);
    assert_int_equal(r->core.running, 0);
    for (uint32_t s = 0; s < r->core.slots.count; s++)
        assert_int_equal(r->core.slots.slot[s].outstanding, 0);
    assert_true(acs_window_check(&r->core.window));
    acs_core_fini(&r->core);
    acs_record_pool_destroy(r->pool);
    free(r);
}

static void assert_says(const rig *r, const char *text)
{
    if (!strstr(r->fault.text, text))
        fail_msg("'%s' does not say '%s'", r->fault.text, text);
}

/* -------------------------------------------------------------------------------------------------- who is blamed */

static void op_that_does_not_end_is_named_with_those_that_wait_for_it(void **state)
{
    (void)state;
    rig *r = rig_watched();
    body never = {0, 0};
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8)), behind = KERNEL(r, ACS_INOUT(AT(0), 8));
    push_host(r, ACS_IN(AT(0), 8), &never);
    KERNEL(r, ACS_OUT(AT(0), 8));
    acs_op other = KERNEL(r, ACS_OUT(AT(64), 8));
    for (int i = 0; i < 4; i++)
        step(r);
    for (uint32_t s = 0; s < SLOTS; s++) { /* the independent one ends */
        if (acs_window_find(&r->core.window, other)->slot == (int)s)
            r->backend.complete[s] = UINT64_MAX;
    }

    assert_in_range(wait_given_up(r, 10000), 1000, 4000);

    assert_int_equal(r->status[other], ACS_OK);
    assert_int_equal(r->fault.status, ACS_ERR_DEVICE);
    assert_int_equal(r->fault.native, ETIMEDOUT);
    assert_int_equal(r->fault.op, endless);
    assert_string_equal(r->fault.site.name, "kernel");
    assert_says(r, "op 1 'kernel' (file.c:12)");
    assert_says(r, "; 3 ops wait for it: op 2 'kernel' (file.c:12), op 3");
    assert_int_equal(r->status[behind], ACS_ERR_DEVICE);
    assert_int_equal(never.calls, 0);
    r->status[other] = ACS_ERR_DEVICE; /* seen to be well */
    rig_close_given_up(r, endless, other);
}

/* Alone at its mark, it gets the limit, and not a look more or less. */
static void op_gets_the_whole_limit(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op op = KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 4; i++)
        assert_false(pass(r, 0)); /* issued, marked, polled */
    for (int i = 0; i < 9; i++)
        assert_false(pass(r, 100));
    assert_false(pass(r, 99));
    assert_true(pass(r, 1));
    assert_false(pass(r, 100)); /* once */
    rig_close_given_up(r, op, op);
}

/* Polls look at what a caller waits for, and at one more slot: what ended meanwhile in another one is not to blame. */
static void op_whose_slot_is_not_polled_is_not_blamed(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_slots_shape(&r->core.slots, SLOTS, 8, false);
    acs_op op = KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 12; i++) /* three chains, which get four times the limit */
        KERNEL(r, ACS_INOUT(AT(64 + i % 3 * 64), 8));
    for (int i = 0; i < 4; i++)
        assert_false(pass(r, 0));
    const int slot = acs_window_find(&r->core.window, op)->slot;
    acs_core_await(&r->core, r->last);

    do { /* once more it is seen to run */
        g_now += 400 * MS;
        assert_true(step(r));
        assert_int_equal(r->action[0].poll_count, 2);
        assert_false(acs_core_overdue(&r->core, g_now));
    } while (r->action[0].polls[1].slot != slot);
    r->backend.complete[slot] = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        g_now += 400 * MS;
        assert_int_equal(r->status[op], NO_END);
        assert_true(step(r));
        assert_false(acs_core_overdue(&r->core, g_now));
    }
    assert_int_equal(r->status[op], ACS_OK);
    rig_close(r);
}

/* Though the other one gets longer, because a second op is in front of its mark. */
static void op_that_waits_for_another_slot_is_not_blamed(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8));
    KERNEL(r, ACS_INOUT(AT(0), 8));
    acs_op short_one = KERNEL(r, ACS_OUT(AT(64), 8));
    for (int i = 0; i < 3; i++)
        step(r); /* and their marks */
    KERNEL(r, ACS_IN(AT(0), 8)); /* so that the next goes elsewhere */
    acs_op both = KERNEL(r, ACS_INOUT(AT(64), 8), ACS_IN(AT(0), 8));
    for (int i = 0; i < 4; i++)
        step(r);
    int slot = acs_window_find(&r->core.window, short_one)->slot;
    assert_int_not_equal(slot, acs_window_find(&r->core.window, endless)->slot);
    assert_int_equal(slot, acs_window_find(&r->core.window, both)->slot);
    r->backend.complete[slot] = acs_window_find(&r->core.window, short_one)->value;

    wait_given_up(r, 10000);

    assert_int_equal(r->status[short_one], ACS_OK);
    assert_int_equal(r->fault.op, endless);
    assert_says(r, ", or one of the 1 behind it,");
    assert_says(r, "; 3 ops wait for it: op 2 'kernel' (file.c:12), op 4 'kernel' (file.c:12), op 5");
    rig_close_given_up(r, both, both);
}

/* ----------------------------------------------------------------------------------------------------- false alarms */

static void deep_queue_of_slow_ops_is_no_alarm(void **state)
{
    (void)state;
    rig *r = rig_watched();
    for (int i = 0; i < 40; i++)
        KERNEL(r, ACS_INOUT(AT(0), 8));
    for (int i = 0; i < 8; i++)
        step(r);
    int slot = acs_window_find(&r->core.window, 1)->slot;
    for (int done = 0; done < 40; done++) {
        for (int i = 0; i < 9; i++)
            assert_false(pass(r, 100));
        r->backend.complete[slot]++;
    }
    rig_close(r);
}

/* One executor, say: the others of many slots have all to wait, each for all those before. */
static void op_that_waits_its_turn_while_others_end_is_no_alarm(void **state)
{
    (void)state;
    rig *r = rig_watched();
    for (int i = 0; i < SLOTS; i++)
        KERNEL(r, ACS_OUT(AT(64 * i), 8));
    for (int i = 0; i < 6; i++)
        step(r);
    for (int s = 0; s < SLOTS; s++) {
        for (int i = 0; i < 9; i++)
            assert_false(pass(r, 100));
        r->backend.complete[s] = UINT64_MAX;
    }
    rig_close(r);
}

/* But others that go on for ever do not hide one that never ends. */
static void op_is_blamed_though_others_end_for_ever(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 4; i++)
        step(r);
    int slot = acs_window_find(&r->core.window, endless)->slot;
    uint32_t rounds = 0;
    complete_all(r);
    r->backend.complete[slot] = 0;
    do {
        acs_record *op = RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(64), 8));
        push(r, op);
        for (int i = 0; i < 4; i++)
            step(r);
        /* it may have been put behind the endless one: then nobody could tell */
        assert_true(++rounds < 400);
    } while (!pass(r, 100));
    assert_in_range(rounds, r->options.window / 2, r->options.window + 40);
    assert_int_equal(r->fault.op, endless);
    rig_close_given_up(r, endless, endless);
}

static void time_in_which_nobody_looked_or_polled_does_not_count(void **state)
{
    (void)state;
    rig *r = rig_watched();
    KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 4; i++)
        assert_false(pass(r, 100));
    for (int i = 0; i < 100; i++)
        assert_false(pass(r, 3600 * 1000)); /* stopped for an hour, again and again */
    for (int i = 0; i < 100; i++)           /* a poll that does not come back */
        assert_false(acs_core_overdue(&r->core, g_now += 100 * MS));
    rig_close(r);
}

static void watchdog_that_is_off_never_barks(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 8));
    g_now = 1;
    for (int i = 0; i < 1000; i++)
        assert_false(pass(r, 400));
    rig_close(r);
}

/* -------------------------------------------------------------------------------------------------- actions under way */

static void host_function_that_does_not_return_is_named_and_books_nothing_later(void **state)
{
    (void)state;
    rig *r = rig_watched();
    body b = {0, 0};
    acs_op host = push_host(r, ACS_OUT(AT(0), 8), &b), behind = KERNEL(r, ACS_IN(AT(0), 8));
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].type, ACS_ACTION_HOST);

    assert_int_equal(wait_given_up(r, 10000), 1100); /* the first look begins to count */

    assert_int_equal(r->fault.op, host);
    assert_says(r, "on the host; 1 op waits for it: op 2");
    assert_int_equal(acs_core_left(&r->core), 1);
    assert_true(acs_core_abandoned(&r->core, &r->action[1]));
    uint32_t ended = r->ended_count;
    finish(r, 1);
    assert_int_equal(b.calls, 1);
    assert_int_equal(r->ended_count, ended);
    assert_int_equal(acs_core_left(&r->core), 0);
    assert_false(acs_core_abandoned(&r->core, &r->action[1]));
    rig_close_given_up(r, host, behind);
}

static void submission_that_does_not_return_ends_without_its_thread(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op first = KERNEL(r, ACS_OUT(AT(0), 8)), chained = KERNEL(r, ACS_INOUT(AT(0), 8));
    acs_op third = KERNEL(r, ACS_IN(AT(0), 8));
    assert_true(next(r, 1));
    assert_in_range(r->action[1].batch.items_used, 2, 3); /* they follow in the batch */

    assert_in_range(wait_given_up(r, 10000), 2000, 3200);

    assert_int_equal(r->fault.op, first);
    assert_says(r, "while it is issued");
    for (acs_op op = first; op <= third; op++)
        assert_int_equal(r->status[op], ACS_ERR_DEVICE);
    uint32_t ended = r->ended_count;
    finish(r, 1);
    assert_int_equal(r->ended_count, ended);
    assert_int_equal(acs_core_left(&r->core), 0);
    assert_int_equal(chained, 2);
    rig_close_given_up(r, first, third);
}

/* A bundle with a join, which ends with what it stands for and is nobody's to end once more. */
static void bundle_with_a_join_that_does_not_return_ends_once(void **state)
{
    (void)state;
    enum { CELLS = 9 };
    rig *r = rig_make();
    acs_segment reads[CELLS + 1];
    r->options.watchdog_s = 1;
    r->backend.base.bundle_most = 16;
    g_now = 1;
    rig_start(r);
    acs_op last = 0;
    for (int i = 0; i < CELLS + 3; i++) {
        for (int k = 0; k < CELLS; k++)
            reads[k] = ACS_IN(AT(k * 64), 8);
        reads[CELLS] = ACS_OUT(AT(i * 64), 8);
        acs_record *op = record(r, ACS_KIND_KERNEL, i < CELLS ? &reads[CELLS] : reads, i < CELLS ? 1 : CELLS + 1);
        op->type = 1;
        last = push(r, op);
    }
    while (next(r, 1) && r->action[1].type == ACS_ACTION_NONE)
        continue;
    assert_true(r->action[1].batch.bundle);
    assert_true(r->core.window.live_joins > 0);

    wait_given_up(r, 100000);

    assert_says(r, "while it is issued");
    finish(r, 1);
    assert_true(acs_window_check(&r->core.window));
    rig_close_given_up(r, 1, last);
}

/* The device was given up because of a kernel, and a thread hangs in the driver because of that: its ops end too. */
static void submission_that_hangs_behind_the_endless_op_ends_too(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 4; i++)
        step(r);
    for (int i = 0; i < 5; i++)
        assert_false(pass(r, 100));
    acs_op hangs = KERNEL(r, ACS_OUT(AT(64), 8));
    assert_true(next(r, 1));
    wait_given_up(r, 3000);
    assert_int_equal(r->fault.op, endless);
    assert_int_equal(r->status[endless], ACS_ERR_DEVICE);
    assert_int_equal(r->status[hangs], NO_END);

    assert_in_range(wait_given_up(r, 3000), 0, 900); /* its time has counted all along */

    assert_int_equal(r->status[hangs], ACS_ERR_DEVICE);
    finish(r, 1);
    rig_close_given_up(r, endless, hangs);
}

/* A batch whose thread comes back in time, after the device was given up, is booked as ever. */
static void submission_that_returns_after_all_is_booked(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8));
    for (int i = 0; i < 4; i++)
        step(r);
    for (int i = 0; i < 5; i++)
        assert_false(pass(r, 100));
    acs_op late = KERNEL(r, ACS_OUT(AT(64), 8));
    assert_true(next(r, 1));
    wait_given_up(r, 3000);
    finish(r, 1);
    assert_int_equal(r->status[late], ACS_ERR_DEVICE);
    assert_int_equal(acs_core_left(&r->core), 0);
    rig_close_given_up(r, endless, late);
}

/* --------------------------------------------------------------------------------------------------- once given up */

/* Freeing would wait for the op; told is who asked to be. */
static void frees_free_nothing_and_callbacks_are_called(void **state)
{
    (void)state;
    rig *r = rig_watched();
    told t = {0, NO_END, 0};
    acs_op endless = KERNEL(r, ACS_OUT(AT(0), 8));
    push_callback(r, endless, &t);
    acs_op last = push_free(r, AT(0), 8);
    wait_given_up(r, 10000);
    for (int i = 0; i < 10; i++)
        step(r);
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.status, ACS_ERR_DEVICE);
    assert_int_equal(r->backend.freed, 0);
    assert_int_equal(r->frees, 0);
    assert_int_equal(r->status[last], ACS_ERR_DEVICE);
    r->status[endless + 1] = ACS_ERR_DEVICE; /* the callback itself ended well */
    rig_close_given_up(r, endless, last);
}

/* A thread of the backend may read them at any time: no new op may be written there. */
static void records_of_ops_that_had_begun_are_never_used_again(void **state)
{
    (void)state;
    rig *r = rig_watched();
    acs_record *issued = RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(0), 8));
    acs_record *waiting = RECORD(r, ACS_KIND_KERNEL, ACS_IN(AT(0), 8));
    r->options.wait = ACS_WAIT_HOST;
    r->core.window.host_wait = true;
    acs_op first = push(r, issued), second = push(r, waiting);
    wait_given_up(r, 10000);
    bool again = false;
    uint32_t count = 0;
    for (acs_record *op; (op = acs_record_acquire(r->pool)) != NULL; count++)
        again |= op == issued;
    assert_false(again);
    assert_int_equal(count, RECORDS - 1);
    rig_close_given_up(r, first, second);
}

/* ------------------------------------------------------------------------------------------------------------- lost */

static void lose_all(acs_backend *backend, acs_batch *batch)
{
    (void)backend;
    for (uint32_t i = 0; i < batch->items_used; i++)
        acs_item_result(&batch->items[i], ACS_ERR_DEVICE, 0, "lost");
}

/* The one before it still has to wait for another thread's batch, in a slot that it was to run behind. */
static void op_lost_with_the_one_before_it_ends_behind_that(void **state)
{
    (void)state;
    static acs_backend_ops ops;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 8));
    KERNEL(r, ACS_OUT(AT(64), 8));
    step(r);
    step(r); /* their marks */
    acs_op under_way = KERNEL(r, ACS_IN(AT(0), 8));
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items[0].slot, 0);
    acs_op upstream = KERNEL(r, ACS_IN(AT(0), 8), ACS_INOUT(AT(64), 8)), behind = KERNEL(r, ACS_INOUT(AT(64), 8));
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].batch.items_used, 2);
    assert_int_equal(r->action[0].batch.items[1].edge_count, 1);

    ops = g_fake_ops;
    ops.submit = lose_all;
    r->backend.base.ops = &ops;
    finish(r, 0);
    assert_non_null(acs_window_find(&r->core.window, upstream));
    assert_non_null(acs_window_find(&r->core.window, behind));
    finish(r, 1);

    for (acs_op op = 1; op <= behind; op++)
        assert_int_equal(r->status[op], ACS_ERR_DEVICE);
    assert_null(acs_window_find(&r->core.window, under_way));
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(op_that_does_not_end_is_named_with_those_that_wait_for_it),
        cmocka_unit_test(op_gets_the_whole_limit),
        cmocka_unit_test(op_whose_slot_is_not_polled_is_not_blamed),
        cmocka_unit_test(op_that_waits_for_another_slot_is_not_blamed),
        cmocka_unit_test(deep_queue_of_slow_ops_is_no_alarm),
        cmocka_unit_test(op_that_waits_its_turn_while_others_end_is_no_alarm),
        cmocka_unit_test(op_is_blamed_though_others_end_for_ever),
        cmocka_unit_test(time_in_which_nobody_looked_or_polled_does_not_count),
        cmocka_unit_test(watchdog_that_is_off_never_barks),
        cmocka_unit_test(host_function_that_does_not_return_is_named_and_books_nothing_later),
        cmocka_unit_test(submission_that_does_not_return_ends_without_its_thread),
        cmocka_unit_test(bundle_with_a_join_that_does_not_return_ends_once),
        cmocka_unit_test(submission_that_hangs_behind_the_endless_op_ends_too),
        cmocka_unit_test(submission_that_returns_after_all_is_booked),
        cmocka_unit_test(frees_free_nothing_and_callbacks_are_called),
        cmocka_unit_test(records_of_ops_that_had_begun_are_never_used_again),
        cmocka_unit_test(op_lost_with_the_one_before_it_ends_behind_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
