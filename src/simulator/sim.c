/*
 * The sim backend: the library on a machine of GPUs in virtual time, in one thread. Its slots are streams of that
 * machine and its marks events. An op's host body runs once the machine reports the op's start or end. Called by the
 * core through its ops table. Never starts a thread or reads a clock: the same calls with the same seed give the same
 * run.
 *
 * ACS_SIM_ORDER=time: costs and durations are the model's, for tools that predict. ACS_SIM_ORDER=seed: for tests, the
 * seed draws the shape of the GPU, the time of each op, and how much each poll sees. So all orders that the waits
 * allow can happen. A breach of the rules of marks and values in backend.h, which a GPU would punish at random, fails
 * the item with ACS_ERR_INTERNAL. Once the device is lost no body runs any more, since the program may have freed its
 * memory.
 */
#include "simulator/sim_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STEPS_MAX = 3,      /* most times at which ops run or end in one poll */
    POLLS_IDLE_MAX = 2, /* most consecutive polls in which none does */
    POLLS_LATE_MAX = 3  /* most consecutive polls of a slot that hide a completion */
};

/* ----------------------------------------------------------------------------------------------------- time, bodies */

/* Run bodies in the order of the machine's reports, without the lock. No other thread runs bodies meanwhile. */
static void run_due(acs_sim_state *s)
{
    s->running = true;
    for (uint32_t i = 0; i < s->due_count; i++) {
        /* copied, since a submit beside the running op may move the list */
        const acs_record *op = s->due[i];
        acs_lock_release(&s->lock);
        acs_host_run(op, &s->scratch);
        acs_lock_acquire(&s->lock);
    }
    s->in_flight -= s->due_count;
    s->due_count = 0;
    s->running = false;
}

/* Let a few things happen, sometimes none, but never none for long. */
static void pass_drawn_time(acs_sim_state *s)
{
    uint32_t steps = s->strategy == ACS_SIM_EAGER ? UINT32_MAX : acs_random_below(&s->random, STEPS_MAX + 1);
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

static void pass_time(acs_sim_state *s)
{
    if (s->running)
        return; /* another thread's poll is running bodies */
    if (s->by_seed) {
        pass_drawn_time(s);
        return;
    }
    s->now += s->gpu.host.query;
    if (acs_sim_next(s->machine) <= s->now)
        s->happened = s->now;
    /* one time after another: a decided op is asked after the bodies of its upstream ops have run */
    for (uint64_t next = acs_sim_next(s->machine); next <= s->now; next = acs_sim_next(s->machine)) {
        acs_sim_advance(s->machine, next);
        run_due(s);
    }
    acs_sim_advance(s->machine, s->now);
}

/* --------------------------------------------------------------------------------------------------------- polling */

/* How many marks, oldest first, the host could know to be complete. *known_at: the time for the last mark looked at. */
static uint32_t count_complete(const acs_sim_state *s, const acs_mark *marks, uint32_t count, uint64_t *known_at)
{
    *known_at = 0;
    for (uint32_t n = 0; n < count; n++) {
        if (acs_issue_queue_recorded(s->base.queue, marks[n].slot) < marks[n].value)
            return n;
        const acs_sim_mark *mark = acs_sim_mark_at(s, &marks[n]);
        uint64_t at = mark->value == marks[n].value ? acs_sim_event_time(s->machine, mark->event - 1) : 0;
        if (mark->value < marks[n].value || at == ACS_SIM_NEVER)
            return n;
        *known_at = at + (s->by_seed ? 0 : s->gpu.device.host_visible);
        if (*known_at > s->now)
            return n;
    }
    return count;
}

/* Show some of the completed marks, up to `done`; all of them if completions were hidden too often. */
static void show(acs_sim_state *s, acs_sim_slot *slot, const acs_mark *marks, uint32_t done)
{
    uint32_t shown = done;

    if (s->by_seed && s->strategy != ACS_SIM_EAGER && slot->late < POLLS_LATE_MAX)
        shown = acs_random_below(&s->random, done + 1);
    slot->late = shown < done ? slot->late + 1 : 0;
    if (shown && marks[shown - 1].value > slot->visible)
        slot->visible = marks[shown - 1].value;
}

/*
 * Running and showing are apart, as on a GPU. A completion may be seen polls later, and marks of other slots complete
 * without being asked about.
 */
static acs_status sim_poll(acs_backend *backend, int slot_index, const acs_mark *marks, uint32_t count,
                           uint64_t *completed)
{
    acs_sim_state *s = acs_sim_state_of(backend);
    acs_sim_slot *slot = &s->slot[slot_index];
    uint64_t progress = 0;
    bool lost;

    ACS_HOLD(&s->lock);
    if (!s->lost)
        pass_time(s);
    if (!s->lost && acs_sim_fault(&s->faults, ACS_FAULT_LOST)) /* it is lost once, and counted once */
        s->lost = true;
    lost = s->lost;
    if (!lost && !s->running) {
        show(s, slot, marks, count_complete(s, marks, count, &slot->known_at));
        acs_graph_cache_completed(s->methods.cache, slot_index, slot->visible);
        progress = acs_sim_progress(s, slot);
    }
    for (uint32_t i = count; i > 0; i--) {
        if (marks[i - 1].value > slot->visible)
            continue;
        *completed = marks[i - 1].value;
        break;
    }
    if (progress > slot->visible)
        *completed = progress;
    return lost ? ACS_FAIL(ACS_ERR_DEVICE, ACS_SIM_NATIVE_LOST, "the simulated device is lost") : ACS_OK;
}

/* ---------------------------------------------------------------------------------------------------------- memory */

static acs_status inject_memory_fault(acs_sim_state *s, size_t bytes)
{
    ACS_HOLD(&s->lock);
    bool fails = acs_sim_fault(&s->faults, ACS_FAULT_MEMORY);
    return fails ? ACS_FAIL(ACS_ERR_MEMORY, ACS_SIM_NATIVE_MEMORY, "injected: no memory for %zu bytes", bytes) : ACS_OK;
}

static acs_status sim_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    ACS_TRY(inject_memory_fault(acs_sim_state_of(backend), bytes));
    return acs_host_memory_alloc(backend, memory, bytes, ptr);
}

