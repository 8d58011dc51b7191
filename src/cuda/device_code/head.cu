/*
 * The library's own kernels in cached graphs: the head, which sets the other nodes before they run, joins, and the
 * nodes that publish progress to the host. Built into one image with the other files here; the host part is
 * graphs/graph.c. They never touch memory of the program.
 */
#include "device.h"

#include "cell.h"

/* Trap on an error, so that the device is given up: a node that was not set would run with another op's arguments. */
static __device__ void must(cudaError_t error)
{
    if (error != cudaSuccess)
        __trap();
}

static __device__ void apply(const acs_device_set *set, uint64_t cells)
{
    cudaGraphDeviceNode_t node = reinterpret_cast<cudaGraphDeviceNode_t>(set->node);
    if (set->bytes)
        must(cudaGraphKernelNodeSetParam(node, set->first, set + 1, set->bytes));
    if (set->what & ACS_DEVICE_SET_GRID)
        must(cudaGraphKernelNodeSetGridDim(node, dim3(set->grid[0], set->grid[1], set->grid[2])));
    if (set->what & ACS_DEVICE_SET_ENABLED)
        must(cudaGraphKernelNodeSetEnabled(node, (set->what & ACS_DEVICE_SET_ON) != 0));
    if (set->what & ACS_DEVICE_SET_CELL)
        obey_cell(set->node, reinterpret_cast<const acs_cell *>(cells + static_cast<int64_t>(set->cell)),
                  (set->what & ACS_DEVICE_SET_CELL_GRID) != 0);
}

/*
 * Apply the sets of a launch. A block reads all that it may need of the table at once, since one trip to the host's
 * memory takes longer than all else.
 */
extern "C" __global__ void acs_device_head(const acs_device_table *table, uint64_t *state, uint32_t values_most,
                                           uint32_t sets_most, uint32_t stride)
{
    extern __shared__ uint4 own[];
    const uint32_t first = blockIdx.x * blockDim.x, lane = threadIdx.x;
    const uint64_t *values = reinterpret_cast<const uint64_t *>(table + 1);
    const uint4 *sets = reinterpret_cast<const uint4 *>(reinterpret_cast<const char *>(values + values_most) +
                                                        static_cast<size_t>(first) * stride);
    const uint32_t here = min(blockDim.x, sets_most - first);
    const acs_device_table head = *table;
    for (uint32_t i = lane; i < here * stride / sizeof(uint4); i += blockDim.x)
        own[i] = sets[i];
    if (blockIdx.x == 0) {
        if (lane == 0)
            state[0] = head.word;
        for (uint32_t i = lane; i < values_most; i += blockDim.x)
            state[1 + i] = values[i];
    }
    __syncthreads();
    if (first + lane < head.sets)
        apply(reinterpret_cast<const acs_device_set *>(reinterpret_cast<const char *>(own) + lane * stride), head.cells);
}

/* A join or barrier. An empty kernel is cheaper than an empty node. */
extern "C" __global__ void acs_device_join()
{
}

/*
 * Publish a value: all nodes that this one follows are complete, and so are all earlier ops of the slot up to the
 * value.
 */
extern "C" __global__ void acs_device_publish(const uint64_t *state, uint32_t index)
{
    volatile uint64_t *word = reinterpret_cast<volatile uint64_t *>(state[0]);
    const uint64_t value = state[1 + index];
    if (value == 0)
        return;
    /* The kernels' writes to host memory must be there when the host sees the word. */
    __threadfence_system();
    *word = value;
}
