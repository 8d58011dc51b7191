/*
 * Pages of device memory (see pool/pages.h) by the driver's virtual-memory calls. Called by the pools of a context
 * whose backend this is; what is there is decided when the device is opened. No call waits for the device.
 */
#include "cuda/internal.h"

#include "base/tuning.h"
#include "devices/topology.h"

#define SPAN_BYTES ((size_t)TUNE_PAGES_SPAN_GIB << 30)

static acs_status failed(acs_cuda *self, const char *what, size_t bytes, CUresult result)
{
    acs_status status = acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_MEMORY;
    return ACS_FAIL(status, (int)result, "cuda: %s %zu bytes: %s", what, bytes, acs_cuda_text((int)result));
}

static CUmemAllocationProp memory_of(const acs_cuda *self)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->device}};
}

static acs_status reserve(void *user, size_t bytes, uint64_t *base)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    CUdeviceptr at = 0;
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemAddressReserve(&at, bytes, 0, 0, 0);
        acs_cuda_scope_leave(self, &scope);
    }
    *base = at;
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "reserving addresses for", bytes, result);
}

static acs_status unreserve(void *user, uint64_t base, size_t bytes)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemAddressFree(base, bytes);
        acs_cuda_scope_leave(self, &scope);
    }
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "giving back addresses of", bytes, result);
}

static acs_status create(void *user, size_t bytes, uint64_t *piece)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp memory = memory_of(self);
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemCreate(&handle, bytes, &memory, 0);
        acs_cuda_scope_leave(self, &scope);
    }
    *piece = handle;
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "allocation of", bytes, result);
}

static acs_status destroy(void *user, uint64_t piece, size_t bytes)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemRelease(piece);
        acs_cuda_scope_leave(self, &scope);
    }
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "giving back", bytes, result);
}

static acs_status map(void *user, uint64_t base, size_t bytes, uint64_t piece)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    const CUmemAccessDesc access = {.location = memory_of(self).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemMap(base, bytes, 0, piece, 0);
        if (result == CUDA_SUCCESS && (result = self->cu.cuMemSetAccess(base, bytes, &access, 1)) != CUDA_SUCCESS)
            (void)self->cu.cuMemUnmap(base, bytes); /* the first error counts */
        acs_cuda_scope_leave(self, &scope);
    }
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "mapping", bytes, result);
}

static acs_status unmap(void *user, uint64_t base, size_t bytes)
{
    acs_cuda *self = user;
    acs_cuda_scope scope;
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuMemUnmap(base, bytes);
        acs_cuda_scope_leave(self, &scope);
    }
    return result == CUDA_SUCCESS ? ACS_OK : failed(self, "unmapping", bytes, result);
}

/* Without it pools grow by allocations, which is no error. */
void acs_cuda_pages_init(acs_cuda *self)
{
    const CUmemAllocationProp memory = memory_of(self);
    int there = 0;
    size_t page = 0;
    bool known = self->cu.cuMemAddressReserve && self->cu.cuMemAddressFree && self->cu.cuMemCreate &&
                 self->cu.cuMemRelease && self->cu.cuMemMap && self->cu.cuMemUnmap && self->cu.cuMemSetAccess &&
                 self->cu.cuMemGetAllocationGranularity;
    if (!known ||
        self->cu.cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, self->device) !=
            CUDA_SUCCESS ||
        !there ||
        self->cu.cuMemGetAllocationGranularity(&page, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        page == 0 || SPAN_BYTES % page != 0) {
        acs_log(ACS_LOG_INFO, "cuda: memory cannot be mapped by pages here; pools grow by whole allocations");
        return;
    }
    self->base.pages = (acs_page_ops){page, SPAN_BYTES, reserve, unreserve, create, destroy, map, unmap};
}

/* ------------------------------------------------------------------------------------------------ how much there is */

acs_status acs_cuda_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[device];
    acs_cuda_scope scope;
    CUuuid uuid;
    size_t is_free = 0, all = 0;
    if (!self->cu.cuMemGetInfo || !self->cu.cuDeviceGetUuid)
        return ACS_FAIL(ACS_ERR_DEVICE, 0, "cuda: this driver does not tell how much memory there is");
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = self->cu.cuDeviceGetUuid(&uuid, self->device);
        if (result == CUDA_SUCCESS)
            result = self->cu.cuMemGetInfo(&is_free, &all);
        acs_cuda_scope_leave(self, &scope);
    }
    if (result != CUDA_SUCCESS) {
        (void)acs_cuda_note(self, result);
        return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: how much memory there is: %s", acs_cuda_text((int)result));
    }
    acs_topology_id(id, uuid.bytes);
    *total = all;
    *left = is_free;
    return ACS_OK;
}

/* Devices that the GPU stands for. */
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
    acs_cuda_scope scope;
    int value[4] = {0};
    size_t left = 0, total = 0;
    static const CUdevice_attribute asked[] = {
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR};
    CUresult result = acs_cuda_scope_enter(self, &scope);
    for (int i = 0; i < 4 && result == CUDA_SUCCESS; i++)
        result = self->cu.cuDeviceGetAttribute(&value[i], asked[i], self->device);
    if (result == CUDA_SUCCESS && self->cu.cuMemGetInfo)
        result = self->cu.cuMemGetInfo(&left, &total);
    acs_cuda_scope_leave(self, &scope);
    if (result != CUDA_SUCCESS)
        return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: device %d does not tell what it has: %s", self->device,
                        acs_cuda_text((int)result));
    *capacity = (acs_capacity){.sms = (uint64_t)value[0], .threads = (uint64_t)value[1], .registers = (uint64_t)value[2],
                               .shared = (uint64_t)value[3], .memory = total ? total / sharers(self) : UINT64_MAX};
    return ACS_OK;
}
