/*
 * The sim backend: the library on a machine of GPUs in virtual time (src/sim), in one thread. Its slots are streams of
 * that machine and its marks events; an op's host body runs once the machine says that it started or ended. Called by
 * the core through its ops table. Never starts a thread or reads a clock: the same calls with the same seed are the
 * same run.
 *
 * ACS_SIM_ORDER=time: costs and durations are the model's, for tools that predict. =seed: the seed draws the shape of
 * the GPU, how long each op takes and how much each poll sees, so that all orders which the waits allow can happen;
 * that is for tests. Breaches of the rules of marks and values in backend.h, which a GPU would punish at random, fail
 * the item with ACS_ERR_INTERNAL. Once the device is lost no body runs any more: the program may have freed what it
 * would touch.
 */
#include "backend/sim.h"

#include "backend/host_kernel.h"
#include "base/lock.h"

#include <stdlib.h>

/* How long ops take when the seed decides; one per seed. Each makes another kind of missing order likely to show. */
typedef enum sim_strategy {
    SIM_UNIFORM, /* any time */
    SIM_NEWEST,  /* an op ends before those that run already: overtakes everything that it need not wait for */
    SIM_STARVE,  /* the ops of one slot end when nothing else runs */
    SIM_EAGER,   /* everything runs and is seen at the first poll: an infinitely fast GPU */
    SIM_STRATEGIES
} sim_strategy;

enum {
    STEPS_MAX = 3,      /* times at which ops run or end that one poll lets come */
    POLLS_IDLE_MAX = 2, /* polls in a row that may let none come */
    POLLS_LATE_MAX = 3, /* polls of a slot in a row that may hide a completion */
    VICTIM_ITEMS = 32,  /* after so many another slot starves */
    NEWEST_ITEMS = 40,
    SLOW_FACTOR = 1000,
    LONG_NS = 1000000,
    NATIVE_EVENT = 720, /* injected failures that take the device */
    NATIVE_LOST = 721
};

typedef struct sim_mark {
    uint32_t event;     /* plus 1; 0: never recorded */
    uint64_t value;     /* of the latest record */
} sim_mark;

typedef struct sim_slot {
    uint32_t stream;
    uint64_t value;     /* highest of any op or mark */
    uint64_t visible;   /* how much of the timeline poll has shown */
    uint32_t late;      /* polls in a row that hid a completion */
    uint64_t known_at;  /* when the host can know of the completion that was looked at last */
} sim_slot;

typedef struct sim_backend {
    acs_backend base;
    uint32_t slots, mark_capacity;
    bool by_seed;
    sim_strategy strategy;
    uint64_t kernel_ns;
    uint64_t salt;            /* which ops run when they start */
    acs_sim_gpu gpu;
    acs_sim_describe describe;
    void *describe_user;
    acs_host_scratch scratch; /* of the thread that runs ops: `running` */

    acs_lock lock;            /* rank BACKEND; guards the rest */
    acs_sim *machine;
    acs_random random;
    acs_sim_faults faults;
    sim_slot *slot;
    sim_mark *marks;          /* [slot * mark_capacity + index] */
    uint64_t now;             /* the host's time */
    uint64_t issued;          /* items */
    uint32_t victim;          /* of SIM_STARVE */
    uint32_t polls_idle;      /* in a row */
    const acs_record **due;   /* ops that the machine ran and whose bodies did not run yet, in that order */
    uint32_t due_count, due_capacity;
    uint32_t in_flight;       /* ops issued whose bodies did not run: all of them have room in `due` */
    bool told;                /* an op ran or ended since this was cleared */
    bool running;             /* a poll is running bodies, with the lock released */
    bool lost;
} sim_backend;

static sim_backend *self_of(acs_backend *backend)
{
    return (sim_backend *)backend;
}

/* -------------------------------------------------------------------------------------- rules of marks and values */

static sim_mark *mark_at(const sim_backend *s, const acs_mark *mark)
{
    return &s->marks[(size_t)mark->slot * s->mark_capacity + mark->index];
}

