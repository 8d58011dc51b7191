/*
 * Simulated annealing (anneal.h). Called by acs_mix_plan. Settings that were run are not run again, but for the best few at
 * the end, since one run may be lucky.
 */
#include "variants/anneal.h"

#include "base/tuning.h"

#include <string.h>

enum { TRIED_MOST = 1024 /* settings that are remembered */ };

/* Settings as steps: fit 1 to 10, share 1 to 10, for each model. */
typedef struct point {
    uint8_t step[2 * ACS_MIX_MODELS_MOST];
} point;

typedef struct tried {
    point at;
    double throughput;
} tried;

typedef struct search {
    const acs_anneal *anneal;
    acs_random random;
    tried list[TRIED_MOST];
    uint32_t used;
    uint32_t runs;
    bool stopped;
} search;

static void settings_of(const search *s, const point *at, acs_mix_setting *settings)
{
    for (uint32_t i = 0; i < s->anneal->count; i++)
        settings[i] = (acs_mix_setting){.fit = at->step[2 * i] * (uint32_t)ACS_SHARE_STEP_PERCENT,
                                        .share = at->step[2 * i + 1] * (uint32_t)ACS_SHARE_STEP_PERCENT};
}

/* Run the mix. 0 or less: the search ends. */
static double run_at(search *s, const point *at)
{
    acs_mix_setting settings[ACS_MIX_MODELS_MOST];
    settings_of(s, at, settings);
    s->runs++;
    const double throughput = s->anneal->run(s->anneal->user, settings);
    s->stopped |= !(throughput > 0);
    return throughput;
}

/* The throughput at a point, run if it was not. */
static double look(search *s, const point *at)
{
    for (uint32_t i = 0; i < s->used; i++)
        if (memcmp(&s->list[i].at, at, sizeof *at) == 0)
            return s->list[i].throughput;
    const double throughput = run_at(s, at);
    if (throughput > 0 && s->used < TRIED_MOST)
        s->list[s->used++] = (tried){*at, throughput};
    return throughput;
}

/* Change one coordinate by one to three steps. False: there is only one point. */
static point neighbour(search *s, const point *from)
{
    point to = *from;
    const uint32_t coordinates = s->anneal->fit_fixed ? s->anneal->count : 2 * s->anneal->count;
    while (memcmp(&to, from, sizeof to) == 0) {
        const uint32_t c = acs_random_below(&s->random, coordinates);
        uint8_t *step = &to.step[s->anneal->fit_fixed ? 2 * c + 1 : c];
        const int change = (int)acs_random_below(&s->random, 3) + 1;
        const int wanted = acs_random_below(&s->random, 2) ? *step + change : *step - change;
        *step = (uint8_t)(wanted < 1 ? 1 : wanted > ACS_SHARE_STEPS ? ACS_SHARE_STEPS : wanted);
    }
    return to;
}

/* e to the power of x, for x up to 0; close enough for a chance, without libm. */
static double power_of_e(double x)
{
    enum { SQUARES = 10 };
    double y = 1 + x / (1 << SQUARES);
    for (int i = 0; i < SQUARES; i++)
        y *= y;
    return x < -20 ? 0 : y;
}

/* Whether to go to a point: always if it is better, else the less likely the worse it is and the later. */
static bool goes(search *s, double from, double to, double temperature)
{
    if (to >= from)
        return true;
    const double chance = power_of_e((to - from) / from / temperature);
    return acs_random_below(&s->random, 1000000) < chance * 1e6;
}

static void sort_best(search *s)
{
    for (uint32_t place = 0; place < TUNE_MIX_FINALISTS && place < s->used; place++)
        for (uint32_t i = place + 1; i < s->used; i++)
            if (s->list[i].throughput > s->list[place].throughput) {
                const tried better = s->list[i];
                s->list[i] = s->list[place];
                s->list[place] = better;
            }
}

/* Run the best few again: the least of its runs counts for each. */
static uint32_t run_finalists(search *s)
{
    uint32_t best = 0;
    sort_best(s);
    for (uint32_t i = 0; i < TUNE_MIX_FINALISTS && i < s->used && !s->stopped; i++) {
        const double again = run_at(s, &s->list[i].at);
        if (again > 0 && again < s->list[i].throughput)
            s->list[i].throughput = again;
    }
    for (uint32_t i = 1; i < TUNE_MIX_FINALISTS && i < s->used; i++)
        best = s->list[i].throughput > s->list[best].throughput ? i : best;
    return best;
}

double acs_anneal_run(const acs_anneal *anneal, acs_mix_setting *best, bool *stopped)
{
    const double hot = TUNE_MIX_HOT / 1e3, cold = TUNE_MIX_COLD / 1e3, span = 3; /* span: e^span = hot / cold, about */
    double temperature = hot; /* the relative loss that is accepted with 1/e; falls from hot to cold */
    search s = {.anneal = anneal};
    point at;
    s.random.state = anneal->seed;
    memset(&at, 0, sizeof at);
    memset(at.step, ACS_SHARE_STEPS, 2 * (size_t)anneal->count);
    double now = look(&s, &at);
    /* Steps that come back to a point cost no run; they are bounded, too. */
    for (uint32_t turn = 0; !s.stopped && s.runs + TUNE_MIX_FINALISTS < anneal->runs && turn < 8 * anneal->runs; turn++) {
        const uint32_t runs = s.runs;
        const point next = neighbour(&s, &at);
        const double throughput = look(&s, &next);
        if (!s.stopped && goes(&s, now, throughput, temperature)) {
            at = next;
            now = throughput;
        }
        if (s.runs > runs && temperature > cold)
            temperature *= 1 - span / anneal->runs;
    }
    *stopped = s.stopped;
    if (!s.used)
        return 0;
    const uint32_t found = run_finalists(&s);
    *stopped |= s.stopped;
    settings_of(&s, &s.list[found].at, best);
    return s.list[found].throughput;
}
