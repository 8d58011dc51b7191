/*
 * The check of one launch (launch_check.h). All memory is copied before the kernel runs and behind it: what changed
 * beside the footprint was written unnamed. Trials (trial.c) tell what it read. Holds program order. Called by acs_launch
 * where ACS_CHECK asks for it.
 */
#include "checks/launch_check.h"

#include "api/decisions.h"
#include "api/draft.h"
#include "api/program_order.h"
#include "api/threads.h"
#include "capture/capture.h"
#include "checks/checks_internal.h"
#include "groups/group.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ trials */

static void add_unnamed(void *user, const acs_found_bytes *bytes)
{
    acs_findings_add(user, ACS_FOUND_WRITES_UNNAMED, bytes);
}

static void add_unwritten(void *user, const acs_found_bytes *bytes)
{
    acs_findings_add(user, ACS_FOUND_UNWRITTEN, bytes);
}

/* Find where bytes of the set are read, once for each call site (until acs_clear). */
static void locate_reads(acs_launch_check *c, const acs_scrambled *set, acs_finding_kind kind)
{
    if (!acs_trial_repeats(c))
        return;
    if (c->site && c->site->findings >> kind & 1)
        acs_findings_add(&c->found, kind, &(acs_found_bytes){.range = c->image.list});
    else
        acs_trial_find_reads(c, *set, kind);
}

static void add_failure(acs_launch_check *c)
{
    acs_findings_add(&c->found, ACS_FOUND_FAILS, &(acs_found_bytes){.range = c->image.list});
}

/* Scramble what the op does not name, and see what that changes. First numbers; if that changes nothing, bits, too. */
static void check_unnamed(acs_launch_check *c)
{
    acs_scrambled set = {ACS_SCRAMBLE_UNNAMED, ACS_SCRAMBLE_NUMBERS, 0, UINT64_MAX};
    acs_trial_result result = acs_trial_scrambled(c, &set);
    if (result == ACS_TRIAL_SAME) {
        set.level = ACS_SCRAMBLE_BITS;
        result = acs_trial_scrambled(c, &set);
    }
    acs_compare_find(&c->image, &c->spans, result == ACS_TRIAL_SAME ? ACS_SOUGHT_WRITTEN : ACS_SOUGHT_CHANGED, add_unnamed,
                     &c->found);
    if (result == ACS_TRIAL_FAILED)
        add_failure(c);
    if (result == ACS_TRIAL_DIFFERS)
        locate_reads(c, &set, ACS_FOUND_READS_UNNAMED);
}

/*
 * Scramble what the op names as out: first so that it does no harm where it is read. If it is not, all of it. Bytes that
 * the launch left as they were may have been written with the values that they had.
 */
static void check_out(acs_launch_check *c)
{
    acs_scrambled set = {ACS_SCRAMBLE_OUT, ACS_SCRAMBLE_NUMBERS, 0, UINT64_MAX};
    acs_trial_result result = acs_trial_scrambled(c, &set);
    const bool left = acs_compare_has(&c->image, &c->spans, ACS_SOUGHT_KEPT);
    if (result == ACS_TRIAL_SAME && left) {
        set.level = ACS_SCRAMBLE_ALL;
        result = acs_trial_scrambled(c, &set);
    }
    if (result == ACS_TRIAL_FAILED)
        add_failure(c);
    else if (left && result == ACS_TRIAL_SAME)
        acs_compare_find(&c->image, &c->spans, ACS_SOUGHT_UNWRITTEN, add_unwritten, &c->found);
    if (result == ACS_TRIAL_DIFFERS)
        locate_reads(c, &set, ACS_FOUND_READS_OUT);
}

static bool has_out(const acs_launch_check *c)
{
    bool out = false;
    for (size_t i = 0; i < c->spans.count && !c->spans.reads_all; i++)
        out |= c->spans.list[i].access == ACS_WRITE;
    return out;
}