static bool marks_exist(const sim_backend *s, const acs_mark *marks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i].slot >= s->slots || marks[i].index >= s->mark_capacity)
            return false;
    }
    return true;
}

/* Does the item name slots and marks that exist? If not, there is nothing that could be issued. */
static bool item_exists(const sim_backend *s, const acs_batch *batch, const acs_item *item)
{
    return item->slot < (int32_t)s->slots && marks_exist(s, &batch->marks[item->first_mark], item->mark_count) &&
           marks_exist(s, &batch->waits[item->first_wait], item->wait_count) &&
           marks_exist(s, &item->after, item->mark_after);
}

static bool is_complete(const sim_backend *s, const sim_mark *mark)
{
    return !mark->event || acs_sim_event_time(s->machine, mark->event - 1) != ACS_SIM_NEVER;
}

/* NULL, or what the core did wrong. */
static const char *mark_check(sim_backend *s, const acs_mark *mark)
{
    if (!is_complete(s, mark_at(s, mark)))
        return "a mark used again before it was complete";
    if (mark->value < s->slot[mark->slot].value)
        return "a mark with a value below one issued before it";
    return NULL;
}

/* Its value counts even if it breaks a rule: what comes behind is judged by itself. */
static const char *record_mark(sim_backend *s, const acs_mark *mark)
{
    const char *wrong = mark_check(s, mark);
    sim_mark *recorded = mark_at(s, mark);

    if (!recorded->event)
        recorded->event = acs_sim_event(s->machine) + 1; /* ACS_SIM_NONE becomes 0 */
    s->now += s->gpu.host.record;
    if (recorded->event)
        acs_sim_record(s->machine, s->now, s->slot[mark->slot].stream, recorded->event - 1);
    recorded->value = mark->value;
    if (s->slot[mark->slot].value < mark->value)
        s->slot[mark->slot].value = mark->value;
    return wrong;
}

