/*
 * The index of the CUDA backend's cached graphs: finds a bundle's graph, decides which graphs are worth building,
 * evicts the one used longest ago. Called by graphs/method.c in a scope. It takes its lock for the index only, never
 * across a call of the driver. It never fills a graph.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"
#include "window/replay.h"

#include <stdlib.h>
#include <string.h>

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

/* The key's graph failed. If the error is not fatal, the key is not tried again. */
static void refuse_key(acs_cuda *self, uint64_t key, const char *what, CUresult result)
{
    acs_cuda_methods *methods = self->methods;
    if (acs_cuda_note(self, result))
        return;
    acs_lock_acquire(&methods->lock);
    methods->bad[methods->bad_next++ % (sizeof methods->bad / sizeof methods->bad[0])] = key;
    methods->failures++;
    acs_lock_release(&methods->lock);
    acs_log(ACS_LOG_INFO, "cuda: a kept graph could not be %s: %s; its kernels are launched one by one", what,
            acs_cuda_text((int)result));
}

/* Give a taken copy back unchanged: its latest launch may still run. */
static void put_back_locked(acs_graph_cache *cache, acs_cuda_exec *exec)
{
    uint32_t latest = (exec->next + TUNE_GRAPH_TABLES - 1) % TUNE_GRAPH_TABLES;
    acs_graph_cache_launched(cache, exec->copy, exec->launches[latest].slot, exec->launches[latest].value);
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

/* Whether one more graph fits into the budget; graphs are evicted for it. */
static bool make_graph_room(acs_cuda *self, uint32_t nodes)
{
    acs_cuda_methods *methods = self->methods;
    void *victim;
    acs_lock_acquire(&methods->lock);
    progress_tell_locked(self); /* a key without copies did not need to know which are free */
    while ((victim = acs_graph_cache_evict(methods->cache, nodes)) != NULL) {
        acs_lock_release(&methods->lock);
        acs_cuda_exec_destroy(self, victim);
        acs_lock_acquire(&methods->lock);
    }
    bool room = acs_graph_cache_has_room(methods->cache, nodes);
    acs_lock_release(&methods->lock);
    return room;
}

/* --------------------------------------------------------------------------------------------------------- shapes */

/* Write one word for each item and each of its edges. @return the number of words. `words` NULL: only count. */
static size_t write_shape(const acs_batch *batch, uint32_t *words)
{
    size_t used = 0;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        if (words)
            words[used] = (item->op ? item->op->type : 0) << 16 | item->edge_count;
        used++;
        for (uint32_t e = 0; e < item->edge_count; e++, used++)
            if (words)
                words[used] = batch->edges[item->first_edge + e];
    }
    return used;
}

/* Whether the graph has the bundle's shape: by chance the keys of two bundles may be equal. */
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

static bool keep_shape(acs_cuda_exec *exec, const acs_batch *batch)
{
    exec->shape_words = write_shape(batch, NULL);
    exec->shape = malloc(exec->shape_words * sizeof exec->shape[0]);
    if (exec->shape)
        (void)write_shape(batch, exec->shape);
    return exec->shape != NULL;
}

/* -------------------------------------------------------------------------------------------------------- building */

static bool plan_bundle(const acs_batch *batch, acs_cuda_plan *plan)
{
    acs_dag dag;
    acs_dag_make(batch, &dag);
    return acs_cuda_plan_dag(&dag, plan);
}

/* The plan of all ops of a replay's shape, also those that this replay leaves out: op i is at place i. */
static bool plan_replay(acs_replay *replay, acs_cuda_plan *plan)
{
    acs_batch *batch = malloc(sizeof *batch);
    const bool fits = batch && acs_replay_batch(replay, 0, replay->shape->ops, true, batch) && plan_bundle(batch, plan);
    free(batch);
    for (uint32_t i = 0, at = 0; fits && i < plan->nodes; i++)
        if (plan->node[i].kind == ACS_CUDA_NODE_OP) {
            plan->node[i].fixed = !(replay->varies[at / 64] >> at % 64 & 1);
            at++;
        }
    return fits;
}

static void fix_all(acs_cuda_plan *plan)
{
    for (uint32_t i = 0; i < plan->nodes; i++)
        plan->node[i].fixed = true;
}

