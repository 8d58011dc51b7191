/*
 * Scenarios of the FIFO (src/window/fifo.c): every op once, in program order, never more than it holds, and what the
 * producer wrote is there. The explorer runs their threads; nothing here is called by the library.
 */
#include "scenarios.h"

#include "window/fifo_internal.h"

#include <stdatomic.h>

enum { PAYLOAD = 1000, RECORDS = 8, AHEAD = 6 /* places ahead that a pop looks at */ };

static acs_fifo *g_fifo;
static acs_record *g_records;   /* each producer fills rows of its own */
static acs_op *g_popped;        /* by order of the pop: the record's row + 1 */
static uint32_t *g_popped_count;
static acs_op *g_pushed;        /* by row: what push returned */
static _Atomic(uint32_t) *g_flag;
static acs_lock *g_lock;

static void setup_wide(uint32_t capacity, uint32_t most, uint64_t first)
{
    (void)acs_fifo_create_at(capacity, most, first, &g_fifo);
    g_records = calloc(RECORDS, sizeof *g_records);
    g_popped = calloc(RECORDS, sizeof *g_popped);
    g_popped_count = calloc(1, sizeof *g_popped_count);
    g_pushed = calloc(RECORDS, sizeof *g_pushed);
    g_flag = calloc(1, sizeof *g_flag);
    g_lock = calloc(1, sizeof *g_lock);
}

static void setup_at(uint32_t capacity, uint64_t first)
{
    setup_wide(capacity, capacity, first);
}

static void setup(void)
{
    setup_at(2, 0);
}

/* Two places, and four while it is wide. */
static void setup_2_or_4(void)
{
    setup_wide(2, 4, UINT64_MAX - 1);
}

static void setup_roomy(void)
{
    setup_at(4, UINT64_MAX - 1); /* tickets wrap inside of the scenario */
}

static void push(uint32_t row)
{
    g_records[row].arg_count = PAYLOAD + row;
    g_pushed[row] = acs_fifo_push(g_fifo, &g_records[row]);
}

/* Nobody else is there yet. */
static void setup_filled(void)
{
    setup_at(RECORDS, 0);
    for (uint32_t row = 0; row < AHEAD; row++)
        push(row);
}

static bool pop(void)
{
    acs_record *record = acs_fifo_pop(g_fifo);
    if (!record)
        return false;
    uint32_t row = (uint32_t)(record - g_records);
    model_require(row < RECORDS && record->arg_count == PAYLOAD + row);
    uint32_t n = *g_popped_count;
    model_require(record->seq == n + 1);
    g_popped[n] = row + 1;
    *g_popped_count = n + 1;
    return true;
}

/* What is left is popped; then each push that succeeded was popped once, where it was told. */
static void check(void)
{
    while (pop())
        continue;
    uint32_t accepted = 0;
    for (uint32_t row = 0; row < RECORDS; row++) {
        accepted += g_pushed[row] != 0;
        model_require(!g_pushed[row] || (g_pushed[row] <= *g_popped_count && g_popped[g_pushed[row] - 1] == row + 1));
    }
    model_require(accepted == *g_popped_count);
    model_require(acs_fifo_last(g_fifo) == accepted);
}

static void push_1(void)
{
    push(1);
}

static void push_0_2(void)
{
    push(0);
    push(2);
    model_require(!g_pushed[0] || !g_pushed[2] || g_pushed[0] < g_pushed[2]);
    model_require(acs_fifo_last(g_fifo) >= g_pushed[2]);
}

static void push_1_3(void)
{
    push(1);
    push(3);
    model_require(!g_pushed[1] || !g_pushed[3] || g_pushed[1] < g_pushed[3]);
}

static void push_0_2_4(void)
{
    push(0);
    push(2);
    push(4);
}

static void push_7th(void)
{
    push(AHEAD);
}

static void pop_1(void)
{
    (void)pop();
}

/* What is seen ahead is there, all of it. */
static void peek_2(void)
{
    for (uint32_t ahead = 0; ahead < 2; ahead++) {
        const acs_record *record = acs_fifo_peek(g_fifo, ahead);
        model_require(!record || (record == &g_records[ahead] && record->arg_count == PAYLOAD + ahead));
    }
}

static void push_0_1(void)
{
    push(0);
    push(1);
}

static void pop_2(void)
{
    (void)pop();
    (void)pop();
}

static void pop_3(void)
{
    (void)pop();
    (void)pop();
    (void)pop();
}

/* Both or none, and nothing between them. */
static void push_pair_0_2(void)
{
    acs_record *const pair[] = {&g_records[0], &g_records[2]};
    g_records[0].arg_count = PAYLOAD;
    g_records[2].arg_count = PAYLOAD + 2;
    g_pushed[2] = acs_fifo_push_all(g_fifo, pair, 2);
    g_pushed[0] = g_pushed[2] ? g_pushed[2] - 1 : 0;
}

const model_scenario scenario_fifo_wrap = {
    .name = "fifo_wrap", .what = "one producer, one consumer, more ops than places", .setup = setup,
    .threads = {push_0_2_4, pop_3}, .check = check};
