/*
 * The check of one launch (launch_check.h). All memory is copied before the kernel runs and behind it: what changed
 * beside the footprint was written unnamed. For reads there are trials: the same launch from scrambled bytes, which
 * should not matter. If they do, a search by halves finds the first and the last of them that does. Holds program order.
 * Called by acs_launch where ACS_CHECK asks for it.
 */
#include "checks/launch_check.h"

#include "api/decisions.h"
#include "api/draft.h"
#include "api/failures.h"
#include "api/program_order.h"
#include "api/wait.h"
#include "base/tuning.h"
#include "capture/capture.h"
#include "checks/findings.h"
#include "groups/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known of the launches of a call site. */
typedef struct told_site {
    const acs_site *site;
    const char *name;  /* of the kernel */
    uint32_t findings; /* set of 1 << acs_finding_kind */
    /* ACS_CHECK=all, while all launches have as many segments: bits of the first HINTS_MOST of them */
    uint32_t segments;
    uint64_t unneeded; /* no launch read or wrote it */
    uint64_t unread;   /* it is inout, and no launch read it or left bytes of it */
    uint64_t unwritten; /* it is inout, and no launch wrote it */
    uint64_t looks;    /* launches that were looked at */
} told_site;

enum { HINTS_MOST = 64, TOLD_MOST = 1024 };

/* Guarded by the lock of program order, but for what was registered. */
struct acs_checks {
    pthread_mutex_t lock; /* guards the next three fields */
    acs_registered *registered;
    size_t registered_count, registered_room;
    told_site told[TOLD_MOST];
    uint32_t told_count;
    uint64_t launches, checked, left_out; /* left_out: those of `launches` that cannot be checked */
};

typedef struct launch_check {
    acs_checked found;
    acs_context *context;
    acs_launch_params params; /* with the segments in a list: a footprint function is called once */
    acs_segment *named;    /* segments as the program names them */
    acs_segment *segments; /* as they are checked */
    acs_spans spans;
    acs_image image;
    told_site *told;
    bool decided; /* it may not run, so its out segments may keep their bytes */
} launch_check;

/* ------------------------------------------------------------------------------------------------------ open, close */

acs_status acs_checks_open(acs_context *context)
{
    if (context->options.check <= ACS_CHECK_OVERLAP)
        return ACS_OK;
    context->checks = calloc(1, sizeof *context->checks);
    if (!context->checks || pthread_mutex_init(&context->checks->lock, NULL)) {
        free(context->checks);
        context->checks = NULL;
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for ACS_CHECK");
    }
    return ACS_OK;
}

static void print_hint(const told_site *told, const char *hint)
{
    const acs_site *site = told->site;
    (void)fprintf(stderr, "acs: check: hint: %llu launches of '%s' (%s:%d) did not %s\n", (unsigned long long)told->looks,
                  acs_label_name((acs_label){site, told->name}), site && site->file ? site->file : "?",
                  site ? site->line : 0, hint);
}

static void print_hints(const told_site *told)
{
    char hint[128];
    for (uint32_t i = 0; i < told->segments && i < HINTS_MOST; i++) {
        const bool unneeded = told->unneeded >> i & 1, unread = told->unread >> i & 1, unwritten = told->unwritten >> i & 1;
        if (!unneeded && !unread && !unwritten)
            continue;
        (void)snprintf(hint, sizeof hint, unneeded ? "need segment %u: without it more ops may run at once"
                                          : unread ? "read segment %u, which is inout: is it out?"
                                                   : "write segment %u, which is inout: is it in?", i);
        print_hint(told, hint);
    }
}

void acs_checks_close(acs_context *context)
{
    acs_checks *all = context->checks;
    if (!all)
        return;
    for (uint32_t i = 0; i < all->told_count; i++)
        print_hints(&all->told[i]);
    (void)fprintf(stderr, "acs: check: %llu of %llu launches were checked; %llu could not be: they may not wait, are "
                  "captured or held, may write any memory, or come behind a failure\n",
                  (unsigned long long)all->checked, (unsigned long long)all->launches, (unsigned long long)all->left_out);
    (void)pthread_mutex_destroy(&all->lock);
    free(all->registered);
    free(all);
    context->checks = NULL;
}

