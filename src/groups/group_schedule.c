/*
 * Where groups run (see group_schedule.h). Called by threads that submit groups; a thread that waits steps the core, and
 * holds no lock meanwhile. A group that has ended is forgotten when the next one comes.
 */
#include "groups/group_schedule.h"
#include "api/threads.h"
#include "api/wait.h"

#include "base/tuning.h"
#include "groups/admission.h"
#include "residency/room.h"

#include <sched.h>
#include <stdlib.h>

typedef struct running_group {
    uint64_t ticket;
    uint32_t device;
    acs_demand demand;
    acs_op at;   /* op before which all have ended */
    acs_op last; /* latest op of the group; 0: it is being queued */
    bool reserved; /* whether the pools count its memory as in use */
    struct running_group *next;
} running_group;

struct acs_group_schedule {
    pthread_mutex_t lock; /* guards all fields below; nothing is waited for under it */
    uint64_t tickets;     /* number of tickets handed out */
    uint64_t served;      /* ticket up to which all groups have their device */
    running_group *first;
    acs_device_load devices[ACS_DEVICES_MOST];
    /*
     * Bytes of each device that lay idle when no op was under way, and could not be given back because of blocks beside
     * them.
     */
    uint64_t leftover[ACS_DEVICES_MOST];
    uint64_t told[ACS_DEVICES_MOST]; /* bytes that other programs were told could go back */
};

acs_status acs_group_schedule_open(acs_context *context)
{
    acs_backend *backend = context->backend;
    if (!backend->ops->capacity)
        return ACS_OK;
    acs_group_schedule *d = calloc(1, sizeof *d);
    if (!d || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for what groups take");
    }
    context->group_schedule = d;
    for (uint32_t i = 0; i < backend->devices; i++) {
        acs_capacity *of = &d->devices[i].of;
        ACS_TRY(backend->ops->capacity(backend, i, of));
        /* HuntKTm's bound. With fewer slots ops take turns in them, but groups need not wait for that. */
        of->queues = context->core.slots.count / backend->devices;
        of->queues = of->queues < TUNE_GROUP_QUEUES ? TUNE_GROUP_QUEUES : of->queues;
        if (context->options.memory_limit && (uint64_t)context->options.memory_limit < of->memory)
            of->memory = (uint64_t)context->options.memory_limit;
    }
    return ACS_OK;
}

void acs_group_schedule_close(acs_context *context)
{
    acs_group_schedule *d = context->group_schedule;
    while (d && d->first) {
        running_group *next = d->first->next;
        free(d->first);
        d->first = next;
    }
    if (d)
        pthread_mutex_destroy(&d->lock);
    free(d);
    context->group_schedule = NULL;
}

/* Tell other programs what runs on the device. */
static void publish_load(const acs_context *context, const acs_group_schedule *d, uint32_t device)
{
    if (acs_admission_on(context))
        acs_ledger_runs(context->ledgers[device], &d->devices[device].in_use);
}

static void forget_running(const acs_context *context, acs_group_schedule *d, running_group **at)
{
    running_group *r = *at;
    acs_capacity_remove(&d->devices[r->device], &r->demand);
    publish_load(context, d, r->device);
    *at = r->next;
    free(r);
}

/* Whether all ops of the group have ended; moves its `at` on. */
static bool has_ended(acs_context *context, running_group *r)
{
    acs_wait_condition ended = {.type = ACS_WAIT_FOR_OP};
    const acs_op settled = acs_core_settled(&context->core);
    if (r->last == 0)
        return false;
    r->at = r->at > settled ? r->at : settled + 1;
    for (; r->at <= r->last; r->at++) {
        ended.op = r->at;
        if (!acs_core_true(&context->core, &ended))
            return false;
    }
    return true;
}

/* Forget groups that have ended. True: another group's ops are all queued, so that their end can be waited for. */
static bool forget_ended(acs_context *context, acs_group_schedule *d)
{
    bool queued = false;
    for (running_group **at = &d->first; *at;) {
        if (has_ended(context, *at)) {
            forget_running(context, d, at);
            continue;
        }
        queued |= (*at)->last != 0;
        at = &(*at)->next;
    }
    return queued;
}

/* Memory of groups that are being queued: it goes back behind their ops. */
static uint64_t queued_bytes(const acs_group_schedule *d, uint32_t device)
{
    uint64_t bytes = 0;
    for (const running_group *r = d->first; r; r = r->next)
        bytes += r->device == device && r->reserved && !r->last ? r->demand.memory : 0;
    return bytes;
}