const model_scenario scenario_fifo_ahead = {
    .name = "fifo_ahead", .what = "one producer, one consumer that looks at places ahead", .setup = setup_filled,
    .threads = {push_7th, pop_1}, .check = check};
const model_scenario scenario_fifo_peek = {
    .name = "fifo_peek", .what = "one producer, one consumer that reads what it has not popped", .setup = setup_roomy,
    .threads = {push_0_1, peek_2}, .check = check};
const model_scenario scenario_fifo_producers = {
    .name = "fifo_producers", .what = "two producers, one consumer, tickets wrap", .setup = setup_roomy,
    .threads = {push_0_2, push_1, pop_2}, .check = check};
const model_scenario scenario_fifo_full = {
    .name = "fifo_full", .what = "two producers and one consumer at two places", .setup = setup,
    .threads = {push_0_2, push_1_3, pop_2}, .check = check};

const model_scenario scenario_fifo_pair = {
    .name = "fifo_pair", .what = "a producer of two at once beside one, one consumer, at two places", .setup = setup,
    .threads = {push_pair_0_2, push_1_3, pop_2}, .check = check};

static void push_0(void)
{
    push(0);
}

static void push_2(void)
{
    push(2);
}

const model_scenario scenario_fifo_three = {
    .name = "fifo_three", .what = "three producers and one consumer at two places", .setup = setup,
    .threads = {push_0, push_1, push_2, pop_2}, .check = check};

/* A call that returned before another began comes first, however weakly the second learnt of it. */
static void push_then_say(void)
{
    push(0);
    atomic_store_explicit(g_flag, 1, memory_order_release);
}

static void push_when_told(void)
{
    bool told = atomic_load_explicit(g_flag, memory_order_acquire);
    push(1);
    if (told)
        model_require(g_pushed[0] && g_pushed[0] < g_pushed[1]);
}

const model_scenario scenario_fifo_order = {
    .name = "fifo_order", .what = "a push that returned before another began", .setup = setup,
    .threads = {push_then_say, push_when_told, pop_2}, .check = check};

/* Consumers follow each other through a lock, as through the core's. */
static void locked_pop(void)
{
    acs_lock_acquire(g_lock);
    (void)pop();
    acs_lock_release(g_lock);
}

const model_scenario scenario_fifo_consumers = {
    .name = "fifo_consumers", .what = "one producer, consumers that take turns by a lock", .setup = setup,
    .threads = {push_0_2, locked_pop, locked_pop}, .check = check};

/* acs_fifo_ready may say yes too often, and never no when the op was pushed before. */
static void locked_push_and_look(void)
{
    push(0);
    acs_lock_acquire(g_lock);
    model_require(*g_popped_count == 1 || acs_fifo_ready(g_fifo));
    acs_lock_release(g_lock);
}

static void locked_pop_2(void)
{
    locked_pop();
    locked_pop();
}

const model_scenario scenario_fifo_ready = {
    .name = "fifo_ready", .what = "a producer that asks for its own op, a consumer", .setup = setup,
    .threads = {locked_push_and_look, locked_pop_2}, .check = check};

/* A record of two numbers, which are taken together: what comes behind it waits, and no number is lost. */
static void push_of_2(void)
{
    g_records[0].kind = ACS_KIND_REPLAY;
    g_records[0].u.replay.span = 2;
    g_records[0].arg_count = PAYLOAD;
    g_pushed[0] = acs_fifo_push(g_fifo, &g_records[0]);
}

static bool pop_spanned(void)
{
    const acs_record *record = acs_fifo_pop(g_fifo);
    if (!record)
        return false;
    const uint32_t row = (uint32_t)(record - g_records);
    model_require(row < RECORDS && record->arg_count == PAYLOAD + row);
    model_require(record->seq == *g_popped_count + 1);
    g_popped[row] = record->seq;
    *g_popped_count += row == 0 ? 2 : 1;
    return true;
}

static void pop_2_spanned(void)
{
    (void)pop_spanned();
    (void)pop_spanned();
}

static void check_spanned(void)
{
    while (pop_spanned())
        continue;
    for (uint32_t row = 0; row < RECORDS; row++)
        model_require(g_popped[row] == g_pushed[row]);
    model_require(acs_fifo_last(g_fifo) == *g_popped_count);
}

const model_scenario scenario_fifo_spanned = {
    .name = "fifo_spanned", .what = "a producer of a record with two numbers, beside one, tickets wrap",
    .setup = setup_roomy, .threads = {push_of_2, push_1_3, pop_2_spanned}, .check = check_spanned};
/* A push of another thread may still go by the capacity before. */
static void push_wide(void)
{
    acs_fifo_widen(g_fifo, true);
    push_of_2();
    acs_fifo_widen(g_fifo, false);
}

const model_scenario scenario_fifo_wide = {
    .name = "fifo_wide", .what = "a producer that widens, pushes two numbers, and narrows, beside one, tickets wrap",
    .setup = setup_2_or_4, .threads = {push_wide, push_1_3, pop_2_spanned}, .check = check_spanned};
const model_scenario scenario_fifo_spanned_full = {
    .name = "fifo_spanned_full", .what = "the same at two places, all of which it takes", .setup = setup,
    .threads = {push_of_2, push_1, pop_2_spanned}, .check = check_spanned};
