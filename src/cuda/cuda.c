/*
 * The CUDA backend: opening and closing a device, its streams and its memory. Owns the backend's state; called by the
 * runtime through acs_backend_cuda (backend.h). It never prints, never touches a stream that it did not make or was
 * not handed, and leaves an application's thread with the device, capture mode and last error that it came with (only
 * errors of open itself, and of looking up a function that is no kernel, go through the runtime's last error; both
 * are cleared).
 */
#include "cuda/internal.h"

#include "base/options.h"
#include "base/tuning.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_DEFAULT = 8, CONNECTIONS_MOST = 32 };

static _Atomic uint64_t g_serial;    /* backends opened so far */
static _Thread_local uint64_t tl_entered; /* serial of the backend that this thread of the library works for; 0: none */
static _Thread_local CUcontext tl_context; /* and which of its contexts is current */

/* ------------------------------------------------------------------------------------------------------- errors */

const char *acs_cuda_text(int native)
{
    return cudaGetErrorString((cudaError_t)native);
}

/* Errors that leave the process unable to run anything more, by the words of cudaError_t's documentation. */
static bool is_fatal(CUresult result)
{
    switch ((cudaError_t)result) {
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorDeviceUninitialized: /* CUDA_ERROR_INVALID_CONTEXT */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

void acs_cuda_lose(acs_cuda *self, CUresult result)
{
    int none = 0;
    /* Relaxed: the code stands for itself, nothing else is published with it. The first one wins. */
    atomic_compare_exchange_strong_explicit(&self->members[0]->fault, &none, (int)result, memory_order_relaxed,
                                            memory_order_relaxed);
}

bool acs_cuda_note(acs_cuda *self, CUresult result)
{
    if (!is_fatal(result))
        return false;
    acs_cuda_lose(self, result);
    return true;
}

int acs_cuda_fault(const acs_cuda *self)
{
    return atomic_load_explicit(&self->members[0]->fault, memory_order_relaxed); /* relaxed: see acs_cuda_lose */
}

/* ------------------------------------------------------------------------------------------------------- threads */

static CUresult enter_member(acs_cuda *self)
{
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    tl_context = result == CUDA_SUCCESS ? self->context : NULL;
    return result;
}

CUresult acs_cuda_scope_enter(acs_cuda *self, acs_cuda_scope *scope)
{
    scope->pushed = false;
    /* A thread of this backend's own has entered for good: nothing to push, nothing to restore but another member's. */
    if (tl_entered == self->serial)
        return tl_context == self->context ? CUDA_SUCCESS : enter_member(self);
    CUresult result = self->cu.cuCtxPushCurrent(self->context);
    if (result != CUDA_SUCCESS)
        return result;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    result = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    if (result != CUDA_SUCCESS) {
        CUcontext popped;
        (void)self->cu.cuCtxPopCurrent(&popped); /* the first error is the one to report */
        return result;
    }
    scope->pushed = true;
    return CUDA_SUCCESS;
}

void acs_cuda_scope_leave(acs_cuda *self, acs_cuda_scope *scope)
{
    if (!scope->pushed)
        return;
    CUcontext popped;
    CUresult mode = self->cu.cuThreadExchangeStreamCaptureMode(&scope->mode);
    CUresult pop = self->cu.cuCtxPopCurrent(&popped);
    if (mode != CUDA_SUCCESS || pop != CUDA_SUCCESS)
        acs_log(ACS_LOG_WARN, "cuda: a thread's context or capture mode could not be restored: %s",
                acs_cuda_text((int)(mode != CUDA_SUCCESS ? mode : pop)));
}

/* For good: the thread belongs to this backend from now on. */
void acs_cuda_thread_enter(acs_backend *backend)
{
    acs_cuda *self = (acs_cuda *)backend;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = self->cu.cuCtxSetCurrent(self->context);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuThreadExchangeStreamCaptureMode(&mode);
    tl_context = self->context;
    if (result == CUDA_SUCCESS)
        tl_entered = self->serial;
    else /* each call of this thread then enters a scope, and reports what is wrong */
        acs_log(ACS_LOG_WARN, "cuda: a thread could not enter the device: %s", acs_cuda_text((int)result));
}

/* -------------------------------------------------------------------------------------------- hardware connections */

/* True if this thread is the only one: setenv beside a getenv of another thread is undefined. */
static bool process_is_single_threaded(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    if (!tasks)
        return false;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count == 1;
}

/* The address of a driver function; NULL if this driver lacks it. Legacy: a NULL stream is never the thread's own. */
static void *driver_symbol(const char *name, unsigned version)
{
    void *symbol = NULL;
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, &symbol, version, cudaEnableLegacyStream, &found);
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* clear our own */
        return NULL;
    }
    return found == cudaDriverEntryPointSuccess ? symbol : NULL;
}

