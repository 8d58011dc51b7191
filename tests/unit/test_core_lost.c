/*
 * Unit tests of the core's ops when the device is lost: no op ends well behind one that ended with the device, and each
 * end is told once, before any wait is over. Over core_fixture.h's backend, which completes nothing by itself.
 */
#include "core_fixture.h"

#include "base/base.h"
#include "window/replay.h"

#define NATIVE 719

static void lose(rig *r)
{
    acs_error error;
    acs_error_fill(&error, ACS_ERR_DEVICE, NATIVE, "test", "%s", "the device faulted");
    acs_core_lose(&r->core, &error);
}

/* A poll beside the submission tells of ops without marks, as a graph does that publishes its progress. */
static void op_that_is_seen_complete_before_it_is_booked_ends_as_what_it_ran_behind(void **state)
{
    (void)state;
    rig *r = rig_open();
    const acs_op first = KERNEL(r, ACS_OUT(AT(0), 8));
    assert_true(step(r));
    while (r->core.slots.slot[0].marked < r->core.slots.slot[0].issued)
        assert_true(step(r));
    assert_true(next(r, 0));
    assert_int_equal(r->action[0].poll_count, 1);
    const acs_op second = KERNEL(r, ACS_IN(AT(0), 8));
    assert_true(next(r, 1));
    assert_int_equal(r->action[1].batch.items_used, 1);
    acs_core_perform(&r->core, &r->action[1]);
    const acs_item *item = &r->action[1].batch.items[0];
    r->backend.beyond = true;
    r->backend.complete[item->slot] = item->value;
    lose(r);
    assert_int_equal(r->status[first], ACS_ERR_DEVICE);
    finish(r, 0);
    acs_core_done(&r->core, &r->action[1]);
    assert_int_equal(r->status[second], ACS_ERR_DEVICE);
    r->backend.beyond = false;
    rig_close(r);
}

/* A replay of two ops that has been queued and is still being filled. Its shape points into it. */
typedef struct filling {
    acs_record *known[2];
    acs_replay_shape *shape;
    acs_replay *replay;
    acs_record *record;
} filling;

static void queue_replay(rig *r, filling *f)
{
    f->record = RECORD(r, ACS_KIND_REPLAY, ACS_OUT(AT(0), 16));
    for (int i = 0; i < 2; i++)
        f->known[i] = RECORD(r, ACS_KIND_KERNEL, ACS_OUT(AT(0), 16));
    f->shape = acs_replay_shape_create((const acs_record *const *)f->known, 2);
    assert_non_null(f->shape);
    f->replay = acs_replay_create(f->shape);
    assert_non_null(f->replay);
    f->record->u.replay.replay = NULL;
    f->record->u.replay.span = 2;
    acs_replay_begin(f->replay, push(r, f->record));
    r->last += 1;
    step(r); /* it enters the window, where it is held */
}

static void seal(rig *r, filling *f)
{
    for (uint32_t at = 0; at < 2; at++)
        assert_int_equal(acs_replay_add(f->replay, at, false), f->replay->first + at);
    acs_core_replay_sealed(&r->core, f->record, f->replay);
}

static void close_both(rig *r, filling *f)
{
    assert_true(acs_replay_is_free(f->replay));
    acs_replay_destroy(f->replay);
    acs_replay_shape_destroy(f->shape);
    for (int i = 0; i < 2; i++)
        acs_record_release(r->pool, f->known[i]);
    rig_close(r);
}

/* Without a step: a wait that is over after the seal must find the ends. */
static void replay_that_is_sealed_after_the_loss_ends_at_once(void **state)
{
    (void)state;
    rig *r = rig_open();
    filling f;
    queue_replay(r, &f);
    const acs_wait_condition all = {.type = ACS_WAIT_FOR_ALL, .op = r->last};
    lose(r);
    assert_false(acs_core_true(&r->core, &all));
    seal(r, &f);
    assert_true(acs_core_true(&r->core, &all));
    for (uint32_t at = 0; at < 2; at++)
        assert_int_equal(r->status[f.replay->first + at], ACS_ERR_DEVICE);
    assert_int_equal(r->ended_count, 2);
    close_both(r, &f);
}

static void replay_that_loses_the_device_tells_each_end_once(void **state)
{
    (void)state;
    rig *r = rig_open();
    filling f;
    queue_replay(r, &f);
    answer(r, f.replay->first, ACS_ERR_DEVICE, 1);
    seal(r, &f);
    assert_true(step(r));
    for (uint32_t at = 0; at < 2; at++)
        assert_int_equal(r->status[f.replay->first + at], ACS_ERR_DEVICE);
    assert_int_equal(r->ended_count, 2);
    close_both(r, &f);
}

/* Its marks are never complete: who steps until nothing is left to do would step for ever. */
static void nothing_is_left_to_do_for_a_lost_device(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 8));
    assert_true(step(r));
    while (r->core.slots.slot[0].marked < r->core.slots.slot[0].issued)
        assert_true(step(r));
    lose(r);
    assert_false(next(r, 0));
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(op_that_is_seen_complete_before_it_is_booked_ends_as_what_it_ran_behind),
        cmocka_unit_test(replay_that_is_sealed_after_the_loss_ends_at_once),
        cmocka_unit_test(replay_that_loses_the_device_tells_each_end_once),
        cmocka_unit_test(nothing_is_left_to_do_for_a_lost_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
