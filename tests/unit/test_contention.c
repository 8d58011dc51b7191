/*
 * Unit tests of scheduler/shares: what is learnt of the device's time from kernels that were launched, what not, and that
 * the core tells it of what it bundles.
 */
#include "core_fixture.h"

#include "base/tuning.h"

enum { TYPE = 7, OTHER = 8, POLL_NS = 2000, DEVICE = 1 };

static acs_contention *g_shares;
static uint64_t g_now;

static int begin(void **state)
{
    (void)state;
    g_shares = calloc(1, sizeof *g_shares);
    g_now = 1000000;
    return g_shares == NULL;
}

static int end(void **state)
{
    (void)state;
    free(g_shares);
    return 0;
}

static void polled_after(uint64_t ns)
{
    g_now += ns;
    acs_contention_looked(g_shares, DEVICE, g_now);
    acs_contention_polled(g_shares, DEVICE, g_now);
}

static void end_one(uint32_t type)
{
    acs_contention_ended(g_shares, DEVICE, type, true);
}

static uint32_t known(uint32_t type)
{
    return acs_contention_of(g_shares, DEVICE, type);
}

static void launch_so_many(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        acs_contention_issued(g_shares, DEVICE, true);
}

/* All that is out ends, one each `each_ns`, seen by polls. */
static void drain(uint32_t type, uint64_t each_ns)
{
    uint64_t to_end = each_ns;
    while (g_shares->device[DEVICE].out > 0) {
        for (; to_end <= POLL_NS && g_shares->device[DEVICE].out > 0; to_end += each_ns)
            end_one(type);
        to_end -= to_end > POLL_NS ? POLL_NS : to_end - 1;
        polled_after(POLL_NS);
    }
}

static void burst(uint32_t count, uint32_t type, uint64_t each_ns)
{
    polled_after(POLL_NS);
    launch_so_many(count);
    polled_after(POLL_NS);
    drain(type, each_ns);
}

/* A type whose kernels were seen to take 20 us each: what is known of it. */
static uint32_t learnt(uint32_t type)
{
    for (int i = 0; i < 4; i++)
        burst(12, type, 20000);
    return known(type);
}

static void what_queues_up_is_learnt_little_by_little(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (int i = 0; i < 6; i++) {
        burst(12, TYPE, 20000);
        const uint32_t now = known(TYPE);
        assert_true(now >= before && now <= 2 * before + 4000);
        before = now;
    }
    assert_in_range(before, 18000, 22000);
    assert_int_equal(known(OTHER), 0);
    burst(12, TYPE, 4000);
    assert_in_range(known(TYPE), 10000, 14000); /* less is believed sooner */
}

/* Kernels that run side by side end together: the time of all of them counts, not that between two ends. */
static void those_that_end_together_share_their_time(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        polled_after(POLL_NS);
        launch_so_many(16);
        for (int p = 0; p < 80; p++)
            polled_after(POLL_NS);
        for (int k = 0; k < 16; k++)
            end_one(TYPE);
        polled_after(POLL_NS);
    }
    assert_in_range(known(TYPE), 9000, 11000);
}

static void few_say_nothing(void **state)
{
    (void)state;
    for (uint32_t count = 1; count < 4; count++)
        burst(count, TYPE, 50000);
    assert_int_equal(known(TYPE), 0);
    burst(4, TYPE, 50000);
    assert_true(known(TYPE) > 0);
}

/* Twenty are out all the time, of two types in turn: samples end without a poll that finds nothing. */
static void a_stream_without_end_is_learnt_from(void **state)
{
    (void)state;
    launch_so_many(20);
    for (int i = 0; i < 200; i++) {
        polled_after(10000);
        end_one(i % 2 ? TYPE : OTHER);
        launch_so_many(1);
    }
    assert_in_range(known(TYPE), 9000, 10000);
    assert_in_range(known(OTHER), 9000, 10000);
}

/* A round of polls takes long, too: nothing is known of when in it an op was seen. */
static void a_round_of_polls_says_when_at_both_its_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        launch_so_many(8);
        for (int p = 0; p < 2; p++) {
            acs_contention_looked(g_shares, DEVICE, g_now + 1000); /* several times, until all were asked about */
            acs_contention_looked(g_shares, DEVICE, g_now + 8000);
            acs_contention_polled(g_shares, DEVICE, g_now += 12000);
        }
        for (int k = 0; k < 8; k++)
            end_one(TYPE);
        polled_after(1000);
        polled_after(1000);
    }
    assert_int_equal(known(TYPE), 0); /* eight may have taken 1 us + LATENCY_NS from end to beginning */
    const uint32_t before = learnt(OTHER);
    launch_so_many(8);
    acs_contention_looked(g_shares, DEVICE, g_now + 1000);
    acs_contention_polled(g_shares, DEVICE, g_now += 8 * (uint64_t)before + 1000);
    for (int k = 0; k < 8; k++)
        end_one(OTHER);
    polled_after(1000);
    assert_int_equal(known(OTHER), before); /* they may have taken as long from beginning to end */
}

