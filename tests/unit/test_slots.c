/*
 * Unit tests of scheduler/slots: which slot an op goes to, which waits and marks that takes, and when an op cannot be
 * placed yet. The batches are never submitted: what a backend would have done is told by the test.
 */
#include "slots_fixture.h"

/* ----------------------------------------------------------------------------------------------------------- choice */

static void place_of_a_chain_stays_in_one_slot_without_marks(void **state)
{
    (void)state;
    yard *y = yard_open(64, 4);
    for (int i = 0; i < 10; i++) {
        const acs_item *item = place(y, KERNEL(y->s, ACS_INOUT(AT(0), 64)));
        assert_int_equal(item->slot, 0);
        assert_int_equal(item->value, i + 1);
        assert_int_equal(item->wait_count + item->mark_count + item->mark_after, 0);
        submitted(y);
    }
    assert_int_equal(y->slots.counters.same_slot, 9);
    assert_int_equal(y->slots.counters.marks, 0);
    yard_close(y);
}

static void place_of_independent_ops_takes_idle_slots_then_the_least_loaded(void **state)
{
    (void)state;
    yard *y = yard_open(64, 3);
    int slots[6];
    for (int i = 0; i < 6; i++)
        slots[i] = issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64)));
    for (int i = 0; i < 6; i++)
        assert_int_equal(slots[i], i % 3);

    complete(y, 1, 1);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(900), 64))), 1);
    complete(y, 2, 2);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(1000), 64))), 2);
    yard_close(y);
}

static void place_behind_an_upstream_op_that_is_not_last_takes_another_slot_and_waits(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    assert_int_equal(issue(y, KERNEL(y->s, ACS_IN(AT(0), 64))), 0);

    const acs_item *item = place(y, KERNEL(y->s, ACS_IN(AT(0), 64)));

    assert_int_equal(item->slot, 1);
    assert_int_equal(item->wait_count, 1);
    assert_int_equal(wait_of(y, item, 0)->slot, 0);
    assert_int_equal(wait_of(y, item, 0)->value, 1); /* the mark was made before the first reader hid the writer */
    assert_int_equal(item->mark_count, 0);
    yard_close(y);
}

static void place_behind_two_last_ops_prefers_the_one_with_fewest_waiters(void **state)
{
    (void)state;
    yard *y = yard_open(64, 3);
    acs_op first = KERNEL(y->s, ACS_OUT(AT(0), 64)), second = KERNEL(y->s, ACS_OUT(AT(100), 64));
    issue(y, first);
    issue(y, second);
    HOST(y->s, ACS_IN(AT(0), 1)); /* waits for the first op's end */
    acs_op both = KERNEL(y->s, ACS_IN(AT(10), 54), ACS_IN(AT(110), 54));
    assert_int_equal(scene_entry(y->s, first)->waiters, 1);

    const acs_item *item = place(y, both);

    assert_int_equal(item->slot, 1);
    assert_int_equal(wait_of(y, item, 0)->slot, 0);
    yard_close(y);
}

static void place_behind_a_completed_op_takes_any_idle_slot_without_wait(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(500), 64)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    acs_op reader = KERNEL(y->s, ACS_IN(AT(0), 64)); /* its need is there, and complete */
    complete(y, 0, 1);
    complete(y, 1, 1);

    const acs_item *item = place(y, reader);

    assert_int_equal(item->slot, 0);
    assert_int_equal(item->wait_count, 0);
    assert_int_equal(y->slots.counters.waits_complete, 1);
    yard_close(y);
}

/*
 * No slot is idle. Of the emptiest the op takes that of what it depends on, hidden as that is; a fuller one it does
 * not.
 */
static void place_without_an_idle_slot_prefers_an_upstream_op_s_among_the_emptiest(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64))), 0);
    issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64)));
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(200), 64))), 0);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(300), 64))), 1);

    const acs_item *item = place(y, KERNEL(y->s, ACS_IN(AT(100), 64)));
    assert_int_equal(item->slot, 1);
    assert_int_equal(item->wait_count, 0);
    submitted(y);
    item = place(y, KERNEL(y->s, ACS_IN(AT(100), 64)));
    assert_int_equal(item->slot, 0);
    assert_int_equal(item->wait_count, 1);
    yard_close(y);
}

/* ------------------------------------------------------------------------------------------------------------ waits */

