/*
 * Unit tests of scheduler/core: batches, failures, bounces, faults, host functions and order, over a backend made up
 * by the test, which notes what it is given, answers what the test decides and completes what the test says.
 */
#include "core_fixture.h"

#include <unistd.h>

/* ---------------------------------------------------------------------------------------------------------- batches */

static void next_puts_followers_into_the_batch_with_inner_edges(void **state)
{
    (void)state;
    rig *r = rig_open();
    const acs_batch *batch = &r->action[0].batch;
    KERNEL(r, ACS_OUT(AT(0), 8));
    KERNEL(r, ACS_OUT(AT(8), 8));
    acs_op both = KERNEL(r, ACS_IN(AT(0), 16), ACS_OUT(AT(100), 8));
    acs_op behind = KERNEL(r, ACS_IN(AT(100), 8));

    assert_true(next(r, 0));

    assert_int_equal(batch->items_used, 4);
    assert_int_equal(op_of(r, 2), both);
    assert_int_equal(batch->items[2].edge_count, 2);
    assert_int_equal(batch->edges[batch->items[2].first_edge] + batch->edges[batch->items[2].first_edge + 1], 0 + 1);
    assert_int_equal(batch->items[2].wait_count, 1); /* for the one in the other slot */
    assert_int_equal(op_of(r, 3), behind);
    assert_int_equal(batch->items[3].edge_count, 1);
    assert_int_equal(batch->edges[batch->items[3].first_edge], 2);
    assert_int_equal(batch->items[3].slot, batch->items[2].slot);
    finish(r, 0);
    rig_close(r);
}

static void next_takes_at_most_a_batch_and_leaves_the_rest(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.batch = 2;
    rig_start(r);
    for (int i = 0; i < 5; i++)
        KERNEL(r, ACS_OUT(AT(i * 64), 8));
    static const uint32_t expected[] = {2, 2, 1};
    for (int i = 0; i < 3; i++) {
        assert_true(next(r, 0));
        assert_int_equal(r->action[0].batch.items_used, expected[i]);
        finish(r, 0);
    }
    rig_close(r);
}

static void next_with_nothing_to_do_finds_nothing(void **state)
{
    (void)state;
    rig *r = rig_open();
    assert_false(next(r, 0));
    assert_int_equal(acs_core_look(&r->core), ACS_LOAD_NONE);
    KERNEL(r, ACS_OUT(AT(0), 8));
    assert_int_equal(acs_core_look(&r->core), ACS_LOAD_BLOCKED);
    step(r);
    assert_int_equal(acs_core_look(&r->core), ACS_LOAD_RUNNING);
    rig_close(r);
}

static void step_with_more_ops_than_the_window_holds_runs_them_all(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.window = 3;
    rig_start(r);
    for (int i = 0; i < 100; i++)
        KERNEL(r, ACS_INOUT(AT(i % 5 * 64), 8), ACS_IN(AT(i % 3 * 64), 64));
    run_to_end(r);
    for (acs_op op = 1; op <= 100; op++)
        assert_int_equal(r->status[op], ACS_OK);
    assert_int_equal(r->core.window.counters.window_high, 3);
    rig_close(r);
}

/* --------------------------------------------------------------------------------------------- failures and bounces */

static void done_with_a_failed_item_skips_dependents_and_runs_the_others(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op failing = KERNEL(r, ACS_OUT(AT(0), 8)), other = KERNEL(r, ACS_OUT(AT(64), 8));
    acs_op direct = KERNEL(r, ACS_IN(AT(0), 8), ACS_OUT(AT(100), 8)), indirect = KERNEL(r, ACS_IN(AT(100), 8));
    answer(r, failing, ACS_ERR_LAUNCH, 1);

    step(r);
    acs_op late = KERNEL(r, ACS_IN(AT(0), 8));
    run_to_end(r);

    assert_int_equal(r->status[failing], ACS_ERR_LAUNCH);
    assert_int_equal(r->native[failing], 77);
    assert_int_equal(r->status[other], ACS_OK);
    for (acs_op op = direct; op <= late; op++) {
        assert_int_equal(r->status[op], ACS_ERR_SKIPPED);
        assert_int_equal(r->cause[op], failing);
        assert_int_equal(r->backend.issued[op], 0);
    }
    assert_int_equal(indirect, direct + 1);
    assert_int_equal(r->core.counters.failed, 1);
    assert_int_equal(r->core.counters.skipped, 3);
    acs_core_clear(&r->core);
    acs_op cleared = KERNEL(r, ACS_IN(AT(0), 8));
    run_to_end(r);
    assert_int_equal(r->status[cleared], ACS_OK);
    rig_close(r);
}

