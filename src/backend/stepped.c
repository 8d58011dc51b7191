/*
 * The stepped backend: a GPU in one thread whose every choice comes from a seed. Ops run inside poll, on whichever slot
 * the seed picks among those that may go; completions are seen late; issues fail or bounce as ACS_FAULTS asks.
 * Called by the core through its ops table, for tests: the same calls with the same seed replay the same interleaving.
 * Never starts a thread, reads a clock or orders more than its waits ask for. Breaches of the rules of marks and values
 * in backend.h, which a GPU would punish at random, fail the item with ACS_ERR_INTERNAL.
 */
#include "backend/host_executor.h"
#include "backend/host_kernel.h"
#include "base/lock.h"

#include <stdlib.h>

/* How the next slot is picked; one per seed. Each makes another kind of missing order likely to show. */
typedef enum stepped_strategy {
    STEPPED_UNIFORM, /* any slot that may go */
    STEPPED_NEWEST,  /* the slot that was issued to last: overtakes everything that it need not wait for */
    STEPPED_STARVE,  /* one slot goes only when no other can */
    STEPPED_EAGER,   /* everything runs and is seen at the first poll: an infinitely fast GPU */
    STEPPED_STRATEGIES
} stepped_strategy;

enum {
    STEPS_MAX = 3,      /* ops run by one poll */
    POLLS_IDLE_MAX = 3, /* polls in a row that may run nothing */
    POLLS_LATE_MAX = 3, /* polls of a slot in a row that may hide a completion */
    NATIVE_FIRST = 700, /* injected failures carry a code of 700..719 */
    NATIVE_KINDS = 20
};

typedef struct stepped_slot {
    uint64_t stamp;   /* when it was issued to last, in items */
    uint64_t value;   /* highest of any op or mark */
    uint64_t visible; /* how much of the timeline poll has shown */
    uint32_t late;    /* polls in a row that hid a completion */
} stepped_slot;

typedef struct stepped_backend {
    acs_backend base;
    uint32_t mark_capacity, faults;
    stepped_strategy strategy;
    acs_host_scratch scratch; /* of the thread that runs ops: `running` */

    acs_lock lock; /* rank BACKEND; guards the rest */
    acs_random random;
    acs_host_slots slots;
    stepped_slot *state;
    uint64_t *marks;     /* [slot * mark_capacity + index]: value of the mark recorded last; 0: none */
    uint32_t *ready;     /* room for the slots to pick from */
    uint64_t issued;     /* items */
    uint32_t victim;     /* of STEPPED_STARVE */
    uint32_t polls_idle; /* in a row */
    bool running;        /* a poll is running an op, with the lock released */

    const acs_record **bounced; /* ops that bounced once and were not issued again yet */
    uint32_t bounced_used, bounced_capacity;
} stepped_backend;

/* -------------------------------------------------------------------------------------- rules of marks and values */

static bool marks_exist(const stepped_backend *s, const acs_mark *marks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i].slot >= s->slots.count || marks[i].index >= s->mark_capacity)
            return false;
    }
    return true;
}

/* Does the item name slots and marks that exist? If not, there is nothing that could be issued. */
static bool item_exists(const stepped_backend *s, const acs_batch *batch, const acs_item *item)
{
    return item->slot < (int32_t)s->slots.count && marks_exist(s, &batch->marks[item->first_mark], item->mark_count) &&
           marks_exist(s, &batch->waits[item->first_wait], item->wait_count) &&
           marks_exist(s, &item->after, item->mark_after);
}

/* NULL, or what the core did wrong. */
static const char *mark_record_locked(stepped_backend *s, const acs_mark *mark)
{
    uint64_t *recorded = &s->marks[(size_t)mark->slot * s->mark_capacity + mark->index];

    if (*recorded > acs_host_completed(&s->slots, mark->slot))
        return "a mark used again before it was complete";
    if (mark->value < s->state[mark->slot].value)
        return "a mark with a value below one issued before it";
    *recorded = mark->value;
    s->state[mark->slot].value = mark->value;
    return NULL;
}

