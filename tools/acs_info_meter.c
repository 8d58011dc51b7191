/*
 * Bundles of kernels that do nothing, issued by the library's own code and timed (see acs_info_measure.h). The kernel
 * is the library's copy of no bytes, so that nvcc is not needed here. Called by acs_info_measure.c, on one thread,
 * which stays inside the GPU's context as long as a meter is open.
 */
#include "acs_info_measure.h"

#include "cuda/gpu_issue/gpu_issue.h"
#include "cuda/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 2,
    QUEUED = 6,        /* bundles that are timed together; a graph has room for eight launches */
    LAUNCHES = 256,    /* launches that are timed together; a stream takes a thousand */
    BUILDS = 4,        /* graphs that are built in one sample */
    CELLS = 16,        /* the same of cells */
    BLOCKS = 8,        /* sizes of blocks, each of which makes another type of kernel */
    ARGS = 3,
    MEMORY_BYTES = 4096,
    HELD_NS_MOST = 100000000, /* for which the GPU waits for the host; then it goes on, and the sample does not count */
    BESIDE_NS = 4000000       /* for which the launches of the other thread are counted where nothing is beside them */
};

struct meter {
    acs_cuda *self;
    acs_cuda_scope scope;
    bool entered;
    void *memory;      /* on the device */
    CUfunction kernel;
    CUevent begin, end, turn[SLOTS];
    _Atomic bool go;   /* the GPU need not wait any more; release, pairs with acquire in hold_on_gpu */
    _Atomic bool late; /* the host was not done in time; relaxed: read behind a synchronisation */
    bool unheld[METER_WAYS]; /* the driver lets no more of these be issued while the GPU waits */
    uint64_t value;    /* of the latest op in slot 0 */
    uint64_t rounds, key, types;
    acs_layer_template layers;
    acs_batch batch;
    acs_dag dag;
    acs_layers layout;
    acs_record op[ACS_BATCH_ITEMS], lone;
};

static acs_status failed(const char *what, CUresult result)
{
    return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "measuring costs: %s: %s", what, acs_cuda_text((int)result));
}

#define TRY_CUDA(call)                                                                                                 \
    do {                                                                                                               \
        CUresult result_ = (call);                                                                                     \
        if (result_ != CUDA_SUCCESS)                                                                                   \
            return failed(#call, result_);                                                                             \
    } while (0)

/* ------------------------------------------------------------------------------------------------------- the kernel */

static void set_arg(acs_record *op, uint32_t index, uint64_t value)
{
    memcpy(op->arg_bytes + op->args[index].offset, &value, sizeof value);
}

/* A copy of no bytes, in blocks of this many threads. */
static acs_status make_op(meter *m, acs_record *op, uint32_t threads)
{
    static const acs_site site = {"acs-info --measure", NULL, 0};
    memset(op, 0, sizeof *op);
    op->kind = ACS_KIND_KERNEL;
    op->site = &site;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    op->arg_count = ARGS;
    for (uint32_t i = 0; i < ARGS; i++) {
        op->args[i] = (acs_arg_slot){.offset = i * 8, .size = 8};
        set_arg(op, i, i < 2 ? (uint64_t)(uintptr_t)m->memory : 0);
    }
    op->arg_bytes_used = ARGS * 8;
    op->u.launch.kernel = (acs_kernel){"nothing", (const void *)m->kernel, NULL, ACS_KERNEL_CUFUNCTION, 0};
    op->grid = (acs_dim3){1, 1, 1};
    op->u.launch.block = (acs_dim3){threads, 1, 1};
    ACS_TRY(acs_cuda_check(&m->self->base, op));
    return op->type ? ACS_OK : ACS_NOT_READY;
}

/* Others than the time before: of each op an address changes. */
static void change_args(meter *m)
{
    const uint64_t at = (uint64_t)(uintptr_t)m->memory + 16 * (++m->rounds % (MEMORY_BYTES / 16));
    for (uint32_t i = 0; i < m->batch.items_used; i++)
        set_arg(&m->op[i], 0, at);
}

/* ------------------------------------------------------------------------------------------------------ open, close */

static acs_status open_device(meter *m, int device)
{
    static acs_options options;
    ACS_TRY(acs_options_init(&options, sizeof options));
    options.costs[0] = '\0';
    options.issue = ACS_ISSUE_AUTO;
    const acs_backend_config config = {.options = &options, .slots = SLOTS, .devices = 1, .mark_capacity = 1};
    const acs_cuda_member member = {.ops = &acs_backend_cuda, .device = device};
    ACS_TRY(acs_cuda_member_open(&config, &member, &m->self));
    if (acs_cuda_code_open(m->self))
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "not measured: kernels are launched one by one here (ACS_LOG=info says why)");
}

