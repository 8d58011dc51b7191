/*
 * Unit tests of scheduler/core_bundle: what goes into a bundle and what does not, when ops are held back for one, joins,
 * refusals, and random programs whose order is checked by ACS_CHECK's independent look, over core_fixture.h's backend.
 */
#include "core_fixture.h"

#include "base/base.h"
#include "scheduler/core_internal.h"

static rig *rig_bundles(uint32_t most)
{
    rig *r = rig_make();
    r->backend.base.bundle_most = most;
    rig_start(r);
    return r;
}

static acs_op push_type(rig *r, uint32_t type, acs_record *op)
{
    op->type = type;
    return push(r, op);
}

#define RIDE(r, ...) push_type((r), 1, RECORD((r), ACS_KIND_KERNEL, __VA_ARGS__))

/* So many ops that have nothing to do with each other. */
static void ride_apart(rig *r, int count)
{
    for (int i = 0; i < count; i++)
        RIDE(r, ACS_OUT(AT(i * 64), 8));
}

/* As a caller does beside a worker: nothing is issued. */
static void fill_window(rig *r)
{
    while (acs_core_next(&r->core, ACS_MAY_INSERT, &r->action[0]))
        continue;
}

static const acs_batch *batch_of(const rig *r)
{
    return &r->action[0].batch;
}

/* --------------------------------------------------------------------------------------------------------- gathering */

static void many_ops_with_what_follows_them_are_one_bundle_in_one_slot(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    for (int level = 0; level < 3; level++)
        for (int i = 0; i < 4; i++)
            RIDE(r, ACS_INOUT(AT(i * 64), 64));

    assert_true(next(r, 0));

    assert_true(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, 12);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(batch_of(r)->items[i].edge_count, i >= 4);
    assert_true(acs_check_batch_orders(batch_of(r), 0, 8));
    assert_false(acs_check_batch_orders(batch_of(r), 0, 9));
    finish(r, 0);
    assert_int_equal(r->backend.bundles, 1);
    assert_int_equal(r->core.counters.bundles, 1);
    rig_close(r);
}

static void few_ops_are_launched_one_by_one(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    ride_apart(r, 5);
    assert_true(next(r, 0));
    assert_false(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, 5);
    finish(r, 0);
    rig_close(r);
}

static void a_bundle_is_at_most_as_large_as_the_backend_and_half_the_window_allow(void **state)
{
    (void)state;
    static const uint32_t most[] = {10, 500}, expected[] = {10, 32};
    for (int k = 0; k < 2; k++) {
        rig *r = rig_bundles(most[k]);
        for (int i = 0; i < 60; i++)
            RIDE(r, ACS_OUT(AT(i * 64), 8));
        assert_true(next(r, 0));
        assert_int_equal(batch_of(r)->items_used, expected[k]);
        finish(r, 0);
        rig_close(r);
    }
}

static void ops_that_cannot_ride_go_first_and_are_waited_for(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    acs_op copy = push(r, RECORD(r, ACS_KIND_MEMCPY, ACS_OUT(AT(0), 64)));
    for (int i = 0; i < 8; i++)
        RIDE(r, ACS_IN(AT(0), 64), ACS_OUT(AT(1000 + i * 64), 8));
    for (int i = 0; i < 8; i++)
        RIDE(r, ACS_OUT(AT(5000 + i * 64), 8));

    assert_true(next(r, 0));
    assert_false(batch_of(r)->bundle);
    assert_int_equal(op_of(r, 0), copy);
    finish(r, 0);
    assert_true(next(r, 0));
    assert_true(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, 8); /* the other eight run behind the copy: held */
    finish(r, 0);
    rig_close(r);
}

static void types_that_cannot_ride_are_left_out_with_all_that_follows(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    for (int i = 0; i < 8; i++)
        RIDE(r, ACS_OUT(AT(i * 64), 64));
    acs_op alone = push_type(r, 0, RECORD(r, ACS_KIND_KERNEL, ACS_INOUT(AT(0), 64)));
    acs_op behind = RIDE(r, ACS_IN(AT(0), 64));

    assert_true(next(r, 0));
    assert_true(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, 8);
    finish(r, 0);
    run_to_end(r);
    assert_int_equal(r->status[alone], ACS_OK);
    assert_int_equal(r->status[behind], ACS_OK);
    rig_close(r);
}

