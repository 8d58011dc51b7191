/*
 * Owns the record of one context's run: an array of ops by number, one of bundles, one of waits; filled by the hook, which
 * the library calls under its lock, and by the thread that waits. Called by benchmarks; tells nothing to the library.
 */
#include "timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"

enum { LANE_WAITS = 1000, NOT_IN_A_BUNDLE = -1 };

/* Times since the start in ns; 0: never. */
typedef struct op_times {
    uint64_t inserted, issued, ended;
    const acs_site *site;
    int32_t slot;
    int32_t bundle;
} op_times;

typedef struct bundle_times {
    uint64_t formed, first_end, last_end;
    uint32_t ops;
    int32_t slot;
} bundle_times;

typedef struct wait_times {
    uint64_t begun, over;
    acs_op op;
} wait_times;

struct bench_timeline {
    size_t most, waits_most;
    acs_op first, newest;  /* number of the op that ops[0] is of */
    uint64_t start;
    op_times *ops;
    bundle_times *bundles;
    wait_times *waits;
    size_t bundle_count, wait_count;
};

/* ---------------------------------------------------------------------------------------------------------- recording */

static uint64_t now(const bench_timeline *t)
{
    return acs_clock_ns() - t->start + 1;
}

static void note_issue(bench_timeline *t, op_times *op, const acs_trace_event *event)
{
    op->issued = now(t);
    op->slot = event->slot;
    if (!event->bundle)
        return;
    if (event->item == 0 && t->bundle_count < t->most)
        t->bundles[t->bundle_count++] = (bundle_times){.formed = op->issued, .slot = event->slot};
    op->bundle = (int32_t)t->bundle_count - 1;
    t->bundles[op->bundle].ops++;
}

static void note_end(bench_timeline *t, op_times *op)
{
    op->ended = now(t);
    if (op->bundle == NOT_IN_A_BUNDLE)
        return;
    bundle_times *bundle = &t->bundles[op->bundle];
    if (!bundle->first_end)
        bundle->first_end = op->ended;
    bundle->last_end = op->ended;
}

static void on_event(void *user, const acs_trace_event *event)
{
    bench_timeline *t = user;
    if (event->seq < t->first || event->seq - t->first >= t->most)
        return;
    op_times *op = &t->ops[event->seq - t->first];
    t->newest = event->seq > t->newest ? event->seq : t->newest;
    switch (event->type) {
    case ACS_TRACE_INSERT:
        *op = (op_times){.inserted = now(t), .site = event->op->site, .slot = -1, .bundle = NOT_IN_A_BUNDLE};
        break;
    case ACS_TRACE_ISSUE:
        if (op->bundle != NOT_IN_A_BUNDLE) /* it was refused */
            t->bundles[op->bundle].ops--;
        op->bundle = NOT_IN_A_BUNDLE;
        note_issue(t, op, event);
        break;
    case ACS_TRACE_BOOK:
        break;
    case ACS_TRACE_RETIRE:
        note_end(t, op);
        break;
    }
}

bench_timeline *bench_timeline_open(acs_context *context, size_t ops)
{
    bench_timeline *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->most = t->waits_most = ops;
    t->first = 1;
    t->start = acs_clock_ns();
    t->ops = calloc(ops, sizeof *t->ops);
    t->bundles = calloc(ops, sizeof *t->bundles);
    t->waits = calloc(ops, sizeof *t->waits);
    if (!t->ops || !t->bundles || !t->waits) {
        bench_timeline_close(t);
        return NULL;
    }
    if (acs_trace_add(&context->core, on_event, t))
        return t;
    bench_timeline_close(t);
    return NULL;
}

void bench_timeline_close(bench_timeline *t)
{
    if (!t)
        return;
    free(t->ops);
    free(t->bundles);
    free(t->waits);
    free(t);
}

void bench_timeline_restart(bench_timeline *t)
{
    t->first = t->newest + 1;
    t->bundle_count = t->wait_count = 0;
    t->start = acs_clock_ns();
}

void bench_timeline_wait_begins(bench_timeline *t, acs_op op)
{
    if (t->wait_count < t->waits_most)
        t->waits[t->wait_count] = (wait_times){.begun = now(t), .op = op};
}

