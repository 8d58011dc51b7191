/*
 * CUPTI (cupti.h). Owns the rings of what CUPTI told, which CUPTI's own thread fills, and opens CUPTI before the program's
 * first CUDA call if the environment asks for a trace. Called by profiler.c. It never waits for the GPU, and never fails
 * an op: what is not known is left out.
 */
#include "cuda/internal.h"

#include "base/options.h"
#include "base/tuning.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

acs_cupti_detail acs_cupti_wanted(const acs_options *options)
{
    if ((!*options->trace && !*options->report) || options->trace_times == ACS_TRACE_TIMES_POLLS)
        return ACS_CUPTI_OFF;
    return options->trace_times == ACS_TRACE_TIMES_KERNELS ? ACS_CUPTI_KERNELS : ACS_CUPTI_GRAPHS;
}

#ifdef ACS_HAVE_CUPTI

#include <cupti.h>

enum { OP_BITS = 48 }; /* of a number that is pushed; the rest is the backend's */

/* Something ran: with the number of the driver's call that launched it, and its node in a graph. */
typedef struct work {
    uint64_t began, ended;
    uint32_t call, node;
    bool in_graph;
} work;

/* The number that was pushed around a call. */
typedef struct link {
    uint64_t pushed;
    uint32_t call;
} link;

/* The op of a node in a launch. */
typedef struct node_op {
    uint64_t launch; /* pushed */
    uint32_t node;
    acs_op op;
} node_op;

/* The newest of many. Grows up to TUNE_CUPTI_RECORDS; then the oldest are overwritten. */
typedef struct ring {
    void *items;
    size_t size;              /* bytes of an item */
    uint64_t count, capacity; /* ever added */
} ring;

#define FUNCTIONS(X)                                                                                                   \
    X(cuptiSubscribe) X(cuptiActivityRegisterTimestampCallback) X(cuptiActivityRegisterCallbacks)                      \
    X(cuptiActivityEnable) X(cuptiActivityEnableDriverApi) X(cuptiActivityGetNextRecord) X(cuptiActivityFlushAll)      \
    X(cuptiActivityPushExternalCorrelationId) X(cuptiActivityPopExternalCorrelationId) X(cuptiGetGraphNodeId)
#define MEMBER(function) __typeof__(&function) function;

static struct {
    FUNCTIONS(MEMBER)
    pthread_mutex_t lock; /* guards all but the functions, which are constant once `detail` is set */
    acs_cupti_detail detail;
    bool tried;
    const char *refusal;
    ring works, links, nodes;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .works = {.size = sizeof(work)},
       .links = {.size = sizeof(link)},
       .nodes = {.size = sizeof(node_op)}};

/* --------------------------------------------------------------------------------------------------------------- rings */

/* Room for one more. NULL: no memory. */
static void *ring_add(ring *r)
{
    if (r->count == r->capacity && r->capacity < TUNE_CUPTI_RECORDS) {
        const uint64_t more = r->capacity ? 2 * r->capacity : 1024;
        void *grown = realloc(r->items, more * r->size);
        if (!grown && !r->capacity)
            return NULL;
        r->items = grown ? grown : r->items;
        r->capacity = grown ? more : r->capacity;
    }
    return (char *)r->items + r->count++ % r->capacity * r->size;
}

static uint64_t held(const ring *r)
{
    return r->count < r->capacity ? r->count : r->capacity;
}

/* ------------------------------------------------------------------------------------------------------ what CUPTI says */

static void add_work(uint64_t began, uint64_t ended, uint32_t call, uint64_t node)
{
    work *w = ended ? ring_add(&g.works) : NULL; /* 0: CUPTI does not know */
    if (w)
        *w = (work){.began = began, .ended = ended, .call = call, .node = (uint32_t)node, .in_graph = node != 0};
}

static void take_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *k = (const void *)record;
        add_work(k->start, k->end, k->correlationId, k->graphNodeId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
        const CUpti_ActivityGraphTrace2 *graph = (const void *)record;
        add_work(graph->start, graph->end, graph->correlationId, 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *copy = (const void *)record;
        add_work(copy->start, copy->end, copy->correlationId, copy->graphNodeId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *fill = (const void *)record;
        add_work(fill->start, fill->end, fill->correlationId, fill->graphNodeId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const CUpti_ActivityExternalCorrelation *pushed = (const void *)record;
        link *l = ring_add(&g.links);
        if (l)
            *l = (link){pushed->externalId, pushed->correlationId};
        break;
    }
    default: /* calls of the driver, which come with the pushed numbers */
        break;
    }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = aligned_alloc(8, TUNE_CUPTI_BUFFER_BYTES);
    *bytes = *buffer ? TUNE_CUPTI_BUFFER_BYTES : 0;
    *most_records = 0; /* as many as fit */
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)bytes;
    (void)pthread_mutex_lock(&g.lock);
    while (g.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        take_record(record);
    (void)pthread_mutex_unlock(&g.lock);
    free(buffer);
}

static uint64_t CUPTIAPI now(void)
{
    return acs_clock_ns();
}

/* CUPTI wants a function, and calls it only for events that nobody asked for. */
static void CUPTIAPI no_events(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    (void)user;
    (void)domain;
    (void)id;
    (void)data;
}

/* ----------------------------------------------------------------------------------------------------------- starting */

/* Whether the driver is at work already. */
static bool cuda_has_begun(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, "cuCtxGetCurrent") : NULL;
    CUresult (*get_current)(CUcontext *) = NULL;
    CUcontext context;
    memcpy(&get_current, &symbol, sizeof symbol);
    const bool begun = get_current && get_current(&context) != CUDA_ERROR_NOT_INITIALIZED;
    if (driver)
        dlclose(driver);
    return begun;
}

