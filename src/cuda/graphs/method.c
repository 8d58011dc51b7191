/*
 * The choice of an issue method for a bundle: a cached graph of its shape, a graph of layers, GPU-side issue, or the
 * program's resident executor. Owns the state that the methods share; called by submit.c. It decides how often a graph
 * must be wanted before it is built, and refuses a bundle if no method fits. It never waits for the GPU.
 */
#include "cuda/graphs/graphs.h"
#include "base/tuning.h"
#include "bundles/cost_model.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- opening */

static bool make_methods(acs_cuda *self, acs_cuda_methods *methods, const acs_options *options)
{
    methods->known = calloc(self->slots, sizeof *methods->known);
    methods->marked = calloc(self->slots, sizeof *methods->marked);
    methods->watches = calloc(self->slots, sizeof *methods->watches);
    methods->nodes_most = (uint64_t)options->graph_nodes;
    methods->nodes_most -= methods->nodes_most / TUNE_GPU_NODES_PART; /* this part is for GPU-side issue */
    methods->earned = methods->nodes_most;
    return methods->known && methods->marked && methods->watches &&
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
    acs_cuda_rooms_free(self);
    acs_graph_cache_destroy(methods->cache);
    CUresult result = methods->words ? self->cu.cuMemFreeHost(methods->words) : CUDA_SUCCESS;
    acs_cuda_close_note(self, "memory of bundles", result);
    acs_cuda_types_fini(self);
    acs_lock_fini(&methods->lock);
    free(methods->known);
    free(methods->marked);
    free(methods->watches);
    acs_zeros_free(methods);
    self->methods = NULL;
}

bool acs_cuda_methods_start(acs_cuda *self)
{
    const unsigned mapped = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    const size_t bytes = self->slots * sizeof *self->methods->words;
    acs_cuda_methods *methods = self->methods;
    void *words = NULL;
    methods->head = acs_cuda_device_kernel(self, "acs_device_head");
    atomic_store_explicit(&methods->own, methods->head, memory_order_relaxed); /* relaxed: P follows, and before it a hint */
    methods->join = acs_cuda_device_kernel(self, "acs_device_join");
    methods->publish = acs_cuda_device_kernel(self, "acs_device_publish");
    if (methods->head && methods->join && methods->publish &&
        self->cu.cuMemHostAlloc(&words, bytes, mapped) == CUDA_SUCCESS) {
        methods->words = memset(words, 0, bytes);
        return true;
    }
    acs_log(ACS_LOG_INFO, "cuda: kernels are launched one by one: what bundles need cannot be had");
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- bundle */

/* Whether they differ by at most an eighth. */
static bool close_to(uint32_t a, uint32_t b)
{
    return (a > b ? a - b : b - a) * 8 <= b;
}

/*
 * Find the layers for a bundle. Choosing a template takes longer than all else here, so bundles like the one before
 * take its template.
 */
static bool find_layers(acs_cuda *self, const acs_dag *dag, acs_layer_template *shape, acs_layers *layers)
{
    acs_cuda_methods *methods = self->methods;
    acs_lock_acquire(&methods->lock);
    bool same = close_to(dag->levels, methods->shape_for[0]) && close_to(dag->width, methods->shape_for[1]) &&
                close_to(dag->ops, methods->shape_for[2]) && ++methods->shape_uses < TUNE_LAYERS_REUSES;
    *shape = methods->shape;
    acs_lock_release(&methods->lock);
    if (same && acs_layers_make(dag, shape, layers))
        return true;
    if (!acs_layers_choose(dag, &ACS_COST_MODEL_LAYERS(&self->costs), TUNE_LAYERS_NODES, shape, layers))
        return false;
    acs_lock_acquire(&methods->lock);
    methods->shape = *shape;
    methods->shape_for[0] = dag->levels;
    methods->shape_for[1] = dag->width;
    methods->shape_for[2] = dag->ops;
    methods->shape_uses = 0;
    acs_lock_release(&methods->lock);
    return true;
}

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
    acs_dag *dag;     /* made with `cost` when the first method needs it */
    bool dag_made;
    acs_cost_model_bundle cost;
    acs_layer_template shape; /* template of layers for it; levels 0: none */
    acs_layers *layers;
    acs_issue_method by; /* method tried last */
} bundle;