static void place_behind_a_slot_makes_one_mark_and_one_wait_for_its_newest_upstream(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64)));
    issue(y, KERNEL(y->s, ACS_INOUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_INOUT(AT(0), 64)));
    acs_op both = KERNEL(y->s, ACS_INOUT(AT(0), 164));

    const acs_item *item = place(y, both);

    uint32_t other = 1 - (uint32_t)item->slot;
    assert_int_equal(item->wait_count, 1);
    assert_int_equal(item->mark_count, 1);
    assert_int_equal(wait_of(y, item, 0)->slot, other);
    assert_int_equal(wait_of(y, item, 0)->value, y->slots.slot[other].issued);
    assert_memory_equal(wait_of(y, item, 0), &y->batch->marks[item->first_mark], sizeof(acs_mark));
    yard_close(y);
}

/* The op waits for B, which waited for A: the wait for A is implied. */
static void place_behind_an_op_that_waited_already_implies_the_older_wait(void **state)
{
    (void)state;
    yard *y = yard_open(64, 3);
    acs_op a = KERNEL(y->s, ACS_OUT(AT(0), 64), ACS_TOKEN(7)), busy = KERNEL(y->s, ACS_OUT(AT(100), 64));
    assert_int_equal(issue(y, a), 0);
    assert_int_equal(issue(y, busy), 1);
    scene_entry(y->s, a)->waiters += 10; /* so that the next op goes behind `busy` */
    acs_op b = KERNEL(y->s, ACS_IN(AT(0), 32), ACS_INOUT(AT(100), 64));
    assert_int_equal(issue(y, b), 1);
    scene_entry(y->s, a)->waiters -= 10;
    assert_int_equal(y->slots.counters.waits_sent, 1);
    issue(y, KERNEL(y->s, ACS_IN(AT(100), 64))); /* hides b, after its mark */
    acs_op c = KERNEL(y->s, ACS_IN(AT(100), 64), ACS_TOKEN(7)); /* no ranges that overlap in part: it has both edges */
    uint64_t before = y->slots.counters.waits_implied;
    scene_entry(y->s, a)->waiters += 10;
    issue(y, KERNEL(y->s, ACS_IN(AT(0), 8))); /* hides a */
    scene_entry(y->s, a)->waiters -= 10;

    const acs_item *item = place(y, c);

    assert_int_equal(item->slot, 2);
    assert_int_equal(item->wait_count, 1);
    assert_int_equal(wait_of(y, item, 0)->slot, 1);
    assert_int_equal(y->slots.counters.waits_implied, before + 1);
    yard_close(y);
}

static void place_in_a_slot_that_waited_before_does_not_wait_again(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_IN(AT(0), 1)));                            /* hides it in slot 0 */
    assert_int_equal(issue(y, KERNEL(y->s, ACS_IN(AT(0), 64))), 1);      /* waits */
    assert_int_equal(y->slots.counters.waits_sent, 1);
    issue(y, KERNEL(y->s, ACS_OUT(AT(500), 1)));                         /* loads slot 1 with 2 */
    issue(y, KERNEL(y->s, ACS_OUT(AT(600), 1)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(700), 1)));

    acs_op reader = KERNEL(y->s, ACS_IN(AT(0), 64));
    y->slots.slot[0].outstanding += 10;
    const acs_item *item = place(y, reader);
    y->slots.slot[0].outstanding -= 10;

    assert_int_equal(item->slot, 1);
    assert_int_equal(item->wait_count, 0);
    assert_int_equal(y->slots.counters.waits_implied, 1);
    yard_close(y);
}

static void place_in_a_batch_waits_for_an_item_before_it_by_a_mark_of_the_batch(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    acs_op writer = KERNEL(y->s, ACS_OUT(AT(0), 64));
    acs_op first = KERNEL(y->s, ACS_IN(AT(0), 64)), second = KERNEL(y->s, ACS_IN(AT(0), 64));
    place(y, writer);
    for (acs_op op = first; op <= second; op++) { /* as the core adds followers */
        acs_entry *e = scene_entry(y->s, op);
        acs_entry_add_wait(&y->s->w, e, scene_entry(y->s, writer));
        assert_true(acs_slots_place(&y->slots, y->batch, y->id, e));
        e->state = ACS_ENTRY_ISSUING;
    }

    const acs_item *items = y->batch->items;
    assert_int_equal(items[1].slot, 0);
    assert_int_equal(items[1].mark_count, 1); /* the second reader still waits for the writer */
    assert_int_equal(items[2].slot, 1);
    assert_int_equal(items[2].mark_count, 0);
    assert_int_equal(wait_of(y, &items[2], 0)->value, 1);
    yard_close(y);
}

