/*
 * Progress of slots, and the times of kernels that are learnt from it. Called by submit.c at polls, and by the issue
 * methods. Without a timed bundle the times cost a poll one load. It never asks the
 * driver.
 *
 * One bundle per slot at a time is timed: from when all earlier ops were seen completed until the bundle was. Its time
 * is divided by its levels. It does not count if polls were too rare to bound it, or if it may mostly be the time of
 * other bundles.
 */
#include "cuda/graphs/graphs.h"
#include "base/tuning.h"
#include "bundles/cost_model.h"

/* --------------------------------------------------------------------------------------------------------- progress */

/* Acquire, both: an op's writes to host memory come before the value that reports its end. */
uint64_t acs_cuda_completed(const acs_cuda *self, int slot)
{
    uint64_t word = atomic_load_explicit(&self->methods->words[slot].value, memory_order_acquire);
    uint64_t known = atomic_load_explicit(&self->methods->known[slot], memory_order_acquire);
    return word > known ? word : known;
}

/*
 * A graph may publish its last value before it is over: unused layers, and releases of ops that the GPU issued,
 * follow. Ops with greater values in the slot begin only then.
 */
uint64_t acs_cuda_ended(const acs_cuda *self, int slot)
{
    uint64_t word = atomic_load_explicit(&self->methods->words[slot].value, memory_order_acquire);
    uint64_t marked = atomic_load_explicit(&self->methods->marked[slot], memory_order_acquire);
    return word > marked ? word - 1 : marked;
}

/* ------------------------------------------------------------------------------------------------------------ times */

/*
 * Add a type to the timed bundle's. Small copies are left out, also because they would take a kernel's place. The
 * divided time of a bundle would make them seem long, and a copy that takes long stays a copy and cuts bundles.
 */
static void note_type(acs_cuda *self, acs_cuda_times *w, uint32_t type)
{
    uint32_t i = 0;
    if (acs_cuda_type_find(self, type)->brief)
        return;
    while (i < w->type_count && w->types[i] != type)
        i++;
    if (i == w->type_count && i < sizeof w->types / sizeof w->types[0])
        w->types[w->type_count++] = type;
}

void acs_cuda_times_begin(acs_cuda *self, const acs_batch *batch, const acs_cuda_issued *issued)
{
    acs_cuda_methods *methods = self->methods;
    int slot = batch->items[0].slot;
    acs_cuda_times *w = &methods->watches[slot];
    /* Relaxed: the lock orders all else, and missing one bundle does no harm. */
    if (atomic_load_explicit(&w->on, memory_order_relaxed))
        return;
    acs_lock_acquire(&methods->lock);
    w->after = batch->items[0].value - 1;
    w->value = issued->value;
    w->looked_ns = acs_clock_ns();
    w->began_ns = acs_cuda_completed(self, slot) >= w->after ? w->looked_ns : 0;
    w->levels = issued->levels ? issued->levels : 1;
    w->without_ns = issued->without_ns;
    w->others_ns = issued->others_ns;
    w->type_count = 0;
    for (uint32_t i = 0; i < batch->items_used; i++)
        if (batch->items[i].op)
            note_type(self, w, batch->items[i].op->type);
    atomic_store_explicit(&w->on, true, memory_order_relaxed);
    acs_lock_release(&methods->lock);
}

static void learn_types(acs_cuda *self, const acs_cuda_times *w, uint64_t now_ns)
{
    uint64_t took = now_ns - w->began_ns;
    if (w->others_ns > took / TUNE_LEARN_OTHERS_PART)
        return;
    uint64_t level = took > w->without_ns ? (took - w->without_ns) / w->levels : 0;
    for (uint32_t i = 0; i < w->type_count; i++) {
        acs_cuda_type *type = acs_cuda_type_find(self, w->types[i]);
        uint32_t known = atomic_load_explicit(&type->kernel_ns, memory_order_relaxed); /* relaxed, both: an estimate */
        atomic_store_explicit(&type->kernel_ns, acs_cost_model_learn(known, level), memory_order_relaxed);
    }
}

void acs_cuda_times_doubt(acs_cuda *self, const acs_batch *batch)
{
    for (uint32_t i = 0; i < batch->items_used; i++) {
        if (!batch->items[i].op)
            continue;
        acs_cuda_type *type = acs_cuda_type_find(self, batch->items[i].op->type);
        uint32_t known = atomic_load_explicit(&type->kernel_ns, memory_order_relaxed); /* relaxed, both: an estimate */
        atomic_store_explicit(&type->kernel_ns, known - known / 256, memory_order_relaxed);
    }
}

void acs_cuda_times_look(acs_cuda *self, int slot, uint64_t completed)
{
    acs_cuda_times *w = &self->methods->watches[slot];
    if (!atomic_load_explicit(&w->on, memory_order_relaxed)) /* relaxed: as above */
        return;
    acs_lock_acquire(&self->methods->lock);
    uint64_t now_ns = acs_clock_ns();
    /* whether the last look was so recent that what is seen now happened just now */
    const bool fresh = now_ns - w->looked_ns <= TUNE_LEARN_FRESH_NS;
    bool over = completed >= w->value;
    w->looked_ns = now_ns;
    if (over && w->began_ns && fresh)
        learn_types(self, w, now_ns);
    else if (!over && !w->began_ns && completed >= w->after && fresh)
        w->began_ns = now_ns;
    else if (!over && !w->began_ns && completed >= w->after)
        over = true; /* its begin is not known */
    if (over)
        atomic_store_explicit(&w->on, false, memory_order_relaxed);
    acs_lock_release(&self->methods->lock);
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
    acs_cuda_times_look(self, slot, acs_cuda_completed(self, slot));
    return completed;
}