void acs_checks_clear(acs_context *context)
{
    acs_checks *all = context->checks;
    if (!all)
        return;
    acs_order_lock(context);
    for (uint32_t i = 0; i < all->told_count; i++)
        all->told[i].findings = 0;
    acs_order_unlock(context);
}

/* What is known of the site. NULL: there are too many. */
static told_site *told_of(acs_checks *all, acs_label label)
{
    for (uint32_t i = 0; i < all->told_count; i++)
        if (all->told[i].site == label.site && all->told[i].name == label.name)
            return &all->told[i];
    if (all->told_count == TOLD_MOST)
        return NULL;
    all->told[all->told_count] = (told_site){.site = label.site, .name = label.name};
    return &all->told[all->told_count++];
}

/* ---------------------------------------------------------------------------------------------------------- launches */

static acs_op launch(const launch_check *c)
{
    return c->decided ? acs_decisions_launch(c->context, &c->params) : acs_launch_unchecked(c->context, &c->params);
}

static bool ended_well(acs_context *context, acs_op op)
{
    if (op)
        acs_context_wait(context, ACS_WAIT_FOR_ALL, op);
    return op && acs_failures_of(context, op, NULL) == ACS_OK;
}

/* Wait for all ops. False: failed ones have left memory that copies would be skipped for. */
static bool wait_for_all(acs_context *context)
{
    const acs_op last = acs_fifo_last(context->core.fifo);
    if (last)
        acs_context_wait(context, ACS_WAIT_FOR_ALL, last);
    /* relaxed: the wait has ordered it */
    return !acs_context_is_lost(context) && !atomic_load_explicit(&context->core.poisoned, memory_order_relaxed);
}

/* How a trial ended. */
typedef enum trial_result { TRIAL_SAME, TRIAL_DIFFERS, TRIAL_FAILED } trial_result;

/* Launch once more, with scrambled bytes. */
static trial_result try_scrambled(launch_check *c, const acs_scrambled *which)
{
    acs_image_scramble(&c->image, &c->spans, which);
    if (!acs_image_store(&c->image, ACS_COPY_GIVEN) || !ended_well(c->context, launch(c)) ||
        !acs_image_load(&c->image, ACS_COPY_TRIAL))
        return TRIAL_FAILED;
    return acs_compare_differs(&c->image, &c->spans) ? TRIAL_DIFFERS : TRIAL_SAME;
}

/* The same for what is to be scrambled, but from `first` up to `end`. Whether that changes what the kernel does. */
static bool try_between(launch_check *c, acs_scrambled which, uint64_t first, uint64_t end)
{
    which.first = first;
    which.end = end;
    return first < end && try_scrambled(c, &which) != TRIAL_SAME;
}

/* ------------------------------------------------------------------------------------------------------------- reads */

/* The first word of the range from `from` on that matters. One does. */
static uint64_t first_read(launch_check *c, acs_scrambled set, const acs_memory_range *range, uint64_t from)
{
    uint64_t low = from & ~(uint64_t)3, high = (range->end + 3) & ~(uint64_t)3; /* it begins in [low, high) */
    while (high - low > 4) {
        const uint64_t middle = low + (((high - low) / 2 + 3) & ~(uint64_t)3);
        if (middle >= high || try_between(c, set, from, middle))
            high = middle < high ? middle : high - 4;
        else
            low = middle;
    }
    return low > from ? low : from;
}

/* The end of the last word of the range that matters. */
static uint64_t last_read(launch_check *c, acs_scrambled set, const acs_memory_range *range, uint64_t first)
{
    uint64_t low = first & ~(uint64_t)3, high = (range->end + 3) & ~(uint64_t)3;
    while (high - low > 4) {
        const uint64_t middle = low + (((high - low) / 2) & ~(uint64_t)3);
        if (middle > low && try_between(c, set, middle, range->end))
            low = middle;
        else
            high = middle > low ? middle : low + 4;
    }
    return low + 4 < range->end ? low + 4 : range->end;
}

/* The first range behind `from` with a byte that matters; NULL: there is none. */
static const acs_memory_range *range_read(launch_check *c, acs_scrambled set, uint64_t from)
{
    const acs_image *image = &c->image;
    size_t low = 0, high = image->count;
    while (low < image->count && image->list[low].end <= from)
        low++;
    if (low == image->count || !try_between(c, set, from, UINT64_MAX))
        return NULL;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (try_between(c, set, from, image->list[middle - 1].end))
            high = middle;
        else
            low = middle;
    }
    return &image->list[low];
}