/* Whether the current device has a context already; asks without making one. When in doubt, yes. */
static bool context_exists(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver)
        return false; /* the driver's library is not loaded yet: nobody can have made a context */
    dlclose(driver);
    int device = 0, active = 1;
    unsigned flags;
    PFN_cuDevicePrimaryCtxGetState_v7000 get_state = NULL;
    void *symbol = driver_symbol("cuDevicePrimaryCtxGetState", 12000);
    memcpy(&get_state, &symbol, sizeof symbol);
    if (cudaGetDevice(&device) != cudaSuccess)
        (void)cudaGetLastError();
    else if (get_state && get_state(device, &flags, &active) != CUDA_SUCCESS)
        active = 1;
    return active != 0;
}

/*
 * Streams share hardware connections, and streams on one connection wait for each other falsely. The driver reads how
 * many to make when it makes the context; so the variable is set before the first CUDA call, and only where it is safe.
 */
static void connections_prepare(uint32_t slots)
{
    static const char variable[] = "CUDA_DEVICE_MAX_CONNECTIONS";
    const char *given = acs_environment(variable);
    long in_force = given ? strtol(given, NULL, 10) : CONNECTIONS_DEFAULT;
    if (in_force <= 0)
        in_force = CONNECTIONS_DEFAULT;
    const long useful = slots < CONNECTIONS_MOST ? (long)slots : CONNECTIONS_MOST;
    if (useful <= in_force)
        return;
    if (!given && process_is_single_threaded() && !context_exists() && acs_environment_set(variable, "32"))
        in_force = CONNECTIONS_MOST;
    if (useful > in_force)
        acs_log(ACS_LOG_WARN,
                "cuda: %u streams share %ld hardware connections, so some wait for each other without need; set %s=%d "
                "before the program starts, or use fewer streams",
                slots, in_force, variable, CONNECTIONS_MOST);
}

/* ------------------------------------------------------------------------------------------------------- opening */

/* True for errors that mean "there is no GPU to use here": `auto` then takes the host backend. */
static bool means_no_device(cudaError_t error)
{
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return true;
    default:
        return false;
    }
}

/* The CUDA runtime has one error for a driver that is too old and for none. */
const char *acs_cuda_open_text(int native)
{
    if (native != cudaErrorInsufficientDriver)
        return acs_cuda_text(native);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return "no NVIDIA driver is installed here (libcuda.so.1 is not found)";
    (void)dlclose(driver);
    return acs_cuda_text(native);
}

/* One sentence and the fitting status for any error on the way to an open device. */
static acs_status open_failed(const char *what, int native)
{
    acs_status status = native == cudaErrorMemoryAllocation             ? ACS_ERR_MEMORY
                        : means_no_device((cudaError_t)native) ? ACS_ERR_UNSUPPORTED
                                                               : ACS_ERR_DEVICE;
    return ACS_FAIL(status, native, "cuda: %s: %s", what, acs_cuda_open_text(native));
}

/* Put a driver function's address into its field; every field is a pointer to a function. */
static bool load(const char *name, unsigned version, void *field)
{
    void *symbol = driver_symbol(name, version);
    memcpy(field, &symbol, sizeof symbol);
    return symbol != NULL;
}

