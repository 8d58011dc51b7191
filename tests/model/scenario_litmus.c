/*
 * Tests of the explorer itself: the small programs by which memory models are told apart, each with exactly the outcomes
 * that it must show, and three faults that it must find. Uses nothing of the library but locks.
 */
#include "scenarios.h"

#include "base/lock.h"

#include <stdatomic.h>

typedef struct shared {
    _Atomic(uint32_t) x, y;
    uint32_t r[4];  /* what the loads returned; read at the end */
    uint32_t plain;
    acs_lock first, second;
} shared;

static shared *g;

static void setup(void)
{
    g = calloc(1, sizeof *g);
}

#define STORE(at, value, order) atomic_store_explicit(&g->at, value, memory_order_##order)
#define LOAD(at, order) atomic_load_explicit(&g->at, memory_order_##order)
#define FENCE(order) atomic_thread_fence(memory_order_##order)
#define THREAD(name, ...)                                                                                              \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define BIT(outcome) (1ull << (outcome))

/* Registers as bits of the outcome: two by two, or four. */
static void two(void)
{
    model_outcome(g->r[0] * 2 + g->r[1]);
}

static void four(void)
{
    model_outcome(g->r[0] * 8 + g->r[1] * 4 + g->r[2] * 2 + g->r[3]);
}

static void ordered(void)
{
    model_outcome(g->r[0] * 3 + g->r[1]);
}

static void final(void)
{
    model_outcome(LOAD(x, relaxed) * 4 + LOAD(y, relaxed));
}

