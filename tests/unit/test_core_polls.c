/*
 * Unit tests of the core's polls: which slots are asked about, in which order, when polls stop for an op that was queued,
 * and what polls of a few slots do not decide. Over core_fixture.h's backend, which completes nothing by itself.
 */
#include "core_fixture.h"

#include "base/base.h"
#include "base/tuning.h"

enum {
    ALONE = 4096,               /* where ops begin that have nothing to do with others */
    DEEP = 64,                  /* no queue is so deep that there should be more of them */
    BUSY = TUNE_SLOTS_BUSY_OPS, /* slots with an op out each: the device counts as busy */
    ALL = (1 << BUSY) - 1       /* a bit for each of them */
};

static acs_op push_alone(rig *r)
{
    return KERNEL(r, ACS_OUT(AT(ALONE + r->last * 64), 8));
}

/* An op in each of so many slots, with a mark behind each: what is left is to poll. */
static rig *spread(rig *r, uint32_t slots, uint32_t deep)
{
    rig_start(r);
    acs_slots_shape(&r->core.slots, slots, deep, false);
    for (uint32_t i = 0; i < slots; i++)
        push_alone(r);
    assert_true(step(r));
    assert_int_equal(r->action[0].batch.items_used, slots);
    if (r->core.slots.slot[0].marked < r->core.slots.slot[0].issued)
        assert_true(step(r));
    assert_int_equal(r->backend.polls, 0);
    return r;
}

/* The same over a backend that announces completions. */
static rig *spread_announced(void)
{
    static acs_backend_ops ops;
    rig *r = rig_make();
    ops = g_fake_ops;
    ops.notifies = true;
    r->backend.base.ops = &ops;
    return spread(r, SLOTS, DEEP);
}

/* The slots that a step asks about: its polls, and a bit for each of them. */
static uint32_t poll(rig *r)
{
    uint32_t slots = 0;
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].batch.items_used, 0);
    finish(r, 0);
    for (uint32_t i = 0; i < r->action[0].poll_count; i++)
        slots |= 1u << r->action[0].polls[i].slot;
    return slots;
}

static void push_while_polled(void *user)
{
    push_alone(user);
}

/* A producer that is as quick as the polls. */
static void push_with_each_poll(rig *r)
{
    r->backend.on_poll = push_while_polled;
    r->backend.user = r;
}

/* Issue what was queued, with the marks that it takes. */
static void issue_all(rig *r)
{
    r->backend.on_poll = NULL;
    do
        assert_true(step(r));
    while (r->action[0].batch.items_used > 0);
}

/* ------------------------------------------------------------------------------------------------------------- which */

static void without_a_wait_all_slots_are_polled(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(poll(r), 0xf);
        assert_int_equal(r->action[0].poll_count, SLOTS);
        assert_false(r->action[0].progress);
    }
    rig_close(r);
}

static void the_slot_of_what_is_awaited_is_first_and_one_other_follows_in_turn(void **state)
{
    (void)state;
    for (acs_op op = 1; op <= SLOTS; op++) {
        rig *r = spread(rig_make(), SLOTS, DEEP);
        acs_core_await(&r->core, op);
        uint32_t slots = 0;
        for (int i = 0; i < SLOTS - 1; i++) {
            slots |= poll(r);
            assert_int_equal(r->action[0].poll_count, 2);
            assert_int_equal(r->action[0].polls[0].slot, slot_of(r, op));
        }
        assert_int_equal(slots, 0xf);
        rig_close(r);
    }
}

static void a_slot_is_polled_by_itself_where_no_other_has_work(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), 1, DEEP);
    acs_core_await(&r->core, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(poll(r), 1);
        assert_int_equal(r->action[0].poll_count, 1);
    }
    rig_close(r);
}

/* It is complete, or not issued: then its end is not what the device can tell of. */
static void what_is_awaited_and_not_under_way_leaves_polls_as_they_are(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    body b = {0, 0};
    push_host(r, ACS_IN(AT(ALONE), 8), &b);
    acs_op pending = KERNEL(r, ACS_OUT(AT(ALONE), 8));
    acs_core_await(&r->core, pending);
    assert_int_equal(poll(r), 0xf);
    const uint32_t other = slot_of(r, 2);
    r->backend.complete[other] = UINT64_MAX;
    assert_int_equal(poll(r), 0xf);
    assert_int_equal(r->status[2], ACS_OK);
    acs_core_await(&r->core, 2);
    assert_int_equal(poll(r), 0xf & ~(1u << other));
    rig_close(r);
}

/* Who was told of a completion, and does not find it, sleeps until the next. */
static void a_backend_that_announces_completions_is_asked_about_all(void **state)
{
    (void)state;
    rig *r = spread_announced();
    acs_core_await(&r->core, 2);
    assert_int_equal(poll(r), 0xf);
    acs_core_await_no_more(&r->core, 2);
    push_with_each_poll(r);
    assert_int_equal(poll(r), 0xf);
    r->backend.on_poll = NULL;
    rig_close(r);
}

