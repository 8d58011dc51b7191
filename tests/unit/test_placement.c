/*
 * Unit tests of devices/placement, as tables: a program, a policy, and the devices where its ops have to run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/placement.h"

#include <math.h>
#include <string.h>

enum { DEVICES = 4, HOST = DEVICES, OPS_MOST = 8, READS_MOST = 3 };

#define AT(place) (UINT32_C(1) << (place))
#define ALL (AT(DEVICES) - 1)
#define MB 1000000

/* 100 GB/s between devices, but 10 between 0 and 3, and 20 with the host; no latency. */
static acs_topology topology(void)
{
    acs_topology t = {.count = DEVICES};
    for (uint32_t a = 0; a <= DEVICES; a++)
        for (uint32_t b = 0; b <= DEVICES; b++)
            t.links[a][b] = (acs_route){a == HOST || b == HOST ? 20e9 : 100e9, 0, true};
    t.links[0][3].bandwidth = t.links[3][0].bandwidth = 10e9;
    return t;
}

typedef struct row {
    const char *name;
    acs_policy policy;
    struct {
        acs_placement_read reads[READS_MOST]; /* up to the first without bytes */
        acs_place_set allowed;                /* 0: all */
        acs_place_set preferred;
        double seconds;
        int ended; /* before this one: an op of this device, from 1 */
        uint32_t device;
    } ops[OPS_MOST]; /* up to the first without `name` */
    uint32_t count;
} row;