/* Of a range that remembers few readers: twenty make joins; the writer behind them follows through one. */
static void a_writer_behind_many_readers_follows_through_a_join(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    r->core.window.readers_most = ACS_REGION_READERS;
    RIDE(r, ACS_OUT(AT(0), 64));
    for (int i = 0; i < 20; i++)
        RIDE(r, ACS_IN(AT(0), 64), ACS_OUT(AT(1000 + i * 64), 8));
    acs_op writer = RIDE(r, ACS_OUT(AT(0), 64));

    assert_true(next(r, 0));

    uint32_t joins = 0, at = 0;
    for (uint32_t i = 0; i < batch_of(r)->items_used; i++) {
        joins += batch_of(r)->items[i].op == NULL;
        at = op_of(r, i) == writer ? i : at;
    }
    assert_true(joins > 0);
    assert_int_equal(at, batch_of(r)->items_used - 1);
    for (uint32_t i = 0; i < at; i++)
        assert_true(acs_check_batch_orders(batch_of(r), i, at));
    finish(r, 0);
    rig_close(r);
}

/* ----------------------------------------------------------------------------------------------------------- holding */

/* Of the readers that a join stands for some were issued before: what follows the join waits for them too. */
static void a_bundle_waits_for_what_its_joins_were_issued_behind(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    uint64_t slots = 0, waited = 0;
    for (int i = 0; i < 4; i++)
        push(r, RECORD(r, ACS_KIND_KERNEL, ACS_IN(AT(0), 64), ACS_OUT(AT(5000 + i * 64), 8)));
    assert_true(next(r, 0));
    for (uint32_t i = 0; i < 4; i++)
        slots |= 1ull << batch_of(r)->items[i].slot;
    finish(r, 0);
    for (int i = 0; i < 12; i++)
        RIDE(r, ACS_IN(AT(0), 64), ACS_OUT(AT(1000 + i * 64), 8));
    RIDE(r, ACS_OUT(AT(0), 64));

    assert_true(next(r, 0));

    assert_true(batch_of(r)->bundle);
    for (uint32_t i = 0; i < batch_of(r)->waits_used; i++)
        waited |= 1ull << batch_of(r)->waits[i].slot;
    assert_int_equal(waited | 1ull << batch_of(r)->items[0].slot, slots | 1ull << batch_of(r)->items[0].slot);
    assert_true(__builtin_popcountll(slots) > 1);
    finish(r, 0);
    rig_close(r);
}

static void while_a_bundle_is_out_a_smaller_one_is_held_until_it_has_shrunk(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    ride_apart(r, 20);
    step(r);
    assert_int_equal(r->backend.bundles, 1);
    for (int i = 0; i < 8; i++)
        RIDE(r, ACS_IN(AT(i * 64), 8));
    step(r);
    step(r);
    assert_int_equal(r->backend.submitted_count, 20);
    complete_all(r);
    step(r);
    step(r);
    assert_int_equal(r->backend.submitted_count, 28);
    assert_int_equal(r->backend.bundles, 2);
    rig_close(r);
}

/* Twenty under way, and eight held behind them. */
static rig *rig_holding(void)
{
    rig *r = rig_bundles(32);
    ride_apart(r, 20);
    step(r);
    for (int i = 0; i < 8; i++)
        RIDE(r, ACS_IN(AT(i * 64), 8));
    step(r);
    step(r);
    assert_int_equal(r->backend.submitted_count, 20);
    return r;
}

static void what_is_held_goes_once_a_caller_waits_for_some_of_it(void **state)
{
    (void)state;
    rig *r = rig_holding();
    acs_core_await(&r->core, r->last);
    step(r);
    assert_int_equal(r->backend.submitted_count, 28);
    assert_int_equal(r->backend.bundles, 2);
    rig_close(r);
}

/* It will be larger then, and the GPU has work. */
static void what_a_caller_waits_for_is_held_as_long_as_more_is_queued(void **state)
{
    (void)state;
    rig *r = rig_holding();
    acs_op wanted = r->last;
    acs_core_await(&r->core, wanted);
    RIDE(r, ACS_IN(AT(8 * 64), 8));
    assert_true(acs_core_next(&r->core, ACS_MAY_ISSUE, &r->action[0])); /* which leaves it queued */
    assert_false(batch_of(r)->bundle);
    finish(r, 0);
    assert_int_equal(r->backend.submitted_count, 20);
    step(r);
    assert_int_equal(r->backend.submitted_count, 29);
    assert_int_equal(r->backend.bundles, 2);
    rig_close(r);
}