/* A mark that is complete may have been used again since the wait was decided: then the wait asks for nothing. */
static const char *wait_check_locked(const stepped_backend *s, const acs_mark *mark)
{
    uint64_t recorded = s->marks[(size_t)mark->slot * s->mark_capacity + mark->index];

    if (recorded != mark->value && mark->value > acs_host_completed(&s->slots, mark->slot))
        return "a wait for a mark that was not recorded";
    return NULL;
}

/* Record the item's marks and check its values; in issue order, so that its waits may name its own marks. */
static const char *item_check_locked(stepped_backend *s, const acs_batch *batch, const acs_item *item)
{
    const char *wrong = NULL;

    for (uint32_t i = 0; i < item->mark_count && !wrong; i++)
        wrong = mark_record_locked(s, &batch->marks[item->first_mark + i]);
    for (uint32_t i = 0; i < item->wait_count && !wrong; i++)
        wrong = wait_check_locked(s, &batch->waits[item->first_wait + i]);
    if (!wrong && item->slot >= 0 && item->value <= s->state[item->slot].value)
        wrong = "a value that is not above the ones issued before it";
    if (!wrong && item->slot >= 0)
        s->state[item->slot].value = item->value;
    if (!wrong && item->mark_after)
        wrong = mark_record_locked(s, &item->after);
    return wrong;
}

/* -------------------------------------------------------------------------------------------------------- faults */

/* Did the op bounce before? Then forget it: it will not bounce again. */
static bool bounced_take_locked(stepped_backend *s, const acs_record *op)
{
    for (uint32_t i = 0; i < s->bounced_used; i++) {
        if (s->bounced[i] == op) {
            s->bounced[i] = s->bounced[--s->bounced_used];
            return true;
        }
    }
    return false;
}

/* False, for want of memory: then the op does not bounce, since nobody would remember that it did. */
static bool bounced_put_locked(stepped_backend *s, const acs_record *op)
{
    if (s->bounced_used == s->bounced_capacity) {
        uint32_t capacity = s->bounced_capacity ? s->bounced_capacity * 2 : 16;
        const acs_record **grown = realloc(s->bounced, capacity * sizeof *grown);
        if (!grown)
            return false;
        s->bounced = grown;
        s->bounced_capacity = capacity;
    }
    s->bounced[s->bounced_used++] = op;
    return true;
}

/* Draws a number only where faults are asked for: without them they take nothing from the seed. */
static bool chance_locked(stepped_backend *s, uint32_t per_mille)
{
    return per_mille && acs_random_below(&s->random, 1000) < per_mille;
}

/* An op bounces once at most, so that every program ends; a failure may follow a bounce. */
static void fault_locked(stepped_backend *s, acs_item *item)
{
    uint8_t kind = item->op ? item->op->kind : ACS_KIND_COUNT;
    bool again;

    if (kind != ACS_KIND_KERNEL && kind != ACS_KIND_MEMCPY && kind != ACS_KIND_MEMSET)
        return;
    again = bounced_take_locked(s, item->op);
    if (chance_locked(s, s->faults)) {
        item->status = ACS_ERR_LAUNCH;
        item->native = NATIVE_FIRST + (int)acs_random_below(&s->random, NATIVE_KINDS);
        item->text = "injected";
    } else if (!again && chance_locked(s, s->faults) && bounced_put_locked(s, item->op)) {
        item->status = ACS_NOT_READY;
        item->text = "injected";
    }
}

/* --------------------------------------------------------------------------------------------------------- steps */

static bool can_go_locked(const stepped_backend *s, uint32_t slot)
{
    const acs_host_entry *head = acs_host_head(&s->slots, slot);
    return head && acs_host_satisfied(&s->slots, head);
}

