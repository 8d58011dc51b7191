/*
 * The choice of a version by times (choice.h). Called by the book of a context under its lock. Knows no device and no
 * clock.
 */
#include "variants/choice.h"

#include "base/tuning.h"

#include <math.h>

/* How much longer a version takes in company, on average over what was measured; 1: nothing was. */
static float slowdown(const acs_version_times *t)
{
    float sum = 0, count = 0;
    for (uint32_t c = 0; c < ACS_COMPANIES; c++) {
        const float alone = t->us[t->beside_step[c]];
        if (!(t->beside_us[c] > 0) || !(alone > 0) || isinf(alone))
            continue;
        sum += t->beside_us[c] / alone;
        count++;
    }
    return count > 0 ? sum / count : 1;
}

/* Time by which a version is judged at a step; 0: unknown. On a part of the device it has company, on the whole none. */
static float judged(const acs_version_times *t, uint32_t step)
{
    return step == ACS_SHARE_STEPS - 1 ? t->us[step] : t->us[step] * slowdown(t);
}

/* The version with the least known time at a step; false: none is known. */
static bool best_at(const acs_profile_kernel *kernel, const acs_problem *problem, uint32_t step, uint8_t *best)
{
    float least = INFINITY;
    for (uint32_t i = 0; i < kernel->count; i++) {
        const float us = kernel->declared[i] ? judged(&problem->times[i], step) : 0;
        if (!(us > 0) || us >= least)
            continue;
        least = us;
        *best = (uint8_t)i;
    }
    return least < INFINITY;
}

/* A share at which nothing is known has the version of the nearest one that has some, the larger of two. */
void acs_choice_update(const acs_profile_kernel *kernel, acs_problem *problem)
{
    bool known[ACS_SHARE_STEPS];
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++) {
        problem->at[step] = 0;
        known[step] = best_at(kernel, problem, step, &problem->at[step]);
    }
    for (int step = 0; step < ACS_SHARE_STEPS; step++) {
        for (int away = 1; !known[step] && away < ACS_SHARE_STEPS; away++) {
            const int above = step + away, below = step - away;
            const int from = above < ACS_SHARE_STEPS && known[above] ? above : below >= 0 && known[below] ? below : -1;
            if (from < 0)
                continue;
            problem->at[step] = problem->at[from];
            break;
        }
    }
    problem->changed = false;
}

bool acs_choice_trial(const acs_profile_kernel *kernel, const acs_problem *problem, const bool *fits, uint32_t step,
                      uint32_t *version)
{
    uint32_t fewest = TUNE_VARIANT_TRIALS;
    for (uint32_t i = 0; i < kernel->count; i++) {
        const acs_version_times *t = &problem->times[i];
        if (!fits[i] || t->tries[step] >= fewest)
            continue;
        fewest = t->tries[step];
        *version = i;
    }
    return fewest < TUNE_VARIANT_TRIALS;
}

/* The least time counts: what else ran on the device makes a launch longer, never shorter. */
void acs_choice_learn(acs_problem *problem, uint32_t version, uint32_t step, float us)
{
    acs_version_times *t = &problem->times[version];
    t->tries[step]++;
    if (!(t->us[step] > 0) || us < t->us[step])
        t->us[step] = us;
    problem->changed = true;
}
