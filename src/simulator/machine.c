/*
 * The machine: hardware queues, streams, events, copies, and the order in which things happen. Called through
 * machine.h by the caller that plays the host. Blocks are placed by sms.c, graphs run by graph.c. It never reads a
 * clock.
 *
 * Everything is decided in the order of the heap. A queue is worked off until its head has to wait, and looked at
 * again when that may have changed. So results do not depend on how often, or how far, acs_sim_advance is called.
 */
#include "simulator/internal.h"

#include <stdlib.h>
#include <string.h>

enum { RING_FIRST = 32 };

/* ------------------------------------------------------------------------------------------------ items of the queues */

static sim_item *item_at(const sim_queue *q, uint32_t position)
{
    return &q->ring[position & (q->capacity - 1)];
}

/* Remove the head. Time for which it blocked an item of another stream is counted. */
static void pop(acs_sim *sim, sim_queue *q)
{
    const sim_item *head = item_at(q, q->head);

    if (q->tail - q->head > 1) {
        const sim_item *next = item_at(q, q->head + 1);
        uint64_t since = acs_max(acs_max(q->head_since, head->arrival), next->arrival);
        if (next->stream != head->stream && since < sim->now)
            sim->device[q->device].count.blocked_ns += sim->now - since;
    }
    q->head++;
    q->head_since = sim->now;
}

static void record(acs_sim *sim, const sim_item *item)
{
    sim_event *event = &sim->event[item->index];

    for (uint32_t i = 0; i < event->pending_count; i++) {
        if (event->pending[i] == item->amount) {
            event->pending[i] = event->pending[--event->pending_count];
            break;
        }
    }
    event->at = sim->now;
    if (item->amount == event->records)
        event->latest_at = sim->now;
    acs_sim_wake_all(sim, event->waiters, &event->waiter_count);
    acs_sim_item_done(sim, item->stream);
}

/* Whether a record is not complete. Records of one event in several streams complete in any order, so each is kept. */
static bool is_pending(const sim_event *event, uint64_t which)
{
    for (uint32_t i = 0; i < event->pending_count; i++) {
        if (event->pending[i] == which)
            return true;
    }
    return false;
}

/* Pass a wait if its event is complete. False: it is not; the queue is looked at again when it is. */
static bool try_wait(acs_sim *sim, const sim_item *item, uint32_t queue)
{
    sim_event *event = &sim->event[item->index];
    sim_stream *stream = &sim->stream[item->stream];

    if (is_pending(event, item->amount)) {
        if (ACS_SIM_GROW(sim, event->waiters, event->waiter_capacity, event->waiter_count))
            event->waiters[event->waiter_count++] = queue;
        return false;
    }
    if (item->amount)
        stream->free_at = acs_max(stream->free_at, event->at + sim->gpu.device.event_hop);
    acs_sim_item_done(sim, item->stream);
    return true;
}

static uint64_t link_ns(uint64_t bytes, uint32_t mbps)
{
    return mbps ? bytes * 1000 / mbps : 0;
}

/* Reserve the engines and the link of a copy until it ends. @return when it can start; its duration is in run->ns. */
static uint64_t copy_reserve(acs_sim *sim, sim_run *run, const sim_item *item)
{
    sim_device *device = &sim->device[run->device];
    sim_device *peer = item->copy == ACS_SIM_TO_PEER ? &sim->device[item->index] : NULL;
    uint64_t *engine = &device->engine_free[0], start, none = 0;
    uint64_t *link = item->copy == ACS_SIM_TO_HOST     ? &device->to_host_free
                     : item->copy == ACS_SIM_TO_DEVICE ? &device->to_device_free
                     : peer                            ? &device->to_peer_free
                                                       : &none;
    uint32_t mbps = peer                           ? sim->gpu.peer_mbps
                    : item->copy == ACS_SIM_WITHIN ? sim->gpu.memory_mbps
                                                   : sim->gpu.host_mbps;

    for (uint32_t i = 1; i < sim->gpu.engines; i++) {
        if (device->engine_free[i] < *engine)
            engine = &device->engine_free[i];
    }
    start = acs_max(acs_max(sim->now, *engine), acs_max(*link, peer ? peer->from_peer_free : 0));
    run->ns = sim->gpu.device.copy_latency + link_ns(item->amount, mbps);
    *engine = *link = start + run->ns;
    if (peer)
        peer->from_peer_free = start + run->ns;
    device->count.copies++;
    return start;
}

