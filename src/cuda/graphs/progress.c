/*
 * Progress of slots, as words that the device writes and marks tell it. Called by submit.c at polls, and by the issue
 * methods. It never asks the driver.
 */
#include "cuda/graphs/graphs.h"

/* --------------------------------------------------------------------------------------------------------- progress */

/* Acquire, both: an op's writes to host memory come before the value that reports its end. */
uint64_t acs_cuda_completed(const acs_cuda *self, int slot)
{
    uint64_t word = atomic_load_explicit(&self->methods->words[slot].value, memory_order_acquire);
    uint64_t known = atomic_load_explicit(&self->methods->known[slot], memory_order_acquire);
    return word > known ? word : known;
}

/*
 * A graph may publish its last value before it is over. Ops with greater values in the slot begin only then.
 */
uint64_t acs_cuda_ended(const acs_cuda *self, int slot)
{
    uint64_t word = atomic_load_explicit(&self->methods->words[slot].value, memory_order_acquire);
    uint64_t marked = atomic_load_explicit(&self->methods->marked[slot], memory_order_acquire);
    return word > marked ? word - 1 : marked;
}

/* ------------------------------------------------------------------------------------------------------------ polls */

/* One thread polls a slot at a time. A published value counts only if it is above what marks have reported. */
uint64_t acs_cuda_progress(acs_cuda *self, int slot, uint64_t completed)
{
    acs_cuda_methods *methods = self->methods;
    if (!acs_cuda_has_code(self))
        return completed;
    /* relaxed: written here only, as `known` */
    if (completed > atomic_load_explicit(&methods->marked[slot], memory_order_relaxed))
        atomic_store_explicit(&methods->marked[slot], completed, memory_order_release);
    uint64_t known = atomic_load_explicit(&methods->known[slot], memory_order_relaxed); /* relaxed: written here only */
    uint64_t word = atomic_load_explicit(&methods->words[slot].value, memory_order_acquire); /* as in acs_cuda_completed */
    if (word > known && word > completed)
        completed = word;
    if (completed > known)
        atomic_store_explicit(&methods->known[slot], completed, memory_order_release);
    return completed;
}