static void done_with_a_bounced_item_issues_it_and_its_followers_again(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op bounced = KERNEL(r, ACS_OUT(AT(0), 8)), follower = KERNEL(r, ACS_INOUT(AT(0), 8));
    acs_op last = KERNEL(r, ACS_IN(AT(0), 8));
    answer(r, bounced, ACS_NOT_READY, 2);

    for (int i = 0; i < 3; i++) {
        assert_true(next(r, 0));
        assert_int_equal(op_of(r, 0), bounced);
        assert_int_equal(op_of(r, 1), follower);
        assert_int_equal(op_of(r, 2), last);
        finish(r, 0);
    }
    run_to_end(r);
    for (acs_op op = bounced; op <= last; op++) {
        assert_int_equal(r->status[op], ACS_OK);
        assert_int_equal(r->backend.issued[op], 1);
    }
    rig_close(r);
}

static void next_leaves_a_follower_that_will_be_skipped_out_of_the_batch(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op failing = KERNEL(r, ACS_OUT(AT(0), 8)), good = KERNEL(r, ACS_OUT(AT(64), 8));
    acs_op both = KERNEL(r, ACS_IN(AT(0), 8), ACS_IN(AT(64), 8));
    answer(r, failing, ACS_ERR_LAUNCH, 1);
    r->core.batch_limit = 1;
    step(r);
    r->core.batch_limit = 16;

    assert_true(next(r, 0));
    assert_int_equal(op_of(r, 0), good);
    assert_int_equal(r->action[0].batch.items_used, 1);
    finish(r, 0);
    run_to_end(r);
    assert_int_equal(r->cause[both], failing);
    rig_close(r);
}

static void done_with_a_failed_op_behind_running_ones_ends_it_when_they_have(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op running = KERNEL(r, ACS_OUT(AT(0), 8));
    step(r);
    acs_op failing = KERNEL(r, ACS_IN(AT(0), 8));
    answer(r, failing, ACS_ERR_LAUNCH, 1);
    for (int i = 0; i < 8; i++)
        step(r);

    assert_int_equal(r->status[failing], ACS_ERR_LAUNCH); /* told at once */
    assert_non_null(acs_window_find(&r->core.window, failing));
    run_to_end(r);
    assert_int_equal(r->status[running], ACS_OK);
    for (int i = 0; acs_window_find(&r->core.window, failing); i++) {
        assert_true(i < 100);
        step(r);
    }
    rig_close(r);
}

/* ----------------------------------------------------------------------------------------------------------- faults */

static void assert_dead(rig *r, acs_op from)
{
    uint32_t submitted = r->backend.submitted_count;
    acs_op late = KERNEL(r, ACS_OUT(AT(900), 8));
    run_to_end(r);
    for (acs_op op = from; op <= late; op++)
        assert_int_equal(r->status[op], ACS_ERR_DEVICE);
    assert_int_equal(r->faults, 1);
    assert_int_equal(r->backend.submitted_count, submitted);
}

