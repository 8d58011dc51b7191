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
const model_scenario scenario_litmus_sb = {"litmus_sb", "store buffering", setup, NULL, {sb_x, sb_y}, two, 0,
                                           BIT(0) | BIT(1) | BIT(2) | BIT(3), false};
THREAD(sb_fence_x, STORE(x, 1, relaxed); FENCE(seq_cst); g->r[0] = LOAD(y, relaxed);)
THREAD(sb_fence_y, STORE(y, 1, relaxed); FENCE(seq_cst); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_sb_fences = {
    "litmus_sb_fences", "store buffering, seq_cst fences", setup, NULL, {sb_fence_x, sb_fence_y}, two, 0,
    BIT(1) | BIT(2) | BIT(3), false};
THREAD(sb_sc_x, STORE(x, 1, seq_cst); g->r[0] = LOAD(y, seq_cst);)
THREAD(sb_sc_y, STORE(y, 1, seq_cst); g->r[1] = LOAD(x, seq_cst);)
const model_scenario scenario_litmus_sb_sc = {"litmus_sb_sc", "store buffering, seq_cst accesses", setup, NULL,
                                              {sb_sc_x, sb_sc_y}, two, 0, BIT(1) | BIT(2) | BIT(3), false};

/* Message passing: the flag without the message, unless release and acquire forbid it. */
THREAD(mp_send, STORE(x, 1, relaxed); STORE(y, 1, relaxed);)
THREAD(mp_receive, g->r[0] = LOAD(y, relaxed); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp = {"litmus_mp", "message passing, relaxed", setup, NULL, {mp_send, mp_receive},
                                           two, 0, BIT(0) | BIT(1) | BIT(2) | BIT(3), false};
THREAD(mp_release, STORE(x, 1, relaxed); STORE(y, 1, release);)
THREAD(mp_acquire, g->r[0] = LOAD(y, acquire); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp_orders = {
    "litmus_mp_orders", "message passing, release and acquire", setup, NULL, {mp_release, mp_acquire}, two, 0,
    BIT(0) | BIT(1) | BIT(3), false};
THREAD(mp_release_fence, STORE(x, 1, relaxed); FENCE(release); STORE(y, 1, relaxed);)
THREAD(mp_acquire_fence, g->r[0] = LOAD(y, relaxed); FENCE(acquire); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_mp_fences = {
    "litmus_mp_fences", "message passing, fences", setup, NULL, {mp_release_fence, mp_acquire_fence}, two, 0,
    BIT(0) | BIT(1) | BIT(3), false};

/* A release sequence goes on through read-modify-writes of others. */
THREAD(sequence_add, (void)atomic_fetch_add_explicit(&g->y, 1, memory_order_relaxed);)
THREAD(sequence_receive, g->r[0] = LOAD(y, acquire) == 2; g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_sequence = {
    "litmus_sequence", "a release sequence through another's increment", setup, NULL,
    {mp_release, sequence_add, sequence_receive}, two, 0, BIT(0) | BIT(1) | BIT(3), false};

/* Coherence: two loads of one thread never go back; outcome 3 * first + second. */
THREAD(coherence_write, STORE(x, 1, relaxed); STORE(x, 2, relaxed);)
THREAD(coherence_read, g->r[0] = LOAD(x, relaxed); g->r[1] = LOAD(x, relaxed);)
const model_scenario scenario_litmus_coherence = {
    "litmus_coherence", "two loads never go back", setup, NULL, {coherence_write, coherence_read}, ordered, 0,
    BIT(0) | BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(8), false};

/* Independent reads of independent writes: two threads may see the writes in opposite orders, but for seq_cst fences. */
THREAD(write_x, STORE(x, 1, release);)
THREAD(write_y, STORE(y, 1, release);)
THREAD(read_xy, g->r[0] = LOAD(x, acquire); g->r[1] = LOAD(y, acquire);)
THREAD(read_yx, g->r[2] = LOAD(y, acquire); g->r[3] = LOAD(x, acquire);)
const model_scenario scenario_litmus_iriw = {"litmus_iriw", "writes seen in opposite orders", setup, NULL,
                                             {write_x, write_y, read_xy, read_yx}, four, 0, 0xffff, false};
THREAD(read_fence_xy, g->r[0] = LOAD(x, acquire); FENCE(seq_cst); g->r[1] = LOAD(y, acquire);)
THREAD(read_fence_yx, g->r[2] = LOAD(y, acquire); FENCE(seq_cst); g->r[3] = LOAD(x, acquire);)
const model_scenario scenario_litmus_iriw_fences = {
    "litmus_iriw_fences", "the same with seq_cst fences between the loads", setup, NULL,
    {write_x, write_y, read_fence_xy, read_fence_yx}, four, 0, 0xffff & ~BIT(10), false};

/* Two limits of the model, said in model.h: C11 allows the outcome that is missing here. */
THREAD(lb_x, g->r[0] = LOAD(y, relaxed); STORE(x, 1, relaxed);)
THREAD(lb_y, g->r[1] = LOAD(x, relaxed); STORE(y, 1, relaxed);)
const model_scenario scenario_litmus_lb = {"litmus_lb", "load buffering, which the model does not show", setup, NULL,
                                           {lb_x, lb_y}, two, 0, BIT(0) | BIT(1) | BIT(2), false};
THREAD(write_xy, STORE(x, 1, relaxed); STORE(y, 2, relaxed);)
THREAD(write_yx, STORE(y, 1, relaxed); STORE(x, 2, relaxed);)
const model_scenario scenario_litmus_2w = {"litmus_2w", "2+2W, of which the model does not show x = y = 1", setup, NULL,
                                           {write_xy, write_yx}, final, 0, BIT(6) | BIT(9) | BIT(10), false};

/* Faults that must be found. */
THREAD(race_write, g->plain = 1; STORE(x, 1, relaxed);)
THREAD(race_read, if (LOAD(x, acquire)) g->r[0] = g->plain;)
const model_scenario scenario_fault_race = {"fault_race", "a flag that is stored relaxed: a data race", setup, NULL,
                                            {race_write, race_read}, NULL, 0, 0, true};
THREAD(lock_12, acs_lock_acquire(&g->first); acs_lock_acquire(&g->second); acs_lock_release(&g->second);
       acs_lock_release(&g->first);)
THREAD(lock_21, acs_lock_acquire(&g->second); acs_lock_acquire(&g->first); acs_lock_release(&g->first);
       acs_lock_release(&g->second);)
const model_scenario scenario_fault_locks = {"fault_locks", "two locks in opposite orders: a deadlock", setup, NULL,
                                             {lock_12, lock_21}, NULL, 0, 0, true};
THREAD(count_up, STORE(x, LOAD(x, seq_cst) + 1, seq_cst);)
static void counted(void)
{
    model_require(LOAD(x, relaxed) == 3);
}
const model_scenario scenario_fault_count = {"fault_count", "increments that are not atomic: one is lost", setup, NULL,
                                             {count_up, count_up, count_up}, counted, 0, 0, true};
