/*
 * Unit tests of scheduler/core_wanted: what leads to the op that a caller waits for is issued first, and when it is
 * not; a look asks for the slot of that op alone. And of watches, by which callers sleep; and of what a wait showed of
 * the device, where a bundle comes next. Over core_fixture.h's backend.
 */
#include "core_fixture.h"

#include "base/base.h"

/* Nothing is issued: what to issue first is decided with all of it in the window. */
static void fill_window(rig *r)
{
    while (acs_core_next(&r->core, ACS_MAY_INSERT, &r->action[0]))
        continue;
}

static rig *rig_of(uint32_t bundle_most)
{
    rig *r = rig_make();
    r->backend.base.bundle_most = bundle_most;
    return rig_start(r);
}

static acs_op push_riding(rig *r, acs_record *op)
{
    op->type = 1;
    return push(r, op);
}

#define RIDE(r, ...) push_riding((r), RECORD((r), ACS_KIND_KERNEL, __VA_ARGS__))

static void ride_apart(rig *r, int count)
{
    for (int i = 0; i < count; i++)
        RIDE(r, ACS_OUT(AT(100000 + i * 64), 8));
}

/* So many that follow each other; the last is waited for. */
static acs_op ride_chain(rig *r, int count)
{
    acs_op last = 0;
    for (int i = 0; i < count; i++)
        last = RIDE(r, ACS_INOUT(AT(0), 8));
    return last;
}

static const acs_batch *batch_of(const rig *r)
{
    return &r->action[0].batch;
}

static void assert_batch(const rig *r, acs_op first, acs_op last)
{
    assert_false(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, last - first + 1);
    for (acs_op op = first; op <= last; op++)
        assert_int_equal(op_of(r, (uint32_t)(op - first)), op);
}

/* ------------------------------------------------------------------------------------------------------------ issue */

static void what_leads_to_the_op_goes_first_and_alone(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    ride_apart(r, 3);
    acs_op first = RIDE(r, ACS_OUT(AT(0), 8));
    RIDE(r, ACS_IN(AT(0), 8), ACS_OUT(AT(8), 8));
    acs_op wanted = RIDE(r, ACS_IN(AT(8), 8));
    RIDE(r, ACS_IN(AT(8), 8)); /* follows, too, and nobody waits for it */
    fill_window(r);
    acs_core_await(&r->core, wanted);

    assert_true(next(r, 0));
    assert_batch(r, first, wanted);
    finish(r, 0);
    assert_true(next(r, 0));
    assert_int_equal(batch_of(r)->items_used, 4);
    assert_int_equal(op_of(r, 0), 1);
    finish(r, 0);
    rig_close(r);
}

static void without_a_wait_program_order_decides(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    ride_apart(r, 3);
    acs_op wanted = ride_chain(r, 1);
    fill_window(r);
    acs_core_await(&r->core, wanted);
    acs_core_await_no_more(&r->core, wanted - 1); /* another caller's */
    acs_core_await_no_more(&r->core, wanted);

    assert_true(next(r, 0));
    assert_batch(r, 1, wanted);
    finish(r, 0);
    rig_close(r);
}

static void what_a_join_stands_between_goes_first_too(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    ride_apart(r, 2);
    acs_op first = ride_chain(r, 1);
    r->core.window.readers_most = ACS_REGION_READERS;
    for (int i = 0; i < 12; i++)
        RIDE(r, ACS_IN(AT(0), 8));
    acs_op wanted = ride_chain(r, 1);
    fill_window(r);
    assert_true(r->core.window.live_joins > 0);
    acs_core_await(&r->core, wanted);

    assert_true(next(r, 0));
    assert_int_equal(batch_of(r)->items_used, wanted - first); /* the join is issued when they are */
    for (uint32_t i = 0; i < batch_of(r)->items_used; i++)
        assert_in_range(op_of(r, i), first, wanted - 1);
    finish(r, 0);
    assert_true(next(r, 0));
    assert_batch(r, wanted, wanted);
    finish(r, 0);
    rig_close(r);
}

static void a_busy_device_gets_what_came_first(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    ride_apart(r, 16);
    assert_true(step(r));
    for (int i = 0; i < 2; i++)
        RIDE(r, ACS_OUT(AT(200000 + i * 64), 8));
    acs_op wanted = ride_chain(r, 1);
    fill_window(r);
    acs_core_await(&r->core, wanted);

    assert_true(next(r, 0));
    assert_batch(r, 17, wanted);
    finish(r, 0);
    rig_close(r);
}

