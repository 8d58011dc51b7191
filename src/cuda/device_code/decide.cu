/*
 * Decisions (window/decision.h) on the device: read a word, write a cell, and switch the nodes of ops in the same graph
 * that obey it. The host part is graphs/decided.c. It touches no memory of the program but the word.
 */
#include "device.h"

#include "../../window/decision.h"

#include "cell.h"

static_assert(ACS_DECISION_TARGETS <= ACS_DECISION_THREADS, "one thread for each target");
static_assert(sizeof(acs_decision) == 256 && sizeof(acs_cell) == 32, "as the host lays them out");

static __device__ void report_fault(const acs_decision &d, const uint32_t *blocks)
{
    acs_decision_fault *fault = &d.report->fault[atomicAdd_system(&d.report->fault_count, 1u) % ACS_DECISION_FAULTS];
    fault->site = d.site;
    for (int i = 0; i < 3; i++) {
        fault->blocks[i] = blocks[i];
        fault->most[i] = d.most[i];
    }
    __threadfence_system();
    *reinterpret_cast<volatile uint32_t *>(&fault->ready) = 1;
}

/* Switching a node takes 1.2 us of the path, so what is as it should be stays so. */
static __device__ bool is_known(uint4 state, const acs_cell &cell)
{
    const acs_decision_state known = {state.x, {state.y, state.z, state.w}};
    return acs_decision_is_state(&known, &cell);
}

/* One block of ACS_DECISION_THREADS threads, which decide alike. */
extern "C" __global__ void __launch_bounds__(ACS_DECISION_THREADS)
    acs_device_decide(const __grid_constant__ acs_decision d)
{
    acs_cell cell;
    uint32_t blocks[3];
    uint4 *state = reinterpret_cast<uint4 *>(d.state);
    const uint4 was = state ? *state : make_uint4(~0u, ~0u, ~0u, ~0u); /* read beside the word, not behind it */
    const int fits = acs_decision_make(&d, &cell, blocks);
    const uint32_t lane = threadIdx.x;
    const bool known = is_known(was, cell);
    __syncwarp(); /* all have read before one writes: a loop's decision reads the cell that it writes */
    if (lane < d.target_count && !known)
        obey(d.target[lane], &cell, d.target_grids >> lane & 1);
    if (lane != 0)
        return;
    *d.cell = cell;
    if (state && !known)
        *state = make_uint4(cell.runs, cell.grid[0], cell.grid[1], cell.grid[2]);
    if (!fits)
        report_fault(d, blocks);
    if (!cell.runs && d.target_count)
        count_not_run(&cell, d.target_count);
    if (!d.told)
        return;
    __threadfence_system();
    *reinterpret_cast<volatile uint64_t *>(d.told) = acs_decision_loop_word(&cell);
}