static uint64_t kernel_ns(acs_cuda *self, const acs_batch *batch)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        if (!batch->items[i].op)
            continue;
        acs_cuda_type *type = acs_cuda_type_find(self, batch->items[i].op->type);
        uint64_t ns = atomic_load_explicit(&type->kernel_ns, memory_order_relaxed); /* relaxed: an estimate */
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

static uint64_t threads(const acs_batch *batch)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_record *op = batch->items[i].op;
        if (op)
            sum += (uint64_t)op->grid.x * op->grid.y * op->grid.z * op->u.launch.block.x * op->u.launch.block.y *
                   op->u.launch.block.z;
    }
    return sum;
}

/*
 * Whether to look for layers now, which takes as long as all else together. After many bundles without a gain it is
 * done only now and then.
 */
static bool count_layers_turn(acs_cuda *self, const bundle *b)
{
    /* Relaxed, both: an estimate. */
    uint32_t losses = atomic_load_explicit(&self->methods->layers_losses, memory_order_relaxed);
    if (b->batch->method != ACS_METHOD_AUTO)
        return b->batch->method == ACS_METHOD_LAYERS;
    atomic_store_explicit(&self->methods->layers_losses,
                          losses + 1 < TUNE_LAYERS_LOSSES_MOST ? losses + 1 : TUNE_LAYERS_LOSSES, memory_order_relaxed);
    return losses < TUNE_LAYERS_LOSSES || losses % TUNE_LAYERS_TURNS == 0;
}

static const acs_dag *dag_of(acs_cuda *self, bundle *b)
{
    if (b->dag_made)
        return b->dag;
    acs_dag_make(b->batch, b->dag);
    b->dag_made = true;
    b->cost = (acs_cost_model_bundle){.costs = &self->costs,
                                      .ops = b->ops,
                                      .levels = b->dag->levels,
                                      .edges = b->dag->edges_used,
                                      .kernel_ns = kernel_ns(self, b->batch),
                                      .beside = b->batch->beside,
                                      .path = acs_dag_path(b->dag),
                                      .device_ns = b->batch->device_ns,
                                      .slots = b->batch->slots,
                                      .threads = threads(b->batch),
                                      .device_threads = (uint64_t)self->limits.sms * (uint64_t)self->limits.sm_threads};
    if (!count_layers_turn(self, b) || !find_layers(self, b->dag, &b->shape, b->layers))
        b->shape.levels = 0;
    return b->dag;
}

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

static unsigned watch(acs_cuda *self, const bundle *b, const placed *to, acs_issue_method method)
{
    const acs_batch *batch = b->batch;
    for (uint32_t i = 0; i < batch->items_used && self->times == ACS_CUPTI_KERNELS; i++)
        if (batch->items[i].op)
            acs_cupti_node(self->serial, batch->items[0].op->seq, to->exec->nodes[to->at[i]], batch->items[i].op->seq);
    return acs_cuda_watch_bundle(self, batch, method);
}

