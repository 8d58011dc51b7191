/*
 * Scenarios of completion and opening: the timeline of a CPU backend's slot, which is read without its lock
 * (src/host/host_executor.c, pair A), and the default context that two threads open at once (src/api/default.c).
 */
#include "scenarios.h"

#include "host/host_executor.h"
#include "host/host_kernel.h"
#include "api/context.h"

static acs_host_slots *g_slots;
static acs_lock *g_lock;
static acs_record *g_ops;
static uint64_t *g_bytes; /* what the kernels write */

/* Stands in for host_kernel.c. */
bool acs_host_runs(const acs_record *op)
{
    return op->kind == ACS_KIND_KERNEL;
}

/* Two slots: two ops in the first, one in the second that waits for both. */
static void setup_slots(void)
{
    g_slots = calloc(1, sizeof *g_slots);
    g_lock = calloc(1, sizeof *g_lock);
    g_ops = calloc(3, sizeof *g_ops);
    g_bytes = calloc(3, sizeof *g_bytes);
    (void)acs_host_slots_init(g_slots, 2);
    acs_batch *batch = calloc(1, sizeof *batch);
    batch->waits[0] = (acs_mark){.slot = 0, .value = 2};
    for (uint32_t i = 0; i < 3; i++) {
        batch->items[i] = (acs_item){.op = &g_ops[i], .value = i % 2 + 1, .slot = i == 2, .wait_count = i == 2};
        acs_host_issue(g_slots, batch, &batch->items[i]);
        model_require(batch->items[i].status == ACS_OK);
    }
}

/* As executor() of host.c: the op runs without the lock, and ends under it. */
static bool execute(uint32_t slot, uint64_t *byte)
{
    acs_lock_acquire(g_lock);
    const acs_host_entry *entry = acs_host_head(g_slots, slot);
    bool ready = entry && acs_host_satisfied(g_slots, entry);
    acs_lock_release(g_lock);
    if (!ready)
        return false;
    if (slot == 1)
        model_require(g_bytes[0] == 5 && g_bytes[1] == 5);
    *byte = 5;
    acs_lock_acquire(g_lock);
    acs_host_finish(g_slots, slot);
    acs_lock_release(g_lock);
    return true;
}

static void executor_0(void)
{
    (void)execute(0, &g_bytes[0]);
    (void)execute(0, &g_bytes[1]);
}

static void executor_1(void)
{
    (void)execute(1, &g_bytes[2]);
}

/* As poll: without the lock. What the value says is done can be read. */
static void poller(void)
{
    uint64_t seen = acs_host_completed(g_slots, 0), again = acs_host_completed(g_slots, 0);
    model_require(again >= seen);
    if (again >= 1)
        model_require(g_bytes[0] == 5);
    if (again >= 2)
        model_require(g_bytes[1] == 5);
}

static void check_slots(void)
{
    model_require(acs_host_completed(g_slots, 0) == 2);
    model_require(!acs_host_head(g_slots, 0));
    model_require((acs_host_completed(g_slots, 1) == 1) == !acs_host_head(g_slots, 1));
}

const model_scenario scenario_timeline = {
    .name = "timeline", .what = "a poller beside an executor: the value comes after the op", .setup = setup_slots,
    .threads = {executor_0, poller}, .check = check_slots};
const model_scenario scenario_timeline_wait = {
    .name = "timeline_wait", .what = "an op of another slot that waits for the value, and a poller",
    .setup = setup_slots, .threads = {executor_0, executor_1, poller}, .check = check_slots};

/* ------------------------------------------------------------------------------------------------- default context */

static struct {
    acs_context *context;
    uint32_t *opened, *failures, *closed;
} g_default_test;

static void setup_default(void)
{
    g_default_test.context = calloc(1, sizeof *g_default_test.context);
    g_default_test.opened = calloc(1, sizeof(uint32_t));
    g_default_test.failures = calloc(1, sizeof(uint32_t));
    g_default_test.closed = calloc(1, sizeof(uint32_t));
}

static void setup_default_failing(void)
{
    setup_default();
    *g_default_test.failures = 1;
}

/* Stand in for context.c. Plain accesses: two openers at once are a data race. */
acs_status acs_open(const acs_options *options, acs_context **context)
{
    model_require(!options && *context == NULL);
    if (*g_default_test.failures) {
        --*g_default_test.failures;
        return ACS_ERR_MEMORY;
    }
    ++*g_default_test.opened;
    g_default_test.context->issuers = 3;
    *context = g_default_test.context;
    return ACS_OK;
}

acs_status acs_close(acs_context *context)
{
    (void)context;
    ++*g_default_test.closed;
    return ACS_OK;
}

static void use_default(void)
{
    acs_context *context = acs_default();
    if (!context)
        context = acs_default(); /* a failed attempt is not kept */
    model_require(context == g_default_test.context && context->issuers == 3);
}

static void use_default_twice(void)
{
    use_default();
    use_default();
}

static void check_default(void)
{
    model_require(*g_default_test.opened == 1);
}

const model_scenario scenario_default_open = {
    .name = "default_open", .what = "three threads use the default context first", .setup = setup_default,
    .threads = {use_default, use_default_twice, use_default}, .check = check_default};
const model_scenario scenario_default_retry = {
    .name = "default_retry", .what = "the first attempt to open fails", .setup = setup_default_failing,
    .threads = {use_default, use_default}, .check = check_default};
