/*
 * Bundles made by hand, for test_gpu_issue.c and bench_gpu_issue.c: ops and joins with what each follows, issued by
 * the cuda backend's GPU-side issue directly, without a core. What they leave in memory is compared with the host's own
 * account.
 */
#ifndef GPU_WINDOW_BUNDLES_H
#define GPU_WINDOW_BUNDLES_H

#include "cuda/gpu_issue/gpu_issue.h"
#include "check.h"
#include "window_kernels.h"

enum { BUNDLE_UPS = 1 << 16 };

/* A backend with what the bundles of its slots touch. */
typedef struct bench_device {
    acs_backend *backend;
    acs_cuda *self;
    uint64_t value[8]; /* per slot: of the next op */
} bench_device;

/* One bundle. Words are indexed by item: a join's is not used. */
typedef struct bundle {
    acs_batch batch;
    acs_dag dag;
    acs_record op[ACS_BATCH_ITEMS];
    uint32_t *words;     /* device */
    uint16_t *ups;       /* pinned: of each op, what it reads: the ops that it follows, directly or by joins */
    uint32_t ups_used;
    uint32_t first_up[ACS_BATCH_ITEMS], up_count[ACS_BATCH_ITEMS]; /* of joins too */
    uint32_t kernel[ACS_BATCH_ITEMS];
    uint32_t truth[ACS_BATCH_ITEMS]; /* what the words hold after all bundles so far */
} bundle;

static inline void device_open(bench_device *device, int graph_nodes)
{
    acs_options options = check_options();
    options.graph_nodes = graph_nodes;
    options.issuers = 0; /* the caller's thread launches all by itself, and is timed */
    acs_backend_config config = {.devices = 1, .options = &options, .slots = 8, .mark_capacity = 64};
    memset(device, 0, sizeof *device);
    CHECK_STATUS(acs_backend_cuda.open(&config, &device->backend), ACS_OK);
    (void)acs_backend_cuda.decider(device->backend); /* bundles from the first op on */
    device->self = (acs_cuda *)device->backend;
    for (int i = 0; i < 8; i++)
        device->value[i] = 1;
}

static inline void device_close(bench_device *device)
{
    CHECK_CUDA(cudaDeviceSynchronize());
    acs_backend_cuda.close(device->backend);
}

static inline bundle *bundle_create(void)
{
    bundle *b = (bundle *)calloc(1, sizeof *b);
    CHECK_CUDA(cudaMalloc((void **)&b->words, sizeof b->truth));
    CHECK_CUDA(cudaMemset(b->words, 0, sizeof b->truth));
    CHECK_CUDA(cudaHostAlloc((void **)&b->ups, BUNDLE_UPS * sizeof *b->ups, cudaHostAllocDefault));
    CHECK_CUDA(cudaDeviceSynchronize());
    return b;
}

static inline void bundle_destroy(bundle *b)
{
    CHECK_CUDA(cudaFree(b->words));
    CHECK_CUDA(cudaFreeHost(b->ups));
    free(b);
}

/* Forget the ops; the words and their truth stay. Only when the bundle is complete. */
static inline void bundle_clear(bundle *b)
{
    b->batch.items_used = b->batch.edges_used = 0;
    b->batch.bundle = true;
    b->batch.method = ACS_METHOD_GPU;
    b->ups_used = 0;
}

/* Add an op of a kernel, or a join (-1). */
static inline uint32_t bundle_add(bundle *b, int kernel)
{
    uint32_t i = b->batch.items_used++;
    acs_item *item = &b->batch.items[i];
    memset(item, 0, sizeof *item);
    item->op = kernel >= 0 ? &b->op[i] : NULL;
    item->first_edge = (uint16_t)b->batch.edges_used;
    b->kernel[i] = (uint32_t)kernel;
    b->first_up[i] = b->ups_used;
    b->up_count[i] = 0;
    return i;
}

/* The item added last follows an earlier one. */
static inline void bundle_follow(bundle *b, uint32_t earlier)
{
    uint32_t i = b->batch.items_used - 1;
    b->batch.items[i].edge_count++;
    b->batch.edges[b->batch.edges_used++] = (uint16_t)earlier;
    bool join = b->batch.items[earlier].op == NULL;
    for (uint32_t u = 0; u < (join ? b->up_count[earlier] : 1); u++) {
        if (b->ups_used == BUNDLE_UPS) {
            fprintf(stderr, "a bundle reads too much\n");
            exit(1);
        }
        b->ups[b->ups_used++] = join ? b->ups[b->first_up[earlier] + u] : (uint16_t)earlier;
        b->up_count[i]++;
    }
}

static inline void put_arg(acs_record *op, const void *value, uint32_t bytes)
{
    acs_arg_slot *arg = &op->args[op->arg_count++];
    op->arg_bytes_used = (op->arg_bytes_used + bytes - 1) / bytes * bytes;
    arg->offset = op->arg_bytes_used;
    arg->size = bytes;
    memcpy(op->arg_bytes + arg->offset, value, bytes);
    op->arg_bytes_used += bytes;
}

