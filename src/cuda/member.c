/*
 * Opening and closing one device: its context, streams and limits, and the state that the other files of this folder
 * keep for it. Called by backend.c. It never prints, and leaves the opening thread with the device, context and
 * capture mode that it came with. Only errors of finding the device go through the runtime's last error, and they are
 * cleared.
 */
#include "cuda/bundle.h"
#include "cuda/kernel.h"
#include "cuda/share.h"

#include "base/options.h"
#include "base/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t g_serial; /* backends opened so far */

/* ------------------------------------------------------------------------------------------------------- opening */

static acs_status open_driver(acs_cuda *self, int device)
{
    cudaError_t error = device < 0 ? cudaGetDevice(&self->device) : cudaSuccess;
    if (device >= 0)
        self->device = device;
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* handled: the program must not find it */
        return acs_cuda_open_failed("no usable device", (int)error);
    }
    return acs_cuda_driver_load(&self->cu);
}

/* Read all limits that check() compares launches with. */
static acs_status open_limits(acs_cuda *self)
{
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &self->limits.grid[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &self->limits.grid[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &self->limits.grid[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &self->limits.block[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &self->limits.block[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &self->limits.block[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &self->limits.block_threads},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &self->limits.shared_bytes},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &self->limits.cooperative},
        {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &self->limits.clusters},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &self->limits.capability},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &self->limits.sms},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &self->limits.sm_threads},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && result == CUDA_SUCCESS; i++)
        result = self->cu.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, self->device);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuCtxGetStreamPriorityRange(&self->limits.priority_low, &self->limits.priority_high);
    return result == CUDA_SUCCESS ? ACS_OK : acs_cuda_open_failed("the device's limits are not known", (int)result);
}

/*
 * Make the arrays of all slots, and the stream of this member's first one; other slots get theirs at their first batch
 * (share.c), since a stream takes 25 us and few programs use all slots.
 */
static acs_status open_slots(acs_cuda *self)
{
    const acs_cuda *first = self->members[0];
    if (first == self) {
        self->streams = calloc(self->slots, sizeof *self->streams);
        self->marks = acs_zeros((size_t)self->slots * self->mark_capacity, sizeof *self->marks);
        self->scratch_high = calloc(self->slots, sizeof *self->scratch_high);
        self->now = calloc(self->slots, sizeof *self->now);
    } else {
        self->streams = first->streams;
        self->marks = first->marks;
        self->scratch_high = first->scratch_high;
        self->now = first->now;
    }
    if (!self->streams || !self->marks || !self->scratch_high || !self->now)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for %u slots of %u marks", self->slots,
                        self->mark_capacity);
    for (uint32_t i = self->member; i < self->slots; i += self->base.devices)
        self->now[i].share = ACS_CUDA_SHARE_NONE;
    const CUresult result = self->cu.cuStreamCreate(&self->streams[self->member], CU_STREAM_NON_BLOCKING);
    return result == CUDA_SUCCESS ? ACS_OK : acs_cuda_open_failed("a stream could not be made", (int)result);
}

/* Open everything that needs the context to be current. */
static acs_status open_inside(acs_cuda *self, const acs_options *options)
{
    /* From now on the runtime keeps the context too: what it loads there must outlive this backend. */
    cudaError_t error = cudaSetDevice(self->device);
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* handled */
        return acs_cuda_open_failed("the runtime cannot use the device", (int)error);
    }
    ACS_TRY(open_limits(self));
    if (!self->cu.cuDeviceGetName ||
        self->cu.cuDeviceGetName(self->base.model, (int)sizeof self->base.model, self->device) != CUDA_SUCCESS)
        (void)snprintf(self->base.model, sizeof self->base.model, "GPU");
    self->base.sms = (uint32_t)self->limits.sms;
    ACS_TRY(open_slots(self));
    ACS_TRY(acs_cuda_shares_init(self));
    ACS_TRY(acs_cuda_kernels_init(self));
    ACS_TRY(acs_cuda_scratches_init(self));
    ACS_TRY(acs_call_slots_create(self->slots, &self->base.calls));
    if (self->base.devices == 1)
        acs_cuda_pages_init(self);
    acs_cuda_profiler_init(self);
    if (acs_cuda_device_init(self, options))
        acs_cuda_methods_init(self, options);
    acs_cuda_calls_init(self, options);
    acs_cuda_resident_init(self);
    return ACS_OK;
}

/* -------------------------------------------------------------------------------------------------------- closing */

