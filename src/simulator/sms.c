/*
 * Multiprocessors: the places and ends of blocks. Called by machine.c when a kernel's turn comes and when blocks end.
 * Blocks of one kernel are placed before those of the next, one on each multiprocessor in turn, as hardware does for
 * kernels of equal priority; kernels of disjoint parts of the device do not wait for each other. Never looks at streams.
 */
#include "simulator/internal.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* most blocks whose places are kept without an array */

bool acs_sim_sms_init(acs_sim *sim, sim_device *device)
{
    const acs_sim_gpu *gpu = &sim->gpu;

    device->sm = calloc(gpu->sms, sizeof *device->sm);
    if (!device->sm)
        return false;
    for (uint32_t i = 0; i < gpu->sms; i++)
        device->sm[i] = (sim_sm){gpu->sm_ctas, gpu->sm_threads, gpu->sm_registers, gpu->sm_shared_bytes};
    device->placing = device->stalled = (sim_list){ACS_SIM_NONE, ACS_SIM_NONE};
    return true;
}

void acs_sim_busy_update(acs_sim *sim, sim_device *device)
{
    device->count.sm_busy_ns += (sim->now - device->busy_since) * device->busy_sms;
    device->busy_since = sim->now;
}

static bool is_fitting(const sim_sm *sm, const acs_sim_kernel *k)
{
    return sm->ctas && sm->threads >= k->threads && sm->registers >= k->registers && sm->shared_bytes >= k->shared_bytes;
}

static void occupy(acs_sim *sim, sim_device *device, uint32_t index, const acs_sim_kernel *k)
{
    sim_sm *sm = &device->sm[index];

    if (sm->ctas == sim->gpu.sm_ctas)
        device->busy_sms++;
    sm->ctas--;
    sm->threads -= k->threads;
    sm->registers -= k->registers;
    sm->shared_bytes -= k->shared_bytes;
}

static void vacate(acs_sim *sim, sim_device *device, uint32_t index, const acs_sim_kernel *k, uint32_t ctas)
{
    sim_sm *sm = &device->sm[index];

    sm->ctas += ctas;
    sm->threads += k->threads * ctas;
    sm->registers += k->registers * ctas;
    sm->shared_bytes += k->shared_bytes * ctas;
    if (sm->ctas == sim->gpu.sm_ctas)
        device->busy_sms--;
}

/* --------------------------------------------------------------------------------------------------------- cohorts */

static void cohort_give(acs_sim *sim, uint32_t index)
{
    sim->cohort[index].next = sim->free_cohort;
    sim->free_cohort = index;
}

static uint32_t cohort_take(acs_sim *sim, bool many)
{
    uint32_t index = sim->free_cohort;
    sim_cohort *cohort;

    if (index == ACS_SIM_NONE) {
        if (!ACS_SIM_GROW(sim, sim->cohort, sim->cohort_capacity, sim->cohorts))
            return ACS_SIM_NONE;
        index = sim->cohorts++;
        memset(&sim->cohort[index], 0, sizeof sim->cohort[index]);
    } else {
        sim->free_cohort = sim->cohort[index].next;
    }
    cohort = &sim->cohort[index];
    cohort->ctas = 0;
    if (many && !cohort->count)
        cohort->count = calloc(sim->gpu.sms, sizeof *cohort->count);
    if (many && !cohort->count) {
        sim->failed = true;
        cohort_give(sim, index);
        return ACS_SIM_NONE;
    }
    return index;
}

/* Place as many of `unplaced` blocks as fit. @return their number. */
static uint32_t fill_sms(acs_sim *sim, sim_device *device, sim_cohort *cohort, const acs_sim_kernel *k, uint32_t unplaced,
                     bool many)
{
    const uint32_t sms = k->sms ? k->sms : sim->gpu.sms, first = k->sms ? k->first_sm : 0;
    uint32_t misses = 0, part_cursor = 0, *cursor = k->sms ? &part_cursor : &device->cursor;

    acs_sim_busy_update(sim, device);
    while (cohort->ctas < unplaced && misses < sms) {
        uint32_t index = (first + *cursor) % sim->gpu.sms;
        *cursor = *cursor + 1 == sms ? 0 : *cursor + 1;
        if (!is_fitting(&device->sm[index], k)) {
            misses++;
            continue;
        }
        misses = 0;
        occupy(sim, device, index, k);
        if (many)
            cohort->count[index]++;
        else
            cohort->sm[cohort->ctas] = (uint16_t)index;
        cohort->ctas++;
    }
    return cohort->ctas;
}