static acs_status sim_page_create(void *user, size_t bytes, uint64_t *piece)
{
    ACS_TRY(inject_memory_fault(acs_sim_state_of(user), bytes));
    return acs_host_page_create(user, bytes, piece);
}

/* ------------------------------------------------------------------------------------------------ virtual time */

uint64_t acs_sim_backend_now(const acs_backend *backend)
{
    return ((const acs_sim_state *)backend)->now;
}

void acs_sim_backend_at(acs_backend *backend, uint64_t now)
{
    acs_sim_state_of(backend)->now = now;
}

bool acs_sim_backend_news(const acs_backend *backend, uint64_t since)
{
    const acs_sim_state *s = (const acs_sim_state *)backend;
    bool news = s->happened > since;
    for (uint32_t i = 0; i < s->slots; i++)
        news |= s->slot[i].known_at > since && s->slot[i].known_at <= s->now;
    return news;
}

uint64_t acs_sim_backend_next(const acs_backend *backend)
{
    const acs_sim_state *s = (const acs_sim_state *)backend;
    if (s->lost)
        return ACS_SIM_NEVER; /* time stands still, see sim_poll */
    uint64_t next = acs_sim_next(s->machine);
    if (next != ACS_SIM_NEVER && !s->by_seed)
        next += s->gpu.device.host_visible;
    /*
     * A completion that is not known yet counts as well: if it is the last event, all threads would sleep without it.
     */
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->slot[i].known_at > s->now && s->slot[i].known_at < next)
            next = s->slot[i].known_at;
    return next;
}

const uint64_t *acs_sim_backend_faults(const acs_backend *backend)
{
    return ((const acs_sim_state *)backend)->faults.count;
}

const acs_sim *acs_sim_backend_machine(const acs_backend *backend)
{
    return ((const acs_sim_state *)backend)->machine;
}

void acs_sim_backend_describe(acs_backend *backend, acs_sim_describe describe, void *user)
{
    acs_sim_state_of(backend)->describe = describe;
    acs_sim_state_of(backend)->describe_user = user;
}

/* --------------------------------------------------------------------------------------------- opening, closing */

/* Draw the GPU: small numbers, so that queues are shared and kernels wait for each other. Only ops take time. */
static void draw_gpu(acs_sim_state *s)
{
    static const uint32_t sms[] = {1, 3, 132}, queues[] = {1, 2, 8, 8}, kernels[] = {1, 2, 4, 8};

    s->gpu.device = (acs_sim_device_costs){0};
    s->gpu.host = (acs_sim_host_costs){0};
    s->gpu.sms = sms[acs_random_below(&s->random, 3)];
    s->gpu.queues = acs_random_below(&s->random, 4) ? s->slots : queues[acs_random_below(&s->random, 4)];
    s->gpu.kernels = acs_random_below(&s->random, 4) ? 128 : kernels[acs_random_below(&s->random, 4)];
}