static void poll_that_faults_ends_everything_and_names_the_suspects(void **state)
{
    (void)state;
    rig *r = rig_open();
    body never = {0, 0};
    acs_op first = KERNEL(r, ACS_OUT(AT(0), 8));
    KERNEL(r, ACS_OUT(AT(64), 8));
    push_host(r, ACS_IN(AT(0), 8), &never);
    KERNEL(r, ACS_OUT(AT(0), 8));
    step(r);
    r->backend.poll_fails = true;
    for (int i = 0; i < 4 && !r->faults; i++)
        step(r);

    assert_int_equal(r->faults, 1);
    assert_int_equal(r->fault.status, ACS_ERR_DEVICE);
    assert_int_equal(r->fault.native, 719);
    assert_int_equal(r->fault.op, first);
    assert_non_null(strstr(r->fault.text, "op 1 'kernel' (file.c:12), op 2 'kernel'"));
    assert_null(strstr(r->fault.text, "op 3"));
    assert_dead(r, first);
    assert_int_equal(never.calls, 0);
    rig_close(r);
}

static void submit_that_faults_ends_everything(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op first = KERNEL(r, ACS_OUT(AT(0), 8)), failing = KERNEL(r, ACS_OUT(AT(64), 8));
    KERNEL(r, ACS_IN(AT(0), 8));
    answer(r, failing, ACS_ERR_DEVICE, 1);

    step(r);

    assert_int_equal(r->faults, 1);
    assert_non_null(strstr(r->fault.text, "as told"));
    assert_int_equal(r->fault.native, 77);
    assert_dead(r, first);
    rig_close(r);
}

static void fault_while_another_batch_is_under_way_ends_that_too(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 8));
    step(r);
    step(r); /* its mark */
    assert_true(next(r, 0)); /* a poll */
    assert_int_equal(r->action[0].poll_count, 1);
    acs_op under_way = KERNEL(r, ACS_OUT(AT(64), 8));
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items_used, 1);

    r->backend.poll_fails = true;
    finish(r, 0);
    assert_int_equal(r->status[under_way], NO_END);
    finish(r, 1);

    assert_int_equal(r->status[under_way], ACS_ERR_DEVICE);
    assert_dead(r, 1);
    rig_close(r);
}

/* ---------------------------------------------------------------------------------------- host functions and others */

static void host_function_runs_once_its_upstream_has_retired(void **state)
{
    (void)state;
    rig *r = rig_open();
    body b = {0, 0};
    KERNEL(r, ACS_OUT(AT(0), 8));
    acs_op host = push_host(r, ACS_INOUT(AT(0), 8), &b), behind = KERNEL(r, ACS_IN(AT(0), 8));
    for (int i = 0; i < 6; i++)
        step(r);
    assert_int_equal(b.calls, 0);
    assert_int_equal(r->backend.issued[behind], 0);

    complete_all(r);
    while (r->status[1] == NO_END)
        step(r);
    assert_false(acs_core_next(&r->core, ACS_MAY_ISSUE, &r->action[0])); /* may not run it */
    assert_int_equal(b.calls, 0);
    run_to_end(r);
    assert_int_equal(b.calls, 1);
    assert_int_equal(r->status[host], ACS_OK);
    assert_int_equal(r->status[behind], ACS_OK);
    rig_close(r);
}

/* Its function may take long: what does not depend on it is left to another thread. */
static void library_call_is_the_last_of_its_batch(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op before = KERNEL(r, ACS_OUT(AT(0), 8)), call = push(r, record(r, ACS_KIND_CALL, NULL, 0));
    acs_op other = KERNEL(r, ACS_OUT(AT(64), 8));
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].batch.items_used, 2);
    assert_int_equal(op_of(r, 0), before);
    assert_int_equal(op_of(r, 1), call);
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items_used, 1);
    assert_int_equal(r->action[1].batch.items[0].op->seq, other);
    finish(r, 1);
    finish(r, 0);
    run_to_end(r);
    assert_int_equal(r->status[other], ACS_OK);
    rig_close(r);
}

