/*
 * Programs whose only conflict is a RAW, a WAR or a WAW, run with every seed of a range on the sim backend and on CPU
 * threads, compared with serial execution and checked by checker.c. Before that, recorded runs made by hand, right ones
 * and wrong ones, show that the checker can tell them apart. Plain C, no cmocka.
 */
#include "../sanitizers.h"
#include "checker.h"

#include "api/context.h"

#include <stdio.h>
#include <string.h>

static int g_failures;

static void expect(bool good, const char *name, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "FAILED: %s: %s\n", name, text);
    g_failures++;
}

/* ------------------------------------------------------------------------------------------------ runs made by hand */

static const acs_site g_site = {"op", __FILE__, __LINE__};

static void event(checker *c, acs_trace_type type, acs_op seq, int slot, uint64_t value, const acs_mark *wait)
{
    acs_trace_event e = {.type = type, .seq = seq, .slot = slot, .value = value, .waits = wait, .wait_count = wait != NULL};
    checker_event(c, &e);
}

static void insert(checker *c, acs_op seq, acs_segment segment)
{
    acs_record op = {.seq = seq, .site = &g_site, .segments = &segment, .segment_count = 1};
    acs_trace_event e = {.type = ACS_TRACE_INSERT, .seq = seq, .op = &op};
    checker_event(c, &e);
}

static void issue(checker *c, acs_op seq, int slot, uint64_t value, const acs_mark *wait)
{
    event(c, ACS_TRACE_ISSUE, seq, slot, value, wait);
}

static void retire(checker *c, acs_op seq, acs_status status)
{
    acs_trace_event e = {.type = ACS_TRACE_RETIRE, .seq = seq, .slot = -1, .status = status};
    checker_event(c, &e);
}

static acs_mark mark(uint16_t slot, uint64_t value)
{
    return (acs_mark){slot, 0, 0, value};
}

/* Judge and destroy. `wrong`: part of the complaint that must come; NULL: none. */
static checker_report judge(checker *c, const char *name, const char *wrong)
{
    checker_report report;
    bool good = checker_verify(c, 8, &report);
    expect(good == (wrong == NULL), name, good ? "the checker found nothing wrong" : report.text);
    if (wrong && !good)
        expect(strstr(report.text, wrong) != NULL, name, report.text);
    checker_destroy(c);
    return report;
}

/* Two ops in two slots with accesses to overlapping tiles; how the second is ordered behind the first. */
typedef enum link { LINK_NONE, LINK_WAIT, LINK_RETIRED, LINK_SLOT, LINK_WAIT_AND_RETIRED } link;

static void judge_two(uint8_t first, uint8_t second, link how, const char *wrong)
{
    char name[80];
    snprintf(name, sizeof name, "two ops, accesses %u and %u, link %d", first, second, how);
    checker *c = checker_create();
    acs_mark wait = mark(0, 1);
    insert(c, 1, ACS_TILE_(first, 1000, 8, 4, 32));
    insert(c, 2, ACS_TILE_(second, 1070, 2, 3, 16)); /* row 0 is in row 2 of the first */
    issue(c, 1, 0, 1, NULL);
    if (how == LINK_RETIRED || how == LINK_WAIT_AND_RETIRED)
        retire(c, 1, ACS_OK);
    issue(c, 2, how == LINK_SLOT ? 0 : 1, how == LINK_SLOT ? 2 : 1,
          how == LINK_WAIT || how == LINK_WAIT_AND_RETIRED ? &wait : NULL);
    if (how == LINK_NONE || how == LINK_WAIT || how == LINK_SLOT)
        retire(c, 1, ACS_OK);
    retire(c, 2, ACS_OK);
    judge(c, name, wrong);
}

static void judge_conflicts(void)
{
    for (uint8_t a = ACS_READ; a <= ACS_UPDATE; a++)
        for (uint8_t b = ACS_READ; b <= ACS_UPDATE; b++) {
            bool reads = a == ACS_READ && b == ACS_READ;
            judge_two(a, b, LINK_NONE, reads ? NULL : "order is missing");
            judge_two(a, b, LINK_WAIT, reads ? "not needed" : NULL);
            judge_two(a, b, LINK_RETIRED, NULL);
            judge_two(a, b, LINK_SLOT, NULL);
            judge_two(a, b, LINK_WAIT_AND_RETIRED, "not needed");
        }
}

