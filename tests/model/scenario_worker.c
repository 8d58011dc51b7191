/*
 * Scenarios of threads around the core: src/api/threads.c, wait.c and eventcount.c over the whole core, window and
 * FIFO, as they are; also replays, which callers fill while the core has them. A caller queues an op while the last
 * worker falls asleep, or waits while no worker is awake: no wake-up may be lost, and what an op wrote is there for
 * callers that waited for it. Of the runtime only context.c's opening and the calls are left out.
 */
#include "internal.h"
#include "scenarios.h"

#include "host/host_executor.h"
#include "groups/admission.h"
#include "api/context.h"
#include "api/failures.h"
#include "api/threads.h"
#include "api/wait.h"
#include "window/replay.h"

enum { OPS = 4 };

/* One op and what became of it. Plain memory: the library has to order all accesses. */
typedef struct work {
    uint32_t ran, ended;
    acs_op op;
} work;

static acs_context *g_context;
static work *g_work;
static const acs_site g_site = {"scenario", __FILE__, 0};

/* ---------------------------------------------------------------------------------------------- stands for the rest */

/* Threads with the same number look at the same action first. */
static bool g_same_number;

uint64_t acs_thread_number(void)
{
    return g_same_number ? 0 : (uint64_t)model_current();
}

bool acs_inside(void)
{
    return false;
}

void acs_inside_set(bool inside)
{
    (void)inside;
}

int acs_cancel_hold(void)
{
    return 0;
}

void acs_cancel_restore(const int *before)
{
    (void)before;
}

/* What no scenario asks for: a lost device, library calls. */
#define NOT_ASKED_FOR(result, name, ...)                                                                               \
    result name(__VA_ARGS__)                                                                                           \
    {                                                                                                                  \
        model_fail("%s is not asked for", __func__);                                                                   \
    }
NOT_ASKED_FOR(acs_status, acs_failures_refuse, acs_context *context __attribute__((unused)),
              const acs_site *site __attribute__((unused)))
NOT_ASKED_FOR(void, acs_error_at, const acs_site *site __attribute__((unused)))
NOT_ASKED_FOR(acs_memory_place, acs_memory_find, acs_memory *memory __attribute__((unused)),
              uint64_t address __attribute__((unused)), acs_block *block __attribute__((unused)))
NOT_ASKED_FOR(bool, acs_allocations_find, acs_allocations *allocations __attribute__((unused)),
              uint64_t address __attribute__((unused)), acs_allocation *allocation __attribute__((unused)))
NOT_ASKED_FOR(acs_status, acs_backend_decide, acs_backend *backend __attribute__((unused)),
              const acs_record *op __attribute__((unused)))
NOT_ASKED_FOR(acs_status, acs_backend_call, acs_backend *backend __attribute__((unused)),
              acs_record *op __attribute__((unused)), int *native __attribute__((unused)))
NOT_ASKED_FOR(void, acs_error_fill, acs_error *error __attribute__((unused)), acs_status status __attribute__((unused)),
              int native __attribute__((unused)), const char *where __attribute__((unused)),
              const char *format __attribute__((unused)), ...)

/* Asked for where the default context cannot be opened. */
acs_error *acs_error_thread(void)
{
    static acs_error none;
    return &none;
}

static int run_work(void *closure)
{
    work *w = closure;
    model_require(!w->ran);
    w->ran = 1;
    return 0;
}

static void on_end(void *user, const acs_end *end)
{
    (void)user;
    work *w = end->op->u.host.closure;
    model_require(end->status == ACS_OK && w->ran && !w->ended);
    w->ended = 1;
}

static void thread_enter(acs_backend *backend)
{
    (void)backend;
}

/* A backend of a slot, and an executor for it, on each device, as host.c makes of host_executor.c. */
static struct {
    acs_host_slots *slots;
    acs_lock *lock;
    acs_cond *queued;
} g_backend;

static void run_replay(const acs_replay *replay)
{
    model_require(replay && replay->count == 2);
    for (uint32_t at = 0; at < replay->shape->ops; at++)
        if (acs_replay_has(replay, at))
            (void)run_work(replay->shape->op[at]->u.host.closure);
}