/* Memory of a device that goes back without further calls of the program: it lies idle, or ops use it that will end. */
static uint64_t reclaimable(const acs_context *context, const acs_group_schedule *d, uint32_t device)
{
    const acs_memory_counts memory = acs_memory_count(context->memory, acs_memory_kind(device));
    const uint64_t idle = memory.reserved - memory.live, stays = memory.changed ? 0 : d->leftover[device];
    return (idle > stays ? idle - stays : 0) + queued_bytes(d, device);
}

static void tell(const acs_context *context, acs_group_schedule *d, uint32_t device, uint64_t bytes)
{
    d->told[device] = bytes;
    acs_ledger_reclaimable(context->ledgers[device], bytes);
}

static void tell_reclaimable(const acs_context *context, acs_group_schedule *d, uint32_t device)
{
    tell(context, d, device, reclaimable(context, d, device));
}

/*
 * If no memory is about to go back, note which memory could not be given back. False: some is. What a thread frees after
 * the note is not in it: others are not told of that memory before the context gives it back.
 */
static bool note_leftover(acs_context *context, acs_group_schedule *d, uint32_t device)
{
    if (queued_bytes(d, device) || acs_memory_quarantined_until(context->memory, acs_memory_kind(device)))
        return false;
    const acs_memory_counts memory = acs_memory_note(context->memory, acs_memory_kind(device));
    d->leftover[device] = memory.reserved - memory.live;
    return true;
}

void acs_group_schedule_gave_back(acs_context *context)
{
    acs_group_schedule *d = context->group_schedule;
    ACS_HOLD_MUTEX(&d->lock);
    (void)forget_ended(context, d);
    for (uint32_t i = 0; i < context->backend->devices; i++) {
        const uint64_t bytes = note_leftover(context, d, i) ? 0 : reclaimable(context, d, i);
        if (bytes < d->told[i]) /* another thread may have queued ops, behind which memory goes back late */
            tell(context, d, i, bytes);
    }
}

void acs_group_schedule_kept(acs_context *context, uint32_t device)
{
    acs_group_schedule *d = context->group_schedule;
    ACS_HOLD_MUTEX(&d->lock);
    const uint64_t bytes = reclaimable(context, d, device);
    if (bytes < d->told[device]) /* a program without groups gives nothing back while it is busy */
        tell(context, d, device, bytes);
}

/*
 * Memory in use on the device: that of the pools, with what groups are about to take, or that of the groups if it is
 * more.
 */
static uint64_t memory_in_use(const acs_group_schedule *d, uint32_t device, uint64_t live)
{
    uint64_t soon = live;
    for (const running_group *r = d->first; r; r = r->next)
        soon += r->device == device && !r->reserved ? r->demand.memory : 0;
    return soon > d->devices[device].in_use.memory ? soon : d->devices[device].in_use.memory;
}

/*
 * The load of a device as a group finds it. *idle: memory that the context has there and does not use. *awaited: other
 * programs wait for the device.
 */
static acs_device_load load_of(const acs_context *context, const acs_group_schedule *d, uint32_t device, uint64_t *idle,
                               bool *awaited)
{
    const acs_memory_counts memory = acs_memory_count(context->memory, acs_memory_kind(device));
    acs_device_load load = d->devices[device];
    uint64_t room = 0;
    acs_demand others = {0};
    load.in_use.memory = memory_in_use(d, device, memory.live);
    *idle = memory.reserved > load.in_use.memory ? memory.reserved - load.in_use.memory : 0;
    *awaited = false;
    if (!acs_admission_on(context) || acs_ledger_look(context->ledgers[device], &room, &others, awaited) != ACS_OK)
        return load; /* an error shows when memory is taken */
    others.memory = 0; /* the room does not contain it */
    acs_capacity_add(&load, &others);
    const uint64_t lacks = load.of.memory > room ? load.of.memory - room : 0; /* whichever program has it */
    if (lacks > *idle && lacks - *idle > load.in_use.memory)
        load.in_use.memory = lacks - *idle;
    return load;
}

/* What the owner of a ticket has to do next. */
typedef enum turn {
    TURN_OVER,   /* the group has its device */
    TURN_ALONE,  /* it is first, and no group of the context runs: other programs have the memory that it lacks */
    TURN_LATER
} turn;

/* A group that looks for its device. */
typedef struct attempt {
    const acs_demand *demand;
    running_group *r;
    acs_scheduled_group *to;
    turn turn;
    bool queued;     /* whether other groups run whose ends can be waited for */
    uint32_t full;   /* a bit for each device that turned out to have too little */
    uint32_t barred; /* a bit for each device that would have room if other programs did not come first */
    bool insists;    /* whether it has let other programs go first */
} attempt;

/* Whether the group may overtake other programs that wait for the device. Tells them what could go back. */
static bool try_overtake(acs_context *context, acs_group_schedule *d, uint32_t device)
{
    tell_reclaimable(context, d, device);
    return acs_admission_try_overtake(context, device);
}

