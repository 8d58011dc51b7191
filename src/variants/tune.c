/*
 * Tuning in the running program (variants.h). Runs on the thread that launches. A problem is measured at its first
 * launch, in place, and the profile is written after each: so an interrupted run goes on where it was.
 */
#include "variants/variants.h"

#include "base/tuning.h"
#include "variants/make.h"
#include "variants/measure.h"
#include "variants/sharing.h"

#include <math.h>
#include <string.h>

/* The measurement of one problem. */
typedef struct tuning {
    acs_context *context;
    const acs_launch_params *params;
    const acs_variant_set *set;
    const acs_book_entry *entry;
    uint8_t number[ACS_VERSIONS_MOST]; /* the set's number of each version of the kernel */
    bool fits[ACS_VERSIONS_MOST];      /* by version of the kernel */
    acs_kept kept;
    uint32_t measurements;
    bool failed;
} tuning;

/* ------------------------------------------------------------------------------------------------------------- files */

acs_status acs_tune_store(acs_variant_book *book)
{
    if (!book->file[0])
        ACS_TRY(acs_profile_path(&book->profile, book->file));
    ACS_HOLD_MUTEX(&book->mutex);
    const acs_status status = acs_profile_store(&book->profile, book->file);
    if (status != ACS_OK)
        fprintf(stderr, "acs-tune: the profile cannot be written: %s\n", acs_error_thread()->text);
    return status;
}

void acs_tune_close(acs_context *context)
{
    if (context->options.tune == ACS_TUNE_LIST && context->variants)
        (void)acs_tune_store(context->variants);
}

/* -------------------------------------------------------------------------------------------------------- measurement */

/* A version that cannot be launched, or fails, counts as one that cannot run: others are measured. */
static bool measure_beside(tuning *t, uint32_t version, uint32_t step, const acs_measured_beside *beside, float *us)
{
    acs_version_launch v;
    acs_status status = ACS_OK;
    acs_measured result = {.size = sizeof result};
    if (!acs_variant_make(t->params, t->set, t->number[version], &v, &status))
        return false;
    v.params.attributes.fit = 0;
    const uint32_t share = (step + 1) * ACS_SHARE_STEP_PERCENT;
    if (acs_measure_launch(t->context, &v.params, share, 0, beside, &result) != ACS_OK)
        return false;
    *us = (float)result.us;
    t->measurements++;
    return true;
}

static bool measure_version(void *user, uint32_t version, uint32_t step)
{
    static const acs_measured_beside nothing;
    tuning *t = user;
    float us = INFINITY;
    if (!measure_beside(t, version, step, &nothing, &us))
        fprintf(stderr, "acs-tune: version %s of %s is left out at %u %%: %s\n", t->entry->kernel->version[version],
                t->entry->kernel->name, (step + 1) * ACS_SHARE_STEP_PERCENT, acs_error_thread()->text);
    if (acs_context_is_lost(t->context)) {
        t->failed = true;
        return false;
    }
    t->entry->problem->times[version].us[step] = us;
    return acs_kept_give_back(&t->kept) == ACS_OK;
}

/* Time a version beside another launch of its own, on the other half of the device. */
static void measure_company(tuning *t, uint32_t version, acs_company company, const acs_measured_beside *beside)
{
    const uint32_t step = acs_share_step(50);
    acs_version_times *times = &t->entry->problem->times[version];
    float us;
    if (!(times->us[step] > 0) || isinf(times->us[step]) || times->beside_us[company] > 0 ||
        !measure_beside(t, version, step, beside, &us))
        return;
    times->beside_us[company] = us;
    times->beside_step[company] = (uint8_t)step;
}

/* Copies inside the device take the memory's bandwidth. */
static void measure_beside_copies(tuning *t)
{
    acs_context *context = t->context;
    void *from = NULL, *to = NULL;
    if (acs_malloc_op(context, TUNE_MEASURE_COPY, ACS_MEMORY_DEVICE, &from, NULL) == ACS_OK &&
        acs_malloc_op(context, TUNE_MEASURE_COPY, ACS_MEMORY_DEVICE, &to, NULL) == ACS_OK) {
        const acs_measured_beside copies = {.copy_from = from, .copy_to = to, .copy_bytes = TUNE_MEASURE_COPY};
        for (uint32_t i = 0; i < t->entry->kernel->count; i++)
            if (t->fits[i])
                measure_company(t, i, ACS_COMPANY_MEMORY, &copies);
    }
    if (from)
        (void)acs_free_op(context, from, NULL);
    if (to)
        (void)acs_free_op(context, to, NULL);
}

