/*
 * The bottom of the machine: what will happen, the front end's turns, and the ends of a stream's items. Called by
 * machine.c, sms.c and graph.c, which decide what happens. Never looks into a queue or a graph.
 *
 * What will happen is in a binary heap, by time. Equal times keep the order in which they were put, so that the same
 * calls give the same run.
 */
#include "simulator/internal.h"

static bool before(const sim_happening *a, const sim_happening *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

sim_happening acs_sim_heap_take(sim_heap *heap)
{
    sim_happening first = heap->at[0];
    sim_happening last = heap->at[--heap->used];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < heap->used) {
        if (child + 1 < heap->used && before(&heap->at[child + 1], &heap->at[child]))
            child++;
        if (!before(&heap->at[child], &last))
            break;
        heap->at[i] = heap->at[child];
        i = child;
    }
    heap->at[i] = last;
    return first;
}

void acs_sim_happen(acs_sim *sim, uint64_t when, sim_what what, uint32_t index, uint32_t node)
{
    sim_heap *heap = &sim->heap;
    sim_happening h = {.when = acs_max(when, sim->now), .order = heap->order++, .what = what, .index = index,
                       .node = node};
    uint32_t i;

    if (!ACS_SIM_GROW(sim, heap->at, heap->capacity, heap->used))
        return;
    for (i = heap->used++; i > 0 && before(&h, &heap->at[(i - 1) / 2]); i = (i - 1) / 2)
        heap->at[i] = heap->at[(i - 1) / 2];
    heap->at[i] = h;
}

void acs_sim_wake(acs_sim *sim, uint32_t queue, uint64_t when)
{
    if (sim->queue[queue].wake_at == when && when > sim->now)
        return; /* already arranged */
    sim->queue[queue].wake_at = when;
    acs_sim_happen(sim, when, SIM_QUEUE, queue, 0);
}

void acs_sim_wake_all(acs_sim *sim, const uint32_t *waiters, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        acs_sim_wake(sim, waiters[i], sim->now);
    *count = 0;
}

uint32_t acs_sim_run_take(acs_sim *sim)
{
    uint32_t index = sim->free_run;

    if (index != ACS_SIM_NONE) {
        sim->free_run = sim->run[index].next;
        return index;
    }
    if (!ACS_SIM_GROW(sim, sim->run, sim->run_capacity, sim->runs))
        return ACS_SIM_NONE;
    return sim->runs++;
}

void acs_sim_tell(acs_sim *sim, void *user, bool ended)
{
    if (user && sim->told)
        sim->told(sim->owner, user, ended, sim->now);
}

uint32_t acs_sim_blocks(acs_sim *sim, acs_sim_kernel *kernel, void *user)
{
    if (kernel->decided && user && sim->asked)
        kernel->ctas = sim->asked(sim->owner, user, kernel->ctas);
    return kernel->ctas;
}

uint64_t acs_sim_front_end_turn(acs_sim *sim, uint32_t index, uint64_t cost)
{
    sim_device *device = &sim->device[index];
    uint64_t turn = device->front_end_free > sim->now ? device->front_end_free : sim->now;

    device->front_end_free = turn + cost;
    return turn;
}

void acs_sim_front_end(acs_sim *sim, uint32_t run, uint64_t cost)
{
    acs_sim_happen(sim, acs_sim_front_end_turn(sim, sim->run[run].device, cost), SIM_START, run, 0);
}

void acs_sim_item_done(acs_sim *sim, uint32_t stream)
{
    sim->stream[stream].last = sim->now;
    sim->stream[stream].pending--;
}

void acs_sim_stream_ended(acs_sim *sim, uint32_t stream)
{
    sim_stream *s = &sim->stream[stream];

    s->running = false;
    s->free_at = acs_max(s->free_at, sim->now + sim->gpu.device.stream_hop);
    acs_sim_item_done(sim, stream);
    acs_sim_wake(sim, s->queue, sim->now);
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

acs_sim_kernel acs_sim_fitted(const acs_sim *sim, const acs_sim_kernel *kernel)
{
    acs_sim_kernel k = *kernel;

    k.ctas = k.ctas ? k.ctas : 1;
    k.threads = at_most(k.threads ? k.threads : 1, sim->gpu.sm_threads);
    k.registers = at_most(k.registers, sim->gpu.sm_registers);
    k.shared_bytes = at_most(k.shared_bytes, sim->gpu.sm_shared_bytes);
    return k;
}
