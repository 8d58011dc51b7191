/*
 * The choices of tuning: which version is best at a share, which measurements are spared, which settings of a mix are
 * found. Pure functions, on made-up times.
 */
#include "variants_fixture.h"

#include "variants/anneal.h"
#include "variants/choice.h"
#include "variants/sharing.h"
#include "variants/strands.h"

#include <math.h>
#include <stdbool.h>

/* ------------------------------------------------------------------------------------------------------------ choice */

enum { TWO = 2 };

static acs_problem problem_of(acs_version_times *times)
{
    return (acs_problem){.times = times};
}

static void the_least_time_at_a_share_wins(void **state)
{
    (void)state;
    const acs_profile_kernel kernel = {.count = TWO, .declared = {true, true}};
    acs_version_times times[TWO] = {{.us = {[0] = 50, [4] = 30, [9] = 20}}, {.us = {[0] = 60, [4] = 25, [9] = 10}}};
    acs_problem problem = problem_of(times);
    acs_choice_update(&kernel, &problem);
    static const uint8_t expected[ACS_SHARE_STEPS] = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_memory_equal(problem.at, expected, sizeof expected); /* of two shares as near the larger counts */
}

static void a_version_that_cannot_run_never_wins(void **state)
{
    (void)state;
    const acs_profile_kernel kernel = {.count = TWO, .declared = {true, true}};
    acs_version_times times[TWO] = {{.us = {[9] = INFINITY}}, {.us = {[9] = 1000}}};
    acs_problem problem = problem_of(times);
    acs_choice_update(&kernel, &problem);
    assert_int_equal(problem.at[9], 1);
    assert_int_equal(problem.at[0], 1);
}

static void company_counts_on_a_part_of_the_device(void **state)
{
    (void)state;
    const acs_profile_kernel kernel = {.count = TWO, .declared = {true, true}};
    acs_version_times times[TWO] = {
        {.us = {[4] = 10, [9] = 5}, .beside_us = {[ACS_COMPANY_MEMORY] = 40}, .beside_step = {4}},
        {.us = {[4] = 20, [9] = 8}, .beside_us = {[ACS_COMPANY_MEMORY] = 20}, .beside_step = {4}},
    };
    acs_problem problem = problem_of(times);
    acs_choice_update(&kernel, &problem);
    assert_int_equal(problem.at[4], 1); /* 40 against 20 in company */
    assert_int_equal(problem.at[9], 0); /* nothing runs beside it on the whole */
}

static void each_version_is_tried_a_few_times(void **state)
{
    (void)state;
    const acs_profile_kernel kernel = {.count = TWO, .declared = {true, true}};
    acs_version_times times[TWO] = {{.us = {0}}, {.us = {0}}};
    acs_problem problem = problem_of(times);
    bool fits[TWO] = {true, true};
    uint32_t version, tries = 0;
    while (acs_choice_trial(&kernel, &problem, fits, 9, &version) && tries++ < 100)
        acs_choice_learn(&problem, version, 9, version ? 5.f + (float)tries : 20.f - (float)tries);
    assert_int_equal(tries, 6);
    assert_int_equal(times[0].tries[9], 3);
    acs_choice_update(&kernel, &problem);
    assert_int_equal(problem.at[9], 1);
    assert_true(times[1].us[9] == 7.f); /* the least */
    fits[1] = false;
    assert_true(acs_choice_trial(&kernel, &problem, fits, 0, &version));
    assert_int_equal(version, 0);
}

/* ----------------------------------------------------------------------------------------------------------- sharing */

enum { MANY = 16 };

typedef struct device {
    acs_version_times times[MANY];
    float truth[MANY][ACS_SHARE_STEPS];
    uint32_t measured, most;
} device;

static bool measure(void *user, uint32_t version, uint32_t step)
{
    device *d = user;
    if (d->measured == d->most)
        return false;
    assert_true(d->times[version].us[step] == 0); /* none is taken twice */
    d->times[version].us[step] = d->truth[version][step];
    d->measured++;
    return true;
}

/* `alike`: all versions scale with the share in the same way; else half of them do not. */
static device device_of(bool alike)
{
    device d = {.most = UINT32_MAX};
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++)
            d.truth[i][step] = (float)(10 + i) * 10 / (float)(alike || i % 2 ? step + 1 : 10);
    return d;
}

