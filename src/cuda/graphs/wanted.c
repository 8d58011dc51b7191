/*
 * Cached graphs that are wanted: taken from the index, or planned, and built now or by the builder's thread. Decides
 * which graphs are worth building. Called by the issue methods in a scope.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"
#include "window/replay.h"

#include <stdlib.h>

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

static bool make_plan(const acs_cuda_wanted *want, acs_cuda_plan *plan)
{
    if (want->type) {
        acs_cuda_plan_op(want->type, plan);
        return true;
    }
    return want->replay ? plan_replay(want->replay, plan) : plan_bundle(want->batch, plan);
}

/* Plan and prepare the graph. NULL: no memory, or it cannot be planned. */
static acs_cuda_build *prepare(acs_cuda *self, const acs_cuda_wanted *want, uint64_t before)
{
    acs_cuda_build *build = malloc(sizeof *build);
    if (!build)
        return NULL;
    build->key = want->key;
    build->before = before;
    build->nodes = want->nodes;
    build->exec = NULL;
    if (make_plan(want, &build->plan)) {
        for (uint32_t i = 0; want->fixed && i < build->plan.nodes; i++)
            build->plan.node[i].fixed = true;
        build->exec = acs_cuda_exec_prepare(self, &build->plan, want->replay ? want->replay->ops : NULL);
    }
    if (build->exec && want->batch && !keep_shape(build->exec, want->batch)) {
        acs_cuda_exec_destroy(self, build->exec);
        build->exec = NULL;
    }
    if (!build->exec) {
        free(build);
        acs_cuda_graph_refuse(self, want->key, "planned", CUDA_ERROR_NOT_SUPPORTED);
        return NULL;
    }
    build->exec->replay_id = want->replay ? want->replay->shape->id : 0;
    for (uint32_t word = 0; want->replay && word < ACS_REPLAY_WORDS; word++)
        build->exec->shapes_own[word] = ~want->replay->differs[word];
    return build;
}

/*
 * Build the graph, or have it built: a replay comes again, and can wait for its graph. NULL: it is built elsewhere, or
 * cannot be had.
 */
static acs_cuda_exec *build(acs_cuda *self, const acs_cuda_wanted *want)
{
    acs_cuda_builder *builder = want->replay ? self->methods->builder : NULL;
    const uint64_t before = want->replay ? acs_cuda_graph_since(self, want->key) : UINT64_MAX;
    if (builder ? acs_cuda_builder_has(builder, want->key) || !acs_cuda_graph_may_build(self, want->nodes, before)
                : !acs_cuda_graph_room(self, want->nodes, before))
        return NULL;
    acs_cuda_build *build = prepare(self, want, before);
    if (!build || (builder && acs_cuda_builder_add(builder, build)))
        return NULL;
    acs_cuda_exec *exec = acs_cuda_exec_finish(self, build, self->streams[want->slot], false);
    free(build);
    return exec;
}

acs_cuda_exec *acs_cuda_exec_get(acs_cuda *self, const acs_cuda_wanted *want)
{
    bool more = false;
    acs_cuda_wanted again = *want;
    acs_cuda_exec *exec = acs_cuda_exec_find(self, want, &more);
    if (more)
        exec = build(self, want);
    if (exec || !more || acs_cuda_fault(self))
        return exec;
    again.sightings = UINT32_MAX; /* no copy can be built: take one that runs, to be launched behind itself */
    exec = acs_cuda_exec_find(self, &again, &more);
    again.key = want->older;
    return exec || !want->older ? exec : acs_cuda_exec_find(self, &again, &more);
}

bool acs_cuda_exec_comes(acs_cuda *self, const acs_cuda_wanted *want, uint32_t asked)
{
    bool more = false;
    if (acs_cuda_exec_exists(self, want->key))
        return true;
    if ((asked & (asked - 1)) || acs_cuda_fault(self)) /* to plan a graph takes as long as to launch some of its ops */
        return false;
    ACS_CUDA_SCOPE(self);
    acs_cuda_exec *exec = scope.entered == CUDA_SUCCESS ? acs_cuda_exec_find(self, want, &more) : NULL;
    exec = more ? build(self, want) : exec;
    if (exec)
        acs_cuda_exec_give(self, exec);
    return exec != NULL;
}