static void measure_beside_itself(tuning *t)
{
    acs_version_launch other;
    acs_status status;
    for (uint32_t i = 0; i < t->entry->kernel->count; i++) {
        if (!t->fits[i] || !acs_variant_make(t->params, t->set, t->number[i], &other, &status))
            continue;
        const acs_measured_beside itself = {.launch = &other.params, .share = 50};
        measure_company(t, i, ACS_COMPANY_ITSELF, &itself);
    }
}

static void measure_all(tuning *t)
{
    const acs_sharing sharing = {.count = t->entry->kernel->count, .times = t->entry->problem->times, .fits = t->fits,
                                 .percent = (uint32_t)t->context->options.tune_sharing, .measure = measure_version,
                                 .user = t};
    uint32_t companies;
    (void)acs_companies_of(t->context->options.tune_beside, &companies); /* the book has checked it */
    if (!acs_sharing_run(&sharing))
        return;
    if (companies >> ACS_COMPANY_MEMORY & 1)
        measure_beside_copies(t);
    if (companies >> ACS_COMPANY_ITSELF & 1)
        measure_beside_itself(t);
}

/* ------------------------------------------------------------------------------------------------------------ problems */

/* Which versions of the kernel are declared, and can run the launch. */
static void find_fits(tuning *t)
{
    acs_version_launch v;
    acs_status status;
    for (uint32_t number = 0; number < t->set->count; number++) {
        const uint8_t version = t->entry->kernel->of_number[number];
        t->number[version] = (uint8_t)number;
        t->fits[version] = acs_variant_make(t->params, t->set, number, &v, &status);
        if (!t->fits[version]) /* both ends, which a measured problem has for all versions */
            t->entry->problem->times[version].us[0] = t->entry->problem->times[version].us[ACS_SHARE_STEPS - 1] = INFINITY;
    }
}

static bool is_measured(const tuning *t)
{
    for (uint32_t i = 0; i < t->entry->kernel->count; i++)
        if (t->fits[i] && (!(t->entry->problem->times[i].us[0] > 0) ||
                           !(t->entry->problem->times[i].us[ACS_SHARE_STEPS - 1] > 0)))
            return false;
    return true;
}

/* Problems of the profile, and how many of them have times. */
static void count_problems(const acs_profile *profile, uint32_t *all, uint32_t *done)
{
    *all = *done = 0;
    for (const acs_profile_kernel *k = profile->kernels; k; k = k->hh.next)
        for (const acs_problem *p = k->problems; p; p = p->hh.next) {
            *all += 1;
            *done += p->profiled;
        }
}

/* One line, with the time left if the rest takes as long as this run's problems did on average. */
static void tell_progress(acs_variant_book *book, uint32_t measurements)
{
    uint32_t all, done;
    const uint64_t now = acs_clock_ns();
    book->tuned++;
    book->measurements += measurements;
    count_problems(&book->profile, &all, &done);
    const double s = (double)(now - book->tuning_since_ns) / 1e9;
    fprintf(stderr, "acs-tune: problem %u of %u, %u measurements, %.1f s, about %.0f s left\n", done, all,
            book->measurements, s, s / book->tuned * (all - done));
}

static void tune_problem(tuning *t)
{
    acs_variant_book *book = t->context->variants;
    if (!book->tuning_since_ns)
        book->tuning_since_ns = acs_clock_ns();
    if (acs_measure_check(t->context, "acs-tune") != ACS_OK || acs_kept_take(&t->kept, t->context, t->params) != ACS_OK) {
        fprintf(stderr, "acs-tune: %s cannot be measured: %s\n", t->entry->kernel->name, acs_error_thread()->text);
        return;
    }
    measure_all(t);
    (void)acs_kept_give_back(&t->kept); /* where that fails the device is lost, and the launch says so */
    acs_kept_free(&t->kept);
    if (t->failed)
        return;
    t->entry->problem->profiled = t->entry->problem->changed = true;
    tell_progress(book, t->measurements);
    (void)acs_tune_store(book);
}

void acs_tune_launch(acs_context *context, const acs_launch_params *params, const acs_variant_set *set,
                     const acs_book_entry *entry)
{
    tuning t = {.context = context, .params = params, .set = set, .entry = entry};
    const acs_error before = *acs_error_thread();
    if (!entry->problem || entry->problem->profiled)
        return;
    find_fits(&t);
    if (context->options.tune == ACS_TUNE_MEASURE && !is_measured(&t))
        tune_problem(&t);
    *acs_error_thread() = before;
}
