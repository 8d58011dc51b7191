/*
 * Launches of kernels with versions (variants.h): chooses the version in the call, so that all that follows sees an ordinary
 * launch, which may recur, be bundled, captured or held. Runs on the caller's thread, and runs the program's shape
 * functions, under no lock.
 */
#include "variants/variants.h"

#include "api/decisions.h"
#include "variants/make.h"

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
    if (acs_variant_make(p, set, number, &v, &status) ||
        (status == ACS_OK && !p->attributes.variant && acs_variant_make(p, set, 0, &v, &status))) {
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
 * device does not look better than it is. True: *op is the result of the call. False: it is not wanted, or the version
 * cannot run, and nothing was queued.
 */
static bool launch_trial(acs_context *context, const acs_launch_params *p, const acs_variant_set *set,
                         const acs_book_entry *entry, uint32_t step, acs_op *op)
{
    bool fits[ACS_VERSIONS_MOST];
    acs_version_launch version[ACS_VERSIONS_MOST];
    acs_status status = ACS_OK;
    uint32_t number;
    for (uint32_t i = 0; i < set->count; i++) {
        fits[i] = acs_variant_make(p, set, i, &version[i], &status);
        if (status != ACS_OK) {
            *op = refuse(context, p);
            return true;
        }
    }
    acs_timing *timing = acs_book_trial(context->variants, set, entry, fits, step, &number);
    if (!timing)
        return false;
    const acs_error before = *acs_error_thread();
    acs_launch_params *trial = &version[number].params;
    trial->attributes.fit = 0;
    if (!p->attributes.share && context->backend->ops->share_find && step + 1 < ACS_SHARE_STEPS)
        trial->attributes.share = (uint8_t)((step + 1) * ACS_SHARE_STEP_PERCENT);
    bool unfit;
    *op = acs_launch_timed(context, trial, timing, &unfit);
    if (*op)
        return true;
    acs_book_trial_refused(timing, unfit);
    if (!unfit) /* the launch is refused in any version, or there is no room now */
        return true;
    acs_log(ACS_LOG_INFO, "'%s': version '%s' is left out: %s", acs_variant_kernel_name(p), set->version[number].name,
            acs_error_thread()->text);
    *acs_error_thread() = before;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ launch */

/* The share that a launch is expected to have, in percent: as it says, or as many as run beside it leave. */
static uint32_t share_of(const acs_launch_params *p, uint32_t side_by_side)
{
    const uint32_t said = p->attributes.fit ? p->attributes.fit : p->attributes.share;
    return said ? said : 100 / side_by_side;
}

static acs_op launch_of_set(acs_context *context, const acs_launch_params *p, const acs_variant_set *set,
                            uint32_t side_by_side, acs_variant_next next)
{
    acs_problem_key key;
    acs_book_entry entry;
    acs_op op;
    const uint32_t pinned = p->attributes.variant;
    if (p->attributes.fit > 100)
        return next(context, p); /* refused there */
    if (pinned > set->count) {
        ACS_FAIL(ACS_ERR_ARGUMENT, 0, "'%.60s': the kernel has no version number %u; the last one is %u",
                 acs_variant_kernel_name(p), pinned - 1, set->count - 1);
        return refuse(context, p);
    }
    if (pinned && !p->grid_from.word) /* else the kernel in its own shape, or refused there */
        return launch_fixed(context, p, set, pinned - 1, next);
    if (acs_decisions_decides(context, p))
        return next(context, p);
    acs_variant_problem(p, &key);
    if (acs_book_find(context->variants, set, acs_variant_kernel_name(p), &key, &entry) != ACS_OK)
        return refuse(context, p);
    if (ACS_UNLIKELY(context->options.tune != ACS_TUNE_OFF) && !in_section(context))
        acs_tune_launch(context, p, set, &entry);
    if (!entry.problem || context->options.variants == ACS_VARIANTS_BASE)
        return launch_fixed(context, p, set, 0, next);
    const bool fixed = is_fixed(context);
    const uint32_t step = acs_share_step(share_of(p, fixed ? 1 : side_by_side));
    if (entry.learns && !fixed && !in_section(context) && launch_trial(context, p, set, &entry, step, &op))
        return op;
    acs_book_picked(&entry, entry.at[step]);
    return launch_fixed(context, p, set, entry.at[step], next);
}

acs_op acs_variant_launch(acs_context *context, const acs_launch_params *p, acs_variant_next next)
{
    const acs_variant_set *set = p->kernel ? acs_variant_set_find(p->kernel, p->stub) : NULL;
    const bool bad = !p->kernel || !p->grid.x || !p->block.x || (p->args.count && !p->args.list) ||
                     (p->uses.count && !p->uses.segments);
    if (bad) /* refused there */
        return next(context, p);
    const uint32_t side_by_side = acs_book_side_by_side(context->variants, p->uses.segments, p->uses.count);
    return set ? launch_of_set(context, p, set, side_by_side, next) : next(context, p);
}