static acs_status open_inside(meter *m)
{
    m->kernel = acs_cuda_device_kernel(m->self, "acs_device_copy");
    if (!m->kernel)
        return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "measuring costs: the library's kernels cannot be had");
    ACS_TRY(acs_cuda_memory_alloc(&m->self->base, ACS_MEMORY_DEVICE, MEMORY_BYTES, &m->memory));
    TRY_CUDA(m->self->cu.cuEventCreate(&m->begin, CU_EVENT_DEFAULT));
    TRY_CUDA(m->self->cu.cuEventCreate(&m->end, CU_EVENT_DEFAULT));
    for (uint32_t i = 0; i < SLOTS; i++)
        acs_cuda_share_change(m->self, i, 0); /* makes the slot's stream */
    for (int i = 0; i < SLOTS; i++)
        TRY_CUDA(m->self->cu.cuEventCreate(&m->turn[i], CU_EVENT_DISABLE_TIMING));
    ACS_TRY(make_op(m, &m->lone, 32));
    for (uint32_t i = 0; i < ACS_BATCH_ITEMS; i++)
        ACS_TRY(make_op(m, &m->op[i], 32));
    return ACS_OK;
}

acs_status meter_open(int device, meter **opened)
{
    meter *m = aligned_alloc(_Alignof(meter), sizeof *m);
    if (!m)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "measuring costs: no memory");
    memset(m, 0, sizeof *m);
    acs_status status = open_device(m, device);
    if (m->self && status == ACS_OK) {
        const CUresult entered = acs_cuda_scope_enter(m->self, &m->scope);
        m->entered = entered == CUDA_SUCCESS;
        status = m->entered ? open_inside(m) : failed("entering the context", entered);
        if (status == ACS_OK) {
            *opened = m;
            return ACS_OK;
        }
    }
    meter_close(m);
    return status;
}

/* As far as it was opened; a failure is nobody's error any more. */
void meter_close(meter *m)
{
    const CUevent events[] = {m->begin, m->end, m->turn[0], m->turn[1]};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            (void)m->self->cu.cuEventDestroy(events[i]);
    if (m->memory)
        (void)acs_cuda_memory_free(&m->self->base, ACS_MEMORY_DEVICE, m->memory);
    if (m->entered)
        acs_cuda_scope_leave(m->self, &m->scope);
    if (m->self)
        acs_cuda_member_close(m->self);
    free(m);
}

void meter_gpu(meter *m, acs_costs_gpu *gpu)
{
    acs_cuda_costs_gpu(m->self, gpu);
}

/* ------------------------------------------------------------------------------------------------------- the bundle */

static void follow(meter *m, acs_item *item, uint32_t earlier)
{
    m->batch.edges[m->batch.edges_used++] = (uint16_t)earlier;
    item->edge_count++;
}

static void add_op(meter *m, uint32_t width, bool stencil)
{
    const uint32_t i = m->batch.items_used++, column = i % width;
    acs_item *item = &m->batch.items[i];
    *item = (acs_item){.op = &m->op[i], .first_edge = (uint16_t)m->batch.edges_used};
    if (i < width)
        return;
    if (stencil && column + 1 < width)
        follow(m, item, i - width + 1);
    follow(m, item, i - width);
    if (stencil && column > 0)
        follow(m, item, i - width - 1);
}

void meter_shape(meter *m, uint32_t ops, uint32_t width, bool stencil)
{
    m->batch.items_used = m->batch.edges_used = 0;
    m->batch.bundle = true;
    for (uint32_t i = 0; i < ops; i++)
        add_op(m, width, stencil);
    acs_dag_make(&m->batch, &m->dag);
    m->key = acs_hash64((uint64_t)ops << 32 | width << 1 | stencil) | 1;
    meter_cells(m, width);
}

