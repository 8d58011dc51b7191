/*
 * Statistics: the counters of acs_stats, and the report that ACS_STATS=1 writes when a context closes. Owns the table
 * of pairs of call sites whose ops waited for each other, counted as ops end under the core's lock. Never changes what
 * runs.
 */
#include "api/stats.h"

#include "api/decisions.h"
#include "base/hash.h"
#include "base/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair_key {
    acs_label up, down;
} pair_key;

typedef struct pair {
    pair_key key;
    uint64_t count;
    int hash_failed;
    UT_hash_handle hh;
} pair;

struct acs_pairs {
    pair *table;
    uint32_t count;
};

acs_status acs_stats_open(acs_context *context, uint64_t (*now_ns)(void *context))
{
    if (!context->options.stats)
        return ACS_OK;
    context->pairs = calloc(1, sizeof *context->pairs);
    return context->pairs ? acs_activity_create(now_ns, context, &context->activity)
                          : ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for statistics");
}

void acs_stats_close(acs_context *context)
{
    pair *p, *next;
    acs_activity_destroy(context->activity);
    if (!context->pairs)
        return;
    HASH_ITER(hh, context->pairs->table, p, next)
    {
        HASH_DEL(context->pairs->table, p);
        free(p);
    }
    free(context->pairs);
}

void acs_pairs_end(acs_pairs *pairs, const acs_end *end)
{
    pair_key key;
    memset(&key, 0, sizeof key);
    key.up = end->serialised_behind;
    key.down = acs_record_label(end->op);
    if (!key.up.site)
        return;
    pair *p = NULL;
    HASH_FIND(hh, pairs->table, &key, sizeof key, p);
    if (!p && pairs->count < TUNE_STATISTICS_PAIRS && (p = calloc(1, sizeof *p))) {
        p->key = key;
        HASH_ADD(hh, pairs->table, key, sizeof p->key, p);
        if (p->hash_failed) {
            free(p);
            return;
        }
        pairs->count++;
    }
    if (p)
        p->count++;
}

