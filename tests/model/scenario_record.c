/*
 * Scenarios of the record pool (src/window/record.c): no record or block has two owners at once, the next owner sees what
 * the one before wrote, and none is lost.
 */
#include "scenarios.h"

#include "window/record.h"

enum { LARGE_1 = 400, LARGE_2 = 900, RECORDS_MOST = 4 }; /* argument bytes that take blocks of two classes */

static acs_record_pool *g_pool;
static uint32_t g_records;

static void setup_of(uint32_t records)
{
    g_records = records;
    (void)acs_record_pool_create(records, &g_pool);
}

static void setup_2(void)
{
    setup_of(2);
}

static void setup_3(void)
{
    setup_of(3);
}

/* An owner writes what it owns; two at once are a data race, which the explorer reports. */
static acs_record *take(uint32_t bytes)
{
    acs_record *record = acs_record_acquire(g_pool);
    if (!record)
        return NULL;
    model_require(record->seq == 0 && record->block == NULL);
    (void)acs_record_reserve(g_pool, record, 1, bytes, 0);
    record->seq = 7;
    record->arg_bytes[0] = 1;
    record->arg_bytes[bytes - 1] = 1;
    return record;
}

static void give(acs_record *record)
{
    if (!record)
        return;
    model_require(record->seq == 7);
    record->seq = 0;
    acs_record_release(g_pool, record);
}

/* All records are in the pool, each once, and so are as many blocks. */
static void check(void)
{
    acs_record *taken[RECORDS_MOST];
    for (uint32_t i = 0; i < g_records; i++) {
        taken[i] = acs_record_acquire(g_pool);
        model_require(taken[i]);
        for (uint32_t j = 0; j < i; j++)
            model_require(taken[j] != taken[i]);
        (void)acs_record_reserve(g_pool, taken[i], 1, LARGE_1, 0);
        for (uint32_t j = 0; j < i; j++)
            model_require(taken[j]->block != taken[i]->block);
    }
    model_require(!acs_record_acquire(g_pool));
}

static void take_give(void)
{
    give(take(1));
}

static void take_give_twice(void)
{
    give(take(1));
    give(take(1));
}

/* The first that was taken goes back first: the other thread's exchange finds the old top above another entry (ABA). */
static void take_2_give_1(void)
{
    acs_record *first = take(1), *second = take(1);
    give(first);
    if (second)
        model_require(second->seq == 7);
    give(second);
}

/* Both go back in one chain. */
static void take_2_give_all(void)
{
    acs_record_chain chain = {0};
    acs_record *taken[2] = {take(1), take(1)};
    for (int i = 0; i < 2; i++) {
        if (!taken[i])
            continue;
        model_require(taken[i]->seq == 7);
        taken[i]->seq = 0;
        acs_record_gather(g_pool, &chain, taken[i]);
    }
    acs_record_release_all(g_pool, &chain);
}

static void take_give_large_1(void)
{
    give(take(LARGE_1));
}

static void take_give_large_2(void)
{
    give(take(LARGE_2));
}

static void take_give_both(void)
{
    give(take(LARGE_1));
    give(take(LARGE_2));
}

const model_scenario scenario_record_pair = {
    .name = "record_pair", .what = "two threads, two records, two turns each", .setup = setup_2,
    .threads = {take_give_twice, take_give_twice}, .check = check};
const model_scenario scenario_record_three = {
    .name = "record_three", .what = "three threads, two records", .setup = setup_2,
    .threads = {take_give, take_give, take_give}, .check = check};
const model_scenario scenario_record_aba = {
    .name = "record_aba", .what = "one takes while another takes two and gives the first back", .setup = setup_3,
    .threads = {take_give, take_2_give_1}, .check = check};
const model_scenario scenario_record_chain = {
    .name = "record_chain", .what = "one takes and gives while another takes two and gives them back as a chain",
    .setup = setup_3, .threads = {take_give_twice, take_2_give_all}, .check = check};
const model_scenario scenario_record_blocks = {
    .name = "record_blocks", .what = "blocks of two classes, numbers that move between them", .setup = setup_2,
    .threads = {take_give_both, take_give_large_1}, .check = check};
const model_scenario scenario_record_steal = {
    .name = "record_steal", .what = "three threads, blocks of two classes", .setup = setup_2,
    .threads = {take_give_large_1, take_give_large_2, take_give_large_1}, .check = check, .most = 20000};
