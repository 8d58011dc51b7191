/* What kernels of the library do with a cell (window/decision.h): switch a node, and count what does not run. */
#ifndef ACS_DEVICE_CELL_H
#define ACS_DEVICE_CELL_H

#include "../../window/decision.h"

/*
 * Let a node do what its cell says. A trap gives the device up: else the op would run, or not, as an earlier one did. The
 * driver refuses nodes of a graph that was not uploaded before its first launch, as CUDA demands.
 */
static __device__ void obey(uint64_t handle, const acs_cell *cell, bool grid)
{
    cudaGraphDeviceNode_t node = reinterpret_cast<cudaGraphDeviceNode_t>(handle);
    cudaError_t error = cudaSuccess;
    if (grid && cell->runs)
        error = cudaGraphKernelNodeSetGridDim(node, dim3(cell->grid[0], cell->grid[1], cell->grid[2]));
    if (error == cudaSuccess)
        error = cudaGraphKernelNodeSetEnabled(node, cell->runs != 0);
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