/* When the head of a decided kernel, which reads whether the kernel runs, has ended. */
static uint64_t head_end(acs_sim *sim, uint32_t device)
{
    const uint64_t cost = (uint64_t)sim->gpu.device.decided_head + sim->gpu.device.front_end;
    return acs_sim_front_end_turn(sim, device, cost) + cost;
}

/* Let a kernel, copy or delay leave its queue. False: no memory. */
static bool run_item(acs_sim *sim, const sim_item *item, uint32_t device)
{
    uint32_t index = acs_sim_run_take(sim);
    sim_run *run;

    if (index == ACS_SIM_NONE)
        return false;
    run = &sim->run[index];
    *run = (sim_run){.kind = item->kind, .device = device, .stream = item->stream, .kernel = item->kernel,
                     .unplaced = item->kernel.ctas, .ns = item->amount, .user = item->user};
    sim->stream[item->stream].running = true;
    if (item->kind == ITEM_KERNEL && run->kernel.decided)
        acs_sim_happen(sim, head_end(sim, device), SIM_START, index, 0);
    else if (item->kind == ITEM_KERNEL)
        acs_sim_front_end(sim, index, sim->gpu.device.front_end);
    else
        acs_sim_happen(sim, item->kind == ITEM_COPY ? copy_reserve(sim, run, item) : sim->now, SIM_START, index, 0);
    return true;
}

/* Start the head item, which has arrived. False: not now; the next look is arranged. */
static bool start_head(acs_sim *sim, uint32_t queue)
{
    sim_queue *q = &sim->queue[queue];
    sim_item item = *item_at(q, q->head);
    const sim_stream *stream = &sim->stream[item.stream];

    if (item.kind == ITEM_WAIT)
        return try_wait(sim, &item, queue);
    if (stream->running)
        return false; /* the end of the running item causes the next look */
    if (item.kind == ITEM_RECORD) {
        record(sim, &item);
        return true;
    }
    if (stream->free_at > sim->now) {
        acs_sim_wake(sim, queue, stream->free_at);
        return false;
    }
    if (item.kind == ITEM_GRAPH) {
        if (!acs_sim_graph_start(sim, item.index, item.stream, queue))
            return false;
        sim->stream[item.stream].running = true;
        return true;
    }
    return run_item(sim, &item, q->device);
}

static void work_off(acs_sim *sim, uint32_t queue)
{
    sim_queue *q = &sim->queue[queue];

    while (q->head != q->tail) {
        uint64_t arrival = item_at(q, q->head)->arrival;
        if (arrival > sim->now) {
            acs_sim_wake(sim, queue, arrival);
            return;
        }
        if (!start_head(sim, queue))
            return;
        pop(sim, q);
    }
}

/* ------------------------------------------------------------------------------------------------------ start and end */

static void run_start(acs_sim *sim, uint32_t index)
{
    sim_run *run = &sim->run[index];

    const bool is_launch = run->kind == ITEM_KERNEL && run->stream != ACS_SIM_NONE;
    const bool runs = !is_launch || acs_sim_blocks(sim, &run->kernel, run->user);
    run->unplaced = run->kernel.ctas;
    if (run->kind == ITEM_KERNEL && runs) {
        acs_sim_kernel_start(sim, index);
        return;
    }
    acs_sim_tell(sim, run->user, false);
    if (run->ns != ACS_SIM_NEVER)
        acs_sim_happen(sim, sim->now + run->ns, SIM_RUN_END, index, 0);
}

static void run_ended(acs_sim *sim, uint32_t index)
{
    sim_run run = sim->run[index];

    sim->run[index].next = sim->free_run;
    sim->free_run = index;
    acs_sim_tell(sim, run.user, true);
    if (run.stream == ACS_SIM_NONE)
        acs_sim_node_ended(sim, run.graph, run.node);
    else
        acs_sim_stream_ended(sim, run.stream);
}

/* The blocks of a cohort end; then other blocks have room. */
static void ctas_end(acs_sim *sim, uint32_t cohort)
{
    const uint32_t run = sim->cohort[cohort].run, device = sim->run[run].device;
    const bool ended = acs_sim_ctas_end(sim, cohort);

    if (ended)
        run_ended(sim, run);
    acs_sim_sms_refill(sim, device, ended);
}

