/*
 * Scenarios of the eventcounts (src/api/eventcount.c): who announces itself and looks once more is woken by who has news. A
 * lost wake-up is a thread that waits forever, since timed waits never time out here.
 */
#include "scenarios.h"

#include "api/eventcount.h"

#include <stdatomic.h>

static acs_eventcount *g_gate;
static _Atomic(uint32_t) *g_news;
static uint32_t *g_told; /* plain: what the news is about */

static void setup(void)
{
    g_gate = calloc(1, sizeof *g_gate);
    g_news = calloc(1, sizeof *g_news);
    g_told = calloc(2, sizeof *g_told);
    (void)acs_eventcount_init(g_gate);
}

/* The news itself is relaxed: the gate's fences alone must order it against the sleepers. */
static uint32_t news(void)
{
    return atomic_load_explicit(g_news, memory_order_relaxed);
}

static void sleep_until(uint32_t wanted)
{
    while (news() < wanted) {
        uint64_t epoch = acs_eventcount_prepare_wait(g_gate);
        if (news() < wanted)
            acs_eventcount_wait(g_gate, epoch, 0);
        acs_eventcount_cancel_wait(g_gate);
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

static void opener(void)
{
    (void)atomic_fetch_add_explicit(g_news, 1, memory_order_relaxed);
    acs_eventcount_notify(g_gate);
}

static void opener_twice(void)
{
    opener();
    opener();
}

const model_scenario scenario_gate = {
    .name = "gate", .what = "one sleeper, one opener", .setup = setup, .threads = {sleeper_1, opener}};
const model_scenario scenario_gate_sleepers = {
    .name = "gate_sleepers", .what = "two sleepers, one opener", .setup = setup,
    .threads = {sleeper_1, sleeper_1, opener}};
const model_scenario scenario_gate_openers = {
    .name = "gate_openers", .what = "one sleeper that waits for the news of two openers", .setup = setup,
    .threads = {sleeper_2, opener, opener}};
const model_scenario scenario_gate_again = {
    .name = "gate_again", .what = "one sleeper, news twice", .setup = setup, .threads = {sleeper_2, opener_twice}};
const model_scenario scenario_gate_two = {
    .name = "gate_two", .what = "two sleepers that wait for the news of two openers", .setup = setup,
    .threads = {sleeper_2, sleeper_2, opener, opener}, .most = 20000};