/* A mark that is complete may have been used again since the wait was decided: as on a GPU, the wait is for that then. */
static const char *send_wait(sim_backend *s, const acs_mark *mark, uint32_t slot)
{
    const sim_mark *recorded = mark_at(s, mark);

    if (!recorded->event || recorded->value < mark->value)
        return "a wait for a mark that was not recorded";
    s->now += s->gpu.host.wait;
    acs_sim_wait(s->machine, s->now, s->slot[slot].stream, recorded->event - 1);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------- issuing */

/* Told by the machine. One in four runs when it starts: then what should have waited for it may see too much, not less. */
static void on_told(void *owner, void *user, bool ended, uint64_t when)
{
    sim_backend *s = owner;
    const acs_record *op = user;
    bool at_start = s->by_seed && (acs_hash64(op->seq + s->salt) & 3) == 0;

    if (acs_log_enabled(ACS_LOG_DEBUG))
        acs_log(ACS_LOG_DEBUG, "sim: %llu ns: op %llu %s%s", (unsigned long long)when, (unsigned long long)op->seq,
                ended ? "ended" : "started", ended != at_start ? ", its body runs" : "");
    s->told |= ended || at_start;
    if (ended != at_start)
        s->due[s->due_count++] = op;
}

static uint64_t drawn_ns(sim_backend *s, uint32_t slot)
{
    uint32_t some = acs_random_below(&s->random, 1000);

    if (s->issued % VICTIM_ITEMS == 0 && s->strategy == SIM_STARVE)
        s->victim = acs_random_below(&s->random, s->slots);
    if (s->strategy == SIM_NEWEST) /* mostly longer than all that come after it together */
        return ((uint64_t)LONG_NS << 20 >> s->issued % NEWEST_ITEMS) + some;
    if (s->strategy == SIM_STARVE && slot == s->victim)
        return (uint64_t)LONG_NS * 1000;
    return some;
}

static acs_sim_kernel kernel_of(const sim_backend *s, const acs_record *op, uint64_t ns)
{
    const acs_dim3 *g = &op->u.launch.grid, *b = &op->u.launch.block;
    uint64_t ctas = (uint64_t)g->x * g->y * g->z;
    acs_sim_kernel kernel = {.ctas = ctas > UINT32_MAX ? UINT32_MAX : (uint32_t)ctas, .threads = b->x * b->y * b->z,
                             .shared_bytes = (uint32_t)op->u.launch.shared_bytes, .cta_ns = ns};

    if (s->by_seed && kernel.ctas > 64) /* more would only take real time */
        kernel.ctas = 64;
    if (s->describe)
        s->describe(s->describe_user, op, &kernel);
    return kernel;
}

static void launch(sim_backend *s, acs_record *op, uint32_t slot)
{
    uint32_t stream = s->slot[slot].stream;
    uint64_t ns = s->by_seed ? drawn_ns(s, slot) : s->kernel_ns;
    acs_sim_kernel kernel = {0};

    s->now += op->kind == ACS_KIND_KERNEL ? s->gpu.host.launch : s->gpu.host.copy;
    if (op->kind == ACS_KIND_KERNEL)
        kernel = kernel_of(s, op, ns);
    if (acs_sim_fault(&s->faults, ACS_FAULT_SLOW))
        kernel.cta_ns = ns *= SLOW_FACTOR;
    if (op->kind == ACS_KIND_KERNEL && acs_sim_fault(&s->faults, ACS_FAULT_ENDLESS))
        kernel.cta_ns = ACS_SIM_NEVER;
    if (op->kind == ACS_KIND_KERNEL)
        acs_sim_launch(s->machine, s->now, stream, &kernel, op);
    else if (s->by_seed || op->kind == ACS_KIND_STREAM_WAIT)
        acs_sim_delay(s->machine, s->now, stream, s->by_seed ? ns : 0, op);
    else
        acs_sim_copy(s->machine, s->now, stream, ACS_SIM_WITHIN, 0, op->u.copy.bytes, op);
    s->in_flight++;
    s->issued++;
}

static void refuse(acs_item *item, acs_status status, int native, const char *text)
{
    item->status = status;
    item->native = native;
    item->text = text;
}

/* Every op that was issued has room among those that are due. */
static bool due_room(sim_backend *s)
{
    uint32_t capacity = s->due_capacity ? s->due_capacity * 2 : 64;
    const acs_record **grown;

    if (s->in_flight < s->due_capacity)
        return true;
    grown = realloc(s->due, capacity * sizeof *grown);
    if (!grown)
        return false;
    s->due = grown;
    s->due_capacity = capacity;
    return true;
}

/* Set the item's status where it cannot be issued. */
static void judge(sim_backend *s, const acs_batch *batch, acs_item *item)
{
    for (uint32_t i = 0; i < item->edge_count; i++) {
        if (batch->items[batch->edges[item->first_edge + i]].status != ACS_OK) {
            refuse(item, ACS_ERR_SKIPPED, 0, NULL);
            return;
        }
    }
    if (item->slot < 0 || item->status != ACS_OK)
        return;
    if (!acs_host_runs(item->op))
        refuse(item, ACS_ERR_INTERNAL, 0, "this kind of op is not for a slot of the sim backend");
    else
        acs_sim_fault_item(&s->faults, item);
}

static void lose(sim_backend *s, acs_item *item, int native, const char *text)
{
    s->lost = true;
    refuse(item, ACS_ERR_DEVICE, native, text);
}

/* Marks, waits and values, in the order of issue, so that the item's waits may name its own marks. What the core did wrong
 * becomes the item's error; its waits and marks still take effect. */
static void issue_order(sim_backend *s, const acs_batch *batch, acs_item *item)
{
    const char *wrong = NULL, *next;

    for (uint32_t i = 0; i < item->mark_count; i++) {
        next = record_mark(s, &batch->marks[item->first_mark + i]);
        wrong = wrong ? wrong : next;
    }
    for (uint32_t i = 0; i < item->wait_count && item->slot >= 0; i++) {
        next = send_wait(s, &batch->waits[item->first_wait + i], (uint32_t)item->slot);
        wrong = wrong ? wrong : next;
    }
    if (item->slot >= 0 && item->value <= s->slot[item->slot].value)
        wrong = wrong ? wrong : "a value that is not above the ones issued before it";
    else if (item->slot >= 0)
        s->slot[item->slot].value = item->value;
    if (wrong)
        refuse(item, ACS_ERR_INTERNAL, 0, wrong);
}

static void issue(sim_backend *s, const acs_batch *batch, acs_item *item)
{
    const char *wrong;
    refuse(item, ACS_ERR_INTERNAL, 0, "a slot or mark that does not exist");
    if (!item_exists(s, batch, item))
        return;
    refuse(item, ACS_OK, 0, NULL);
    issue_order(s, batch, item);
    judge(s, batch, item);
    if (item->status == ACS_OK && item->slot >= 0 && !due_room(s))
        lose(s, item, 0, "no memory for an op that was issued");
    if (item->status == ACS_OK && item->slot >= 0)
        launch(s, item->op, (uint32_t)item->slot);
    wrong = item->mark_after ? record_mark(s, &item->after) : NULL;
    if (wrong && item->status == ACS_OK)
        refuse(item, ACS_ERR_INTERNAL, 0, wrong);
    if ((item->mark_count || item->mark_after) && acs_sim_fault(&s->faults, ACS_FAULT_EVENT))
        lose(s, item, NATIVE_EVENT, "injected: an event could not be recorded");
    if (acs_sim_failed(s->machine))
        lose(s, item, 0, "no memory for the simulated machine");
}

static void sim_submit(acs_backend *backend, acs_batch *batch)
{
    sim_backend *s = self_of(backend);

    acs_lock_acquire(&s->lock);
    for (uint32_t i = 0; i < batch->items_used; i++) {
        if (s->lost)
            refuse(&batch->items[i], ACS_ERR_DEVICE, NATIVE_LOST, "the simulated device is lost");
        else
            issue(s, batch, &batch->items[i]);
    }
    acs_lock_release(&s->lock);
}

/* ----------------------------------------------------------------------------------------------------- time, bodies */

/* Bodies run in the order of the machine's telling, without the lock; nobody else runs any meanwhile. */
static void run_due(sim_backend *s)
{
    s->running = true;
    for (uint32_t i = 0; i < s->due_count; i++) {
        /* Copied out: a submit beside the running op may move the list. */
        const acs_record *op = s->due[i];
        acs_lock_release(&s->lock);
        acs_host_run(op, &s->scratch);
        acs_lock_acquire(&s->lock);
    }
    s->in_flight -= s->due_count;
    s->due_count = 0;
    s->running = false;
}

/* Let a few of the next things happen, none now and then, but never none for long. */
static void pass_drawn_time(sim_backend *s)
{
    uint32_t steps = s->strategy == SIM_EAGER ? UINT32_MAX : acs_random_below(&s->random, STEPS_MAX + 1);
    uint64_t next;

    if (!steps && ++s->polls_idle > POLLS_IDLE_MAX)
        steps = 1;
    if (steps)
        s->polls_idle = 0;
    while (steps && (next = acs_sim_next(s->machine)) != ACS_SIM_NEVER) {
        s->told = false;
        acs_sim_advance(s->machine, next);
        s->now = s->now < next ? next : s->now;
        run_due(s);
        steps -= s->told;
    }
}

static void pass_time(sim_backend *s)
{
    if (s->running)
        return; /* another thread's poll is at it */
    if (s->by_seed) {
        pass_drawn_time(s);
        return;
    }
    s->now += s->gpu.host.query;
    acs_sim_advance(s->machine, s->now);
    run_due(s);
}

/* --------------------------------------------------------------------------------------------------------- polling */

/* How many of these marks, oldest first, the host could know to be complete, and when of the last looked at. */
static uint32_t count_complete(const sim_backend *s, const acs_mark *marks, uint32_t count, uint64_t *known_at)
{
    *known_at = 0;
    for (uint32_t n = 0; n < count; n++) {
        const sim_mark *mark = mark_at(s, &marks[n]);
        uint64_t at = mark->value == marks[n].value ? acs_sim_event_time(s->machine, mark->event - 1) : 0;
        if (mark->value < marks[n].value || at == ACS_SIM_NEVER)
            return n;
        *known_at = at + (s->by_seed ? 0 : s->gpu.device.host_visible);
        if (*known_at > s->now)
            return n;
    }
    return count;
}

/* Show some of what is complete, newest mark among `done`; all of it when it was hidden too often. */
static void show(sim_backend *s, sim_slot *slot, const acs_mark *marks, uint32_t done)
{
    uint32_t shown = done;
    if (s->by_seed && s->strategy != SIM_EAGER && slot->late < POLLS_LATE_MAX)
        shown = acs_random_below(&s->random, done + 1);
    slot->late = shown < done ? slot->late + 1 : 0;
    if (shown && marks[shown - 1].value > slot->visible)
        slot->visible = marks[shown - 1].value;
}

/*
 * Running and showing are apart, as on a GPU: what is complete may be seen polls later, and marks of other slots
 * complete without anybody asking for them.
 */
static acs_status sim_poll(acs_backend *backend, int slot_index, const acs_mark *marks, uint32_t count,
                           uint64_t *completed)
{
    sim_backend *s = self_of(backend);
    sim_slot *slot = &s->slot[slot_index];
    bool lost;
    acs_lock_acquire(&s->lock);
    if (!s->lost)
        pass_time(s);
    if (acs_sim_fault(&s->faults, ACS_FAULT_LOST))
        s->lost = true;
    lost = s->lost;
    if (!lost && !s->running)
        show(s, slot, marks, count_complete(s, marks, count, &slot->known_at));
    for (uint32_t i = count; i > 0; i--) {
        if (marks[i - 1].value > slot->visible)
            continue;
        *completed = marks[i - 1].value;
        break;
    }
    acs_lock_release(&s->lock);
    return lost ? ACS_FAIL(ACS_ERR_DEVICE, NATIVE_LOST, "the simulated device is lost") : ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------------- memory */

static acs_status sim_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    sim_backend *s = self_of(backend);
    bool fails;
    acs_lock_acquire(&s->lock);
    fails = acs_sim_fault(&s->faults, ACS_FAULT_MEMORY);
    acs_lock_release(&s->lock);
    if (fails)
        return ACS_FAIL(ACS_ERR_MEMORY, NATIVE_LOST + 1, "injected: no memory for %zu bytes", bytes);
    return acs_host_memory_alloc(backend, memory, bytes, ptr);
}

/* ------------------------------------------------------------------------------------------------ virtual time */

uint64_t acs_sim_backend_now(const acs_backend *backend)
{
    return ((const sim_backend *)backend)->now;
}

void acs_sim_backend_at(acs_backend *backend, uint64_t now)
{
    self_of(backend)->now = now;
}

uint64_t acs_sim_backend_next(const acs_backend *backend)
{
    const sim_backend *s = (const sim_backend *)backend;
    uint64_t next = acs_sim_next(s->machine);
    if (next != ACS_SIM_NEVER && !s->by_seed)
        next += s->gpu.device.host_visible;
    /* What is complete and not known yet is news too: without it all would sleep where it is the last that happens. */
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->slot[i].known_at > s->now && s->slot[i].known_at < next)
            next = s->slot[i].known_at;
    return next;
}

