/* See gpu_issue_double.h. One thread; everything is in plain memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_issue_double.h"

#include <stdlib.h>
#include <string.h>

double_world g_double;

/* A kernel node; the device sets args and grid. */
typedef struct node {
    uint32_t type; /* 0: one of the library's own */
    uint32_t grid[3];
    unsigned char args[DOUBLE_ARGS];
} node;

typedef struct graph {
    node *op;
    int slot; /* of a head; -1: a cell */
} graph;

typedef struct exec {
    graph *of;
    bool uploaded, alive;
} exec;

typedef struct event {
    uint32_t pending;
} event;

typedef enum step_kind { UPLOAD, COPY, LAUNCH, EVENT } step_kind;

typedef struct step {
    struct step *next;
    step_kind kind;
    exec *exec;
    event *event;
    void *to;
    size_t bytes;
    const void *from;
} step;

/* What was destroyed stays until the end, for those who should not use it any more. */
static struct grave {
    struct grave *next;
    void *dead;
} *g_graves;

static step *g_first[DOUBLE_SLOTS], **g_last[DOUBLE_SLOTS];
static char g_head, g_release, g_kernels[DOUBLE_TYPES + 1];

static void push(CUstream stream, step s)
{
    size_t slot = (size_t)(uintptr_t)stream - 1;
    assert_true(slot < DOUBLE_SLOTS);
    step *made = malloc(sizeof *made);
    assert_non_null(made);
    *made = s;
    made->next = NULL;
    *g_last[slot] = made;
    g_last[slot] = &made->next;
}

static void bury(void *dead)
{
    struct grave *made = malloc(sizeof *made);
    assert_non_null(made);
    *made = (struct grave){g_graves, dead};
    g_graves = made;
}

static bool strikes(uint32_t one_in)
{
    return one_in && acs_random_below(&g_double.random, one_in) == 0;
}

/* ------------------------------------------------------------------------------------------------------- the device */

/* The op that the entry stands for runs now. */
static void run_op(const acs_gpu_issue_entry *entry)
{
    node *n = (node *)(uintptr_t)entry->node;
    uint32_t number;
    memcpy(&number, n->args, sizeof number);
    assert_true(number < g_double.ops);
    double_op *op = &g_double.op[number];
    assert_int_equal(op->runs, 0);
    op->runs++;
    for (uint32_t i = 0; i < op->up_count; i++)
        assert_int_equal(g_double.op[op->ups[i]].runs, 1);
    assert_memory_equal(n->args, op->args, 8 * (size_t)double_params(n->type));
    assert_int_equal(n->grid[0], op->grid.x);
    assert_int_equal(n->grid[1], op->grid.y);
    assert_int_equal(n->grid[2], op->grid.z);
}

/* What the head does with one entry. */
static void set_up(const unsigned char *table, const acs_gpu_issue_entry *entry)
{
    exec *cell = (exec *)(uintptr_t)entry->exec;
    node *n = (node *)(uintptr_t)entry->node;
    if (!cell)
        return;
    assert_true(cell->alive);
    assert_true(cell->uploaded);
    assert_ptr_equal(cell->of->op, n);
    if (!n)
        return;
    assert_true(entry->args_first + entry->args_bytes <= DOUBLE_ARGS);
    memcpy(n->args + entry->args_first, table + entry->args_at, entry->args_bytes);
    g_double.argument_bytes += entry->args_bytes;
    if (entry->grid[0])
        memcpy(n->grid, entry->grid, sizeof n->grid);
}

typedef struct running {
    const acs_gpu_issue_entry *entries;
    const uint16_t *followers;
    uint16_t entry_of[1 << 16]; /* by place */
    uint32_t left[ACS_RELEASE_TREE_NODES];
    uint16_t ready[ACS_RELEASE_TREE_NODES];
    uint32_t ready_used, done;
} running;

static void release(running *r, uint32_t first, uint32_t count, bool head)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t e = r->entry_of[r->followers[first + i]];
        assert_true(head ? r->left[e] == 0 : r->left[e] > 0);
        if (!head && --r->left[e] > 0)
            continue;
        if (r->entries[e].exec) {
            r->ready[r->ready_used++] = (uint16_t)e;
        } else {
            r->done++;
            release(r, r->entries[e].out_first, r->entries[e].out_count, false);
        }
    }
}

