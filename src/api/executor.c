/*
 * acs_executor_add: executors of the program. Checks what does not depend on the device, and hands the rest to the
 * backend. It keeps nothing.
 */
#include "api/context.h"

#include "acs_executor.h"

enum { THREADS_MOST = 1024, WARP = 32 };

static acs_status check(const acs_executor_params *params)
{
    if (!params || params->size != sizeof *params)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_executor_add: set params->size to sizeof(acs_executor_params)");
    if (params->layout != ACS_EXECUTOR_LAYOUT)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0,
                        "acs_executor_add: the executor was compiled with layout %u of acs_executor.h; the library has %d",
                        params->layout, ACS_EXECUTOR_LAYOUT);
    if (!params->threads || params->threads % WARP || params->threads > THREADS_MOST)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_executor_add: blocks of %u threads; must be a multiple of %d up to %d",
                        params->threads, WARP, THREADS_MOST);
    if (!params->kernels)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_executor_add: params->kernels is NULL");
    if (!params->bodies || params->bodies > ACS_EXECUTOR_BODIES || !params->count || params->count % params->bodies)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "acs_executor_add: %llu kernels for %u bodies; there must be 1 to %d bodies, and a multiple of them",
                        (unsigned long long)params->count, params->bodies, ACS_EXECUTOR_BODIES);
    for (size_t i = 0; i <= params->count; i++)
        if (!(i ? &params->kernels[i - 1] : &params->executor)->function)
            return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_executor_add: a kernel is NULL");
    return ACS_OK;
}

acs_status acs_executor_add(acs_context *context, const acs_executor_params *params)
{
    ACS_ENTER(context);
    ACS_TRY(check(params));
    const acs_backend_ops *ops = context->backend->ops;
    return ops->executor_add ? ops->executor_add(context->backend, params) : ACS_OK;
}