/* 1 in slot 0; 2 in slot 1 behind it; 3 in slot 2 behind 2. All touch the same bytes; `middle` is how op 2 ended. */
static void judge_chain(acs_status middle, bool direct_too, const char *wrong)
{
    checker *c = checker_create();
    acs_mark waits[2] = {mark(1, 1), mark(0, 1)};
    acs_mark first = mark(0, 1);
    for (acs_op i = 1; i <= 3; i++)
        insert(c, i, ACS_INOUT(1000, 10));
    issue(c, 1, 0, 1, NULL);
    issue(c, 2, 1, 1, &first);
    acs_trace_event last = {.type = ACS_TRACE_ISSUE, .seq = 3, .slot = 2, .value = 1, .waits = waits,
                            .wait_count = direct_too ? 2 : 1};
    checker_event(c, &last);
    retire(c, 1, ACS_OK);
    retire(c, 2, middle);
    retire(c, 3, ACS_OK);
    judge(c, "a chain over three slots", wrong);
}

/* 2 depends on 1 and fails without being issued; that it ended says nothing of 1 to op 3. */
static void judge_failed_between(void)
{
    checker *c = checker_create();
    for (acs_op i = 1; i <= 3; i++)
        insert(c, i, ACS_INOUT(1000, 10));
    issue(c, 1, 0, 1, NULL);
    retire(c, 2, ACS_ERR_SKIPPED);
    issue(c, 3, 2, 1, NULL);
    retire(c, 1, ACS_OK);
    retire(c, 3, ACS_OK);
    judge(c, "a skipped op between", "order is missing");
}

/* A mark behind a later op than needed: fine if nothing tighter existed. */
static void judge_late_mark(bool earlier_mark, uint64_t late, const char *wrong)
{
    checker *c = checker_create();
    acs_mark wait = mark(0, late), tight = mark(0, 1);
    insert(c, 1, ACS_OUT(1000, 10));
    insert(c, 2, ACS_OUT(2000, 10));
    insert(c, 3, ACS_IN(1000, 10));
    insert(c, 4, ACS_IN(1005, 10));
    issue(c, 1, 0, 1, NULL);
    issue(c, 2, 0, 2, NULL);
    issue(c, 3, 1, 1, earlier_mark ? &tight : &wait);
    issue(c, 4, 2, 1, &wait);
    for (acs_op i = 1; i <= 4; i++)
        retire(c, i, ACS_OK);
    checker_report report = judge(c, "a late mark", wrong);
    expect(report.late_marks == (wrong || late == 1 ? 0u : 2u), "a late mark", "counted wrongly");
}

static void judge_made_by_hand(void)
{
    judge_conflicts();
    judge_chain(ACS_OK, false, NULL);
    judge_chain(ACS_OK, true, "not needed");
    judge_chain(ACS_ERR_LAUNCH, false, NULL); /* its waits stay in the slot */
    judge_chain(ACS_ERR_LAUNCH, true, "not needed");
    judge_failed_between();
    judge_late_mark(false, 2, NULL);
    judge_late_mark(true, 1, NULL);
    judge_late_mark(true, 2, "later mark");
}

/* ---------------------------------------------------------------------------------------------------- runs of ACS */

enum { BYTES = 96, BUFFERS = 4 };

static void transform(unsigned char *to, const unsigned char *from, unsigned char salt)
{
    for (int i = 0; i < BYTES; i++)
        to[i] = (unsigned char)((from ? from[i] * 5 : i) + salt);
}

static void transform_body(const acs_grid *grid, void *const *args)
{
    (void)grid;
    transform(*(unsigned char *const *)args[0], *(unsigned char *const *)args[1], *(const unsigned char *)args[2]);
}

/* One op: writes buffer `to`, from buffer `from` or from nothing (-1). */
typedef struct plan_op {
    int to, from;
} plan_op;