void bench_timeline_wait_ends(bench_timeline *t)
{
    if (t->wait_count < t->waits_most)
        t->waits[t->wait_count++].over = now(t);
}

/* ---------------------------------------------------------------------------------------------------------- reporting */

static size_t op_count(const bench_timeline *t)
{
    size_t count = t->newest < t->first ? 0 : (size_t)(t->newest - t->first + 1);
    return count < t->most ? count : t->most;
}

/* A sample of durations, in ns. */
typedef struct sample {
    uint64_t *ns;
    size_t count;
} sample;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void add(sample *s, uint64_t from, uint64_t to)
{
    s->ns[s->count++] = to > from ? to - from : 0;
}

static void print(FILE *to, const char *what, sample *s)
{
    uint64_t sum = 0;
    if (s->count) {
        qsort(s->ns, s->count, sizeof *s->ns, compare);
        for (size_t i = 0; i < s->count; i++)
            sum += s->ns[i];
        fprintf(to, "  %-52s %8zu  %9.1f  %9.1f  %9.1f  %11.1f\n", what, s->count, (double)s->ns[s->count / 2] / 1000,
                (double)s->ns[s->count * 9 / 10] / 1000, (double)s->ns[s->count - 1] / 1000, (double)sum / 1000);
    }
    s->count = 0;
}

static void report_ops(const bench_timeline *t, FILE *to, sample *s)
{
    size_t count = op_count(t);
    for (size_t i = 0; i < count; i++)
        if (t->ops[i].issued)
            add(s, t->ops[i].inserted, t->ops[i].issued);
    print(to, "op: in the window until issued", s);
    static const char *const what[] = {"op by itself: issued until known to have ended",
                                       "op of a bundle: issued until known to have ended"};
    for (int bundled = 0; bundled < 2; bundled++) {
        for (size_t i = 0; i < count; i++)
            if (t->ops[i].issued && t->ops[i].ended && (t->ops[i].bundle != NOT_IN_A_BUNDLE) == bundled)
                add(s, t->ops[i].issued, t->ops[i].ended);
        print(to, what[bundled], s);
    }
}

static void report_bundles(const bench_timeline *t, FILE *to, sample *s)
{
    static const uint32_t least[] = {0, 17, 33, 65, 129, UINT32_MAX};
    char what[64];
    for (int k = 0; k < 5; k++) {
        for (size_t b = 0; b < t->bundle_count; b++)
            if (t->bundles[b].ops >= least[k] && t->bundles[b].ops < least[k + 1] && t->bundles[b].last_end)
                add(s, t->bundles[b].formed, t->bundles[b].last_end);
        snprintf(what, sizeof what, "bundle of %" PRIu32 " ops or more: formed until all ended", least[k] ? least[k] : 1);
        print(to, what, s);
    }
    for (size_t b = 0; b < t->bundle_count; b++)
        if (t->bundles[b].first_end)
            add(s, t->bundles[b].formed, t->bundles[b].first_end);
    print(to, "bundle: formed until its first op is known", s);
}

/* Of each wait: until the op was issued, from then until the library knew its end, from then until the program went on. */
static void report_waits(const bench_timeline *t, FILE *to, sample *s)
{
    static const char *const parts[] = {"wait: all of it", "wait: until the op is issued", "wait: from there to its end",
                                        "wait: from its end until the program goes on"};
    for (int part = 0; part < 4; part++) {
        for (size_t i = 0; i < t->wait_count; i++) {
            const wait_times *w = &t->waits[i];
            const op_times *op = w->op >= t->first && w->op - t->first < t->most ? &t->ops[w->op - t->first] : NULL;
            uint64_t issued = op && op->issued > w->begun ? op->issued : w->begun;
            uint64_t ended = op && op->ended > issued ? op->ended : issued;
            const uint64_t at[] = {w->begun, issued, ended, w->over};
            if (part == 0)
                add(s, w->begun, w->over);
            else
                add(s, at[part - 1], at[part]);
        }
        print(to, parts[part], s);
    }
}