static void happen(acs_sim *sim, const sim_happening *h)
{
    switch (h->what) {
    case SIM_QUEUE:
        work_off(sim, h->index);
        break;
    case SIM_START:
        run_start(sim, h->index);
        break;
    case SIM_CTAS_END:
        ctas_end(sim, h->index);
        break;
    case SIM_RUN_END:
        run_ended(sim, h->index);
        break;
    case SIM_NODE:
        acs_sim_node_ready(sim, h->index, h->node);
        break;
    case SIM_NODE_END:
        acs_sim_tell(sim, sim->graph[h->index].node[h->node].user, true);
        acs_sim_node_ended(sim, h->index, h->node);
        break;
    case SIM_GRAPH_END:
        acs_sim_graph_ended(sim, h->index);
        break;
    }
}

void acs_sim_advance(acs_sim *sim, uint64_t until)
{
    while (sim->heap.used && sim->heap.at[0].when <= until) {
        sim_happening first = acs_sim_heap_take(&sim->heap);
        sim->now = first.when;
        happen(sim, &first);
    }
    if (until != ACS_SIM_NEVER && until > sim->now)
        sim->now = until;
}

uint64_t acs_sim_next(const acs_sim *sim)
{
    return sim->heap.used ? sim->heap.at[0].when : ACS_SIM_NEVER;
}

uint64_t acs_sim_event_time(const acs_sim *sim, uint32_t event)
{
    const sim_event *e = &sim->event[event];
    return e->records && !is_pending(e, e->records) ? e->latest_at : ACS_SIM_NEVER;
}

uint64_t acs_sim_stream_done(const acs_sim *sim, uint32_t stream)
{
    return sim->stream[stream].pending ? ACS_SIM_NEVER : sim->stream[stream].last;
}

acs_sim_counters acs_sim_count(const acs_sim *sim, uint32_t device)
{
    const sim_device *d = &sim->device[device];
    acs_sim_counters count = d->count;
    count.sm_busy_ns += (sim->now - d->busy_since) * d->busy_sms;
    return count;
}

/* ------------------------------------------------------------------------------------------------------ the host's calls */

static void ring_grow(acs_sim *sim, sim_queue *q)
{
    uint32_t capacity = q->capacity ? q->capacity * 2 : RING_FIRST, used = q->tail - q->head;
    sim_item *ring = malloc(capacity * sizeof *ring);

    if (!ring) {
        sim->failed = true;
        return;
    }
    for (uint32_t i = 0; i < used; i++)
        ring[i] = *item_at(q, q->head + i);
    free(q->ring);
    q->ring = ring;
    q->capacity = capacity;
    q->head = 0;
    q->tail = used;
}

/* Add an item behind all earlier ones, even if another caller's clock was ahead of this one's. */
static void enqueue(acs_sim *sim, uint64_t now, sim_item item)
{
    sim_stream *stream = &sim->stream[item.stream];
    sim_queue *q = &sim->queue[stream->queue];

    if (q->tail - q->head == q->capacity)
        ring_grow(sim, q);
    if (q->tail - q->head == q->capacity)
        return;
    item.arrival = now + sim->gpu.device.launch_latency;
    if (q->tail != q->head)
        item.arrival = acs_max(item.arrival, item_at(q, q->tail - 1)->arrival);
    if (q->tail == q->head) {
        q->head_since = item.arrival;
        acs_sim_wake(sim, stream->queue, item.arrival);
    }
    *item_at(q, q->tail++) = item;
    stream->pending++;
}

void acs_sim_launch(acs_sim *sim, uint64_t now, uint32_t stream, const acs_sim_kernel *kernel, void *user)
{
    enqueue(sim, now, (sim_item){.kind = ITEM_KERNEL, .stream = stream, .kernel = acs_sim_fitted(sim, kernel),
                                 .user = user});
}

void acs_sim_copy(acs_sim *sim, uint64_t now, uint32_t stream, acs_sim_copy_kind kind, uint32_t peer, uint64_t bytes,
                  void *user)
{
    enqueue(sim, now, (sim_item){.kind = ITEM_COPY, .stream = stream, .index = peer, .copy = kind, .amount = bytes,
                                 .user = user});
}

