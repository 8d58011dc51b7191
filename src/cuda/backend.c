/*
 * The CUDA backend: its tables of functions, for one device and for several, and its opening. The runtime calls it
 * through acs_backend_cuda (backend.h); nothing in this folder calls it.
 *
 * Of several devices each has a member (acs_cuda). Members share serial, fault and the arrays of streams and marks, so
 * that one can wait for a mark that another recorded. Each call goes to the member of its device, slot, memory or
 * stream. The first member is the backend that the runtime holds; it also gets foreign captures and calls without a
 * device. With ACS_DEVICES_PER_GPU members share a GPU and its context.
 */
#include "cuda/bundle.h"
#include "cuda/issuers.h"
#include "cuda/kernel.h"
#include "cuda/share.h"

#include "base/tuning.h"

#include <stdio.h>
#include <string.h>

static const acs_backend_ops g_devices_ops; /* table for several devices; acs_backend_cuda is for one */
static const acs_cuda_member g_only_member = {.ops = &acs_backend_cuda, .device = -1};

static acs_cuda *first_of(acs_backend *backend)
{
    return (acs_cuda *)backend;
}

static acs_backend *member_of(acs_backend *backend, uint32_t device)
{
    return &first_of(backend)->members[device]->base;
}

/* ------------------------------------------------------------------------------------------------------ open, close */

/* From now on no thread of the library calls the driver about the device. */
static void cuda_give_up(acs_backend *backend)
{
    acs_cuda_lose((acs_cuda *)backend, (CUresult)cudaErrorLaunchTimeout);
}

/*
 * Destroy and free nothing. Freeing memory and releasing the context wait for running work, by CUDA's rules. That work
 * may also use streams, events, a library's handles and workspaces. The end of the process takes them all.
 */
static acs_leave cuda_leave(acs_backend *backend)
{
    (void)backend;
    return ACS_LEFT_DEVICE;
}

static void cuda_close(acs_backend *backend)
{
    acs_cuda *first = first_of(backend);
    acs_cuda_issuers_close(first); /* before its queue goes: no member submits any more */
    acs_cuda_code_stop(first);
    for (uint32_t i = backend->devices; i-- > 1;)
        if (first->members[i])
            acs_cuda_member_close(first->members[i]);
    acs_cuda_member_close(first);
}

/*
 * Let members reach each other's memory. Copies between devices without peer access go through the host: slower, never
 * wrong.
 */
static void enable_peers(acs_cuda *self)
{
    for (uint32_t i = 0; i < self->base.devices; i++) {
        acs_cuda *other = self->members[i];
        int can = 0;
        if (other->device == self->device) {
            self->peers |= 1u << i;
            continue;
        }
        if (!self->cu.cuDeviceCanAccessPeer || !self->cu.cuCtxEnablePeerAccess ||
            self->cu.cuDeviceCanAccessPeer(&can, self->device, other->device) != CUDA_SUCCESS || !can)
            continue;
        ACS_CUDA_SCOPE(self);
        const CUresult result = scope.entered ? scope.entered : self->cu.cuCtxEnablePeerAccess(other->context, 0);
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
            self->peers |= 1u << i;
        else
            acs_log(ACS_LOG_WARN, "cuda: device %d does not reach device %d: %s", self->device, other->device,
                    acs_cuda_text((int)result));
    }
}

/* Give all members the whole list, now that all are open. */
static void introduce(acs_cuda *first)
{
    for (uint32_t i = 1; i < first->base.devices; i++)
        for (uint32_t k = 0; k < first->base.devices; k++)
            first->members[i]->members[k] = first->members[k];
    for (uint32_t i = 0; i < first->base.devices; i++)
        enable_peers(first->members[i]);
}

static acs_status open_members(const acs_backend_config *config, int device, int count, acs_cuda **first)
{
    acs_cuda_member asked = {.ops = &acs_backend_cuda, .device = device};
    ACS_TRY(acs_cuda_member_open(config, &asked, first));
    (*first)->base.ops = &g_devices_ops;
    asked.first = *first;
    for (uint32_t i = 1; i < config->devices; i++) {
        asked.device = (device + (int)i) % count;
        asked.member = i;
        acs_status status = acs_cuda_member_open(config, &asked, &(*first)->members[i]);
        if (status != ACS_OK) {
            cuda_close(&(*first)->base);
            return status;
        }
    }
    introduce(*first);
    return ACS_OK;
}

/* All members are open. */
static acs_status finish_open(acs_cuda *first, const acs_backend_config *config, acs_backend **backend)
{
    const acs_status status = acs_cuda_issuers_open(first, config);
    if (status != ACS_OK) {
        cuda_close(&first->base);
        return status;
    }
    acs_cuda_code_init(first, config->options);
    *backend = &first->base;
    return ACS_OK;
}

