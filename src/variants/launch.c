/*
 * Launches of kernels with versions (launch.h). Runs on the caller's thread, and runs the program's shape functions, under
 * no lock. A version is fixed in the call where timing must not matter, and where the op does not go through the window.
 * Else the call checks each version that may be best, and the step picks one when the op is issued.
 */
#include "variants/launch.h"

#include "variants/book.h"
#include "variants/make.h"
#include "variants/tune.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------------- fixed */

static acs_op refuse(acs_context *context, const acs_launch_params *p)
{
    acs_draft draft = {.context = context, .site = p->site ? p->site : &acs_unknown_site, .name = p->kernel->name};
    return acs_draft_drop(&draft);
}

/* Go on with one version. If it cannot run the launch, the base version does, unless the program pinned it. */
static acs_op launch_fixed(acs_context *context, const acs_launch_params *p, const acs_variant_set *set, uint32_t number,
                           acs_variant_next next)
{
    acs_version_launch v;
    acs_status status;
    if (acs_variant_make(p, set, number, &v, &status)) {
        v.params.attributes.fit = 0;
        return next(context, &v.params);
    }
    if (status == ACS_OK && !p->attributes.variant && acs_variant_make(p, set, 0, &v, &status)) {
        v.params.attributes.fit = 0;
        return next(context, &v.params);
    }
    if (status == ACS_OK)
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': version '%s' cannot run this launch (ACS_SHAPE_UNFIT)",
                 acs_variant_kernel_name(p), set->version[number].name);
    return refuse(context, p);
}

/* Whether the choice must not depend on timing. */
static bool is_fixed(const acs_context *context)
{
    const acs_options *o = &context->options;
    return o->variants != ACS_VARIANTS_AUTO || o->serial || o->disable || o->check || context->backend->devices > 1;
}

/* -------------------------------------------------------------------------------------------------------------- open */

/* The versions that may be best for a launch, and which is for which share. */
typedef struct candidates {
    uint32_t count;
    uint8_t at[ACS_SHARE_STEPS]; /* index in the next one */
    uint8_t number[ACS_SHARE_STEPS];
    acs_version_launch launch[ACS_SHARE_STEPS];
} candidates;

/* The index of a version among the candidates, made if it is new; -1: it cannot run the launch. */
static int candidate_of(candidates *c, const acs_launch_params *p, const acs_variant_set *set, uint8_t number,
                        acs_status *status)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->number[i] == number)
            return (int)i;
    if (!acs_variant_make(p, set, number, &c->launch[c->count], status))
        return -1;
    c->number[c->count] = number;
    return (int)c->count++;
}

/* Where the best version cannot run the launch, the base version does. */
static acs_status find_candidates(candidates *c, const acs_launch_params *p, const acs_variant_set *set,
                                  const acs_book_entry *entry)
{
    acs_status status = ACS_OK;
    c->count = 0;
    for (uint32_t step = 0; step < ACS_SHARE_STEPS; step++) {
        int at = candidate_of(c, p, set, entry->at[step], &status);
        if (at < 0 && status == ACS_OK)
            at = candidate_of(c, p, set, 0, &status);
        ACS_TRY(status);
        c->at[step] = (uint8_t)at;
    }
    return ACS_OK;
}

/* Make the record one of the candidates, as the backend has checked it. False: the backend refuses it. */
static bool check_candidate(acs_draft *draft, const acs_version_launch *v)
{
    acs_record *record = draft->record;
    acs_backend *backend = draft->context->backend;
    const char *name = record->u.launch.kernel.name;
    record->u.launch.kernel = v->kernel;
    record->u.launch.kernel.name = name;
    record->grid = v->params.grid;
    record->u.launch.block = v->params.block;
    record->u.launch.shared_bytes = v->params.shared_bytes;
    return backend->ops->check(backend, record) == ACS_OK;
}

/* Attach the checked candidates to a bound record, which is the last of them then. False: one is refused. */
static bool attach(acs_draft *draft, const candidates *c, const acs_book_entry *entry)
{
    acs_record *record = draft->record;
    acs_versions *versions = (acs_versions *)(void *)(record->arg_bytes + (record->arg_bytes_used + 15) / 16 * 16);
    bool bundleable = true;
    memcpy(versions->at, c->at, sizeof versions->at);
    versions->count = c->count;
    versions->picked = entry->problem->picked;
    for (uint32_t i = c->count; i-- > 0;) {
        if (!check_candidate(draft, &c->launch[i]))
            return false;
        acs_version_take(&versions->list[i], record);
        versions->list[i].number = entry->kernel->of_number[c->number[i]];
        bundleable &= record->type != 0;
    }
    for (uint32_t i = 0; i < c->count && !bundleable; i++)
        versions->list[i].type = 0; /* whether an op can be in a bundle is settled before its version */
    record->type = versions->list[0].type;
    record->u.launch.versions = versions;
    record->flags |= ACS_RECORD_VERSIONS;
    return true;
}