static void what_is_held_stays_where_a_caller_waits_for_what_is_under_way(void **state)
{
    (void)state;
    rig *r = rig_holding();
    acs_core_await(&r->core, 20);
    for (int i = 0; i < 4; i++)
        step(r);
    assert_int_equal(r->backend.submitted_count, 20);
    rig_close(r);
}

static void what_is_held_goes_after_a_while_in_which_nothing_came(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    ride_apart(r, 20);
    step(r);
    RIDE(r, ACS_IN(AT(0), 8));
    step(r);
    step(r);
    assert_int_equal(r->backend.submitted_count, 20);
    for (int i = 0; i < 100; i++)
        step(r);
    assert_int_equal(r->backend.submitted_count, 21);
    rig_close(r);
}

/* A few that nothing is in front of: the GPU may have room for them. */
static void what_runs_behind_nothing_goes_at_once(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    ride_apart(r, 20);
    step(r);
    RIDE(r, ACS_OUT(AT(5000), 8));
    step(r);
    assert_int_equal(r->backend.submitted_count, 21);
    assert_int_equal(r->core.counters.launched_few, 1);
    rig_close(r);
}

/* Eight chains of sixteen become two bundles of four chains, in a slot each; eight of four become one. */
static void what_runs_behind_nothing_is_spread_over_a_few_bundles(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.window = 256;
    r->backend.base.bundle_most = 128;
    rig_start(r);
    for (int level = 0; level < 16; level++)
        for (int i = 0; i < 8; i++)
            RIDE(r, ACS_INOUT(AT(i * 64), 64));
    fill_window(r);
    assert_true(next(r, 0));
    assert_int_equal(batch_of(r)->items_used, 64);
    int slot = batch_of(r)->items[0].slot;
    finish(r, 0);
    assert_true(next(r, 0));
    assert_int_equal(batch_of(r)->items_used, 64);
    assert_int_not_equal(batch_of(r)->items[0].slot, slot);
    finish(r, 0);
    run_to_end(r);
    for (int i = 0; i < 32; i++)
        RIDE(r, ACS_INOUT(AT(i % 8 * 64), 64));
    fill_window(r);
    assert_true(next(r, 0));
    assert_int_equal(batch_of(r)->items_used, 32);
    finish(r, 0);
    rig_close(r);
}

/* At most 32 ops at a time, from the first that was not issued. */
static void a_bundle_takes_a_piece_of_the_order(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    for (int i = 0; i < 10; i++)
        RIDE(r, ACS_INOUT(AT(i % 4 * 64), 64));
    step(r);
    for (int i = 0; i < 40; i++)
        RIDE(r, ACS_INOUT(AT(i % 4 * 64), 64));
    step(r);
    assert_int_equal(r->backend.submitted_count, 42);
    assert_int_equal(r->backend.bundles, 2);
    rig_close(r);
}

/* Half the window is under way, the other half waits behind it: it is all of a bundle, and goes. */
static void a_bundle_that_is_all_there_goes(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    for (int i = 0; i < 70; i++)
        RIDE(r, ACS_INOUT(AT(i % 4 * 64), 64));
    fill_window(r);
    for (int k = 0; k < 2; k++) {
        assert_true(next(r, 0));
        assert_int_equal(batch_of(r)->items_used, 32);
        assert_true(batch_of(r)->bundle);
        finish(r, 0);
    }
    rig_close(r);
}

/* Nothing completes: what is behind a host function stays, and what comes after that is not held for it. */
static void what_is_blocked_holds_nothing_that_comes_behind_it(void **state)
{
    (void)state;
    static body host;
    rig *r = rig_bundles(32);
    for (int i = 0; i < 20; i++)
        RIDE(r, ACS_INOUT(AT(0), 64));
    push_host(r, ACS_IN(AT(0), 64), &host);
    for (int i = 0; i < 20; i++)
        RIDE(r, ACS_INOUT(AT(4096 + 64 * i), 64));
    for (int i = 0; i < 100; i++)
        step(r);
    assert_int_equal(r->backend.submitted_count, 40);
    rig_close(r);
}

