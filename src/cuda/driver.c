/*
 * The entry points of CUDA's driver, looked up through the runtime, so that the library is not linked to the driver.
 * Called by member.c when a device is opened. Makes no context.
 */
#include "cuda/internal.h"

#include <string.h>

/* The address of a driver function; NULL if this driver lacks it. Legacy: a NULL stream is never the thread's own. */
void *acs_cuda_driver_symbol(const char *name, unsigned version)
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

/* Put a driver function's address into its field; every field is a pointer to a function. */
static bool load_function(const char *name, unsigned version, void *field)
{
    void *symbol = acs_cuda_driver_symbol(name, version);
    memcpy(field, &symbol, sizeof symbol);
    return symbol != NULL;
}

acs_status acs_cuda_driver_load(acs_cuda_driver *cu)
{
    /* #name must stand in the row's own macro: passed on, cuda.h would make cuMemAlloc_v2 of cuMemAlloc. */
#define LOAD_NEEDED(name, version, asked)                                                                              \
    if (!load_function(#name, asked, &cu->name))                                                                       \
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "cuda: the driver has no %s; a driver for CUDA 12 is needed", #name);
#define LOAD_OPTIONAL(name, version, asked) (void)load_function(#name, asked, &cu->name);
    ACS_CUDA_DRIVER_NEEDED(LOAD_NEEDED)
    ACS_CUDA_DRIVER_OPTIONAL(LOAD_OPTIONAL)
#undef LOAD_NEEDED
#undef LOAD_OPTIONAL
    return ACS_OK;
}
