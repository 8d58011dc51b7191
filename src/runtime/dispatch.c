/*
 * Where groups run (see dispatch.h). Called by threads that submit groups; one that waits steps the core, and holds no lock
 * meanwhile. A group that has ended is forgotten when the next one comes.
 */
#include "runtime/dispatch.h"

#include "runtime/spread.h"

#include <sched.h>
#include <stdlib.h>

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

static void forget(acs_dispatch *d, running **at)
{
    running *r = *at;
    acs_capacity_remove(&d->devices[r->device], &r->demand);
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
        forget(d, at);
    }
}

/* Blocks that are of no group take memory, too, and groups are about to. */
static uint64_t memory_in_use(const acs_context *context, const acs_dispatch *d, uint32_t device)
{
    uint64_t soon = acs_memory_count(context->memory, acs_memory_kind(device)).live;
    for (const running *r = d->first; r; r = r->next)
        soon += r->device == device && !r->reserved ? r->demand.memory : 0;
    return soon > d->devices[device].in_use.memory ? soon : d->devices[device].in_use.memory;
}

static int choose(const acs_context *context, acs_dispatch *d, const acs_demand *demand)
{
    acs_device_load now[ACS_DEVICES_MOST];
    int most = 0;
    for (uint32_t i = 0; i < context->spread->count; i++) {
        now[i] = d->devices[i];
        now[i].in_use.memory = memory_in_use(context, d, i);
        if (acs_capacity_memory_left(&now[i]) > acs_capacity_memory_left(&now[most]))
            most = (int)i;
    }
    const int device = acs_capacity_choose(now, context->spread->count, demand);
    return device >= 0 || d->first ? device : most;
}

/* True: the ticket has its device. */
static bool try(acs_context *context, uint64_t ticket, const acs_demand *demand, running *r, acs_op *oldest)
{
    acs_dispatch *d = context->dispatch;
    pthread_mutex_lock(&d->lock);
    forget_ended(context, d, oldest);
    const int device = d->served + 1 == ticket ? choose(context, d, demand) : -1;
    if (device >= 0) {
        d->served = ticket;
        *r = (running){.ticket = ticket, .device = (uint32_t)device, .demand = *demand, .next = d->first};
        d->first = r;
        acs_capacity_add(&d->devices[device], demand);
    }
    pthread_mutex_unlock(&d->lock);
    return device >= 0;
}

uint32_t acs_dispatch_begin(acs_context *context, const acs_demand *demand, uint64_t *ticket)
{
    acs_dispatch *d = context->dispatch;
    running *r = malloc(sizeof *r);
    acs_op oldest = 0;
    *ticket = 0;
    if (!r)
        return 0; /* uncounted: no memory for so little will show elsewhere */
    pthread_mutex_lock(&d->lock);
    *ticket = ++d->tickets;
    pthread_mutex_unlock(&d->lock);
    while (!try(context, *ticket, demand, r, &oldest)) {
        if (oldest)
            acs_context_wait(context, ACS_WATCH_ALL, oldest);
        else if (context->virtual_count)
            acs_virtual_wait(context);
        else if (!acs_context_step(context))
            sched_yield(); /* another thread is queueing its group */
    }
    return r->device;
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
        forget(d, at);
    pthread_mutex_unlock(&d->lock);
}