uint32_t meter_edges(const meter *m)
{
    return m->dag.edges_used > m->dag.ops ? m->dag.edges_used - m->dag.ops : 0;
}

void meter_cells(meter *m, uint32_t cells)
{
    m->layers = (acs_layer_template){.levels = m->dag.levels, .types = 1, .type = {m->op[0].type}};
    m->layers.cells[0] = (uint16_t)cells;
}

/* ---------------------------------------------------------------------------------------------------- ways to issue */

static acs_cuda_exec *graph_for(meter *m, meter_way way)
{
    const uint32_t ops = m->batch.items_used;
    acs_cuda_wanted want = {.key = m->key + 2 * (uint64_t)way, .nodes = ops + ops / TUNE_GRAPH_PUBLISH_OPS + 1,
                            .sightings = 1, .fixed = way == METER_FIXED, .batch = &m->batch};
    if (way == METER_LAYERS) {
        want.key = acs_layers_key(&m->layers);
        want.nodes = acs_cuda_layers_nodes(&m->layers);
        want.batch = NULL;
        want.shape = &m->layers;
    }
    return acs_cuda_exec_get(m->self, &want);
}

static uint32_t node_of(const meter *m, meter_way way, uint32_t op)
{
    return way == METER_LAYERS ? m->layout.level[op] * acs_layers_cells(&m->layers) + m->layout.cell[op] : op;
}

static acs_status issue_graph(meter *m, meter_way way)
{
    const uint32_t ops = m->batch.items_used;
    acs_cuda_exec *exec = graph_for(m, way);
    CUresult result = CUDA_SUCCESS;
    if (!exec)
        return ACS_NOT_READY;
    if (way != METER_FIXED)
        change_args(m);
    acs_cuda_exec_begin(exec);
    for (uint32_t i = 0; i < ops && result == CUDA_SUCCESS; i++) {
        const acs_cuda_contents contents = acs_cuda_contents_of(&m->op[i]);
        result = acs_cuda_exec_set(m->self, exec, node_of(m, way, i), &contents);
    }
    for (uint32_t told = TUNE_GRAPH_PUBLISH_OPS, p = 0; way != METER_LAYERS && told < ops; told += TUNE_GRAPH_PUBLISH_OPS)
        exec->publish[p++] = m->value + told;
    return acs_cuda_exec_issue(m->self, exec, 0, m->value + ops, result);
}

static acs_status issue_by_gpu(meter *m)
{
    change_args(m);
    for (uint32_t i = 0; i < m->batch.items_used; i++)
        m->batch.items[i].value = m->value + 1 + i;
    m->batch.method = ACS_METHOD_GPU; /* cells are made as they are missing */
    return acs_cuda_gpu_issue_issue(m->self, &m->batch, &m->dag, 0) ? ACS_OK : ACS_NOT_READY;
}

static acs_status issue_launches(meter *m, bool in_turn)
{
    acs_cuda *self = m->self;
    for (uint32_t i = 0; i < m->batch.items_used; i++) {
        const uint32_t slot = in_turn ? i % SLOTS : 0, before = (slot + SLOTS - 1) % SLOTS;
        if (in_turn && i > 0)
            TRY_CUDA(self->cu.cuStreamWaitEvent(self->streams[slot], m->turn[before], 0));
        TRY_CUDA(acs_cuda_launch(self, &m->op[i], self->streams[slot]));
        if (in_turn)
            TRY_CUDA(self->cu.cuEventRecord(m->turn[slot], self->streams[slot]));
    }
    return ACS_OK;
}

static bool is_launches(meter_way way)
{
    return way == METER_STREAM || way == METER_EVENTS;
}

static acs_status issue(meter *m, meter_way way)
{
    const bool launches = is_launches(way);
    const acs_status status = launches ? issue_launches(m, way == METER_EVENTS) : way == METER_GPU ? issue_by_gpu(m)
                                                                                                   : issue_graph(m, way);
    if (status == ACS_OK && !launches)
        m->value += m->batch.items_used;
    return acs_cuda_fault(m->self) ? failed("issuing a bundle", (CUresult)acs_cuda_fault(m->self)) : status;
}