/* Library calls' handles are closed first: their destroy functions may still use the device. */
static void close_inside(acs_cuda *self)
{
    acs_call_slots_destroy(self->base.calls, &self->base);
    acs_cuda_scratches_fini(self);
    acs_cuda_events_fini(self);
    acs_cuda_stream_wait_all(self);
    acs_cuda_resident_fini(self);
    acs_cuda_calls_fini(self);
    acs_cuda_copies_fini(self);
    acs_cuda_decide_fini(self);
    acs_cuda_methods_fini(self);
    acs_cuda_device_fini(self);
    for (size_t i = 0; self->marks && i < (size_t)self->slots * self->mark_capacity; i++)
        if (self->marks[i] && i / self->mark_capacity % self->base.devices == self->member)
            acs_cuda_close_note(self, "event", self->cu.cuEventDestroy(self->marks[i]));
    acs_cuda_shares_fini(self);
    const CUstream shared = self->streams ? self->streams[self->member] : NULL;
    for (uint32_t i = self->member; self->streams && i < self->slots; i += self->base.devices)
        if (self->streams[i] && (i == self->member || self->streams[i] != shared))
            acs_cuda_close_note(self, "stream", self->cu.cuStreamDestroy(self->streams[i]));
}

static CUresult is_gone(void)
{
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Let all calls of the driver fail: with handles of a context that is gone they would end the process. */
static void close_driver(acs_cuda_driver *cu)
{
    CUresult (*const refuse)(void) = is_gone;
    for (size_t i = 0; i < sizeof *cu; i += sizeof refuse)
        memcpy((char *)cu + i, &refuse, sizeof refuse);
}

void acs_cuda_member_close(acs_cuda *self)
{
    {
        ACS_CUDA_SCOPE(self);
        acs_cuda_close_note(self, "context", scope.entered);
        if (scope.entered == CUDA_ERROR_CONTEXT_IS_DESTROYED)
            close_driver(&self->cu);
        close_inside(self); /* also without a context: its calls then fail, and host memory is freed */
    }
    /* All that this member made in the context is gone by now. */
    acs_cuda_close_note(self, "context", self->cu.cuDevicePrimaryCtxRelease(self->device));
    acs_cuda_fills_fini(self);
    acs_cuda_kernels_fini(self);
    acs_lock_fini(&self->lock);
    if (self->member == 0) {
        free(self->now);
        free(self->scratch_high);
        acs_zeros_free(self->marks);
        free(self->streams);
    }
    free(self);
}

/* The opening thread keeps its device and context: everything but the search for the device is done in a scope. */
acs_status acs_cuda_member_open(const acs_backend_config *config, const acs_cuda_member *asked, acs_cuda **opened)
{
    acs_cuda *first = asked->first;
    acs_status status;
    acs_cuda_scope scope;
    acs_cuda *self = calloc(1, sizeof *self);
    if (!self)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for the backend");
    self->base.ops = asked->ops;
    self->base.devices = config->devices ? config->devices : 1;
    self->members[0] = first ? first : self;
    self->members[asked->member] = self;
    self->member = asked->member;
    self->slots = acs_backend_slots(config->slots, self->base.devices);
    self->mark_capacity = config->mark_capacity;
    self->cpu_next = config->cpu_next;
    self->cpu_user = config->user;
    self->threads = !config->inline_only && config->options->workers > 0;
    /* Relaxed: it only has to be unique. */
    self->serial = first ? first->serial : 1 + atomic_fetch_add_explicit(&g_serial, 1, memory_order_relaxed);
    if (acs_lock_init(&self->lock, ACS_RANK_BACKEND) != 0) {
        status = ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: a mutex could not be made");
        goto free_self;
    }
    (void)pthread_mutex_init(&self->code_mutex, NULL); /* without attributes it cannot fail */
    status = open_driver(self, asked->device);
    if (status != ACS_OK)
        goto fini_lock;
    CUresult result = self->cu.cuDevicePrimaryCtxRetain(&self->context, self->device);
    if (result != CUDA_SUCCESS) {
        status = acs_cuda_open_failed("the device does not answer", (int)result);
        goto fini_lock;
    }
    if (self->cu.cuCtxGetId && self->cu.cuCtxGetId(self->context, &self->context_id) != CUDA_SUCCESS)
        self->context_id = 0;
    result = acs_cuda_scope_enter(self, &scope);
    status = result == CUDA_SUCCESS ? open_inside(self, config->options)
                                    : acs_cuda_open_failed("the device cannot be selected", (int)result);
    acs_cuda_scope_leave(self, &scope);
    if (status != ACS_OK) {
        /* Closing copes with missing parts, and releases the context. */
        acs_cuda_member_close(self);
        return status;
    }
    *opened = self;
    return ACS_OK;

fini_lock:
    acs_lock_fini(&self->lock);
free_self:
    free(self);
    return status;
}