/* The bundle would end when all of it has; what is waited for is ahead of it. */
static void few_ops_are_taken_out_of_a_bundle(void **state)
{
    (void)state;
    rig *r = rig_of(32);
    ride_apart(r, 10);
    acs_op wanted = ride_chain(r, 3);
    fill_window(r);
    acs_core_await(&r->core, wanted);

    assert_true(next(r, 0));
    assert_batch(r, wanted - 2, wanted);
    finish(r, 0);
    assert_true(next(r, 0));
    assert_true(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, 10);
    finish(r, 0);
    rig_close(r);
}

static void many_ops_stay_in_their_bundle(void **state)
{
    (void)state;
    rig *r = rig_of(32);
    ride_apart(r, 10);
    acs_op wanted = ride_chain(r, 8);
    fill_window(r);
    acs_core_await(&r->core, wanted);

    assert_true(next(r, 0));
    assert_true(batch_of(r)->bundle);
    assert_int_equal(batch_of(r)->items_used, wanted);
    finish(r, 0);
    rig_close(r);
}

/* The op waits for a host function, which may take as long as it likes: the others must not. */
static void others_go_while_nothing_can_be_done_for_the_op(void **state)
{
    (void)state;
    rig *r = rig_of(32);
    body b = {0, 0};
    KERNEL(r, ACS_OUT(AT(0), 8));
    push_host(r, ACS_INOUT(AT(0), 8), &b);
    acs_op wanted = RIDE(r, ACS_IN(AT(0), 8));
    ride_apart(r, 10);
    fill_window(r);
    acs_core_await(&r->core, wanted);

    step(r);
    assert_int_equal(r->backend.issued[1], 1);
    step(r);
    assert_int_equal(r->backend.bundles, 1);
    assert_int_equal(r->backend.issued[wanted], 0);
    run_to_end(r);
    assert_int_equal(b.calls, 1);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------- look */

static bool look(rig *r)
{
    return acs_core_next(&r->core, ACS_MAY_LOOK, &r->action[0]);
}

static void a_look_asks_for_one_slot(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    ride_apart(r, 3);
    acs_op wanted = ride_chain(r, 1);
    acs_core_await(&r->core, wanted);
    assert_false(look(r)); /* still queued */
    fill_window(r);
    assert_false(look(r)); /* not issued */
    acs_core_await_no_more(&r->core, wanted);
    assert_true(step(r));
    assert_false(look(r)); /* nobody waits */
    acs_core_await(&r->core, wanted);
    const int slot = acs_window_find(&r->core.window, wanted)->slot;
    r->core.polled = 0;

    assert_true(look(r)); /* a mark behind it, if there is none */
    if (batch_of(r)->items_used) {
        assert_int_equal(batch_of(r)->marks_used, 1);
        assert_int_equal(batch_of(r)->marks[0].slot, slot);
        finish(r, 0);
        assert_true(look(r));
    }
    assert_int_equal(r->action[0].poll_count, 1);
    assert_int_equal(r->action[0].polls[0].slot, slot);
    finish(r, 0);
    assert_false(r->action[0].progress);
    assert_int_equal(r->status[wanted], NO_END);
    complete_all(r);
    assert_true(look(r));
    finish(r, 0);
    assert_true(r->action[0].progress);
    assert_int_equal(r->status[wanted], ACS_OK);
    assert_int_equal(r->status[1], NO_END); /* in another slot */
    assert_int_equal(r->core.polled, 1ull << slot); /* the watchdog counts no time for the others */
    rig_close(r);
}

static void a_look_leaves_alone_what_another_thread_polls(void **state)
{
    (void)state;
    rig *r = rig_of(0);
    acs_op wanted = ride_chain(r, 1);
    assert_true(step(r));
    acs_core_await(&r->core, wanted);
    while (next(r, 1) && r->action[1].poll_count == 0)
        finish(r, 1);
    assert_true(r->core.polling);

    assert_false(look(r));
    finish(r, 1);
    assert_true(look(r));
    finish(r, 0);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------ watch */

/* Told each time, a thread that steps in vain beside a caller who has not looked yet would wake itself for ever. */
static void a_watch_that_came_true_is_told_once(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_wait_condition condition = {.type = ACS_WAIT_FOR_OP, .op = KERNEL(r, ACS_OUT(AT(0), 8))};
    acs_core_add_condition(&r->core, &condition);
    uint32_t times = 0;
    complete_all(r);
    for (int i = 0; i < 8; i++) {
        bool found = next(r, 0);
        times += r->action[0].news.condition_met;
        if (!found)
            continue;
        finish(r, 0);
        times += r->action[0].news.condition_met;
    }
    assert_int_equal(r->status[condition.op], ACS_OK);
    assert_int_equal(times, 1);
    acs_core_remove_condition(&r->core, &condition);
    rig_close(r);
}

/* Its kernels run side by side in its one slot: however long they take, that is no reason for more slots. */
static void what_long_launches_showed_does_not_hold_for_bundles(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const int ops = kind % 2 ? 8 : 4, refused = kind / 2;
        rig *r = rig_make();
        r->backend.base.bundle_most = 32;
        rig_start(r);
        acs_bank *bank = &r->core.slots.banks[0];
        KERNEL(r, ACS_OUT(AT(8192), 8)); /* is out, and was polled: there is something to ask about */
        assert_true(step(r));
        assert_true(step(r));
        bank->deep_now = 1;
        bank->wants_poll = true;
        bank->fed = 0;
        for (int i = 0; i < ops; i++) {
            acs_record *op = RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(i * 64), 8));
            op->type = 1; /* may ride */
            push(r, op);
        }
        r->backend.refusals = (uint32_t)refused;
        assert_true(next(r, 0));
        assert_int_equal(r->action[0].batch.bundle, ops == 8);
        assert_true(r->action[0].poll_count > 0);
        finish(r, 0);
        assert_int_equal(bank->deep_now == 1, ops == 4 || refused);
        r->backend.refusals = 0;
        rig_close(r);
    }
}