static void place_of_a_stream_signal_waits_for_everything_and_takes_no_slot(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    acs_entry_traits observer = {.observer = true};
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64)));
    acs_op signal = scene_insert(y->s, ACS_KIND_STREAM_SIGNAL, observer, SEGMENTS(ACS_IN(AT(0), 164)));

    const acs_item *item = place(y, signal);

    assert_int_equal(item->slot, -1);
    assert_int_equal(item->wait_count, 2);
    assert_int_equal(item->mark_count, 2);
    assert_int_equal(y->slots.slot[0].issued + y->slots.slot[1].issued, 2);
    assert_int_equal(scene_entry(y->s, signal)->slot, -1);
    yard_close(y);
}

/* ------------------------------------------------------------------------------------------------------------ marks */

static void place_in_front_of_nobody_makes_no_mark_for_what_it_hides(void **state)
{
    (void)state;
    yard *y = yard_open(64, 1);
    issue(y, KERNEL0(y->s)); /* touches nothing: nobody will ever wait for it */

    const acs_item *item = place(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));

    assert_int_equal(item->mark_count, 0);
    yard_close(y);
}

static void place_that_hides_an_op_which_regions_remember_marks_it_first(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 2; most++) {
        yard *y = yard_open(64, 1);
        y->slots.limit = most; /* with one slot for ever, none waits for another */
        issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));

        const acs_item *item = place(y, KERNEL0(y->s));

        assert_int_equal(item->mark_count, most - 1);
        if (most > 1)
            assert_int_equal(y->batch->marks[item->first_mark].value, 1);
        assert_int_equal(item->value, 2);
        yard_close(y);
    }
}

/* The reader was let go and not placed; its writer is forgotten by its region and has no edge any more. */
static void place_that_hides_an_op_which_a_ready_op_must_run_behind_marks_it_first(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64))), 0);
    acs_op next = KERNEL(y->s, ACS_OUT(AT(0), 64));
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64))), 1);
    assert_int_equal(acs_entry_hold(&y->s->w, scene_entry(y->s, 1))->refs + scene_entry(y->s, 1)->waiters, 0);
    issue(y, KERNEL(y->s, ACS_OUT(AT(200), 64))); /* hides the first writer: slot 0 */
    complete(y, 1, 1);

    const acs_item *item = place(y, next);

    assert_int_equal(item->wait_count, 1);
    assert_int_equal(wait_of(y, item, 0)->value, 1);
    yard_close(y);
}

static void place_marks_every_so_many_ops_without_being_asked(void **state)
{
    (void)state;
    yard *y = yard_open(64, 1);
    y->slots.mark_interval = 4;
    for (int i = 1; i <= 12; i++) {
        const acs_item *item = place(y, KERNEL0(y->s));
        assert_int_equal(item->mark_after, i % 4 == 0);
        if (item->mark_after)
            assert_int_equal(item->after.value, i);
        submitted(y);
    }
    yard_close(y);
}

static void mark_index_is_used_again_only_when_the_mark_is_complete(void **state)
{
    (void)state;
    yard *y = yard_open(16, 1);
    uint32_t capacity = y->slots.mark_capacity;
    bool used[256] = {false};
    assert_int_equal(capacity, 16);
    y->slots.mark_interval = 1;
    for (uint32_t i = 0; i < capacity; i++) {
        const acs_item *item = place(y, KERNEL0(y->s));
        assert_true(item->mark_after);
        assert_false(used[item->after.index]);
        used[item->after.index] = true;
        submitted(y);
    }

    complete(y, 0, 3); /* three marks, and the first three ops */
    for (int i = 0; i < 3; i++) {
        const acs_item *item = place(y, KERNEL0(y->s));
        assert_true(item->mark_after);
        assert_in_range(item->after.index, 0, 2);
        submitted(y);
    }
    yard_close(y);
}

