/*
 * Scenarios of threads around the core: src/runtime/worker.c and gate.c over the whole core, window and FIFO, as they
 * are. Who queues an op while the last worker falls asleep, who waits while nobody is awake: no wake-up may be lost, and
 * what an op wrote is there for who waited for it. Of the runtime only context.c's opening and the calls are left out.
 */
#include "scenarios.h"

#include "backend/host_executor.h"
#include "runtime/context.h"

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

bool acs_inside(void)
{
    return false;
}

void acs_inside_set(bool inside)
{
    (void)inside;
}

/* What no scenario asks for: virtual time, a lost device, library calls. */
#define NOT_ASKED_FOR(result, name, ...)                                                                               \
    result name(__VA_ARGS__)                                                                                           \
    {                                                                                                                  \
        model_fail("%s is not asked for", __func__);                                                                   \
    }
NOT_ASKED_FOR(bool, acs_virtual_step, acs_context *context __attribute__((unused)))
NOT_ASKED_FOR(void, acs_virtual_wait, acs_context *context __attribute__((unused)))
NOT_ASKED_FOR(void, acs_context_keep, acs_context *context __attribute__((unused)))
NOT_ASKED_FOR(void, acs_context_release, acs_context *context __attribute__((unused)),
              bool backend_stays __attribute__((unused)))
NOT_ASKED_FOR(acs_error *, acs_error_thread, void)
NOT_ASKED_FOR(acs_status, acs_backend_call, acs_backend *backend __attribute__((unused)),
              acs_record *op __attribute__((unused)), int *native __attribute__((unused)))
NOT_ASKED_FOR(void, acs_error_fill, acs_error *error __attribute__((unused)), acs_status status __attribute__((unused)),
              int native __attribute__((unused)), const char *where __attribute__((unused)),
              const char *format __attribute__((unused)), ...)

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

static const acs_backend_ops g_ops = {.name = "model", .notifies = true, .thread_enter = thread_enter};

static void setup_context(uint32_t workers, uint32_t fifo, uint32_t window)
{
    g_work = calloc(OPS, sizeof *g_work);
    g_context = calloc(1, sizeof *g_context);
    acs_context *c = g_context;
    c->options = (acs_options){.size = sizeof c->options, .workers = workers, .fifo = fifo, .window = window,
                               .streams = 1, .batch = 4};
    c->backend = calloc(1, sizeof *c->backend);
    c->backend->ops = &g_ops;
    (void)acs_record_pool_create(OPS, &c->records);
    const acs_core_config config = {
        .options = &c->options, .backend = c->backend, .records = c->records, .user = c, .on_end = on_end};
    (void)acs_core_init(&c->core, &config);
    (void)acs_gate_init(&c->work);
    (void)acs_gate_init(&c->host_work);
    (void)acs_gate_init(&c->ends);
    (void)acs_workers_start(c);
}

static void setup_worker(void)
{
    setup_context(1, 4, 2);
}

static void setup_no_worker(void)
{
    setup_context(0, 4, 2);
}

/* ----------------------------------------------------------------------------------------------------------- threads */

static acs_record *draft(uint32_t i)
{
    acs_record *record = acs_record_acquire(g_context->records);
    model_require(record);
    record->kind = ACS_KIND_HOST;
    record->site = &g_site;
    record->u.host.function = run_work;
    record->u.host.closure = &g_work[i];
    return record;
}

static void queue(uint32_t i)
{
    g_work[i].op = acs_fifo_push(g_context->core.fifo, draft(i));
    model_require(g_work[i].op);
    acs_context_queued(g_context);
}

static void wait_for_op(uint32_t i)
{
    acs_context_wait(g_context, ACS_WATCH_OP, g_work[i].op);
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

const model_scenario scenario_worker_queue = {
    .name = "worker_queue", .what = "an op is queued while the worker falls asleep", .setup = setup_worker,
    .threads = {queue_0}, .check = check_0};
const model_scenario scenario_worker_wait = {
    .name = "worker_wait", .what = "a caller queues an op and waits, beside a worker", .setup = setup_worker,
    .threads = {queue_wait_0}, .check = check_0};
const model_scenario scenario_worker_callers = {
    .name = "worker_callers", .what = "two callers queue and wait, one worker", .setup = setup_worker,
    .threads = {queue_wait_0, queue_wait_1}, .check = check_both, .most = 20000};
const model_scenario scenario_callers = {
    .name = "callers", .what = "two callers queue and wait, no worker", .setup = setup_no_worker,
    .threads = {queue_wait_0, queue_wait_1}, .check = check_both, .most = 20000};
