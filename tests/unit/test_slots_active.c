/*
 * Unit tests of how many slots ops are spread over (scheduler/slots): more while the device is behind, fewer when it is not,
 * never more than a backend can use.
 */
#include "slots_fixture.h"

/* A poll that asked about all there is, and saw what `complete` says. */
static void look_at_all(yard *y, bool idle)
{
    for (uint32_t s = 0; s < y->slots.used; s++)
        acs_slots_looked_at(&y->slots, s, y->slots.slot[s].issued);
    acs_slots_polled(&y->slots, 0, idle, false);
}

static void complete_all(yard *y)
{
    for (uint32_t s = 0; s < y->slots.used; s++)
        complete(y, s, y->slots.slot[s].issued);
}

/* So many ops that have nothing to do with each other, from the `*count`th on; the slot of the last one. */
static int issue_alone(yard *y, int *count, int ops)
{
    int slot = -1;
    for (int i = 0; i < ops; i++)
        slot = issue(y, KERNEL(y->s, ACS_OUT(AT((*count)++ * 64), 64)));
    return slot;
}

static void slots_become_more_while_queues_are_deep_and_fewer_when_they_are_idle(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    int slot = 0, count = 0;

    /* Four slots until each has twelve ops out; then more, as polls find that it is so. */
    for (; count < 48; count++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count * 64), 64))), count % 4);
    assert_false(y->slots.banks[0].wants_poll);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64))), 0); /* nobody looked whether it is so */
    assert_true(y->slots.banks[0].wants_poll);
    look_at_all(y, false);
    assert_false(y->slots.banks[0].wants_poll);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64))), 4);
    assert_int_equal(y->slots.banks[0].active, 5);
    while (count < 120)
        issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64)));
    assert_int_equal(y->slots.used, 8); /* twice as many, until the next poll */
    look_at_all(y, false);
    slot = issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64)));
    assert_int_equal(slot, 8);
    assert_int_equal(y->slots.used, 9);

    /* Polls that find what came since to be over give them up again, down to the first four. */
    for (int i = 0; i < 20; i++) {
        complete_all(y);
        look_at_all(y, false);
        issue_alone(y, &count, 1);
    }
    assert_int_equal(y->slots.banks[0].active, 4);
    assert_int_equal(y->slots.used, 9);
    yard_close(y);
}

/* Nothing is known of a new context's ops: each gets a slot of its own, until polls see ops go through. */
static void ops_of_a_new_context_do_not_queue_until_they_are_seen_to_be_short(void **state)
{
    (void)state;
    yard *y = yard_open(256, 64);
    int count = 0;
    acs_slots_expect_long_ops(&y->slots, false);
    for (int i = 0; i < 64; i++)
        assert_int_equal(issue_alone(y, &count, 1), i);
    assert_int_equal(issue_alone(y, &count, 1), 0); /* there are no more */
    for (int i = 64; i > 4; i--) {
        complete_all(y);
        look_at_all(y, false);
        issue_alone(y, &count, 1);
    }
    complete_all(y);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].active, 4);
    for (int i = 0; i < 8; i++)
        assert_int_equal(issue_alone(y, &count, 1), i % 4);
    yard_close(y);
}

/*
 * What is not known is judged by the first ops: those that would queue behind others wait meanwhile. Once polls saw all
 * first slots busy, ops count as long.
 */
static void ops_that_would_queue_wait_until_the_first_are_judged(void **state)
{
    (void)state;
    for (int long_ones = 0; long_ones < 2; long_ones++) {
        yard *y = yard_open(256, 64);
        int count = 0;
        acs_slots_expect_long_ops(&y->slots, true);
        for (int i = 0; i < 4; i++)
            assert_int_equal(issue_alone(y, &count, 1), i);
        const acs_op held = KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64));
        assert_null(place(y, held));
        look_at_all(y, false); /* launches are not over */
        assert_null(place(y, held));
        for (uint32_t s = 0; s < 2 && !long_ones; s++)
            complete(y, s, y->slots.slot[s].issued);
        look_at_all(y, long_ones);
        assert_false(y->slots.banks[0].unknown);
        assert_int_equal(issue(y, held), long_ones ? 4 : 0);
        assert_int_equal(issue_alone(y, &count, 1), long_ones ? 5 : 1);
        assert_int_equal(issue_alone(y, &count, 1), long_ones ? 6 : 0); /* behind another one */
        yard_close(y);
    }
}