static void place_without_a_free_mark_defers_until_one_completes(void **state)
{
    (void)state;
    yard *y = yard_open(32, 1);
    y->slots.limit = 2; /* later another slot may wait */
    y->slots.mark_interval = 1;
    y->slots.mark_capacity = 16;
    for (int i = 0; i < 16; i++)
        issue(y, KERNEL(y->s, ACS_OUT(AT(i * 64), 64)));
    assert_int_equal(issue(y, KERNEL(y->s, ACS_OUT(AT(16 * 64), 64))), 0); /* has none of its own */
    acs_op next = KERNEL(y->s, ACS_OUT(AT(9000), 1));

    assert_null(place(y, next)); /* would hide it */
    complete(y, 0, 1);
    const acs_item *item = place(y, next);

    assert_non_null(item);
    assert_int_equal(item->mark_count, 1);
    yard_close(y);
}

static void marks_lists_the_oldest_and_the_newest_recorded_ones(void **state)
{
    (void)state;
    yard *y = yard_open(64, 1);
    acs_mark marks[4];
    y->slots.mark_interval = 1;
    assert_int_equal(acs_slots_marks(&y->slots, 0, marks, 4), 0);
    place(y, KERNEL0(y->s));
    assert_int_equal(acs_slots_marks(&y->slots, 0, marks, 4), 0); /* not recorded yet */
    submitted(y);
    assert_int_equal(acs_slots_marks(&y->slots, 0, marks, 4), 1);
    for (int i = 0; i < 9; i++)
        issue(y, KERNEL0(y->s));
    place(y, KERNEL0(y->s));

    assert_int_equal(acs_slots_marks(&y->slots, 0, marks, 4), 4);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(marks[i].value, i + 1);
    assert_int_equal(marks[3].value, 10);
    yard_close(y);
}

static void mark_tails_marks_slots_that_have_ops_and_no_mark_behind_them(void **state)
{
    (void)state;
    yard *y = yard_open(64, 4);
    issue(y, KERNEL0(y->s));
    issue(y, KERNEL0(y->s));
    place(y, KERNEL0(y->s)); /* slot 2 is with the batch under way */
    acs_batch other = {0};

    acs_slots_mark_tails(&y->slots, &other, 99, UINT64_MAX);

    assert_int_equal(other.items_used, 1);
    assert_null(other.items[0].op);
    assert_int_equal(other.items[0].mark_count, 2);
    acs_slots_batch_done(&y->slots, 99);
    memset(&other, 0, sizeof other);
    acs_slots_mark_tails(&y->slots, &other, 100, UINT64_MAX);
    assert_int_equal(other.items_used, 0);
    yard_close(y);
}

/* ------------------------------------------------------------------------------------------------ batches under way */

static void place_leaves_slots_of_another_batch_alone(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    acs_batch other = {0};
    place(y, KERNEL0(y->s));
    acs_op second = KERNEL0(y->s), third = KERNEL0(y->s);

    acs_entry *e = scene_entry(y->s, second);
    assert_true(acs_slots_place(&y->slots, &other, 99, e));
    assert_int_equal(e->slot, 1);
    assert_false(acs_slots_place(&y->slots, &other, 100, scene_entry(y->s, third)));
    assert_int_equal(other.items_used, 1);
    acs_slots_batch_done(&y->slots, 99);
    assert_true(acs_slots_place(&y->slots, &other, 100, scene_entry(y->s, third)));
    yard_close(y);
}

static void place_does_not_use_marks_of_another_batch_before_it_is_done(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    acs_batch other = {0};
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    place(y, KERNEL(y->s, ACS_IN(AT(0), 64))); /* slot 0: marks the writer, and is under way */
    acs_entry *reader = scene_entry(y->s, KERNEL(y->s, ACS_IN(AT(0), 64)));

    assert_false(acs_slots_place(&y->slots, &other, 99, reader));
    assert_int_equal(other.items_used + other.waits_used + other.marks_used, 0);
    submitted(y);
    assert_true(acs_slots_place(&y->slots, &other, 99, reader));
    assert_int_equal(other.items[0].slot, 1);
    assert_int_equal(other.waits[0].value, 1);
    yard_close(y);
}

static void place_that_marks_a_foreign_slot_owns_it_until_the_batch_is_done(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64)));
    const acs_item *item = place(y, KERNEL(y->s, ACS_INOUT(AT(0), 164))); /* in slot 0, with a mark in slot 1 */
    assert_int_equal(item->mark_count, 1);
    acs_batch other = {0};
    acs_entry *next = scene_entry(y->s, KERNEL0(y->s));

    assert_false(acs_slots_place(&y->slots, &other, 99, next));
    submitted(y);
    assert_true(acs_slots_place(&y->slots, &other, 99, next));
    yard_close(y);
}