static acs_status open_driver(acs_cuda *self, int device)
{
    cudaError_t error = device < 0 ? cudaGetDevice(&self->device) : cudaSuccess;
    if (device >= 0)
        self->device = device;
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* handled: the program shall not find it */
        return open_failed("no usable device", (int)error);
    }
    /* #name must stand in the row's own macro: passed on, cuda.h would make cuMemAlloc_v2 of cuMemAlloc. */
#define LOAD_NEEDED(name, version, asked)                                                                              \
    if (!load(#name, asked, &self->cu.name))                                                                           \
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "cuda: the driver has no %s; a driver for CUDA 12 is needed", #name);
#define LOAD_OPTIONAL(name, version, asked) (void)load(#name, asked, &self->cu.name);
    ACS_CUDA_DRIVER_NEEDED(LOAD_NEEDED)
    ACS_CUDA_DRIVER_OPTIONAL(LOAD_OPTIONAL)
#undef LOAD_NEEDED
#undef LOAD_OPTIONAL
    return ACS_OK;
}

/* Everything that check compares a launch with, so that it need not ask again. */
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
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &self->limits.sms},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &self->limits.sm_threads},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && result == CUDA_SUCCESS; i++)
        result = self->cu.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, self->device);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuCtxGetStreamPriorityRange(&self->limits.priority_low, &self->limits.priority_high);
    return result == CUDA_SUCCESS ? ACS_OK : open_failed("the device's limits are not known", (int)result);
}

/* Streams do not synchronise with the legacy stream: the program's own work there must not serialise ours. */
static acs_status open_streams(acs_cuda *self)
{
    const acs_cuda *first = self->members[0];
    if (first == self) {
        self->streams = calloc(self->slots, sizeof *self->streams);
        self->marks = calloc((size_t)self->slots * self->mark_capacity, sizeof *self->marks);
        self->scratch_high = calloc(self->slots, sizeof *self->scratch_high);
    } else {
        self->streams = first->streams;
        self->marks = first->marks;
        self->scratch_high = first->scratch_high;
    }
    if (!self->streams || !self->marks || !self->scratch_high)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for %u slots of %u marks", self->slots,
                        self->mark_capacity);
    for (uint32_t i = self->member; i < self->slots; i += self->base.devices) {
        CUresult result = self->cu.cuStreamCreate(&self->streams[i], CU_STREAM_NON_BLOCKING);
        if (result != CUDA_SUCCESS) {
            self->streams[i] = NULL;
            return open_failed("a stream could not be made", (int)result);
        }
    }
    return ACS_OK;
}

/* What needs the context to be current. */
static acs_status open_inside(acs_cuda *self, const acs_options *options)
{
    /* From now on the runtime keeps the context too: what it loads there must outlive this backend. */
    cudaError_t error = cudaSetDevice(self->device);
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* handled */
        return open_failed("the runtime cannot use the device", (int)error);
    }
    ACS_TRY(open_limits(self));
    ACS_TRY(open_streams(self));
    ACS_TRY(acs_cuda_kernels_init(self));
    ACS_TRY(acs_cuda_scratches_init(self));
    ACS_TRY(acs_call_slots_create(self->slots, &self->base.calls));
    if (self->base.devices == 1)
        acs_cuda_pages_init(self);
    acs_cuda_profiler_init(self);
    if (acs_cuda_device_init(self))
        acs_cuda_methods_init(self, options);
    ACS_TRY(acs_cuda_costs_init(self, options));
    acs_cuda_copies_init(self, options);
    acs_cuda_calls_init(self, options);
    acs_cuda_gpu_issue_init(self, (uint64_t)options->graph_nodes / TUNE_GPU_NODES_PART);
    return ACS_OK;
}

/* -------------------------------------------------------------------------------------------------------- closing */

/* Log what could not be destroyed; expected after a fault and while the process exits. */
static void close_note(acs_cuda *self, const char *what, CUresult result)
{
    if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
        acs_log(ACS_LOG_WARN, "cuda: close: %s: %s", what, acs_cuda_text((int)result));
}