/* A copy is nobody's to hold. */
static void what_cannot_ride_is_not_held(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    ride_apart(r, 20);
    step(r);
    RIDE(r, ACS_IN(AT(0), 8));
    push(r, RECORD(r, ACS_KIND_MEMSET, ACS_OUT(AT(6000), 64)));
    step(r);
    assert_int_equal(r->backend.submitted_count, 21);
    rig_close(r);
}

/* ---------------------------------------------------------------------------------------------------------- refusals */

static void a_refused_bundle_is_launched_op_by_op(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    r->backend.refusals = 1;
    for (int level = 0; level < 2; level++)
        for (int i = 0; i < 6; i++)
            RIDE(r, ACS_INOUT(AT(i * 64), 64));
    step(r);
    assert_int_equal(r->backend.refused, 1);
    assert_int_equal(r->core.bundled_out, 0);
    assert_int_equal(r->core.running, 0);
    run_to_end(r);
    for (acs_op op = 1; op <= 12; op++) {
        assert_int_equal(r->status[op], ACS_OK);
        assert_int_equal(r->backend.issued[op], 1);
    }
    rig_close(r);
}

/* The values of a refused bundle are nobody's: what was before it is still last in its slot. */
static void a_chain_stays_in_its_slot_behind_a_refused_bundle(void **state)
{
    (void)state;
    rig *r = rig_bundles(8);
    r->backend.refusals = 5;
    for (int i = 0; i < 60; i++)
        RIDE(r, ACS_INOUT(AT(0), 64));
    for (int i = 0; i < 60; i++)
        step(r);
    assert_int_equal(r->backend.refused, 5);
    assert_true(r->core.slots.counters.same_slot > 0);
    assert_int_equal(r->core.slots.counters.waits_sent, 0);
    run_to_end(r);
    rig_close(r);
}

static void after_refusals_fewer_bundles_are_tried_until_one_is_taken(void **state)
{
    (void)state;
    rig *r = rig_bundles(16);
    r->backend.refusals = 3;
    complete_all(r);
    for (int round = 0; round < 160; round++) {
        for (int i = 0; i < 8; i++)
            RIDE(r, ACS_INOUT(AT(i * 64), 64));
        run_to_end(r);
        if (round == 20) /* bundles of that size are left alone for a while */
            assert_int_equal(r->backend.refused, 1);
    }
    assert_int_equal(r->backend.refused, 3);
    assert_true(r->backend.bundles > 10);
    assert_int_equal(r->core.bundler->refusals, 0);
    rig_close(r);
}

static void an_op_that_fails_outside_skips_what_waits_for_it_and_bundles_go_on(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    acs_op bad = push_type(r, 0, RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(0), 64)));
    answer(r, bad, ACS_ERR_LAUNCH, 1);
    acs_op skipped = RIDE(r, ACS_IN(AT(0), 64), ACS_OUT(AT(64), 64));
    for (int i = 0; i < 10; i++)
        RIDE(r, ACS_OUT(AT(1000 + i * 64), 64));
    run_to_end(r);
    assert_int_equal(r->status[bad], ACS_ERR_LAUNCH);
    assert_int_equal(r->status[skipped], ACS_ERR_SKIPPED);
    assert_int_equal(r->status[skipped + 5], ACS_OK);
    rig_close(r);
}