static void run_bundle(int slot)
{
    static running r;
    acs_gpu_issue_slot *state = (acs_gpu_issue_slot *)(uintptr_t)g_double.self->gpu_issue->slots + slot;
    const unsigned char *table = (const unsigned char *)(uintptr_t)state->tables +
                                 (size_t)(state->turn++ % ACS_GPU_ISSUE_RING) * ACS_GPU_ISSUE_TABLE_BYTES;
    const acs_gpu_issue_table *header = (const acs_gpu_issue_table *)(const void *)table;
    r.entries = (const acs_gpu_issue_entry *)(const void *)(header + 1);
    r.followers = (const uint16_t *)(const void *)(table + header->followers_at);
    r.ready_used = r.done = 0;
    for (uint32_t i = 0; i < header->entries; i++) {
        r.entry_of[r.entries[i].place] = (uint16_t)i;
        r.left[i] = r.entries[i].upstream;
        set_up(table, &r.entries[i]);
    }
    release(&r, 0, header->roots, true);
    while (r.ready_used) {
        uint32_t pick = acs_random_below(&g_double.random, r.ready_used);
        const acs_gpu_issue_entry *entry = &r.entries[r.ready[pick]];
        r.ready[pick] = r.ready[--r.ready_used];
        if (entry->node)
            run_op(entry);
        r.done++;
        release(&r, entry->out_first, entry->out_count, false);
    }
    assert_int_equal(r.done, header->entries);
    atomic_store(&g_double.self->methods->words[slot].value, header->first_value + header->ops - 1);
}

bool double_step(void)
{
    uint32_t slot = acs_random_below(&g_double.random, DOUBLE_SLOTS);
    for (uint32_t i = 0; i < DOUBLE_SLOTS && !g_first[slot]; i++)
        slot = (slot + 1) % DOUBLE_SLOTS;
    step *s = g_first[slot];
    if (!s)
        return false;
    g_first[slot] = s->next;
    if (!s->next)
        g_last[slot] = &g_first[slot];
    if (s->kind == UPLOAD)
        s->exec->uploaded = true;
    else if (s->kind == COPY)
        memcpy(s->to, s->from, s->bytes);
    else if (s->kind == EVENT)
        s->event->pending--;
    else
        run_bundle(s->exec->of->slot);
    free(s);
    return true;
}

/* ------------------------------------------------------------------------------------------------------- the driver */

static CUresult graph_create(CUgraph *out, unsigned flags)
{
    graph *made = calloc(1, sizeof *made);
    made->slot = -1;
    *out = (CUgraph)made;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph handle)
{
    if (((graph *)handle)->op)
        bury(((graph *)handle)->op);
    bury(handle);
    return CUDA_SUCCESS;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph handle, const CUgraphNode *up, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    graph *g = (graph *)handle;
    (void)up, (void)count;
    *out = (CUgraphNode)g;
    if ((char *)params->func == &g_head)
        g->slot = (int)*(uint32_t *)params->kernelParams[1];
    if ((char *)params->func == &g_head || (char *)params->func == &g_release)
        return CUDA_SUCCESS;
    g->op = calloc(1, sizeof *g->op);
    g->op->type = (uint32_t)((char *)params->func - g_kernels);
    g->op->grid[0] = g->op->grid[1] = g->op->grid[2] = 1;
    *out = (CUgraphNode)g->op;
    return CUDA_SUCCESS;
}