/* The last ops have ended; graphs that they were in may have empty layers to run, and releases their own end. */
static void wait_for_tails(acs_cuda *self)
{
    for (uint32_t i = self->member; self->methods && i < self->slots; i += self->base.devices)
        close_note(self, "stream", self->cu.cuStreamSynchronize(self->streams[i]));
}

/* Places of library calls first: their destroy functions may still use the device. */
static void close_inside(acs_cuda *self)
{
    acs_call_slots_destroy(self->base.calls, &self->base);
    acs_cuda_scratches_fini(self);
    acs_cuda_events_fini(self);
    wait_for_tails(self);
    acs_cuda_gpu_issue_fini(self);
    acs_cuda_calls_fini(self);
    acs_cuda_copies_fini(self);
    acs_cuda_methods_fini(self);
    acs_cuda_device_fini(self);
    for (size_t i = 0; self->marks && i < (size_t)self->slots * self->mark_capacity; i++)
        if (self->marks[i] && i / self->mark_capacity % self->base.devices == self->member)
            close_note(self, "event", self->cu.cuEventDestroy(self->marks[i]));
    for (uint32_t i = self->member; self->streams && i < self->slots; i += self->base.devices)
        if (self->streams[i])
            close_note(self, "stream", self->cu.cuStreamDestroy(self->streams[i]));
}

void acs_cuda_member_close(acs_cuda *self)
{
    acs_cuda_scope scope;
    CUresult entered = acs_cuda_scope_enter(self, &scope);
    close_note(self, "context", entered);
    close_inside(self); /* also when the context is gone: the calls then fail, the host's memory is freed */
    if (entered == CUDA_SUCCESS)
        acs_cuda_scope_leave(self, &scope);
    /* Everything that this one made in the context is gone by now. */
    close_note(self, "context", self->cu.cuDevicePrimaryCtxRelease(self->device));
    acs_cuda_fills_fini(self);
    acs_cuda_kernels_fini(self);
    acs_lock_fini(&self->lock);
    if (self->member == 0) {
        free(self->scratch_high);
        free(self->marks);
        free(self->streams);
    }
    free(self);
}

static void cuda_close(acs_backend *backend)
{
    acs_cuda_member_close((acs_cuda *)backend);
}

/* From here on no thread of ours asks the device for anything. */
void acs_cuda_give_up(acs_backend *backend)
{
    acs_cuda_lose((acs_cuda *)backend, (CUresult)cudaErrorLaunchTimeout);
}

/*
 * Nothing is destroyed or freed. Freeing memory and giving the context back wait for what runs, by CUDA's rules;
 * streams, events, a library's handles and workspaces may be in use by it. The process' end takes them all.
 */
acs_leave acs_cuda_leave(acs_backend *backend)
{
    (void)backend;
    return ACS_LEFT_DEVICE;
}