/* ----------------------------------------------------------------------------------------------------------- timing */

/* All that was issued is over, and known to be. */
static acs_status settle(meter *m)
{
    for (int slot = 0; slot < SLOTS; slot++)
        TRY_CUDA(m->self->cu.cuStreamSynchronize(m->self->streams[slot]));
    (void)acs_cuda_progress(m->self, 0, m->value);
    return ACS_OK;
}

/* A stream waits here until the host has issued all that is timed. */
static void CUDA_CB hold_on_gpu(void *argument)
{
    meter *m = argument;
    const uint64_t begin = acs_clock_ns();
    while (!atomic_load_explicit(&m->go, memory_order_acquire))
        if (acs_clock_ns() - begin > HELD_NS_MOST) {
            atomic_store_explicit(&m->late, true, memory_order_relaxed);
            break;
        }
}

static acs_status hold(meter *m, meter_way way)
{
    atomic_store_explicit(&m->go, false, memory_order_relaxed); /* the launch below orders both */
    atomic_store_explicit(&m->late, false, memory_order_relaxed);
    if (!m->unheld[way])
        TRY_CUDA(m->self->cu.cuLaunchHostFunc(m->self->streams[0], hold_on_gpu, m));
    TRY_CUDA(m->self->cu.cuEventRecord(m->begin, m->self->streams[0]));
    return ACS_OK;
}

static acs_status let_go(meter *m, acs_status issued)
{
    const CUresult result = m->self->cu.cuEventRecord(m->end, m->self->streams[0]);
    atomic_store_explicit(&m->go, true, memory_order_release);
    const acs_status settled = settle(m);
    ACS_TRY(issued);
    TRY_CUDA(result);
    return settled;
}

static acs_status time_held(meter *m, meter_way way, uint32_t times, double *ns)
{
    float ms = 0;
    acs_status status = hold(m, way);
    for (uint32_t i = 0; i < times && status == ACS_OK; i++)
        status = issue(m, way);
    ACS_TRY(let_go(m, status));
    TRY_CUDA((CUresult)cudaEventElapsedTime(&ms, m->begin, m->end));
    *ns = (double)ms * 1e6 / times;
    return ACS_OK;
}

/*
 * The first one builds its graph. Graphs need not be held up: the host issues them faster than they run. Then the first
 * of them begins a little late, which is a small part of the time.
 */
acs_status meter_time(meter *m, meter_way way, double *ns)
{
    const bool launches = is_launches(way);
    if (way == METER_LAYERS && !acs_layers_make(&m->dag, &m->layers, &m->layout))
        return ACS_NOT_READY;
    ACS_TRY(issue(m, way));
    ACS_TRY(settle(m));
    ACS_TRY(time_held(m, way, launches ? 1 : QUEUED, ns));
    if (!atomic_load_explicit(&m->late, memory_order_relaxed))
        return ACS_OK;
    m->unheld[way] = true;
    return launches ? ACS_NOT_READY : time_held(m, way, QUEUED, ns);
}

acs_status meter_launch(meter *m, double *ns)
{
    ACS_TRY(settle(m));
    const uint64_t begin = acs_clock_ns();
    for (int i = 0; i < LAUNCHES; i++)
        TRY_CUDA(acs_cuda_launch(m->self, &m->lone, m->self->streams[0]));
    *ns = (double)(acs_clock_ns() - begin) / LAUNCHES;
    return settle(m);
}

/* ----------------------------------------------------------------------------------------------------------- beside */

/* Another thread that launches all the time, as a program does beside which something is built. */
typedef struct beside {
    meter *m;
    pthread_t thread;
    _Atomic bool stop;         /* relaxed: guards no other data */
    _Atomic uint64_t launches; /* relaxed: a counter */
    _Atomic int result;        /* relaxed: read when the thread has ended */
} beside;

