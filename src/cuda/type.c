/*
 * Types of kernels: a number for each (kernel, block, shared memory), which a node of a cached graph cannot change
 * later. Called by check() on the launching thread: without a lock and without a CUDA call for a type seen before. It
 * never refuses a launch; a kernel without a number is launched by itself.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"

#include <stdlib.h>

/*
 * A  type_add_locked: fill a type, publish it in its kernel's list and in the table with release; type_find and
 *    acs_cuda_type_find: load acquire. Broken: a graph is built of a type without kernel.
 */

bool acs_cuda_settable(const acs_record *op)
{
    const acs_cuda_kernel *kernel = op->u.launch.resolved;
    const acs_attributes *asked = &op->u.launch.attributes;
    return !kernel || (kernel->settable && !asked->cooperative && !asked->cluster.x);
}

/* Whether a node of a bundle's graph can hold the launch. */
static bool is_suitable(const acs_cuda_kernel *kernel, const acs_record *op)
{
    const acs_attributes *asked = &op->u.launch.attributes;
    return kernel->params_known && kernel->settable && !asked->cooperative && !asked->cluster.x && !asked->priority &&
           !asked->share;
}

/* Bytes of all parameters, gaps included. */
static uint32_t arg_bytes(const acs_cuda_kernel *kernel)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < kernel->param_count; i++)
        if (kernel->param_offset[i] + kernel->param_bytes[i] > end)
            end = kernel->param_offset[i] + kernel->param_bytes[i];
    return end;
}

static acs_cuda_type *type_find(const acs_cuda_kernel *kernel, const acs_record *op)
{
    acs_dim3 block = op->u.launch.block;
    acs_cuda_type *type = atomic_load_explicit(&kernel->types, memory_order_acquire); /* A */
    while (type && (type->block.x != block.x || type->block.y != block.y || type->block.z != block.z ||
                    type->shared_bytes != op->u.launch.shared_bytes ||
                    type->decided != ((op->flags & ACS_RECORD_DECIDED) != 0)))
        type = type->next;
    return type;
}

/* Give a type the next number. NULL: there is none, or no memory. */
static acs_cuda_type *type_add_locked(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_type *first = atomic_load_explicit(&kernel->types, memory_order_relaxed); /* written under this lock only */
    uint32_t index = first ? first->index + 1 : 0;
    if (methods->types_used + 1 >= ACS_CUDA_TYPES || index >= TUNE_KERNEL_TYPES_MOST)
        return NULL;
    acs_cuda_type *type = calloc(1, sizeof *type);
    if (!type)
        return NULL;
    type->number = ++methods->types_used;
    type->index = index;
    type->kernel = kernel;
    type->block = op->u.launch.block;
    type->shared_bytes = (uint32_t)op->u.launch.shared_bytes;
    type->decided = op->flags & ACS_RECORD_DECIDED;
    type->arg_bytes = arg_bytes(kernel);
    type->packed = acs_cuda_args_packed(kernel, op);
    type->next = first;
    if (type->arg_bytes > ACS_CUDA_ARG_BYTES) /* kept all the same, so that no launch comes here again */
        atomic_store_explicit(&type->refused, true, memory_order_relaxed);
    atomic_store_explicit(&methods->types[type->number], type, memory_order_release); /* A */
    atomic_store_explicit(&kernel->types, type, memory_order_release);          /* A */
    return type;
}

/* Add a type, unless another thread has added it meanwhile. */
static acs_cuda_type *type_add(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op)
{
    ACS_HOLD(&self->lock);
    acs_cuda_type *type = type_find(kernel, op);
    if (!type)
        type = type_add_locked(self, kernel, op);
    return type;
}

/*
 * Whether there are no more numbers, for this kernel or for all. Its list then never grows, which is seen without a
 * lock.
 */
static bool is_full(const acs_cuda *self, const acs_cuda_kernel *kernel)
{
    const acs_cuda_type *first = atomic_load_explicit(&kernel->types, memory_order_acquire); /* A */
    /* Acquire: A. The last number is given out last. */
    bool all = atomic_load_explicit(&self->methods->types[ACS_CUDA_TYPES - 1], memory_order_acquire) != NULL;
    return all || (first && first->index + 1 == TUNE_KERNEL_TYPES_MOST);
}

uint32_t acs_cuda_type_number(acs_cuda *self, acs_cuda_kernel *kernel, const acs_record *op)
{
    if (!self->methods || !is_suitable(kernel, op))
        return 0;
    acs_cuda_type *type = type_find(kernel, op);
    if (ACS_UNLIKELY(!type && !is_full(self, kernel)))
        type = type_add(self, kernel, op);
    /* Relaxed: a bundle with a type refused meanwhile is refused itself. */
    return type && !atomic_load_explicit(&type->refused, memory_order_relaxed) ? type->number : 0;
}

acs_cuda_type *acs_cuda_type_find(acs_cuda *self, uint32_t number)
{
    return number < ACS_CUDA_TYPES ? atomic_load_explicit(&self->methods->types[number], memory_order_acquire) : NULL;
}

void acs_cuda_types_fini(acs_cuda *self)
{
    for (uint32_t i = 0; i < ACS_CUDA_TYPES; i++) /* relaxed: no other thread is here any more */
        free(atomic_load_explicit(&self->methods->types[i], memory_order_relaxed));
}