void acs_sim_delay(acs_sim *sim, uint64_t now, uint32_t stream, uint64_t ns, void *user)
{
    enqueue(sim, now, (sim_item){.kind = ITEM_DELAY, .stream = stream, .amount = ns, .user = user});
}

void acs_sim_record(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event)
{
    sim_event *e = &sim->event[event];

    if (!ACS_SIM_GROW(sim, e->pending, e->pending_capacity, e->pending_count))
        return;
    e->pending[e->pending_count++] = ++e->records;
    enqueue(sim, now, (sim_item){.kind = ITEM_RECORD, .stream = stream, .index = event, .amount = e->records});
}

void acs_sim_wait(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t event)
{
    enqueue(sim, now, (sim_item){.kind = ITEM_WAIT, .stream = stream, .index = event,
                                 .amount = sim->event[event].records});
}

void acs_sim_graph_launch(acs_sim *sim, uint64_t now, uint32_t stream, uint32_t graph)
{
    sim->graph[graph].launches++;
    enqueue(sim, now, (sim_item){.kind = ITEM_GRAPH, .stream = stream, .index = graph});
}

/* --------------------------------------------------------------------------------------------------- making, unmaking */

uint32_t acs_sim_stream(acs_sim *sim, uint32_t device)
{
    sim_device *d = &sim->device[device];

    if (!ACS_SIM_GROW(sim, sim->stream, sim->stream_capacity, sim->streams))
        return ACS_SIM_NONE;
    sim->stream[sim->streams] = (sim_stream){.queue = d->first_queue + d->next_queue};
    d->next_queue = (d->next_queue + 1) % sim->gpu.queues;
    return sim->streams++;
}

uint32_t acs_sim_event(acs_sim *sim)
{
    if (!ACS_SIM_GROW(sim, sim->event, sim->event_capacity, sim->events))
        return ACS_SIM_NONE;
    memset(&sim->event[sim->events], 0, sizeof *sim->event);
    return sim->events++;
}

static bool make_devices(acs_sim *sim, uint32_t devices)
{
    uint32_t queues = sim->gpu.queues;

    sim->device = calloc(devices, sizeof *sim->device);
    sim->queue = calloc((size_t)devices * queues, sizeof *sim->queue);
    if (!sim->device || !sim->queue)
        return false;
    sim->devices = devices;
    sim->queues = devices * queues;
    for (uint32_t i = 0; i < devices; i++) {
        sim->device[i].first_queue = i * queues;
        sim->device[i].engine_free = calloc(sim->gpu.engines, sizeof(uint64_t));
        if (!sim->device[i].engine_free || !acs_sim_sms_init(sim, &sim->device[i]))
            return false;
        for (uint32_t q = 0; q < queues; q++)
            sim->queue[i * queues + q].device = i;
    }
    return true;
}

acs_sim *acs_sim_create(const acs_sim_gpu *gpu, uint32_t devices, acs_sim_told told, void *owner)
{
    acs_sim *sim = calloc(1, sizeof *sim);

    if (!sim)
        return NULL;
    sim->gpu = *gpu;
    sim->told = told;
    sim->owner = owner;
    sim->free_run = sim->free_cohort = ACS_SIM_NONE;
    if (!make_devices(sim, devices)) {
        acs_sim_destroy(sim);
        return NULL;
    }
    return sim;
}

void acs_sim_destroy(acs_sim *sim)
{
    for (uint32_t i = 0; i < sim->devices; i++) {
        free(sim->device[i].sm);
        free(sim->device[i].engine_free);
    }
    for (uint32_t i = 0; i < sim->queues; i++)
        free(sim->queue[i].ring);
    for (uint32_t i = 0; i < sim->events; i++) {
        free(sim->event[i].waiters);
        free(sim->event[i].pending);
    }
    for (uint32_t i = 0; i < sim->cohorts; i++)
        free(sim->cohort[i].count);
    acs_sim_graphs_free(sim);
    free(sim->device);
    free(sim->queue);
    free(sim->event);
    free(sim->cohort);
    free(sim->stream);
    free(sim->run);
    free(sim->heap.at);
    free(sim);
}

void acs_sim_ask(acs_sim *sim, acs_sim_asked asked)
{
    sim->asked = asked;
}

bool acs_sim_failed(const acs_sim *sim)
{
    return sim->failed;
}