/* -------------------------------------------------------------------------------------------------------------- stop */

static void polls_stop_where_an_op_is_queued_and_go_on_behind(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    for (uint32_t s = 0; s < SLOTS; s++) {
        r->backend.polls = 0;
        push_with_each_poll(r);
        assert_int_equal(poll(r), 1u << s);
        assert_int_equal(r->backend.polls, 1);
        assert_true(r->action[0].progress); /* the next step takes the op in */
        r->backend.on_poll = NULL;
        do
            assert_true(step(r));
        while (r->action[0].poll_count == 0);
        assert_int_equal(r->action[0].poll_count, SLOTS);
        assert_int_equal(r->action[0].polls[0].slot, (s + 1) % SLOTS);
        issue_all(r);
        r->core.poll_next = s + 1; /* as if that had stopped, too */
    }
    rig_close(r);
}

/* The op that was there before could not be taken in, or is another thread's to take. */
static void polls_do_not_stop_for_what_was_queued_before(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    push_with_each_poll(r);
    push_alone(r);
    assert_true(acs_core_next(&r->core, ACS_MAY_ISSUE, &r->action[0]));
    finish(r, 0);
    assert_int_equal(r->backend.polls, SLOTS);
    r->backend.on_poll = NULL;
    rig_close(r);

    r = rig_make();
    r->options.window = SLOTS;
    spread(r, SLOTS, DEEP);
    push_alone(r);
    assert_true(acs_core_next(&r->core, ACS_MAY_INSERT, &r->action[0]) || r->core.stalled);
    assert_non_null(r->core.stalled);
    push_with_each_poll(r);
    assert_int_equal(poll(r), 0xf);
    r->backend.on_poll = NULL;
    rig_close(r);
}

/* It would be the first slot's turn each time. */
static void polls_for_what_is_awaited_do_not_stop(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    acs_core_await(&r->core, 1);
    uint32_t slots = 0;
    for (int i = 0; i < SLOTS - 1; i++) {
        push_with_each_poll(r);
        slots |= poll(r);
        r->backend.on_poll = NULL;
        while (acs_core_next(&r->core, ACS_MAY_INSERT, &r->action[0]))
            continue;
        assert_true(step(r));
        assert_true(step(r)); /* marks */
    }
    assert_int_equal(slots, 0xf);
    rig_close(r);
}

static void polls_beside_a_batch_do_not_stop(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    push_with_each_poll(r);
    push_alone(r);
    r->core.slots.banks[0].wants_poll = true;
    assert_true(step(r));
    assert_int_equal(r->action[0].batch.items_used, 1);
    assert_int_equal(r->backend.polls, SLOTS);
    r->backend.on_poll = NULL;
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------ active */

/* Queues of one op are deep enough here: a poll of all slots allows as many more, one of a few says nothing. */
static void polls_of_a_few_slots_leave_the_active_ones_as_they_are(void **state)
{
    (void)state;
    for (int awaited = 0; awaited < 2; awaited++) {
        rig *r = spread(rig_make(), BUSY, 1);
        const acs_bank *bank = &r->core.slots.banks[0];
        if (awaited)
            acs_core_await(&r->core, 1);
        else
            push_with_each_poll(r);
        assert_int_not_equal(poll(r), ALL);
        assert_int_equal(bank->may_grow, 0);
        assert_int_equal(bank->idle_polls, 0);
        assert_int_equal(bank->active, BUSY);
        acs_core_await(&r->core, 0);
        r->backend.on_poll = NULL;
        if (!awaited)
            issue_all(r);
        else
            assert_int_equal(poll(r), ALL);
        assert_int_equal(bank->may_grow, BUSY);
        assert_true(bank->idle_polls > 0);
        rig_close(r);
    }
}

/* Who waits for one op has a few slots asked about each time; when that were all of them, nothing was issued meanwhile. */
static void polls_of_a_few_slots_in_turn_count_as_one_of_all(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), BUSY, DEEP);
    const acs_bank *bank = &r->core.slots.banks[0];
    acs_core_await(&r->core, 1);
    for (uint32_t round = 1; round < 6; round++) {
        uint32_t asked = 0;
        if (round == 3) { /* a part of a round before it is none of the next one's */
            assert_int_not_equal(poll(r), ALL);
            push_alone(r);
            assert_true(step(r));
        }
        while (bank->idle_polls < round) {
            assert_int_not_equal(asked, ALL);
            assert_true(next(r, 0));
            finish(r, 0);
            for (uint32_t i = 0; i < r->action[0].poll_count; i++)
                asked |= 1u << r->action[0].polls[i].slot;
        }
        assert_int_equal(asked, ALL);
    }
    acs_core_await(&r->core, 0);
    rig_close(r);
}

static void what_was_asked_about_reaches_to_the_newest_mark(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), 1, DEEP);
    for (int i = 0; i < 20; i++)
        push_alone(r);
    while (r->core.slots.slot[0].marked < 21)
        assert_true(step(r));
    assert_true(r->core.slots.slot[0].mark_count > 1);
    assert_int_equal(poll(r), 1);
    assert_int_equal(r->core.slots.slot[0].looked_at, 21);
    rig_close(r);
}

