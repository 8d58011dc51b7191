/*
 * Which device has the most left (see capacity.h). Called where groups are submitted, under the lock of the caller that
 * counts them. Knows nothing of ops.
 */
#include "devices/capacity.h"

static double sms_for(uint64_t in_use, uint64_t wanted, uint64_t of_one)
{
    return of_one ? ((double)in_use + (double)wanted) / (double)of_one : 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double acs_capacity_left(const acs_device_load *d, const acs_demand *g)
{
    const double threads = sms_for(d->in_use.threads, g->threads, d->of.threads);
    const double registers = sms_for(d->in_use.registers, g->registers, d->of.registers);
    const double shared = sms_for(d->in_use.shared, g->shared, d->of.shared);
    return (double)d->of.sms - larger(threads, larger(registers, shared));
}

static uint64_t left_of(uint64_t all, uint64_t in_use)
{
    return all > in_use ? all - in_use : 0;
}

uint64_t acs_capacity_memory_left(const acs_device_load *d)
{
    return left_of(d->of.memory, d->in_use.memory);
}

static bool has_room(const acs_device_load *d, const acs_demand *g)
{
    const uint64_t queues = g->queues < d->of.queues ? g->queues : d->of.queues;
    return g->memory <= acs_capacity_memory_left(d) && queues <= left_of(d->of.queues, d->in_use.queues);
}

int acs_capacity_choose(const acs_device_load *devices, uint32_t count, const acs_demand *group)
{
    int best = -1;
    for (uint32_t d = 0; d < count; d++)
        if (has_room(&devices[d], group) &&
            (best < 0 || acs_capacity_left(&devices[d], group) > acs_capacity_left(&devices[best], group)))
            best = (int)d;
    return best;
}

void acs_capacity_add(acs_device_load *d, const acs_demand *g)
{
    d->in_use.threads += g->threads;
    d->in_use.registers += g->registers;
    d->in_use.shared += g->shared;
    d->in_use.memory += g->memory;
    d->in_use.queues += g->queues;
}

void acs_capacity_remove(acs_device_load *d, const acs_demand *g)
{
    d->in_use.threads -= g->threads;
    d->in_use.registers -= g->registers;
    d->in_use.shared -= g->shared;
    d->in_use.memory -= g->memory;
    d->in_use.queues -= g->queues;
}