static const struct plan {
    const char *name;
    plan_op ops[6];
    int count, pairs;
} g_plans[] = {
    {"only a RAW", {{0, -1}, {1, 0}}, 2, 1},
    {"only a WAR", {{1, 0}, {0, -1}}, 2, 1},
    {"only a WAW", {{0, -1}, {0, -1}}, 2, 1},
    {"a RAW among strangers", {{2, -1}, {0, -1}, {3, -1}, {1, 0}}, 4, 1},
    {"a WAR among strangers", {{2, -1}, {1, 0}, {3, -1}, {0, -1}}, 4, 1},
    {"a WAW among strangers", {{2, -1}, {0, -1}, {3, -1}, {0, -1}}, 4, 1},
    {"two WARs", {{1, 0}, {2, 0}, {0, -1}}, 3, 2},
    {"two RAWs", {{0, -1}, {1, 0}, {2, 0}}, 3, 2},
    {"a chain of RAWs", {{0, -1}, {1, 0}, {2, 1}, {3, 2}}, 4, 3},
    {"a diamond", {{0, -1}, {1, 0}, {2, 0}, {1, 2}}, 4, 4},
    {"no conflict", {{0, -1}, {1, -1}, {2, -1}, {3, -1}}, 4, 0},
    {"only readers of one buffer", {{1, 0}, {2, 0}, {3, 0}}, 3, 0}};

static void launch_plan(acs_context *context, const struct plan *plan, unsigned char buffers[BUFFERS][BYTES])
{
    static const acs_kernel kernel = ACS_KERNEL_HOST_INIT("transform", transform_body);
    for (int i = 0; i < plan->count; i++) {
        unsigned char *to = buffers[plan->ops[i].to];
        unsigned char *from = plan->ops[i].from < 0 ? NULL : buffers[plan->ops[i].from];
        unsigned char salt = (unsigned char)(i * 17 + 1);
        ACS_LAUNCH_ON(context, &kernel, 1, 1, 0, ACS_ARGS(to, from, salt),
                      ACS_USES(ACS_OUT(to, BYTES), ACS_IN(from, from ? BYTES : 0)));
    }
}

static void run_plan(const struct plan *plan, const acs_options *options)
{
    unsigned char real[BUFFERS][BYTES], truth[BUFFERS][BYTES];
    acs_context *context = NULL;
    memset(real, 7, sizeof real);
    memset(truth, 7, sizeof truth);
    for (int i = 0; i < plan->count; i++)
        transform(truth[plan->ops[i].to], plan->ops[i].from < 0 ? NULL : truth[plan->ops[i].from],
                  (unsigned char)(i * 17 + 1));
    if (acs_open(options, &context) != ACS_OK) {
        expect(false, plan->name, "acs_open failed");
        return;
    }
    checker *c = checker_create();
    expect(acs_trace_add(&context->core, checker_event, c), plan->name, "the core has too many followers");
    launch_plan(context, plan, real);
    expect(acs_sync(context) == ACS_OK, plan->name, "acs_sync failed");
    expect(acs_close(context) == ACS_OK, plan->name, "acs_close failed");
    expect(memcmp(real, truth, sizeof real) == 0, plan->name, "the bytes are not those of serial execution");
    checker_report report = judge(c, plan->name, NULL);
    expect(report.pairs == (uint64_t)plan->pairs, plan->name, "the checker saw another number of conflicts");
}

static void run_with(acs_options *options, int seeds)
{
    for (size_t p = 0; p < sizeof g_plans / sizeof g_plans[0]; p++)
        for (int seed = 0; seed < seeds && !g_failures; seed++) {
            static const int streams[] = {1, 2, 3, 8};
            static const int batches[] = {1, 2, 16};
            options->seed = seed;
            options->streams = streams[seed % 4];
            options->batch = batches[seed / 4 % 3];
            options->window = seed % 5 == 0 ? 2 : 64;
            run_plan(&g_plans[p], options);
        }
}

int main(void)
{
    acs_options options;
    acs_options_init(&options, sizeof options);
    judge_made_by_hand();
    for (int wait = ACS_WAIT_GPU; wait <= ACS_WAIT_HOST; wait++) {
        options.wait = wait;
        options.backend = ACS_BACKEND_SIM;
        run_with(&options, UNDER_THREAD_SANITIZER ? 12 : 120); /* there one thread plays all */
        options.backend = ACS_BACKEND_HOST;
        options.executors = 2;
        options.spin_us = 0;
        for (int workers = 0; workers <= 2; workers++) {
            options.workers = workers;
            run_with(&options, 12);
        }
    }
    printf("%s\n", g_failures ? "failed" : "all pairs ordered, all wrong runs found");
    return g_failures != 0;
}