static acs_status devices_open(const acs_backend_config *config, acs_backend **backend)
{
    acs_backend_config several = *config;
    acs_cuda *first = NULL;
    int count = 0, device = 0, now = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess)
        error = cudaGetDevice(&device);
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* handled: the program must not find it */
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, (int)error, "cuda: no usable device: %s", acs_cuda_open_text((int)error));
    }
    const uint32_t there = (uint32_t)count * (uint32_t)config->options->devices_per_gpu;
    several.devices = config->devices ? config->devices : there < ACS_DEVICES_MOST ? there : ACS_DEVICES_MOST;
    if (several.devices > there)
        return ACS_FAIL(ACS_ERR_OPTION, 0, "cuda: ACS_DEVICES=%u, but there are %u: GPUs %d, ACS_DEVICES_PER_GPU=%d",
                        several.devices, there, count, (int)config->options->devices_per_gpu);
    acs_status status = several.devices == 1 ? acs_cuda_member_open(&several, &g_only_member, &first)
                                             : open_members(&several, device, count, &first);
    if (cudaGetDevice(&now) == cudaSuccess && now != device)
        (void)cudaSetDevice(device); /* restore the caller's device */
    if (status != ACS_OK)
        return status;
    return finish_open(first, config, backend);
}

/* -------------------------------------------------------------------------------------------------------------- ops */

/* Load a kernel on all devices at its first sight: later that would hold up everything. */
static acs_status devices_check(acs_backend *backend, acs_record *op)
{
    ACS_TRY(acs_cuda_check(member_of(backend, op->device), op));
    acs_cuda_kernel *kernel = op->u.launch.resolved;
    if (ACS_UNLIKELY(!kernel)) /* a decision that the host makes */
        return ACS_OK;
    /* relaxed: a hint; loading twice does no harm */
    if (ACS_LIKELY(atomic_load_explicit(&kernel->everywhere, memory_order_relaxed)))
        return ACS_OK;
    atomic_store_explicit(&kernel->everywhere, true, memory_order_relaxed);
    if (kernel->kind == ACS_KERNEL_CUFUNCTION) /* it belongs to one device, the first */
        return ACS_OK;
    for (uint32_t i = 0; i < backend->devices; i++)
        if (i != op->device)
            acs_cuda_meet(first_of(backend)->members[i], op);
    return ACS_OK;
}

static acs_status devices_poll(acs_backend *backend, int slot, const acs_mark *marks, uint32_t count, uint64_t *completed)
{
    return acs_cuda_poll(&acs_cuda_of_slot(first_of(backend), (uint32_t)slot)->base, slot, marks, count, completed);
}

/* Record in the stream's own context: by the member that has it. The first member refuses a stream of no member. */
static acs_status devices_stream_record(acs_backend *backend, void *stream, void **event)
{
    acs_cuda *first = first_of(backend);
    CUcontext owner = NULL;
    CUstream of = stream;
    bool special = of == NULL || of == CU_STREAM_LEGACY || of == CU_STREAM_PER_THREAD;
    CUresult result = special ? first->cu.cuCtxGetCurrent(&owner) : first->cu.cuStreamGetCtx(of, &owner);
    for (uint32_t i = 0; i < backend->devices && result == CUDA_SUCCESS; i++)
        if (first->members[i]->context == owner)
            return acs_cuda_stream_record(member_of(backend, i), stream, event);
    return acs_cuda_stream_record(backend, stream, event);
}

/* Decisions need their kernel at the first one, and executors the memory that bundles have. */
static const void *cuda_decider(acs_backend *backend)
{
    acs_cuda *first = first_of(backend);
    return acs_cuda_code_open(first) ? (const void *)first->decider : NULL;
}

static acs_status cuda_executor_add(acs_backend *backend, const acs_executor_params *params)
{
    (void)acs_cuda_code_open(first_of(backend));
    const acs_status status = acs_cuda_executor_add(backend, params);
    acs_cuda_code_tell(first_of(backend));
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Pinned memory is portable, so any member may allocate it. */
static acs_status devices_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    const int kind = acs_memory_is_device(memory) ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST;
    return acs_cuda_memory_alloc(member_of(backend, acs_memory_device(memory)), kind, bytes, ptr);
}

static acs_status devices_memory_free(acs_backend *backend, int memory, void *ptr)
{
    const int kind = acs_memory_is_device(memory) ? ACS_MEMORY_DEVICE : ACS_MEMORY_HOST;
    return acs_cuda_memory_free(member_of(backend, acs_memory_device(memory)), kind, ptr);
}