static void host_function_that_fails_skips_dependents(void **state)
{
    (void)state;
    rig *r = rig_open();
    body b = {0, -5}, never = {0, 0};
    acs_op host = push_host(r, ACS_INOUT(AT(0), 8), &b), behind = KERNEL(r, ACS_IN(AT(0), 8));
    acs_op second = push_host(r, ACS_IN(AT(0), 8), &never), other = KERNEL(r, ACS_IN(AT(64), 8));
    run_to_end(r);

    assert_int_equal(r->status[host], ACS_ERR_HOST);
    assert_int_equal(r->native[host], -5);
    assert_int_equal(r->cause[behind], host);
    assert_int_equal(r->cause[second], host);
    assert_int_equal(never.calls, 0);
    assert_int_equal(r->status[other], ACS_OK);
    rig_close(r);
}

static void callback_runs_behind_its_target_and_is_told_how_it_ended(void **state)
{
    (void)state;
    rig *r = rig_open();
    told good = {0}, bad = {0}, skipped = {0}, late = {0};
    acs_op first = KERNEL(r, ACS_OUT(AT(0), 8)), failing = KERNEL(r, ACS_OUT(AT(64), 8));
    acs_op behind = KERNEL(r, ACS_IN(AT(64), 8));
    answer(r, failing, ACS_ERR_LAUNCH, 1);
    push_callback(r, first, &good);
    push_callback(r, failing, &bad);
    push_callback(r, behind, &skipped);
    for (int i = 0; i < 8; i++)
        step(r);
    assert_int_equal(good.calls, 0);
    assert_int_equal(bad.calls, 1);
    run_to_end(r);
    push_callback(r, first, &late);
    run_to_end(r);

    assert_int_equal(good.status, ACS_OK);
    assert_int_equal(good.op, first);
    assert_int_equal(bad.status, ACS_ERR_LAUNCH);
    assert_int_equal(skipped.status, ACS_ERR_SKIPPED);
    assert_int_equal(late.status, ACS_OK);
    assert_int_equal(good.calls + bad.calls + skipped.calls + late.calls, 4);
    rig_close(r);
}

static void stream_wait_that_is_skipped_releases_its_event(void **state)
{
    (void)state;
    rig *r = rig_open();
    int event;
    acs_op failing = KERNEL(r, ACS_OUT(AT(0), 64));
    acs_record *op = RECORD(r, ACS_KIND_STREAM_WAIT, ACS_INOUT(AT(0), 64));
    op->u.stream.event = &event;
    push(r, op);
    answer(r, failing, ACS_ERR_LAUNCH, 1);
    run_to_end(r);
    assert_int_equal(r->backend.events_released, 1);
    rig_close(r);
}

static void stream_signal_ends_when_it_is_issued(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 64));
    acs_op signal = push(r, RECORD(r, ACS_KIND_STREAM_SIGNAL, ACS_IN(AT(0), 64)));
    step(r);
    assert_int_equal(r->backend.issued[signal], 1);
    assert_int_equal(r->status[signal], ACS_OK);
    assert_int_equal(r->status[1], NO_END);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------ order */

static void serial_issues_an_op_when_the_one_before_has_retired(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.serial = 1;
    rig_start(r);
    for (int i = 0; i < 5; i++)
        KERNEL(r, ACS_OUT(AT(i * 64), 64));
    for (uint32_t i = 1; i <= 5; i++) {
        for (int j = 0; j < 4; j++)
            step(r);
        assert_int_equal(r->backend.submitted_count, i);
        r->backend.complete[0] = i;
        while (r->status[i] == NO_END)
            assert_true(step(r));
    }
    rig_close(r);
}

static void disable_issues_in_program_order_in_one_slot(void **state)
{
    (void)state;
    rig *r = rig_make();
    body b = {0, 0};
    r->options.disable = 1;
    rig_start(r);
    for (int i = 0; i < 30; i++)
        KERNEL(r, ACS_INOUT(AT(i % 3 * 64), 8), ACS_IN(AT(i % 5 * 64), 64));
    push_host(r, ACS_IN(AT(0), 64), &b);
    KERNEL(r, ACS_OUT(AT(0), 64));
    run_to_end(r);

    assert_int_equal(r->core.slots.count, 1);
    assert_int_equal(r->backend.submitted_count, 31);
    for (uint32_t i = 1; i < 31; i++)
        assert_true(r->backend.submitted[i - 1] < r->backend.submitted[i]);
    assert_int_equal(b.calls, 1);
    rig_close(r);
}