/* The thread that opens keeps its device and context: all is done in a scope, but for what finds the device. */
acs_status acs_cuda_member_open(const acs_backend_config *config, int device, uint32_t together, uint32_t member,
                                acs_cuda *first, acs_cuda **opened)
{
    acs_status status;
    acs_cuda_scope scope;
    acs_cuda *self = calloc(1, sizeof *self);
    if (!self)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for the backend");
    self->base.ops = &acs_backend_cuda;
    self->base.devices = config->devices ? config->devices : 1;
    self->members[0] = first ? first : self;
    self->members[member] = self;
    self->member = member;
    self->slots = acs_backend_slots(config->slots, self->base.devices);
    self->mark_capacity = config->mark_capacity;
    /* Relaxed: only has to be unique. */
    self->serial = first ? first->serial : 1 + atomic_fetch_add_explicit(&g_serial, 1, memory_order_relaxed);
    if (acs_lock_init(&self->lock, ACS_RANK_BACKEND) != 0) {
        status = ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: a mutex could not be made");
        goto free_self;
    }
    /* Before the first CUDA call that makes a context: the driver reads the variable then. */
    if (!first)
        connections_prepare(self->slots / self->base.devices * together);
    status = open_driver(self, device);
    if (status != ACS_OK)
        goto fini_lock;
    CUresult result = self->cu.cuDevicePrimaryCtxRetain(&self->context, self->device);
    if (result != CUDA_SUCCESS) {
        status = open_failed("the device does not answer", (int)result);
        goto fini_lock;
    }
    result = acs_cuda_scope_enter(self, &scope);
    status = result == CUDA_SUCCESS ? open_inside(self, config->options)
                                    : open_failed("the device cannot be selected", (int)result);
    if (result == CUDA_SUCCESS)
        acs_cuda_scope_leave(self, &scope);
    if (status != ACS_OK) {
        /* Closing copes with whatever was not made, and gives the context back. */
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

static acs_status cuda_open(const acs_backend_config *config, acs_backend **backend)
{
    acs_cuda *self = NULL;
    if (config->devices != 1)
        return acs_cuda_devices_open(config, backend);
    ACS_TRY(acs_cuda_member_open(config, -1, 1, 0, NULL, &self));
    *backend = &self->base;
    return ACS_OK;
}

/* --------------------------------------------------------------------------------------------------------- memory */

/* A sticky fault may show at an allocation; otherwise whatever stops one means that memory is not to be had. */
static acs_status memory_failed(acs_cuda *self, const char *what, size_t bytes, CUresult result)
{
    acs_status status = acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_MEMORY;
    return ACS_FAIL(status, (int)result, "cuda: %s of %zu bytes: %s", what, bytes, acs_cuda_text((int)result));
}

/* Both allocators align to 256 bytes and more. */
acs_status acs_cuda_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_cuda_scope scope;
    CUdeviceptr device = 0;
    void *host = NULL;
    size_t wanted = bytes ? bytes : 1; /* the driver refuses 0 */
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = memory == ACS_MEMORY_HOST
                     ? self->cu.cuMemHostAlloc(&host, wanted, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
                     : self->cu.cuMemAlloc(&device, wanted);
        acs_cuda_scope_leave(self, &scope);
    }
    if (result != CUDA_SUCCESS)
        return memory_failed(self, "allocation", bytes, result);
    *ptr = memory == ACS_MEMORY_HOST ? host : (void *)(uintptr_t)device;
    return ACS_OK;
}

/* May wait for the device by CUDA's rules; called when nothing that is issued uses the block any more. */
acs_status acs_cuda_memory_free(acs_backend *backend, int memory, void *ptr)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_cuda_scope scope;
    CUresult result = acs_cuda_scope_enter(self, &scope);
    if (result == CUDA_SUCCESS) {
        result = memory == ACS_MEMORY_HOST ? self->cu.cuMemFreeHost(ptr)
                                           : self->cu.cuMemFree((CUdeviceptr)(uintptr_t)ptr);
        acs_cuda_scope_leave(self, &scope);
    }
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    acs_status status = acs_cuda_note(self, result) ? ACS_ERR_DEVICE : ACS_ERR_ARGUMENT;
    return ACS_FAIL(status, (int)result, "cuda: freeing %p: %s", ptr, acs_cuda_text((int)result));
}

const acs_backend_ops acs_backend_cuda = {
    .id = ACS_BACKEND_CUDA,
    .open = cuda_open,
    .close = cuda_close,
    .give_up = acs_cuda_give_up,
    .leave = acs_cuda_leave,
    .thread_enter = acs_cuda_thread_enter,
    .check = acs_cuda_check,
    .needs = acs_cuda_needs,
    .adapt = acs_cuda_adapt,
    .call_find = acs_cuda_call_find,
    .call_adapt = acs_cuda_call_adapt,
    .submit = acs_cuda_submit,
    .poll = acs_cuda_poll,
    .stream_record = acs_cuda_stream_record,
    .event_release = acs_cuda_event_release,
    .memory_alloc = acs_cuda_memory_alloc,
    .memory_free = acs_cuda_memory_free,
    .memory_state = acs_cuda_memory_state,
    .capacity = acs_cuda_capacity,
    .capture = &acs_cuda_capture,
};
