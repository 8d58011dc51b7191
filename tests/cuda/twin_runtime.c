/*
 * The functions of the CUDA runtime that src/cuda calls, and the table through which it finds the driver's.
 * Linked instead of the CUDA runtime. A function that the table lacks is one that the twin does not have: the backend then
 * refuses to open, and names it.
 */
#include "twin_internal.h"

#include <string.h>

void *twin_entry(const char *function)
{
    typedef void (*any_function)(void);
    static const struct {
        const char *name;
        any_function function;
    } table[] = {
#define ROW(name, version) {#name, (any_function)twin_##name},
        TWIN_TABLE(ROW)
#undef ROW
    };
    void *found = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(function, table[i].name) == 0)
            memcpy(&found, &table[i].function, sizeof found);
    return found;
}

/* The function of that version: of one function there are two. */
static void *entry_of(const char *symbol, unsigned version)
{
    static __typeof__(twin_node_dependencies) *const newer = twin_node_dependencies;
    void *found = twin_entry(symbol);
    if (version >= 12030 && strcmp(symbol, "cuGraphNodeGetDependencies") == 0)
        memcpy(&found, &newer, sizeof found);
    return found;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
    CUresult result = twin_enter("cudaGetDriverEntryPointByVersion");
    if (flags != cudaEnableLegacyStream)
        twin_breach_locked("flags %llu: a NULL stream must be the legacy stream", flags);
    bool missing = g_twin.missing && strcmp(symbol, g_twin.missing) == 0;
    *function = result == CUDA_SUCCESS && !missing ? entry_of(symbol, version) : NULL;
    *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    twin_leave();
    return (cudaError_t)result;
}

cudaError_t cudaGetDevice(int *device)
{
    CUresult result = twin_enter("cudaGetDevice");
    *device = twin_self_locked()->device;
    cudaError_t error = result == CUDA_SUCCESS ? g_twin.device_error : (cudaError_t)result;
    twin_leave();
    return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult result = twin_enter("cudaGetDeviceCount");
    *count = TWIN_DEVICES;
    cudaError_t error = result == CUDA_SUCCESS ? g_twin.device_error : (cudaError_t)result;
    twin_leave();
    return error;
}

/* Keeps the primary context for the rest of the process, and makes it current. */
cudaError_t cudaSetDevice(int device)
{
    CUresult result = twin_enter("cudaSetDevice");
    twin_thread *self = twin_self_locked();
    if (result == CUDA_SUCCESS && (device < 0 || device >= TWIN_DEVICES)) {
        twin_breach_locked("there is no device %d", device);
        result = CUDA_ERROR_INVALID_DEVICE;
    }
    if (result == CUDA_SUCCESS) {
        self->device = device;
        g_twin.runtime_holds[device] = true;
        self->depth -= self->depth > 0;
        self->stack[self->depth++] = twin_context_locked(device);
    }
    twin_leave();
    return (cudaError_t)result;
}

cudaError_t cudaGetLastError(void)
{
    (void)twin_enter("cudaGetLastError");
    twin_leave();
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress: return "illegal address";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "some CUDA error";
    }
}