bool acs_sim_backend_by_seed(const acs_backend *backend)
{
    return ((const sim_backend *)backend)->by_seed;
}

const uint64_t *acs_sim_backend_faults(const acs_backend *backend)
{
    return ((const sim_backend *)backend)->faults.count;
}

const acs_sim *acs_sim_backend_machine(const acs_backend *backend)
{
    return ((const sim_backend *)backend)->machine;
}

void acs_sim_backend_describe(acs_backend *backend, acs_sim_describe describe, void *user)
{
    self_of(backend)->describe = describe;
    self_of(backend)->describe_user = user;
}

/* --------------------------------------------------------------------------------------------- opening, closing */

/* The seed's GPU: small numbers, so that queues are shared and kernels wait for each other; only ops take time. */
static void draw_gpu(sim_backend *s)
{
    static const uint32_t sms[] = {1, 3, 132}, queues[] = {1, 2, 8, 8}, kernels[] = {1, 2, 4, 8};

    s->gpu.device = (acs_sim_device_costs){0};
    s->gpu.host = (acs_sim_host_costs){0};
    s->gpu.sms = sms[acs_random_below(&s->random, 3)];
    s->gpu.queues = acs_random_below(&s->random, 4) ? s->slots : queues[acs_random_below(&s->random, 4)];
    s->gpu.kernels = acs_random_below(&s->random, 4) ? 128 : kernels[acs_random_below(&s->random, 4)];
}