static const row g_rows[] = {
    {"single takes the first that is allowed", ACS_POLICY_SINGLE,
     {{.device = 0}, {.allowed = AT(2) | AT(3), .device = 2}, {.reads = {{MB, AT(3)}}, .device = 0}}, 3},
    {"single does not go where an upstream op was", ACS_POLICY_SINGLE,
     {{.allowed = AT(1), .device = 1}, {.reads = {{MB, AT(1)}}, .preferred = AT(1), .device = 0},
      {.preferred = AT(2) | AT(3), .allowed = AT(1) | AT(2) | AT(3), .device = 1}}, 3},
    {"round-robin takes turns, past who is not allowed", ACS_POLICY_ROUND_ROBIN,
     {{.device = 0}, {.device = 1}, {.allowed = AT(0) | AT(3), .device = 3}, {.device = 0},
      {.reads = {{MB, AT(3)}}, .device = 1}}, 5},
    {"an op that goes on in an upstream op's stream stays", ACS_POLICY_ROUND_ROBIN,
     {{.device = 0}, {.preferred = AT(0), .device = 0}, {.preferred = AT(0), .allowed = AT(2), .device = 2},
      {.device = 3}}, 4},
    {"stream-aware: who has fewest ops", ACS_POLICY_STREAM_AWARE,
     {{.device = 0}, {.device = 1}, {.device = 2}, {.device = 3}, {.ended = 3, .device = 2}, {.device = 3},
      {.ended = 2, .device = 1}}, 7},
    {"stream-aware does not look at data", ACS_POLICY_STREAM_AWARE,
     {{.reads = {{100 * MB, AT(2)}}, .device = 0}, {.reads = {{100 * MB, AT(2)}}, .device = 1}}, 2},
    {"min-transfer-size: where most of it is", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{.reads = {{10 * MB, AT(1)}, {20 * MB, AT(2)}}, .device = 2},
      {.reads = {{10 * MB, AT(1)}, {20 * MB, AT(2) | AT(1)}}, .device = 1},
      {.reads = {{10 * MB, AT(3) | AT(HOST)}}, .device = 3}}, 3},
    {"with less than a tenth of it a device has nothing", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{.reads = {{9 * MB, AT(1)}, {91 * MB, AT(HOST)}}, .device = 0},
      {.reads = {{9 * MB, AT(1)}, {91 * MB, AT(HOST)}}, .device = 1},
      {.reads = {{9 * MB, AT(1)}, {91 * MB, AT(HOST)}}, .device = 2},
      {.reads = {{10 * MB, AT(1)}, {90 * MB, AT(HOST)}}, .device = 1}}, 4},
    {"what nobody wrote need not come", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{.reads = {{90 * MB, 0}, {20 * MB, AT(2)}}, .device = 2}, {.reads = {{90 * MB, 0}}, .device = 3}}, 2},
    {"min-transfer-size ties go round", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{.reads = {{MB, AT(1) | AT(2)}}, .device = 1}, {.reads = {{MB, AT(1) | AT(2)}}, .device = 2},
      {.reads = {{MB, AT(1) | AT(2)}}, .device = 1}}, 3},
    {"min-max-transfer-time: fewer bytes over a slow link lose", ACS_POLICY_MIN_MAX_TRANSFER_TIME,
     {{.reads = {{30 * MB, AT(0)}, {40 * MB, AT(3)}, {45 * MB, AT(1)}}, .device = 1}}, 1},
    {"the same by size", ACS_POLICY_MIN_TRANSFER_SIZE,
     {{.reads = {{30 * MB, AT(0)}, {50 * MB, AT(3)}, {45 * MB, AT(1)}}, .device = 3}}, 1},
    {"min-max takes the slowest of the places that have it", ACS_POLICY_MIN_MAX_TRANSFER_TIME,
     {{.reads = {{30 * MB, AT(0) | AT(1)}, {60 * MB, AT(3)}}, .device = 1}}, 1}, /* 3 would do by the fastest */
    {"automatic: an idle device before a busy one", ACS_POLICY_AUTO,
     {{.seconds = 1, .device = 0}, {.seconds = 1, .device = 1}, {.seconds = 3, .device = 2}, {.seconds = 3, .device = 3},
      {.seconds = 1, .device = 0}, {.seconds = 1, .device = 1}, {.seconds = 3, .device = 0}}, 7},
    {"automatic: to bring it takes longer than to wait", ACS_POLICY_AUTO,
     {{.reads = {{1000 * (uint64_t)MB, AT(0)}}, .seconds = 0.008, .device = 0},
      {.reads = {{1000 * (uint64_t)MB, AT(0)}}, .seconds = 0.008, .device = 0},
      {.reads = {{1000 * (uint64_t)MB, AT(0)}}, .seconds = 0.008, .device = 0},
      {.reads = {{1000 * (uint64_t)MB, AT(0)}}, .seconds = 0.008, .device = 1}}, 4},
    {"automatic: of equals where least has to come", ACS_POLICY_AUTO,
     {{.reads = {{MB, AT(2)}}, .seconds = 1, .device = 2}, {.allowed = AT(1), .seconds = 2, .device = 1}}, 2},
    {"automatic: what is not known takes as long as the others", ACS_POLICY_AUTO,
     {{.allowed = AT(0), .seconds = 4, .device = 0}, {.allowed = AT(1), .seconds = 2, .device = 1},
      {.allowed = AT(0) | AT(1), .device = 1}, {.allowed = AT(0) | AT(1), .device = 0}}, 4},
};

static void programs_are_placed_as_the_table_says(void **state)
{
    (void)state;
    const acs_topology t = topology();
    for (size_t r = 0; r < sizeof g_rows / sizeof *g_rows; r++) {
        acs_placement p;
        acs_placement_init(&p, &t, g_rows[r].policy);
        for (uint32_t i = 0; i < g_rows[r].count; i++) {
            acs_placement_op op = {.reads = g_rows[r].ops[i].reads, .allowed = g_rows[r].ops[i].allowed,
                                   .preferred = g_rows[r].ops[i].preferred, .seconds = g_rows[r].ops[i].seconds};
            double end;
            op.allowed = op.allowed ? op.allowed : ALL;
            while (op.read_count < READS_MOST && op.reads[op.read_count].bytes)
                op.read_count++;
            if (g_rows[r].ops[i].ended)
                p.running[g_rows[r].ops[i].ended - 1]--;
            const uint32_t device = acs_placement_choose(&p, &op, &end);
            if (device != g_rows[r].ops[i].device)
                fail_msg("%s: op %u went to %u, not %u", g_rows[r].name, i, device, g_rows[r].ops[i].device);
        }
    }
}