/* Place blocks of a run. True: all of its blocks are placed. */
static bool place_some(acs_sim *sim, sim_device *device, uint32_t run_index)
{
    sim_run *run = &sim->run[run_index];
    bool many = run->unplaced > FEW;
    uint32_t index = cohort_take(sim, many);
    uint32_t placed;
    uint64_t ns;

    if (index == ACS_SIM_NONE)
        return false;
    placed = fill_sms(sim, device, &sim->cohort[index], &run->kernel, run->unplaced, many);
    if (!placed) {
        cohort_give(sim, index);
        return false;
    }
    sim->cohort[index].run = run_index;
    sim->cohort[index].many = many;
    run->unplaced -= placed;
    run->placed_running += placed;
    ns = run->kernel.cta_ns;
    if (ns != ACS_SIM_NEVER) {
        device->count.cta_ns += ns * placed;
        acs_sim_happen(sim, sim->now + ns + (run->begun ? 0 : sim->gpu.device.kernel_fixed), SIM_CTAS_END, index, 0);
    }
    run->begun = true;
    return run->unplaced == 0;
}

/* Multiprocessors that kernels wait for. Several may have one bit: then a kernel waits without need. */
typedef struct sm_set {
    uint64_t bits[4];
} sm_set;

/* Whether none of a part's multiprocessors is in the set; then they are added. */
static bool add_part(const acs_sim *sim, sm_set *set, const acs_sim_kernel *k, bool add)
{
    bool disjoint = true;

    for (uint32_t i = 0; i < k->sms; i++) {
        const uint32_t index = (k->first_sm + i) % sim->gpu.sms;
        uint64_t *bits = &set->bits[index / 64 % 4];
        disjoint = disjoint && !(*bits >> index % 64 & 1);
        *bits |= (uint64_t)add << index % 64;
    }
    return disjoint;
}

/* A kernel that does not fit holds back those behind it that may use the same multiprocessors. */
static void place_all(acs_sim *sim, sim_device *device)
{
    sim_list *list = &device->placing;
    uint32_t before = ACS_SIM_NONE, next;
    sm_set wanted = {{0}};

    for (uint32_t run = list->first; run != ACS_SIM_NONE; run = next) {
        const acs_sim_kernel *k = &sim->run[run].kernel;
        next = sim->run[run].next;
        if ((before == ACS_SIM_NONE || (k->sms && add_part(sim, &wanted, k, false))) && place_some(sim, device, run)) {
            if (before == ACS_SIM_NONE)
                list->first = next;
            else
                sim->run[before].next = next;
            if (next == ACS_SIM_NONE)
                list->last = before;
            continue;
        }
        if (!k->sms)
            return;
        (void)add_part(sim, &wanted, k, true);
        before = run;
    }
}

/* ---------------------------------------------------------------------------------------------------- start and end */

static void append(acs_sim *sim, sim_list *list, uint32_t run)
{
    sim->run[run].next = ACS_SIM_NONE;
    if (list->first == ACS_SIM_NONE)
        list->first = run;
    else
        sim->run[list->last].next = run;
    list->last = run;
}

void acs_sim_kernel_start(acs_sim *sim, uint32_t run)
{
    sim_device *device = &sim->device[sim->run[run].device];

    if (device->running == sim->gpu.kernels) {
        append(sim, &device->stalled, run);
        return;
    }
    device->running++;
    device->count.kernels++;
    if (device->running > device->count.running_high)
        device->count.running_high = device->running;
    acs_sim_tell(sim, sim->run[run].user, false);
    append(sim, &device->placing, run);
    place_all(sim, device);
}

bool acs_sim_ctas_end(acs_sim *sim, uint32_t index)
{
    sim_cohort *cohort = &sim->cohort[index];
    sim_run *run = &sim->run[cohort->run];
    sim_device *device = &sim->device[run->device];
    bool many = cohort->many;

    acs_sim_busy_update(sim, device);
    for (uint32_t i = 0; !many && i < cohort->ctas; i++)
        vacate(sim, device, cohort->sm[i], &run->kernel, 1);
    for (uint32_t i = 0; many && i < sim->gpu.sms; i++) {
        if (cohort->count[i])
            vacate(sim, device, i, &run->kernel, cohort->count[i]);
        cohort->count[i] = 0;
    }
    run->placed_running -= cohort->ctas;
    cohort_give(sim, index);
    if (run->unplaced || run->placed_running)
        return false;
    device->running--;
    return true;
}

void acs_sim_sms_refill(acs_sim *sim, uint32_t index, bool kernel_ended)
{
    sim_device *device = &sim->device[index];
    const uint32_t stalled = device->stalled.first;

    if (kernel_ended && stalled != ACS_SIM_NONE) {
        device->stalled.first = sim->run[stalled].next;
        acs_sim_kernel_start(sim, stalled);
    }
    place_all(sim, device);
}
