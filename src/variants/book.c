/*
 * The book of a context (book.h): finds kernel and problem of a launch, and what is best for it. Times that launches bring
 * back arrive under the core's lock. Runs none of the program's code.
 */
#include "variants/book.h"

#include "base/lock.h"
#include "base/tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A launch that is timed so that the book learns. */
typedef struct trial {
    acs_timing timing; /* first: the core knows it alone */
    acs_variant_book *book;
    acs_problem *problem;
    uint32_t version, step;
} trial;

/* ------------------------------------------------------------------------------------------------------------- files */

static acs_status read_profile(void *to, FILE *file, const char *name)
{
    return acs_profile_read(to, file, name);
}

/* A file that is to be tuned need not exist yet. */
static acs_status read_asked(acs_variant_book *book)
{
    const acs_options *o = &book->context->options;
    (void)snprintf(book->file, sizeof book->file, "%s", o->profile);
    book->asked = true;
    atomic_init(&book->looked, true);
    if (o->tune && access(book->file, F_OK) != 0 && errno == ENOENT)
        return ACS_OK;
    return acs_cache_read(book->file, "ACS_PROFILE", read_profile, &book->profile);
}

acs_status acs_variant_book_open(acs_context *context)
{
    acs_backend *backend = context->backend;
    uint32_t companies;
    ACS_TRY(acs_companies_of(context->options.tune_beside, &companies));
    acs_variant_book *book = calloc(1, sizeof *book);
    if (!book)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for versions of kernels");
    book->context = context;
    context->variants = book;
    pthread_mutex_init(&book->mutex, NULL);
    acs_profile_init(&book->profile, backend->model, backend->sms);
    book->times = backend->ops->elapsed != NULL;
    return context->options.profile[0] ? read_asked(book) : ACS_OK;
}

void acs_variant_book_close(acs_context *context)
{
    acs_variant_book *book = context->variants;
    if (!book)
        return;
    acs_profile_fini(&book->profile);
    pthread_mutex_destroy(&book->mutex);
    free(book);
    context->variants = NULL;
}

/* A wrong file is not the program's error: the book learns, then. */
static void look_for_file_locked(acs_variant_book *book)
{
    const acs_error before = *acs_error_thread();
    const bool has = acs_profile_path(&book->profile, book->file) == ACS_OK;
    const acs_status status = has ? acs_cache_read(book->file, NULL, read_profile, &book->profile) : ACS_NOT_READY;
    if (status != ACS_OK && status != ACS_NOT_READY) {
        acs_log(ACS_LOG_WARN, "the profile of versions is not used; acs-tune replaces it: %s", acs_error_thread()->text);
        acs_profile_fini(&book->profile);
        acs_profile_init(&book->profile, book->context->backend->model, book->context->backend->sms);
    }
    *acs_error_thread() = before;
}

/* A: release; pairs with the acquire at the head. Seeing it set implies seeing the profile that was read. */
void acs_variant_book_look(acs_variant_book *book)
{
    if (ACS_LIKELY(atomic_load_explicit(&book->looked, memory_order_acquire))) /* A */
        return;
    ACS_HOLD_MUTEX(&book->mutex);
    if (!atomic_load_explicit(&book->looked, memory_order_relaxed)) /* relaxed: under the mutex */
        look_for_file_locked(book);
    atomic_store_explicit(&book->looked, true, memory_order_release); /* A */
}

/* ------------------------------------------------------------------------------------------------------------ lookup */

/* The profile's kernel for a set: by name, and for further kernels of that name "name#2" and so on, as they come. */
static acs_profile_kernel *find_kernel(acs_variant_book *book, const acs_variant_set *set, const char *name)
{
    char numbered[ACS_PROFILE_KERNEL_BYTES];
    acs_profile_kernel *kernel = acs_profile_kernel_get(&book->profile, name);
    for (int i = 2; kernel && kernel->met && kernel->owner != set->owner; i++) {
        (void)snprintf(numbered, sizeof numbered, "%.100s#%d", name, i);
        kernel = acs_profile_kernel_get(&book->profile, numbered);
    }
    if (kernel)
        kernel->owner = set->owner;
    return kernel;
}

/* The set's number of a version of the kernel; 0, the base, where the set has none. */
static uint8_t number_of(const acs_profile_kernel *kernel, const acs_variant_set *set, uint32_t version)
{
    for (uint32_t number = 0; number < set->count; number++)
        if (kernel->of_number[number] == version)
            return (uint8_t)number;
    return 0;
}

static acs_problem *find_problem(acs_profile_kernel *kernel, const acs_problem_key *key)
{
    acs_problem *problem;
    if (HASH_COUNT(kernel->problems) < TUNE_VARIANT_PROBLEMS)
        return acs_profile_problem_get(kernel, key);
    HASH_FIND(hh, kernel->problems, key, sizeof *key, problem);
    return problem;
}