static void what_has_to_come_takes_its_time(void **state)
{
    (void)state;
    const acs_topology t = topology();
    const acs_placement_read reads[] = {{20 * MB, AT(0) | AT(1)}, {10 * MB, AT(3)}, {5 * MB, 0}};
    const acs_placement_op op = {.reads = reads, .read_count = 3, .allowed = ALL};
    assert_true(fabs(acs_placement_transfer(&t, &op, 3, true) - 20e6 / 10e9) < 1e-9);
    assert_true(fabs(acs_placement_transfer(&t, &op, 3, false) - 20e6 / 100e9) < 1e-9);
    assert_true(fabs(acs_placement_transfer(&t, &op, 0, false) - 10e6 / 10e9) < 1e-9);
    assert_true(fabs(acs_placement_transfer(&t, &op, 2, true) - 30e6 / 100e9) < 1e-9);
}

/* Copies overlap with what the device still has to do; upstream ops have to end first. */
static void ends_are_foreseen(void **state)
{
    (void)state;
    const acs_topology t = topology();
    const acs_placement_read reads[] = {{1000 * (uint64_t)MB, AT(1)}};
    acs_placement p;
    double end;
    acs_placement_init(&p, &t, ACS_POLICY_AUTO);
    acs_placement_op op = {.allowed = AT(0), .seconds = 0.005};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    assert_true(fabs(end - 0.005) < 1e-12);
    op = (acs_placement_op){reads, 1, AT(0), 0, 0.001, false, 0};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    assert_true(fabs(end - 0.011) < 1e-12); /* 10 ms of copying, beside the 5 that the device has to do */
    op = (acs_placement_op){NULL, 0, AT(0), 0, 0.001, false, 0.5};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    assert_true(fabs(end - 0.501) < 1e-12);
    acs_placement_idle(&p);
    op = (acs_placement_op){NULL, 0, AT(0), 0, 0.001, false, 0};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    assert_true(fabs(end - 0.001) < 1e-12);
}

/* Nothing begins before what was seen to have ended, neither ops nor copies; what ends later is still to come. */
static void what_has_ended_is_no_load(void **state)
{
    (void)state;
    const acs_topology t = topology();
    const acs_placement_read reads[] = {{1000 * (uint64_t)MB, AT(1)}};
    acs_placement p;
    double end;
    acs_placement_init(&p, &t, ACS_POLICY_AUTO);
    acs_placement_op op = {.allowed = AT(0), .seconds = 0.005};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    op = (acs_placement_op){.allowed = AT(2), .seconds = 0.009};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 2);
    acs_placement_seen(&p, 0.005);
    op = (acs_placement_op){.allowed = AT(0) | AT(1) | AT(2), .seconds = 0.001, .preferred = AT(0)};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0); /* as free as device 1 */
    assert_true(fabs(end - 0.006) < 1e-12);
    op = (acs_placement_op){.allowed = AT(2), .seconds = 0.001};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 2);
    assert_true(fabs(end - 0.010) < 1e-12);
    op = (acs_placement_op){.reads = reads, .read_count = 1, .allowed = AT(3), .seconds = 0.001};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 3);
    assert_true(fabs(end - 0.016) < 1e-12); /* 10 ms of copying, from then on */
}