static acs_status make_parts(sim_backend *s, const acs_backend_config *config)
{
    ACS_TRY(acs_sim_faults_init(&s->faults, config->options, &s->random));
    ACS_TRY(acs_host_scratch_init(&s->scratch));
    ACS_TRY(acs_call_slots_create(config->slots, &s->base.calls));
    s->machine = acs_sim_create(&s->gpu, 1, on_told, s);
    s->slot = calloc(config->slots, sizeof *s->slot);
    s->marks = calloc((size_t)config->slots * config->mark_capacity, sizeof *s->marks);
    if (!s->machine || !s->slot || !s->marks)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory for %u slots", (unsigned)config->slots);
    for (uint32_t i = 0; i < config->slots; i++) {
        s->slot[i].stream = acs_sim_stream(s->machine, 0);
        if (s->slot[i].stream == ACS_SIM_NONE)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory for %u streams", (unsigned)config->slots);
    }
    return ACS_OK;
}

static void sim_close(acs_backend *backend)
{
    sim_backend *s = self_of(backend);

    s->faults.per_mille = 0; /* what closing frees and calls is not hit */
    acs_call_slots_destroy(s->base.calls, &s->base);
    acs_host_scratch_fini(&s->scratch);
    if (s->machine)
        acs_sim_destroy(s->machine);
    acs_sim_faults_fini(&s->faults);
    free(s->due);
    free(s->slot);
    free(s->marks);
    acs_lock_fini(&s->lock);
    free(s);
}