static void disable_with_two_bounced_items_in_a_batch_issues_both_again(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.disable = 1;
    rig_start(r);
    for (int i = 0; i < 4; i++)
        KERNEL(r, ACS_OUT(AT(i * 64), 64));
    answer(r, 2, ACS_NOT_READY, 1);
    answer(r, 3, ACS_NOT_READY, 1);
    run_to_end(r);
    for (acs_op op = 1; op <= 4; op++)
        assert_int_equal(r->backend.issued[op], 1);
    rig_close(r);
}

static void disable_with_a_bounced_item_before_a_host_function_runs_both(void **state)
{
    (void)state;
    rig *r = rig_make();
    body b = {0, 0};
    r->options.disable = 1;
    rig_start(r);
    KERNEL(r, ACS_OUT(AT(0), 64));
    push_host(r, ACS_OUT(AT(64), 64), &b);
    KERNEL(r, ACS_OUT(AT(128), 64));
    answer(r, 1, ACS_NOT_READY, 1);
    run_to_end(r);
    assert_int_equal(r->backend.issued[1], 1);
    assert_int_equal(b.calls, 1);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------ several in flight */

static void next_does_not_poll_while_a_poll_is_under_way(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 8));
    step(r);
    step(r);
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].poll_count, 1);

    assert_false(next(r, 1));
    finish(r, 0);
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].poll_count, 1);
    finish(r, 1);
    rig_close(r);
}

static void next_lists_polls_with_a_batch_after_many_ops(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.batch = 1;
    rig_start(r);
    r->core.slots.mark_interval = 1;
    for (int i = 0; i < 20; i++)
        KERNEL(r, ACS_OUT(AT(i * 64), 8));
    r->core.since_poll = r->core.window.limit / 2 - 8; /* as if so many were issued before */
    for (int i = 0; i < 16; i++)
        step(r);
    assert_int_equal(r->backend.submitted_count, 16);
    assert_in_range(r->backend.polls, 1, SLOTS);
    rig_close(r);
}

static void next_beside_a_batch_under_way_takes_other_slots_and_no_dependents(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.batch = 1;
    rig_start(r);
    acs_op first = KERNEL(r, ACS_OUT(AT(0), 8)), behind = KERNEL(r, ACS_IN(AT(0), 8));
    acs_op other = KERNEL(r, ACS_OUT(AT(64), 8));
    assert_true(next(r, 0));
    assert_int_equal(op_of(r, 0), first);

    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items[0].op->seq, other);
    assert_int_not_equal(r->action[1].batch.items[0].slot, r->action[0].batch.items[0].slot);
    assert_false(next(r, 2));
    finish(r, 1); /* the later one first */
    assert_false(next(r, 2) && r->action[2].batch.items[0].op);
    finish(r, 2);
    finish(r, 0);
    step(r);
    assert_int_equal(r->backend.issued[behind], 1);
    rig_close(r);
}

