/*
 * Pages of device memory (pool/pages.h), by the driver's virtual-memory calls. Called by the pools of the context.
 * Whether the device has them is decided when it is opened. No call waits for the device.
 */
#include "cuda/internal.h"

#include "base/tuning.h"

#define SPAN_BYTES ((size_t)TUNE_PAGES_SPAN_GIB << 30)

static acs_status pages_status(acs_cuda *self, const char *what, size_t bytes, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_CUDA_FAIL(self, ACS_ERR_MEMORY, result, "cuda: %s %zu bytes: %s", what, bytes, acs_cuda_text((int)result));
}

static CUmemAllocationProp memory_of(const acs_cuda *self)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->device}};
}

static acs_status pages_reserve(void *user, size_t bytes, uint64_t *base)
{
    acs_cuda *self = user;
    CUdeviceptr at = 0;
    ACS_CUDA_SCOPE(self);
    const CUresult result = scope.entered ? scope.entered : self->cu.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    *base = at;
    return pages_status(self, "reserving addresses for", bytes, result);
}

static acs_status pages_unreserve(void *user, uint64_t base, size_t bytes)
{
    acs_cuda *self = user;
    ACS_CUDA_SCOPE(self);
    const CUresult result = scope.entered ? scope.entered : self->cu.cuMemAddressFree(base, bytes);
    return pages_status(self, "giving back addresses of", bytes, result);
}

static acs_status pages_create(void *user, size_t bytes, uint64_t *piece)
{
    acs_cuda *self = user;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp memory = memory_of(self);
    ACS_CUDA_SCOPE(self);
    const CUresult result = scope.entered ? scope.entered : self->cu.cuMemCreate(&handle, bytes, &memory, 0);
    *piece = handle;
    return pages_status(self, "allocation of", bytes, result);
}

static acs_status pages_destroy(void *user, uint64_t piece, size_t bytes)
{
    acs_cuda *self = user;
    ACS_CUDA_SCOPE(self);
    const CUresult result = scope.entered ? scope.entered : self->cu.cuMemRelease(piece);
    return pages_status(self, "giving back", bytes, result);
}

static acs_status pages_map(void *user, uint64_t base, size_t bytes, uint64_t piece)
{
    acs_cuda *self = user;
    const CUmemAccessDesc access = {.location = memory_of(self).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ACS_CUDA_SCOPE(self);
    CUresult result = scope.entered;
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemMap(base, bytes, 0, piece, 0);
    if (result == CUDA_SUCCESS && (result = self->cu.cuMemSetAccess(base, bytes, &access, 1)) != CUDA_SUCCESS)
        (void)self->cu.cuMemUnmap(base, bytes); /* the first error is reported */
    return pages_status(self, "mapping", bytes, result);
}

static acs_status pages_unmap(void *user, uint64_t base, size_t bytes)
{
    acs_cuda *self = user;
    ACS_CUDA_SCOPE(self);
    const CUresult result = scope.entered ? scope.entered : self->cu.cuMemUnmap(base, bytes);
    return pages_status(self, "unmapping", bytes, result);
}

/* Without pages pools grow by whole allocations, which is no error. */
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
    self->base.pages = (acs_page_ops){page,         SPAN_BYTES,    pages_reserve, pages_unreserve,
                                       pages_create, pages_destroy, pages_map,     pages_unmap};
}
