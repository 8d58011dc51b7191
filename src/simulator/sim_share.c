/*
 * Shares of a simulated GPU: which multiprocessors a kernel with a share may use. Called by the core through the ops table
 * of sim.c, and by sim_issue.c under the backend's lock. Multiprocessors go in groups, as on a GPU (src/cuda/share.c).
 */
#include "simulator/sim_internal.h"

#include <stdio.h>

enum { GROUP_SMS = 8 };

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