/* ------------------------------------------------------------------------------------------------------------ launch */

/* Copy the footprint. *useless: the op may write any memory, so there is nothing to find. */
static void copy_footprint(acs_launch_check *c, const acs_draft *draft, bool *useless)
{
    const uint32_t count = draft->record->segment_count;
    c->found.label = acs_draft_label(draft);
    c->segments = malloc((count + 1) * sizeof *c->segments);
    c->named = malloc((count + 1) * sizeof *c->segments);
    for (uint32_t i = 0; c->segments && c->named && i < count; i++) {
        acs_segment *s = &c->segments[i];
        *s = c->named[i] = draft->record->segments[i];
        *useless |= s->extent == ACS_EXTENT_ALL && s->access != ACS_READ;
        if (c->decided && s->access == ACS_WRITE)
            s->access = ACS_UPDATE;
    }
    c->found.segments = c->segments;
    c->found.named = c->named;
    c->found.segment_count = c->segment_count = count;
}

/* Copy the launch's footprint. False: refused. */
static bool find_footprint(acs_launch_check *c, bool *useless)
{
    const acs_launch_params *p = &c->params;
    acs_draft draft = {.context = c->context};
    if (!acs_launch_fill(&draft, p))
        return false;
    copy_footprint(c, &draft, useless);
    acs_draft_take_back(&draft);
    const uint32_t count = c->found.segment_count;
    if (c->decided && c->segments && p->grid_from.word) /* trials read it too, but the program does not name it */
        c->segments[c->segment_count++] =
            ACS_IN(p->grid_from.word, p->grid_from.items ? sizeof(uint32_t) : sizeof(acs_dim3));
    if (c->segments && c->named)
        c->params.uses = (acs_uses){c->named, count, NULL, NULL, 0};
    return true;
}

/* Copy all memory. False: it cannot be. */
static bool look_before(acs_launch_check *c)
{
    const acs_checks *all = c->context->checks;
    if (!c->segments || !c->named || !acs_spans_make(c->segments, c->segment_count, &c->spans))
        return false;
    const bool found = acs_image_find(&c->image, c->context, all->registered, all->registered_count, &c->spans);
    c->found.image = &c->image;
    return found && acs_image_load(&c->image, ACS_COPY_BEFORE);
}

static void report_findings(acs_launch_check *c)
{
    acs_checks *all = c->context->checks;
    uint32_t findings = 0;
    for (uint32_t i = 0; i < c->found.count; i++)
        findings |= (uint32_t)1 << c->found.findings[i].kind;
    const bool news = c->site && (findings & ~c->site->findings);
    if (news)
        acs_correct_footprint(c);
    acs_findings_report(&c->found, news, !all->reported);
    all->reported |= news;
    if (c->site)
        c->site->findings |= findings;
}

/* The op has ended. Look at what it did, leave memory as it did, and report. False: memory cannot be copied. */
static bool look_behind(acs_launch_check *c)
{
    const int64_t level = c->once ? ACS_CHECK_WRITES : c->context->options.check;
    if (!acs_image_load(&c->image, ACS_COPY_AFTER))
        return false;
    c->site = acs_checks_site(c->context->checks, c->found.label);
    if (level == ACS_CHECK_WRITES)
        acs_compare_find(&c->image, &c->spans, ACS_SOUGHT_CHANGED, add_unnamed, &c->found);
    else
        check_unnamed(c);
    if (!c->once && has_out(c))
        check_out(c);
    if (level == ACS_CHECK_ALL && !c->found.count)
        acs_hints_find(c);
    c->context->checks->checked++;
    report_findings(c);
    if (!c->once)
        (void)acs_image_store(&c->image, &c->spans, ACS_COPY_AFTER); /* fails only on a lost device */
    return true;
}

static void free_check(acs_launch_check *c)
{
    acs_spans_free(&c->spans);
    acs_image_free(&c->image);
    free(c->found.corrected);
    free(c->segments);
    free(c->named);
}

