/*
 * The needs and the time of an op on the simulated machine: by the model, by the tool's description, or drawn by the
 * seed. Called by sim_issue.c and sim_method.c under the backend's lock. Never issues an op.
 */
#include "simulator/sim_internal.h"

enum {
    VICTIM_ITEMS = 32,  /* items after which another slot starves */
    NEWEST_ITEMS = 40,
    SLOW_FACTOR = 1000,
    LONG_NS = 1000000
};

static uint64_t drawn_ns(acs_sim_state *s, uint32_t slot)
{
    uint32_t some = acs_random_below(&s->random, 1000);

    if (s->issued % VICTIM_ITEMS == 0 && s->strategy == ACS_SIM_STARVE)
        s->victim = acs_random_below(&s->random, s->slots);
    if (s->strategy == ACS_SIM_NEWEST) /* mostly longer than all later ops together */
        return ((uint64_t)LONG_NS << 20 >> s->issued % NEWEST_ITEMS) + some;
    if (s->strategy == ACS_SIM_STARVE && slot == s->victim)
        return (uint64_t)LONG_NS * 1000;
    return some;
}

static acs_sim_kernel kernel_of(const acs_sim_state *s, const acs_record *op, uint64_t ns)
{
    const acs_dim3 *g = &op->grid, *b = &op->u.launch.block;
    uint64_t ctas = (uint64_t)g->x * g->y * g->z;
    acs_sim_kernel kernel = {.ctas = ctas > UINT32_MAX ? UINT32_MAX : (uint32_t)ctas, .threads = b->x * b->y * b->z,
                             .shared_bytes = (uint32_t)op->u.launch.shared_bytes, .cta_ns = ns,
                             .decided = !s->by_seed && op->flags & ACS_RECORD_DECIDED};

    if (s->by_seed && kernel.ctas > 64) /* more would only take real time */
        kernel.ctas = 64;
    if (!s->by_seed && op->flags & ACS_RECORD_DECIDES)
        kernel.cta_ns = s->gpu.device.decision;
    else if (s->describe)
        s->describe(s->describe_user, op, &kernel);
    return kernel;
}

uint64_t acs_sim_kernel_ns(const acs_sim_state *s, const acs_record *op)
{
    return kernel_of(s, op, s->kernel_ns).cta_ns;
}

uint64_t acs_sim_threads(const acs_sim_state *s, const acs_record *op)
{
    acs_sim_kernel kernel = kernel_of(s, op, 0);

    return (uint64_t)kernel.ctas * kernel.threads;
}

acs_sim_kernel acs_sim_draw_kernel(acs_sim_state *s, const acs_record *op, uint32_t slot)
{
    uint64_t ns = s->by_seed ? drawn_ns(s, slot) : s->kernel_ns;
    acs_sim_kernel kernel = {.cta_ns = ns};

    if (op->kind == ACS_KIND_KERNEL)
        kernel = kernel_of(s, op, ns);
    if (acs_sim_fault(&s->faults, ACS_FAULT_SLOW))
        kernel.cta_ns = ns * SLOW_FACTOR;
    if (op->kind == ACS_KIND_KERNEL && acs_sim_fault(&s->faults, ACS_FAULT_ENDLESS))
        kernel.cta_ns = ACS_SIM_NEVER;
    s->in_flight++;
    s->issued++;
    return kernel;
}