/* The threads have nothing left, so not launches take the time: once a poll shows no slot to be idle, there is one more. */
static void ops_get_slots_of_their_own_where_threads_that_issue_starve(void **state)
{
    (void)state;
    yard *y = yard_open(256, 6);
    int count = 0;
    y->slots.starved = true;
    for (int i = 0; i < 4; i++)
        assert_int_equal(issue_alone(y, &count, 1), i);
    const acs_op op = KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64));
    assert_null(place(y, op)); /* nobody looked whether a slot is idle */
    assert_true(y->slots.banks[0].wants_poll);
    look_at_all(y, false);
    assert_int_equal(issue(y, op), 4);
    look_at_all(y, false);
    assert_int_equal(issue_alone(y, &count, 1), 5);
    assert_int_equal(issue_alone(y, &count, 1), 0); /* there are no more */
    yard_close(y);
}

/* A library call makes a handle in each slot, so nothing but deep queues opens another for it. */
static void library_calls_of_a_new_context_share_the_first_slots(void **state)
{
    (void)state;
    yard *y = yard_open(256, 64);
    acs_slots_expect_long_ops(&y->slots, false);
    for (int i = 0; i < 48; i++)
        assert_int_equal(issue(y, CALL(y->s, ACS_OUT(AT(i * 64), 64))), i % 4);
    yard_close(y);
}

/* Behind other ops a priority would be worth nothing, however few they are. */
static void op_with_a_priority_gets_an_idle_slot(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    int count = 0;
    issue_alone(y, &count, 4);
    for (int slot = 4; slot < 10; slot++) {
        const acs_op op = KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64));
        y->s->records[op]->u.launch.attributes.priority = -1;
        assert_int_equal(issue(y, op), slot);
    }
    assert_int_equal(issue_alone(y, &count, 1), 0);
    yard_close(y);
}

/* Another thread goes on issuing while one looks, and marks are few: what a poll did not ask about may long have ended. */
static void queues_are_as_deep_as_a_poll_saw_them(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    for (int i = 0; i < 80; i++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64))), i % 4);
    for (uint32_t s = 0; s < 4; s++) {
        acs_slots_looked_at(&y->slots, s, 16);
        complete(y, s, 5);
    }
    acs_slots_polled(&y->slots, 0, false, false);
    assert_int_equal(y->slots.banks[0].may_grow, 0); /* eleven are out for certain, though fifteen are */
    for (uint32_t s = 0; s < 4; s++)
        acs_slots_looked_at(&y->slots, s, s < 3 ? 17 : 16);
    acs_slots_polled(&y->slots, 0, false, false);
    assert_int_equal(y->slots.banks[0].may_grow, 0); /* and so in the last one */
    acs_slots_looked_at(&y->slots, 3, 17);
    acs_slots_polled(&y->slots, 0, false, false);
    assert_int_equal(y->slots.banks[0].may_grow, 4);
    yard_close(y);
}

static void slots_become_more_while_there_is_nothing_to_issue(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    int count = 0;

    for (; count < 8; count++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count * 64), 64))), count % 4);
    look_at_all(y, true);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64))), 0); /* that may pass */
    for (int i = 0; i < 10; i++)
        look_at_all(y, true);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64))), 4);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(count++ * 64), 64))), 5);

    /* Empty queues mean nothing where nothing is issued; else they say that launches take the time. */
    complete_all(y);
    look_at_all(y, true);
    assert_int_equal(y->slots.banks[0].active, 6);
    issue_alone(y, &count, 1);
    complete_all(y);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].active, 5);
    issue_alone(y, &count, 8);
    assert_int_equal(y->slots.banks[0].active, 5);
    yard_close(y);
}

/* Four slots, a queue of two ops in each, and nothing more to issue for some polls; then all ends. */
static yard *waited(int *count)
{
    yard *y = yard_open(256, 32);
    *count = 0;
    issue_alone(y, count, 8);
    for (int i = 0; i < 4; i++)
        look_at_all(y, true);
    complete_all(y);
    look_at_all(y, true);
    assert_int_equal(y->slots.banks[0].active, 4);
    return y;
}

/* A program that launches, waits and launches the same again: the next launches run side by side. */
static void what_was_found_while_a_program_waited_holds_for_what_it_launches_next(void **state)
{
    (void)state;
    int count;
    yard *y = waited(&count);
    assert_int_equal(issue_alone(y, &count, 4), 3);
    look_at_all(y, false); /* they run still */
    assert_int_equal(issue_alone(y, &count, 4), 7);
    assert_int_equal(y->slots.banks[0].active, 8);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].active, 8);

    /* Twice as many again. */
    assert_int_equal(issue_alone(y, &count, 20), 11);
    look_at_all(y, true);
    complete_all(y);
    assert_int_equal(issue_alone(y, &count, 16), 15);
    yard_close(y);
}