/* A caller that waits all the time must not keep more slots from becoming active, or fewer. */
static void after_many_ops_all_slots_are_polled_whatever_is_awaited(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), SLOTS, DEEP);
    acs_core_await(&r->core, 1);
    uint32_t alls = 0;
    r->core.since_poll = r->core.window.limit / 2 - 8; /* as if so many were issued before */
    for (int i = 0; i < 9; i++) {
        push_alone(r);
        do {
            assert_true(step(r));
            alls += r->action[0].poll_count == SLOTS;
        } while (r->action[0].batch.items_used > 0);
    }
    assert_int_equal(alls, 1);
    rig_close(r);
}

/* ------------------------------------------------------------------------------------------------------------ besides */

/* A backend that announces completions: it told of one while a thread that came for it found another one at it. */
static void who_came_in_vain_beside_a_poll_is_told_to_come_again(void **state)
{
    (void)state;
    rig *r = spread_announced();
    for (int i = 0; i < 2; i++) {
        assert_true(next(r, 0));
        if (i == 0)
            assert_false(next(r, 1));
        finish(r, 0);
        assert_int_equal(r->action[0].news.issue_left, i == 0);
        assert_false(r->action[0].progress);
    }
    rig_close(r);
}

/* A graph publishes its progress: another thread's poll may see an op complete that is still being submitted. */
static void an_op_that_is_seen_complete_before_it_is_booked_ends(void **state)
{
    (void)state;
    rig *r = spread(rig_make(), 1, DEEP);
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].poll_count, 1);
    const acs_op late = push_alone(r);
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items_used, 1);
    acs_core_perform(&r->core, &r->action[1]);
    r->backend.beyond = true;
    r->backend.complete[0] = r->action[1].batch.items[0].value;
    finish(r, 0);
    assert_int_equal(r->status[late], NO_END);
    acs_core_done(&r->core, &r->action[1]);
    assert_int_equal(r->status[late], ACS_OK);
    assert_int_equal(r->core.slots.slot[0].outstanding, 0);
    r->backend.beyond = false;
    rig_close(r);
}

/* The marks' slots are taken until they are booked, and polls take long. */
static void marks_go_without_polls_and_the_next_step_polls(void **state)
{
    (void)state;
    rig *r = rig_start(rig_make());
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < SLOTS; i++)
            push_alone(r);
        assert_true(step(r));
        assert_int_equal(r->action[0].batch.items_used, SLOTS);
        assert_true(step(r));
        assert_true(r->action[0].batch.items_used > 0 && !r->action[0].batch.items[0].op);
        assert_int_equal(r->action[0].poll_count, 0);
        assert_true(r->action[0].progress);
        if (turn != 1) /* after that it issues, and marks go alone again */
            assert_true(poll(r) != 0);
    }
    rig_close(r);
}

/* Few ops at a time, and a device that is quick: queues are empty, though the newest op of each has no mark yet. */
static void who_has_little_to_issue_does_not_poll_each_time(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->options.window = 512;
    r->options.streams = SLOTS_MOST; /* half of them are not active yet */
    rig_start(r);
    complete_all(r);
    int polled = 0;
    for (int i = 0; i < 400; i++) {
        push_alone(r);
        assert_true(step(r));
        assert_int_equal(r->action[0].batch.items_used, 1);
        polled += r->action[0].poll_count > 0;
    }
    assert_true(polled > 0);
    assert_true(polled <= 400 / 4);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_wait_all_slots_are_polled),
        cmocka_unit_test(the_slot_of_what_is_awaited_is_first_and_one_other_follows_in_turn),
        cmocka_unit_test(a_slot_is_polled_by_itself_where_no_other_has_work),
        cmocka_unit_test(what_is_awaited_and_not_under_way_leaves_polls_as_they_are),
        cmocka_unit_test(a_backend_that_announces_completions_is_asked_about_all),
        cmocka_unit_test(polls_stop_where_an_op_is_queued_and_go_on_behind),
        cmocka_unit_test(polls_do_not_stop_for_what_was_queued_before),
        cmocka_unit_test(polls_for_what_is_awaited_do_not_stop),
        cmocka_unit_test(polls_beside_a_batch_do_not_stop),
        cmocka_unit_test(polls_of_a_few_slots_leave_the_active_ones_as_they_are),
        cmocka_unit_test(polls_of_a_few_slots_in_turn_count_as_one_of_all),
        cmocka_unit_test(what_was_asked_about_reaches_to_the_newest_mark),
        cmocka_unit_test(after_many_ops_all_slots_are_polled_whatever_is_awaited),
        cmocka_unit_test(who_came_in_vain_beside_a_poll_is_told_to_come_again),
        cmocka_unit_test(an_op_that_is_seen_complete_before_it_is_booked_ends),
        cmocka_unit_test(marks_go_without_polls_and_the_next_step_polls),
        cmocka_unit_test(who_has_little_to_issue_does_not_poll_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
