/*
 * acs::compat: the program's synchronising and copying calls of the CUDA runtime see ACS's ops, as they see kernels
 * launched with <<<>>>. The linker (--wrap) sends each symbol of compat.def here; the wrapper drains all contexts, then
 * calls the runtime. libacs.a itself never calls these functions.
 *
 * Wrapped are calls after which the program, or a copy, sees memory (waits, queries, copies), and calls that overwrite
 * or free it. Not wrapped are launches of the program's own kernels and graphs, and calls that only order streams among
 * each other (events, host callbacks in streams). They would drain at every launch, so order them with acs_stream_after
 * and acs_after_stream. Reading managed or mapped memory is no call, so it needs one of the waits first, as with plain
 * CUDA. cudaStreamQuery and cudaEventQuery wait for ACS instead of answering "not ready": a program that polls makes
 * progress.
 *
 * --wrap works on code that is linked statically with the program. Calls inside shared libraries (cuBLAS, PyTorch) do
 * not come here. Calls of static libraries inside acs_call do: there acs_compat_drain returns at once, because the
 * thread is inside ACS.
 */
#include "api/compat.h"

#include <cuda_runtime_api.h>

#define WRAP(name, parameters, arguments)                                                                              \
    cudaError_t __real_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters                                                                               \
    {                                                                                                                  \
        acs_compat_drain();                                                                                            \
        return __real_##name arguments;                                                                                \
    }

/* A wrapper for each row's symbol, and for the names that the compiler may make of it. */
#define ACS_WRAP(name, parameters, arguments) WRAP(name, parameters, arguments)
#define ACS_WRAP_DS(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptds, parameters, arguments)
#define ACS_WRAP_SZ(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptsz, parameters, arguments)
#include "compat.def"
