/*
 * Running ops on a CPU: checks a launch as CUDA would, runs kernel bodies, copies and fills, and allocates memory.
 * Called by the host and the sim backend: the check on the launching thread, the run on an executor. Never queues,
 * orders or locks anything. A running op cannot fail, for its memory was allocated before.
 */
#include "host/host_kernel.h"

#include "base/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /*
     * The alignment that the ops table promises, and that cudaMalloc has. The limits below are those of CUDA devices.
     */
    MEMORY_ALIGN = 256,
    GRID_X_MAX = INT32_MAX,
    GRID_YZ_MAX = 65535,
    BLOCK_XY_MAX = 1024,
    BLOCK_Z_MAX = 64,
    BLOCK_THREADS_MAX = 1024,
    CLUSTER_BLOCKS_MAX = 16 /* most blocks of a cluster on any device */
};

acs_status acs_host_scratch_init(acs_host_scratch *scratch)
{
    scratch->shared = aligned_alloc(MEMORY_ALIGN, ACS_HOST_SHARED_MAX);
    scratch->args = malloc(ACS_ARG_BYTES_MAX * sizeof *scratch->args);
    if (scratch->shared && scratch->args)
        return ACS_OK;
    acs_host_scratch_fini(scratch);
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the scratch space of a thread that runs kernels");
}

void acs_host_scratch_fini(acs_host_scratch *scratch)
{
    free(scratch->shared);
    free(scratch->args);
    scratch->shared = NULL;
    scratch->args = NULL;
}

/* ------------------------------------------------------------------------------------------------------- running */

/*
 * Shared memory is zeroed before each kernel, so that runs repeat even if a body reads before it writes. The body gets
 * its arguments as cudaLaunchKernel takes them: an array of pointers to their values.
 */
static void run_kernel(const acs_record *op, acs_host_scratch *scratch)
{
    acs_grid grid = {op->grid, op->u.launch.block, op->u.launch.shared_bytes, NULL};

    if (op->flags & ACS_RECORD_GRID_DECIDED)
        grid.grid = (acs_dim3){op->cell->grid[0], op->cell->grid[1], op->cell->grid[2]};
    if (grid.shared_bytes) {
        grid.shared = scratch->shared;
        memset(grid.shared, 0, grid.shared_bytes);
    }
    for (uint32_t i = 0; i < op->arg_count; i++)
        scratch->args[i] = op->arg_bytes + op->args[i].offset;
    op->u.launch.kernel.host(&grid, scratch->args);
}

bool acs_host_runs(const acs_record *op)
{
    return op->kind == ACS_KIND_KERNEL || op->kind == ACS_KIND_MEMCPY || op->kind == ACS_KIND_MEMSET ||
           op->kind == ACS_KIND_STREAM_WAIT;
}

static void run_copy(const acs_record *op)
{
    for (uint64_t row = 0; row < op->u.copy.rows; row++)
        memmove((char *)op->u.copy.dst + row * op->u.copy.pitch, (const char *)op->u.copy.src + row * op->u.copy.pitch,
                op->u.copy.bytes);
}

void acs_host_run(const acs_record *op, acs_host_scratch *scratch)
{
    if (op->flags & ACS_RECORD_DECIDED && !acs_cell_runs(op->cell))
        return;
    /* STREAM_WAIT does nothing: a CPU has no foreign stream to wait for. Copies of no bytes may have null ends. */
    if (op->kind == ACS_KIND_KERNEL)
        run_kernel(op, scratch);
    else if (op->kind == ACS_KIND_MEMCPY && op->u.copy.bytes)
        run_copy(op);
    else if (op->kind == ACS_KIND_MEMSET && op->u.copy.bytes)
        memset(op->u.copy.dst, op->u.copy.value, op->u.copy.bytes);
}

/* ------------------------------------------------------------------------------------------------------ checking */

static bool dims_fit(acs_dim3 d, acs_dim3 max)
{
    return d.x && d.y && d.z && d.x <= max.x && d.y <= max.y && d.z <= max.z;
}

