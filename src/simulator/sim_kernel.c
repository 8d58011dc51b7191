/*
 * The needs and the time of an op on the simulated machine: by the model, by the tool's description, or drawn by the
 * seed; and which multiprocessors a kernel with a share may use. Called by sim_issue.c and sim_method.c under the
 * backend's lock, and by the core through the ops table of sim.c. Never issues an op.
 */
#include "simulator/sim_internal.h"

#include <stdio.h>

enum {
    GROUP_SMS = 8, /* multiprocessors go in groups, as on a GPU (src/cuda/share.c) */
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

/* ----------------------------------------------------------------------------------------------------------- shares */

static uint32_t groups_of_gpu(const acs_sim_state *s)
{
    return s->gpu.sms / GROUP_SMS;
}

/* Groups of a share, at least one. */
static uint32_t parts_of_share(const acs_sim_state *s, uint32_t percent)
{
    const uint32_t parts = (percent * groups_of_gpu(s) + 50) / 100;

    return parts ? parts : 1;
}

static uint32_t count_sim_places(const acs_sim_state *s, uint32_t percent)
{
    return (groups_of_gpu(s) + parts_of_share(s, percent) - 1) / parts_of_share(s, percent);
}

acs_status acs_sim_share_find(acs_backend *backend, uint32_t device, uint32_t percent, acs_share_info *info)
{
    const acs_sim_state *s = acs_sim_state_of(backend);
    const bool divides = groups_of_gpu(s) > 1;

    (void)device;
    info->device_sms = s->gpu.sms;
    info->sms = divides && percent < 100 ? parts_of_share(s, percent) * GROUP_SMS : s->gpu.sms;
    info->step_sms = divides ? GROUP_SMS : 0;
    info->places = divides && percent < 100 ? count_sim_places(s, percent) : 1;
    info->reason[0] = 0;
    if (!divides)
        snprintf(info->reason, sizeof info->reason, "the simulated GPU has %u multiprocessors, fewer than two groups of %d",
                 s->gpu.sms, GROUP_SMS);
    return ACS_OK;
}

void acs_sim_share_use(acs_sim_state *s, uint32_t index, uint8_t share, acs_sim_kernel *kernel)
{
    acs_sim_slot *slot = &s->slot[index];

    if (slot->share != share && share)
        slot->first_sm = s->share_turn[share]++ % count_sim_places(s, share) * parts_of_share(s, share) * GROUP_SMS;
    slot->share = share;
    kernel->first_sm = share ? slot->first_sm : 0;
    kernel->sms = share ? parts_of_share(s, share) * GROUP_SMS : 0;
}
