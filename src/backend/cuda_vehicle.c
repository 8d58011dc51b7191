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
    COPIES_MOST = 4,        /* of one graph */
    FAILURES_MOST = 16,     /* then no bundle is taken any more */
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
    return acs_cuda_completed(self, slot);
}

static void progress_tell_locked(acs_cuda *self)
{
    for (uint32_t slot = 0; slot < self->slots; slot++)
        acs_kept_completed(self->vehicles->kept, (int)slot, acs_cuda_completed(self, (int)slot));
}

/* --------------------------------------------------------------------------------------------------------- the index */

/* What is wanted of the index. */
typedef struct wanted {
    uint64_t key;
    uint32_t nodes;
    int slot;
    uint32_t sightings; /* from which on it is built */
    bool fixed;         /* changed by the host */
    const acs_dag *dag; /* of a replay */
    const acs_layout_template *shape; /* of layers */
} wanted;

static bool is_bad_locked(const acs_cuda_vehicles *v, uint64_t key)
{
    for (uint32_t i = 0; i < sizeof v->bad / sizeof v->bad[0]; i++)
        if (v->bad[i] == key)
            return true;
    return false;
}

/* Nothing fatal, but not worth another attempt. */
static void refuse_key(acs_cuda *self, uint64_t key, const char *what, CUresult result)
{
    acs_cuda_vehicles *v = self->vehicles;
    if (acs_cuda_note(self, result))
        return;
    acs_lock_acquire(&v->lock);
    v->bad[v->bad_next++ % (sizeof v->bad / sizeof v->bad[0])] = key;
    v->failures++;
    acs_lock_release(&v->lock);
    acs_log(ACS_LOG_INFO, "cuda: a kept graph could not be %s: %s; its kernels are launched one by one", what,
            acs_cuda_text((int)result));
}

/* A taken copy goes back as it was: its latest launch may be under way. */
static void put_back_locked(acs_kept *kept, acs_cuda_exec *exec)
{
    uint32_t latest = (exec->next + ACS_CUDA_TABLES - 1) % ACS_CUDA_TABLES;
    acs_kept_launched(kept, exec->kept, exec->launches[latest].slot, exec->launches[latest].value);
}

static acs_cuda_exec *usable_locked(acs_cuda *self, acs_kept_copy *copy)
{
    acs_cuda_exec *exec = copy ? copy->object : NULL;
    if (!exec || acs_cuda_exec_ready(self, exec))
        return exec;
    put_back_locked(self->vehicles->kept, exec);
    return NULL;
}

/* Behind itself in the slot where that costs nothing, else one that is free; `any`: or one that runs in another slot. */
static acs_cuda_exec *take_locked(acs_cuda *self, const wanted *want, bool any)
{
    acs_kept *kept = self->vehicles->kept;
    acs_cuda_exec *exec = usable_locked(self, acs_kept_again(kept, want->key, want->slot));
    if (!exec)
        exec = usable_locked(self, acs_kept_take(kept, want->key));
    if (!exec && any)
        exec = usable_locked(self, acs_kept_again(kept, want->key, -1));
    return exec;
}

/* Whether one more is worth building; what has to go first is destroyed. */
static bool room_make(acs_cuda *self, const wanted *want)
{
    acs_cuda_vehicles *v = self->vehicles;
    void *victim;
    acs_lock_acquire(&v->lock);
    while ((victim = acs_kept_evict(v->kept, want->nodes)) != NULL) {
        acs_lock_release(&v->lock);
        acs_cuda_exec_destroy(self, victim);
        acs_lock_acquire(&v->lock);
    }
    bool room = acs_kept_has_room(v->kept, want->nodes);
    acs_lock_release(&v->lock);
    return room;
}