/* Time with nothing, one, two ... units under way; a unit is a bundle, or an op that is in none. */
static void report_overlap(const bench_timeline *t, FILE *to)
{
    size_t count = op_count(t), changes = 0;
    uint64_t *at = calloc(2 * (t->bundle_count + count) + 1, sizeof *at);
    uint64_t by[9] = {0}, all = 0;
    if (!at)
        return;
    /* The lowest bit: a beginning. */
    for (size_t b = 0; b < t->bundle_count; b++)
        if (t->bundles[b].last_end) {
            at[changes++] = t->bundles[b].formed << 1 | 1;
            at[changes++] = t->bundles[b].last_end << 1;
        }
    for (size_t i = 0; i < count; i++)
        if (t->ops[i].bundle == NOT_IN_A_BUNDLE && t->ops[i].issued && t->ops[i].ended) {
            at[changes++] = t->ops[i].issued << 1 | 1;
            at[changes++] = t->ops[i].ended << 1;
        }
    qsort(at, changes, sizeof *at, compare);
    for (size_t i = 0, under_way = 0; i + 1 < changes; i++) {
        under_way += at[i] & 1 ? 1 : (size_t)-1;
        uint64_t ns = (at[i + 1] >> 1) - (at[i] >> 1);
        by[under_way < 8 ? under_way : 8] += ns;
        all += ns;
    }
    fprintf(to, "  units under way (bundles, and ops in none), per cent of the time: ");
    for (int k = 0; k < 9; k++)
        fprintf(to, "%s%d%s: %.1f", k ? ", " : "", k, k == 8 ? " or more" : "", all ? 100 * (double)by[k] / (double)all : 0);
    fprintf(to, "\n");
    free(at);
}

void bench_timeline_report(const bench_timeline *t, FILE *to)
{
    size_t count = op_count(t), bundled = 0, bundles = 0;
    uint64_t last = 0;
    sample s = {calloc(count + t->bundle_count + t->wait_count + 1, sizeof *s.ns), 0};
    if (!s.ns)
        return;
    for (size_t i = 0; i < count; i++) {
        bundled += t->ops[i].bundle != NOT_IN_A_BUNDLE;
        last = t->ops[i].ended > last ? t->ops[i].ended : last;
    }
    for (size_t b = 0; b < t->bundle_count; b++)
        bundles += t->bundles[b].ops > 0;
    fprintf(to, "timeline      %zu ops in %.1f us, %zu of them in %zu bundles\n", count, (double)last / 1000, bundled,
            bundles);
    fprintf(to, "  %-52s %8s  %9s  %9s  %9s  %11s\n", "us", "number", "median", "p90", "most", "sum");
    report_ops(t, to, &s);
    report_bundles(t, to, &s);
    report_waits(t, to, &s);
    report_overlap(t, to);
    free(s.ns);
}

/* ------------------------------------------------------------------------------------------------------------ writing */

static void write_span(FILE *to, const char *name, int lane, uint64_t from, uint64_t until, const char *what, uint64_t value)
{
    fprintf(to, ",\n{\"name\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, "
                "\"args\": {\"%s\": %" PRIu64 "}}",
            name, lane, (double)from / 1000, (double)(until - from) / 1000, what, value);
}

bool bench_timeline_write(const bench_timeline *t, FILE *to)
{
    size_t count = op_count(t);
    fprintf(to, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
                "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"ACS, by slot\"}}");
    for (size_t b = 0; b < t->bundle_count; b++)
        if (t->bundles[b].last_end)
            write_span(to, "bundle", t->bundles[b].slot, t->bundles[b].formed, t->bundles[b].last_end, "ops",
                       t->bundles[b].ops);
    for (size_t i = 0; i < count; i++)
        if (t->ops[i].bundle == NOT_IN_A_BUNDLE && t->ops[i].issued && t->ops[i].ended)
            write_span(to, t->ops[i].site->name, t->ops[i].slot, t->ops[i].issued, t->ops[i].ended, "op", t->first + i);
    for (size_t i = 0; i < t->wait_count; i++)
        write_span(to, "the program waits", LANE_WAITS, t->waits[i].begun, t->waits[i].over, "op", t->waits[i].op);
    fprintf(to, "\n]}\n");
    return fflush(to) == 0 && !ferror(to);
}