static void it_holds_until_ops_are_seen_to_go_through(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        int count;
        yard *y = waited(&count);
        issue_alone(y, &count, kind == 1 ? 32 : 4);
        assert_int_equal(y->slots.banks[0].deep_now, 1);
        if (kind == 0)
            complete(y, 2, y->slots.slot[2].issued); /* nothing is left of what it was given */
        if (kind == 1)
            complete(y, 2, y->slots.slot[2].completed + 2); /* two, though there is more */
        assert_int_equal(y->slots.slot[2].outstanding > 0, kind != 0);
        for (uint32_t s = 0; s < y->slots.used; s++)
            acs_slots_looked_at(&y->slots, s, y->slots.slot[s].completed); /* the rest has no marks yet */
        acs_slots_polled(&y->slots, 0, false, kind == 2);
        assert_true(y->slots.banks[0].deep_now > 1);
        assert_int_equal(y->slots.banks[0].may_grow, 0);
        yard_close(y);
    }
}

/* One op that ended says little: it may have been a short one in front of long ones. Slots that had no op say nothing. */
static void one_short_op_does_not_end_it(void **state)
{
    (void)state;
    int count;
    yard *y = waited(&count);
    issue_alone(y, &count, 12);
    const uint32_t active = y->slots.banks[0].active;
    assert_int_equal(active, 8);
    complete(y, 2, y->slots.slot[2].completed + 1);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].deep_now, 1);
    assert_int_equal(y->slots.banks[0].active, active);
    complete_all(y);
    look_at_all(y, true);
    issue_alone(y, &count, 2);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].deep_now, 1);
    assert_int_equal(y->slots.banks[0].active, active);
    yard_close(y);
}

/* What ended while a slot was none of the active ones says nothing of what it is given when it is one again. */
static void slot_that_becomes_active_again_begins_anew(void **state)
{
    (void)state;
    int count;
    yard *y = waited(&count);
    acs_bank *bank = &y->slots.banks[0];
    assert_int_equal(issue_alone(y, &count, 24), 7);
    bank->active = 4;
    complete_all(y);
    look_at_all(y, true);
    bank->deep_now = 1;
    bank->may_grow = 4;
    assert_int_equal(issue_alone(y, &count, 5), 4);
    look_at_all(y, false);
    assert_int_equal(bank->deep_now, 1);
    assert_int_equal(bank->active, 5);
    yard_close(y);
}

/* Bursts of a few ops that are over before anybody has looked; then such that are not. */
static void what_was_found_is_forgotten_after_bursts_that_nobody_saw(void **state)
{
    (void)state;
    int count;
    yard *y = waited(&count);
    acs_bank *bank = &y->slots.banks[0];
    issue_alone(y, &count, 16);
    assert_int_equal(bank->active, 8);
    for (int i = 0; i < 60; i++) {
        complete_all(y);
        look_at_all(y, true);
        issue_alone(y, &count, 3);
        assert_true(i < 20 || bank->deep_now > 1);
    }
    assert_int_equal(bank->active, 4);
    for (int turn = 0; turn < 20; turn++) { /* a poll sees some of these */
        bank->deep_now = 1;
        issue_alone(y, &count, 5);
        look_at_all(y, true);
        complete_all(y);
        look_at_all(y, true);
    }
    assert_int_equal(bank->deep_now, 1);
    yard_close(y);
}

/* Who waits for one op asks about few slots at a time; when each had its turn that says as much as a poll of all. */
static void slots_that_were_asked_about_in_turn_are_all_that_are_out(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 10);
    assert_true(acs_slots_all_looked_at(&y->slots, 0)); /* there is nothing to ask about */
    issue_alone(y, &count, 3);
    for (uint32_t s = 0; s < 3; s++) {
        assert_false(acs_slots_all_looked_at(&y->slots, 0));
        acs_slots_looked_at(&y->slots, s, y->slots.slot[s].issued);
    }
    assert_true(acs_slots_all_looked_at(&y->slots, 0));
    assert_int_equal(issue_alone(y, &count, 1), 3); /* nobody knows of what it runs beside any more */
    acs_slots_looked_at(&y->slots, 3, y->slots.slot[3].issued);
    assert_false(acs_slots_all_looked_at(&y->slots, 0));
    yard_close(y);
}

