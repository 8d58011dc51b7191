/*
 * HuntKTm's Algorithm 1 as tables: which devices there are, which groups come and go, where each runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "devices/capacity.h"

enum { DEVICES = 3, STEPS = 6, NONE = -1 };

/* A group comes, or (device of `ends`, from 1) the group of that step ends first. */
typedef struct step {
    acs_demand group;
    int ends;
    int device;
} step;

#define GPU(sms_, memory_)                                                                                              \
    {.sms = (sms_), .threads = 2000, .registers = 60000, .shared = 200000, .memory = (memory_), .queues = 8}

static const struct {
    const char *what;
    acs_capacity devices[DEVICES];
    step steps[STEPS];
    uint32_t count;
} g_rows[] = {
    {"the first of equals, then whoever has more left", {GPU(100, 100), GPU(100, 100), GPU(100, 100)},
     {{{.threads = 2000, .memory = 1, .queues = 1}, 0, 0}, {{.threads = 2000, .memory = 1, .queues = 1}, 0, 1},
      {{.threads = 4000, .memory = 1, .queues = 1}, 0, 2}, {{.threads = 2000, .memory = 1, .queues = 1}, 0, 0}}, 4},
    {"the scarcest of three counts", {GPU(100, 100), GPU(100, 100), GPU(90, 100)},
     {{{.registers = 60000 * 20, .memory = 1, .queues = 1}, 0, 0}, {{.shared = 200000 * 30, .memory = 1, .queues = 1}, 0, 0},
      {{.threads = 2000 * 5, .memory = 1, .queues = 1}, 0, 1}, {{.registers = 60000, .memory = 1, .queues = 1}, 0, 1}}, 4},
    {"more SMs do not help without memory", {GPU(200, 10), GPU(100, 100), GPU(50, 100)},
     {{{.threads = 1, .memory = 11, .queues = 1}, 0, 1}, {{.threads = 1, .memory = 90, .queues = 1}, 0, 2},
      {{.threads = 1, .memory = 90, .queues = 1}, 0, NONE}, {{.threads = 1, .memory = 90, .queues = 1}, 2, 2}}, 4},
    {"nor without queues", {GPU(200, 100), GPU(100, 100), GPU(50, 100)},
     {{{.threads = 1, .memory = 1, .queues = 6}, 0, 0}, {{.threads = 1, .memory = 1, .queues = 6}, 0, 1},
      {{.threads = 1, .memory = 1, .queues = 2}, 0, 0}, {{.threads = 1, .memory = 1, .queues = 1}, 0, 1}}, 4},
    {"one that asks for more queues than there are gets them all", {GPU(10, 100), GPU(20, 100), GPU(15, 100)},
     {{{.threads = 1, .memory = 1, .queues = 100}, 0, 1}, {{.threads = 1, .memory = 1, .queues = 100}, 0, 2}}, 2},
    {"kernels larger than a device go where least is", {GPU(10, 100), GPU(10, 100), GPU(10, 100)},
     {{{.threads = 1000000, .memory = 1, .queues = 1}, 0, 0}, {{.threads = 3000000, .memory = 1, .queues = 1}, 0, 1},
      {{.threads = 2000000, .memory = 1, .queues = 1}, 0, 2}, {{.threads = 1000000, .memory = 1, .queues = 1}, 0, 0}}, 4},
};

static void groups_go_where_most_is_left(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof g_rows / sizeof *g_rows; r++) {
        acs_device_load devices[DEVICES];
        for (uint32_t d = 0; d < DEVICES; d++)
            devices[d] = (acs_device_load){.of = g_rows[r].devices[d]};
        for (uint32_t i = 0; i < g_rows[r].count; i++) {
            const step *s = &g_rows[r].steps[i];
            if (s->ends)
                acs_capacity_remove(&devices[g_rows[r].steps[s->ends - 1].device], &g_rows[r].steps[s->ends - 1].group);
            const int device = acs_capacity_choose(devices, DEVICES, &s->group);
            if (device != s->device)
                fail_msg("%s: group %u goes to %d, not to %d", g_rows[r].what, i, device, s->device);
            if (device >= 0)
                acs_capacity_add(&devices[device], &s->group);
        }
    }
}

static void what_is_left_is_counted_in_sms(void **state)
{
    (void)state;
    acs_device_load d = {.of = {.sms = 10, .threads = 2000, .registers = 0, .shared = 100}};
    const acs_demand group = {.threads = 5000, .registers = 1000000, .shared = 300}, none = {0};
    assert_true(acs_capacity_left(&d, &none) == 10);
    assert_true(acs_capacity_left(&d, &group) == 7); /* registers are not known */
    acs_capacity_add(&d, &group);
    assert_true(acs_capacity_left(&d, &none) == 7);
    assert_true(acs_capacity_left(&d, &group) == 4);
    acs_capacity_remove(&d, &group);
    assert_true(acs_capacity_left(&d, &none) == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_go_where_most_is_left),
        cmocka_unit_test(what_is_left_is_counted_in_sms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
