/*
 * Where groups run (see dispatch.h). Called by threads that submit groups; one that waits steps the core, and holds no lock
 * meanwhile. A group that has ended is forgotten when the next one comes.
 */
#include "runtime/dispatch.h"

#include "runtime/admission.h"
#include "runtime/spread.h"

#include <sched.h>
#include <stdlib.h>

/* Hardware queues of a GPU, HuntKTm's bound: with fewer slots ops take turns in them, but groups need not wait for that. */
enum { QUEUES = 32 };

typedef struct running {
    uint64_t ticket;
    uint32_t device;
    acs_demand demand;
    acs_op last; /* 0: it is being queued */
    bool reserved; /* its memory counts among what is in use */
    struct running *next;
} running;

struct acs_dispatch {
    pthread_mutex_t lock; /* guards all that follows; nothing is waited for under it */
    uint64_t tickets;     /* handed out */
    uint64_t served;      /* tickets up to this one have their device */
    running *first;
    acs_device_load devices[ACS_DEVICES_MOST];
};

acs_status acs_dispatch_open(acs_context *context)
{
    acs_backend *backend = context->backend;
    if (!context->spread)
        return ACS_OK;
    acs_dispatch *d = calloc(1, sizeof *d);
    if (!d || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for groups of several devices");
    }
    context->dispatch = d;
    for (uint32_t i = 0; i < backend->devices; i++) {
        acs_capacity *of = &d->devices[i].of;
        ACS_TRY(backend->ops->capacity(backend, i, of));
        of->queues = context->core.slots.count / backend->devices;
        of->queues = of->queues < QUEUES ? QUEUES : of->queues;
        if (context->options.memory_limit && (uint64_t)context->options.memory_limit < of->memory)
            of->memory = (uint64_t)context->options.memory_limit;
    }
    return ACS_OK;
}

void acs_dispatch_close(acs_context *context)
{
    acs_dispatch *d = context->dispatch;
    while (d && d->first) {
        running *next = d->first->next;
        free(d->first);
        d->first = next;
    }
    if (d)
        pthread_mutex_destroy(&d->lock);
    free(d);
    context->dispatch = NULL;
}

/* Other programs look at what runs on a device. */
static void publish(const acs_context *context, const acs_dispatch *d, uint32_t device)
{
    if (acs_admission_on(context))
        acs_ledger_runs(context->ledgers[device], &d->devices[device].in_use);
}

static void forget(const acs_context *context, acs_dispatch *d, running **at)
{
    running *r = *at;
    acs_capacity_remove(&d->devices[r->device], &r->demand);
    publish(context, d, r->device);
    *at = r->next;
    free(r);
}

/* Groups whose ops have ended; *oldest is an op that the next of the others waits for, 0: none of them is queued. */
static void forget_ended(acs_context *context, acs_dispatch *d, acs_op *oldest)
{
    const acs_op settled = acs_core_settled(&context->core);
    *oldest = 0;
    for (running **at = &d->first; *at;) {
        running *r = *at;
        if (r->last == 0 || r->last > settled) {
            if (r->last && (*oldest == 0 || r->last < *oldest))
                *oldest = r->last;
            at = &r->next;
            continue;
        }
        forget(context, d, at);
    }
}

void acs_dispatch_rest(acs_context *context)
{
    acs_dispatch *d = context->dispatch;
    acs_op oldest;
    pthread_mutex_lock(&d->lock);
    forget_ended(context, d, &oldest);
    pthread_mutex_unlock(&d->lock);
}

/* Blocks that are of no group take memory, too, and groups are about to. */
static uint64_t memory_in_use(const acs_dispatch *d, uint32_t device, uint64_t live)
{
    uint64_t soon = live;
    for (const running *r = d->first; r; r = r->next)
        soon += r->device == device && !r->reserved ? r->demand.memory : 0;
    return soon > d->devices[device].in_use.memory ? soon : d->devices[device].in_use.memory;
}

/* A device as a group finds it; *idle is memory that the context has of it and does not use. */
static acs_device_load load_of(const acs_context *context, const acs_dispatch *d, uint32_t device, uint64_t *idle)
{
    const acs_memory_counts memory = acs_memory_count(context->memory, acs_memory_kind(device));
    acs_device_load load = d->devices[device];
    uint64_t room = 0;
    acs_demand others = {0};
    load.in_use.memory = memory_in_use(d, device, memory.live);
    *idle = memory.reserved > load.in_use.memory ? memory.reserved - load.in_use.memory : 0;
    if (!acs_admission_on(context) || acs_ledger_look(context->ledgers[device], &room, &others) != ACS_OK)
        return load; /* that it cannot be asked shows when memory is taken */
    others.memory = 0; /* is not in the room */
    acs_capacity_add(&load, &others);
    const uint64_t lacks = load.of.memory > room ? load.of.memory - room : 0; /* whoever has it */
    if (lacks > *idle && lacks - *idle > load.in_use.memory)
        load.in_use.memory = lacks - *idle;
    return load;
}