static CUresult add_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                          size_t count)
{
    (void)handle, (void)from, (void)to, (void)data, (void)count;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUgraphNode n, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    (void)n, (void)value;
    return id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_attribute(CUgraphNode n, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    value->deviceUpdatableKernelNode.devNode = (CUgraphDeviceNode)(void *)n;
    return id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    if (strikes(g_double.fail_instantiate))
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec *made = calloc(1, sizeof *made);
    *made = (exec){.of = (graph *)handle, .alive = true};
    g_double.execs++;
    *out = (CUgraphExec)made;
    return flags == CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult upload(CUgraphExec handle, CUstream stream)
{
    push(stream, (step){.kind = UPLOAD, .exec = (exec *)handle});
    return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec handle)
{
    exec *e = (exec *)handle;
    assert_true(e->alive);
    for (int slot = 0; slot < DOUBLE_SLOTS; slot++)
        for (const step *s = g_first[slot]; s; s = s->next)
            assert_ptr_not_equal(s->exec, e);
    e->alive = false;
    g_double.execs--;
    bury(e);
    return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec handle, CUstream stream)
{
    if (strikes(g_double.fail_launch))
        return CUDA_ERROR_OUT_OF_MEMORY;
    push(stream, (step){.kind = LAUNCH, .exec = (exec *)handle});
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *out, unsigned flags)
{
    *out = (CUevent)calloc(1, sizeof(event));
    return flags == CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult event_destroy(CUevent e)
{
    free(e);
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent handle, CUstream stream)
{
    ((event *)handle)->pending++;
    push(stream, (step){.kind = EVENT, .event = (event *)handle});
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent handle)
{
    return ((event *)handle)->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
    (void)stream;
    fail_msg("the host waits for the device");
    return CUDA_SUCCESS;
}

static CUresult mem_alloc(CUdeviceptr *out, size_t bytes)
{
    void *memory = malloc(bytes);
    memset(memory, 0xa5, bytes); /* nothing may count on zeros */
    *out = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr memory)
{
    free((void *)(uintptr_t)memory);
    return CUDA_SUCCESS;
}

static CUresult host_alloc(void **out, size_t bytes, unsigned flags)
{
    *out = malloc(bytes);
    memset(*out, 0xa5, bytes);
    return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult host_free(void *memory)
{
    free(memory);
    return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    push(stream, (step){.kind = COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .bytes = bytes});
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)attribute, (void)device;
    *value = 9;
    return CUDA_SUCCESS;
}

static CUresult library_kernel(CUkernel *out, CUlibrary library, const char *name)
{
    (void)library;
    *out = (CUkernel)(strcmp(name, "acs_gpu_issue_head") == 0 ? &g_head : &g_release);
    return CUDA_SUCCESS;
}

static CUresult kernel_function(CUfunction *out, CUkernel kernel)
{
    *out = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- open and close */

uint32_t double_params(uint32_t type)
{
    return 1 + 3 * type % (DOUBLE_ARGS / 8);
}

static void add_type(acs_cuda *self, uint32_t number)
{
    uint32_t params = double_params(number);
    acs_cuda_kernel *kernel = calloc(1, sizeof *kernel + 2 * params * sizeof(uint32_t));
    acs_cuda_type *type = calloc(1, sizeof *type);
    kernel->function = (CUfunction)(void *)&g_kernels[number];
    kernel->params_known = true;
    kernel->param_count = params;
    kernel->param_offset = kernel->param_bytes + params;
    for (uint32_t i = 0; i < params; i++) {
        kernel->param_bytes[i] = 8;
        kernel->param_bytes[params + i] = 8 * i;
    }
    *type = (acs_cuda_type){.number = number, .kernel = kernel, .block = {32, 1, 1}, .arg_bytes = 8 * params};
    atomic_init(&self->methods->types[number], type);
}

void double_open(uint64_t seed, uint64_t graph_nodes)
{
    acs_cuda *self = calloc(1, sizeof *self);
    memset(&g_double, 0, sizeof g_double);
    g_double.self = self->members[0] = self;
    self->base.devices = 1;
    g_double.random.state = seed;
    self->cu = (acs_cuda_driver){
        .cuGraphCreate = graph_create, .cuGraphDestroy = graph_destroy, .cuGraphAddKernelNode = add_kernel,
        .cuGraphAddDependencies = add_edges, .cuGraphKernelNodeSetAttribute = set_attribute,
        .cuGraphKernelNodeGetAttribute = get_attribute, .cuGraphInstantiateWithFlags = instantiate,
        .cuGraphUpload = upload, .cuGraphExecDestroy = exec_destroy, .cuGraphLaunch = launch,
        .cuEventCreate = event_create, .cuEventDestroy = event_destroy, .cuEventRecord = event_record,
        .cuEventQuery = event_query, .cuStreamSynchronize = stream_synchronize, .cuMemAlloc = mem_alloc,
        .cuMemFree = mem_free, .cuMemHostAlloc = host_alloc, .cuMemFreeHost = host_free, .cuMemcpyAsync = copy,
        .cuDeviceGetAttribute = device_attribute, .cuLibraryGetKernel = library_kernel,
        .cuKernelGetFunction = kernel_function,
    };
    self->costs = acs_costs_table;
    self->slots = DOUBLE_SLOTS;
    self->streams = calloc(DOUBLE_SLOTS, sizeof *self->streams);
    self->methods = calloc(1, sizeof *self->methods);
    self->methods->words = calloc(DOUBLE_SLOTS, sizeof *self->methods->words);
    self->methods->known = calloc(DOUBLE_SLOTS, sizeof *self->methods->known);
    for (uint32_t i = 0; i < DOUBLE_SLOTS; i++) {
        self->streams[i] = (CUstream)(uintptr_t)(i + 1);
        g_last[i] = &g_first[i];
    }
    for (uint32_t number = 1; number <= DOUBLE_TYPES; number++)
        add_type(self, number);
    acs_cuda_gpu_issue_init(self, graph_nodes);
}

void double_close(void)
{
    acs_cuda *self = g_double.self;
    while (double_step())
        ;
    acs_cuda_gpu_issue_fini(self);
    assert_int_equal(g_double.execs, 0);
    for (uint32_t number = 1; number <= DOUBLE_TYPES; number++) {
        acs_cuda_type *type = acs_cuda_type_find(self, number);
        free(type->kernel);
        free(type);
    }
    while (g_graves) {
        struct grave *next = g_graves->next;
        free(g_graves->dead);
        free(g_graves);
        g_graves = next;
    }
    free(self->methods->words);
    free(self->methods->known);
    free(self->methods);
    free(self->streams);
    free(self);
}
