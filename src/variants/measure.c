/*
 * Timing of launches (measure.h, acs_measure). Runs on the caller's thread, which waits for all ops of the context first.
 * The timed launches are ops of the context; between them nothing else runs but what is asked for beside them.
 */
#include "variants/measure.h"

#include "api/expand.h"
#include "api/failures.h"
#include "api/wait.h"
#include "base/tuning.h"
#include "variants/make.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 1000, WARM_RUNS = 2, BESIDE_MOST = 100000 };

/* ------------------------------------------------------------------------------------------------------------- waits */

/* Wait for all ops. An error that the context keeps already is no error of this wait. */
static acs_status wait_all(acs_context *context)
{
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (last)
        acs_context_wait(context, ACS_WAIT_FOR_ALL, last);
    return acs_context_is_lost(context) ? ACS_FAIL(ACS_ERR_DEVICE, 0, "the device is lost; see acs_context_error") : ACS_OK;
}

static acs_status wait_for_op(acs_context *context, acs_op op)
{
    if (!op)
        return acs_error_thread()->status;
    acs_context_wait(context, ACS_WAIT_FOR_ALL, op);
    acs_error error = {.size = sizeof error};
    const acs_status status = acs_failures_of(context, op, &error);
    return status == ACS_OK ? ACS_OK : ACS_FAIL(status, error.native, "%s", error.text);
}

/* -------------------------------------------------------------------------------------------------------------- kept */

static int spans_by_address(const void *a, const void *b)
{
    const acs_kept_span *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Join spans that touch. */
static void join_spans(acs_kept *kept)
{
    size_t used = 0;
    qsort(kept->list, kept->count, sizeof *kept->list, spans_by_address);
    for (size_t i = 0; i < kept->count; i++) {
        acs_kept_span *last = used ? &kept->list[used - 1] : NULL;
        if (last && kept->list[i].first <= last->end)
            last->end = last->end > kept->list[i].end ? last->end : kept->list[i].end;
        else
            kept->list[used++] = kept->list[i];
    }
    kept->count = used;
}

static acs_status find_spans(acs_kept *kept, const acs_launch_params *p)
{
    const acs_uses *uses = &p->uses;
    kept->list = calloc(uses->count ? uses->count : 1, sizeof *kept->list);
    if (!kept->list)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%.60s': no memory to keep what it writes", acs_variant_kernel_name(p));
    for (size_t i = 0; i < uses->count; i++) {
        const acs_segment *s = &uses->segments[i];
        if (s->access == ACS_READ || s->extent == ACS_EXTENT_TOKEN)
            continue;
        if (s->extent == ACS_EXTENT_ALL)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': it may write anything, so it cannot be run several times",
                            acs_variant_kernel_name(p));
        if (acs_segment_has_bytes(s))
            kept->list[kept->count++] = (acs_kept_span){s->base, acs_segment_end(s), NULL};
    }
    join_spans(kept);
    for (size_t i = 0; i < kept->count; i++)
        ACS_TRY(acs_malloc_op(kept->context, kept->list[i].end - kept->list[i].first, ACS_MEMORY_DEVICE,
                              &kept->list[i].copy, NULL));
    return ACS_OK;
}

/* Copy the spans to their copies, or `back`. */
static acs_status copy_spans(const acs_kept *kept, bool back)
{
    acs_op last = 0;
    for (size_t i = 0; i < kept->count; i++) {
        const acs_kept_span *span = &kept->list[i];
        void *own = (void *)(uintptr_t)span->first;
        last = acs_memcpy_op(kept->context, back ? own : span->copy, back ? span->copy : own, span->end - span->first, NULL);
        if (!last)
            return acs_error_thread()->status;
    }
    return last ? wait_for_op(kept->context, last) : ACS_OK;
}

acs_status acs_kept_take(acs_kept *kept, acs_context *context, const acs_launch_params *params)
{
    *kept = (acs_kept){.context = context};
    if (params->uses.any)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': its footprint is not known, so it cannot be run several times",
                        acs_variant_kernel_name(params));
    ACS_TRY(wait_all(context));
    acs_status status = find_spans(kept, params);
    if (status == ACS_OK)
        status = copy_spans(kept, false);
    if (status != ACS_OK)
        acs_kept_free(kept);
    return status;
}

