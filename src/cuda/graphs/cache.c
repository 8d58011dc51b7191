/*
 * The index of the CUDA backend's cached graphs: finds a graph, evicts the one used longest ago for a new one, and
 * launches. Called by the issue methods, wanted.c and builder.c in a scope. It takes its lock for the index only, never
 * across a call of the driver. It never fills a graph.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"
#include "window/replay.h"

#include <stdlib.h>
#include <string.h>

#define UNLOADED CUDA_ERROR_INVALID_HANDLE /* the program has unloaded a kernel of the graph, which is no failure */

static void progress_tell_locked(acs_cuda *self)
{
    for (uint32_t slot = 0; slot < self->slots; slot++)
        acs_graph_cache_completed(self->methods->cache, (int)slot, acs_cuda_ended(self, (int)slot));
}

static bool is_bad_locked(const acs_cuda_methods *methods, uint64_t key)
{
    for (uint32_t i = 0; i < sizeof methods->bad / sizeof methods->bad[0]; i++)
        if (methods->bad[i] == key)
            return true;
    return false;
}

void acs_cuda_graph_refuse(acs_cuda *self, uint64_t key, const char *what, CUresult result)
{
    acs_cuda_methods *methods = self->methods;
    if (acs_cuda_note(self, result))
        return;
    acs_lock_acquire(&methods->lock);
    methods->bad[methods->bad_next++ % (sizeof methods->bad / sizeof methods->bad[0])] = key;
    methods->failures += result != UNLOADED;
    acs_lock_release(&methods->lock);
    acs_log(ACS_LOG_INFO, "cuda: a kept graph could not be %s: %s; its kernels are launched one by one", what,
            acs_cuda_text((int)result));
}

/* Give a taken copy back unchanged: its latest launch may still run. */
static void put_back_locked(acs_graph_cache *cache, acs_cuda_exec *exec)
{
    uint32_t latest = (exec->next + TUNE_GRAPH_TABLES - 1) % TUNE_GRAPH_TABLES;
    const int slot = exec->launches[latest].slot; /* negative: it was never launched */
    acs_graph_cache_launched(cache, exec->copy, slot < 0 ? 0 : slot, slot < 0 ? 0 : exec->launches[latest].value);
}

static acs_cuda_exec *usable_locked(acs_cuda *self, acs_graph_copy *copy)
{
    acs_cuda_exec *exec = copy ? copy->object : NULL;
    if (!exec || acs_cuda_exec_ready(self, exec))
        return exec;
    put_back_locked(self->methods->cache, exec);
    return NULL;
}

/* Take a copy: one that was launched last in the slot, else a free one. `any`: else one that runs in another slot. */
static acs_cuda_exec *take_locked(acs_cuda *self, const acs_cuda_wanted *want, bool any)
{
    acs_graph_cache *cache = self->methods->cache;
    acs_cuda_exec *exec = usable_locked(self, acs_graph_cache_again(cache, want->key, want->slot));
    if (!exec)
        exec = usable_locked(self, acs_graph_cache_take(cache, want->key));
    if (!exec && any)
        exec = usable_locked(self, acs_graph_cache_again(cache, want->key, -1));
    return exec;
}

uint64_t acs_cuda_graph_since(acs_cuda *self, uint64_t key)
{
    ACS_HOLD(&self->methods->lock);
    return acs_graph_cache_since(self->methods->cache, key);
}

bool acs_cuda_graph_may_build(acs_cuda *self, uint32_t nodes, uint64_t before)
{
    acs_cuda_methods *methods = self->methods;
    ACS_HOLD(&methods->lock);
    if (methods->earned < nodes || !acs_graph_cache_may_fit(methods->cache, nodes, before))
        return false;
    methods->earned -= nodes;
    return true;
}

void acs_cuda_graph_earn(acs_cuda *self, uint32_t ops)
{
    acs_cuda_methods *methods = self->methods;
    ACS_HOLD(&methods->lock);
    methods->earned += ops / TUNE_GRAPH_EARN_OPS;
    if (methods->earned > methods->nodes_most)
        methods->earned = methods->nodes_most;
}

bool acs_cuda_graph_room(acs_cuda *self, uint32_t nodes, uint64_t before)
{
    acs_cuda_methods *methods = self->methods;
    void *victim;
    acs_lock_acquire(&methods->lock);
    progress_tell_locked(self); /* a key without copies did not need to know which are free */
    while ((victim = acs_graph_cache_evict(methods->cache, nodes, before)) != NULL) {
        acs_lock_release(&methods->lock);
        acs_cuda_exec_destroy(self, victim);
        acs_lock_acquire(&methods->lock);
    }
    bool room = acs_graph_cache_has_room(methods->cache, nodes);
    acs_lock_release(&methods->lock);
    return room;
}

/* --------------------------------------------------------------------------------------------------------- shapes */

/* Whether the graph has the bundle's shape. */
static bool same_shape(const acs_cuda_exec *exec, const acs_batch *batch)
{
    const uint32_t *word = exec->shape, *end = word + exec->shape_words;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        uint32_t type = item->op ? item->op->type : 0;
        if ((size_t)(end - word) <= item->edge_count || *word++ != (type << 16 | item->edge_count))
            return false;
        for (uint32_t e = 0; e < item->edge_count; e++)
            if (*word++ != batch->edges[item->first_edge + e])
                return false;
    }
    return word == end;
}