static void cancel_leaves_the_value_empty_and_the_slot_usable(void **state)
{
    (void)state;
    yard *y = yard_open(64, 1);
    acs_op refused = KERNEL0(y->s);
    place(y, refused);
    acs_slots_batch_done(&y->slots, y->id++);
    acs_slots_cancel(&y->slots, 0);
    scene_entry(y->s, refused)->slot = -1;
    scene_entry(y->s, refused)->state = ACS_ENTRY_READY;
    acs_window_push_ready(&y->s->w, scene_entry(y->s, refused), true);
    memset(y->batch, 0, sizeof *y->batch);

    acs_op next = KERNEL0(y->s);
    assert_int_equal(place(y, next)->value, 2);
    submitted(y);
    complete(y, 0, 2);
    assert_int_equal(y->s->status[next], ACS_OK);
    assert_int_equal(y->slots.slot[0].outstanding, 0);
    yard_close(y);
}

static void reached_is_true_when_all_needs_are_complete(void **state)
{
    (void)state;
    yard *y = yard_open(64, 2);
    issue(y, KERNEL(y->s, ACS_OUT(AT(0), 64)));
    issue(y, KERNEL(y->s, ACS_OUT(AT(100), 64)));
    issue(y, KERNEL0(y->s));
    issue(y, KERNEL0(y->s));
    acs_entry *reader = scene_entry(y->s, KERNEL(y->s, ACS_IN(AT(0), 164)));

    assert_false(acs_slots_reached(&y->slots, reader));
    complete(y, 0, 1);
    assert_false(acs_slots_reached(&y->slots, reader));
    complete(y, 1, 1);
    assert_true(acs_slots_reached(&y->slots, reader));
    yard_close(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_of_a_chain_stays_in_one_slot_without_marks),
        cmocka_unit_test(place_of_independent_ops_takes_idle_slots_then_the_least_loaded),
        cmocka_unit_test(place_behind_an_upstream_op_that_is_not_last_takes_another_slot_and_waits),
        cmocka_unit_test(place_behind_two_last_ops_prefers_the_one_with_fewest_waiters),
        cmocka_unit_test(place_behind_a_completed_op_takes_any_idle_slot_without_wait),
        cmocka_unit_test(place_without_an_idle_slot_prefers_an_upstream_op_s_among_the_emptiest),
        cmocka_unit_test(place_behind_a_slot_makes_one_mark_and_one_wait_for_its_newest_upstream),
        cmocka_unit_test(place_behind_an_op_that_waited_already_implies_the_older_wait),
        cmocka_unit_test(place_in_a_slot_that_waited_before_does_not_wait_again),
        cmocka_unit_test(place_in_a_batch_waits_for_an_item_before_it_by_a_mark_of_the_batch),
        cmocka_unit_test(place_of_a_stream_signal_waits_for_everything_and_takes_no_slot),
        cmocka_unit_test(place_in_front_of_nobody_makes_no_mark_for_what_it_hides),
        cmocka_unit_test(place_that_hides_an_op_which_regions_remember_marks_it_first),
        cmocka_unit_test(place_that_hides_an_op_which_a_ready_op_must_run_behind_marks_it_first),
        cmocka_unit_test(place_marks_every_so_many_ops_without_being_asked),
        cmocka_unit_test(mark_index_is_used_again_only_when_the_mark_is_complete),
        cmocka_unit_test(place_without_a_free_mark_defers_until_one_completes),
        cmocka_unit_test(marks_lists_the_oldest_and_the_newest_recorded_ones),
        cmocka_unit_test(mark_tails_marks_slots_that_have_ops_and_no_mark_behind_them),
        cmocka_unit_test(place_leaves_slots_of_another_batch_alone),
        cmocka_unit_test(place_does_not_use_marks_of_another_batch_before_it_is_done),
        cmocka_unit_test(place_that_marks_a_foreign_slot_owns_it_until_the_batch_is_done),
        cmocka_unit_test(cancel_leaves_the_value_empty_and_the_slot_usable),
        cmocka_unit_test(reached_is_true_when_all_needs_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