/* A replay is run at once. The host backend has none: it refuses the op, but moves the slot's timeline. */
static void submit(acs_backend *backend, acs_batch *batch)
{
    (void)backend;
    acs_lock_acquire(g_backend.lock);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        acs_item *item = &batch->items[i];
        const bool replay = item->op && item->op->kind == ACS_KIND_REPLAY;
        if (replay)
            run_replay(item->op->u.replay.replay);
        acs_host_issue(g_backend.slots, batch, item);
        if (replay)
            acs_item_result(item, ACS_OK, 0, NULL);
    }
    acs_cond_broadcast(g_backend.queued);
    acs_lock_release(g_backend.lock);
}

static acs_status poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    (void)backend;
    uint32_t n = acs_host_marks_complete(marks, count, acs_host_completed(g_backend.slots, (uint32_t)slot));
    if (n)
        *completed = marks[n - 1].value;
    return ACS_OK;
}

static void *executor(void *of)
{
    const uint32_t slot = (uint32_t)(uintptr_t)of;
    acs_lock_acquire(g_backend.lock);
    for (;;) {
        const acs_host_entry *entry = acs_host_head(g_backend.slots, slot);
        if (!entry) {
            acs_cond_wait(g_backend.queued, g_backend.lock);
            continue;
        }
        work *w = entry->op->u.host.closure;
        acs_lock_release(g_backend.lock);
        (void)run_work(w);
        acs_lock_acquire(g_backend.lock);
        acs_host_finish(g_backend.slots, slot);
        acs_lock_release(g_backend.lock);
        acs_context_completed(g_context);
        acs_lock_acquire(g_backend.lock);
    }
    return NULL;
}

static const acs_backend_ops g_ops = {
    .notifies = true, .thread_enter = thread_enter, .submit = submit, .poll = poll};

static void setup_executors(uint32_t devices)
{
    pthread_t thread;
    g_backend.slots = calloc(1, sizeof *g_backend.slots);
    g_backend.lock = calloc(1, sizeof *g_backend.lock);
    g_backend.queued = calloc(1, sizeof *g_backend.queued);
    (void)acs_host_slots_init(g_backend.slots, devices);
    for (uintptr_t slot = 0; slot < devices; slot++)
        (void)pthread_create(&thread, NULL, executor, (void *)slot);
}

static void setup_context(uint32_t workers, uint32_t records, uint32_t devices)
{
    g_same_number = false;
    g_work = calloc(OPS, sizeof *g_work);
    g_context = calloc(1, sizeof *g_context);
    acs_context *c = g_context;
    c->options = (acs_options){
        .size = sizeof c->options, .workers = workers, .fifo = 2, .window = 2, .streams = 1, .batch = 4};
    c->backend = calloc(1, sizeof *c->backend);
    c->backend->ops = &g_ops;
    c->backend->devices = devices;
    (void)acs_record_pool_create(records, &c->records);
    const acs_core_config config = {
        .options = &c->options, .backend = c->backend, .records = c->records, .user = c, .on_end = on_end};
    (void)acs_core_init(&c->core, &config);
    (void)acs_eventcount_init(&c->work);
    (void)acs_eventcount_init(&c->host_work);
    (void)acs_eventcount_init(&c->ends);
    (void)acs_workers_start(c);
}

static void setup_worker(void)
{
    setup_context(1, OPS, 1);
}

static void setup_no_worker(void)
{
    setup_context(0, OPS, 1);
}

static void setup_same_number(void)
{
    setup_context(0, OPS, 1);
    g_same_number = true;
}

static void setup_one_record(void)
{
    setup_context(1, 1, 1);
}

static void setup_worker_executor(void)
{
    setup_context(1, OPS, 1);
    setup_executors(1);
}

static void setup_workers_executor(void)
{
    setup_context(2, OPS, 1);
    setup_executors(1);
}

static void setup_two_devices(void)
{
    setup_context(1, OPS, 2); /* a worker for each */
    setup_executors(2);
}

static void setup_caller_executor(void)
{
    setup_context(0, OPS, 1);
    setup_executors(1);
}

static acs_replay *g_replay;