static void a_lost_device_ends_the_ops_of_a_bundle(void **state)
{
    (void)state;
    rig *r = rig_bundles(32);
    for (int i = 0; i < 10; i++)
        RIDE(r, ACS_OUT(AT(i * 64), 64));
    step(r);
    r->backend.poll_fails = true;
    for (int i = 0; i < 4; i++)
        step(r);
    assert_int_equal(r->faults, 1);
    for (acs_op op = 1; op <= 10; op++)
        assert_int_equal(r->status[op], ACS_ERR_DEVICE);
    assert_int_equal(r->core.bundled_out, 0);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------- random */

static acs_segment some_segment(acs_random *random)
{
    uint64_t at = acs_random_below(random, 24) * 32, bytes = 16 + acs_random_below(random, 4) * 40;
    switch (acs_random_below(random, 3)) {
    case 0:
        return ACS_OUT(AT(at), bytes);
    case 1:
        return ACS_INOUT(AT(at), bytes);
    default:
        return ACS_IN(AT(at), bytes);
    }
}

static void push_some(rig *r, acs_random *random)
{
    acs_segment segments[3] = {some_segment(random), some_segment(random), some_segment(random)};
    bool ride = acs_random_below(random, 10) != 0;
    acs_op_kind kind = ride || acs_random_below(random, 2) ? ACS_KIND_KERNEL : ACS_KIND_MEMCPY;
    acs_record *op = record(r, kind, segments, 1 + (uint32_t)acs_random_below(random, 3));
    push_type(r, ride, op);
}

/* Completes some of what was issued to a slot: any prefix, also the middle of a bundle. */
static void complete_some(rig *r, acs_random *random)
{
    uint32_t slot = (uint32_t)acs_random_below(random, SLOTS);
    uint32_t out = (uint32_t)(r->backend.newest[slot] - r->backend.complete[slot]);
    r->backend.complete[slot] += acs_random_below(random, out + 1);
}

/* The core looks at every pair of conflicting ops that it issues, and rig_close at what it found. */
static void random_programs_are_ordered_with_and_without_refusals(void **state)
{
    (void)state;
    uint32_t bundles = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        acs_random random;
        random = (acs_random){seed};
        rig *r = rig_make();
        r->options.issue = seed % 3 == 0 ? ACS_ISSUE_REPLAY : ACS_ISSUE_AUTO;
        r->options.wait = seed % 7 == 0 ? ACS_WAIT_HOST : ACS_WAIT_GPU;
        r->backend.base.bundle_most = 4 + (uint32_t)acs_random_below(&random, 40);
        rig_start(r);
        for (int i = 0; i < 300; i++) {
            if (r->last < r->ended_count + 150)
                push_some(r, &random);
            r->backend.refusals += seed % 2 && acs_random_below(&random, 8) == 0;
            if (acs_random_below(&random, 3) == 0)
                step(r);
            complete_some(r, &random);
        }
        run_to_end(r);
        for (acs_op op = 1; op <= r->last; op++) {
            assert_int_equal(r->status[op], ACS_OK);
            assert_int_equal(r->backend.issued[op], 1);
        }
        bundles += r->backend.bundles;
        rig_close(r);
    }
    assert_true(bundles > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_ops_with_what_follows_them_are_one_bundle_in_one_slot),
        cmocka_unit_test(few_ops_are_launched_one_by_one),
        cmocka_unit_test(a_bundle_is_at_most_as_large_as_the_backend_and_half_the_window_allow),
        cmocka_unit_test(ops_that_cannot_ride_go_first_and_are_waited_for),
        cmocka_unit_test(types_that_cannot_ride_are_left_out_with_all_that_follows),
        cmocka_unit_test(a_writer_behind_many_readers_follows_through_a_join),
        cmocka_unit_test(a_bundle_waits_for_what_its_joins_were_issued_behind),
        cmocka_unit_test(while_a_bundle_is_out_a_smaller_one_is_held_until_it_has_shrunk),
        cmocka_unit_test(what_is_held_goes_once_a_caller_waits_for_some_of_it),
        cmocka_unit_test(what_a_caller_waits_for_is_held_as_long_as_more_is_queued),
        cmocka_unit_test(what_is_held_stays_where_a_caller_waits_for_what_is_under_way),
        cmocka_unit_test(what_is_held_goes_after_a_while_in_which_nothing_came),
        cmocka_unit_test(what_runs_behind_nothing_goes_at_once),
        cmocka_unit_test(what_runs_behind_nothing_is_spread_over_a_few_bundles),
        cmocka_unit_test(a_bundle_takes_a_piece_of_the_order),
        cmocka_unit_test(a_bundle_that_is_all_there_goes),
        cmocka_unit_test(what_is_blocked_holds_nothing_that_comes_behind_it),
        cmocka_unit_test(what_cannot_ride_is_not_held),
        cmocka_unit_test(a_refused_bundle_is_launched_op_by_op),
        cmocka_unit_test(a_chain_stays_in_its_slot_behind_a_refused_bundle),
        cmocka_unit_test(after_refusals_fewer_bundles_are_tried_until_one_is_taken),
        cmocka_unit_test(an_op_that_fails_outside_skips_what_waits_for_it_and_bundles_go_on),
        cmocka_unit_test(a_lost_device_ends_the_ops_of_a_bundle),
        cmocka_unit_test(random_programs_are_ordered_with_and_without_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