static acs_status make_parts(acs_sim_state *s, const acs_backend_config *config)
{
    ACS_TRY(acs_sim_faults_init(&s->faults, config->options, &s->random));
    ACS_TRY(acs_host_scratch_init(&s->scratch));
    ACS_TRY(acs_call_slots_create(s->slots, &s->base.calls));
    ACS_TRY(acs_sim_methods_init(s, config));
    ACS_TRY(acs_sim_types_init(s));
    ACS_TRY(acs_sim_queue_init(s, config->options));
    s->machine = acs_sim_create(&s->gpu, s->base.devices, acs_sim_on_told, s);
    if (s->machine && !s->by_seed)
        acs_sim_ask(s->machine, acs_sim_on_asked);
    s->slot = calloc(s->slots, sizeof *s->slot);
    s->marks = calloc((size_t)s->slots * config->mark_capacity, sizeof *s->marks);
    if (!s->machine || !s->slot || !s->marks)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory for %u slots", s->slots);
    for (uint32_t i = 0; i < s->slots; i++) {
        s->slot[i].stream = acs_sim_stream(s->machine, i % s->base.devices);
        if (s->slot[i].stream == ACS_SIM_NONE)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "sim backend: no memory for %u streams", s->slots);
    }
    return ACS_OK;
}

static void sim_close(acs_backend *backend)
{
    acs_sim_state *s = acs_sim_state_of(backend);

    s->faults.per_mille = 0; /* no faults hit what closing frees and calls */
    acs_issue_queue_destroy(s->base.queue);
    acs_call_slots_destroy(s->base.calls, &s->base);
    acs_host_scratch_fini(&s->scratch);
    if (s->machine)
        acs_sim_destroy(s->machine);
    acs_sim_methods_fini(s);
    acs_sim_works_fini(s);
    acs_sim_faults_fini(&s->faults);
    free(s->due);
    free(s->slot);
    free(s->marks);
    acs_lock_fini(&s->lock);
    free(s);
}

static void set_up(acs_sim_state *s, const acs_backend_config *config)
{
    const acs_options *options = config->options;

    s->base.ops = &acs_backend_sim;
    s->base.pages = acs_host_pages;
    s->base.pages.create = sim_page_create;
    s->base.bundle_most = ACS_BATCH_ITEMS;
    s->base.devices = config->devices ? config->devices : 1;
    s->slots = acs_backend_slots(config->slots, s->base.devices);
    s->mark_capacity = config->mark_capacity;
    s->by_seed = options->sim_order == ACS_SIM_ORDER_SEED;
    s->kernel_ns = (uint64_t)options->sim_kernel_us * 1000;
    s->gpu = *acs_sim_gpu_at((uint32_t)options->sim_gpu);
    s->random.state = (uint64_t)options->seed;
    /*
     * With some seeds bundles come only after some ops, as on a GPU, and replays when they were asked for. By time there
     * are no bundles where the cuda backend forms none.
     */
    const bool none = !s->by_seed && options->issue == ACS_ISSUE_AUTO && s->base.devices == 1;
    s->bundles_after = none ? UINT32_MAX
                       : s->by_seed && options->seed % 4 == 3 ? 1 + (uint32_t)((uint64_t)options->seed / 4 % 100) : 0;
    s->base.replays_later = !none && s->bundles_after > 0;
    atomic_init(&s->base.bundles_later, s->bundles_after > 0);
    /* The first choices of the seed, made before any op, so that the strategy does not depend on the program. */
    s->strategy = (acs_sim_strategy)acs_random_below(&s->random, ACS_SIM_STRATEGIES);
    s->victim = acs_random_below(&s->random, s->slots);
    s->salt = acs_random_next(&s->random);
    if (s->by_seed)
        draw_gpu(s);
}

static acs_status sim_open(const acs_backend_config *config, acs_backend **backend)
{
    acs_sim_state *s = calloc(1, sizeof *s);
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
    (void)snprintf(s->base.model, sizeof s->base.model, "simulated");
    s->base.sms = s->gpu.sms;
    status = make_parts(s, config);
    if (status != ACS_OK) {
        sim_close(&s->base);
        return status;
    }
    *backend = &s->base;
    return ACS_OK;
}

/* Each shape after some times of its own. */
static bool sim_replay_ready(acs_backend *backend, acs_replay *replay, uint32_t *asked)
{
    (void)backend;
    return ++*asked > replay->shape->ops % 3;
}

const acs_backend_ops acs_backend_sim = {
    ACS_HOST_OPS,
    .id = ACS_BACKEND_SIM,
    .notifies = false,
    .single_thread = true,
    .open = sim_open,
    .close = sim_close,
    .check = acs_sim_check,
    .replay_ready = sim_replay_ready,
    .submit = acs_sim_submit,
    .settle = acs_sim_settle,
    .poll = sim_poll,
    .memory_alloc = sim_memory_alloc,
    .share_find = acs_sim_share_find,
};