/* More ended than were out when the sample began: the device waits for launches. A sixteenth of what was known goes. */
static void what_goes_through_is_forgotten_little_by_little(void **state)
{
    (void)state;
    uint32_t before = learnt(TYPE);
    assert_true(before > 10000);
    for (int i = 0; i < 50; i++) {
        launch_so_many(4);
        polled_after(40000);
        polled_after(40000);
        launch_so_many(12);
        for (int k = 0; k < 10; k++)
            end_one(TYPE);
        polled_after(40000);
        assert_in_range(known(TYPE), before - before / 16 - 1, before - (before > 16));
        before = known(TYPE);
        for (int k = 0; k < 6; k++)
            end_one(OTHER);
        polled_after(POLL_NS);
    }
    assert_int_equal(known(OTHER), 0);
    for (int i = 0; i < 200; i++)
        burst(2, TYPE, 1000); /* few at a time go through, too */
    assert_int_equal(known(TYPE), 0);
}

static void what_nobody_watched_says_nothing(void **state)
{
    (void)state;
    const uint32_t before = learnt(TYPE);
    for (int i = 0; i < 2; i++) { /* neither that they are short, */
        polled_after(POLL_NS);
        launch_so_many(i ? 2 : 12);
        for (int k = 0; k < (i ? 2 : 12); k++)
            end_one(TYPE);
        polled_after(1000000);
        assert_int_equal(known(TYPE), before);
    }
    launch_so_many(12); /* nor that they are long */
    polled_after(POLL_NS);
    for (int k = 0; k < 12; k++)
        end_one(OTHER);
    polled_after(40000);
    assert_int_equal(known(OTHER), 0);
}

/* Nor is anything forgotten beside them, whether they came before the poll or behind it. */
static void beside_other_ops_nothing_is_forgotten(void **state)
{
    (void)state;
    const uint32_t before = learnt(TYPE);
    for (int behind = 0; behind < 2; behind++) {
        if (!behind)
            acs_contention_issued(g_shares, DEVICE, false);
        polled_after(POLL_NS);
        if (behind)
            acs_contention_issued(g_shares, DEVICE, false);
        launch_so_many(2);
        acs_contention_ended(g_shares, DEVICE, TYPE, false);
        end_one(TYPE);
        end_one(TYPE);
        polled_after(POLL_NS);
        assert_int_equal(known(TYPE), before);
    }
}

/* A bundle, a copy or a library call: before the sample, in the midst of it, and over before its end. */
static void beside_other_ops_nothing_is_learnt(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++) {
        for (int step = 0; step < 3; step++) {
            if (step == when)
                acs_contention_issued(g_shares, DEVICE, false);
            if (step == 0)
                launch_so_many(12);
            if (step == 2 && when == 1)
                acs_contention_ended(g_shares, DEVICE, TYPE, false);
            polled_after(20000);
        }
        for (int k = 0; k < 12; k++)
            end_one(TYPE);
        polled_after(20000);
        assert_int_equal(known(TYPE), 0);
        if (when != 1)
            acs_contention_ended(g_shares, DEVICE, TYPE, false);
    }
    burst(12, TYPE, 20000);
    assert_true(known(TYPE) > 0);
}

/* The end of any burst, seen as late as launches and polls make it. */
static void what_an_idle_device_takes_to_begin_is_not_the_kernels(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        launch_so_many(6);
        for (int p = 0; p < 3; p++)
            polled_after(POLL_NS);
        for (int k = 0; k < 6; k++)
            end_one(TYPE);
        polled_after(POLL_NS);
        polled_after(POLL_NS);
    }
    assert_int_equal(known(TYPE), 0);
}

/* Types are numbered on each device by itself. */
static void what_one_device_takes_says_nothing_of_another(void **state)
{
    (void)state;
    burst(12, TYPE, 20000);
    assert_true(known(TYPE) > 0);
    assert_int_equal(acs_contention_of(g_shares, DEVICE - 1, TYPE), 0);
    assert_int_equal(acs_contention_of(g_shares, DEVICE + 1, TYPE), 0);
}