/* Bundles whose keys are equal by chance are told apart by this. NULL: no memory. */
static void *shape_of(const acs_dag *dag, size_t *bytes)
{
    size_t nodes = dag->nodes * sizeof dag->node[0], edges = dag->edges_used * sizeof dag->edges[0];
    unsigned char *shape = malloc(nodes + edges + 1);
    *bytes = nodes + edges;
    if (shape) {
        memcpy(shape, dag->node, nodes);
        memcpy(shape + nodes, dag->edges, edges);
    }
    return shape;
}

static bool same_shape(const acs_cuda_exec *exec, const acs_dag *dag)
{
    size_t nodes = dag->nodes * sizeof dag->node[0], edges = dag->edges_used * sizeof dag->edges[0];
    const unsigned char *shape = exec->shape;
    return exec->shape_bytes == nodes + edges && memcmp(shape, dag->node, nodes) == 0 &&
           memcmp(shape + nodes, dag->edges, edges) == 0;
}

static acs_cuda_exec *build(acs_cuda *self, const wanted *want)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    acs_cuda_exec *exec = NULL;
    acs_cuda_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return NULL;
    if (want->dag ? acs_cuda_plan_dag(want->dag, plan) : acs_cuda_plan_layers(want->shape, plan))
        exec = acs_cuda_exec_create(self, plan, want->fixed, want->slot, &result);
    free(plan);
    if (!exec) {
        refuse_key(self, want->key, "built", result);
        return NULL;
    }
    if (want->dag)
        exec->shape = shape_of(want->dag, &exec->shape_bytes);
    if (want->dag && !exec->shape) {
        acs_cuda_exec_destroy(self, exec);
        return NULL;
    }
    return exec;
}

static acs_cuda_exec *build_and_add(acs_cuda *self, const wanted *want)
{
    acs_cuda_vehicles *v = self->vehicles;
    acs_cuda_exec *exec = room_make(self, want) ? build(self, want) : NULL;
    if (!exec)
        return NULL;
    acs_lock_acquire(&v->lock);
    exec->kept = acs_kept_add(v->kept, want->key, want->nodes, exec);
    acs_lock_release(&v->lock);
    if (exec->kept)
        return exec;
    acs_cuda_exec_destroy(self, exec);
    return NULL;
}

/* A graph for this bundle, taken; NULL: none for now. */
static acs_cuda_exec *get(acs_cuda *self, const wanted *want)
{
    acs_cuda_vehicles *v = self->vehicles;
    bool wanted_more = false;
    acs_lock_acquire(&v->lock);
    if (v->failures >= FAILURES_MOST || is_bad_locked(v, want->key)) {
        acs_lock_release(&v->lock);
        return NULL;
    }
    progress_tell_locked(self);
    acs_cuda_exec *exec = take_locked(self, want, false);
    if (!exec) {
        uint32_t copies = acs_kept_copies(v->kept, want->key, NULL);
        wanted_more = copies < COPIES_MOST && acs_kept_sight(v->kept, want->key) >= want->sightings;
        if (!wanted_more)
            exec = take_locked(self, want, true);
    }
    acs_lock_release(&v->lock);
    return exec || !wanted_more ? exec : build_and_add(self, want);
}

/* ---------------------------------------------------------------------------------------------------------- vehicles */

/* Launch what was filled in, if `result` says that it was. */
static acs_status launch(acs_cuda *self, acs_cuda_exec *exec, int slot, uint64_t value, CUresult result)
{
    acs_cuda_vehicles *v = self->vehicles;
    uint64_t key = exec->kept->key;
    if (result == CUDA_SUCCESS)
        result = acs_cuda_exec_launch(self, exec, slot, value);
    acs_lock_acquire(&v->lock);
    if (result == CUDA_SUCCESS) {
        acs_kept_launched(v->kept, exec->kept, slot, value);
    } else {
        (void)acs_kept_drop(v->kept, exec->kept);
        exec->next_dead = v->dead;
        v->dead = exec;
    }
    acs_lock_release(&v->lock);
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    refuse_key(self, key, "launched", result);
    return ACS_NOT_READY;
}

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