static acs_sharing sharing_of(device *d, const bool *fits, uint32_t percent)
{
    return (acs_sharing){.count = MANY, .times = d->times, .fits = fits, .percent = percent, .measure = measure, .user = d};
}

static void what_correlates_is_not_measured(void **state)
{
    (void)state;
    bool fits[MANY];
    memset(fits, 1, sizeof fits);
    device d = device_of(true);
    acs_sharing s = sharing_of(&d, fits, 90);
    assert_true(acs_sharing_run(&s));
    assert_int_equal(d.measured, 2 * MANY + 8 * (MANY / 4)); /* both ends, and the best quarter between them */
    assert_true(fabs(acs_sharing_correlation(&s, 0, 9) - 1) < 1e-6);
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++)
        assert_true(d.times[0].us[step] > 0);
    const uint32_t before = d.measured;
    assert_true(acs_sharing_run(&s));
    assert_int_equal(d.measured, before);
}

static void what_does_not_correlate_is(void **state)
{
    (void)state;
    bool fits[MANY];
    memset(fits, 1, sizeof fits);
    device d = device_of(false);
    acs_sharing s = sharing_of(&d, fits, 90);
    assert_true(acs_sharing_run(&s));
    assert_true(acs_sharing_correlation(&s, 0, 9) < 0.9);
    assert_true(d.measured < MANY * ACS_SHARE_STEPS);
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++) { /* the best one is found all the same */
        uint32_t best = 0;
        for (uint32_t i = 0; i < MANY; i++)
            if (d.times[i].us[step] > 0 && (!(d.times[best].us[step] > 0) || d.times[i].us[step] < d.times[best].us[step]))
                best = i;
        assert_int_equal(best, step < 9 ? 0 : best);
    }
    device all = device_of(true);
    acs_sharing everything = sharing_of(&all, fits, 0);
    assert_true(acs_sharing_run(&everything));
    assert_int_equal(all.measured, MANY * ACS_SHARE_STEPS);
}

static void what_cannot_run_is_left_out_and_a_stop_stops(void **state)
{
    (void)state;
    bool fits[MANY];
    memset(fits, 1, sizeof fits);
    fits[3] = false;
    device d = device_of(true);
    acs_sharing s = sharing_of(&d, fits, 0);
    assert_true(acs_sharing_run(&s));
    assert_int_equal(d.measured, (MANY - 1) * ACS_SHARE_STEPS);
    assert_true(d.times[3].us[9] == 0);
    device stopped = device_of(true);
    stopped.most = 5;
    s = sharing_of(&stopped, fits, 0);
    assert_false(acs_sharing_run(&s));
    assert_int_equal(stopped.measured, 5);
}

/* ------------------------------------------------------------------------------------------------------------ anneal */

/* Best where each model has its own fit and share: 100 at the top, less by 1 for each step away. */
static const acs_mix_setting g_top[3] = {{30, 50}, {80, 20}, {100, 90}};

typedef struct mix {
    uint32_t count, runs, fail_at;
} mix;

static int away(uint32_t a, uint32_t b)
{
    return abs((int)a - (int)b) / 10;
}

static double run(void *user, const acs_mix_setting *settings)
{
    mix *m = user;
    double throughput = 100;
    if (++m->runs == m->fail_at)
        return 0;
    for (uint32_t i = 0; i < m->count; i++) {
        assert_true(settings[i].fit >= 10 && settings[i].fit <= 100 && settings[i].share >= 10 && settings[i].share <= 100);
        throughput -= away(settings[i].fit, g_top[i].fit) + away(settings[i].share, g_top[i].share);
    }
    return throughput;
}

static void annealing_finds_good_settings(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        mix m = {.count = 2};
        const acs_anneal anneal = {.count = 2, .runs = 160, .seed = seed, .run = run, .user = &m};
        acs_mix_setting best[2], again[2];
        bool stopped;
        const double found = acs_anneal_run(&anneal, best, &stopped);
        assert_false(stopped);
        assert_true(m.runs <= 160);
        assert_true(found >= 97); /* of 10000 settings; the start has 100 - 7 - 5 - 2 - 8 */
        m.runs = 0;
        assert_true(acs_anneal_run(&anneal, again, &stopped) == found);
        assert_memory_equal(best, again, sizeof best);
    }
}

