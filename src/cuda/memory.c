/*
 * Memory of a device and pinned memory of the host: allocation, and the device's capacities. Called by pools, ledger
 * and placement of groups through the backend's table. Pages are in pages.c.
 */
#include "cuda/internal.h"

#include "devices/topology.h"

/* ---------------------------------------------------------------------------------------------------- allocation */

/* Both allocators align to at least 256 bytes. */
acs_status acs_cuda_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUdeviceptr device = 0;
    void *host = NULL;
    size_t wanted = bytes ? bytes : 1; /* the driver refuses 0 */
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered;
    if (result == CUDA_SUCCESS)
        result = memory == ACS_MEMORY_HOST
                     ? self->cu.cuMemHostAlloc(&host, wanted, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
                     : self->cu.cuMemAlloc(&device, wanted);
    if (result != CUDA_SUCCESS) /* a fault may show here; any other error means that there is no memory */
        return ACS_CUDA_FAIL(self, ACS_ERR_MEMORY, result, "cuda: allocation of %zu bytes: %s", bytes,
                             acs_cuda_text((int)result));
    *ptr = memory == ACS_MEMORY_HOST ? host : (void *)(uintptr_t)device;
    return ACS_OK;
}

/* May wait for the device, by CUDA's rules; called when no issued work uses the block any more. */
acs_status acs_cuda_memory_free(acs_backend *backend, int memory, void *ptr)
{
    acs_cuda *self = (acs_cuda *)backend;
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered;
    if (result == CUDA_SUCCESS)
        result = memory == ACS_MEMORY_HOST ? self->cu.cuMemFreeHost(ptr)
                                           : self->cu.cuMemFree((CUdeviceptr)(uintptr_t)ptr);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_CUDA_FAIL(self, ACS_ERR_ARGUMENT, result, "cuda: freeing %p: %s", ptr, acs_cuda_text((int)result));
}

/* ------------------------------------------------------------------------------------------------ how much there is */

acs_status acs_cuda_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[device];
    CUuuid uuid;
    size_t is_free = 0, all = 0;
    if (!self->cu.cuMemGetInfo || !self->cu.cuDeviceGetUuid)
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "cuda: this driver does not tell how much memory there is");
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered ? scope.entered : self->cu.cuDeviceGetUuid(&uuid, self->device);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemGetInfo(&is_free, &all);
    if (result != CUDA_SUCCESS) {
        (void)acs_cuda_note(self, result);
        return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: how much memory there is: %s", acs_cuda_text((int)result));
    }
    acs_topology_id(id, uuid.bytes);
    *total = all;
    *left = is_free;
    return ACS_OK;
}

/* Whether a device's kernels may touch memory. CUDA gives an address for them then, and an error otherwise. */
static CUresult reaches(acs_cuda *self, uint64_t address)
{
    CUdeviceptr seen = 0;
    int pageable = 0;
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS)
        return scope.entered;
    CUresult result = self->cu.cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
    if (result == CUDA_ERROR_INVALID_VALUE &&
        self->cu.cuDeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, self->device) ==
            CUDA_SUCCESS &&
        pageable)
        return CUDA_SUCCESS;
    return result;
}

acs_status acs_cuda_reaches(acs_backend *backend, uint64_t address)
{
    acs_cuda *first = (acs_cuda *)backend;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < backend->devices && result == CUDA_ERROR_INVALID_VALUE; i++)
        result = reaches(first->members[i], address);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    if (result == CUDA_ERROR_INVALID_VALUE)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "kernels of this context do not reach the memory at %#llx: it is pageable memory of the host, "
                        "memory of another GPU, or no memory",
                        (unsigned long long)address);
    (void)acs_cuda_note(first, result);
    return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: whether kernels reach the memory at %#llx: %s",
                    (unsigned long long)address, acs_cuda_text((int)result));
}

/* What the driver knows of an address. */
typedef struct known_memory {
    CUmemorytype type; /* for pageable memory all answers are zero */
    CUdeviceptr seen, start;
    size_t size;
    unsigned managed;
    int of_malloc;     /* it is of cuMemAlloc */
    CUmemoryPool pool; /* of cuMemAllocAsync; NULL: it is not */
} known_memory;

static CUresult ask_memory(acs_cuda *self, uint64_t address, known_memory *known)
{
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,  CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    void *answers[] = {&known->type, &known->seen, &known->start, &known->size, &known->managed, &known->of_malloc,
                       &known->pool};
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS)
        return scope.entered;
    return self->cu.cuPointerGetAttributes(sizeof asked / sizeof asked[0], asked, answers, address);
}

/*
 * Of memory of cuMemMap the driver tells the range of one mapping, but an allocation may have several. So only kinds of
 * memory count whose range is an allocation.
 */
bool acs_cuda_memory_range(acs_backend *backend, uint64_t address, uint64_t *first, uint64_t *bytes, const char **reason)
{
    acs_cuda *self = (acs_cuda *)backend;
    known_memory known = {0};
    if (!self->cu.cuPointerGetAttributes || ask_memory(self, address, &known) != CUDA_SUCCESS ||
        (known.type != CU_MEMORYTYPE_DEVICE && known.type != CU_MEMORYTYPE_HOST)) {
        *reason = "the CUDA driver does not know it";
        return false;
    }
    const bool one = known.type == CU_MEMORYTYPE_HOST || known.managed || known.of_malloc || known.pool;
    if (!one || known.seen != address || address - known.start >= known.size) {
        *reason = one ? "the device has it at another address" : "memory of cuMemMap may be part of something larger";
        return false;
    }
    *first = known.start;
    *bytes = known.size;
    return true;
}

/* The number of devices on the same GPU. */
static uint32_t sharers(const acs_cuda *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->base.devices; i++)
        count += self->members[i]->device == self->device;
    return count;
}

acs_status acs_cuda_capacity(acs_backend *backend, uint32_t device, acs_capacity *capacity)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[device];
    int value[4] = {0};
    size_t left = 0, total = 0;
    static const CUdevice_attribute asked[] = {
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR};
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered;
    for (int i = 0; i < 4 && result == CUDA_SUCCESS; i++)
        result = self->cu.cuDeviceGetAttribute(&value[i], asked[i], self->device);
    if (result == CUDA_SUCCESS && self->cu.cuMemGetInfo)
        result = self->cu.cuMemGetInfo(&left, &total);
    if (result != CUDA_SUCCESS)
        return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: device %d does not tell what it has: %s", self->device,
                        acs_cuda_text((int)result));
    *capacity = (acs_capacity){.sms = (uint64_t)value[0], .threads = (uint64_t)value[1], .registers = (uint64_t)value[2],
                               .shared = (uint64_t)value[3], .memory = total ? total / sharers(self) : UINT64_MAX};
    return ACS_OK;
}
