/*
 * How the CUDA backend issues a bundle: by a kept graph of its very shape, or by one of layers. Owns the index of kept
 * graphs, and what is known of each slot's progress; called by submit and poll. It decides which graphs are worth building,
 * and hands a bundle back where none fits; the GPU is never waited for.
 */
#include "backend/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUNDLE_MOST = 256,
    LAYERS_USES = 16,       /* bundles that resemble each other and go into the size chosen for the first */
    LAYERS_NODES = 1024,    /* of one graph of layers */
    LAUNCH_NS = 2600,       /* what an op costs without a bundle */
    GPU_BUNDLE_NS = 15000,
    GPU_LEVEL_NS = 4200,
    GPU_OP_NS = 540,
    LAYERS_SIGHTINGS = 3,   /* a graph is built when it was wanted so often: that takes some 10 us for each of its nodes */
    REPLAY_SIGHTINGS = 16,
    FIXED_SIGHTINGS = 32,   /* of a bundle with the very same arguments */
    ASKED_SIGHTINGS = 2     /* where nothing else will do */
};

/* On an H200: a level is a fan-out, its barrier and a fan-in. */
static const acs_layout_costs LAYERS_COSTS = {2000, 330, 90};

/* ------------------------------------------------------------------------------------------------------------ opening */

