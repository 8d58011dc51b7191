/*
 * Library calls issued without their library. cuBLAS takes 10 us and more of the host for a product of small matrices;
 * its kernel takes 2.6 us as a launch, and less in a bundle. A repeatable call (acs_call_params) is captured now and
 * then after its run, until it is known how the addresses in its work follow from its pointers (call_learn.c). Then
 * the same work is issued at other addresses. A call of a few kernels without scratch memory becomes KERNEL ops on its
 * caller's thread, which bundles may take. Other calls are launched in their slot's stream.
 *
 * find and adapt are called on launching threads; for known calls they take no lock and make no CUDA call. send is
 * called by the thread that issues the slot's ops. Nothing here fails a call: unless its work is known for certain,
 * its library runs it.
 */
#include "cuda/call.h"
#include "cuda/graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MOST = ACS_CUDA_CALL_CELLS / 2 }; /* most templates, so that a search ends at an empty cell */

/* ------------------------------------------------------------------------------------------------- opening, closing */

/* Whether the driver has the functions that captures need. */
static bool can_capture(const acs_cuda *self)
{
    const acs_cuda_driver *cu = &self->cu;
    return cu->cuFuncGetParamInfo && cu->cuStreamBeginCapture && cu->cuStreamEndCapture && cu->cuGraphGetNodes &&
           cu->cuGraphNodeGetType && cu->cuGraphKernelNodeGetParams && cu->cuGraphMemsetNodeGetParams &&
           cu->cuGraphKernelNodeGetAttribute && cu->cuGraphDestroy && cu->cuMemsetD32Async;
}

void acs_cuda_calls_init(acs_cuda *self, const acs_options *options)
{
    if (self->base.devices > 1 || options->serial || options->disable || !can_capture(self))
        return;
    acs_cuda_calls *calls = calloc(1, sizeof *calls); /* NULL: all calls go to their library */
    if (calls)
        atomic_flag_clear_explicit(&calls->learning, memory_order_relaxed); /* relaxed: no other thread is here yet */
    self->calls = calls;
}

static void call_free(acs_cuda_call *call)
{
    /* Relaxed: no other thread is here any more. */
    acs_cuda_call_version *v = atomic_load_explicit(&call->latest, memory_order_relaxed);
    while (v) {
        acs_cuda_call_version *older = v->older;
        free(v);
        v = older;
    }
    for (uint32_t i = 0; i < ACS_CALL_STEPS; i++)
        if (call->pattern[i]) {
            free(call->pattern[i]->arg_bytes);
            free(call->pattern[i]->args);
            free(call->pattern[i]);
        }
    free(call);
}

void acs_cuda_calls_fini(acs_cuda *self)
{
    acs_cuda_calls *calls = self->calls;
    if (!calls)
        return;
    for (uint32_t i = 0; i < ACS_CUDA_CALL_CELLS; i++) {
        acs_cuda_call *call = atomic_load_explicit(&calls->cells[i], memory_order_relaxed); /* as in call_free */
        if (call)
            call_free(call);
    }
    if (calls->stream)
        (void)acs_cuda_note(self, self->cu.cuStreamDestroy(calls->stream));
    free(calls);
    self->calls = NULL;
}

/* ------------------------------------------------------------------------------------------------------------- find */

static bool is_like(const acs_cuda_call *call, const acs_call_params *params, const acs_call_key *key)
{
    return call->key.hash == key->hash && call->function == params->function && call->place_key == params->place_key &&
           call->scratch_bytes == params->scratch_bytes && call->pointers == params->pointers &&
           call->key.bytes == key->bytes && memcmp(call->key.closure, key->closure, key->bytes) == 0;
}

/* The cell that holds the call, or the empty cell where it belongs. */
static _Atomic(acs_cuda_call *) *cell_of(acs_cuda_calls *calls, const acs_call_params *params, const acs_call_key *key)
{
    for (uint64_t i = key->hash ^ (uint64_t)(uintptr_t)params->function >> 4;; i++) {
        _Atomic(acs_cuda_call *) *cell = &calls->cells[i & (ACS_CUDA_CALL_CELLS - 1)];
        const acs_cuda_call *call = atomic_load_explicit(cell, memory_order_acquire); /* A */
        if (!call || is_like(call, params, key))
            return cell;
    }
}

/* Add a call at its first sight. NULL: the table is full, or no memory. */
static acs_cuda_call *call_add(acs_cuda *self, const acs_call_params *params, const acs_call_key *key)
{
    acs_cuda_calls *calls = self->calls;
    ACS_HOLD(&self->lock);
    _Atomic(acs_cuda_call *) *cell = cell_of(calls, params, key);
    acs_cuda_call *call = atomic_load_explicit(cell, memory_order_relaxed); /* relaxed: written under this lock only */
    if (!call && calls->used < CALLS_MOST && (call = calloc(1, sizeof *call)) != NULL) {
        call->function = params->function;
        call->place_key = params->place_key;
        call->scratch_bytes = params->scratch_bytes;
        call->pointers = params->pointers;
        call->key = *key;
        calls->used++;
        atomic_store_explicit(cell, call, memory_order_release); /* A */
    }
    return call;
}