static inline void launch_begin(acs_record *op, const void *function, uint32_t grid, uint32_t block)
{
    static const acs_site site = {.name = "window_kernel", .file = __FILE__, .line = __LINE__};
    memset(op, 0, sizeof *op);
    op->site = &site;
    op->kind = ACS_KIND_KERNEL;
    op->args = op->inline_args;
    op->arg_bytes = op->inline_bytes;
    op->u.launch.kernel.kind = ACS_KERNEL_FUNCTION;
    op->u.launch.kernel.function = function;
    op->grid = (acs_dim3){grid, 1, 1};
    op->u.launch.block = (acs_dim3){block, 1, 1};
}

/* Records, values and shape, once all items are there. */
static inline void bundle_finish(bench_device *device, bundle *b, int slot, uint32_t grid, uint32_t ns)
{
    for (uint32_t i = 0; i < b->batch.items_used; i++) {
        acs_item *item = &b->batch.items[i];
        item->slot = item->op ? (int16_t)slot : -1;
        if (!item->op)
            continue;
        const uint16_t *ups = b->ups + b->first_up[i];
        launch_begin(item->op, window_kernel((int)b->kernel[i]), grid, 64);
        put_arg(item->op, &b->words, sizeof b->words);
        put_arg(item->op, &ups, sizeof ups);
        put_arg(item->op, &i, sizeof i);
        put_arg(item->op, &b->up_count[i], sizeof b->up_count[i]);
        put_arg(item->op, &ns, sizeof ns);
        CHECK_STATUS(acs_cuda_check(device->backend, item->op), ACS_OK);
        CHECK(item->op->type != 0);
    }
    acs_dag_make(&b->batch, &b->dag);
}

/* What one more run of the bundle does, in the order of the items. */
static inline void bundle_account(bundle *b)
{
    for (uint32_t i = 0; i < b->batch.items_used; i++) {
        if (!b->batch.items[i].op)
            continue;
        uint32_t word = b->truth[i];
        for (uint32_t u = 0; u < b->up_count[i]; u++)
            word = window_mix(word, b->truth[b->ups[b->first_up[i] + u]], b->kernel[i]);
        b->truth[i] = window_mix(word, i, b->kernel[i]);
    }
}

/* The values of its slot that come next, each time: they only grow. */
static inline void bundle_number(bench_device *device, bundle *b, bool issued)
{
    int slot = b->batch.items[0].slot;
    uint64_t value = device->value[slot];
    for (uint32_t i = 0; i < b->batch.items_used; i++)
        if (b->batch.items[i].op)
            b->batch.items[i].value = value++;
    if (issued)
        device->value[slot] = value;
}

static inline bool bundle_issue(bench_device *device, bundle *b)
{
    acs_cuda_scope scope;
    bool issued = false;
    bundle_number(device, b, false);
    if (acs_cuda_scope_enter(device->self, &scope) == CUDA_SUCCESS) {
        issued = acs_cuda_gpu_issue_issue(device->self, &b->batch, &b->dag, 0);
        acs_cuda_scope_leave(device->self, &scope);
    }
    bundle_number(device, b, issued);
    return issued;
}

/* The words against the truth; the number that differ. */
static inline uint32_t bundle_wrong(bundle *b)
{
    uint32_t words[ACS_BATCH_ITEMS], wrong = 0;
    CHECK_CUDA(cudaMemcpy(words, b->words, sizeof words, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < b->batch.items_used; i++)
        wrong += b->batch.items[i].op && words[i] != b->truth[i];
    return wrong;
}

/* ---------------------------------------------------------------------------------------------------------- shapes */

static inline void make_chains(bundle *b, uint32_t ops, uint32_t width, uint32_t kernels)
{
    for (uint32_t i = 0; i < ops; i++) {
        bundle_add(b, (int)(i % kernels));
        if (i >= width)
            bundle_follow(b, i - width);
    }
}

static inline void make_stencil(bundle *b, uint32_t ops, uint32_t width, uint32_t kernels)
{
    for (uint32_t i = 0; i < ops; i++) {
        bundle_add(b, (int)(i % kernels));
        for (int d = -1; i >= width && d <= 1; d++)
            if ((int)(i % width) + d >= 0 && (int)(i % width) + d < (int)width)
                bundle_follow(b, (uint32_t)((int)(i - width) + d));
    }
}

/* Each follows two of the 32 before it. */
static inline void make_random(bundle *b, uint32_t ops, uint32_t kernels, uint64_t seed)
{
    acs_random random = {seed};
    for (uint32_t i = 0; i < ops; i++) {
        bundle_add(b, (int)acs_random_below(&random, kernels));
        for (int u = 0; u < 2 && i >= 32; u++)
            bundle_follow(b, i - 1 - acs_random_below(&random, 32));
    }
}

#endif
