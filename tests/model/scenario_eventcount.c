/*
 * Scenarios of the eventcounts (src/api/eventcount.c): who announces itself and looks once more is woken by who has news. A
 * lost wake-up is a thread that waits forever, since timed waits never time out here.
 */
#include "scenarios.h"

#include "api/eventcount.h"

#include <stdatomic.h>

static acs_eventcount *g_eventcount;
static _Atomic(uint32_t) *g_news;
static uint32_t *g_told; /* plain: what the news is about */

static void setup(void)
{
    g_eventcount = calloc(1, sizeof *g_eventcount);
    g_news = calloc(1, sizeof *g_news);
    g_told = calloc(2, sizeof *g_told);
    (void)acs_eventcount_init(g_eventcount);
}

/* The news itself is relaxed: the fences of the eventcount alone must order it against the waiters. */
static uint32_t news(void)
{
    return atomic_load_explicit(g_news, memory_order_relaxed);
}

static void sleep_until(uint32_t wanted)
{
    while (news() < wanted) {
        uint64_t epoch = acs_eventcount_prepare_wait(g_eventcount);
        if (news() < wanted)
            acs_eventcount_wait(g_eventcount, epoch, 0);
        acs_eventcount_cancel_wait(g_eventcount);
    }
}

static void sleeper_1(void)
{
    sleep_until(1);
}

static void sleeper_2(void)
{
    sleep_until(2);
}

static void notifier(void)
{
    (void)atomic_fetch_add_explicit(g_news, 1, memory_order_relaxed);
    acs_eventcount_notify(g_eventcount);
}

static void opener_twice(void)
{
    notifier();
    notifier();
}

const model_scenario scenario_eventcount = {
    .name = "eventcount", .what = "one waiter, one notifier", .setup = setup, .threads = {sleeper_1, notifier}};
const model_scenario scenario_eventcount_waiters = {
    .name = "eventcount_waiters", .what = "two waiters, one notifier", .setup = setup,
    .threads = {sleeper_1, sleeper_1, notifier}};
const model_scenario scenario_eventcount_notifiers = {
    .name = "eventcount_notifiers", .what = "one waiter that waits for the news of two notifiers", .setup = setup,
    .threads = {sleeper_2, notifier, notifier}};
const model_scenario scenario_eventcount_again = {
    .name = "eventcount_again", .what = "one waiter, news twice", .setup = setup, .threads = {sleeper_2, opener_twice}};
const model_scenario scenario_eventcount_two = {
    .name = "eventcount_two", .what = "two waiters that wait for the news of two notifiers", .setup = setup,
    .threads = {sleeper_2, sleeper_2, notifier, notifier}, .most = 20000};
