/*
 * The figures of the cost model for a GPU: those of a file, or those of the table, which an H200 gave. Called by
 * member.c when a device is opened. A file that the user named must be right; a file that was found is a hint.
 */
#include "cuda/internal.h"

#include <stdio.h>

void acs_cuda_gpu_id(acs_cuda *self, char id[ACS_DEVICE_ID_BYTES])
{
    CUuuid uuid;
    if (self->cu.cuDeviceGetUuid && self->cu.cuDeviceGetUuid(&uuid, self->device) == CUDA_SUCCESS)
        acs_topology_id(id, uuid.bytes);
    else
        (void)snprintf(id, ACS_DEVICE_ID_BYTES, "cuda-%d", self->device);
}

void acs_cuda_costs_gpu(acs_cuda *self, acs_costs_gpu *gpu)
{
    acs_cuda_gpu_id(self, gpu->id);
    if (!self->cu.cuDeviceGetName ||
        self->cu.cuDeviceGetName(gpu->name, (int)sizeof gpu->name, self->device) != CUDA_SUCCESS)
        (void)snprintf(gpu->name, sizeof gpu->name, "GPU");
}

/* Whether this is the first device on its GPU, which logs for all of them. */
static bool is_first_of_gpu(const acs_cuda *self)
{
    for (uint32_t i = 0; i < self->member; i++)
        if (self->members[0]->members[i] && self->members[0]->members[i]->device == self->device)
            return false;
    return true;
}

/* Load measured figures, if there are any. A bad file is not the program's error, since the table serves. */
static void load_costs(acs_cuda *self, const acs_costs_gpu *gpu)
{
    const acs_error before = *acs_error_thread();
    const acs_status status = acs_costs_load(&self->costs, gpu);
    if (status == ACS_NOT_READY && is_first_of_gpu(self))
        acs_log(ACS_LOG_INFO, "cuda: %s was never measured: the cost model has an H200's figures; 'acs-info --measure' "
                "measures this GPU", gpu->name);
    else if (status != ACS_OK && status != ACS_NOT_READY && is_first_of_gpu(self))
        acs_log(ACS_LOG_WARN, "cuda: the cost model has an H200's figures for %s, since a file is wrong; "
                "'acs-info --measure' replaces it: %s", gpu->name, acs_error_thread()->text);
    *acs_error_thread() = before;
}

acs_status acs_cuda_costs_init(acs_cuda *self, const acs_options *options)
{
    acs_costs_gpu gpu;
    self->costs = acs_costs_table;
    if (!options->costs[0] && !self->methods)
        return ACS_OK; /* without bundles the model is not used */
    acs_cuda_costs_gpu(self, &gpu);
    if (options->costs[0])
        return acs_costs_open(&self->costs, &gpu, options->costs);
    load_costs(self, &gpu);
    return ACS_OK;
}
