/*
 * Unit tests of acs_free's op in the core: when memory goes back, to the device by an action and to a pool without one,
 * after failures too. Over core_fixture.h's backend.
 */
#include "core_fixture.h"

#include "base/base.h"

static void free_waits_for_users_and_is_not_skipped_and_forgets_failures(void **state)
{
    (void)state;
    for (int pooled = 0; pooled < 2; pooled++) {
        rig *r = rig_open();
        acs_op failing = KERNEL(r, ACS_OUT(AT(0), 64));
        KERNEL(r, ACS_OUT(AT(64), 64));
        acs_op release = push_free(r, AT(0), 128, pooled);
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
}

/* Nobody who may run host functions has to come by: the op ends with the last of its users. */
static void a_pools_block_goes_back_without_an_action(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 64));
    acs_op release = push_free(r, AT(0), 64, true);
    complete_all(r);
    for (int i = 0; i < 20 && r->status[release] == NO_END; i++) {
        if (!acs_core_next(&r->core, ACS_MAY_ISSUE | ACS_MAY_INSERT, &r->action[0]))
            break;
        assert_int_not_equal(r->action[0].type, ACS_ACTION_HOST);
        finish(r, 0);
    }
    assert_int_equal(r->status[release], ACS_OK);
    assert_int_equal(r->backend.freed, 1);
    rig_close(r);
}

/* An op that may touch anything waits for the users of the block, not for the block to go back. */
static void nothing_waits_for_a_pools_free(void **state)
{
    (void)state;
    rig *r = rig_open();
    KERNEL(r, ACS_OUT(AT(0), 64));
    acs_op release = push_free(r, AT(0), 64, true);
    acs_record *any = record(r, ACS_KIND_KERNEL, NULL, 0);
    any->any = 1;
    acs_op after = push(r, any);
    for (int i = 0; i < 6; i++)
        step(r);
    assert_int_equal(r->backend.issued[after], 1);
    assert_int_equal(r->status[release], NO_END);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_waits_for_users_and_is_not_skipped_and_forgets_failures),
        cmocka_unit_test(a_pools_block_goes_back_without_an_action),
        cmocka_unit_test(nothing_waits_for_a_pools_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
