/*
 * The opening of the library's own device code and of all that is made of it: issue methods, small copies, the kernel of
 * decisions. It takes 2 ms, most of them for a page of pinned memory, and a program that does not recur needs none of it.
 * So it waits for its first use. Several devices, where ops go in bundles, and small copies, which become kernels, wait
 * until the program has issued as many ops as a bundle holds. Called by submit.c, capture.c and backend.c.
 */
#include "cuda/graphs/graphs.h"

#include "base/inside.h"
#include "base/tuning.h"

void acs_cuda_code_init(acs_cuda *self, const acs_options *options)
{
    self->bundles = self->methods && options->issue != ACS_ISSUE_LAUNCH && !options->serial && !options->disable;
    self->code_wanted = self->bundles && options->issue == ACS_ISSUE_AUTO;
    atomic_init(&self->code_counts, self->base.devices > 1);
    atomic_init(&self->base.bundles_later, true);
    if (self->bundles && !self->code_wanted) /* the program asks for one method, from its first op on */
        (void)acs_cuda_code_open(self);
}

static void open_member(acs_cuda *self)
{
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS || !self->methods || acs_cuda_fault(self) || !acs_cuda_device_load(self) ||
        !acs_cuda_methods_start(self))
        return;
    acs_cuda_decide_start(self);
    acs_cuda_copies_start(self);
    atomic_store_explicit(&self->code, true, memory_order_release); /* P in internal.h */
}

/*
 * Tell the core whether ops go in bundles: if the program asks for a method of theirs or gave bodies of its kernels, or
 * on several devices, where nothing is replayed. Else threads that issue are as fast, and nobody waits for graphs.
 */
void acs_cuda_code_tell(acs_cuda *first)
{
    /* relaxed: who sets it calls this function then */
    const bool bodies = atomic_load_explicit(&first->has_executors, memory_order_relaxed);
    if ((!first->code_wanted || bodies || first->base.devices > 1) && acs_cuda_has_code(first))
        atomic_store_explicit(&first->base.bundles_later, false, memory_order_release); /* B in backend.h */
}

bool acs_cuda_code_open(acs_cuda *self)
{
    acs_cuda *first = self->members[0];
    if (ACS_LIKELY(acs_cuda_has_code(self)))
        return true;
    ACS_NOT_CANCELLED;
    ACS_HOLD_MUTEX(&first->code_mutex);
    for (uint32_t i = first->base.devices; !first->code_tried && i-- > 0;)
        open_member(first->members[i]);
    first->code_tried = true;
    acs_cuda_code_tell(first);
    return acs_cuda_has_code(self);
}

void acs_cuda_code_ask(acs_cuda *first)
{
    if (atomic_exchange_explicit(&first->code_asked, true, memory_order_relaxed))
        return;
    ACS_CUDA_SCOPE(first);
    if (scope.entered != CUDA_SUCCESS)
        return; /* the device is lost */
    if (!first->methods->builder || !acs_cuda_builder_call(first->methods->builder, acs_cuda_code_open))
        (void)acs_cuda_code_open(first);
}

void acs_cuda_code_stop(acs_cuda *first)
{
    ACS_HOLD_MUTEX(&first->code_mutex);
    first->code_tried = true;
}