static bool find_functions(void)
{
    static const struct {
        const char *name;
        void *to;
    } wanted[] = {
#define ROW(function) {#function, &g.function},
        FUNCTIONS(ROW)};
    static const char *const names[] = {ACS_CUPTI_LIBRARY, ACS_CUPTI_PATH "/" ACS_CUPTI_LIBRARY};
    void *library = dlopen(names[0], RTLD_NOW | RTLD_LOCAL);
    library = library ? library : dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol)
            return false;
        memcpy(wanted[i].to, &symbol, sizeof symbol);
    }
    return true;
}

/* The driver's calls that launch something. A call that is not among them has no number of ours. */
static const CUpti_CallbackId g_calls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async,
};

static CUptiResult enable(acs_cupti_detail detail)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_GRAPH_TRACE /* the last: then nodes have no records */};
    const size_t count = sizeof kinds / sizeof kinds[0] - (detail == ACS_CUPTI_KERNELS);
    CUptiResult result = CUPTI_SUCCESS;
    for (size_t i = 0; i < count && result == CUPTI_SUCCESS; i++)
        result = g.cuptiActivityEnable(kinds[i]);
    for (size_t i = 0; i < sizeof g_calls / sizeof g_calls[0] && result == CUPTI_SUCCESS; i++)
        result = g.cuptiActivityEnableDriverApi(g_calls[i], 1);
    return result;
}

static bool is_set(const char *variable)
{
    const char *value = acs_environment(variable);
    return value && *value;
}

/* The reason why not; NULL: it has started. */
static const char *start_locked(acs_cupti_detail detail)
{
    CUpti_SubscriberHandle subscriber;
    if (is_set("CUDA_INJECTION64_PATH") || is_set("NVTX_INJECTION64_PATH"))
        return "a profiler is attached, which uses CUPTI itself";
    if (cuda_has_begun())
        return "the program called CUDA before CUPTI could start: set ACS_TRACE or ACS_REPORT in the environment, so that "
               "it starts with the program";
    if (!find_functions())
        return ACS_CUPTI_LIBRARY " is not found, or lacks functions: put its folder on LD_LIBRARY_PATH";
    if (g.cuptiSubscribe(&subscriber, no_events, NULL) != CUPTI_SUCCESS)
        return "CUPTI does not start: there is no driver, or another tool of this process uses it";
    if (g.cuptiActivityRegisterTimestampCallback(now) != CUPTI_SUCCESS ||
        g.cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS || enable(detail) != CUPTI_SUCCESS)
        return "CUPTI refuses to record kernels";
    return NULL;
}

const char *acs_cupti_start(const acs_options *options)
{
    const acs_cupti_detail detail = acs_cupti_wanted(options);
    if (detail == ACS_CUPTI_OFF)
        return "it is not wanted";
    ACS_HOLD_MUTEX(&g.lock);
    if (!g.tried) {
        g.refusal = start_locked(detail);
        g.detail = g.refusal ? ACS_CUPTI_OFF : detail;
        g.tried = true;
    }
    const bool fits = g.detail == detail || options->trace_times == ACS_TRACE_TIMES_AUTO;
    return g.refusal || fits ? g.refusal : "CUPTI has started in this process with another ACS_TRACE_TIMES";
}

acs_cupti_detail acs_cupti_started(void)
{
    ACS_HOLD_MUTEX(&g.lock);
    return g.detail;
}

/* Before main, if the environment asks for a trace: the program's first CUDA call may come before acs_open. */
__attribute__((constructor)) static void start_with_the_program(void)
{
    acs_options options;
    if (!is_set("ACS_TRACE") && !is_set("ACS_REPORT"))
        return;
    (void)acs_options_init(&options, sizeof options); /* acs_open tells of bad values */
    if (options.backend == ACS_BACKEND_AUTO || options.backend == ACS_BACKEND_CUDA)
        (void)acs_cupti_start(&options);
}

