/*
 * The issue method of a bundle: the program's resident executor, or a cached graph of its shape. Owns the state that the
 * methods share; called by submit.c. It refuses a bundle if no method fits. It never waits for the GPU.
 */
#include "cuda/graphs/graphs.h"
#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- opening */

static bool make_methods(acs_cuda *self, acs_cuda_methods *methods, const acs_options *options)
{
    methods->known = calloc(self->slots, sizeof *methods->known);
    methods->marked = calloc(self->slots, sizeof *methods->marked);
    methods->nodes_most = (uint64_t)options->graph_nodes;
    methods->earned = methods->nodes_most;
    return methods->known && methods->marked &&
           acs_graph_cache_create(methods->nodes_most, self->slots, &methods->cache) == ACS_OK;
}

void acs_cuda_methods_init(acs_cuda *self, const acs_options *options)
{
    acs_cuda_methods *methods = acs_zeros(1, sizeof *methods);
    if (!methods || acs_lock_init(&methods->lock, ACS_RANK_BACKEND) != 0) {
        acs_zeros_free(methods);
        return;
    }
    self->methods = methods;
    if (make_methods(self, methods, options)) {
        methods->builder = self->threads ? acs_cuda_builder_create(self) : NULL;
        self->base.replays_later = methods->builder != NULL; /* else the thread that issues builds */
        self->base.bundle_most = TUNE_BUNDLE_MOST;
        return;
    }
    acs_log(ACS_LOG_INFO, "cuda: kernels are launched one by one: no memory for bundles");
    acs_cuda_methods_fini(self);
}

void acs_cuda_methods_fini(acs_cuda *self)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_exec *exec;
    if (!methods)
        return;
    acs_cuda_builder_destroy(methods->builder);
    while (methods->cache && (exec = acs_graph_cache_drain(methods->cache)) != NULL)
        acs_cuda_exec_destroy(self, exec);
    while ((exec = methods->dead) != NULL) {
        methods->dead = exec->next_dead;
        acs_cuda_exec_destroy(self, exec);
    }
    if (methods->words_room)
        acs_cuda_room_release(methods, methods->words_room);
    acs_cuda_rooms_free(self);
    acs_graph_cache_destroy(methods->cache);
    acs_cuda_types_fini(self);
    acs_lock_fini(&methods->lock);
    free(methods->known);
    free(methods->marked);
    acs_zeros_free(methods);
    self->methods = NULL;
}

bool acs_cuda_methods_start(acs_cuda *self)
{
    const size_t bytes = self->slots * sizeof *self->methods->words;
    acs_cuda_methods *methods = self->methods;
    methods->head = acs_cuda_device_kernel(self, "acs_device_head");
    atomic_store_explicit(&methods->own, methods->head, memory_order_relaxed); /* relaxed: P follows, and before it a hint */
    methods->join = acs_cuda_device_kernel(self, "acs_device_join");
    methods->publish = acs_cuda_device_kernel(self, "acs_device_publish");
    /* Pinned memory takes a millisecond to get: the words are in the slab that the first graph needs. */
    if (methods->head && methods->join && methods->publish &&
        acs_cuda_room_acquire(self, bytes, &methods->words_room) == CUDA_SUCCESS) {
        methods->words = memset(methods->words_room->tables, 0, bytes);
        return true;
    }
    acs_log(ACS_LOG_INFO, "cuda: kernels are launched one by one: what bundles need cannot be had");
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- bundle */

/* The bundle that is being issued. */
typedef struct bundle {
    const acs_batch *batch;
    int slot;
    uint64_t value; /* value of its last op */
    uint32_t ops;
    /* hash of its types and edges as they came: cheaper than acs_dag.key, and as good for bundles that recur */
    uint64_t key;
    uint64_t content; /* hash of these and all arguments */
    uint8_t flags;    /* ACS_RECORD_ flags that its ops have */
} bundle;

/* ---------------------------------------------------------------------------------------------------- issue methods */

/* The bundle's ops in a cached graph: where item i is. */
typedef struct placed {
    const acs_cuda_exec *exec;
    uint16_t at[ACS_BATCH_ITEMS];
} placed;

static uint64_t item_node(const void *user, uint32_t item)
{
    const placed *to = user;
    return acs_cuda_exec_node(to->exec, to->at[item]);
}

/* Fill the bundle's ops into the graph. */
static CUresult fill_bundle(acs_cuda *self, const bundle *b, acs_cuda_exec *exec, const placed *to)
{
    const acs_batch *batch = b->batch;
    const bool decisions = b->flags & ACS_RECORD_DECISION;
    acs_cuda_links links;
    CUresult result = CUDA_SUCCESS;
    if (ACS_UNLIKELY(decisions))
        acs_cuda_links_of(batch, &links);
    for (uint32_t i = 0; i < batch->items_used && result == CUDA_SUCCESS; i++) {
        if (!batch->items[i].op)
            continue;
        acs_decision room;
        acs_cuda_contents contents = acs_cuda_contents_of(batch->items[i].op);
        if (ACS_UNLIKELY(decisions))
            acs_cuda_links_apply(&links, i, batch->items[i].op, item_node, to, &room, &contents);
        result = acs_cuda_exec_set(self, exec, to->at[i], &contents);
    }
    return result;
}

static unsigned watch(acs_cuda *self, const bundle *b, const placed *to)
{
    const acs_batch *batch = b->batch;
    for (uint32_t i = 0; i < batch->items_used && self->times == ACS_CUPTI_KERNELS; i++)
        if (batch->items[i].op)
            acs_cupti_node(self->serial, batch->items[0].op->seq, to->exec->nodes[to->at[i]], batch->items[i].op->seq);
    return acs_cuda_watch_bundle(self, batch, ACS_METHOD_REPLAY);
}

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

/*
 * Prefetch the head of a record that another CPU has written; fetch_fields does so for the fields that the methods
 * read.
 */
static void fetch(const acs_batch *batch, uint32_t item)
{
    const acs_record *op = item < batch->items_used ? batch->items[item].op : NULL;
    if (op)
        __builtin_prefetch(op);
}

static void fetch_fields(const acs_record *op)
{
    __builtin_prefetch(&op->grid);
    __builtin_prefetch(op->arg_bytes);
    __builtin_prefetch(op->arg_bytes + ACS_CACHE_LINE);
}

static void compute_keys(bundle *b)
{
    const acs_batch *batch = b->batch;
    uint64_t key = batch->items_used, content = 0;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        fetch(batch, i + TUNE_BUNDLE_FETCH_OPS);
        key = mix(key, (uint64_t)(item->op ? item->op->type : 0) << 16 | item->edge_count);
        for (uint32_t e = 0; e < item->edge_count; e++)
            key = mix(key, batch->edges[item->first_edge + e]);
        if (!item->op)
            continue;
        fetch_fields(item->op);
        content = mix(content, item->op->content);
        b->flags |= item->op->flags;
        b->ops++;
    }
    b->key = key;
    b->content = mix(key, content);
}