/* A replay of ops 0 and 1, which no thread has begun to fill. */
static void setup_replay(void)
{
    static acs_record ops[2];
    static const acs_record *const list[2] = {&ops[0], &ops[1]};
    setup_worker_executor();
    memset(ops, 0, sizeof ops);
    for (uint32_t i = 0; i < 2; i++) {
        ops[i].kind = ops[i].asked = ACS_KIND_KERNEL;
        ops[i].site = &g_site;
        ops[i].u.host.closure = &g_work[i];
    }
    acs_replay_shape *shape = acs_replay_shape_create(list, 2);
    g_replay = shape ? acs_replay_create(shape) : NULL;
    if (g_replay)
        acs_replay_begin(g_replay, 0); /* it is not free before its ops have ended */
}

/* ---------------------------------------------------------------------------------------------------------- threads */

static void queue_record(acs_record *record, uint32_t i, acs_op_kind kind)
{
    record->kind = (uint8_t)kind;
    record->site = &g_site;
    record->u.host.function = run_work;
    record->u.host.closure = &g_work[i];
    g_work[i].op = acs_fifo_push(g_context->core.fifo, record);
    model_require(g_work[i].op);
    acs_context_queued(g_context, g_work[i].op, kind == ACS_KIND_KERNEL);
}

static void queue(uint32_t i)
{
    acs_record *record = acs_record_acquire(g_context->records);
    model_require(record);
    queue_record(record, i, ACS_KIND_HOST);
}

static void wait_for_op(uint32_t i)
{
    acs_context_wait(g_context, ACS_WAIT_FOR_OP, g_work[i].op);
    model_require(g_work[i].ran && g_work[i].ended);
}

static void queue_0(void)
{
    queue(0);
}

static void queue_wait_0(void)
{
    queue(0);
    wait_for_op(0);
}

static void queue_wait_1(void)
{
    queue(1);
    wait_for_op(1);
}

static void check_0(void)
{
    model_require(g_work[0].ran && g_work[0].ended);
}

static void check_both(void)
{
    check_0();
    model_require(g_work[1].ran && g_work[1].ended);
}

/* As a launch while the FIFO is full: the record of the op before has to come back. */
static bool has_record(acs_context *context, void *record)
{
    acs_record **taken = record;
    if (!*taken)
        *taken = acs_record_acquire(context->records);
    return *taken != NULL;
}

static void queue_twice(void)
{
    acs_record *record = NULL;
    queue(0);
    acs_context_wait_room(g_context, has_record, &record);
    model_require(record && g_work[0].ended);
    queue_record(record, 1, ACS_KIND_HOST);
}

/* As acs_close. */
static void queue_close(void)
{
    queue(0);
    acs_context_wait(g_context, ACS_WAIT_FOR_ALL, acs_fifo_last(g_context->core.fifo));
    model_require(g_work[0].ran && g_work[0].ended);
    (void)acs_workers_stop(g_context);
}

static void start_queue_wait_0(void)
{
    acs_host_thread_start(g_context);
    queue(0);
    wait_for_op(0);
}

static void launch_0(void)
{
    acs_record *record = acs_record_acquire(g_context->records);
    queue_record(record, 0, ACS_KIND_KERNEL);
}

static void launch_to_each(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        acs_record *record = acs_record_acquire(g_context->records);
        record->device = (uint8_t)i;
        queue_record(record, i, ACS_KIND_KERNEL);
    }
}

static void launch_wait_0(void)
{
    launch_0();
    wait_for_op(0);
}

/* As src/repeats: the record is queued with the first op, and sealed behind the last one. */
static void replay_seal(void)
{
    acs_record *record = acs_record_acquire(g_context->records);
    model_require(record && g_replay);
    record->kind = record->asked = ACS_KIND_REPLAY;
    record->site = &g_site;
    record->u.replay.replay = NULL;
    record->u.replay.span = 2;
    g_work[0].op = acs_fifo_push(g_context->core.fifo, record);
    model_require(g_work[0].op);
    acs_context_queued(g_context, g_work[0].op, true);
    acs_replay_begin(g_replay, g_work[0].op);
    for (uint32_t at = 0; at < 2; at++)
        g_work[at].op = acs_replay_add(g_replay, at, false);
    acs_core_replay_sealed(&g_context->core, record, g_replay);
    acs_context_queued(g_context, g_work[0].op, true);
}

static void replay_wait(void)
{
    replay_seal();
    wait_for_op(1);
    model_require(g_work[0].ended && acs_replay_is_free(g_replay));
}

