/*
 * Unit tests of memory that is freed and handed out again, in the core: acs_free's op, which calls the driver, and the op
 * that separates the lives of a pool's block. After failures too. Over core_fixture.h's backend.
 */
#include "core_fixture.h"

#include "base/base.h"

static void free_waits_for_users_and_is_not_skipped_and_forgets_failures(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op failing = KERNEL(r, ACS_OUT(AT(0), 64));
    KERNEL(r, ACS_OUT(AT(64), 64));
    acs_op release = push_free(r, AT(0), 128);
    answer(r, failing, ACS_ERR_LAUNCH, 1);
    for (int i = 0; i < 6; i++)
        step(r);
    assert_int_equal(r->backend.freed, 0);
    run_to_end(r);
    acs_op again = KERNEL(r, ACS_IN(AT(0), 8));
    run_to_end(r);

    assert_int_equal(r->backend.freed, 1);
    assert_int_equal(r->frees, 1);
    assert_int_equal(r->core.counters.kinds[ACS_KIND_FREE], 1);
    assert_int_equal(r->status[release], ACS_OK);
    assert_int_equal(r->status[again], ACS_OK);
    rig_close(r);
}

/* Users of the new life run behind those of the old one. */
static void lives_of_a_block_are_ordered(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op user = KERNEL(r, ACS_OUT(AT(0), 64));
    acs_op part = KERNEL(r, ACS_IN(AT(64), 8));
    acs_op reuse = push_reuse(r, AT(0), 128);
    acs_op next = KERNEL(r, ACS_OUT(AT(32), 64));
    acs_op beside = KERNEL(r, ACS_OUT(AT(128), 64));
    for (int i = 0; i < 6; i++)
        step(r);
    assert_int_equal(r->backend.issued[next], 1); /* chained: ACS_CHECK looks at how */
    assert_int_equal(r->backend.issued[beside], 1);
    assert_int_equal(r->status[reuse], ACS_OK);
    assert_int_equal(acs_core_settled(&r->core), 0);
    assert_int_equal(r->core.window.life_count, 1);
    run_to_end(r);

    assert_int_equal(r->checks, 0);
    assert_int_equal(r->status[user], ACS_OK);
    assert_int_equal(r->status[part], ACS_OK);
    assert_int_equal(r->status[reuse], ACS_OK);
    assert_int_equal(r->status[next], ACS_OK);
    assert_int_equal(acs_core_settled(&r->core), beside);
    rig_close(r);
}

/* Where nobody of the former life is left it makes nobody wait. */
static void a_block_that_nobody_uses_is_handed_out_at_once(void **state)
{
    (void)state;
    rig *r = rig_open();
    acs_op user = KERNEL(r, ACS_OUT(AT(0), 64));
    run_to_end(r);
    acs_op other = KERNEL(r, ACS_OUT(AT(256), 64));
    acs_op reuse = push_reuse(r, AT(0), 64);
    for (int i = 0; i < 6; i++)
        step(r);
    assert_int_equal(r->status[user], ACS_OK);
    assert_int_equal(r->status[reuse], ACS_OK);
    assert_int_equal(r->core.window.counters.edges, 0);
    assert_int_equal(r->core.window.live_joins, 0);
    assert_int_equal(r->core.window.life_count, 0);
    run_to_end(r);
    assert_int_equal(acs_core_settled(&r->core), other + 1);
    rig_close(r);
}

/* A failure of one life is no concern of the next: of ops that are in the window by then, and of those that come later. */
static void failures_stay_in_their_life(void **state)
{
    (void)state;
    for (int late = 0; late < 3; late++) {
        body bad = {.result = -5};
        rig *r = rig_open();
        acs_op slow = KERNEL(r, ACS_OUT(AT(1024), 8));
        acs_op failing = push_host(r, ACS_OUT(AT(0), 64), &bad);
        acs_op skipped = KERNEL(r, ACS_IN(AT(0), 8), ACS_IN(AT(1024), 8));
        acs_op elsewhere = KERNEL(r, ACS_IN(AT(0), 8), ACS_OUT(AT(512), 8));
        if (late == 2)
            run_to_end(r);
        acs_op reuse = push_reuse(r, AT(0), 128);
        if (late == 1)
            for (int i = 0; i < 20; i++)
                step(r);
        acs_op next = KERNEL(r, ACS_INOUT(AT(0), 32));
        acs_op through = KERNEL(r, ACS_IN(AT(512), 8));
        run_to_end(r);
        acs_op later = KERNEL(r, ACS_IN(AT(0), 8));
        run_to_end(r);

        assert_int_equal(r->status[slow], ACS_OK);
        assert_int_equal(r->status[failing], ACS_ERR_HOST);
        assert_int_equal(r->status[skipped], ACS_ERR_SKIPPED);
        assert_int_equal(r->status[elsewhere], ACS_ERR_SKIPPED);
        assert_int_equal(r->status[reuse], ACS_OK);
        assert_int_equal(r->status[next], ACS_OK);
        assert_int_equal(r->status[through], ACS_ERR_SKIPPED); /* of another block */
        assert_int_equal(r->status[later], ACS_OK);
        rig_close(r);
    }
}

/* The same of memory that is quiet: no op is needed, only that the failures in it are forgotten. */
static void failures_in_a_quiet_block_are_forgotten(void **state)
{
    (void)state;
    body bad = {.result = -5};
    rig *r = rig_open();
    acs_op failing = push_host(r, ACS_OUT(AT(0), 64), &bad);
    run_to_end(r);
    acs_core_forget_block(&r->core, AT(0), 64);
    acs_op next = KERNEL(r, ACS_IN(AT(0), 8));
    run_to_end(r);
    assert_int_equal(r->status[failing], ACS_ERR_HOST);
    assert_int_equal(r->status[next], ACS_OK);
    rig_close(r);
}

/* Of a part of what many read, and of two parts that the same ones do: their readers become joins. */
static void many_readers_of_a_former_life(void **state)
{
    (void)state;
    for (int parts = 1; parts < 3; parts++) {
        rig *r = rig_open();
        for (int i = 0; i < 12; i++)
            (void)(parts == 1 ? KERNEL(r, ACS_IN(AT(0), 512)) : KERNEL(r, ACS_IN(AT(0), 64), ACS_IN(AT(64), 64)));
        acs_op reuse = push_reuse(r, AT(0), 128), next = KERNEL(r, ACS_OUT(AT(32), 64));
        acs_op other = KERNEL(r, ACS_IN(AT(64), 8));
        run_to_end(r);
        assert_int_equal(r->checks, 0);
        assert_int_equal(r->status[reuse], ACS_OK);
        assert_int_equal(r->status[next], ACS_OK);
        assert_int_equal(r->status[other], ACS_OK);
        rig_close(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_waits_for_users_and_is_not_skipped_and_forgets_failures),
        cmocka_unit_test(lives_of_a_block_are_ordered),
        cmocka_unit_test(a_block_that_nobody_uses_is_handed_out_at_once),
        cmocka_unit_test(failures_stay_in_their_life),
        cmocka_unit_test(failures_in_a_quiet_block_are_forgotten),
        cmocka_unit_test(many_readers_of_a_former_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