static bool make_plan(const acs_cuda_wanted *want, acs_cuda_plan *plan)
{
    return want->replay  ? plan_replay(want->replay, plan)
           : want->batch ? plan_bundle(want->batch, plan)
                         : acs_cuda_plan_layers(want->shape, plan);
}

/* Plan and prepare the graph. NULL: no memory, or it cannot be planned. */
static acs_cuda_build *prepare(acs_cuda *self, const acs_cuda_wanted *want)
{
    acs_cuda_build *build = malloc(sizeof *build);
    if (!build)
        return NULL;
    build->key = want->key;
    build->nodes = want->nodes;
    build->exec = NULL;
    if (make_plan(want, &build->plan)) {
        if (want->fixed)
            fix_all(&build->plan);
        build->exec = acs_cuda_exec_prepare(self, &build->plan, want->replay ? want->replay->ops : NULL);
    }
    if (build->exec && want->batch && !keep_shape(build->exec, want->batch)) {
        acs_cuda_exec_destroy(self, build->exec);
        build->exec = NULL;
    }
    if (!build->exec) {
        free(build);
        refuse_key(self, want->key, "planned", CUDA_ERROR_NOT_SUPPORTED);
        return NULL;
    }
    build->exec->replay_id = want->replay ? want->replay->shape->id : 0;
    for (uint32_t word = 0; want->replay && word < ACS_REPLAY_WORDS; word++)
        build->exec->shapes_own[word] = ~want->replay->differs[word];
    return build;
}

acs_cuda_exec *acs_cuda_exec_finish(acs_cuda *self, acs_cuda_build *build, CUstream stream)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_exec *exec = build->exec;
    const bool room = make_graph_room(self, build->nodes);
    const CUresult result = room ? acs_cuda_exec_build(self, exec, &build->plan, stream) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        refuse_key(self, build->key, "built", result);
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
    acs_lock_acquire(&self->methods->lock);
    acs_graph_cache_launched(self->methods->cache, exec->copy, 0, 0);
    acs_lock_release(&self->methods->lock);
}

/*
 * Build the graph, or have it built: a replay comes again, and can wait for its graph. NULL: it is built elsewhere, or
 * cannot be had.
 */
static acs_cuda_exec *build(acs_cuda *self, const acs_cuda_wanted *want)
{
    acs_cuda_builder *builder = want->replay ? self->methods->builder : NULL;
    if ((builder && acs_cuda_builder_has(builder, want->key)) || !make_graph_room(self, want->nodes))
        return NULL;
    acs_cuda_build *build = prepare(self, want);
    if (!build || (builder && acs_cuda_builder_add(builder, build)))
        return NULL;
    acs_cuda_exec *exec = acs_cuda_exec_finish(self, build, self->streams[want->slot]);
    free(build);
    return exec;
}

/* Whether another copy may be made, since one that runs cannot be launched beside itself. */
static bool may_copy_locked(const acs_cuda_methods *methods, const acs_cuda_wanted *want)
{
    uint32_t copies = acs_graph_copies(methods->cache, want->key, NULL);
    return copies == 0 || (copies < TUNE_GRAPH_COPIES_MOST &&
                           (uint64_t)(copies + 1) * want->nodes * TUNE_GRAPH_COPIES_PART <= methods->nodes_most);
}

/* Find a copy. `*more`: none was found, and one may be built. */
static acs_cuda_exec *find_exec(acs_cuda *self, const acs_cuda_wanted *want, bool *more)
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
    const uint64_t replay_id = want->replay ? want->replay->shape->id : 0;
    if (exec && (exec->replay_id != replay_id || (want->batch && !same_shape(exec, want->batch)))) {
        put_back_locked(methods->cache, exec);
        exec = NULL;
    }
    acs_lock_release(&methods->lock);
    return exec;
}

acs_cuda_exec *acs_cuda_exec_get(acs_cuda *self, const acs_cuda_wanted *want)
{
    bool more = false;
    acs_cuda_wanted again = *want;
    acs_cuda_exec *exec = find_exec(self, want, &more);
    if (more)
        exec = build(self, want);
    if (exec || !more || acs_cuda_fault(self))
        return exec;
    again.sightings = UINT32_MAX; /* no copy can be built: take one that runs, to be launched behind itself */
    return find_exec(self, &again, &more);
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
    refuse_key(self, key, "launched", result);
    return ACS_NOT_READY;
}