static void set_up(sim_backend *s, const acs_backend_config *config)
{
    const acs_options *options = config->options;

    s->base.ops = &acs_backend_sim;
    s->slots = config->slots;
    s->mark_capacity = config->mark_capacity;
    s->by_seed = options->sim_order == ACS_SIM_ORDER_SEED;
    s->kernel_ns = (uint64_t)options->sim_kernel_us * 1000;
    s->gpu = *acs_sim_gpu_at((uint32_t)options->sim_gpu);
    s->random.state = (uint64_t)options->seed;
    /* The first choices of the seed, made before any op: the strategy does not depend on the program. */
    s->strategy = (sim_strategy)acs_random_below(&s->random, SIM_STRATEGIES);
    s->victim = acs_random_below(&s->random, config->slots);
    s->salt = acs_random_next(&s->random);
    if (s->by_seed)
        draw_gpu(s);
}

static acs_status sim_open(const acs_backend_config *config, acs_backend **backend)
{
    sim_backend *s = calloc(1, sizeof *s);
    acs_status status;
    int error;

    if (!s)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory");
    error = acs_lock_init(&s->lock, ACS_RANK_BACKEND);
    if (error) {
        free(s);
        return ACS_FAIL(ACS_ERR_MEMORY, error, "sim backend: no lock");
    }
    set_up(s, config);
    status = make_parts(s, config);
    if (status != ACS_OK) {
        sim_close(&s->base);
        return status;
    }
    *backend = &s->base;
    return ACS_OK;
}

const acs_backend_ops acs_backend_sim = {
    .name = "sim",
    .id = ACS_BACKEND_SIM,
    .notifies = false,
    .host_calls = true,
    .single_thread = true,
    .open = sim_open,
    .close = sim_close,
    .thread_enter = acs_host_thread_enter,
    .check = acs_host_check,
    .submit = sim_submit,
    .poll = sim_poll,
    .stream_record = acs_host_stream_record,
    .event_release = acs_host_event_release,
    .memory_alloc = sim_memory_alloc,
    .memory_free = acs_host_memory_free,
};