/* `what` is "grid" or "block". */
static acs_status refuse_dims(const acs_record *op, const char *what, acs_dim3 d, acs_dim3 max)
{
    return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                    "kernel '%s': %s is (%" PRIu32 ", %" PRIu32 ", %" PRIu32 "); each must be from 1 to (%" PRIu32
                    ", %" PRIu32 ", %" PRIu32 ")",
                    acs_record_name(op), what, d.x, d.y, d.z, max.x, max.y, max.z);
}

/* A cluster is three nonzero sizes that divide the grid, or none at all. */
static acs_status check_cluster(const acs_record *op, acs_dim3 cluster, acs_dim3 grid)
{
    static const acs_dim3 max = {CLUSTER_BLOCKS_MAX, CLUSTER_BLOCKS_MAX, CLUSTER_BLOCKS_MAX};
    uint32_t blocks;

    if (!cluster.x && !cluster.y && !cluster.z)
        return ACS_OK;
    if (!dims_fit(cluster, max))
        return refuse_dims(op, "cluster", cluster, max);
    blocks = cluster.x * cluster.y * cluster.z; /* at most 16 * 16 * 16 */
    if (blocks > CLUSTER_BLOCKS_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "kernel '%s': cluster has %" PRIu32 " blocks; at most %d are possible",
                        acs_record_name(op), blocks, CLUSTER_BLOCKS_MAX);
    if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0,
                        "kernel '%s': cluster (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") does not divide grid (%" PRIu32
                        ", %" PRIu32 ", %" PRIu32 ")",
                        acs_record_name(op), cluster.x, cluster.y, cluster.z, grid.x, grid.y, grid.z);
    return ACS_OK;
}

/*
 * Refuse a kernel without a host body. A program for GPUs makes thousands of such launches on a machine without a GPU.
 * Each sets its thread's error, but the context logs only one, with the reason why it has no GPU.
 */
static acs_status refuse_bodiless(acs_backend *backend, const acs_record *op)
{
    acs_error *error = acs_error_thread();
    const char *reason = backend->no_gpu;
    acs_error_fill(error, ACS_ERR_UNSUPPORTED, 0, "acs_host_check",
                   "kernel '%.80s' has no host body, without which it cannot run on this backend%s%s%s", acs_record_name(op),
                   *reason ? " (host, since " : "", reason, *reason ? ")" : "");
    /* relaxed: the flag guards no other data */
    if (!atomic_exchange_explicit(&backend->refusals_told, 1, memory_order_relaxed))
        acs_log(ACS_LOG_ERROR, "%s; this context logs no other launch that is refused for want of one", error->text);
    return error->status;
}

/*
 * Check that the kernel can run here. With neither function nor body it is a mistake of the program (ACS_ERR_ARGUMENT);
 * with a function only, it does not fit this backend (ACS_ERR_UNSUPPORTED).
 */
static acs_status check_body(acs_backend *backend, const acs_record *op)
{
    const acs_kernel *kernel = &op->u.launch.kernel;

    if (kernel->host)
        return ACS_OK;
    if (!kernel->function)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "kernel '%s' is null: it has neither a function nor a host body",
                        acs_record_name(op));
    return refuse_bodiless(backend, op);
}