static uint32_t pick_newest_locked(const stepped_backend *s, uint32_t count)
{
    uint32_t newest = s->ready[0];

    for (uint32_t i = 1; i < count; i++) {
        if (s->state[s->ready[i]].stamp > s->state[newest].stamp)
            newest = s->ready[i];
    }
    return newest;
}

/* When nothing but the victim could go, it went; then another slot's turn comes to starve. */
static uint32_t pick_starving_locked(stepped_backend *s, uint32_t count)
{
    uint32_t picked = s->ready[acs_random_below(&s->random, count)];

    if (count == 1 && picked == s->victim)
        s->victim = acs_random_below(&s->random, s->slots.count);
    while (count > 1 && picked == s->victim)
        picked = s->ready[acs_random_below(&s->random, count)];
    return picked;
}

/* A slot whose head may go, into *slot. */
static bool pick_locked(stepped_backend *s, uint32_t *slot)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->slots.count; i++) {
        if (can_go_locked(s, i))
            s->ready[count++] = i;
    }
    if (!count)
        return false;
    if (s->strategy == STEPPED_NEWEST)
        *slot = pick_newest_locked(s, count);
    else if (s->strategy == STEPPED_STARVE)
        *slot = pick_starving_locked(s, count);
    else
        *slot = s->ready[acs_random_below(&s->random, count)];
    return true;
}

static void step_locked(stepped_backend *s, uint32_t slot)
{
    /* Copied out: a submit beside the running op may move the queue that the entry is in. */
    acs_record *op = acs_host_head(&s->slots, slot)->op;

    if (op) {
        acs_lock_release(&s->lock);
        acs_host_run(op, &s->scratch);
        acs_lock_acquire(&s->lock);
    }
    acs_host_finish(&s->slots, slot);
}

/* Run a few ops: none now and then, but never none for long. */
static void run_some_locked(stepped_backend *s)
{
    uint32_t steps = s->strategy == STEPPED_EAGER ? UINT32_MAX : acs_random_below(&s->random, STEPS_MAX + 1);
    uint32_t slot;

    /* The running op's entry is still its slot's head: a second poll would run it again. */
    if (s->running)
        return; /* another thread's poll is at it */
    if (!steps && ++s->polls_idle > POLLS_IDLE_MAX)
        steps = 1;
    if (steps)
        s->polls_idle = 0;
    s->running = true;
    for (; steps && pick_locked(s, &slot); steps--)
        step_locked(s, slot);
    s->running = false;
}

/* ----------------------------------------------------------------------------------------------- submit and poll */

/*
 * What the core did wrong becomes the item's error; its waits and marks still take effect, once they are known to
 * exist.
 */
static void issue_locked(stepped_backend *s, const acs_batch *batch, acs_item *item)
{
    item->status = ACS_ERR_INTERNAL;
    item->native = 0;
    item->text = "a slot or mark that does not exist";
    if (!item_exists(s, batch, item))
        return;
    item->text = item_check_locked(s, batch, item);
    if (!item->text) {
        item->status = ACS_OK;
        fault_locked(s, item);
    }
    acs_host_issue(&s->slots, batch, item);
    if (item->slot >= 0)
        s->state[item->slot].stamp = ++s->issued;
}

static void stepped_submit(acs_backend *backend, acs_batch *batch)
{
    stepped_backend *s = (stepped_backend *)backend;

    acs_lock_acquire(&s->lock);
    for (uint32_t i = 0; i < batch->items_used; i++)
        issue_locked(s, batch, &batch->items[i]);
    acs_lock_release(&s->lock);
}

/* Show some of what is complete, newest mark among `done`; all of it when it was hidden too often. */
static void show_locked(stepped_backend *s, stepped_slot *state, const acs_mark *marks, uint32_t done)
{
    uint32_t shown = done;

    if (s->strategy != STEPPED_EAGER && state->late < POLLS_LATE_MAX)
        shown = acs_random_below(&s->random, done + 1);
    state->late = shown < done ? state->late + 1 : 0;
    if (shown && marks[shown - 1].value > state->visible)
        state->visible = marks[shown - 1].value;
}