static void the_fit_may_stay(void **state)
{
    (void)state;
    mix m = {.count = 3};
    const acs_anneal anneal = {.count = 3, .runs = 120, .fit_fixed = true, .run = run, .user = &m};
    acs_mix_setting best[3];
    bool stopped;
    assert_true(acs_anneal_run(&anneal, best, &stopped) >= 100 - 7 - 2 - 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(best[i].fit, 100);
}

static void a_failed_run_ends_the_search(void **state)
{
    (void)state;
    acs_mix_setting best[2] = {{0, 0}};
    bool stopped;
    mix m = {.count = 2, .fail_at = 1};
    const acs_anneal anneal = {.count = 2, .runs = 100, .run = run, .user = &m};
    assert_true(acs_anneal_run(&anneal, best, &stopped) == 0);
    assert_true(stopped);
    m = (mix){.count = 2, .fail_at = 10};
    assert_true(acs_anneal_run(&anneal, best, &stopped) > 0);
    assert_true(stopped);
    assert_int_equal(m.runs, 10);
    assert_true(best[0].share >= 10);
}

/* ----------------------------------------------------------------------------------------------------------- strands */

/* A launch that reads the bytes of `from` and writes those of `to`; 0: it reads nothing. */
static uint32_t add(acs_strands *s, uint64_t from, uint64_t to, uint64_t number, uint64_t ended)
{
    const acs_segment segments[] = {ACS_OUT((void *)(uintptr_t)to, 4), ACS_IN((void *)(uintptr_t)from, 4)};
    return acs_strands_add(s, segments, from ? 2 : 1, number, ended);
}

static void launches_behind_each_other_are_one_strand(void **state)
{
    (void)state;
    acs_strands s = {0};
    for (uint64_t i = 1; i <= 50; i++)
        assert_int_equal(add(&s, 1000 + i, 1001 + i, i, 0), 1);
    for (uint64_t i = 51; i <= 60; i++) /* the same bytes again */
        assert_int_equal(add(&s, 0, 1051, i, 0), 1);
}

static void strands_count_until_they_end(void **state)
{
    (void)state;
    acs_strands s = {0};
    uint64_t number = 0;
    for (uint64_t turn = 0; turn < 3; turn++)
        for (uint64_t i = 1; i <= 5; i++)
            assert_int_equal(add(&s, turn ? 100 * i : 0, 100 * i, ++number, 0), turn ? 5 : i);
    assert_int_equal(add(&s, 0, 999, ++number, 15), 1); /* all others have ended */
    assert_int_equal(add(&s, 100, 100, ++number, 15), 2);
    assert_int_equal(add(&s, 0, 5000, ++number, 16), 2); /* 17 and 18 */
    for (uint64_t i = 0; i < 40; i++)
        (void)add(&s, 0, 100000 + i, ++number, 0);
    assert_int_equal(add(&s, 0, 200000, ++number, 0), ACS_STRANDS_MOST);
}

static void what_has_no_bytes_makes_no_strand_of_others(void **state)
{
    (void)state;
    acs_strands s = {0};
    const acs_segment token = ACS_TOKEN(&s), empty = ACS_OUT((void *)(uintptr_t)64, 0);
    assert_int_equal(acs_strands_add(&s, &token, 1, 1, 0), 1);
    assert_int_equal(acs_strands_add(&s, &token, 1, 2, 0), 2);
    assert_int_equal(acs_strands_add(&s, &empty, 1, 3, 0), 3);
    assert_int_equal(acs_strands_add(&s, NULL, 0, 4, 0), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_behind_each_other_are_one_strand),
        cmocka_unit_test(strands_count_until_they_end),
        cmocka_unit_test(what_has_no_bytes_makes_no_strand_of_others),
        cmocka_unit_test(the_least_time_at_a_share_wins),
        cmocka_unit_test(a_version_that_cannot_run_never_wins),
        cmocka_unit_test(company_counts_on_a_part_of_the_device),
        cmocka_unit_test(each_version_is_tried_a_few_times),
        cmocka_unit_test(what_correlates_is_not_measured),
        cmocka_unit_test(what_does_not_correlate_is),
        cmocka_unit_test(what_cannot_run_is_left_out_and_a_stop_stops),
        cmocka_unit_test(annealing_finds_good_settings),
        cmocka_unit_test(the_fit_may_stay),
        cmocka_unit_test(a_failed_run_ends_the_search),
    };
    return cmocka_run_group_tests_name("variant_search", tests, NULL, NULL);
}
