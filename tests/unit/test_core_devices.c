/*
 * Unit tests of the core with several devices: who polls which of them, beside whom, and that none is forgotten. Over
 * core_fixture.h's backend, which completes nothing by itself.
 */
#include "core_fixture.h"

enum {
    ALONE = 4096, /* where ops begin that have nothing to do with others */
    DEEP = 64     /* no queue is so deep that there should be more of them */
};

static acs_op push_to(rig *r, uint32_t device)
{
    acs_record *op = RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(ALONE + (r->last + 1) * 64), 8));
    op->device = (uint8_t)device;
    return push(r, op);
}

static rig *start_two(uint32_t slots, uint32_t deep)
{
    rig *r = rig_make();
    r->backend.base.devices = 2;
    r->options.streams = slots / 2;
    rig_start(r);
    acs_slots_shape(&r->core.slots, slots / 2, deep, false);
    return r;
}

/* Two devices, with an op in each of so many slots; the even ones are of device 0. */
static rig *two_devices(uint32_t slots)
{
    rig *r = start_two(slots, DEEP);
    for (uint32_t i = 0; i < slots; i++)
        push_to(r, i % 2);
    for (int i = 0; i < 3; i++)
        assert_true(step(r)); /* a batch for each, and marks */
    assert_int_equal(r->core.running, slots);
    assert_int_equal(r->backend.polls, 0);
    return r;
}

static uint32_t polled_by(const acs_action *action)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < action->poll_count; i++)
        slots |= 1u << action->polls[i].slot;
    return slots;
}

/* A thread, action[0], is at it: it issues to device 0 and polls that. */
static rig *device_0_polled(void)
{
    rig *r = two_devices(SLOTS);
    r->core.slots.banks[0].wants_poll = true;
    push_to(r, 0);
    assert_true(next(r, 0));
    assert_int_equal(polled_by(&r->action[0]), 5);
    return r;
}

static void who_issues_to_a_device_polls_that_one(void **state)
{
    (void)state;
    for (uint32_t device = 0; device < 2; device++) {
        rig *r = two_devices(SLOTS);
        r->core.slots.banks[0].wants_poll = r->core.slots.banks[1].wants_poll = true;
        push_to(r, device);
        assert_true(step(r));
        assert_int_equal(r->action[0].batch.items_used, 1);
        assert_int_equal(polled_by(&r->action[0]), device ? 0xa : 5);
        assert_false(r->core.slots.banks[device].wants_poll);
        assert_true(r->core.slots.banks[1 - device].wants_poll); /* which was not this one's to settle */
        push_to(r, device);
        assert_true(step(r));
        assert_int_equal(r->action[0].batch.items_used, 1);
        assert_int_equal(r->action[0].poll_count, 0);
        rig_close(r);
    }
}

/* What one device completed is seen while a thread is inside the driver for another. */
static void while_a_device_is_polled_others_are_by_other_threads(void **state)
{
    (void)state;
    rig *r = device_0_polled();

    r->backend.complete[1] = r->backend.complete[3] = UINT64_MAX;
    assert_true(next(r, 1));
    assert_int_equal(polled_by(&r->action[1]), 0xa);
    assert_false(next(r, 2)); /* all are looked after */
    acs_core_await(&r->core, 1); /* in slot 0 */
    assert_false(acs_core_next(&r->core, ACS_MAY_LOOK, &r->action[2]));
    acs_core_await(&r->core, 0);
    finish(r, 1);
    assert_int_equal(r->status[2] | r->status[4], ACS_OK);
    assert_false(next(r, 1)); /* the first one is still at it, */

    push_to(r, 0); /* and needs no help */
    r->core.slots.banks[0].wants_poll = true;
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items_used, 1);
    assert_int_equal(r->action[1].poll_count, 0);
    finish(r, 1);

    push_to(r, 1); /* the other may be polled again */
    for (int i = 0; i < 2; i++) {
        assert_true(next(r, 1)); /* the op, and a mark behind it */
        finish(r, 1);
    }
    assert_true(next(r, 1));
    assert_int_equal(polled_by(&r->action[1]), 1u << slot_of(r, r->last));
    finish(r, 1);
    finish(r, 0);
    rig_close(r);
}