static acs_status by_layers(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, int slot, uint64_t value)
{
    acs_layout_template shape;
    acs_layout layout;
    if (!layers_find(self, dag, &shape, &layout))
        return ACS_NOT_READY;
    uint32_t cells = acs_layout_cells(&shape);
    bool asked = batch->vehicle == ACS_VEHICLE_LAYERS;
    if (!asked && acs_layout_cost(&shape, &LAYERS_COSTS, dag->ops) > (uint64_t)dag->ops * LAUNCH_NS)
        return ACS_NOT_READY;
    wanted want = {.key = acs_layout_key(&shape), .nodes = shape.levels * (cells + 1), .slot = slot,
                   .sightings = asked ? 1 : LAYERS_SIGHTINGS, .shape = &shape};
    acs_cuda_exec *exec = get(self, &want);
    if (!exec)
        return ACS_NOT_READY;
    CUresult result = CUDA_SUCCESS;
    acs_cuda_exec_begin(exec);
    for (uint32_t i = 0; i < dag->nodes && result == CUDA_SUCCESS; i++)
        if (dag->node[i].type)
            result = acs_cuda_exec_set(self, exec, layout.level[i] * cells + layout.cell[i], batch->items[i].op);
    for (uint32_t level = 0; level < layout.levels && level + 1 < shape.levels; level++)
        if (layout.prefix[level])
            exec->publish[level] = value - dag->ops + layout.prefix[level];
    return launch(self, exec, slot, value, result);
}

/* The bundle's shape together with all its arguments. */
static uint64_t content_key(const acs_batch *batch, const acs_dag *dag)
{
    uint64_t key = dag->key;
    for (uint32_t i = 0; i < dag->nodes; i++) {
        const acs_record *op = batch->items[i].op;
        if (!op)
            continue;
        acs_dim3 grid = op->u.launch.grid;
        key = (key ^ grid.x ^ (uint64_t)grid.y << 24 ^ (uint64_t)grid.z << 48) * 0xd6e8feb86659fd93u;
        for (uint32_t a = 0; a < op->arg_count; a++) {
            const unsigned char *bytes = op->arg_bytes + op->args[a].offset;
            for (uint32_t at = 0; at < op->args[a].size; at += 8) {
                uint64_t word = 0;
                uint32_t left = op->args[a].size - at;
                memcpy(&word, bytes + at, left >= 8 ? 8 : left == 4 ? 4 : left);
                key = (key ^ word) * 0xd6e8feb86659fd93u;
                key ^= key >> 32;
            }
        }
    }
    return key;
}

/* By a graph of the bundle's own shape, if there is one. */
static acs_status by_shape(acs_cuda *self, const acs_batch *batch, const wanted *want, uint64_t value)
{
    const acs_dag *dag = want->dag;
    acs_cuda_exec *exec = get(self, want);
    if (!exec)
        return ACS_NOT_READY;
    if (!same_shape(exec, dag)) {
        acs_lock_acquire(&self->vehicles->lock);
        put_back_locked(self->vehicles->kept, exec);
        acs_lock_release(&self->vehicles->lock);
        return ACS_NOT_READY;
    }
    uint32_t op = 0;
    CUresult result = CUDA_SUCCESS;
    acs_cuda_exec_begin(exec);
    for (uint32_t i = 0; i < dag->nodes && result == CUDA_SUCCESS; i++)
        if (dag->node[i].type)
            result = acs_cuda_exec_set(self, exec, op++, batch->items[i].op);
    for (uint32_t ops = ACS_CUDA_PUBLISH_OPS, p = 0; ops < dag->ops; ops += ACS_CUDA_PUBLISH_OPS)
        exec->publish[p++] = value - dag->ops + ops;
    return launch(self, exec, want->slot, value, result);
}

static uint32_t nodes_of(const acs_dag *dag)
{
    return dag->nodes + dag->ops / ACS_CUDA_PUBLISH_OPS + 1;
}