/* Store buffering: both may read 0, unless seq_cst forbids it. */
THREAD(sb_x, STORE(x, 1, relaxed); g->r[0] = LOAD(y, relaxed);)
THREAD(sb_y, STORE(y, 1, relaxed); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_sb = {
    .name = "litmus_sb", .what = "store buffering", .setup = setup, .threads = {sb_x, sb_y}, .check = two,
    .outcomes = BIT(0) | BIT(1) | BIT(2) | BIT(3)};
THREAD(sb_fence_x, STORE(x, 1, relaxed); FENCE(seq_cst); g->r[0] = LOAD(y, relaxed);)
THREAD(sb_fence_y, STORE(y, 1, relaxed); FENCE(seq_cst); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_sb_fences = {
    .name = "litmus_sb_fences", .what = "store buffering, seq_cst fences", .setup = setup,
    .threads = {sb_fence_x, sb_fence_y}, .check = two, .outcomes = BIT(1) | BIT(2) | BIT(3)};
THREAD(sb_sc_x, STORE(x, 1, seq_cst); g->r[0] = LOAD(y, seq_cst);)
THREAD(sb_sc_y, STORE(y, 1, seq_cst); g->r[1] = LOAD(x, seq_cst);)
const model_scenario scenario_litmus_sb_sc = {
    .name = "litmus_sb_sc", .what = "store buffering, seq_cst accesses", .setup = setup,
    .threads = {sb_sc_x, sb_sc_y}, .check = two, .outcomes = BIT(1) | BIT(2) | BIT(3)};

/* Message passing: the flag without the message, unless release and acquire forbid it. */
THREAD(mp_send, STORE(x, 1, relaxed); STORE(y, 1, relaxed);)
THREAD(mp_receive, g->r[0] = LOAD(y, relaxed); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp = {
    .name = "litmus_mp", .what = "message passing, relaxed", .setup = setup, .threads = {mp_send, mp_receive},
    .check = two, .outcomes = BIT(0) | BIT(1) | BIT(2) | BIT(3)};
THREAD(mp_release, STORE(x, 1, relaxed); STORE(y, 1, release);)
THREAD(mp_acquire, g->r[0] = LOAD(y, acquire); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp_orders = {
    .name = "litmus_mp_orders", .what = "message passing, release and acquire", .setup = setup,
    .threads = {mp_release, mp_acquire}, .check = two, .outcomes = BIT(0) | BIT(1) | BIT(3)};
THREAD(mp_release_fence, STORE(x, 1, relaxed); FENCE(release); STORE(y, 1, relaxed);)
THREAD(mp_acquire_fence, g->r[0] = LOAD(y, relaxed); FENCE(acquire); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp_fences = {
    .name = "litmus_mp_fences", .what = "message passing, fences", .setup = setup,
    .threads = {mp_release_fence, mp_acquire_fence}, .check = two, .outcomes = BIT(0) | BIT(1) | BIT(3)};

/* A release sequence goes on through read-modify-writes of others. */
THREAD(sequence_add, (void)atomic_fetch_add_explicit(&g->y, 1, memory_order_relaxed);)
THREAD(sequence_receive, g->r[0] = LOAD(y, acquire) == 2; g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_sequence = {
    .name = "litmus_sequence", .what = "a release sequence through another's increment", .setup = setup,
    .threads = {mp_release, sequence_add, sequence_receive}, .check = two, .outcomes = BIT(0) | BIT(1) | BIT(3)};

/* Coherence: two loads of one thread never go back; outcome 3 * first + second. */
THREAD(coherence_write, STORE(x, 1, relaxed); STORE(x, 2, relaxed);)
THREAD(coherence_read, g->r[0] = LOAD(x, relaxed); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_coherence = {
    .name = "litmus_coherence", .what = "two loads never go back", .setup = setup,
    .threads = {coherence_write, coherence_read}, .check = ordered,
    .outcomes = BIT(0) | BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(8)};

/* Independent reads of independent writes: two threads may see the writes in opposite orders, but for seq_cst fences. */
THREAD(write_x, STORE(x, 1, release);)
THREAD(write_y, STORE(y, 1, release);)
THREAD(read_xy, g->r[0] = LOAD(x, acquire); g->r[1] = LOAD(y, acquire);)
THREAD(read_yx, g->r[2] = LOAD(y, acquire); g->r[3] = LOAD(x, acquire);)
const model_scenario scenario_litmus_iriw = {
    .name = "litmus_iriw", .what = "writes seen in opposite orders", .setup = setup,
    .threads = {write_x, write_y, read_xy, read_yx}, .check = four, .outcomes = 0xffff};
THREAD(read_fence_xy, g->r[0] = LOAD(x, acquire); FENCE(seq_cst); g->r[1] = LOAD(y, acquire);)
THREAD(read_fence_yx, g->r[2] = LOAD(y, acquire); FENCE(seq_cst); g->r[3] = LOAD(x, acquire);)
const model_scenario scenario_litmus_iriw_fences = {
    .name = "litmus_iriw_fences", .what = "the same with seq_cst fences between the loads", .setup = setup,
    .threads = {write_x, write_y, read_fence_xy, read_fence_yx}, .check = four, .outcomes = 0xffff & ~BIT(10)};

/* Two limits of the model, said in model.h: C11 allows the outcome that is missing here. */
THREAD(lb_x, g->r[0] = LOAD(y, relaxed); STORE(x, 1, relaxed);)
THREAD(lb_y, g->r[1] = LOAD(x, relaxed); STORE(y, 1, relaxed);)
const model_scenario scenario_litmus_lb = {
    .name = "litmus_lb", .what = "load buffering, which the model does not show", .setup = setup,
    .threads = {lb_x, lb_y}, .check = two, .outcomes = BIT(0) | BIT(1) | BIT(2)};
THREAD(write_xy, STORE(x, 1, relaxed); STORE(y, 2, relaxed);)
THREAD(write_yx, STORE(y, 1, relaxed); STORE(x, 2, relaxed);)
const model_scenario scenario_litmus_2w = {
    .name = "litmus_2w", .what = "2+2W, of which the model does not show x = y = 1", .setup = setup,
    .threads = {write_xy, write_yx}, .check = final, .outcomes = BIT(6) | BIT(9) | BIT(10)};

/* Faults that must be found. */
THREAD(race_write, g->plain = 1; STORE(x, 1, relaxed);)
THREAD(race_read, if (LOAD(x, acquire)) g->r[0] = g->plain;)
const model_scenario scenario_fault_race = {
    .name = "fault_race", .what = "a flag that is stored relaxed: a data race", .setup = setup,
    .threads = {race_write, race_read}, .fails = true};
THREAD(lock_12, acs_lock_acquire(&g->first); acs_lock_acquire(&g->second); acs_lock_release(&g->second);
       acs_lock_release(&g->first);)
THREAD(lock_21, acs_lock_acquire(&g->second); acs_lock_acquire(&g->first); acs_lock_release(&g->first);
       acs_lock_release(&g->second);)
const model_scenario scenario_fault_locks = {
    .name = "fault_locks", .what = "two locks in opposite orders: a deadlock", .setup = setup,
    .threads = {lock_12, lock_21}, .fails = true};
THREAD(count_up, STORE(x, LOAD(x, seq_cst) + 1, seq_cst);)
static void counted(void)
{
    model_require(LOAD(x, relaxed) == 3);
}
const model_scenario scenario_fault_count = {
    .name = "fault_count", .what = "increments that are not atomic: one is lost", .setup = setup,
    .threads = {count_up, count_up, count_up}, .check = counted, .fails = true};