static bool words_init(acs_cuda *self, acs_cuda_vehicles *v)
{
    void *words = NULL;
    size_t bytes = self->slots * sizeof *v->words;
    if (self->cu.cuMemHostAlloc(&words, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS)
        return false;
    memset(words, 0, bytes);
    v->words = words;
    v->known = calloc(self->slots, sizeof *v->known);
    return v->known != NULL;
}

static bool vehicles_make(acs_cuda *self, acs_cuda_vehicles *v, const acs_options *options)
{
    v->head = acs_cuda_device_kernel(self, "acs_device_head");
    v->join = acs_cuda_device_kernel(self, "acs_device_join");
    v->publish = acs_cuda_device_kernel(self, "acs_device_publish");
    if (!v->head || !v->join || !v->publish || !words_init(self, v))
        return false;
    uint64_t nodes = (uint64_t)options->graph_nodes;
    nodes -= nodes / ACS_CUDA_CELLS_SHARE; /* kept by GPU-side issue */
    return acs_kept_create(nodes, self->slots, &v->kept) == ACS_OK;
}

void acs_cuda_vehicles_init(acs_cuda *self, const acs_options *options)
{
    acs_cuda_vehicles *v = calloc(1, sizeof *v);
    if (!v || acs_lock_init(&v->lock, ACS_RANK_BACKEND) != 0) {
        free(v);
        return;
    }
    self->vehicles = v;
    if (vehicles_make(self, v, options)) {
        self->base.bundle_most = BUNDLE_MOST;
        return;
    }
    acs_log(ACS_LOG_INFO, "cuda: kernels are launched one by one: what bundles need cannot be had");
    acs_cuda_vehicles_fini(self);
}

void acs_cuda_vehicles_fini(acs_cuda *self)
{
    acs_cuda_vehicles *v = self->vehicles;
    acs_cuda_exec *exec;
    if (!v)
        return;
    while (v->kept && (exec = acs_kept_drain(v->kept)) != NULL)
        acs_cuda_exec_destroy(self, exec);
    while ((exec = v->dead) != NULL) {
        v->dead = exec->next_dead;
        acs_cuda_exec_destroy(self, exec);
    }
    while (v->rooms) {
        acs_cuda_room *room = v->rooms;
        v->rooms = room->next;
        acs_cuda_room_free(self, room);
    }
    acs_kept_destroy(v->kept);
    CUresult result = v->words ? self->cu.cuMemFreeHost(v->words) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
        acs_log(ACS_LOG_WARN, "cuda: close: memory of bundles: %s", acs_cuda_text((int)result));
    acs_cuda_types_fini(self);
    acs_lock_fini(&v->lock);
    free(v->known);
    free(v);
    self->vehicles = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- progress */

/* Acquire, both: what the ops wrote to host memory comes before the value that tells of their end. */
uint64_t acs_cuda_completed(const acs_cuda *self, int slot)
{
    uint64_t word = atomic_load_explicit(&self->vehicles->words[slot].value, memory_order_acquire);
    uint64_t known = atomic_load_explicit(&self->vehicles->known[slot], memory_order_acquire);
    return word > known ? word : known;
}

/* One thread polls a slot at a time, so that nothing known is lost between the two. */
uint64_t acs_cuda_progress(acs_cuda *self, int slot, uint64_t completed)
{
    acs_cuda_vehicles *v = self->vehicles;
    if (!v)
        return completed;
    if (completed > atomic_load_explicit(&v->known[slot], memory_order_relaxed)) /* relaxed: only compared */
        atomic_store_explicit(&v->known[slot], completed, memory_order_release);
    uint64_t word = atomic_load_explicit(&v->words[slot].value, memory_order_acquire); /* as in acs_cuda_completed */
    return word > completed ? word : completed;
}

/* ---------------------------------------------------------------------------------------------------------- vehicles */

/* Within an eighth. */
static bool close_to(uint32_t a, uint32_t b)
{
    return (a > b ? a - b : b - a) * 8 <= b;
}

/* Choosing a size takes longer than all else here: bundles like the one before take its size. */
static bool layers_find(acs_cuda *self, const acs_dag *dag, acs_layout_template *shape, acs_layout *layout)
{
    acs_cuda_vehicles *v = self->vehicles;
    acs_lock_acquire(&v->lock);
    bool same = close_to(dag->levels, v->layers_for[0]) && close_to(dag->width, v->layers_for[1]) &&
                close_to(dag->ops, v->layers_for[2]) && ++v->layers_uses < LAYERS_USES;
    *shape = v->layers;
    acs_lock_release(&v->lock);
    if (same && acs_layout_make(dag, shape, layout))
        return true;
    if (!acs_layout_choose(dag, &LAYERS_COSTS, LAYERS_NODES, shape, layout))
        return false;
    acs_lock_acquire(&v->lock);
    v->layers = *shape;
    v->layers_for[0] = dag->levels;
    v->layers_for[1] = dag->width;
    v->layers_for[2] = dag->ops;
    v->layers_uses = 0;
    acs_lock_release(&v->lock);
    return true;
}

/* What is to be issued. */
typedef struct bundle {
    const acs_batch *batch;
    int slot;
    uint64_t value; /* of its last op */
    uint32_t ops;
    uint64_t key;   /* of its types and edges as they came: cheaper than acs_dag.key, and as good for what recurs */
    acs_dag *dag;   /* made when the first vehicle wants it */
    bool dag_made;
} bundle;

static const acs_dag *dag_of(bundle *b)
{
    if (!b->dag_made)
        acs_dag_make(b->batch, b->dag);
    b->dag_made = true;
    return b->dag;
}

static acs_status by_layers(acs_cuda *self, bundle *b)
{
    acs_layout_template shape;
    acs_layout layout;
    const acs_dag *dag = dag_of(b);
    if (!layers_find(self, dag, &shape, &layout))
        return ACS_NOT_READY;
    uint32_t cells = acs_layout_cells(&shape);
    bool asked = b->batch->vehicle == ACS_VEHICLE_LAYERS;
    if (!asked && acs_layout_cost(&shape, &LAYERS_COSTS, b->ops) > (uint64_t)b->ops * LAUNCH_NS)
        return ACS_NOT_READY;
    const acs_cuda_wanted want = {.key = acs_layout_key(&shape), .nodes = shape.levels * (cells + 1), .slot = b->slot,
                                  .sightings = asked ? 1 : LAYERS_SIGHTINGS, .shape = &shape};
    acs_cuda_exec *exec = acs_cuda_exec_get(self, &want);
    if (!exec)
        return ACS_NOT_READY;
    CUresult result = CUDA_SUCCESS;
    acs_cuda_exec_begin(exec);
    for (uint32_t i = 0; i < dag->nodes && result == CUDA_SUCCESS; i++)
        if (dag->node[i].type)
            result = acs_cuda_exec_set(self, exec, layout.level[i] * cells + layout.cell[i], b->batch->items[i].op);
    for (uint32_t level = 0; level < layout.levels && level + 1 < shape.levels; level++)
        if (layout.prefix[level])
            exec->publish[level] = b->value - b->ops + layout.prefix[level];
    return acs_cuda_exec_issue(self, exec, b->slot, b->value, result);
}

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

static uint64_t shape_key(const acs_batch *batch, uint32_t *ops)
{
    uint64_t key = batch->items_used;
    *ops = 0;
    for (uint32_t i = 0; i < batch->items_used; i++) {
        const acs_item *item = &batch->items[i];
        *ops += item->op != NULL;
        key = mix(key, (uint64_t)(item->op ? item->op->u.launch.type : 0) << 16 | item->edge_count);
        for (uint32_t e = 0; e < item->edge_count; e++)
            key = mix(key, batch->edges[item->first_edge + e]);
    }
    return key;
}

static uint64_t args_key(uint64_t key, const acs_record *op)
{
    for (uint32_t a = 0; a < op->arg_count; a++) {
        const unsigned char *bytes = op->arg_bytes + op->args[a].offset;
        for (uint32_t at = 0; at < op->args[a].size; at += 8) {
            uint64_t word = 0;
            uint32_t left = op->args[a].size - at;
            memcpy(&word, bytes + at, left >= 8 ? 8 : left);
            key = mix(key, word);
        }
    }
    return key;
}

/* The shape together with all arguments. */
static uint64_t content_key(const bundle *b)
{
    uint64_t key = b->key;
    for (uint32_t i = 0; i < b->batch->items_used; i++) {
        const acs_record *op = b->batch->items[i].op;
        if (!op)
            continue;
        acs_dim3 grid = op->u.launch.grid;
        key = args_key(mix(key, grid.x ^ (uint64_t)grid.y << 24 ^ (uint64_t)grid.z << 44), op);
    }
    return key;
}

/* By a graph of the bundle's own shape, if there is one. */
static acs_status by_shape(acs_cuda *self, const bundle *b, uint64_t key, bool fixed, uint32_t sightings)
{
    const acs_cuda_wanted want = {.key = key, .nodes = b->batch->items_used + b->ops / ACS_CUDA_PUBLISH_OPS + 1,
                                  .slot = b->slot, .sightings = sightings, .fixed = fixed, .batch = b->batch};
    acs_cuda_exec *exec = acs_cuda_exec_get(self, &want);
    uint32_t op = 0;
    CUresult result = CUDA_SUCCESS;
    if (!exec)
        return ACS_NOT_READY;
    acs_cuda_exec_begin(exec);
    for (uint32_t i = 0; i < b->batch->items_used && result == CUDA_SUCCESS; i++)
        if (b->batch->items[i].op)
            result = acs_cuda_exec_set(self, exec, op++, b->batch->items[i].op);
    for (uint32_t ops = ACS_CUDA_PUBLISH_OPS, p = 0; ops < b->ops; ops += ACS_CUDA_PUBLISH_OPS)
        exec->publish[p++] = b->value - b->ops + ops;
    return acs_cuda_exec_issue(self, exec, b->slot, b->value, result);
}

/* What recurs with all its arguments has fixed nodes, which run faster; what recurs in shape has nodes that are set. */
static acs_status by_replay(acs_cuda *self, bundle *b)
{
    bool asked = b->batch->vehicle == ACS_VEHICLE_REPLAY;
    acs_status status = by_shape(self, b, content_key(b), true, FIXED_SIGHTINGS);
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    return by_shape(self, b, b->key, false, asked ? ASKED_SIGHTINGS : REPLAY_SIGHTINGS);
}

/* The host sets what differs. Never chosen by itself: the device does that faster, and the host has enough to do. */
static acs_status by_graph(acs_cuda *self, bundle *b)
{
    return by_shape(self, b, ~b->key, true, ASKED_SIGHTINGS);
}

/* On an H200: a bundle's start and end; a level's launches and releases; an op, two kernels to the GPU's front end. */
static bool gpu_pays(const acs_dag *dag)
{
    return GPU_BUNDLE_NS + dag->levels * (uint64_t)GPU_LEVEL_NS + dag->ops * (uint64_t)GPU_OP_NS <
           dag->ops * (uint64_t)LAUNCH_NS;
}

static acs_status by_gpu(acs_cuda *self, bundle *b)
{
    const acs_dag *dag = dag_of(b);
    if (b->batch->vehicle != ACS_VEHICLE_GPU && !gpu_pays(dag))
        return ACS_NOT_READY;
    return acs_cuda_window_issue(self, b->batch, dag) ? ACS_OK : ACS_NOT_READY;
}

static bool is_wanted(acs_vehicle wanted, acs_vehicle vehicle)
{
    return wanted == vehicle || (wanted == ACS_VEHICLE_AUTO && vehicle != ACS_VEHICLE_GRAPH);
}

acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value)
{
    static const struct {
        acs_vehicle vehicle;
        acs_status (*issue)(acs_cuda *self, bundle *b);
    } vehicles[] = {{ACS_VEHICLE_REPLAY, by_replay},
                    {ACS_VEHICLE_LAYERS, by_layers},
                    {ACS_VEHICLE_GPU, by_gpu},
                    {ACS_VEHICLE_GRAPH, by_graph}};
    acs_dag dag;
    bundle b = {.batch = batch, .slot = slot, .value = value, .dag = &dag};
    acs_vehicle wanted = (acs_vehicle)batch->vehicle;
    if (!self->vehicles)
        return ACS_NOT_READY;
    b.key = shape_key(batch, &b.ops);
    for (uint32_t i = 0; i < sizeof vehicles / sizeof vehicles[0] && !acs_cuda_fault(self); i++) {
        acs_status status = is_wanted(wanted, vehicles[i].vehicle) ? vehicles[i].issue(self, &b) : ACS_NOT_READY;
        if (status == ACS_OK)
            batch->vehicle = (uint8_t)vehicles[i].vehicle;
        if (status != ACS_NOT_READY)
            return status;
    }
    return acs_cuda_fault(self) ? ACS_ERR_DEVICE : ACS_NOT_READY;
}
