/*
 * Measurement of the links between CUDA devices and the host (devices/topology.h). Called by acs_info_gpu.c. Calls the
 * runtime only. It frees all that it makes, but peer access between the devices stays enabled. Four devices take about a
 * second.
 */
#include "acs_info.h"

#include "devices/topology.h"

#include "base/inside.h"
#include "base/tuning.h"

#include <cuda_runtime_api.h>

/* One end of a link. */
typedef struct end {
    int device; /* CUDA's number; -1: the host */
    void *memory;
    cudaStream_t stream;
    cudaEvent_t begin, done;
} end;

static acs_status measuring_failed(const char *what, cudaError_t error)
{
    (void)cudaGetLastError(); /* our own error; reported here */
    return ACS_FAIL(ACS_ERR_DEVICE, (int)error, "measuring links: %s: %s", what, cudaGetErrorString(error));
}

#define TRY_CUDA(call)                                                                                                 \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess)                                                                                     \
            return measuring_failed(#call, error_);                                                                    \
    } while (0)

static acs_status open_end(end *e, int device)
{
    *e = (end){.device = device};
    if (device < 0) {
        TRY_CUDA(cudaHostAlloc(&e->memory, TUNE_LINK_LARGE, cudaHostAllocPortable));
        return ACS_OK;
    }
    TRY_CUDA(cudaSetDevice(device));
    TRY_CUDA(cudaMalloc(&e->memory, TUNE_LINK_LARGE));
    TRY_CUDA(cudaStreamCreateWithFlags(&e->stream, cudaStreamNonBlocking));
    TRY_CUDA(cudaEventCreate(&e->begin));
    TRY_CUDA(cudaEventCreate(&e->done));
    return ACS_OK;
}

/* Close what was opened; errors are ignored. */
static void close_end(end *e)
{
    if (e->device < 0) {
        (void)cudaFreeHost(e->memory);
        return;
    }
    (void)cudaSetDevice(e->device);
    if (e->done)
        (void)cudaEventDestroy(e->done);
    if (e->begin)
        (void)cudaEventDestroy(e->begin);
    if (e->stream)
        (void)cudaStreamDestroy(e->stream);
    (void)cudaFree(e->memory);
}

/* Copy in `stream`, which belongs to an end that is a device. */
static cudaError_t copy_between(const end *from, const end *to, cudaStream_t stream, size_t bytes)
{
    if (from->device >= 0 && to->device >= 0)
        return cudaMemcpyPeerAsync(to->memory, to->device, from->memory, from->device, bytes, stream);
    return cudaMemcpyAsync(to->memory, from->memory, bytes, cudaMemcpyDefault, stream);
}

/* Measure the seconds of some copies in a row, by the device's clock: the least of several runs. */
static acs_status time_copies(const end *from, const end *to, int copies, size_t bytes, double *seconds)
{
    const end *at = from->device >= 0 ? from : to;
    TRY_CUDA(cudaSetDevice(at->device));
    *seconds = 1e9;
    for (int k = 0; k <= TUNE_LINK_REPETITIONS; k++) { /* the first run warms up */
        float ms = 0;
        TRY_CUDA(cudaEventRecord(at->begin, at->stream));
        for (int i = 0; i < copies; i++)
            TRY_CUDA(copy_between(from, to, at->stream, bytes));
        TRY_CUDA(cudaEventRecord(at->done, at->stream));
        TRY_CUDA(cudaEventSynchronize(at->done));
        TRY_CUDA(cudaEventElapsedTime(&ms, at->begin, at->done));
        if (k > 0 && ms * 1e-3 < *seconds)
            *seconds = ms * 1e-3;
    }
    return ACS_OK;
}

static acs_status measure_link(const end *from, const end *to, acs_route *link)
{
    double large = 0, small = 0;
    ACS_TRY(time_copies(from, to, 1, TUNE_LINK_LARGE, &large));
    ACS_TRY(time_copies(from, to, TUNE_LINK_SMALL_COPIES, TUNE_LINK_SMALL, &small));
    link->latency = small / TUNE_LINK_SMALL_COPIES;
    const double rest = large - link->latency;
    link->bandwidth = TUNE_LINK_LARGE / (rest > 0 ? rest : large);
    return ACS_OK;
}

static acs_status enable_peer(const end *from, const end *to, bool *peer)
{
    int can = 0;
    TRY_CUDA(cudaDeviceCanAccessPeer(&can, from->device, to->device));
    *peer = can != 0;
    if (!can)
        return ACS_OK;
    TRY_CUDA(cudaSetDevice(from->device));
    cudaError_t error = cudaDeviceEnablePeerAccess(to->device, 0);
    if (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled)
        return measuring_failed("cudaDeviceEnablePeerAccess", error);
    (void)cudaGetLastError();
    return ACS_OK;
}

static acs_status measure_all(acs_topology *t, const end *ends)
{
    for (uint32_t from = 0; from <= t->count; from++)
        for (uint32_t to = 0; to <= t->count; to++)
            if (from < t->count && to < t->count && from != to)
                ACS_TRY(enable_peer(&ends[from], &ends[to], &t->links[from][to].peer));
    for (uint32_t from = 0; from <= t->count; from++)
        for (uint32_t to = 0; to <= t->count; to++)
            if (from != to)
                ACS_TRY(measure_link(&ends[from], &ends[to], &t->links[from][to]));
    return ACS_OK;
}

/* An impossible figure is measured again, since another program may have used the link. */
acs_status info_measure_links(acs_topology *t, const int *devices)
{
    end ends[ACS_DEVICES_MOST + 1] = {{0}};
    int before = 0;
    uint32_t opened = 0;
    acs_status status = ACS_OK;
    TRY_CUDA(cudaGetDevice(&before));
    acs_inside_set(true); /* acs::compat wraps these calls, too: it must not enter a context while one is opened */
    for (; opened <= t->count && status == ACS_OK; opened++)
        status = open_end(&ends[opened], opened < t->count ? devices[opened] : -1);
    for (int attempt = 0; status == ACS_OK && attempt < TUNE_LINK_ATTEMPTS; attempt++) {
        status = measure_all(t, ends);
        if (status != ACS_OK || acs_topology_check(t) == ACS_OK)
            break;
        status = attempt + 1 < TUNE_LINK_ATTEMPTS ? ACS_OK : acs_error_thread()->status;
    }
    while (opened > 0)
        close_end(&ends[--opened]);
    acs_inside_set(false);
    (void)cudaSetDevice(before); /* the device that was current */
    return status;
}