/* What recurs with all its arguments has fixed nodes, which run faster; what recurs in shape has nodes that are set. */
static acs_status by_replay(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, int slot, uint64_t value)
{
    bool asked = batch->vehicle == ACS_VEHICLE_REPLAY;
    wanted want = {.key = content_key(batch, dag), .nodes = nodes_of(dag), .slot = slot,
                   .sightings = FIXED_SIGHTINGS, .fixed = true, .dag = dag};
    acs_status status = by_shape(self, batch, &want, value);
    if (status != ACS_NOT_READY || acs_cuda_fault(self))
        return status;
    want.key = dag->key;
    want.sightings = asked ? ASKED_SIGHTINGS : REPLAY_SIGHTINGS;
    want.fixed = false;
    return by_shape(self, batch, &want, value);
}

/* The host sets what differs. Never chosen by itself: the device does that faster, and the host has enough to do. */
static acs_status by_graph(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, int slot, uint64_t value)
{
    const wanted want = {.key = ~dag->key, .nodes = nodes_of(dag), .slot = slot, .sightings = ASKED_SIGHTINGS,
                         .fixed = true, .dag = dag};
    return by_shape(self, batch, &want, value);
}

/* On an H200: a bundle's start and end; a level's launches and releases; an op, two kernels to the GPU's front end. */
static bool gpu_pays(const acs_dag *dag)
{
    return GPU_BUNDLE_NS + dag->levels * (uint64_t)GPU_LEVEL_NS + dag->ops * (uint64_t)GPU_OP_NS <
           dag->ops * (uint64_t)LAUNCH_NS;
}

static acs_status by_gpu(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, int slot, uint64_t value)
{
    (void)slot, (void)value; /* they stand in the items */
    if (batch->vehicle != ACS_VEHICLE_GPU && !gpu_pays(dag))
        return ACS_NOT_READY;
    return acs_cuda_window_issue(self, batch, dag) ? ACS_OK : ACS_NOT_READY;
}

/* A type may have been refused since check() gave out its number. */
static bool types_ok(acs_cuda *self, const acs_dag *dag)
{
    for (uint32_t i = 0; i < dag->nodes; i++)
        if (dag->node[i].type &&
            atomic_load_explicit(&acs_cuda_type_find(self, dag->node[i].type)->refused, memory_order_relaxed))
            return false; /* relaxed: only saves an attempt */
    return true;
}

acs_status acs_cuda_bundle_issue(acs_cuda *self, acs_batch *batch, int slot, uint64_t value)
{
    static const struct {
        acs_vehicle vehicle;
        acs_status (*issue)(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, int slot, uint64_t value);
    } vehicles[] = {{ACS_VEHICLE_REPLAY, by_replay},
                    {ACS_VEHICLE_LAYERS, by_layers},
                    {ACS_VEHICLE_GPU, by_gpu},
                    {ACS_VEHICLE_GRAPH, by_graph}};
    acs_dag dag;
    if (!self->vehicles)
        return ACS_NOT_READY;
    acs_dag_make(batch, &dag);
    if (!types_ok(self, &dag))
        return ACS_NOT_READY;
    for (uint32_t i = 0; i < sizeof vehicles / sizeof vehicles[0] && !acs_cuda_fault(self); i++)
        if (batch->vehicle == vehicles[i].vehicle ||
            (batch->vehicle == ACS_VEHICLE_AUTO && vehicles[i].vehicle != ACS_VEHICLE_GRAPH)) {
            acs_status status = vehicles[i].issue(self, batch, &dag, slot, value);
            if (status == ACS_OK)
                batch->vehicle = (uint8_t)vehicles[i].vehicle;
            if (status != ACS_NOT_READY)
                return status;
        }
    return acs_cuda_fault(self) ? ACS_ERR_DEVICE : ACS_NOT_READY;
}