static void a_type_at_the_place_of_another_takes_it(void **state)
{
    (void)state;
    burst(12, TYPE, 20000);
    assert_true(known(TYPE) > 0);
    for (int i = 0; i < 4; i++)
        burst(12, TYPE + TUNE_CONTENTION_TYPES, 100);
    assert_true(known(TYPE) > 0); /* of the other there is nothing to know */
    burst(12, TYPE + TUNE_CONTENTION_TYPES, 20000);
    assert_int_equal(known(TYPE), 0);
    assert_true(known(TYPE + TUNE_CONTENTION_TYPES) > 0);
    burst(12, 0, 20000); /* of no type */
    assert_int_equal(known(0), 0);
}

/* ---------------------------------------------------------------------------------------------------------- the core */

static void push_kernels(rig *r, uint32_t type)
{
    for (int i = 0; i < 12; i++) {
        const acs_segment out = ACS_OUT(AT(i * 64), 8);
        acs_record *op = record(r, ACS_KIND_KERNEL, &out, 1);
        op->type = type;
        (void)push(r, op);
    }
}

/* Twelve kernels in four slots, of which one is done with its three every 60 us, as polls every 10 us find out. */
static void launch_and_drain(rig *r, uint32_t type)
{
    memset(r->backend.complete, 0, sizeof r->backend.complete);
    push_kernels(r, type);
    r->backend.refusals = 1;
    for (int i = 0; i < 8; i++)
        step(r);
    assert_int_equal(r->core.running, 12);
    for (int slot = 0; slot < SLOTS; slot++) {
        for (int i = 0; i < 6; i++) {
            r->now_ns += 10000;
            step(r);
        }
        r->backend.complete[slot] = UINT64_MAX;
    }
    run_to_end(r);
    r->backend.refusals = 0;
}

static void a_bundle_says_what_the_device_takes_for_it(void **state)
{
    (void)state;
    rig *r = rig_make();
    r->backend.base.bundle_most = 32;
    r->now_ns = 1000000;
    rig_start(r);
    for (int turn = 0; turn < 6; turn++) {
        r->core.bundler->least_now = r->core.batch_least; /* as when nothing was refused for long */
        launch_and_drain(r, TYPE);
    }
    r->core.bundler->least_now = r->core.batch_least;
    push_kernels(r, TYPE);
    assert_true(next(r, 0));
    assert_true(r->action[0].batch.bundle);
    assert_int_equal(r->action[0].batch.device_ns, 12 * (uint64_t)acs_contention_of(&r->core.bundler->contention, 0, TYPE));
    assert_in_range(acs_contention_of(&r->core.bundler->contention, 0, TYPE), 12000, 22000);
    assert_int_equal(r->action[0].batch.slots, r->core.slots.banks[0].active);
    finish(r, 0);
    assert_int_equal(r->core.bundler->contention.device[0].others, 12);
    run_to_end(r);
    assert_int_equal(r->core.bundler->contention.device[0].out, 0);
    assert_int_equal(r->core.bundler->contention.device[0].others, 0);
    push_kernels(r, OTHER);
    assert_true(next(r, 0));
    assert_true(r->action[0].batch.bundle);
    assert_int_equal(r->action[0].batch.device_ns, 0);
    finish(r, 0);
    rig_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_queues_up_is_learnt_little_by_little, begin, end),
        cmocka_unit_test_setup_teardown(those_that_end_together_share_their_time, begin, end),
        cmocka_unit_test_setup_teardown(few_say_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_stream_without_end_is_learnt_from, begin, end),
        cmocka_unit_test_setup_teardown(a_round_of_polls_says_when_at_both_its_ends, begin, end),
        cmocka_unit_test_setup_teardown(what_goes_through_is_forgotten_little_by_little, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_watched_says_nothing, begin, end),
        cmocka_unit_test_setup_teardown(beside_other_ops_nothing_is_learnt, begin, end),
        cmocka_unit_test_setup_teardown(beside_other_ops_nothing_is_forgotten, begin, end),
        cmocka_unit_test_setup_teardown(what_an_idle_device_takes_to_begin_is_not_the_kernels, begin, end),
        cmocka_unit_test_setup_teardown(what_one_device_takes_says_nothing_of_another, begin, end),
        cmocka_unit_test_setup_teardown(a_type_at_the_place_of_another_takes_it, begin, end),
        cmocka_unit_test(a_bundle_says_what_the_device_takes_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