static void slots_stay_few_where_the_backend_runs_few_ops_at_once(void **state)
{
    (void)state;
    yard *y = yard_open(256, 32);
    acs_slots_limit(&y->slots, 5);
    for (int i = 0; i < 250; i++) {
        issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64)));
        look_at_all(y, false);
    }
    assert_int_equal(y->slots.used, 10);
    assert_false(y->slots.banks[0].wants_poll);
    yard_close(y);
}

static void op_in_a_slot_that_just_became_active_waits_for_all_it_depends_on(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    for (int i = 0; i < 48; i++)
        issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64)));
    look_at_all(y, false);
    const acs_item *item = place(y, KERNEL(y->s, ACS_IN(AT(0), 64), ACS_IN(AT(2 * 64), 64), ACS_OUT(AT(48 * 64), 64)));
    assert_non_null(item);
    assert_int_equal(item->slot, 4);
    assert_int_equal(item->wait_count, 2);
    assert_int_equal(wait_of(y, item, 0)->slot + wait_of(y, item, 1)->slot, 0 + 2);
    assert_int_not_equal(wait_of(y, item, 0)->slot, wait_of(y, item, 1)->slot);
    submitted(y);

    /* The next new slot knows nothing of what the last one waited for. */
    item = place(y, KERNEL(y->s, ACS_IN(AT(0), 64), ACS_OUT(AT(49 * 64), 64)));
    assert_non_null(item);
    assert_int_equal(item->slot, 4); /* the emptiest, which is behind that already */
    assert_int_equal(item->wait_count, 0);
    submitted(y);
    for (int i = 50; i < 60; i++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64))), 4);
    item = place(y, KERNEL(y->s, ACS_IN(AT(0), 64), ACS_OUT(AT(60 * 64), 64)));
    assert_non_null(item);
    assert_int_equal(item->slot, 5);
    assert_int_equal(item->wait_count, 1);
    assert_int_equal(wait_of(y, item, 0)->slot, 0);
    yard_close(y);
}

/* A slot that was given up may still hold ops. */
static void slot_becomes_active_only_where_it_holds_less_than_the_emptiest(void **state)
{
    (void)state;
    yard *y = yard_open(256, 10);
    acs_slots_shape(&y->slots, 1, 2, true);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64))), 0);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(64), 64))), 0);
    for (int i = 2; i < 4; i++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64))), 1);
    complete(y, 0, 2);
    look_at_all(y, false);
    assert_int_equal(y->slots.banks[0].active, 1);
    for (int i = 4; i < 7; i++)
        assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64))), 0);
    assert_int_equal(y->slots.banks[0].active, 1);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(7 * 64), 64))), 1);
    assert_int_equal(y->slots.banks[0].active, 2);
    yard_close(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_become_more_while_queues_are_deep_and_fewer_when_they_are_idle),
        cmocka_unit_test(ops_of_a_new_context_do_not_queue_until_they_are_seen_to_be_short),
        cmocka_unit_test(ops_that_would_queue_wait_until_the_first_are_judged),
        cmocka_unit_test(ops_get_slots_of_their_own_where_threads_that_issue_starve),
        cmocka_unit_test(library_calls_of_a_new_context_share_the_first_slots),
        cmocka_unit_test(op_with_a_priority_gets_an_idle_slot),
        cmocka_unit_test(queues_are_as_deep_as_a_poll_saw_them),
        cmocka_unit_test(slots_become_more_while_there_is_nothing_to_issue),
        cmocka_unit_test(what_was_found_while_a_program_waited_holds_for_what_it_launches_next),
        cmocka_unit_test(it_holds_until_ops_are_seen_to_go_through),
        cmocka_unit_test(one_short_op_does_not_end_it),
        cmocka_unit_test(slot_that_becomes_active_again_begins_anew),
        cmocka_unit_test(what_was_found_is_forgotten_after_bursts_that_nobody_saw),
        cmocka_unit_test(slots_that_were_asked_about_in_turn_are_all_that_are_out),
        cmocka_unit_test(slots_stay_few_where_the_backend_runs_few_ops_at_once),
        cmocka_unit_test(op_in_a_slot_that_just_became_active_waits_for_all_it_depends_on),
        cmocka_unit_test(slot_becomes_active_only_where_it_holds_less_than_the_emptiest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