/* What is awaited is on a device that another thread looks at: two must not ask about one slot. */
static void what_is_awaited_is_left_to_who_polls_its_device(void **state)
{
    (void)state;
    rig *r = device_0_polled();
    acs_core_await(&r->core, 1); /* in slot 0 */
    assert_true(next(r, 1));
    assert_int_equal(polled_by(&r->action[1]), 0xa);
    finish(r, 1);
    finish(r, 0);
    acs_core_await(&r->core, 0);
    rig_close(r);
}

/* One looks for what is awaited, and at one other slot in turn, while another polls the other device as a whole. */
static void beside_another_thread_each_slot_has_its_turn(void **state)
{
    (void)state;
    rig *r = two_devices(SLOTS_MOST);
    uint32_t slots = 0;
    acs_core_await(&r->core, 1); /* in slot 0 */
    for (int i = 0; i < 8; i++) {
        assert_true(next(r, 0));
        assert_int_equal(r->action[0].poll_count, 2);
        slots |= polled_by(&r->action[0]);
        if (r->action[0].poll_devices == 1) {
            assert_true(next(r, 1));
            assert_int_equal(polled_by(&r->action[1]), 0xaa);
            finish(r, 0);
            finish(r, 1);
        } else {
            finish(r, 0);
        }
    }
    assert_int_equal(slots & 0x55, 0x55);
    acs_core_await(&r->core, 0);
    rig_close(r);
}

static void a_device_asks_for_a_poll_of_its_own(void **state)
{
    (void)state;
    for (uint32_t device = 0; device < 2; device++) {
        rig *r = start_two(SLOTS, DEEP);
        acs_slots_shape(&r->core.slots, 1, 2, false);
        for (int i = 0; i < 3; i++)
            push_to(r, device);
        assert_true(step(r));
        assert_int_equal(r->action[0].batch.items_used, 3);
        assert_int_equal(r->core.slots.banks[device].wants_poll, true); /* two were out when the third came */
        assert_int_equal(r->core.slots.banks[1 - device].wants_poll, false);
        rig_close(r);
    }
}

static void polls_that_give_way_to_a_host_function_are_nobody_elses(void **state)
{
    (void)state;
    rig *r = device_0_polled();
    body b = {0, 0};
    assert_int_equal(r->core.polling, 1);
    push_host(r, ACS_IN(AT(0), 8), &b);
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].type, ACS_ACTION_HOST);
    assert_int_equal(r->core.polling, 1);
    finish(r, 1);
    finish(r, 0);
    assert_int_equal(r->core.polling, 0);
    assert_int_equal(b.calls, 1);
    rig_close(r);
}

/* All threads issue to device 1; nothing goes to device 0 any more. Its ops have marks behind them, or none yet. */
static void a_device_is_polled_while_ops_go_to_others_alone(void **state)
{
    (void)state;
    for (int marked = 0; marked < 2; marked++) {
        rig *r = marked ? two_devices(SLOTS) : start_two(SLOTS, DEEP);
        if (!marked)
            push_to(r, 0);
        complete_all(r);
        int submissions = 0;
        while (r->status[1] == NO_END) {
            assert_true(++submissions < 100);
            push_to(r, 1);
            assert_true(step(r));
            assert_true(r->action[0].batch.items_used > 0);
        }
        assert_true(submissions > 8); /* and not at each */
        rig_close(r);
    }
}

/* Another thread issues all the time, and each time there is a mark to be submitted. */
static void who_has_marks_to_submit_each_time_polls_too(void **state)
{
    (void)state;
    rig *r = start_two(SLOTS, DEEP);
    push_to(r, 0);
    assert_true(step(r));
    complete_all(r);
    int steps = 0;
    while (r->status[1] == NO_END) {
        assert_true(++steps <= 4);
        push_to(r, 1);
        assert_true(next(r, 0));
        assert_int_equal(r->action[0].poll_count, 0);
        finish(r, 0);
        assert_true(next(r, 1)); /* has nothing to issue */
        finish(r, 1);
    }
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_issues_to_a_device_polls_that_one),
        cmocka_unit_test(while_a_device_is_polled_others_are_by_other_threads),
        cmocka_unit_test(what_is_awaited_is_left_to_who_polls_its_device),
        cmocka_unit_test(beside_another_thread_each_slot_has_its_turn),
        cmocka_unit_test(a_device_asks_for_a_poll_of_its_own),
        cmocka_unit_test(polls_that_give_way_to_a_host_function_are_nobody_elses),
        cmocka_unit_test(a_device_is_polled_while_ops_go_to_others_alone),
        cmocka_unit_test(who_has_marks_to_submit_each_time_polls_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
