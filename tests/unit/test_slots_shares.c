/*
 * Unit tests of scheduler/slots with shares of the device: which slots ops with a share go to, that other ops keep theirs,
 * and that no op waits for a slot.
 */
#include "slots_fixture.h"

/* The next op, on bytes of its own, with this share. */
static acs_op alone(yard *y, int *count, uint8_t share)
{
    const acs_op op = KERNEL(y->s, ACS_OUT(AT((*count)++ * 64), 64));
    scene_entry(y->s, op)->share = share;
    return op;
}

static int issue_alone(yard *y, int *count, uint8_t share)
{
    return issue(y, alone(y, count, share));
}

static void ops_with_a_share_take_idle_slots_that_are_not_active_first(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 8); /* four of them are active */
    assert_int_equal(issue_alone(y, &count, 30), 4);
    assert_int_equal(issue_alone(y, &count, 50), 5);
    assert_int_equal(issue_alone(y, &count, 0), 0);
    assert_int_equal(issue_alone(y, &count, 30), 6);
    assert_int_equal(issue_alone(y, &count, 30), 7);
    assert_int_equal(y->slots.banks[0].active, 4);
    assert_int_equal(y->slots.used, 8);
    yard_close(y);
}

static void ops_with_a_share_leave_an_active_slot_to_the_others_and_queue_with_their_like(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 4);
    assert_int_equal(issue_alone(y, &count, 30), 3); /* the last first */
    assert_int_equal(issue_alone(y, &count, 30), 2);
    assert_int_equal(issue_alone(y, &count, 50), 1);
    assert_int_equal(issue_alone(y, &count, 30), 2);
    assert_int_equal(issue_alone(y, &count, 50), 1);
    assert_int_equal(issue_alone(y, &count, 70), 0); /* nothing has this share */
    yard_close(y);
}

static void op_with_a_share_takes_an_idle_slot_of_its_share_before_others(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 8);
    assert_int_equal(issue_alone(y, &count, 30), 4);
    assert_int_equal(issue_alone(y, &count, 50), 5);
    complete(y, 4, 1);
    complete(y, 5, 1);
    assert_int_equal(issue_alone(y, &count, 50), 5);
    assert_int_equal(issue_alone(y, &count, 30), 4);
    yard_close(y);
}

static void chain_of_a_share_stays_in_its_slot(void **state)
{
    (void)state;
    yard *y = yard_open(64, 8);
    for (int i = 0; i < 6; i++) {
        const acs_op op = KERNEL(y->s, ACS_INOUT(AT(0), 64));
        scene_entry(y->s, op)->share = 30;
        const acs_item *item = place(y, op);
        assert_non_null(item);
        assert_int_equal(item->slot, 4);
        assert_int_equal(item->share, 30);
        assert_int_equal(item->wait_count, 0);
        submitted(y);
    }
    yard_close(y);
}

static void op_behind_one_of_another_share_waits_for_its_mark_in_another_slot(void **state)
{
    (void)state;
    yard *y = yard_open(64, 8);
    static const uint8_t shares[] = {0, 30, 50, 0};
    static const int slots[] = {0, 4, 5, 0};
    for (int i = 0; i < 4; i++) {
        const acs_op op = KERNEL(y->s, ACS_INOUT(AT(0), 64));
        scene_entry(y->s, op)->share = shares[i];
        const acs_item *item = place(y, op);
        assert_non_null(item);
        assert_int_equal(item->slot, i == 3 ? 1 : slots[i]);
        assert_int_equal(item->wait_count, i > 0);
        if (i > 0)
            assert_int_equal(wait_of(y, item, 0)->slot, slots[i - 1]);
        submitted(y);
    }
    yard_close(y);
}

static void op_without_a_share_takes_an_idle_slot_of_a_share_behind_other_idle_ones(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 4);
    assert_int_equal(issue_alone(y, &count, 30), 3);
    complete(y, 3, 1);
    for (int slot = 0; slot < 4; slot++)
        assert_int_equal(issue_alone(y, &count, 0), slot);
    assert_int_equal(y->slots.slot[3].share, 0);
    yard_close(y);
}

static void op_without_a_share_does_not_queue_behind_ops_with_one(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 4);
    for (int i = 0; i < 3; i++)
        issue_alone(y, &count, 30);
    for (int i = 0; i < 5; i++)
        assert_int_equal(issue_alone(y, &count, 0), 0);
    yard_close(y);
}