static void check_left(acs_launch_check *c)
{
    free_check(c);
    acs_order_unlock(c->context);
}

/* Whether this launch is one of those that are looked at: one of ACS_CHECK_EVERY, of no regular pattern. */
static bool is_chosen(acs_context *context)
{
    const uint64_t every = (uint64_t)context->options.check_every;
    return acs_hash64(context->checks->asked++) % every == 0;
}

static acs_op last_op(const acs_launch_check *c)
{
    return acs_fifo_last(c->context->core.fifo);
}

/* Count the ops behind `before` as the check's own. */
static void count_own(acs_launch_check *c, acs_op before)
{
    c->context->checks->own += last_op(c) - before;
}

/* The op was queued: give it the number that it has without a check. */
static void number_op(acs_launch_check *c, acs_op op)
{
    c->found.op = op;
    c->found.number = op - c->context->checks->own;
}

acs_op acs_check_launch(acs_context *context, const acs_launch_params *p)
{
    bool useless = p->no_wait || p->uses.any || acs_capture_on(context) || acs_group_on(context);
    __attribute__((cleanup(check_left))) acs_launch_check c = {
        .found = {.context = context, .params = p}, .context = context, .params = *p,
        .decided = acs_decisions_decides(context, p)};
    ACS_NOT_CANCELLED;
    acs_order_lock(context);
    const bool chosen = is_chosen(context);
    if (chosen && !useless && !find_footprint(&c, &useless))
        return 0;
    acs_op before = last_op(&c);
    const bool looks = chosen && !useless && acs_trial_wait(context) && look_before(&c);
    count_own(&c, before);
    number_op(&c, acs_trial_launch(&c));
    before = last_op(&c);
    const bool checked = looks && acs_trial_ended_well(context, c.found.op) && look_behind(&c);
    count_own(&c, before);
    context->checks->ops += c.found.op != 0;
    context->checks->left_out += chosen && c.found.op && !checked;
    return c.found.op;
}

/* ------------------------------------------------------------------------------------------------------ other ops */

/* Whether the op is one that may be looked at. One of lazy blocks is bound, so the copies would wait for its lock. */
static bool is_looked_at(const acs_draft *draft)
{
    const uint8_t kind = draft->record->asked;
    return (kind == ACS_KIND_HOST || kind == ACS_KIND_CALL) && !draft->own && !draft->no_wait && !draft->bound &&
           !draft->record->any;
}

void acs_check_op_begin(acs_draft *draft)
{
    acs_context *context = draft->context;
    bool useless = false;
    if (!is_looked_at(draft))
        return;
    context->checks->ops++;
    if (!is_chosen(context))
        return;
    acs_launch_check *c = calloc(1, sizeof *c);
    if (!c) {
        context->checks->left_out++;
        return;
    }
    c->context = c->found.context = context;
    c->found.params = &c->params;
    c->once = true;
    copy_footprint(c, draft, &useless);
    const acs_op before = last_op(c);
    const bool looks = !useless && acs_trial_wait(context) && look_before(c);
    count_own(c, before);
    if (looks) {
        draft->check = c;
        return;
    }
    context->checks->left_out++;
    free_check(c);
    free(c);
}

void acs_check_op_end(acs_draft *draft, acs_op op)
{
    acs_launch_check *c = draft->check;
    if (!c)
        return;
    number_op(c, op);
    const acs_op before = last_op(c);
    acs_context_queued(c->context, op, false); /* a thread may have to wake up for it */
    if (!acs_trial_ended_well(c->context, op) || !look_behind(c))
        c->context->checks->left_out++;
    count_own(c, before);
    acs_check_op_drop(draft);
}

void acs_check_op_drop(acs_draft *draft)
{
    if (!draft->check)
        return;
    free_check(draft->check);
    free(draft->check);
    draft->check = NULL;
}
