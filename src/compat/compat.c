/*
 * acs::compat: the program's synchronising and copying calls of the CUDA runtime see ACS's ops, as they see kernels that
 * were launched with <<<>>>. The linker (--wrap) sends each symbol of compat.def here; the wrapper drains all contexts,
 * then calls the runtime. Never used by libacs.a itself: it calls none of these functions.
 *
 * Wrapped are calls after which the program, or a copy, sees memory (waits, queries, copies), and calls that
 * overwrite or free it. Not wrapped: launches of the program's own kernels and graphs, and what only orders streams among
 * each other (events, host callbacks in streams): they would drain at every launch; order them with acs_stream_after and
 * acs_after_stream. Reading managed or mapped memory is no call, so it needs one of the waits first, as with plain CUDA.
 * cudaStreamQuery and cudaEventQuery wait for ACS instead of answering "not ready": a program that polls makes progress.
 *
 * --wrap works on what is linked statically with the program; calls inside shared libraries (cuBLAS, PyTorch) do not come
 * here. It does reach libraries' calls that ACS runs for the program (acs_call): there acs_compat_drain returns at once,
 * because the thread is inside ACS.
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

/* Each row with the names that the compiler may have made of it. */
#define ACS_WRAP(name, parameters, arguments) WRAP(name, parameters, arguments)
#define ACS_WRAP_DS(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptds, parameters, arguments)
#define ACS_WRAP_SZ(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptsz, parameters, arguments)
#include "compat.def"