acs_status acs_kept_give_back(const acs_kept *kept)
{
    return copy_spans(kept, true);
}

void acs_kept_free(acs_kept *kept)
{
    const acs_error before = *acs_error_thread();
    for (size_t i = 0; i < kept->count && kept->list; i++)
        if (kept->list[i].copy)
            (void)acs_free_op(kept->context, kept->list[i].copy, NULL); /* a lost device frees it at close */
    free(kept->list);
    *kept = (acs_kept){0};
    *acs_error_thread() = before;
}

/* ------------------------------------------------------------------------------------------------------------ timing */

typedef struct timed_run {
    acs_timing timing; /* first */
    uint64_t ns;
    acs_status status;
} timed_run;

static void run_ended(acs_timing *timing, acs_status status, uint64_t ns)
{
    timed_run *run = (timed_run *)(void *)timing;
    run->ns = ns;
    run->status = status;
}

/* A series of runs of one launch, each behind the one before. */
typedef struct series {
    acs_context *context;
    acs_launch_params params;
    acs_segment *segments; /* those of the launch, and a token that orders its runs */
    timed_run *runs;
    uint32_t count;
    acs_op last;
} series;

/* `ordered`: its own segments count; else the token alone, so that it runs beside a launch that uses the same bytes. */
static acs_status series_begin(series *s, acs_context *context, const acs_launch_params *params, uint32_t share,
                               bool ordered)
{
    *s = (series){.context = context, .params = *params};
    const size_t own = ordered ? params->uses.count : 0;
    s->segments = calloc(own + 1, sizeof *s->segments);
    s->runs = calloc(RUNS_MOST + WARM_RUNS, sizeof *s->runs);
    if (!s->segments || !s->runs)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to time a launch");
    if (own)
        memcpy(s->segments, params->uses.segments, own * sizeof *s->segments);
    s->segments[own] = ACS_TOKEN(s->segments);
    s->params.uses = (acs_uses){s->segments, own + 1, NULL, NULL, 0};
    s->params.attributes.share = (uint8_t)(share == 100 ? 0 : share);
    s->params.no_wait = 0;
    return ACS_OK;
}

static void series_end(series *s)
{
    free(s->segments);
    free(s->runs);
}

static acs_status series_run(series *s)
{
    timed_run *run = &s->runs[s->count++ % (RUNS_MOST + WARM_RUNS)];
    *run = (timed_run){.timing = {run_ended}};
    bool unfit;
    s->last = acs_launch_timed(s->context, &s->params, &run->timing, &unfit);
    return s->last ? ACS_OK : acs_error_thread()->status;
}

static int by_time(const void *a, const void *b)
{
    const timed_run *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static acs_status series_result(series *s, uint32_t skipped, acs_measured *result)
{
    timed_run *runs = s->runs + skipped;
    const uint32_t count = s->count - skipped;
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i].status != ACS_OK)
            return wait_for_op(s->context, s->last);
        if (!runs[i].ns)
            return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "the device did not tell how long a launch took");
    }
    qsort(runs, count, sizeof *runs, by_time);
    result->us = (double)runs[count / 2].ns / 1e3;
    result->least_us = (double)runs[0].ns / 1e3;
    result->runs = count;
    return ACS_OK;
}

/* The time of one run, which also warms up. */
static acs_status first_time(series *s, uint64_t *ns)
{
    for (int i = 0; i < WARM_RUNS; i++)
        ACS_TRY(series_run(s));
    ACS_TRY(wait_for_op(s->context, s->last));
    *ns = s->runs[(s->count - 1) % (RUNS_MOST + WARM_RUNS)].ns;
    *ns = *ns ? *ns : 1;
    return ACS_OK;
}

static uint32_t runs_for(uint32_t asked, uint64_t ns)
{
    const uint64_t fit = TUNE_MEASURE_NS / ns;
    const uint64_t least = TUNE_MEASURE_RUNS_LEAST, most = TUNE_MEASURE_RUNS_MOST;
    return asked ? asked : (uint32_t)(fit < least ? least : fit > most ? most : fit);
}

