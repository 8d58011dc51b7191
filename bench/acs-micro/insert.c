/*
 * Group "insert": what it costs to find an op's place among the ops in the window, by the window's index and by an
 * all-pairs scan of the same ops, at several window sizes, and again after a long history. The window is kept nearly
 * full: ops retire outside the measured time, then a burst is inserted inside it. Called by main.
 */
#include "allpairs.h"
#include "micro.h"
#include "patterns.h"
#include "window/window.h"

#include <stdio.h>
#include <stdlib.h>

enum { BURST_MAX = 64, HISTORY_WINDOW = 256, HISTORY_SHORT = 10000, HISTORY_LONG = 1000000 };
enum { SCAN_BURSTS = 200, SCAN_NS_MAX = 300000000 };

static const uint32_t g_windows[] = {32, 256, 1024, 4096};

/* Recurring patterns come round to the same bytes a little after the ops that named them before have retired. */
static uint32_t period_of(uint32_t limit)
{
    return 2 * limit;
}

/* A window, the ops that go through it, and how far the program has come. */
typedef struct stage {
    const pattern *pattern;
    uint32_t limit, burst;
    uint64_t op;
    acs_window window;
    acs_record *records;   /* of the ops in the window, and spare ones: */
    acs_segment *segments; /* SEGMENTS for each record */
    acs_record **spare;
    uint32_t spare_count;
} stage;

static void stage_close(stage *s)
{
    acs_window_fini(&s->window);
    free(s->records);
    free(s->segments);
    free(s->spare);
}

static bool stage_open(stage *s, const pattern *p, uint32_t limit)
{
    acs_window_config config = {.limit = limit, .slots = 8};
    uint32_t records = limit + BURST_MAX;
    *s = (stage){.pattern = p, .limit = limit, .burst = limit / 4 < BURST_MAX ? limit / 4 : BURST_MAX};
    s->records = calloc(records, sizeof *s->records);
    s->segments = calloc((size_t)records * SEGMENTS, sizeof *s->segments);
    s->spare = calloc(records, sizeof *s->spare);
    if (acs_window_init(&s->window, &config) != ACS_OK || !s->records || !s->segments || !s->spare) {
        stage_close(s);
        return false;
    }
    static const acs_site site = {"insert", __FILE__, __LINE__};
    for (uint32_t i = 0; i < records; i++) {
        s->records[i].site = &site;
        s->records[i].segments = &s->segments[(size_t)i * SEGMENTS];
        s->records[i].segment_count = p->segments;
        s->spare[s->spare_count++] = &s->records[i];
    }
    return true;
}

/* Retire ops, the oldest ready ones first, until so many are left; each as if it ran in a slot of its own. */
static void stage_retire(stage *s, uint32_t left)
{
    acs_entry *entry;
    while (s->window.live > left && (entry = acs_window_pop_ready(&s->window))) {
        entry->state = ACS_ENTRY_ISSUING;
        acs_window_issued(&s->window, entry);
        acs_window_end(&s->window, entry, ACS_OK, 0);
        while ((entry = acs_window_pop_ended(&s->window))) {
            s->spare[s->spare_count++] = entry->op;
            acs_window_free(&s->window, entry);
        }
    }
}

/* Make room for a burst and insert it; only that is timed. Returns how many went in: room for edges may be short. */
static uint32_t stage_burst(stage *s, uint64_t *ns)
{
    static const acs_entry_traits traits = {0};
    acs_record *ops[BURST_MAX];
    uint32_t inserted = 0;

    stage_retire(s, s->limit - s->burst);
    for (uint32_t i = 0; i < s->burst; i++) {
        ops[i] = s->spare[s->spare_count - 1 - i];
        ops[i]->seq = ++s->op;
        s->pattern->make(ops[i]->seq, period_of(s->limit), ops[i]->segments);
    }
    uint64_t start = acs_clock_ns();
    while (inserted < s->burst && acs_window_has_room(&s->window, ops[inserted]))
        (void)acs_window_insert(&s->window, ops[inserted++], &traits);
    *ns = acs_clock_ns() - start;

    s->spare_count -= inserted;
    s->op -= s->burst - inserted;
    if (inserted < s->burst)
        stage_retire(s, s->window.live / 2);
    return inserted;
}

static void stage_run_to(stage *s, uint64_t op)
{
    uint64_t ns;
    while (s->op < op)
        (void)stage_burst(s, &ns);
}

