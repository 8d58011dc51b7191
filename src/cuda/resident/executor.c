/*
 * Executors of the program: acs_executor_add on a CUDA device. Owns the list of executors, and tells kernels which body
 * they have. Called on any thread; resident/resident.c reads what is kept here. It never launches anything.
 */
#include "cuda/resident/resident.h"

#include "base/inside.h"

#include <stdlib.h>

/*
 * E  publish: fill an executor, publish its bodies with release, one by one; executor_of, put_op: load acquire. Broken: a
 *    body is seen without its executor. A kernel that is added twice has the later body.
 */

/* A record for a kernel, as kernel.c takes it. */
static acs_cuda_kernel *kernel_of(acs_cuda *self, const acs_kernel *kernel, uint64_t shared_bytes, acs_record *op)
{
    static const acs_site site = {"acs_executor_add", __FILE__, __LINE__};
    *op = (acs_record){.kind = ACS_KIND_KERNEL, .asked = ACS_KIND_KERNEL, .site = &site};
    op->u.launch.kernel = *kernel;
    op->u.launch.shared_bytes = shared_bytes;
    return acs_cuda_kernel_of(self, op);
}

/* Check the executor's kernel, and opt in to its shared memory. */
static acs_status resolve_executor(acs_cuda *self, const acs_executor_params *params, acs_cuda_executor *executor)
{
    acs_record op;
    acs_cuda_kernel *kernel = kernel_of(self, &params->executor, params->shared_bytes, &op);
    if (!kernel)
        return acs_error_thread()->status;
    if (params->threads > (uint32_t)kernel->block_threads)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "acs_executor_add: a block of %u threads; the executor takes at most %d",
                        params->threads, kernel->block_threads);
    ACS_TRY(acs_cuda_check_shared(self, &op, kernel));
    executor->kernel = kernel;
    executor->threads = params->threads;
    executor->shared_bytes = params->shared_bytes;
    return ACS_OK;
}

/* Find all kernels first, so that after an error none has changed. */
static acs_status resolve_kernels(acs_cuda *self, const acs_executor_params *params, acs_cuda_kernel **kernels)
{
    acs_record op;
    for (size_t i = 0; i < params->count; i++) {
        kernels[i] = kernel_of(self, &params->kernels[i], 0, &op);
        if (!kernels[i])
            return acs_error_thread()->status;
    }
    return ACS_OK;
}

static void publish(acs_cuda *self, const acs_executor_params *params, acs_cuda_executor *executor,
                    acs_cuda_kernel **kernels)
{
    ACS_HOLD(&self->lock);
    executor->next = self->resident->executors;
    self->resident->executors = executor;
    atomic_store_explicit(&self->has_executors, true, memory_order_relaxed); /* a hint: bodies have an order of their own */
    for (uint32_t i = 0; i < params->bodies; i++)
        executor->bodies[i] = (acs_cuda_body){executor, i};
    for (size_t i = 0; i < params->count; i++)
        atomic_store_explicit(&kernels[i]->body, &executor->bodies[i % params->bodies], memory_order_release); /* E */
}

void acs_cuda_resident_copies(acs_cuda_kernel *copy, acs_cuda_kernel *rows, acs_cuda_kernel *fill)
{
    static const acs_cuda_body own[] = {{NULL, ACS_EXECUTOR_COPY}, {NULL, ACS_EXECUTOR_ROWS}, {NULL, ACS_EXECUTOR_FILL}};
    atomic_store_explicit(&copy->body, &own[0], memory_order_release); /* E, all */
    atomic_store_explicit(&rows->body, &own[1], memory_order_release);
    atomic_store_explicit(&fill->body, &own[2], memory_order_release);
}

static acs_status add_executor(acs_cuda *self, const acs_executor_params *params)
{
    acs_cuda_executor *executor = calloc(1, sizeof *executor + params->bodies * sizeof executor->bodies[0]);
    acs_cuda_kernel **kernels = calloc(params->count, sizeof(*kernels));
    acs_status status = executor && kernels ? resolve_executor(self, params, executor)
                                            : ACS_FAIL(ACS_ERR_MEMORY, 0, "acs_executor_add: no memory");
    if (status == ACS_OK)
        status = resolve_kernels(self, params, kernels);
    if (status == ACS_OK)
        publish(self, params, executor, kernels);
    else
        free(executor);
    free(kernels);
    return status;
}

acs_status acs_cuda_executor_add(acs_backend *backend, const acs_executor_params *params)
{
    acs_cuda *first = (acs_cuda *)backend;
    ACS_NOT_CANCELLED;
    for (uint32_t i = 0; i < backend->devices; i++)
        if (first->members[i]->resident)
            ACS_TRY(add_executor(first->members[i], params));
    return ACS_OK;
}