/*
 * Running and showing are apart, as on a GPU: what is complete may be seen polls later, and marks of other slots
 * complete without anybody asking for them.
 */
static acs_status stepped_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count,
                               uint64_t *completed)
{
    stepped_backend *s = (stepped_backend *)backend;
    stepped_slot *state = &s->state[slot];
    uint32_t seen;

    acs_lock_acquire(&s->lock);
    run_some_locked(s);
    show_locked(s, state, marks, acs_host_marks_complete(marks, count, acs_host_completed(&s->slots, (uint32_t)slot)));
    seen = acs_host_marks_complete(marks, count, state->visible);
    acs_lock_release(&s->lock);
    if (seen)
        *completed = marks[seen - 1].value;
    return ACS_OK;
}

/* --------------------------------------------------------------------------------------------- opening, closing */

static acs_status make_parts(stepped_backend *s, const acs_backend_config *config)
{
    ACS_TRY(acs_host_slots_init(&s->slots, config->slots));
    ACS_TRY(acs_host_scratch_init(&s->scratch));
    ACS_TRY(acs_call_slots_create(config->slots, &s->base.calls));
    s->state = calloc(config->slots, sizeof *s->state);
    s->marks = calloc((size_t)config->slots * config->mark_capacity, sizeof *s->marks);
    s->ready = calloc(config->slots, sizeof *s->ready);
    if (!s->state || !s->marks || !s->ready)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "stepped backend: no memory for %u slots", (unsigned)config->slots);
    return ACS_OK;
}

static void stepped_close(acs_backend *backend)
{
    stepped_backend *s = (stepped_backend *)backend;

    acs_call_slots_destroy(s->base.calls, &s->base);
    acs_host_scratch_fini(&s->scratch);
    acs_host_slots_fini(&s->slots);
    free(s->bounced);
    free(s->state);
    free(s->marks);
    free(s->ready);
    acs_lock_fini(&s->lock);
    free(s);
}

static acs_status stepped_open(const acs_backend_config *config, acs_backend **backend)
{
    stepped_backend *s = calloc(1, sizeof *s);
    acs_status status;
    int error;

    if (!s)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "stepped backend: no memory");
    error = acs_lock_init(&s->lock, ACS_RANK_BACKEND);
    if (error) {
        free(s);
        return ACS_FAIL(ACS_ERR_MEMORY, error, "stepped backend: no lock");
    }
    s->base.ops = &acs_backend_stepped;
    s->mark_capacity = config->mark_capacity;
    s->faults = (uint32_t)config->options->faults;
    s->random.state = (uint64_t)config->options->seed;
    /* The first choices of the seed, made before any op: the strategy does not depend on the program. */
    s->strategy = (stepped_strategy)acs_random_below(&s->random, STEPPED_STRATEGIES);
    s->victim = acs_random_below(&s->random, config->slots);
    status = make_parts(s, config);
    if (status != ACS_OK) {
        stepped_close(&s->base);
        return status;
    }
    *backend = &s->base;
    return ACS_OK;
}

const acs_backend_ops acs_backend_stepped = {
    .name = "stepped",
    .id = ACS_BACKEND_STEPPED,
    .notifies = false,
    .host_calls = true,
    .single_thread = true,
    .open = stepped_open,
    .close = stepped_close,
    .thread_enter = acs_host_thread_enter,
    .check = acs_host_check,
    .submit = stepped_submit,
    .poll = stepped_poll,
    .stream_record = acs_host_stream_record,
    .event_release = acs_host_event_release,
    .memory_alloc = acs_host_memory_alloc,
    .memory_free = acs_host_memory_free,
};