/* By chance the keys of two graphs may be equal. Kernels of ops that a launch leaves out may have been unloaded. */
static bool is_wanted(const acs_cuda_exec *exec, const acs_cuda_wanted *want)
{
    const uint32_t unloads = atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed); /* as in kernel_find */
    return (!exec->handles || exec->unloads == unloads) && exec->replay_id == (want->replay ? want->replay->shape->id : 0) &&
           (!want->type || exec->types[0]->number == want->type) && (!want->batch || same_shape(exec, want->batch));
}

/* ---------------------------------------------------------------------------------------------------------- adding */

acs_cuda_exec *acs_cuda_exec_finish(acs_cuda *self, acs_cuda_build *build, CUstream stream, bool waits)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_exec *exec = build->exec;
    (void)pthread_rwlock_rdlock(&acs_backend_unloading);
    const uint32_t unloads = atomic_load_explicit(&acs_backend_unloads, memory_order_relaxed); /* under the lock */
    const bool loaded = !exec->handles || exec->unloads == unloads;
    const bool room = loaded && acs_cuda_graph_room(self, build->nodes, build->before);
    CUresult result = !loaded ? UNLOADED : room ? acs_cuda_exec_build(self, exec, &build->plan, stream) : CUDA_SUCCESS;
    if (room && result == CUDA_SUCCESS && waits)
        result = self->cu.cuStreamSynchronize(stream);
    (void)pthread_rwlock_unlock(&acs_backend_unloading);
    if (result != CUDA_SUCCESS)
        acs_cuda_graph_refuse(self, build->key, "built", result);
    if (room && result == CUDA_SUCCESS) {
        atomic_fetch_add_explicit(&self->members[0]->base.nodes_built, build->nodes, memory_order_relaxed); /* a counter */
        acs_lock_acquire(&methods->lock);
        exec->copy = acs_graph_cache_add(methods->cache, build->key, build->nodes, exec);
        acs_lock_release(&methods->lock);
    }
    if (exec->copy)
        return exec;
    acs_cuda_exec_destroy(self, exec);
    return NULL;
}

void acs_cuda_exec_give(acs_cuda *self, acs_cuda_exec *exec)
{
    ACS_HOLD(&self->methods->lock);
    acs_graph_cache_launched(self->methods->cache, exec->copy, 0, 0);
}

bool acs_cuda_exec_exists(acs_cuda *self, uint64_t key)
{
    ACS_HOLD(&self->methods->lock);
    return acs_graph_copies(self->methods->cache, key, NULL) > 0;
}

/* Whether another copy may be made, since one that runs cannot be launched beside itself. */
static bool may_copy_locked(const acs_cuda_methods *methods, const acs_cuda_wanted *want)
{
    uint32_t copies = acs_graph_copies(methods->cache, want->key, NULL);
    return copies == 0 || (copies < TUNE_GRAPH_COPIES_MOST &&
                           (uint64_t)(copies + 1) * want->nodes * TUNE_GRAPH_COPIES_PART <= methods->nodes_most);
}

acs_cuda_exec *acs_cuda_exec_find(acs_cuda *self, const acs_cuda_wanted *want, bool *more)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_exec *exec = NULL;
    acs_lock_acquire(&methods->lock);
    if (methods->failures < TUNE_GRAPH_FAILURES_MOST && !is_bad_locked(methods, want->key)) {
        bool has_copies =
            acs_graph_copies(methods->cache, want->key, NULL) > 0; /* mostly there is none, and nothing else is asked */
        if (has_copies)
            progress_tell_locked(self);
        exec = has_copies ? take_locked(self, want, false) : NULL;
        *more = !exec && want->sightings != UINT32_MAX && may_copy_locked(methods, want) &&
                acs_graph_cache_sight(methods->cache, want->key) >= want->sightings;
        if (has_copies && !exec && !*more)
            exec = take_locked(self, want, true);
    }
    if (exec && !is_wanted(exec, want)) {
        put_back_locked(methods->cache, exec);
        exec = NULL;
    }
    acs_lock_release(&methods->lock);
    return exec;
}

/* ------------------------------------------------------------------------------------------------------- launching */

acs_status acs_cuda_exec_issue(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value, CUresult filled)
{
    acs_cuda_methods *methods = self->methods;
    uint64_t key = exec->copy->key;
    CUresult result = filled == CUDA_SUCCESS ? acs_cuda_exec_launch(self, exec, slot, value) : filled;
    acs_lock_acquire(&methods->lock);
    if (result == CUDA_SUCCESS) {
        acs_graph_cache_launched(methods->cache, exec->copy, slot, value);
    } else {
        (void)acs_graph_cache_drop(methods->cache, exec->copy);
        exec->next_dead = methods->dead;
        methods->dead = exec;
    }
    acs_lock_release(&methods->lock);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    acs_cuda_graph_refuse(self, key, "launched", result);
    return ACS_NOT_READY;
}