/* ----------------------------------------------------------------------------------------------------------- launches */

static uint64_t number(uint64_t backend, acs_op op)
{
    return backend << OP_BITS | (op & ((UINT64_C(1) << OP_BITS) - 1));
}

void acs_cupti_push(uint64_t backend, acs_op op)
{
    (void)g.cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, number(backend, op));
}

void acs_cupti_pop(void)
{
    uint64_t popped;
    (void)g.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped);
}

/* CUPTI numbers the nodes of a graph and of what was instantiated from it alike, in the lower half. */
void acs_cupti_node(uint64_t backend, acs_op launch, CUgraphNode node, acs_op op)
{
    uint64_t id = 0;
    if (g.cuptiGetGraphNodeId(node, &id) != CUPTI_SUCCESS)
        return;
    ACS_HOLD_MUTEX(&g.lock);
    node_op *n = ring_add(&g.nodes);
    if (n)
        *n = (node_op){number(backend, launch), (uint32_t)id, op};
}

/* --------------------------------------------------------------------------------------------------------------- take */

static int by_call(const void *a, const void *b)
{
    const link *x = a, *y = b;
    return (x->call > y->call) - (x->call < y->call);
}

static int by_launch_and_node(const void *a, const void *b)
{
    const node_op *x = a, *y = b;
    if (x->launch != y->launch)
        return x->launch < y->launch ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int by_op(const void *a, const void *b)
{
    const acs_device_time *x = a, *y = b;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return (x->began_ns > y->began_ns) - (x->began_ns < y->began_ns);
}

/* What a work is of. False: of nothing that this backend launched, or of a node that is no op. */
static bool find_op(const work *w, uint64_t backend, acs_device_time *time)
{
    const link wanted = {.call = w->call};
    const link *l = g.links.items ? bsearch(&wanted, g.links.items, held(&g.links), sizeof wanted, by_call) : NULL;
    if (!l || l->pushed >> OP_BITS != (backend & ((UINT64_C(1) << (64 - OP_BITS)) - 1)))
        return false;
    *time = (acs_device_time){.op = l->pushed & ((UINT64_C(1) << OP_BITS) - 1), .began_ns = w->began, .ended_ns = w->ended};
    if (!w->in_graph || g.detail != ACS_CUPTI_KERNELS)
        return true;
    const node_op at = {.launch = l->pushed, .node = w->node};
    const node_op *n = g.nodes.items ? bsearch(&at, g.nodes.items, held(&g.nodes), sizeof at, by_launch_and_node) : NULL;
    time->op = n ? n->op : 0;
    time->node = true;
    return n != NULL;
}

acs_status acs_cupti_take(uint64_t backend, acs_device_times *times)
{
    (void)g.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); /* calls take_buffer; buffers need not be full */
    (void)pthread_mutex_lock(&g.lock);
    acs_device_time *list = calloc(held(&g.works) + 1, sizeof *list);
    uint64_t count = 0;
    /* The order in the rings is of no meaning but for what is overwritten first. */
    if (list && g.links.items)
        qsort(g.links.items, held(&g.links), sizeof(link), by_call);
    if (list && g.nodes.items)
        qsort(g.nodes.items, held(&g.nodes), sizeof(node_op), by_launch_and_node);
    for (uint64_t i = 0; list && i < held(&g.works); i++)
        count += find_op((const work *)g.works.items + i, backend, &list[count]);
    const uint64_t told = held(&g.works);
    (void)pthread_mutex_unlock(&g.lock);
    if (!list)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for the times of kernels");
    acs_log(ACS_LOG_INFO, "cuda: CUPTI told when %" PRIu64 " kernels, copies and graphs ran; %" PRIu64 " are this context's",
            told, count);
    qsort(list, count, sizeof *list, by_op);
    *times = (acs_device_times){list, count, g.detail == ACS_CUPTI_KERNELS ? "kernels" : "graphs"};
    return ACS_OK;
}

#else /* no header */

const char *acs_cupti_start(const acs_options *options)
{
    (void)options;
    return "this build has no CUPTI: the header of CUDA 13 or later was not there";
}

acs_cupti_detail acs_cupti_started(void)
{
    return ACS_CUPTI_OFF;
}

void acs_cupti_push(uint64_t backend, acs_op op)
{
    (void)backend;
    (void)op;
}

void acs_cupti_pop(void)
{
}

void acs_cupti_node(uint64_t backend, acs_op launch, CUgraphNode node, acs_op op)
{
    (void)backend;
    (void)launch;
    (void)node;
    (void)op;
}

acs_status acs_cupti_take(uint64_t backend, acs_device_times *times)
{
    (void)backend;
    *times = (acs_device_times){0};
    return ACS_OK;
}

#endif