/*
 * Choose a device for the group; -1: none has room. Without a ledger, and while no group runs, it is at least the device
 * with the most memory left. With a ledger the memory that the context lacks is taken there, too.
 */
static int choose_group_device(acs_context *context, attempt *a)
{
    acs_group_schedule *d = context->group_schedule;
    const acs_demand *demand = a->demand;
    acs_device_load now[ACS_DEVICES_MOST];
    uint64_t idle[ACS_DEVICES_MOST];
    bool awaited[ACS_DEVICES_MOST];
    int most = -1, device;
    a->barred = 0;
    for (uint32_t i = 0; i < context->backend->devices; i++) {
        now[i] = load_of(context, d, i, &idle[i], &awaited[i]);
        if (a->full >> i & 1)
            now[i].in_use.memory = now[i].of.memory;
        else if (most < 0 || acs_capacity_memory_left(&now[i]) > acs_capacity_memory_left(&now[most]))
            most = (int)i;
    }
    while ((device = acs_capacity_choose(now, context->backend->devices, demand)) >= 0) {
        const uint64_t lacks = demand->memory > idle[device] ? demand->memory - idle[device] : 0;
        const bool may_overtake = !awaited[device] || demand->memory == 0 || a->insists;
        const bool in_turn = may_overtake || try_overtake(context, d, (uint32_t)device);
        if (in_turn && (!acs_admission_on(context) || lacks == 0 ||
                        acs_admission_take(context, (uint32_t)device, lacks) == ACS_OK)) {
            a->to->beside = true;
            return device;
        }
        a->barred |= in_turn ? 0 : 1u << device;
        now[device].in_use.memory = now[device].of.memory; /* another program was faster, or comes first */
    }
    return d->first || acs_admission_on(context) ? -1 : most;
}

static void place_locked(acs_context *context, running_group *r, uint64_t ticket, uint32_t device, const acs_demand *demand)
{
    acs_group_schedule *d = context->group_schedule;
    d->served = ticket;
    *r = (running_group){.ticket = ticket, .device = device, .demand = *demand, .next = d->first};
    r->at = acs_fifo_last(context->core.fifo) + 1; /* its ops come later */
    d->first = r;
    acs_capacity_add(&d->devices[device], demand);
    publish_load(context, d, device);
}

/*
 * Try to place the group. True: there is nothing more to wait for in this way; the waiting thread may call it again
 * after that.
 */
static bool try_place(acs_context *context, void *argument)
{
    attempt *a = argument;
    acs_group_schedule *d = context->group_schedule;
    if (a->turn != TURN_LATER)
        return true;
    pthread_mutex_lock(&d->lock);
    a->queued = forget_ended(context, d);
    const bool next = d->served + 1 == a->to->ticket;
    const int device = next ? choose_group_device(context, a) : -1;
    if (device >= 0)
        place_locked(context, a->r, a->to->ticket, (uint32_t)device, a->demand);
    a->turn = device >= 0 ? TURN_OVER : next && !d->first ? TURN_ALONE : TURN_LATER;
    pthread_mutex_unlock(&d->lock);
    if (a->barred)
        acs_admission_reclaim(context, a->barred);
    return a->turn != TURN_LATER || !a->queued;
}

/* Wait for the device that other programs leave first. Other groups of the context wait behind this one. */
static acs_status wait_for_others(acs_context *context, attempt *a)
{
    acs_group_schedule *d = context->group_schedule;
    uint32_t device = 0;
    const uint32_t asked = ((1u << context->backend->devices) - 1) & ~a->full;
    acs_status status = acs_admission_wait(context, asked, a->demand->memory, &device);
    ACS_HOLD_MUTEX(&d->lock);
    if (status == ACS_OK)
        place_locked(context, a->r, a->to->ticket, device, a->demand);
    else
        d->served = a->to->ticket;
    a->to->beside = status == ACS_OK;
    return status;
}

/* Wait until another thread has queued its group, which may have to wait for other programs. */
static void wait_for_threads(acs_context *context)
{
    if (context->stepper)
        context->stepper->wait_for_thread(context);
    else if (!acs_context_step(context) && acs_admission_on(context))
        acs_ledger_nap(context->ledgers[0]);
    else
        sched_yield();
}

/* Wait for the context's own ops. The turn stays TURN_LATER where a simulated device is stuck for good. */
static void wait_for_own(acs_context *context, attempt *a)
{
    (void)try_place(context, a);
    while (a->turn == TURN_LATER && !(context->stepper && context->stepper->is_stuck(context))) {
        if (a->queued) {
            acs_context_wait_room(context, try_place, a);
        } else {
            wait_for_threads(context);
            (void)try_place(context, a);
        }
    }
}