/* Queue one of what runs beside: a launch or a copy. */
static acs_status run_beside(series *beside, const acs_measured_beside *what)
{
    if (what->launch)
        return series_run(beside);
    beside->last = acs_memcpy_op(beside->context, what->copy_to, what->copy_from, what->copy_bytes, NULL);
    return beside->last ? ACS_OK : acs_error_thread()->status;
}

/*
 * Queue the runs, with so many others beside them that these last as long. They are queued in turn, since the window holds
 * a few of them only.
 */
static acs_status run_in_company(series *main, uint32_t runs, uint64_t ns, series *beside, const acs_measured_beside *what,
                                 uint64_t beside_ns)
{
    const uint64_t wanted = TUNE_MEASURE_COMPANY * runs * ns / beside_ns + 2;
    const uint64_t all = wanted < BESIDE_MOST ? wanted : BESIDE_MOST;
    for (uint64_t i = 0; i < all; i++) {
        ACS_TRY(run_beside(beside, what));
        while (main->count - WARM_RUNS < runs * (i + 1) / all)
            ACS_TRY(series_run(main));
    }
    ACS_TRY(wait_for_op(main->context, beside->last));
    return wait_for_op(main->context, main->last);
}

static acs_status time_beside(series *beside, const acs_measured_beside *what, uint64_t *ns)
{
    if (what->launch)
        return first_time(beside, ns);
    const uint64_t begin = acs_clock_ns();
    ACS_TRY(run_beside(beside, what));
    ACS_TRY(wait_for_op(beside->context, beside->last));
    *ns = acs_clock_ns() - begin + 1;
    return ACS_OK;
}

static acs_status measure_in_company(series *main, uint32_t runs, uint64_t ns, const acs_measured_beside *what,
                                     acs_measured *result)
{
    series beside = {.context = main->context};
    uint64_t beside_ns = 0;
    acs_status status = what->launch ? series_begin(&beside, main->context, what->launch, what->share, false) : ACS_OK;
    if (status == ACS_OK)
        status = time_beside(&beside, what, &beside_ns);
    if (status == ACS_OK)
        status = run_in_company(main, runs, ns, &beside, what, beside_ns);
    if (status == ACS_OK)
        status = series_result(main, WARM_RUNS, result);
    result->beside_us = (double)beside_ns / 1e3;
    series_end(&beside);
    return status;
}

static acs_status measure_alone(series *main, uint32_t runs, acs_measured *result)
{
    for (uint32_t i = 0; i < runs; i++)
        ACS_TRY(series_run(main));
    ACS_TRY(wait_for_op(main->context, main->last));
    return series_result(main, WARM_RUNS, result);
}

acs_status acs_measure_launch(acs_context *context, const acs_launch_params *params, uint32_t share, uint32_t runs,
                              const acs_measured_beside *beside, acs_measured *result)
{
    series main;
    uint64_t ns = 1;
    acs_status status = series_begin(&main, context, params, share, true);
    if (status == ACS_OK)
        status = first_time(&main, &ns);
    runs = runs_for(runs, ns);
    if (status == ACS_OK && (beside->launch || beside->copy_from))
        status = measure_in_company(&main, runs, ns, beside, result);
    else if (status == ACS_OK)
        status = measure_alone(&main, runs, result);
    (void)wait_all(context); /* no run may report any more */
    series_end(&main);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- acs_measure */

acs_status acs_measure_check(acs_context *context, const char *function)
{
    const char *why = context->backend->devices > 1                       ? "the context has several devices"
                      : !context->backend->ops->elapsed                   ? "this backend cannot time kernels"
                      : acs_context_modes(context) & ACS_MODE_SECTIONS    ? "a capture or a group is open"
                      : context->options.check || context->options.serial ? "ACS_CHECK and ACS_SERIAL change the times"
                                                                          : NULL;
    return why ? acs_fail(ACS_ERR_UNSUPPORTED, 0, function, "%s: %s", function, why) : ACS_OK;
}

/* The launch of the version that the attributes name; its segments are plain. */
static acs_status make_version(const acs_launch_params *p, acs_version_launch *v)
{
    const acs_variant_set *set = acs_variant_set_find(p->kernel, p->stub);
    const uint32_t number = p->attributes.variant ? p->attributes.variant - 1u : 0;
    acs_status status = ACS_OK;
    if (number && (!set || number >= set->count))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the kernel has no version number %u", acs_variant_kernel_name(p),
                        number);
    if (!number) {
        v->params = *p;
        v->params.attributes.variant = 0;
        return ACS_OK;
    }
    if (!acs_variant_make(p, set, number, v, &status) && status == ACS_OK)
        ACS_FAIL(status = ACS_ERR_ARGUMENT, 0, "'%.60s': version '%s' cannot run this launch (ACS_SHAPE_UNFIT)",
                 acs_variant_kernel_name(p), set->version[number].name);
    return status;
}

