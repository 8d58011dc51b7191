/*
 * Plans for mixes of models (acs_mix_plan): looked up in the profile, or searched for by simulated annealing, where acs-tune
 * asks for it. Runs the program's function on the caller's thread, under no lock.
 */
#include "variants/anneal.h"
#include "variants/variants.h"

#include "base/tuning.h"

#include <math.h>
#include <string.h>

enum { RATE_BYTES = 26 /* of a rate in a line, with spaces */ };

/* The mix under search, for progress lines. */
typedef struct progress {
    acs_mix_run run;
    void *user;
    uint32_t count, runs, most;
    double best;
    uint64_t began_ns;
} progress;

static acs_status check_models(const acs_mix_model *models, size_t count)
{
    if (!models || !count || count > ACS_MIX_MODELS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_mix_plan: %zu models at %p; 1 to %d are possible", count,
                        (const void *)models, ACS_MIX_MODELS_MOST);
    size_t line = strlen("mix");
    for (size_t i = 0; i < count; i++) {
        if (!acs_variant_name_is_good(models[i].name) || !(models[i].rate > 0) || isinf(models[i].rate))
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_mix_plan: model %zu: the name '%.60s' is not 1 to 47 letters, digits "
                            "and \"_-.:\", or its rate %g is not above 0", i, models[i].name ? models[i].name : "(NULL)",
                            models[i].rate);
        for (size_t k = 0; k < i; k++)
            if (strcmp(models[k].name, models[i].name) == 0)
                return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_mix_plan: the name '%s' is there twice", models[i].name);
        line += strlen(models[i].name) + RATE_BYTES;
    }
    if (line >= ACS_CACHE_LINE_BYTES)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_mix_plan: %zu models with names as long as these do not fit into a line "
                        "of a profile (%d bytes)", count, ACS_CACHE_LINE_BYTES - 2);
    return ACS_OK;
}

static double run_mix(void *user, const acs_mix_setting *settings)
{
    progress *p = user;
    const double throughput = p->run(p->user, settings);
    p->best = throughput > p->best ? throughput : p->best;
    p->runs++;
    const double s = (double)(acs_clock_ns() - p->began_ns) / 1e9;
    fprintf(stderr, "acs-tune: mix, run %u of %u, best %.4g requests/s, %.1f s, about %.0f s left\n", p->runs, p->most,
            p->best, s, p->runs < p->most ? s / p->runs * (p->most - p->runs) : 0);
    return throughput;
}

static acs_status search(acs_variant_book *book, acs_profile_mix *mix, acs_mix_run run, void *user,
                         const acs_mix_params *params)
{
    const uint32_t runs = params->runs ? params->runs : TUNE_MIX_RUNS * mix->count;
    progress p = {.run = run, .user = user, .count = mix->count, .most = runs, .began_ns = acs_clock_ns()};
    const acs_anneal anneal = {.count = mix->count, .runs = runs, .fit_fixed = params->free_fit == 2, .seed = params->seed,
                               .run = run_mix, .user = &p};
    acs_mix_setting best[ACS_MIX_MODELS_MOST];
    bool stopped;
    const double throughput = acs_anneal_run(&anneal, best, &stopped);
    if (throughput > 0) {
        memcpy(mix->settings, best, mix->count * sizeof best[0]);
        mix->throughput = throughput;
    }
    if (stopped)
        return ACS_FAIL(ACS_ERR_STATE, 0, "acs_mix_plan: the mix could not be run with the settings that were tried");
    return acs_tune_store(book) == ACS_OK ? ACS_OK : ACS_ERR_STATE;
}

static acs_status plan(acs_context *context, const acs_mix_model *models, uint32_t count, acs_mix_run run, void *user,
                       const acs_mix_params *params, acs_mix_setting *best, double *throughput)
{
    acs_variant_book *book = context->variants;
    const bool searches = context->options.tune == ACS_TUNE_MIX && run;
    acs_status status = ACS_OK;
    acs_variant_book_look(book);
    pthread_mutex_lock(&book->mutex);
    acs_profile_mix *mix = acs_profile_mix_find(&book->profile, models, count, searches);
    pthread_mutex_unlock(&book->mutex);
    if (!mix && searches)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_mix_plan: no memory for the plan");
    if (mix && searches && !(mix->throughput > 0))
        status = search(book, mix, run, user, params);
    const bool found = mix && mix->throughput > 0;
    for (uint32_t i = 0; i < count; i++)
        best[i] = found ? mix->settings[i] : (acs_mix_setting){0, 100};
    if (throughput)
        *throughput = found ? mix->throughput : 0;
    return status;
}

acs_status acs_mix_plan(acs_context *context, const acs_mix_model *models, size_t count, acs_mix_run run, void *user,
                        const acs_mix_params *params, acs_mix_setting *best, double *throughput)
{
    static const acs_mix_params plain = {.size = sizeof plain};
    ACS_ENTER(context);
    params = params ? params : &plain;
    ACS_TRY(check_models(models, count));
    if (params->size != sizeof *params || params->free_fit > 2 || !best)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_mix_plan: the size of params is %zu, free_fit is %u, best is %p",
                        params->size, params->free_fit, (void *)best);
    return plan(context, models, (uint32_t)count, run, user, params, best, throughput);
}