/* Find where bytes of the set are read, range by range. */
static void find_reads(launch_check *c, acs_scrambled set, acs_finding_kind kind)
{
    uint64_t from = 0;
    for (int i = 0; i < TUNE_CHECK_READS; i++) {
        const acs_memory_range *range = range_read(c, set, from);
        if (!range)
            return;
        const uint64_t first = first_read(c, set, range, from > range->first ? from : range->first);
        const uint64_t end = last_read(c, set, range, first);
        acs_findings_add(&c->found, kind, &(acs_found_bytes){range, first, end, end - first, 1});
        from = range->end;
    }
}

static void add_unnamed(void *user, const acs_found_bytes *bytes)
{
    acs_findings_add(user, ACS_FOUND_WRITES_UNNAMED, bytes);
}

static void add_unwritten(void *user, const acs_found_bytes *bytes)
{
    acs_findings_add(user, ACS_FOUND_UNWRITTEN, bytes);
}

/* Whether the kernel does the same each time. If not, trials tell nothing. */
static bool repeats_itself(launch_check *c)
{
    return try_scrambled(c, &(acs_scrambled){0}) == TRIAL_SAME;
}

/* Find where bytes of the set are read, once for each call site (until acs_clear). */
static void locate_reads(launch_check *c, const acs_scrambled *set, acs_finding_kind kind)
{
    if (!repeats_itself(c))
        return;
    if (c->told && c->told->findings >> kind & 1)
        acs_findings_add(&c->found, kind, &(acs_found_bytes){.range = c->image.list});
    else
        find_reads(c, *set, kind);
}

static void add_failure(launch_check *c)
{
    acs_findings_add(&c->found, ACS_FOUND_FAILS, &(acs_found_bytes){.range = c->image.list});
}

/* Scramble what the op does not name, and see what that changes. First numbers; if that changes nothing, bits, too. */
static void check_unnamed(launch_check *c)
{
    acs_scrambled set = {ACS_SCRAMBLE_UNNAMED, ACS_SCRAMBLE_NUMBERS, 0, UINT64_MAX};
    trial_result result = try_scrambled(c, &set);
    if (result == TRIAL_SAME) {
        set.level = ACS_SCRAMBLE_BITS;
        result = try_scrambled(c, &set);
    }
    acs_compare_changed(&c->image, &c->spans, result == TRIAL_SAME, add_unnamed, &c->found);
    if (result == TRIAL_FAILED)
        add_failure(c);
    if (result == TRIAL_DIFFERS)
        locate_reads(c, &set, ACS_FOUND_READS_UNNAMED);
}

static void note(void *user, const acs_found_bytes *bytes)
{
    (void)bytes;
    *(bool *)user = true;
}

/*
 * Scramble what the op names as out: first so that it does no harm where it is read. If it is not, all of it. Bytes that
 * the launch left as they were may have been written with the values that they had.
 */
static void check_out(launch_check *c)
{
    acs_scrambled set = {ACS_SCRAMBLE_OUT, ACS_SCRAMBLE_NUMBERS, 0, UINT64_MAX};
    bool left = false;
    trial_result result = try_scrambled(c, &set);
    acs_compare_kept(&c->image, &c->spans, note, &left);
    if (result == TRIAL_SAME && left) {
        set.level = ACS_SCRAMBLE_ALL;
        result = try_scrambled(c, &set);
    }
    if (result == TRIAL_FAILED)
        add_failure(c);
    else if (left && result == TRIAL_SAME)
        acs_compare_unwritten(&c->image, &c->spans, add_unwritten, &c->found);
    if (result == TRIAL_DIFFERS)
        locate_reads(c, &set, ACS_FOUND_READS_OUT);
}

static bool has_out(const launch_check *c)
{
    bool out = false;
    for (size_t i = 0; i < c->spans.count && !c->spans.reads_all; i++)
        out |= c->spans.list[i].access == ACS_WRITE;
    return out;
}

/* ------------------------------------------------------------------------------------------------------------- hints */

/* Whether another segment has a byte between the first and the last one of this. */
static bool is_alone(const launch_check *c, uint32_t segment)
{
    const acs_segment *s = &c->segments[segment];
    for (uint32_t i = 0; i < c->found.segment_count; i++)
        if (i != segment && c->segments[i].extent == ACS_EXTENT_BYTES && c->segments[i].base < acs_segment_end(s) &&
            acs_segment_end(&c->segments[i]) > s->base)
            return false;
    return true;
}

