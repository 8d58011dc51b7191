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
 *
 * Where the environment has ACS_CHECK, calls that make and free memory also tell the checks of the default context of it.
 */
#include "acs_compat.h"
#include "api/compat.h"
#include "api/registry.h"
#include "base/inside.h"
#include "base/options.h"

#include <cuda_runtime_api.h>

/* The linker's options ask for it by name, so that this file is linked; acs_compat.h looks for it. */
const char acs_compat_wraps = 1;

/* Memory of a library call is left out: the library may use it in other threads, and its values are its own affair. */
static void watch_memory(const void *ptr, size_t bytes)
{
    if (!acs_environment("ACS_CHECK") || acs_inside() || !ptr || !bytes)
        return;
    acs_context *context = acs_default();
    if (context)
        (void)acs_check_register(context, ptr, bytes);
}

/* Also inside of a library call, which may free what it made before. It is no error that memory is not known. */
static void unwatch_memory(const void *ptr)
{
    acs_context *context = acs_environment("ACS_CHECK") && ptr ? acs_registry_default() : NULL;
    if (!context)
        return;
    const acs_error before = *acs_error_thread();
    const bool inside = acs_inside();
    acs_inside_set(false);
    acs_error_hush(true);
    (void)acs_check_unregister(context, ptr);
    acs_error_hush(false);
    acs_inside_set(inside);
    *acs_error_thread() = before;
}

#define WRAP(name, parameters, arguments) WRAP_AND(name, parameters, arguments, (void)0)
#define WRAP_AND(name, parameters, arguments, also)                                                                    \
    cudaError_t __real_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters                                                                               \
    {                                                                                                                  \
        acs_compat_drain();                                                                                            \
        also;                                                                                                          \
        return __real_##name arguments;                                                                                \
    }
#define WRAP_NEW(name, parameters, arguments, memory, bytes)                                                           \
    cudaError_t __real_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters;                                                                              \
    cudaError_t __wrap_##name parameters                                                                               \
    {                                                                                                                  \
        const cudaError_t error = __real_##name arguments;                                                             \
        if (error == cudaSuccess)                                                                                      \
            watch_memory(memory, bytes);                                                                               \
        return error;                                                                                                  \
    }

/* A wrapper for each row's symbol, and for the names that the compiler may make of it. */
#define ACS_WRAP(name, parameters, arguments) WRAP(name, parameters, arguments)
#define ACS_WRAP_DS(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptds, parameters, arguments)
#define ACS_WRAP_SZ(name, parameters, arguments)                                                                       \
    WRAP(name, parameters, arguments)                                                                                  \
    WRAP(name##_ptsz, parameters, arguments)
#define ACS_WRAP_FREE(name, parameters, arguments) WRAP_AND(name, parameters, arguments, unwatch_memory(ptr))
#define ACS_WRAP_FREE_SZ(name, parameters, arguments)                                                                  \
    ACS_WRAP_FREE(name, parameters, arguments)                                                                         \
    ACS_WRAP_FREE(name##_ptsz, parameters, arguments)
#define ACS_WRAP_NEW(name, parameters, arguments, memory, bytes) WRAP_NEW(name, parameters, arguments, memory, bytes)
#define ACS_WRAP_NEW_SZ(name, parameters, arguments, memory, bytes)                                                    \
    WRAP_NEW(name, parameters, arguments, memory, bytes)                                                               \
    WRAP_NEW(name##_ptsz, parameters, arguments, memory, bytes)
#include "compat.def"