acs_status acs_book_find(acs_variant_book *book, const acs_variant_set *set, const char *name, const acs_problem_key *key,
                         acs_book_entry *entry)
{
    acs_variant_book_look(book);
    ACS_HOLD_MUTEX(&book->mutex);
    acs_profile_kernel *kernel = find_kernel(book, set, name);
    if (!kernel)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "'%.60s': no memory for its versions", name);
    ACS_TRY(acs_profile_meet(kernel, set, book->asked ? "ACS_PROFILE" : NULL));
    acs_problem *problem = find_problem(kernel, key);
    *entry = (acs_book_entry){.kernel = kernel, .problem = problem};
    if (!problem)
        return ACS_OK;
    if (problem->changed)
        acs_choice_update(kernel, problem);
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++)
        entry->at[step] = number_of(kernel, set, problem->at[step]);
    const bool tunes = book->context->options.tune != ACS_TUNE_OFF; /* the program should run as it does without */
    entry->learns = book->times && !tunes && !problem->profiled && !problem->trial;
    return ACS_OK;
}

uint32_t acs_book_side_by_side(acs_variant_book *book, const acs_segment *segments, size_t count)
{
    acs_core *core = &book->context->core;
    const uint64_t window = (uint64_t)book->context->options.window;
    ACS_HOLD_MUTEX(&book->mutex); /* numbers rise from launch to launch */
    /* In this order: ops of other threads that come and end in between have higher numbers. */
    const uint64_t settled = acs_core_settled(core), number = acs_fifo_last(core->fifo) + 1;
    /* What is further back will have left the window before the launch enters it. */
    const uint64_t before = number > window ? number - window : 0;
    return acs_strands_add(&book->strands, segments, count, number, settled > before ? settled : before);
}

void acs_book_picked(const acs_book_entry *entry, uint32_t number)
{
    /* a counter */
    atomic_fetch_add_explicit(&entry->problem->picked[entry->kernel->of_number[number]], 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------------------ trials */

/* Called under the core's lock. A launch that failed or was skipped says nothing of its version. */
static void trial_ended(acs_timing *timing, acs_status status, uint64_t ns)
{
    trial *t = (trial *)(void *)timing;
    ACS_HOLD_MUTEX(&t->book->mutex);
    if (status == ACS_OK && ns)
        acs_choice_learn(t->problem, t->version, t->step, (float)((double)ns / 1e3));
    t->problem->trial = false;
    free(t);
}

acs_timing *acs_book_trial(acs_variant_book *book, const acs_variant_set *set, const acs_book_entry *entry,
                           const bool *fits, uint32_t step, uint32_t *number)
{
    ACS_HOLD_MUTEX(&book->mutex);
    bool may[ACS_VERSIONS_MOST] = {false};
    uint32_t version = 0;
    for (uint32_t i = 0; i < set->count; i++)
        may[entry->kernel->of_number[i]] = fits[i] && !isinf(entry->problem->times[entry->kernel->of_number[i]].us[step]);
    if (entry->problem->trial || entry->kernel->met != set ||
        !acs_choice_trial(entry->kernel, entry->problem, may, step, &version))
        return NULL;
    trial *t = malloc(sizeof *t);
    if (!t)
        return NULL;
    *t = (trial){{trial_ended}, book, entry->problem, version, step};
    entry->problem->trial = true;
    *number = number_of(entry->kernel, set, version);
    return &t->timing;
}

void acs_book_trial_refused(acs_timing *timing, bool unfit)
{
    trial *t = (trial *)(void *)timing;
    ACS_HOLD_MUTEX(&t->book->mutex);
    for (uint32_t step = 0; step < ACS_SHARE_STEPS && unfit; step++)
        t->problem->times[t->version].us[step] = INFINITY;
    t->problem->changed |= unfit;
    t->problem->trial = false;
    free(t);
}

/* -------------------------------------------------------------------------------------------------------- statistics */

static uint64_t picked_of(const acs_problem *p, uint32_t version)
{
    return atomic_load_explicit(&p->picked[version], memory_order_relaxed); /* a counter */
}

static uint64_t tries_of(const acs_version_times *t)
{
    uint64_t sum = 0;
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++)
        sum += t->tries[step];
    return sum;
}

void acs_book_count(acs_variant_book *book, uint64_t *picked, uint64_t *trials)
{
    *picked = *trials = 0;
    ACS_HOLD_MUTEX(&book->mutex);
    for (const acs_profile_kernel *k = book->profile.kernels; k; k = k->hh.next)
        for (const acs_problem *p = k->problems; p; p = p->hh.next)
            for (uint32_t i = 0; i < k->count; i++) {
                *picked += picked_of(p, i);
                *trials += tries_of(&p->times[i]);
            }
}

static void report_problem(const acs_profile_kernel *k, const acs_problem *p)
{
    bool any = false;
    for (uint32_t i = 0; i < k->count; i++) {
        if (!picked_of(p, i))
            continue;
        if (!any)
            fprintf(stderr, "acs: stats: versions of %s, grid %u x %u x %u:", k->name, p->key.grid[0], p->key.grid[1],
                    p->key.grid[2]);
        fprintf(stderr, "%s %s %" PRIu64, any ? "," : "", k->version[i], picked_of(p, i));
        any = true;
    }
    if (any)
        fprintf(stderr, "\n");
}

void acs_book_report(acs_variant_book *book)
{
    ACS_HOLD_MUTEX(&book->mutex);
    for (const acs_profile_kernel *k = book->profile.kernels; k; k = k->hh.next)
        for (const acs_problem *p = k->problems; p; p = p->hh.next)
            report_problem(k, p);
}