/*
 * Place the group. If other programs have the memory that it lacks, those that were overtaken too often come first,
 * once.
 */
static acs_status place_group(acs_context *context, attempt *a)
{
    acs_group_schedule *d = context->group_schedule;
    wait_for_own(context, a);
    if (a->turn == TURN_ALONE && a->barred) {
        acs_status status = acs_admission_give_way(context, a->barred);
        if (status != ACS_OK) {
            pthread_mutex_lock(&d->lock);
            d->served = a->to->ticket;
            pthread_mutex_unlock(&d->lock);
            return status;
        }
        a->insists = true;
        a->turn = TURN_LATER;
        wait_for_own(context, a);
    }
    return a->turn == TURN_ALONE ? wait_for_others(context, a) : ACS_OK;
}

/* A single device: let other programs go first that were overtaken too often. Memory that was freed goes to them. */
static acs_status let_others(acs_context *context, uint64_t bytes)
{
    acs_group_schedule *d = context->group_schedule;
    const uint32_t device = 0;
    pthread_mutex_lock(&d->lock);
    const bool goes_on = bytes == 0 || try_overtake(context, d, device);
    pthread_mutex_unlock(&d->lock);
    if (goes_on)
        return ACS_OK;
    acs_room_wait_quarantine(context, acs_memory_kind(device));
    return acs_admission_give_way(context, 1u << device);
}

/* A single device: nothing else is waited for, and the ledger is asked when the pools grow. */
static void place_alone(acs_context *context, const acs_demand *demand, running_group *r, acs_scheduled_group *to)
{
    acs_group_schedule *d = context->group_schedule;
    uint64_t idle;
    bool awaited;
    ACS_HOLD_MUTEX(&d->lock);
    (void)forget_ended(context, d);
    if (!acs_admission_on(context)) {
        const acs_device_load now = load_of(context, d, 0, &idle, &awaited);
        to->beside = acs_capacity_choose(&now, 1, demand) == 0;
    }
    place_locked(context, r, to->ticket, 0, demand);
}

uint64_t acs_group_schedule_most(const acs_context *context)
{
    const acs_group_schedule *d = context->group_schedule;
    uint64_t most = 0;
    for (uint32_t i = 0; i < context->backend->devices; i++) {
        uint64_t of = d->devices[i].of.memory ? d->devices[i].of.memory : UINT64_MAX;
        if (acs_admission_on(context) && acs_ledger_total(context->ledgers[i]) < of)
            of = acs_ledger_total(context->ledgers[i]);
        most = of > most ? of : most;
    }
    return most;
}

acs_status acs_group_schedule_begin(acs_context *context, const acs_demand *demand, uint32_t full,
                                    acs_scheduled_group *to)
{
    acs_group_schedule *d = context->group_schedule;
    running_group *r = malloc(sizeof *r);
    attempt a = {.demand = demand, .r = r, .to = to, .turn = TURN_LATER, .full = full};
    acs_status status = ACS_OK;
    *to = (acs_scheduled_group){0};
    if (!r)
        return ACS_OK; /* the group is not counted; so little memory will be missing elsewhere, too */
    pthread_mutex_lock(&d->lock);
    to->ticket = ++d->tickets;
    pthread_mutex_unlock(&d->lock);
    if (context->backend->devices == 1) {
        status = acs_admission_on(context) ? let_others(context, demand->memory) : ACS_OK;
        if (status == ACS_OK)
            place_alone(context, demand, r, to);
        a.turn = TURN_OVER;
    } else {
        status = place_group(context, &a);
    }
    if (status == ACS_OK && a.turn != TURN_LATER) {
        to->device = r->device;
        return ACS_OK;
    }
    free(r);
    to->ticket = 0;
    return status;
}

static running_group **find_running(acs_group_schedule *d, uint64_t ticket)
{
    running_group **at = &d->first;
    while (*at && (*at)->ticket != ticket)
        at = &(*at)->next;
    return at;
}

void acs_group_schedule_reserved(acs_context *context, uint64_t ticket)
{
    acs_group_schedule *d = context->group_schedule;
    ACS_HOLD_MUTEX(&d->lock);
    running_group *r = *find_running(d, ticket);
    if (r)
        r->reserved = true;
    if (r && acs_admission_on(context))
        tell_reclaimable(context, d, r->device);
}

void acs_group_schedule_queued(acs_context *context, uint64_t ticket, acs_op last)
{
    acs_group_schedule *d = context->group_schedule;
    ACS_HOLD_MUTEX(&d->lock);
    running_group **at = find_running(d, ticket);
    if (*at && last)
        (*at)->last = last;
    else if (*at)
        forget_running(context, d, at);
}