static int by_count(const pair *a, const pair *b)
{
    return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

/* ----------------------------------------------------------------------------------------------------------- public */

/* Sums over all devices. */
static acs_memory_counts count_memory(const acs_context *context)
{
    acs_memory_counts all = {0};
    for (uint32_t d = 0; d < context->backend->devices; d++) {
        const acs_memory_counts one = acs_memory_count(context->memory, acs_memory_kind(d));
        all.live += one.live;
        all.quarantined += one.quarantined;
        all.reserved += one.reserved;
        all.peak += one.peak;
        all.obtained += one.obtained;
        all.early += one.early;
        all.moved += one.moved;
    }
    return all;
}

void acs_stats_read(acs_context *context, acs_statistics *s)
{
    acs_core *core = &context->core;
    const uint64_t not_run = acs_decisions_not_run(context); /* may ask the device */
    acs_lock_acquire(&core->lock);
    const acs_core_counters *c = &core->counters;
    const acs_slots_counters *slots = &core->slots.counters;
    const acs_window_counters *window = &core->window.counters;
    *s = (acs_statistics){
        .size = sizeof *s,
        .queued = acs_fifo_last(core->fifo) - c->unused,
        .retired = c->retired - c->unused_retired,
        .failed = c->failed,
        .skipped = c->skipped,
        .kernels = c->kinds[ACS_KIND_KERNEL],
        .copies = c->kinds[ACS_KIND_MEMCPY],
        .fills = c->kinds[ACS_KIND_MEMSET],
        .host_functions = c->kinds[ACS_KIND_HOST],
        .calls = c->kinds[ACS_KIND_CALL],
        .not_run = not_run,
        .edges = window->edges,
        .joins = window->joins,
        .same_slot = slots->same_slot,
        .waits_sent = slots->waits_sent,
        .waits_implied = slots->waits_implied,
        .waits_complete = slots->waits_complete,
        .marks = slots->marks,
        .submissions = c->submissions,
        .caller_waits = atomic_load_explicit(&context->caller_waits, memory_order_relaxed), /* a counter, as the next two */
        .undeclared = atomic_load_explicit(&context->undeclared, memory_order_relaxed),
        .unknown_memory = atomic_load_explicit(&context->unknown_memory, memory_order_relaxed),
        .barriers = window->barriers,
        .window_high = window->window_high,
        .running_high = c->running_high,
        .levels = window->levels,
        .slots_used = core->slots.used,
        .bundles = c->bundles,
        .bundles_refused = c->bundles_refused,
        .launched_unfit = c->launched_unfit,
        .launched_few = c->launched_few,
        .launched_refused = c->launched_refused,
        .copies_as_kernels = c->copies_as_kernels,
        .calls_as_kernels = c->calls_as_kernels,
        .replays = c->replays,
        .replayed = c->replayed,
        .shares = c->shares,
        .shares_ignored = atomic_load_explicit(&context->shares_ignored, memory_order_relaxed), /* a counter */
        .nodes_built = atomic_load_explicit(&context->backend->nodes_built, memory_order_relaxed), /* a counter */
    };
    acs_memory_counts memory = count_memory(context);
    s->memory_live = memory.live;
    s->memory_reserved = memory.reserved;
    s->memory_peak = memory.peak;
    s->memory_obtained = memory.obtained;
    s->memory_moved = memory.moved;
    s->memory_resting = memory.quarantined;
    s->memory_early = memory.early;
    if (context->hooks)
        context->hooks->count(context, s);
    _Static_assert(sizeof s->issued_by == sizeof c->methods, "issue methods of the core and ACS_ISSUE_* are the same");
    memcpy(s->issued_by, c->methods, sizeof s->issued_by);
    acs_lock_release(&core->lock);
    if (!context->activity)
        return;
    const acs_activity_counts a = acs_activity_read(context->activity);
    s->ran_high = a.high;
    s->ran_ns = a.ran_ns;
    s->span_ns = a.span_ns;
    s->idle_ns = a.idle_ns;
}

/* ----------------------------------------------------------------------------------------------------------- report */

static void report_pairs(acs_pairs *pairs)
{
    int shown = 0;
    HASH_SORT(pairs->table, by_count);
    for (const pair *p = pairs->table; p && shown < TUNE_STATISTICS_SHOWN; p = p->hh.next, shown++) {
        const acs_label up = p->key.up, down = p->key.down;
        fprintf(stderr, "acs: stats: %10" PRIu64 " x '%.60s' (%s:%d) waited for '%.60s' (%s:%d)\n", p->count,
                acs_label_name(down), down.site->file ? down.site->file : "?", down.site->line, acs_label_name(up),
                up.site->file ? up.site->file : "?", up.site->line);
    }
}

static void report_methods(const acs_statistics *s)
{
    const uint64_t *by = s->issued_by;
    fprintf(stderr,
            "acs: stats: kernels by launch %" PRIu64 " (unfit %" PRIu64 ", few at once %" PRIu64 ", refused %" PRIu64
            "), replay %" PRIu64 ", resident %" PRIu64 "; %" PRIu64 " bundles, %" PRIu64 " refused; %" PRIu64
            " copies and fills, %" PRIu64 " library calls as kernels; %" PRIu64 " nodes of graphs built\n",
            by[ACS_ISSUE_LAUNCH], s->launched_unfit, s->launched_few, s->launched_refused,
            by[ACS_ISSUE_REPLAY], by[ACS_ISSUE_RESIDENT], s->bundles, s->bundles_refused, s->copies_as_kernels,
            s->calls_as_kernels, s->nodes_built);
}

/* CPU backends know which ops run. For a device it is only known which ops could be running. */
static void report_activity(const acs_context *context, const acs_statistics *s)
{
    const bool known = context->backend->ops->tells_running;
    const uint64_t busy_ns = s->span_ns - s->idle_ns;
    fprintf(stderr,
            "acs: stats: %s at once: at most %" PRIu64 ", on average %.2f while any did; %.6f s from the first begin to the "
            "last end, in %s%.1f %% of which nothing ran\n",
            known ? "ran" : "could run", s->ran_high, busy_ns ? (double)s->ran_ns / (double)busy_ns : 0,
            (double)s->span_ns / 1e9, known ? "" : "at least ",
            s->span_ns ? 100 * (double)s->idle_ns / (double)s->span_ns : 0);
}

void acs_stats_report(acs_context *context)
{
    acs_statistics s;
    acs_stats_read(context, &s);
    double possible = s.levels ? (double)s.retired / (double)s.levels : 0;
    fprintf(stderr,
            "acs: stats: %" PRIu64 " ops (%" PRIu64 " kernels, %" PRIu64 " copies, %" PRIu64 " fills, %" PRIu64
            " host functions, %" PRIu64 " calls), %" PRIu64 " failed, %" PRIu64 " skipped\n",
            s.retired, s.kernels, s.copies, s.fills, s.host_functions, s.calls, s.failed, s.skipped);
    fprintf(stderr,
            "acs: stats: width possible %.1f (longest chain %" PRIu64 "); at most %" PRIu64
            " ops issued and not ended, queued ones included, in %" PRIu64 " slots\n",
            possible, s.levels, s.running_high, s.slots_used);
    report_activity(context, &s);
    fprintf(stderr,
            "acs: stats: %" PRIu64 " edges, %" PRIu64 " joins; waits: %" PRIu64 " by slot order, %" PRIu64 " sent, %" PRIu64
            " implied, %" PRIu64 " complete; %" PRIu64 " marks, %" PRIu64 " submissions, %" PRIu64 " full FIFO\n",
            s.edges, s.joins, s.same_slot, s.waits_sent, s.waits_implied, s.waits_complete, s.marks, s.submissions,
            s.caller_waits);
    report_methods(&s);
    if (s.replays || s.unmatched)
        fprintf(stderr, "acs: stats: repeats: %" PRIu64 " kernels in %" PRIu64 " replays; %" PRIu64 " by themselves\n",
                s.replayed, s.replays, s.unmatched);
    if (s.shares || s.shares_ignored)
        fprintf(stderr, "acs: stats: shares: %" PRIu64 " kernels on a part of a GPU; %" PRIu64 " had all of the device\n",
                s.shares, s.shares_ignored);
    if (s.not_run)
        fprintf(stderr, "acs: stats: %" PRIu64 " ops did not run, since a word on the device said so\n", s.not_run);
    if (s.undeclared || s.unknown_memory)
        fprintf(stderr, "acs: stats: ops that might touch anything: %" PRIu64 " of kernels without a declaration, %" PRIu64
                " for whole allocations that nobody knows\n", s.undeclared, s.unknown_memory);
    if (context->hooks)
        context->hooks->report(context, &s);
    if (s.retired && possible < 1.25)
        fprintf(stderr, "acs: stats: width %.1f: little to gain here\n", possible);
    report_pairs(context->pairs);
}