/* See what the launch does with a segment that it names as read, and forget hints about it that are not true. */
static void look_at_segment(launch_check *c, uint32_t segment)
{
    const acs_segment *s = &c->segments[segment];
    const uint64_t bit = (uint64_t)1 << segment;
    const bool reads = try_between(c, (acs_scrambled){ACS_SCRAMBLE_READ, ACS_SCRAMBLE_NUMBERS, 0, 0}, s->base, acs_segment_end(s));
    const acs_use use = acs_compare_use(&c->image, s);
    if (reads || use.written || !use.scrambled)
        c->told->unneeded &= ~bit;
    if (reads || use.kept || !use.scrambled)
        c->told->unread &= ~bit;
    if (use.written || !use.scrambled)
        c->told->unwritten &= ~bit;
}

/* Hints that the first launch of a site may give. */
static void begin_hints(launch_check *c)
{
    told_site *told = c->told;
    told->segments = c->found.segment_count;
    for (uint32_t i = 0; i < told->segments && i < HINTS_MOST; i++) {
        const acs_segment *s = &c->segments[i];
        const bool looks = s->extent == ACS_EXTENT_BYTES && s->row_bytes && s->rows && is_alone(c, i);
        if (looks && (s->access == ACS_READ || s->access == ACS_UPDATE))
            told->unneeded |= (uint64_t)1 << i;
        if (looks && s->access == ACS_UPDATE) {
            told->unread |= (uint64_t)1 << i;
            told->unwritten |= (uint64_t)1 << i;
        }
    }
}

static void find_hints(launch_check *c)
{
    told_site *told = c->told;
    if (!told || c->decided || c->spans.reads_all)
        return;
    if (!told->looks++)
        begin_hints(c);
    if (told->segments != c->found.segment_count || !repeats_itself(c))
        told->unneeded = told->unread = told->unwritten = 0;
    for (uint32_t i = 0; i < told->segments && i < HINTS_MOST; i++)
        if ((told->unneeded | told->unread | told->unwritten) >> i & 1)
            look_at_segment(c, i);
}

/* ------------------------------------------------------------------------------------------------------------ launch */

/* Copy the launch's footprint. False: refused. *useless: it may write any memory, so there is nothing to find. */
static bool find_footprint(launch_check *c, bool *useless)
{
    const acs_launch_params *p = &c->params;
    acs_draft draft = {.context = c->context};
    if (!acs_launch_fill(&draft, p))
        return false;
    const uint32_t count = draft.record->segment_count;
    c->found.label = acs_draft_label(&draft);
    c->segments = malloc((count + 1) * sizeof *c->segments);
    c->named = malloc((count + 1) * sizeof *c->segments);
    for (uint32_t i = 0; c->segments && c->named && i < count; i++) {
        acs_segment *s = &c->segments[i];
        *s = c->named[i] = draft.record->segments[i];
        *useless |= s->extent == ACS_EXTENT_ALL && s->access != ACS_READ;
        if (c->decided && s->access == ACS_WRITE)
            s->access = ACS_UPDATE;
    }
    acs_draft_take_back(&draft);
    c->found.segment_count = count;
    if (c->decided && c->segments && p->grid_from.word) /* trials read it too */
        c->segments[c->found.segment_count++] = ACS_IN(p->grid_from.word, p->grid_from.items ? sizeof(uint32_t) : sizeof(acs_dim3));
    c->found.segments = c->segments;
    if (c->named)
        c->params.uses = (acs_uses){c->named, count, NULL, NULL, 0};
    return true;
}

/* Copy all memory. False: it cannot be. */
static bool look_before(launch_check *c)
{
    acs_checks *all = c->context->checks;
    if (!c->segments || !c->named || !acs_spans_make(c->segments, c->found.segment_count, &c->spans))
        return false;
    pthread_mutex_lock(&all->lock);
    const bool found = acs_image_find(&c->image, c->context, all->registered, all->registered_count, &c->spans);
    pthread_mutex_unlock(&all->lock);
    c->found.image = &c->image;
    return found && acs_image_load(&c->image, ACS_COPY_BEFORE);
}