static acs_status check_params(const acs_launch_params *p)
{
    if (!p || p->size != sizeof *p || !p->kernel || (!p->kernel->function && !p->kernel->host))
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_measure: a launch %s",
                        !p ? "is NULL" : p->size != sizeof *p ? "has a wrong size" : "has no kernel");
    return p->grid_from.word ? ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_measure: the GPU reads the launch's grid") : ACS_OK;
}

/* Expand the footprint of a launch, and make the launch of its version. The caller finishes the expansion. */
static acs_status prepare(acs_context *context, const acs_launch_params *p, acs_expansion *expansion, acs_version_launch *v)
{
    acs_draft draft = {.context = context, .site = p->site ? p->site : &acs_unknown_site, .name = p->kernel->name};
    acs_launch_params plain = *p;
    ACS_TRY(acs_expand_launch(expansion, &draft, p, &plain.uses));
    return make_version(&plain, v);
}

static acs_status measure_kept(acs_context *context, const acs_version_launch *v, const acs_version_launch *beside,
                               const acs_measure_params *how, acs_measured *result)
{
    acs_kept kept, kept_beside = {0};
    const acs_measured_beside company = {.launch = beside ? &beside->params : NULL, .share = how->beside_share};
    ACS_TRY(acs_kept_take(&kept, context, &v->params));
    acs_status status = beside ? acs_kept_take(&kept_beside, context, &beside->params) : ACS_OK;
    if (status == ACS_OK)
        status = acs_measure_launch(context, &v->params, how->share, how->runs, &company, result);
    acs_status back = acs_kept_give_back(&kept);
    if (back == ACS_OK && kept_beside.count)
        back = acs_kept_give_back(&kept_beside);
    acs_kept_free(&kept);
    acs_kept_free(&kept_beside);
    return status == ACS_OK ? back : status;
}

static acs_status measure_prepared(acs_context *context, const acs_launch_params *launch, const acs_measure_params *how,
                          acs_measured *result)
{
    ACS_EXPANSION(expansion);
    ACS_EXPANSION(beside_expansion);
    acs_version_launch v, beside;
    acs_share_info info = {.size = sizeof info};
    ACS_TRY(acs_measure_check(context, "acs_measure"));
    ACS_TRY(check_params(launch));
    ACS_TRY(prepare(context, launch, &expansion, &v));
    if (how->beside) {
        ACS_TRY(check_params(how->beside));
        ACS_TRY(prepare(context, how->beside, &beside_expansion, &beside));
    }
    *result = (acs_measured){.size = sizeof *result};
    if ((how->share && how->share < 100) || (how->beside && how->beside_share && how->beside_share < 100))
        result->share_ignored = acs_share_find(context, 0, 50, &info) != ACS_OK || !info.step_sms;
    return measure_kept(context, &v, how->beside ? &beside : NULL, how, result);
}

acs_status acs_measure(acs_context *context, const acs_launch_params *launch, const acs_measure_params *how,
                       acs_measured *result)
{
    static const acs_measure_params plain = {.size = sizeof plain};
    ACS_ENTER(context);
    how = how ? how : &plain;
    if (how->size != sizeof *how || !result || result->size != sizeof *result || how->flags)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_measure: the size of a struct is wrong, the result is NULL, or flags "
                        "is not 0");
    if (how->share > 100 || how->beside_share > 100 || how->runs > RUNS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_measure: shares of %u and %u percent and %u runs; at most 100, 100 and "
                        "%d are possible", how->share, how->beside_share, how->runs, RUNS_MOST);
    return measure_prepared(context, launch, how, result);
}