static double stage_measure(stage *s, const micro_options *options, const char *name)
{
    static micro_samples samples;
    uint64_t edges = s->window.counters.edges, op = s->op, ns;
    micro_samples_clear(&samples);
    while (!micro_samples_full(&samples, options)) {
        uint32_t inserted = stage_burst(s, &ns);
        micro_samples_add(&samples, ns, inserted);
    }
    return micro_figure("insert", name, &samples, (double)(s->window.counters.edges - edges) / (double)(s->op - op));
}

/* The same bursts through the scan; fewer of them where it is slow. Negative: no memory. */
static double scan_measure(const pattern *p, uint32_t limit, const micro_options *options, const char *name)
{
    static micro_samples samples;
    acs_segment ops[BURST_MAX][SEGMENTS];
    uint32_t burst = limit / 4 < BURST_MAX ? limit / 4 : BURST_MAX;
    uint64_t op = 0, edges = 0, total_ns = 0, counted = 0;
    allpairs *scan = allpairs_create(limit);
    if (!scan)
        return -1;
    micro_samples_clear(&samples);
    while (samples.count < SCAN_BURSTS && !micro_samples_full(&samples, options) && total_ns < SCAN_NS_MAX) {
        bool full = allpairs_live(scan) + burst > limit;
        for (uint32_t i = 0; full && i < burst; i++)
            allpairs_retire(scan);
        for (uint32_t i = 0; i < burst; i++)
            p->make(++op, period_of(limit), ops[i]);
        uint64_t found = 0, start = acs_clock_ns();
        for (uint32_t i = 0; i < burst; i++)
            found += allpairs_insert(scan, ops[i]);
        uint64_t ns = acs_clock_ns() - start;
        if (!full)
            continue; /* the window is filling */
        micro_samples_add(&samples, ns, burst);
        total_ns += ns;
        edges += found;
        counted += burst;
    }
    allpairs_destroy(scan);
    return micro_figure("insert", name, &samples, counted ? (double)edges / (double)counted : 0);
}

/* One pattern at every window size, beside the scan. */
static bool sizes(const pattern *p, const micro_options *options)
{
    char name[MICRO_NAME_BYTES];
    double first = 0;
    for (size_t i = 0; i < sizeof g_windows / sizeof *g_windows; i++) {
        uint32_t limit = g_windows[i];
        stage s;
        if (options->quick && limit > 256)
            break;
        if (!stage_open(&s, p, limit))
            return false;
        stage_run_to(&s, HISTORY_SHORT + 4 * limit);
        snprintf(name, sizeof name, "%s, window %u, index", p->name, limit);
        double index = stage_measure(&s, options, name);
        stage_close(&s);
        snprintf(name, sizeof name, "%s, window %u, all pairs", p->name, limit);
        double scan = scan_measure(p, limit, options, name);
        if (scan < 0)
            return false;
        snprintf(name, sizeof name, "%s, window %u: all pairs / index", p->name, limit);
        micro_ratio(name, scan, index);
        first = i == 0 ? index : first;
        snprintf(name, sizeof name, "%s: window %u / window %u", p->name, limit, g_windows[0]);
        if (i > 0)
            micro_ratio(name, index, first);
    }
    return true;
}

/* One pattern in one window, early and late. */
static bool history(const pattern *p, const micro_options *options)
{
    char name[MICRO_NAME_BYTES];
    uint64_t late = options->quick ? 10 * HISTORY_SHORT : HISTORY_LONG;
    stage s;
    if (!stage_open(&s, p, HISTORY_WINDOW))
        return false;
    stage_run_to(&s, HISTORY_SHORT);
    snprintf(name, sizeof name, "%s, window %d, after %d ops", p->name, HISTORY_WINDOW, HISTORY_SHORT);
    double first = stage_measure(&s, options, name);
    stage_run_to(&s, late);
    snprintf(name, sizeof name, "%s, window %d, after %llu ops", p->name, HISTORY_WINDOW, (unsigned long long)late);
    double last = stage_measure(&s, options, name);
    snprintf(name, sizeof name, "%s: after %llu ops / after %d", p->name, (unsigned long long)late, HISTORY_SHORT);
    micro_ratio(name, last, first);
    stage_close(&s);
    return true;
}

int micro_insert(const micro_options *options)
{
    bool good = true;
    for (uint32_t i = 0; good && i < micro_pattern_count; i++)
        good = sizes(&micro_patterns[i], options);
    for (uint32_t i = 0; good && i < micro_pattern_count; i++)
        good = history(&micro_patterns[i], options);
    if (!good)
        fprintf(stderr, "acs-micro: no memory\n");
    return !good;
}