/* The kernel has ended. Look at what it did, and leave memory as it did. */
static void look_behind(launch_check *c)
{
    const int64_t level = c->context->options.check;
    if (!acs_image_load(&c->image, ACS_COPY_AFTER))
        return;
    c->told = told_of(c->context->checks, c->found.label);
    if (level == ACS_CHECK_WRITES)
        acs_compare_changed(&c->image, &c->spans, false, add_unnamed, &c->found);
    else
        check_unnamed(c);
    if (has_out(c))
        check_out(c);
    if (level == ACS_CHECK_ALL)
        find_hints(c);
    (void)acs_image_store(&c->image, ACS_COPY_AFTER); /* fails only on a lost device */
    c->context->checks->checked++;
}

static void report(launch_check *c)
{
    uint32_t findings = 0;
    for (uint32_t i = 0; i < c->found.count; i++)
        findings |= (uint32_t)1 << c->found.findings[i].kind;
    acs_findings_report(&c->found, c->told && (findings & ~c->told->findings));
    if (c->told)
        c->told->findings |= findings;
}

static void check_left(launch_check *c)
{
    acs_spans_free(&c->spans);
    acs_image_free(&c->image);
    free(c->segments);
    free(c->named);
    acs_order_unlock(c->context);
}

/* Whether this launch is one of those that are looked at: one of ACS_CHECK_EVERY, of no regular pattern. */
static bool is_chosen(acs_context *context)
{
    const uint64_t every = (uint64_t)context->options.check_every;
    return acs_hash64(context->checks->launches++) % every == 0;
}

acs_op acs_check_launch(acs_context *context, const acs_launch_params *p)
{
    bool useless = p->no_wait || p->uses.any || acs_capture_on(context) || acs_group_on(context);
    __attribute__((cleanup(check_left))) launch_check c = {
        .found = {.context = context, .params = p}, .context = context, .params = *p,
        .decided = acs_decisions_decides(context, p)};
    ACS_NOT_CANCELLED;
    acs_order_lock(context);
    if (!is_chosen(context))
        return launch(&c);
    if (!useless && !find_footprint(&c, &useless))
        return 0;
    const bool looks = !useless && wait_for_all(context) && look_before(&c);
    context->checks->left_out += !looks;
    c.found.op = launch(&c);
    if (looks && ended_well(context, c.found.op)) {
        look_behind(&c);
        report(&c);
    }
    return c.found.op;
}

/* -------------------------------------------------------------------------------------------------------- registered */

static acs_status refuse_memory(const void *ptr, size_t bytes, const char *function)
{
    return acs_fail(ACS_ERR_ARGUMENT, 0, function, "%zu bytes at %p", bytes, ptr);
}

acs_status acs_check_register(acs_context *context, const void *ptr, size_t bytes)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    if (!ptr || !bytes || bytes > UINT64_MAX - (uintptr_t)ptr)
        return refuse_memory(ptr, bytes, __func__);
    acs_checks *all = context->checks;
    if (!all)
        return ACS_OK;
    pthread_mutex_lock(&all->lock);
    if (all->registered_count == all->registered_room) {
        const size_t room = 2 * all->registered_room + 8;
        acs_registered *more = realloc(all->registered, room * sizeof *more);
        all->registered = more ? more : all->registered;
        all->registered_room = more ? room : all->registered_room;
    }
    const bool fits = all->registered_count < all->registered_room;
    const uint64_t first = (uint64_t)(uintptr_t)ptr;
    if (fits)
        all->registered[all->registered_count++] = (acs_registered){first, first + bytes};
    pthread_mutex_unlock(&all->lock);
    return fits ? ACS_OK : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory to register %zu bytes", bytes);
}

acs_status acs_check_unregister(acs_context *context, const void *ptr)
{
    context = acs_context_enter(context, __func__);
    if (!context)
        return acs_error_thread()->status;
    acs_checks *all = context->checks;
    if (!all)
        return ACS_OK;
    bool found = false;
    pthread_mutex_lock(&all->lock);
    for (size_t i = all->registered_count; i-- > 0 && !found;) {
        found = all->registered[i].first == (uint64_t)(uintptr_t)ptr;
        if (found)
            all->registered[i] = all->registered[--all->registered_count];
    }
    pthread_mutex_unlock(&all->lock);
    return found ? ACS_OK : ACS_FAIL(ACS_ERR_ARGUMENT, 0, "no registered memory begins at %p", ptr);
}