/* Fix the version of an op that does not go through the window. */
static void pick_now(acs_draft *draft, uint32_t percent)
{
    if (draft->captured || draft->group)
        acs_versions_pick(draft->record, percent);
}

static uint32_t share_now(const acs_context *context)
{
    return atomic_load_explicit(&context->core.share_now, memory_order_relaxed); /* a hint */
}

static acs_op launch_open(acs_context *context, const candidates *c,
                          const acs_book_entry *entry)
{
    acs_draft draft = {.context = context, .room = (uint32_t)acs_versions_bytes(c->count)};
    acs_launch_params params = c->launch[0].params;
    if (!acs_launch_fill(&draft, &params))
        return 0;
    if (acs_draft_bind(&draft) != ACS_OK || !attach(&draft, c, entry))
        return acs_draft_drop(&draft);
    pick_now(&draft, share_now(context));
    return acs_draft_queue(&draft);
}

/* ------------------------------------------------------------------------------------------------------------- trials */

/* Whether the thread's ops are nodes of a capture, or held in a group. */
static bool in_section(acs_context *context)
{
    if (ACS_LIKELY(!(acs_context_modes(context) & ACS_MODE_SECTIONS)))
        return false;
    return context->hooks->capture(context) || context->hooks->group_number(context);
}

/*
 * Time the launch if the book wants that. It runs on the share that it would have, so that a version that takes more of the
 * device does not look better than it is. False: it is not wanted, or the version cannot run, and nothing was queued.
 */
static bool launch_trial(acs_context *context, const acs_launch_params *p, const acs_variant_set *set,
                         const acs_book_entry *entry, acs_op *op)
{
    bool fits[ACS_VERSIONS_MOST];
    acs_version_launch v;
    acs_status status = ACS_OK;
    uint32_t number;
    for (uint32_t i = 0; i < set->count; i++) {
        fits[i] = acs_variant_make(p, set, i, &v, &status);
        if (status != ACS_OK)
            return false;
    }
    const uint32_t step = acs_share_step(share_now(context));
    acs_timing *timing = acs_book_trial(context->variants, set, entry, fits, step, &number);
    if (!timing)
        return false;
    const acs_error before = *acs_error_thread();
    acs_version_launch trial;
    *op = 0;
    if (acs_variant_make(p, set, number, &trial, &status)) {
        trial.params.attributes.fit = 0;
        if (context->backend->ops->share_find && step + 1 < ACS_SHARE_STEPS)
            trial.params.attributes.share = (uint8_t)((step + 1) * ACS_SHARE_STEP_PERCENT);
        *op = acs_launch_timed(context, &trial.params, timing);
    }
    if (*op)
        return true;
    acs_log(ACS_LOG_INFO, "'%s': version '%s' is left out: %s", acs_variant_kernel_name(p), set->version[number].name,
            acs_error_thread()->text);
    acs_book_trial_refused(timing);
    *acs_error_thread() = before;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ launch */

static acs_op launch_of_set(acs_context *context, const acs_launch_params *p, const acs_variant_set *set,
                            acs_variant_next next)
{
    acs_problem_key key;
    acs_book_entry entry;
    candidates c;
    acs_op op;
    const uint32_t pinned = p->attributes.variant;
    if (pinned > set->count) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the kernel has no version number %u; the last one is %u",
                 acs_variant_kernel_name(p), pinned - 1, set->count - 1);
        return refuse(context, p);
    }
    if (pinned)
        return launch_fixed(context, p, set, pinned - 1, next);
    acs_variant_problem(p, &key);
    if (acs_book_find(context->variants, set, acs_variant_kernel_name(p), &key, &entry) != ACS_OK)
        return refuse(context, p);
    if (ACS_UNLIKELY(context->options.tune != ACS_TUNE_OFF) && !in_section(context))
        acs_tune_launch(context, p, set, &entry);
    const bool base = !entry.problem || context->options.variants == ACS_VARIANTS_BASE;
    if (base)
        return launch_fixed(context, p, set, 0, next);
    const uint32_t said = p->attributes.fit ? p->attributes.fit : p->attributes.share;
    if (said || is_fixed(context))
        return launch_fixed(context, p, set, entry.at[acs_share_step(said ? said : 100)], next);
    if (entry.learns && !in_section(context) && launch_trial(context, p, set, &entry, &op))
        return op;
    if (find_candidates(&c, p, set, &entry) != ACS_OK)
        return refuse(context, p);
    return launch_open(context, &c, &entry);
}

acs_op acs_variant_launch(acs_context *context, const acs_launch_params *p, acs_variant_next next)
{
    const acs_variant_set *set = p->kernel ? acs_variant_set_find(p->kernel, p->stub) : NULL;
    const bool plain = !set || !p->grid.x || !p->block.x || (p->args.count && !p->args.list);
    return ACS_LIKELY(plain) ? next(context, p) : launch_of_set(context, p, set, next);
}
