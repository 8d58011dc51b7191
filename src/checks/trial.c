/*
 * Trials (checks_internal.h): the same launch once more, from memory as it was before, but for bytes that should not
 * matter. If they do, a search by halves finds the first and the last of them that does.
 */
#include "checks/checks_internal.h"

#include "api/decisions.h"
#include "api/draft.h"
#include "api/wait.h"

/* ---------------------------------------------------------------------------------------------------------- launches */

acs_op acs_trial_launch(const acs_launch_check *c)
{
    return c->decided ? acs_decisions_launch(c->context, &c->params) : acs_launch_unchecked(c->context, &c->params);
}

bool acs_trial_ended_well(acs_context *context, acs_op op)
{
    if (op)
        acs_context_wait(context, ACS_WAIT_FOR_ALL, op);
    return op && acs_failures_of(context, op, NULL) == ACS_OK;
}

bool acs_trial_wait(acs_context *context)
{
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (last)
        acs_context_wait(context, ACS_WAIT_FOR_ALL, last);
    /* relaxed: the wait has ordered it */
    return !acs_context_is_lost(context) && !atomic_load_explicit(&context->core.poisoned, memory_order_relaxed);
}

acs_trial_result acs_trial_scrambled(acs_launch_check *c, const acs_scrambled *which)
{
    acs_image_scramble(&c->image, &c->spans, which);
    if (!acs_image_store(&c->image, &c->spans, ACS_COPY_GIVEN) || !acs_trial_ended_well(c->context, acs_trial_launch(c)) ||
        !acs_image_load(&c->image, ACS_COPY_TRIAL))
        return ACS_TRIAL_FAILED;
    return acs_compare_differs(&c->image, &c->spans) ? ACS_TRIAL_DIFFERS : ACS_TRIAL_SAME;
}

bool acs_trial_between(acs_launch_check *c, acs_scrambled which, uint64_t first, uint64_t end)
{
    which.first = first;
    which.end = end;
    return first < end && acs_trial_scrambled(c, &which) != ACS_TRIAL_SAME;
}

/* ------------------------------------------------------------------------------------------------------------- reads */

/* The first word of the range from `from` on that matters. One does. */
static uint64_t first_read(acs_launch_check *c, acs_scrambled set, const acs_memory_range *range, uint64_t from)
{
    uint64_t low = from & ~(uint64_t)3, high = (range->end + 3) & ~(uint64_t)3; /* it begins in [low, high) */
    while (high - low > 4) {
        const uint64_t middle = low + (((high - low) / 2 + 3) & ~(uint64_t)3);
        if (middle >= high || acs_trial_between(c, set, from, middle))
            high = middle < high ? middle : high - 4;
        else
            low = middle;
    }
    return low > from ? low : from;
}

/* The end of the last word of the range that matters. */
static uint64_t last_read(acs_launch_check *c, acs_scrambled set, const acs_memory_range *range, uint64_t first)
{
    uint64_t low = first & ~(uint64_t)3, high = (range->end + 3) & ~(uint64_t)3;
    while (high - low > 4) {
        const uint64_t middle = low + (((high - low) / 2) & ~(uint64_t)3);
        if (middle > low && acs_trial_between(c, set, middle, range->end))
            low = middle;
        else
            high = middle > low ? middle : low + 4;
    }
    return low + 4 < range->end ? low + 4 : range->end;
}

/* The first range behind `from` with a byte that matters; NULL: there is none. */
static const acs_memory_range *range_read(acs_launch_check *c, acs_scrambled set, uint64_t from)
{
    const acs_image *image = &c->image;
    size_t low = 0, high = image->count;
    while (low < image->count && image->list[low].end <= from)
        low++;
    if (low == image->count || !acs_trial_between(c, set, from, UINT64_MAX))
        return NULL;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (acs_trial_between(c, set, from, image->list[middle - 1].end))
            high = middle;
        else
            low = middle;
    }
    return &image->list[low];
}

/*
 * Leave out bytes at both ends that are not of the set: the search goes by words. False: none is left, since the kernel
 * did not do the same each time.
 */
static bool clip(const acs_launch_check *c, int set, acs_found_bytes *bytes)
{
    uint64_t first = UINT64_MAX, end = 0;
    size_t at = 0;
    for (uint64_t address = bytes->first, until; address < bytes->end; address = until) {
        const uint8_t access = acs_spans_at(&c->spans, &at, address, bytes->end, &until);
        if (!(acs_scramble_set_of(access) & set))
            continue;
        first = first < address ? first : address;
        end = until;
    }
    *bytes = (acs_found_bytes){bytes->range, first, end, end - first, 1};
    return first < end;
}

void acs_trial_find_reads(acs_launch_check *c, acs_scrambled set, acs_finding_kind kind)
{
    uint64_t from = 0;
    for (int i = 0; i < TUNE_CHECK_READS; i++) {
        const acs_memory_range *range = range_read(c, set, from);
        if (!range)
            return;
        const uint64_t first = first_read(c, set, range, from > range->first ? from : range->first);
        const uint64_t end = last_read(c, set, range, first);
        acs_found_bytes bytes = {range, first, end, end - first, 1};
        if (clip(c, set.set, &bytes))
            acs_findings_add(&c->found, kind, &bytes);
        from = range->end;
    }
}

bool acs_trial_repeats(acs_launch_check *c)
{
    return acs_trial_scrambled(c, &(acs_scrambled){0}) == ACS_TRIAL_SAME;
}