/* Random ops, answers and completions, up to three actions in flight: every op ends once, nothing is left behind. */
static void run_random(uint64_t seed, bool disable)
{
    acs_random random = {seed};
    rig *r = rig_make();
    body good = {0, 0}, bad = {0, 1};
    bool taken[3] = {false, false, false};
    told t = {0};
    r->options.window = 1 + acs_random_below(&random, 40);
    r->options.batch = 1 + acs_random_below(&random, 20);
    r->options.streams = 1 + acs_random_below(&random, SLOTS);
    r->options.wait = acs_random_below(&random, 4) ? ACS_WAIT_GPU : ACS_WAIT_HOST;
    r->options.disable = disable;
    rig_start(r);
    for (int i = 0; i < 3000; i++) {
        uint32_t a = acs_random_below(&random, 3), s = acs_random_below(&random, SLOTS);
        uint32_t dice = acs_random_below(&random, 20);
        acs_segment one = acs_make_segment(ACS_EXTENT_BYTES, (acs_access)(1 + acs_random_below(&random, 3)),
                                           AT(acs_random_below(&random, 24) * 8), 8 + 8 * (dice == 0), 1, 0);
        if (taken[a])
            finish(r, (int)a);
        taken[a] = !taken[a] && next(r, (int)a);
        if (r->last - r->ended_count > 100 || acs_random_below(&random, 3))
            continue;
        if (dice == 1)
            push_host(r, one, acs_random_below(&random, 8) ? &good : &bad);
        else if (dice == 2)
            push_callback(r, 1 + acs_random_below(&random, (uint32_t)r->last + 1), &t);
        else
            KERNEL(r, one, ACS_IN(AT(dice * 8), 8));
        if (acs_random_below(&random, 12) == 0)
            answer(r, r->last, acs_random_below(&random, 6) ? ACS_NOT_READY : ACS_ERR_LAUNCH, 1);
        if (r->backend.complete[s] < r->backend.newest[s])
            r->backend.complete[s] += acs_random_below(&random, 4);
    }
    for (int a = 0; a < 3; a++)
        if (taken[a])
            finish(r, a);
    rig_close(r);
}

static void random_steps_end_every_op_once_and_leave_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_random(seed, false);
}

static void random_steps_with_disable_end_every_op_once(void **state)
{
    (void)state;
    for (uint64_t seed = 31; seed <= 50; seed++)
        run_random(seed, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_puts_followers_into_the_batch_with_inner_edges),
        cmocka_unit_test(next_takes_at_most_a_batch_and_leaves_the_rest),
        cmocka_unit_test(next_with_nothing_to_do_finds_nothing),
        cmocka_unit_test(step_with_more_ops_than_the_window_holds_runs_them_all),
        cmocka_unit_test(done_with_a_failed_item_skips_dependents_and_runs_the_others),
        cmocka_unit_test(done_with_a_bounced_item_issues_it_and_its_followers_again),
        cmocka_unit_test(next_leaves_a_follower_that_will_be_skipped_out_of_the_batch),
        cmocka_unit_test(done_with_a_failed_op_behind_running_ones_ends_it_when_they_have),
        cmocka_unit_test(poll_that_faults_ends_everything_and_names_the_suspects),
        cmocka_unit_test(submit_that_faults_ends_everything),
        cmocka_unit_test(fault_while_another_batch_is_under_way_ends_that_too),
        cmocka_unit_test(host_function_runs_once_its_upstream_has_retired),
        cmocka_unit_test(library_call_is_the_last_of_its_batch),
        cmocka_unit_test(host_function_that_fails_skips_dependents),
        cmocka_unit_test(callback_runs_behind_its_target_and_is_told_how_it_ended),
        cmocka_unit_test(stream_wait_that_is_skipped_releases_its_event),
        cmocka_unit_test(stream_signal_ends_when_it_is_issued),
        cmocka_unit_test(serial_issues_an_op_when_the_one_before_has_retired),
        cmocka_unit_test(disable_issues_in_program_order_in_one_slot),
        cmocka_unit_test(next_does_not_poll_while_a_poll_is_under_way),
        cmocka_unit_test(next_lists_polls_with_a_batch_after_many_ops),
        cmocka_unit_test(next_beside_a_batch_under_way_takes_other_slots_and_no_dependents),
        cmocka_unit_test(random_steps_end_every_op_once_and_leave_nothing),
        cmocka_unit_test(disable_with_two_bounced_items_in_a_batch_issues_both_again),
        cmocka_unit_test(disable_with_a_bounced_item_before_a_host_function_runs_both),
        cmocka_unit_test(random_steps_with_disable_end_every_op_once),
    };
    alarm(1800); /* a core that never comes to an end would hang the run */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