/* What comes from the host does not hold up what comes from other devices, and each way is one thing after the other. */
static void ways_do_not_hold_each_other_up(void **state)
{
    (void)state;
    const acs_topology t = topology();
    const acs_placement_read host[] = {{200 * MB, AT(HOST)}}, peer[] = {{100 * MB, AT(1)}};
    const acs_placement_read both[] = {{200 * MB, AT(HOST)}, {100 * MB, AT(1)}};
    acs_placement p;
    double end;
    acs_placement_init(&p, &t, ACS_POLICY_AUTO);
    for (int i = 1; i <= 2; i++) { /* 10 ms each, of the way alone */
        const acs_placement_op copy = {host, 1, AT(0), 0, 0.001, true, 0};
        assert_int_equal(acs_placement_choose(&p, &copy, &end), 0);
        assert_true(fabs(end - 0.01 * i) < 1e-12);
    }
    for (int i = 1; i <= 2; i++) { /* 1 ms each */
        const acs_placement_op op = {peer, 1, AT(0), 0, 1e-4, false, 0};
        assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
        assert_true(fabs(end - 0.001 * i - 1e-4) < 1e-12);
    }
    const acs_placement_op op = {both, 2, AT(0), 0, 1e-4, false, 0};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 0);
    assert_true(fabs(end - 0.0301) < 1e-12);
}

/* Links that are alike are never measured alike: where nothing else differs an op stays where its blocks are. */
static void a_little_less_time_is_no_reason_to_go(void **state)
{
    (void)state;
    acs_topology t = topology();
    const acs_placement_read reads[] = {{MB, AT(0)}, {MB, AT(1)}};
    acs_placement p;
    double end;
    t.links[0][1].latency = 2.6e-6;
    t.links[1][0].latency = 2.9e-6;
    for (uint32_t preferred = 0; preferred < 2; preferred++) {
        acs_placement_init(&p, &t, ACS_POLICY_AUTO);
        acs_placement_op op = {reads, 2, AT(0) | AT(1), AT(preferred), 3e-6, false, 0};
        assert_int_equal(acs_placement_choose(&p, &op, &end), preferred);
    }
    t.links[1][0].latency = 4e-6;
    acs_placement_init(&p, &t, ACS_POLICY_AUTO);
    acs_placement_op op = {reads, 2, AT(0) | AT(1), AT(0), 3e-6, false, 0};
    assert_int_equal(acs_placement_choose(&p, &op, &end), 1);
}

/* Whatever is asked, the device is one of those that are allowed. */
static void only_allowed_devices_are_chosen(void **state)
{
    (void)state;
    const acs_topology t = topology();
    acs_random random = {1};
    for (int policy = 0; policy < ACS_POLICY_COUNT; policy++) {
        acs_placement p;
        acs_placement_init(&p, &t, (acs_policy)policy);
        for (int i = 0; i < 5000; i++) {
            acs_placement_read reads[READS_MOST];
            double end;
            for (int k = 0; k < READS_MOST; k++)
                reads[k] = (acs_placement_read){acs_random_below(&random, 100 * MB),
                                                acs_random_below(&random, 2 * AT(HOST))};
            const acs_placement_op op = {.reads = reads,
                                         .read_count = acs_random_below(&random, READS_MOST + 1),
                                         .allowed = 1 + acs_random_below(&random, ALL),
                                         .preferred = acs_random_below(&random, ALL + 1),
                                         .seconds = acs_random_below(&random, 3) * 1e-5};
            const uint32_t device = acs_placement_choose(&p, &op, &end);
            assert_true(op.allowed & AT(device));
            assert_true(end >= 0);
            if (acs_random_below(&random, 2))
                p.running[device]--;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_placed_as_the_table_says),
        cmocka_unit_test(what_has_to_come_takes_its_time),
        cmocka_unit_test(ends_are_foreseen),
        cmocka_unit_test(what_has_ended_is_no_load),
        cmocka_unit_test(ways_do_not_hold_each_other_up),
        cmocka_unit_test(a_little_less_time_is_no_reason_to_go),
        cmocka_unit_test(only_allowed_devices_are_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