static void op_without_a_share_gets_another_slot_where_ops_with_shares_have_all_active_ones(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 8);
    for (int i = 0; i < 8; i++)
        issue_alone(y, &count, (uint8_t)(10 + i)); /* eight shares, so none queues with its like */
    assert_int_equal(y->slots.banks[0].active, 4);
    for (uint32_t s = 0; s < 8; s++)
        assert_int_equal(y->slots.slot[s].outstanding, 1);
    complete(y, 6, 1);
    assert_int_equal(issue_alone(y, &count, 0), 6);
    assert_int_equal(issue_alone(y, &count, 0), 6); /* with its like */
    yard_close(y);
}

static void slots_become_no_more_for_ops_with_shares(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(256, 10);
    for (int i = 0; i < 60; i++)
        issue_alone(y, &count, 30);
    for (uint32_t s = 0; s < y->slots.used; s++)
        acs_slots_looked_at(&y->slots, s, y->slots.slot[s].issued);
    assert_true(acs_slots_all_looked_at(&y->slots, 0));
    acs_slots_polled(&y->slots, 0, false, false);
    assert_int_equal(y->slots.banks[0].active, 4);
    assert_int_equal(y->slots.banks[0].burst, 0);
    issue_alone(y, &count, 0);
    assert_int_equal(y->slots.banks[0].active, 4);
    assert_int_equal(y->slots.banks[0].burst, 1);
    yard_close(y);
}

/* Any mix on any number of slots: an op that is ready is placed, and its slot and item have its share. */
static void no_op_waits_for_a_slot(void **state)
{
    static const uint8_t shares[] = {0, 0, 10, 30, 50, 70, 99};
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        acs_random random = {.state = seed};
        yard *y = yard_open(64, 1 + (uint32_t)(seed % 9));
        int count = 0;
        for (int i = 0; i < 150; i++) {
            const uint8_t share = shares[acs_random_below(&random, 7)];
            const uint32_t s = acs_random_below(&random, y->slots.count);
            if (y->s->w.live >= 60 || acs_random_below(&random, 3) == 0)
                complete(y, s, y->slots.slot[s].issued);
            while (y->s->w.live >= 60)
                for (uint32_t t = 0; t < y->slots.count; t++)
                    complete(y, t, y->slots.slot[t].issued);
            const acs_item *item = place(y, alone(y, &count, share));
            assert_non_null(item);
            assert_int_equal(item->share, share);
            assert_int_equal(y->slots.slot[item->slot].share, share); /* SLOT-6 */
            assert_true((uint32_t)item->slot < y->slots.used);        /* SLOT-3 */
            submitted(y);
        }
        yard_close(y);
    }
}

static void op_waits_only_while_other_batches_own_all_slots(void **state)
{
    (void)state;
    int count = 0;
    yard *y = yard_open(64, 2);
    for (uint32_t s = 0; s < 2; s++)
        y->slots.slot[s].batch = 77;
    const acs_op op = alone(y, &count, 30);
    assert_null(place(y, op));
    y->slots.slot[1].batch = 0;
    const acs_item *item = place(y, op);
    assert_non_null(item);
    assert_int_equal(item->slot, 1);
    y->slots.slot[0].batch = 0;
    yard_close(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_with_a_share_take_idle_slots_that_are_not_active_first),
        cmocka_unit_test(ops_with_a_share_leave_an_active_slot_to_the_others_and_queue_with_their_like),
        cmocka_unit_test(op_with_a_share_takes_an_idle_slot_of_its_share_before_others),
        cmocka_unit_test(chain_of_a_share_stays_in_its_slot),
        cmocka_unit_test(op_behind_one_of_another_share_waits_for_its_mark_in_another_slot),
        cmocka_unit_test(op_without_a_share_takes_an_idle_slot_of_a_share_behind_other_idle_ones),
        cmocka_unit_test(op_without_a_share_does_not_queue_behind_ops_with_one),
        cmocka_unit_test(op_without_a_share_gets_another_slot_where_ops_with_shares_have_all_active_ones),
        cmocka_unit_test(slots_become_no_more_for_ops_with_shares),
        cmocka_unit_test(no_op_waits_for_a_slot),
        cmocka_unit_test(op_waits_only_while_other_batches_own_all_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