static acs_core_load load_of(rig *r, uint32_t few)
{
    acs_core_load load;
    assert_true(acs_core_look_try(&r->core, NULL, few, NULL, &load));
    return load;
}

/* A caller watches the end of what is out; where that is one op among many, workers do. */
static void who_spins_watches_many_ops_only_for_the_end_of_all(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.streams = SLOTS;
    rig_start(r);
    for (int i = 0; i < SLOTS - 1; i++)
        KERNEL(r, ACS_OUT(AT(i * 64), 8));
    const acs_op end = KERNEL(r, ACS_IN(AT(0), 64 * SLOTS), ACS_OUT(AT(64 * SLOTS), 8));
    assert_int_equal(load_of(r, 100), ACS_LOAD_BLOCKED);
    while (r->core.running < SLOTS || r->action[0].batch.items_used)
        assert_true(step(r));
    assert_int_equal(load_of(r, SLOTS), ACS_LOAD_RUNNING);
    assert_int_equal(load_of(r, SLOTS - 1), ACS_LOAD_RUNNING); /* nobody waits for one of them */
    acs_core_await(&r->core, 1);
    assert_int_equal(load_of(r, SLOTS), ACS_LOAD_RUNNING);
    assert_int_equal(load_of(r, SLOTS - 1), ACS_LOAD_BLOCKED);
    acs_core_await(&r->core, end);
    assert_int_equal(load_of(r, SLOTS - 1), ACS_LOAD_RUNNING);
    KERNEL(r, ACS_OUT(AT(4096), 8)); /* beside it */
    while (r->core.running < SLOTS + 1)
        assert_true(step(r));
    assert_int_equal(load_of(r, SLOTS), ACS_LOAD_BLOCKED);
    const uint32_t beside = slot_of(r, r->last);
    r->backend.complete[beside] = UINT64_MAX;
    while (r->status[r->last] == NO_END)
        assert_true(step(r));
    assert_int_equal(load_of(r, 1), ACS_LOAD_RUNNING); /* that slot is empty */
    KERNEL(r, ACS_INOUT(AT(64 * SLOTS), 8)); /* behind the end */
    while (r->core.window.live > r->core.running || r->last > r->core.taken)
        assert_true(step(r));
    assert_int_equal(load_of(r, 1), ACS_LOAD_BLOCKED);
    acs_core_await(&r->core, r->last);
    assert_int_equal(load_of(r, 1), ACS_LOAD_RUNNING);
    acs_core_await(&r->core, r->last - 1); /* has ended */
    assert_int_equal(load_of(r, 1), ACS_LOAD_BLOCKED);
    acs_core_await(&r->core, 0);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leads_to_the_op_goes_first_and_alone),
        cmocka_unit_test(without_a_wait_program_order_decides),
        cmocka_unit_test(what_a_join_stands_between_goes_first_too),
        cmocka_unit_test(a_busy_device_gets_what_came_first),
        cmocka_unit_test(few_ops_are_taken_out_of_a_bundle),
        cmocka_unit_test(many_ops_stay_in_their_bundle),
        cmocka_unit_test(others_go_while_nothing_can_be_done_for_the_op),
        cmocka_unit_test(a_look_asks_for_one_slot),
        cmocka_unit_test(a_look_leaves_alone_what_another_thread_polls),
        cmocka_unit_test(a_watch_that_came_true_is_told_once),
        cmocka_unit_test(what_long_launches_showed_does_not_hold_for_bundles),
        cmocka_unit_test(who_spins_watches_many_ops_only_for_the_end_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