/* Without a lock: once the core has given it back it is filled again. */
static void replay_again(void)
{
    if (acs_replay_is_free(g_replay))
        acs_replay_begin(g_replay, 3);
}

/* As acs_malloc, which hands out memory that an op used: once that has settled it is the caller's. */
static void use_what_settled(void)
{
    if (acs_core_settled(&g_context->core) < 1)
        return;
    model_require(g_work[0].ran == 1 && g_work[0].ended);
    g_work[0].ended = 2;
}

const model_scenario scenario_worker_settled = {
    .name = "worker_settled", .what = "a caller takes memory that an op has used, without a lock", .setup = setup_worker,
    .threads = {queue_0, use_what_settled}, .check = check_0, .preemptions = 2};
const model_scenario scenario_worker_queue = {
    .name = "worker_queue", .what = "an op is queued while the worker falls asleep", .setup = setup_worker,
    .threads = {queue_0}, .check = check_0};
const model_scenario scenario_worker_wait = {
    .name = "worker_wait", .what = "a caller queues an op and waits, beside a worker", .setup = setup_worker,
    .threads = {queue_wait_0}, .check = check_0, .preemptions = 2};
const model_scenario scenario_worker_callers = {
    .name = "worker_callers", .what = "two callers queue and wait, one worker", .setup = setup_worker,
    .threads = {queue_wait_0, queue_wait_1}, .check = check_both, .preemptions = 1, .most = 10000};
const model_scenario scenario_worker_room = {
    .name = "worker_room", .what = "a caller waits for a record to come back", .setup = setup_one_record,
    .threads = {queue_twice}, .check = check_both, .preemptions = 2};
const model_scenario scenario_worker_stop = {
    .name = "worker_stop", .what = "a caller drains and stops the worker", .setup = setup_worker,
    .threads = {queue_close}, .check = check_0, .preemptions = 2};
const model_scenario scenario_worker_host = {
    .name = "worker_host", .what = "the thread of host functions is made beside a worker", .setup = setup_worker,
    .threads = {start_queue_wait_0}, .check = check_0, .preemptions = 1};
const model_scenario scenario_worker_kernel = {
    .name = "worker_kernel", .what = "a caller waits for a kernel: worker, executor, retirement",
    .setup = setup_worker_executor, .threads = {launch_wait_0}, .check = check_0, .preemptions = 1};
const model_scenario scenario_workers_kernel = {
    .name = "workers_kernel", .what = "nobody waits for a kernel: of two workers one may find the other at the poll",
    .setup = setup_workers_executor, .threads = {launch_0}, .check = check_0, .preemptions = 2, .most = 20000};
const model_scenario scenario_workers_devices = {
    .name = "workers_devices", .what = "nobody waits for kernels on two devices, each with a worker and an executor",
    .setup = setup_two_devices, .threads = {launch_to_each}, .check = check_both, .preemptions = 1, .most = 20000};
const model_scenario scenario_replay_sealed = {
    .name = "replay_sealed", .what = "a replay is queued, filled and sealed beside a worker", .setup = setup_replay,
    .threads = {replay_seal}, .check = check_both, .preemptions = 2, .most = 20000};
const model_scenario scenario_replay_again = {
    .name = "replay_again", .what = "a replay that has ended is filled again", .setup = setup_replay,
    .threads = {replay_seal, replay_again}, .check = check_both, .preemptions = 1, .most = 20000};
const model_scenario scenario_replay_wait = {
    .name = "replay_wait", .what = "the same, and its caller waits for an op of it", .setup = setup_replay,
    .threads = {replay_wait}, .check = check_both, .preemptions = 1, .most = 20000};
const model_scenario scenario_caller_kernel = {
    .name = "caller_kernel", .what = "the same without a worker", .setup = setup_caller_executor,
    .threads = {launch_wait_0}, .check = check_0, .preemptions = 2};
const model_scenario scenario_callers_action = {
    .name = "callers_action", .what = "two callers that share an action", .setup = setup_same_number,
    .threads = {queue_wait_0, queue_wait_1}, .check = check_both, .preemptions = 1, .most = 10000};
const model_scenario scenario_callers = {
    .name = "callers", .what = "two callers queue and wait, no worker", .setup = setup_no_worker,
    .threads = {queue_wait_0, queue_wait_1}, .check = check_both, .preemptions = 2, .most = 100000};