static CUresult launch_all_the_time(beside *b)
{
    acs_cuda *self = b->m->self;
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && !atomic_load_explicit(&b->stop, memory_order_relaxed)) {
        for (int i = 0; i < LAUNCHES && result == CUDA_SUCCESS; i++) {
            result = acs_cuda_launch(self, &b->m->lone, self->streams[1]);
            atomic_fetch_add_explicit(&b->launches, 1, memory_order_relaxed);
        }
        if (result == CUDA_SUCCESS)
            result = self->cu.cuStreamSynchronize(self->streams[1]);
    }
    return result;
}

static void *run_beside(void *argument)
{
    beside *b = argument;
    acs_cuda_scope scope;
    CUresult result = acs_cuda_scope_enter(b->m->self, &scope);
    if (result == CUDA_SUCCESS) {
        result = launch_all_the_time(b);
        acs_cuda_scope_leave(b->m->self, &scope);
    }
    atomic_store_explicit(&b->result, (int)result, memory_order_relaxed);
    return NULL;
}

static uint64_t launches_of(beside *b)
{
    return atomic_load_explicit(&b->launches, memory_order_relaxed);
}

/* The thread runs; how many ns a launch takes it while nothing is beside. */
static acs_status beside_start(beside *b, meter *m, double *ns)
{
    *b = (beside){.m = m};
    if (pthread_create(&b->thread, NULL, run_beside, b) != 0)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "measuring costs: a thread could not be made");
    const uint64_t first = acs_clock_ns();
    while (launches_of(b) < LAUNCHES && acs_clock_ns() - first < HELD_NS_MOST)
        continue; /* the first ones take longer */
    const uint64_t begin = acs_clock_ns(), before = launches_of(b);
    while (acs_clock_ns() - begin < BESIDE_NS)
        continue;
    const uint64_t launches = launches_of(b) - before;
    *ns = launches ? (double)(acs_clock_ns() - begin) / (double)launches : 0;
    return ACS_OK;
}

static acs_status beside_stop(beside *b)
{
    atomic_store_explicit(&b->stop, true, memory_order_relaxed);
    (void)pthread_join(b->thread, NULL); /* was made here */
    TRY_CUDA((CUresult)atomic_load_explicit(&b->result, memory_order_relaxed));
    return settle(b->m);
}

/* Graphs that nobody has seen. They are launched once, as graphs are that a program wants. */
static acs_status build_some(meter *m, meter_way way, uint64_t *took_ns)
{
    for (int i = 0; i < BUILDS; i++) {
        m->key = acs_hash64(m->key) | 1;
        const uint64_t begin = acs_clock_ns();
        ACS_TRY(issue(m, way));
        *took_ns += acs_clock_ns() - begin;
    }
    return ACS_OK;
}

acs_status meter_build(meter *m, meter_way way, double *ns)
{
    beside b;
    double alone_ns;
    uint64_t took = 0;
    ACS_TRY(settle(m));
    ACS_TRY(beside_start(&b, m, &alone_ns));
    const uint64_t before = launches_of(&b);
    const acs_status status = build_some(m, way, &took);
    const double lost = (double)took - (double)(launches_of(&b) - before) * alone_ns;
    const acs_status stopped = beside_stop(&b);
    ACS_TRY(status);
    *ns = ((double)took + (lost > 0 ? lost : 0)) / (BUILDS * (double)m->batch.items_used);
    return stopped;
}

/* Of a type that has no cells yet. ACS_NOT_READY also where there is no other type any more. */
acs_status meter_cell(meter *m, double *ns)
{
    beside b;
    double alone_ns;
    if (++m->types >= BLOCKS)
        return ACS_NOT_READY;
    meter_shape(m, CELLS, CELLS, false);
    for (uint32_t i = 0; i < CELLS; i++)
        ACS_TRY(make_op(m, &m->op[i], 32 * (uint32_t)(m->types + 1)));
    ACS_TRY(beside_start(&b, m, &alone_ns));
    const uint64_t begin = acs_clock_ns();
    const acs_status status = issue(m, METER_GPU);
    *ns = (double)(acs_clock_ns() - begin) / CELLS;
    const acs_status stopped = beside_stop(&b);
    for (uint32_t i = 0; i < CELLS; i++)
        ACS_TRY(make_op(m, &m->op[i], 32));
    ACS_TRY(status);
    return stopped;
}
