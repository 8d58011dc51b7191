/*
 * Compares the search with two that leave out less: with sleep sets alone, which must come to as many executions, since
 * both run each order of dependent operations once; and, where a scenario is small enough, with one that runs all
 * interleavings and all reads, which must end in the same contents of memory. Called by main.c.
 */
#include "internal.h"
#include "scenarios.h"

#include <stdio.h>

static void print(const char *how, const model_result *r, bool same)
{
    if (r->complete && !r->failed)
        printf("%s %9llu, %s; ", how, (unsigned long long)r->executions, same ? "the same" : "NOT THE SAME");
    else
        printf("%s too many; ", how);
}

/* 1: they differ. */
static int compare(const model_scenario *scenario, uint64_t most)
{
    static model_result reduced, asleep, all;
    model_limits limits = {.executions = most, .preemptions = -1, .quiet = true, .states = true};
    explore(scenario, &limits, &reduced);
    limits.reduction = MODEL_SLEEP_SETS;
    explore(scenario, &limits, &asleep);
    limits.reduction = MODEL_NO_REDUCTION;
    explore(scenario, &limits, &all);
    bool same_asleep = !asleep.complete || (reduced.executions == asleep.executions && reduced.states == asleep.states &&
                                            reduced.outcomes == asleep.outcomes);
    bool same_all = !all.complete || (reduced.states == all.states && reduced.outcomes == all.outcomes);
    printf("%-18s executions %7llu, states %2llu; ", scenario->name, (unsigned long long)reduced.executions,
           (unsigned long long)reduced.states);
    print("sleep sets alone", &asleep, same_asleep);
    print("no reduction", &all, same_all);
    printf("\n");
    fflush(stdout);
    return reduced.failed || asleep.failed || all.failed || !same_asleep || !same_all;
}

int compare_reduction(uint64_t most)
{
    int bad = 0;
    for (uint32_t i = 0; g_scenarios[i]; i++) {
        g_scenario = i;
        if (g_scenarios[i]->fails)
            continue;
        if (!g_scenarios[i]->preemptions)
            bad += compare(g_scenarios[i], most);
    }
    return bad;
}
