/*
 * The bottom of the machine: what will happen, the front end's turns, and the ends of a stream's items.
 * Called by machine.c, sms.c and graph.c, which decide what happens. Never looks into a queue or a graph.
 */
#include "simulator/internal.h"

void acs_sim_happen(acs_sim *sim, uint64_t when, sim_what what, uint32_t index, uint32_t node)
{
    sim_happening h = {.when = when > sim->now ? when : sim->now, .what = what, .index = index, .node = node};

    if (!acs_sim_heap_put(&sim->heap, h))
        sim->failed = true;
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

uint64_t acs_sim_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
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
    s->free_at = acs_sim_later(s->free_at, sim->now + sim->gpu.device.stream_hop);
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