/* For an executor, which needs no keys. */
static void fetch_ops(const acs_batch *batch)
{
    for (uint32_t i = 0; i < batch->items_used; i++) {
        fetch(batch, i + TUNE_BUNDLE_FETCH_OPS);
        if (batch->items[i].op)
            fetch_fields(batch->items[i].op);
    }
}

static uint32_t replay_nodes(const bundle *b)
{
    return b->batch->items_used + b->ops / TUNE_GRAPH_PUBLISH_OPS + 1;
}

/* Issue by a graph of the bundle's own shape, if there is one or it is built now. */
static acs_status by_shape(acs_cuda *self, const bundle *b, uint64_t key, bool fixed, uint32_t sightings)
{
    const acs_cuda_wanted want = {.key = key, .nodes = replay_nodes(b), .slot = b->slot, .sightings = sightings,
                                  .fixed = fixed, .batch = b->batch};
    acs_cuda_exec *exec = acs_cuda_exec_get(self, &want);
    uint16_t op = 0;
    if (!exec)
        return ACS_NOT_READY;
    placed to = {.exec = exec};
    for (uint32_t i = 0; i < b->batch->items_used; i++)
        if (b->batch->items[i].op)
            to.at[i] = op++;
    const unsigned watched = acs_cuda_watched(self) ? watch(self, b, &to) : 0;
    acs_cuda_exec_begin(exec);
    const CUresult result = fill_bundle(self, b, exec, &to);
    for (uint32_t ops = TUNE_GRAPH_PUBLISH_OPS, p = 0; ops < b->ops; ops += TUNE_GRAPH_PUBLISH_OPS)
        exec->publish[p++] = b->value - b->ops + ops;
    acs_status status = acs_cuda_exec_issue(self, exec, b->slot, b->value, result);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    return status;
}

/*
 * A graph for equal arguments has fixed nodes, which run faster; a graph for the shape has nodes that the device sets.
 */
static acs_status by_replay(acs_cuda *self, acs_batch *batch, int slot, uint64_t value)
{
    bundle b = {.batch = batch, .slot = slot, .value = value};
    compute_keys(&b);
    acs_status status = by_shape(self, &b, b.content, true, TUNE_BUNDLE_FIXED_SIGHTINGS);
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    return by_shape(self, &b, b.key, false, TUNE_BUNDLE_SIGHTINGS);
}

static acs_status by_resident(acs_cuda *self, const acs_batch *batch)
{
    acs_dag dag;
    fetch_ops(batch);
    struct acs_cuda_executor *executor = acs_cuda_resident_executor(self, batch);
    if (!executor)
        return ACS_NOT_READY;
    acs_dag_make(batch, &dag);
    return acs_cuda_resident_issue(self, executor, batch, &dag) ? ACS_OK : ACS_NOT_READY;
}

/*
 * By the method that ACS_ISSUE asks for. `auto`: by an executor that has all bodies; on several devices, where repeats
 * make no replays, else by a graph. A profiler would not see what an executor runs.
 */
acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value)
{
    acs_status status = ACS_NOT_READY;
    const bool any = batch->method == ACS_METHOD_AUTO;
    /* relaxed: a hint */
    const bool bodies = !self->profiled && atomic_load_explicit(&self->has_executors, memory_order_relaxed);
    if (!acs_cuda_has_code(self))
        return ACS_NOT_READY;
    if (batch->method == ACS_METHOD_RESIDENT || (any && bodies)) {
        status = by_resident(self, batch);
        batch->method = status == ACS_OK ? ACS_METHOD_RESIDENT : batch->method;
    }
    if (status == ACS_NOT_READY && !acs_cuda_fault(self) &&
        (batch->method == ACS_METHOD_REPLAY || (any && self->members[0]->base.devices > 1))) {
        status = by_replay(self, batch, slot, value);
        batch->method = status == ACS_OK ? ACS_METHOD_REPLAY : batch->method;
    }
    return acs_cuda_fault(self) ? ACS_ERR_DEVICE : status;
}