/* The id of the GPU. "cuda-N" with a driver that does not tell it; a measurement is then not found again. */
static void gpu_id(acs_cuda *self, char id[ACS_DEVICE_ID_BYTES])
{
    CUuuid uuid;
    if (self->cu.cuDeviceGetUuid && self->cu.cuDeviceGetUuid(&uuid, self->device) == CUDA_SUCCESS)
        acs_topology_id(id, uuid.bytes);
    else
        (void)snprintf(id, ACS_DEVICE_ID_BYTES, "cuda-%d", self->device);
}

/*
 * Name a device. Of several devices on one GPU, all but the first get a number behind the GPU's id. True: this is one
 * of those.
 */
static bool name_device(acs_cuda *self, char id[ACS_DEVICE_ID_BYTES])
{
    uint32_t before = 0;
    gpu_id(self, id);
    for (uint32_t i = 0; i < self->member; i++)
        before += self->members[i]->device == self->device;
    if (before)
        (void)snprintf(id + strlen(id), ACS_DEVICE_ID_BYTES - strlen(id), "/%u", before);
    return before > 0;
}

static acs_status devices_links(acs_backend *backend, acs_topology *topology)
{
    static const acs_route straight = {TUNE_LINK_PEER_GB_S * 1e9, TUNE_LINK_US / 1e6, true},
                           around = {TUNE_LINK_STAGED_GB_S * 1e9, TUNE_LINK_STAGED_US / 1e6, false},
                           to_host = {TUNE_LINK_HOST_GB_S * 1e9, TUNE_LINK_US / 1e6, false};
    acs_cuda *first = first_of(backend);
    topology->shared = false;
    for (uint32_t a = 0; a <= topology->count; a++) {
        if (a < topology->count)
            topology->shared |= name_device(first->members[a], topology->id[a]);
        for (uint32_t b = 0; b <= topology->count; b++) {
            const bool host = a == topology->count || b == topology->count;
            topology->links[a][b] = host ? to_host : first->members[a]->peers >> b & 1 ? straight : around;
        }
    }
    return ACS_OK;
}

static uint32_t devices_memory_device(acs_backend *backend, uint64_t address)
{
    acs_cuda *first = first_of(backend);
    CUmemorytype type = 0;
    int device = -1;
    if (first->cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE ||
        first->cu.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
        return backend->devices;
    for (uint32_t i = 0; i < backend->devices; i++)
        if (first->members[i]->device == device)
            return i;
    return backend->devices;
}

/* What is the same for one device and for several: these find the member by themselves, or need none. */
#define OPS_OF_BOTH                                                                                                    \
    .id = ACS_BACKEND_CUDA, .close = cuda_close, .give_up = cuda_give_up, .leave = cuda_leave,                         \
    .thread_enter = acs_cuda_thread_enter,                                                                             \
    .needs = acs_cuda_needs, .adapt = acs_cuda_adapt, .submit = acs_cuda_submit,                                       \
    .settle = acs_cuda_issuers_settle,                                                                                 \
    .event_release = acs_cuda_event_release, .memory_state = acs_cuda_memory_state, .reaches = acs_cuda_reaches,       \
    .memory_range = acs_cuda_memory_range, .kernel_name = acs_cuda_kernel_name, .read_cell = acs_cuda_read_cell,       \
    .decider = cuda_decider, .executor_add = cuda_executor_add, .share_find = acs_cuda_share_find,                     \
    .capacity = acs_cuda_capacity, .times_begin = acs_cuda_device_times_begin, .times_take = acs_cuda_device_times_take,\
    .capture = &acs_cuda_capture

static const acs_backend_ops g_devices_ops = {
    OPS_OF_BOTH,
    .check = devices_check,
    .poll = devices_poll,
    .stream_record = devices_stream_record,
    .memory_alloc = devices_memory_alloc,
    .memory_free = devices_memory_free,
    .links = devices_links,
    .memory_device = devices_memory_device,
};

/* ---------------------------------------------------------------------------------------------------- one device */

static acs_status cuda_open(const acs_backend_config *config, acs_backend **backend)
{
    acs_cuda *self = NULL;
    (void)acs_cupti_start(config->options); /* before the first call of CUDA; times_begin tells of it */
    if (config->devices != 1)
        return devices_open(config, backend);
    ACS_TRY(acs_cuda_member_open(config, &g_only_member, &self));
    return finish_open(self, config, backend);
}

const acs_backend_ops acs_backend_cuda = {
    OPS_OF_BOTH,
    .open = cuda_open,
    .check = acs_cuda_check,
    .call_find = acs_cuda_call_find,
    .call_adapt = acs_cuda_call_adapt,
    .replay_ready = acs_cuda_replay_ready,
    .elapsed = acs_cuda_elapsed,
    .poll = acs_cuda_poll,
    .stream_record = acs_cuda_stream_record,
    .memory_alloc = acs_cuda_memory_alloc,
    .memory_free = acs_cuda_memory_free,
};