void acs_cuda_call_find(acs_backend *backend, acs_record *op, const acs_call_params *params, acs_call_room *room)
{
    acs_cuda *self = (acs_cuda *)backend;
    acs_call_key key;
    if (!self->calls || !acs_call_key_make(params->closure, params->closure_bytes, params->pointers, &key))
        return;
    acs_cuda_call *call = atomic_load_explicit(cell_of(self->calls, params, &key), memory_order_acquire); /* A */
    if (!call)
        call = call_add(self, params, &key);
    /* relaxed: if this misses the store, the library serves as well */
    if (!call || atomic_load_explicit(&call->hopeless, memory_order_relaxed))
        return;
    op->u.call.known = call;
    if (atomic_load_explicit(&call->latest, memory_order_acquire)) /* B */
        *room = call->room;
}

/* ------------------------------------------------------------------------------------------------------------ adapt */

/* Compute the words of the op's work, with its slot's scratch memory. False: they are not known for certain. */
static bool predict(const acs_cuda_call *call, const acs_cuda_call_version *v, const acs_record *op, const void *scratch,
                    uint64_t *words)
{
    uint64_t base[ACS_CALL_BASES];
    const uint32_t count = acs_call_bases(op->u.call.closure, call->key.bytes, call->pointers, base);
    if (call->scratch_bytes)
        base[count] = (uint64_t)(uintptr_t)scratch;
    return acs_call_template_fill(&v->of, base, words);
}

/* Make the op a launch like `pattern`, with the arguments at `words`. */
static void become(acs_cuda *self, acs_record *op, const acs_record *pattern, const uint64_t *words)
{
    op->kind = ACS_KIND_KERNEL;
    op->u.launch = pattern->u.launch; /* overwrites the call, which lies in the same place */
    op->u.launch.kernel.name = op->site->name;
    op->grid = pattern->grid;
    op->arg_count = pattern->arg_count;
    op->arg_bytes_used = pattern->arg_bytes_used;
    memcpy(op->args, pattern->args, op->arg_count * sizeof *op->args);
    memcpy(op->arg_bytes, words, op->arg_bytes_used);
    /* The type is asked for again, since a graph with this kernel may have failed meanwhile. */
    op->type = acs_cuda_type_number(self, pattern->u.launch.resolved, pattern);
    op->content = op->type ? acs_cuda_args_hash(op) : 0;
}

bool acs_cuda_call_adapt(acs_backend *backend, acs_record *const *parts)
{
    const acs_cuda_call *call = parts[0]->u.call.known;
    const acs_cuda_call_version *v = atomic_load_explicit(&call->latest, memory_order_acquire); /* B */
    const acs_call_work *latest = &v->of.latest;
    uint64_t words[ACS_CALL_WORDS];
    /*
     * The address of scratch memory makes no difference here, since no word follows it; the latest capture's will do.
     */
    const uint64_t scratch = call->scratch_bytes ? latest->base[latest->bases - 1] : 0;
    if (!predict(call, v, parts[0], (const void *)(uintptr_t)scratch, words))
        return false;
    for (uint32_t i = 0; i < latest->steps; i++)
        become((acs_cuda *)backend, parts[i], call->pattern[i], words + latest->step[i].first);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- send */

static CUresult send_kernel(acs_cuda *self, const acs_record *pattern, uint64_t *words, CUstream stream)
{
    void *args[ACS_CALL_WORDS];
    for (uint32_t i = 0; i < pattern->arg_count; i++)
        args[i] = (unsigned char *)words + pattern->args[i].offset;
    return acs_cuda_launch_args(self, pattern, stream, args);
}

static CUresult send_fill(acs_cuda *self, const acs_call_step *step, CUdeviceptr to, CUstream stream)
{
    return step->what[0] == 4 ? self->cu.cuMemsetD32Async(to, (unsigned)step->what[2], step->what[1], stream)
                              : self->cu.cuMemsetD8Async(to, (unsigned char)step->what[2], step->what[1], stream);
}

bool acs_cuda_call_send(acs_cuda *self, const acs_item *item, CUstream stream, CUresult *result)
{
    acs_cuda_call *call = item->op->u.call.known;
    uint64_t words[ACS_CALL_WORDS];
    void *scratch = NULL;
    const acs_cuda_call_version *v = call ? atomic_load_explicit(&call->latest, memory_order_acquire) : NULL; /* B */
    if (!v || atomic_load_explicit(&call->hopeless, memory_order_relaxed)) /* relaxed: as in acs_cuda_call_find */
        return false;
    if (acs_call_scratch(self->base.calls, &self->base, (uint32_t)item->slot, call->scratch_bytes, &scratch) != ACS_OK ||
        !predict(call, v, item->op, scratch, words))
        return false;
    *result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < v->of.latest.steps && *result == CUDA_SUCCESS; i++) {
        const acs_call_step *step = &v->of.latest.step[i];
        *result = step->kind == ACS_CUDA_STEP_KERNEL ? send_kernel(self, call->pattern[i], words + step->first, stream)
                                                      : send_fill(self, step, words[step->first], stream);
    }
    return true;
}
