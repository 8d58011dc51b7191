/* What kernels of the library do with a cell (window/decision.h): switch a node, and count what does not run. */
#ifndef ACS_DEVICE_CELL_H
#define ACS_DEVICE_CELL_H

#include "../../window/decision.h"

enum { ACS_CELL_PATIENCE_NS = 1000000000 };

static __device__ uint64_t cell_clock_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ cudaError_t switch_node(cudaGraphDeviceNode_t node, const acs_cell *cell, bool grid)
{
    cudaError_t error = cudaSuccess;
    if (grid && cell->runs)
        error = cudaGraphKernelNodeSetGridDim(node, dim3(cell->grid[0], cell->grid[1], cell->grid[2]));
    return error == cudaSuccess ? cudaGraphKernelNodeSetEnabled(node, cell->runs != 0) : error;
}

/*
 * Let a node do what its cell says. The first launch of a captured graph may begin while the driver still writes later
 * nodes to the device, unless the program has uploaded the graph: such a node is refused, and tried again. It took 6 us
 * at most. A trap gives the device up: else the op would run, or not, as an earlier one did.
 */
static __device__ void obey(uint64_t handle, const acs_cell *cell, bool grid)
{
    cudaGraphDeviceNode_t node = reinterpret_cast<cudaGraphDeviceNode_t>(handle);
    cudaError_t error = switch_node(node, cell, grid);
    const uint64_t end = error == cudaSuccess ? 0 : cell_clock_ns() + ACS_CELL_PATIENCE_NS;
    while (error != cudaSuccess && cell_clock_ns() < end)
        error = switch_node(node, cell, grid);
    if (error != cudaSuccess)
        __trap();
}

static __device__ void count_not_run(const acs_cell *cell, uint32_t ops)
{
    atomicAdd_system(reinterpret_cast<unsigned long long *>(cell->not_run), static_cast<unsigned long long>(ops));
}

/* The same for a node whose decision was made before this graph began. */
static __device__ void obey_cell(uint64_t handle, const acs_cell *cell, bool grid)
{
    obey(handle, cell, grid);
    if (!cell->runs)
        count_not_run(cell, 1);
}

#endif