static acs_status by_layers(acs_cuda *self, bundle *b, uint32_t sightings)
{
    const acs_dag *dag = dag_of(self, b);
    const acs_layers *layers = b->layers;
    if (b->shape.levels == 0)
        return ACS_NOT_READY;
    uint32_t cells = acs_layers_cells(&b->shape), step = acs_cuda_publish_levels(&b->shape);
    const acs_cuda_wanted want = {.key = acs_layers_key(&b->shape),
                                  .nodes = acs_cuda_layers_nodes(&b->shape),
                                  .slot = b->slot,
                                  .sightings = sightings,
                                  .shape = &b->shape};
    acs_cuda_exec *exec = acs_cuda_exec_get(self, &want);
    if (!exec)
        return ACS_NOT_READY;
    placed to = {.exec = exec};
    for (uint32_t i = 0; i < dag->nodes; i++)
        to.at[i] = (uint16_t)(layers->level[i] * cells + layers->cell[i]);
    const unsigned watched = acs_cuda_watched(self) ? watch(self, b, &to, ACS_METHOD_LAYERS) : 0;
    acs_cuda_exec_begin(exec);
    const CUresult result = fill_bundle(self, b, exec, &to);
    for (uint32_t level = step - 1; level < layers->levels && level + 1 < b->shape.levels; level += step)
        if (layers->prefix[level])
            exec->publish[level / step] = b->value - b->ops + layers->prefix[level];
    acs_status status = acs_cuda_exec_issue(self, exec, b->slot, b->value, result);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    return status;
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

/* An executor needs no keys. */
static void count_ops(bundle *b)
{
    for (uint32_t i = 0; i < b->batch->items_used; i++) {
        fetch(b->batch, i + TUNE_BUNDLE_FETCH_OPS);
        if (b->batch->items[i].op) {
            fetch_fields(b->batch->items[i].op);
            b->ops++;
        }
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
    const unsigned watched = acs_cuda_watched(self) ? watch(self, b, &to, ACS_METHOD_REPLAY) : 0;
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
static acs_status by_replay(acs_cuda *self, bundle *b, uint32_t fixed_sightings, uint32_t sightings)
{
    acs_status status = by_shape(self, b, b->content, true, fixed_sightings);
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    return by_shape(self, b, b->key, false, sightings);
}

/* `gain_ns`: see acs_cuda_gpu_issue_issue. */
static acs_status by_gpu(acs_cuda *self, bundle *b, uint64_t gain_ns)
{
    return acs_cuda_gpu_issue_issue(self, b->batch, dag_of(self, b), gain_ns) ? ACS_OK : ACS_NOT_READY;
}

/* `executor` NULL: none fits. */
static acs_status by_resident(acs_cuda *self, bundle *b, struct acs_cuda_executor *executor)
{
    return executor && acs_cuda_resident_issue(self, executor, b->batch, dag_of(self, b)) ? ACS_OK : ACS_NOT_READY;
}

/* Issue by the method that ACS_ISSUE asks for. */
static acs_status by_asked(acs_cuda *self, bundle *b)
{
    switch (b->batch->method) {
    case ACS_METHOD_REPLAY:
        return by_replay(self, b, TUNE_ASKED_FIXED_SIGHTINGS, TUNE_ASKED_SIGHTINGS);
    case ACS_METHOD_LAYERS:
        return by_layers(self, b, 1);
    case ACS_METHOD_GPU:
        return by_gpu(self, b, 0);
    case ACS_METHOD_RESIDENT:
        return by_resident(self, b, acs_cuda_resident_executor(self, b->batch));
    default:
        return ACS_NOT_READY;
    }
}

/* ----------------------------------------------------------------------------------------------------------- choice */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How often a bundle must come until a graph pays that saves `without` - `with` ns. */
static uint32_t sightings(const acs_cuda *self, uint32_t nodes, bool fixed, uint64_t without, uint64_t with)
{
    return acs_cost_model_sightings(&self->costs, nodes, fixed, without > with ? without - with : 0);
}

/* Try layers and GPU-side issue, the cheaper one first, if they cost less than launches. */
static acs_status by_any_shape(acs_cuda *self, bundle *b, uint64_t launch, uint64_t layers, uint64_t gpu)
{
    acs_status status = ACS_NOT_READY;
    const uint32_t nodes = b->shape.levels ? acs_cuda_layers_nodes(&b->shape) : 0;
    const bool earned = acs_cost_model_queued(&b->cost);
    for (int turn = 0; turn < 2 && status == ACS_NOT_READY && !acs_cuda_fault(self); turn++) {
        bool by_device = (gpu < layers) == (turn == 0);
        if (by_device && gpu < launch) {
            status = by_gpu(self, b, !earned ? 0 : (gpu < layers ? lesser(launch, layers) : launch) - gpu);
            b->by = ACS_METHOD_GPU;
        } else if (!by_device && layers < launch) {
            status = by_layers(self, b, sightings(self, nodes, false, earned ? launch : lesser(launch, gpu), layers));
            b->by = ACS_METHOD_LAYERS;
        }
    }
    return status;
}

/* Issue by a replayed graph if there is one, or if enough was lost without it; else by the cheapest method. */
static acs_status by_choice(acs_cuda *self, bundle *b)
{
    acs_status status = by_replay(self, b, UINT32_MAX, UINT32_MAX);
    b->by = ACS_METHOD_REPLAY;
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    (void)dag_of(self, b);
    uint64_t launch = acs_cost_model_launch_ns(&b->cost);
    /* a profiler would not see its kernels */
    uint64_t gpu = self->profiled ? UINT64_MAX : acs_cost_model_gpu_ns(&b->cost);
    uint64_t layers = b->shape.levels ? acs_cost_model_layers_ns(&b->cost, &b->shape, b->layers->levels) : UINT64_MAX;
    struct acs_cuda_executor *executor = NULL;
    if (!self->profiled && atomic_load_explicit(&self->has_executors, memory_order_relaxed)) /* relaxed: a hint */
        executor = acs_cuda_resident_executor(self, b->batch);
    uint64_t resident = executor ? acs_cost_model_resident_ns(&b->cost) : UINT64_MAX;
    uint64_t best = lesser(lesser(launch, resident), lesser(layers, gpu));
    if (layers == best) /* relaxed: an estimate, and missing one does no harm */
        atomic_store_explicit(&self->methods->layers_losses,
                              atomic_load_explicit(&self->methods->layers_losses, memory_order_relaxed) / 2,
                              memory_order_relaxed);
    const uint32_t nodes = replay_nodes(b);
    const uint64_t without =
        acs_cost_model_queued(&b->cost) ? launch : best; /* methods that must be earned may never be ready */
    status = by_replay(self, b, sightings(self, nodes, true, without, acs_cost_model_replay_ns(&b->cost, true)),
                       sightings(self, nodes, false, without, acs_cost_model_replay_ns(&b->cost, false)));
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    if (resident == best && by_resident(self, b, executor) == ACS_OK) {
        b->by = ACS_METHOD_RESIDENT;
        return ACS_OK;
    }
    if (acs_cuda_fault(self))
        return ACS_NOT_READY;
    if (launch > layers || launch > gpu)
        return by_any_shape(self, b, launch, layers, gpu);
    acs_cuda_times_doubt(self, b->batch);
    return ACS_NOT_READY;
}

static uint32_t levels_of(const bundle *b)
{
    return b->by == ACS_METHOD_LAYERS ? b->layers->levels : b->cost.levels;
}

static uint64_t without_kernels(const bundle *b)
{
    acs_cost_model_bundle empty = b->cost;
    empty.kernel_ns = empty.device_ns = 0;
    return b->by == ACS_METHOD_LAYERS ? acs_cost_model_layers_ns(&empty, &b->shape, 0)
           : b->by == ACS_METHOD_GPU  ? acs_cost_model_gpu_ns(&empty)
           : b->by == ACS_METHOD_RESIDENT ? acs_cost_model_resident_ns(&empty)
                                       : acs_cost_model_replay_ns(&empty, false);
}

static void begin_times(acs_cuda *self, const bundle *b)
{
    const acs_cuda_issued issued = {.value = b->value,
                                    .levels = levels_of(b),
                                    .without_ns = without_kernels(b),
                                    .others_ns = b->by == ACS_METHOD_GPU ? acs_cost_model_gpu_others_ns(&b->cost) : 0};
    acs_cuda_times_begin(self, b->batch, &issued);
}

acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value)
{
    acs_dag dag;
    acs_layers layers;
    bundle b = {.batch = batch, .slot = slot, .value = value, .dag = &dag, .layers = &layers};
    if (!acs_cuda_has_code(self))
        return ACS_NOT_READY;
    bool any = batch->method == ACS_METHOD_AUTO;
    b.by = (acs_issue_method)batch->method;
    if (b.by == ACS_METHOD_RESIDENT)
        count_ops(&b);
    else
        compute_keys(&b);
    acs_status status = any ? by_choice(self, &b) : by_asked(self, &b);
    if (acs_cuda_fault(self))
        return ACS_ERR_DEVICE;
    if (status == ACS_OK) {
        batch->method = (uint8_t)b.by;
        if (b.dag_made)
            begin_times(self, &b);
    }
    return status;
}