acs_status acs_host_check(acs_backend *backend, acs_record *op)
{
    static const acs_dim3 grid_max = {GRID_X_MAX, GRID_YZ_MAX, GRID_YZ_MAX};
    static const acs_dim3 block_max = {BLOCK_XY_MAX, BLOCK_XY_MAX, BLOCK_Z_MAX};
    acs_dim3 block;

    if (op->kind != ACS_KIND_KERNEL)
        return ACS_OK;
    block = op->u.launch.block;
    ACS_TRY(check_body(backend, op));
    if (ACS_UNLIKELY(!dims_fit(op->grid, grid_max)))
        return refuse_dims(op, "grid", op->grid, grid_max);
    if (ACS_UNLIKELY(!dims_fit(block, block_max)))
        return refuse_dims(op, "block", block, block_max);
    if (block.x * block.y * block.z > BLOCK_THREADS_MAX) /* at most 2^26 */
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "kernel '%s': block has %" PRIu32 " threads; at most %d are possible",
                        acs_record_name(op), block.x * block.y * block.z, BLOCK_THREADS_MAX);
    if (op->u.launch.shared_bytes > ACS_HOST_SHARED_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "kernel '%s': %" PRIu64 " bytes of shared memory; at most %d are possible",
                        acs_record_name(op), op->u.launch.shared_bytes, ACS_HOST_SHARED_MAX);
    if (op->arg_count > ACS_ARG_BYTES_MAX)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "kernel '%s': %" PRIu32 " arguments; at most %d are possible",
                        acs_record_name(op), op->arg_count, ACS_ARG_BYTES_MAX);
    return check_cluster(op, op->u.launch.attributes.cluster, op->grid);
}

/* -------------------------------------------------------------------------------------- the rest of the ops table */

void acs_host_thread_enter(acs_backend *backend)
{
    (void)backend;
}

/* A CPU has no foreign streams, so there is nothing to wait for and NULL is a valid event. */
acs_status acs_host_stream_record(acs_backend *backend, void *stream, void **event)
{
    (void)backend;
    (void)stream;
    if (event)
        *event = NULL;
    return ACS_OK;
}

void acs_host_event_release(acs_backend *backend, void *event)
{
    (void)backend;
    (void)event;
}

acs_status acs_host_memory_alloc(acs_backend *backend, int memory, size_t bytes, void **ptr)
{
    void *block;

    (void)backend;
    (void)memory; /* device and host memory are the same here */
    if (!bytes)
        return ACS_FAIL(ACS_ERR_ARGUMENT, 0, "an allocation of 0 bytes");
    if (bytes > SIZE_MAX - MEMORY_ALIGN)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for an allocation of %zu bytes", bytes);
    /* C11 wants the size to be a multiple of the alignment. */
    block = aligned_alloc(MEMORY_ALIGN, (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN);
    if (!block)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for an allocation of %zu bytes", bytes);
    *ptr = block;
    return ACS_OK;
}

acs_status acs_host_memory_free(acs_backend *backend, int memory, void *ptr)
{
    (void)backend;
    (void)memory;
    free(ptr);
    return ACS_OK;
}

/* Each virtual device reports the machine's memory. The free part is unknown, for it changes at any moment. */
acs_status acs_host_memory_state(acs_backend *backend, uint32_t device, char id[64], uint64_t *total, uint64_t *left)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    (void)backend;
    (void)snprintf(id, 64, device ? "host-%u" : "host", device);
    *total = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : UINT64_MAX;
    *left = UINT64_MAX;
    return ACS_OK;
}

/*
 * Links of virtual devices, about as fast as an H200's. They serve to test the choice of devices, which compares speeds
 * with each other.
 */
acs_status acs_host_links(acs_backend *backend, acs_topology *topology)
{
    static const acs_route between = {TUNE_LINK_PEER_GB_S * 1e9, TUNE_LINK_US / 1e6, true},
                           to_host = {TUNE_LINK_HOST_GB_S * 1e9, TUNE_LINK_US / 1e6, false};
    (void)backend;
    for (uint32_t a = 0; a <= topology->count; a++) {
        if (a < topology->count)
            (void)snprintf(topology->id[a], sizeof topology->id[a], "virtual-%u", a);
        for (uint32_t b = 0; b <= topology->count; b++)
            topology->links[a][b] = a == topology->count || b == topology->count ? to_host : between;
    }
    return ACS_OK;
}

/* The capacity of an H200. */
acs_status acs_host_capacity(acs_backend *backend, uint32_t device, acs_capacity *capacity)
{
    (void)backend, (void)device;
    *capacity = (acs_capacity){.sms = 132, .threads = 2048, .registers = 65536, .shared = 233472,
                               .memory = UINT64_C(141) << 30};
    return ACS_OK;
}
