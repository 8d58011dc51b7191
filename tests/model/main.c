/*
 * The explorer's command line: runs scenarios and prints what was explored, replays one execution, weakens memory orders
 * to see that a scenario notices. Decides nothing about executions.
 */
#include "internal.h"
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDER_EXECUTIONS = 1500, REDUCTION_EXECUTIONS = 8000 };

typedef struct options {
    const char *scenario, *replay;
    bool all, expect_failure, orders, reduction;
    long long executions;
    int preemptions;
} options;

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static int bound_of(const model_scenario *s, const options *o)
{
    if (o->preemptions >= 0)
        return o->preemptions;
    return o->all || o->replay || !s->preemptions ? -1 : s->preemptions;
}

static bool run_one(const model_scenario *s, const options *o)
{
    static model_result r;
    model_limits limits = {.executions = o->executions >= 0 ? (uint64_t)o->executions : o->all ? 0 : s->most,
                           .preemptions = bound_of(s, o),
                           .replay = o->replay,
                           .quiet = s->fails && !o->scenario};
    double start = cpu_seconds();
    explore(s, &limits, &r);
    double seconds = cpu_seconds() - start;
    bool missing = r.complete && !r.failed && !o->replay && s->outcomes && r.outcomes != s->outcomes;
    char how[32] = "exhaustive";
    if (r.failed || o->replay)
        snprintf(how, sizeof how, r.failed ? s->fails || o->expect_failure ? "found" : "FAILED" : "replayed");
    else if (!r.complete)
        snprintf(how, sizeof how, limits.preemptions < 0 || r.cut_off ? "cut off" : "preempt <= %d", limits.preemptions);
    printf("%-18s %7d %12llu %11llu %8u  %-13s %7.2f s  %s\n", s->name, r.threads,
           (unsigned long long)r.executions, (unsigned long long)r.redundant, r.longest, how, seconds, s->what);
    if (r.failed && !limits.quiet)
        printf("%s: %s\n  replay: --scenario %s --replay %s\n", s->name, r.text, s->name, r.replay);
    if (missing)
        printf("%s: outcomes %#llx were not seen\n", s->name, (unsigned long long)(s->outcomes & ~r.outcomes));
    fflush(stdout);
    return r.failed == (o->expect_failure || s->fails) && !missing;
}

static int run_scenarios(const options *o)
{
    int bad = 0, found = 0;
    printf("%-18s %7s %12s %11s %8s  %-13s %9s\n", "scenario", "threads", "executions", "cut short", "longest", "",
           "time");
    for (const model_scenario *const *s = g_scenarios; *s; s++) {
        if (o->scenario && strcmp((*s)->name, o->scenario) != 0)
            continue;
        found++;
        g_scenario = (uint32_t)(s - g_scenarios);
        bad += !run_one(*s, o);
    }
    if (!found)
        printf("there is no scenario '%s'\n", o->scenario);
    return bad || !found;
}

static _Noreturn void usage(const char *what)
{
    fprintf(stderr, "model_check: %s\n"
                    "usage: model_check [--scenario NAME] [--all | --executions N] [--preemptions N] [--replay STEPS]\n"
                    "                   [--expect-failure]\n"
                    "       model_check --orders | --reduction [--executions N]\n", what);
    exit(2);
}

static long long number(const char *text, const char *option)
{
    char *end;
    long long n = text ? strtoll(text, &end, 10) : -1;
    if (n < 0 || *end)
        usage(option);
    return n;
}

int main(int argc, char **argv)
{
    options o = {.executions = -1, .preemptions = -1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--all"))
            o.all = true;
        else if (!strcmp(argv[i], "--expect-failure"))
            o.expect_failure = true;
        else if (!strcmp(argv[i], "--orders"))
            o.orders = true;
        else if (!strcmp(argv[i], "--reduction"))
            o.reduction = true;
        else if (!strcmp(argv[i], "--scenario") && value)
            o.scenario = argv[++i];
        else if (!strcmp(argv[i], "--replay") && value)
            o.replay = argv[++i];
        else if (!strcmp(argv[i], "--executions"))
            o.executions = number(argv[++i], "--executions wants a number");
        else if (!strcmp(argv[i], "--preemptions"))
            o.preemptions = (int)number(argv[++i], "--preemptions wants a number");
        else
            usage(argv[i]);
    }
    if (o.replay && !o.scenario)
        usage("--replay wants --scenario");
    arena_init();
    if (o.orders)
        return weaken_orders(o.executions >= 0 ? (uint64_t)o.executions : ORDER_EXECUTIONS) != 0;
    if (o.reduction)
        return compare_reduction(o.executions >= 0 ? (uint64_t)o.executions : REDUCTION_EXECUTIONS) != 0;
    return run_scenarios(&o);
}
