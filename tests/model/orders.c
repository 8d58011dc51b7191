/*
 * Weakens each memory order of the sources under test in turn and looks for a scenario that notices: an order that no
 * scenario misses is either not needed or not tested. The sites are those that scenarios reach, so that one added to the
 * library is found by itself. Called by main.c; changes no source, only the order that the machine goes by.
 */
#include "internal.h"
#include "scenarios.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Orders whose loss no scenario can show, and why. A row that is not true any more is an error too. */
static const struct unneeded {
    const char *file, *function, *text;
    model_kind kind;
    bool fail_order;
    const char *why;
} g_unneeded[] = {
    {"record.c", "stack_pop_hint", "&stack->top", MODEL_CAS, false,
     "not needed: the tag says that it reads the store that the load acquired; C11 wants no less than on failure"},
    {"eventcount.c", "acs_eventcount_prepare_wait", "&eventcount->waiters", MODEL_ADD, false,
     "not needed: the fence behind it orders it"},
    {"issue_queue.c", "give", "&r->head", MODEL_LOAD, false,
     "not noticed: the scenario finds its slot idle before, which acquires too; else it would wait for a thread"},
    /* Two flags that say all there is to know: nothing is read through them. */
    {"threads.c", "has_host_thread", "&context->host_thread", MODEL_LOAD, false, "not needed: no data goes with it"},
    {"threads.c", "acs_host_thread_start", "&context->host_thread", MODEL_CAS, false,
     "not needed: no data goes with it"},
    {"threads.c", "acs_host_thread_start", "&context->host_thread", MODEL_STORE, false,
     "not needed: thread_count is read by acs_close alone, after all calls"},
    {"threads.c", "stopping", "&context->stop", MODEL_LOAD, false,
     "not needed: the worker ends, and reads nothing more"},
    {"threads.c", "acs_workers_stop", "&context->stop", MODEL_STORE, false,
     "not needed: the worker ends, and reads nothing more"},
    {"thread.c", "stand_in_if_needed", "&g_main_left", MODEL_LOAD, false,
     "not noticed: the main thread ends in no scenario"},
    {"thread.c", "run", "&g_threads", MODEL_ADD, false, "not noticed: the main thread ends in no scenario"},
    {"thread.c", "acs_thread_create", "&g_threads", MODEL_ADD, false, "not noticed: the main thread ends in no scenario"},
};

static const char *file_of(const model_site *site)
{
    const char *slash = strrchr(site->file, '/');
    return slash ? slash + 1 : site->file;
}

static const char *why_unneeded(const model_site *site, bool fail_order)
{
    for (size_t i = 0; i < sizeof g_unneeded / sizeof *g_unneeded; i++) {
        const struct unneeded *u = &g_unneeded[i];
        if (!strcmp(u->file, file_of(site)) && !strcmp(u->function, site->function) && !strcmp(u->text, site->text) &&
            u->kind == site->kind && u->fail_order == fail_order)
            return u->why;
    }
    return NULL;
}

static int bound_of(const model_scenario *scenario)
{
    return scenario->preemptions ? scenario->preemptions : -1;
}

/* The scenario that fails with this order weakened, or NULL. */
static const model_scenario *notices(const model_site *site, bool fail_order, uint64_t most, model_result *result)
{
    const model_scenario *found = NULL;
    g_weakened = (model_weakened){site, fail_order};
    uint64_t reached = site->scenarios; /* weakened runs do not come to more */
    for (uint32_t i = 0; g_scenarios[i] && !found; i++) {
        if (!(reached & 1ull << i) || g_scenarios[i]->fails)
            continue;
        model_limits limits = {.executions = most, .preemptions = bound_of(g_scenarios[i]), .quiet = true};
        g_scenario = i;
        explore(g_scenarios[i], &limits, result);
        found = result->failed ? g_scenarios[i] : NULL;
    }
    g_weakened = (model_weakened){NULL, false};
    return found;
}

static bool check_order(const model_site *site, bool fail_order, uint64_t most)
{
    static model_result result;
    int order = fail_order ? site->fail_order : site->order;
    const char *why = why_unneeded(site, fail_order);
    const model_scenario *by = notices(site, fail_order, most, &result);
    printf("%s:%d %s, %s%s: ", file_of(site), site->line, site->text, order_name(order),
           fail_order ? " on failure" : "");
    if (by)
        printf("%s, execution %llu: %s%s\n", by->name, (unsigned long long)(result.executions + result.redundant + 1),
               result.text, why ? "  WRONG: listed as not needed" : "");
    else
        printf("%s\n", why ? why : "NOT NOTICED");
    fflush(stdout);
    return !by == !!why;
}

static int compare_sites(const void *a, const void *b)
{
    const model_site *const *x = a, *const *y = b;
    int files = strcmp((*x)->file, (*y)->file);
    return files ? files : (*x)->line - (*y)->line;
}

int weaken_orders(uint64_t most)
{
    static const model_site *sites[256];
    uint32_t count = 0, checked = 0;
    int bad = 0;
    for (uint32_t i = 0; g_scenarios[i]; i++) {
        static model_result result;
        model_limits limits = {.executions = 1000, .preemptions = bound_of(g_scenarios[i]), .quiet = true};
        g_scenario = i;
        explore(g_scenarios[i], &limits, &result);
        bad += result.failed != g_scenarios[i]->fails;
    }
    for (const model_site *site = g_sites; site && count < 256; site = site->next)
        if (site->kind <= MODEL_FENCE && strncmp(file_of(site), "scenario_", 9) != 0)
            sites[count++] = site;
    qsort(sites, count, sizeof *sites, compare_sites);
    for (uint32_t i = 0; i < count; i++)
        for (int failed = 0; failed < 2; failed++)
            if ((failed ? sites[i]->fail_order : sites[i]->order) > memory_order_relaxed) {
                checked++;
                bad += !check_order(sites[i], failed, most);
            }
    printf("%u orders stronger than relaxed at %u sites; %d not as expected\n", checked, count, bad);
    return bad;
}