/* With a ledger the group's memory is taken there, too, as far as the context lacks it. */
static int choose(acs_context *context, acs_dispatch *d, const acs_demand *demand)
{
    acs_device_load now[ACS_DEVICES_MOST];
    uint64_t idle[ACS_DEVICES_MOST];
    int most = 0, device;
    for (uint32_t i = 0; i < context->spread->count; i++) {
        now[i] = load_of(context, d, i, &idle[i]);
        if (acs_capacity_memory_left(&now[i]) > acs_capacity_memory_left(&now[most]))
            most = (int)i;
    }
    while ((device = acs_capacity_choose(now, context->spread->count, demand)) >= 0) {
        const uint64_t lacks = demand->memory > idle[device] ? demand->memory - idle[device] : 0;
        if (!acs_admission_on(context) || lacks == 0 ||
            acs_admission_take(context, (uint32_t)device, lacks) == ACS_OK)
            return device;
        now[device].in_use.memory = now[device].of.memory; /* somebody was faster */
    }
    return d->first || acs_admission_on(context) ? -1 : most;
}

static void place_locked(acs_context *context, running *r, uint64_t ticket, uint32_t device, const acs_demand *demand)
{
    acs_dispatch *d = context->dispatch;
    d->served = ticket;
    *r = (running){.ticket = ticket, .device = device, .demand = *demand, .next = d->first};
    d->first = r;
    acs_capacity_add(&d->devices[device], demand);
    publish(context, d, device);
}

/* What the ticket's owner is to do next. */
typedef enum turn {
    TURN_OVER,   /* it has its device */
    TURN_ALONE,  /* it is the first, and none of the context's groups runs: other programs have what it lacks */
    TURN_LATER
} turn;

static turn try(acs_context *context, uint64_t ticket, const acs_demand *demand, running *r, acs_op *oldest)
{
    acs_dispatch *d = context->dispatch;
    pthread_mutex_lock(&d->lock);
    forget_ended(context, d, oldest);
    const bool next = d->served + 1 == ticket;
    const int device = next ? choose(context, d, demand) : -1;
    if (device >= 0)
        place_locked(context, r, ticket, (uint32_t)device, demand);
    const turn result = device >= 0 ? TURN_OVER : next && !d->first ? TURN_ALONE : TURN_LATER;
    pthread_mutex_unlock(&d->lock);
    return result;
}

/* Whoever has it first gives; the context's other groups come behind. */
static acs_status wait_for_others(acs_context *context, uint64_t ticket, const acs_demand *demand, running *r)
{
    acs_dispatch *d = context->dispatch;
    uint32_t device = 0;
    acs_status status = acs_admission_wait(context, (1u << context->spread->count) - 1, demand->memory, &device);
    pthread_mutex_lock(&d->lock);
    if (status == ACS_OK)
        place_locked(context, r, ticket, device, demand);
    else
        d->served = ticket;
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* Until the context's ops get on, or another of its threads has queued its group. */
static void wait_for_own(acs_context *context, acs_op oldest)
{
    if (oldest)
        acs_context_wait(context, ACS_WATCH_ALL, oldest);
    else if (context->virtual_count)
        acs_virtual_wait(context);
    else if (!acs_context_step(context) && acs_admission_on(context))
        acs_ledger_nap(context->ledgers[0]); /* the thread before it may wait for other programs */
    else
        sched_yield();
}

acs_status acs_dispatch_begin(acs_context *context, const acs_demand *demand, uint64_t *ticket, uint32_t *device)
{
    acs_dispatch *d = context->dispatch;
    running *r = malloc(sizeof *r);
    acs_status status = ACS_OK;
    acs_op oldest = 0;
    turn now;
    *ticket = 0;
    *device = 0;
    if (!r)
        return ACS_OK; /* uncounted: no memory for so little will show elsewhere */
    pthread_mutex_lock(&d->lock);
    const uint64_t mine = ++d->tickets;
    pthread_mutex_unlock(&d->lock);
    while ((now = try(context, mine, demand, r, &oldest)) == TURN_LATER)
        wait_for_own(context, oldest);
    if (now == TURN_ALONE)
        status = wait_for_others(context, mine, demand, r);
    if (status != ACS_OK) {
        free(r);
        return status;
    }
    *ticket = mine;
    *device = r->device;
    return ACS_OK;
}

static running **find(acs_dispatch *d, uint64_t ticket)
{
    running **at = &d->first;
    while (*at && (*at)->ticket != ticket)
        at = &(*at)->next;
    return at;
}

void acs_dispatch_reserved(acs_context *context, uint64_t ticket)
{
    acs_dispatch *d = context->dispatch;
    pthread_mutex_lock(&d->lock);
    running *r = *find(d, ticket);
    if (r)
        r->reserved = true;
    pthread_mutex_unlock(&d->lock);
}

void acs_dispatch_queued(acs_context *context, uint64_t ticket, acs_op last)
{
    acs_dispatch *d = context->dispatch;
    pthread_mutex_lock(&d->lock);
    running **at = find(d, ticket);
    if (*at && last)
        (*at)->last = last;
    else if (*at)
        forget(context, d, at);
    pthread_mutex_unlock(&d->lock);
}
