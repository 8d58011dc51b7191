/*
 * Errors of CUDA: their texts, which of them end the process' work with the GPU, and the first such error of a backend.
 * Called by every other file of this folder. It never calls the driver of a device.
 */
#include "cuda/internal.h"

#include <dlfcn.h>

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
acs_status acs_cuda_open_failed(const char *what, int native)
{
    acs_status status = native == cudaErrorMemoryAllocation             ? ACS_ERR_MEMORY
                        : means_no_device((cudaError_t)native) ? ACS_ERR_UNSUPPORTED
                                                               : ACS_ERR_DEVICE;
    return ACS_FAIL(status, native, "cuda: %s: %s", what, acs_cuda_open_text(native));
}
