/*
 * The resident executor's issue: a bundle becomes a table in pinned memory and one launch of the program's executor
 * kernel in the bundle's slot. Owns each slot's tables; called by graphs/method.c in a scope, and by open and close.
 * It never waits for the GPU, and never issues a part of a bundle.
 */
#include "cuda/resident/resident.h"

#include "base/tuning.h"

#include <stdlib.h>

enum { WARP = 32 };

/* ---------------------------------------------------------------------------------------------------------- fitting */

/* Threads of the device that one executor may take. */
static uint32_t executor_threads(const acs_cuda *self)
{
    return (uint32_t)self->limits.sms * (uint32_t)self->limits.sm_threads / TUNE_RESIDENT_PART;
}

/*
 * Whether an executor takes the op's block, shared memory, grid and arguments. A grid with more threads than the executor
 * fills the device by itself, and is faster there.
 */
static bool takes(const acs_cuda *self, const acs_cuda_executor *executor, const acs_cuda_type *type, const acs_record *op)
{
    const uint64_t threads = (uint64_t)type->block.x * type->block.y * type->block.z;
    const uint64_t blocks = (uint64_t)op->grid.x * op->grid.y * op->grid.z;
    return threads % WARP == 0 && threads <= executor->threads && type->shared_bytes <= executor->shared_bytes &&
           blocks * threads <= executor_threads(self) && type->arg_bytes <= ACS_EXECUTOR_ARG_BYTES;
}

/* The one that takes all ops; copies and fills go with any. */
acs_cuda_executor *acs_cuda_resident_executor(acs_cuda *self, const acs_batch *batch)
{
    acs_cuda_executor *common = NULL;
    for (uint32_t i = 0; self->resident && i < batch->items_used; i++) {
        const acs_record *op = batch->items[i].op;
        if (!op)
            continue;
        const acs_cuda_type *type = acs_cuda_type_find(self, op->type);
        const acs_cuda_body *body = atomic_load_explicit(&type->kernel->body, memory_order_acquire); /* E in executor.c */
        if (!body || type->decided) /* whoever takes a block would have to read the op's cell */
            return NULL;
        if (!body->executor)
            continue;
        if ((common && body->executor != common) || !takes(self, body->executor, type, op))
            return NULL;
        common = body->executor;
    }
    /* relaxed: a bundle that misses the refusal is refused itself */
    return common && !atomic_load_explicit(&common->refused, memory_order_relaxed) ? common : NULL;
}

/* ------------------------------------------------------------------------------------------------------------ lanes */

static void lane_destroy(acs_cuda *self, acs_resident_lane *lane)
{
    if (lane->memory)
        (void)acs_cuda_note(self, self->cu.cuMemFree(lane->memory));
    if (lane->tables)
        (void)acs_cuda_note(self, self->cu.cuMemFreeHost(lane->tables));
    free(lane);
}

/* Make the state of a slot at its first bundle. NULL: not possible now. */
static acs_resident_lane *lane_open(acs_cuda *self, int slot)
{
    acs_resident_lane *lane = calloc(1, sizeof *lane);
    void *tables = NULL;
    if (!lane)
        return NULL;
    CUresult result = self->cu.cuMemHostAlloc(&tables, (size_t)ACS_RESIDENT_TABLES * ACS_RESIDENT_TABLE_BYTES,
                                              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        lane->tables = tables;
        result = self->cu.cuMemAlloc(&lane->memory, ACS_RESIDENT_TABLE_BYTES + sizeof(acs_executor_state));
    }
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemsetD8Async(lane->memory + ACS_RESIDENT_TABLE_BYTES, 0, sizeof(acs_executor_state),
                                          self->streams[slot]);
    if (result == CUDA_SUCCESS)
        return self->resident->lanes[slot] = lane;
    (void)acs_cuda_note(self, result);
    acs_log(ACS_LOG_INFO, "cuda: slot %d: no resident executor: %s", slot, acs_cuda_text((int)result));
    lane_destroy(self, lane);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------ issue */

/* How many blocks of the executor are of use: as many as may run at once, but for a part of the device. */
static uint32_t executor_blocks(const acs_cuda *self, const acs_resident_bundle *bundle)
{
    const uint32_t threads = executor_threads(self);
    const uint64_t room = threads / bundle->threads ? threads / bundle->threads : 1;
    const uint64_t wanted = (uint64_t)bundle->widest * TUNE_RESIDENT_WIDTHS;
    const uint64_t blocks = wanted < room ? wanted : room;
    return (uint32_t)(blocks < bundle->launch.tickets ? blocks : bundle->launch.tickets);
}

static CUresult launch(acs_cuda *self, const acs_cuda_executor *executor, acs_resident_bundle *bundle, int slot)
{
    void *args[] = {&bundle->launch};
    const CUlaunchConfig config = {
        .gridDimX = executor_blocks(self, bundle),
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = bundle->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = bundle->shared_bytes,
        .hStream = self->streams[slot],
    };
    const unsigned watched =
        acs_cuda_watched(self) ? acs_cuda_watch_bundle(self, bundle->batch, ACS_METHOD_RESIDENT) : 0;
    CUresult result = self->cu.cuLaunchKernelEx(&config, executor->kernel->launch, args, NULL);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    return result;
}

/* An executor that cannot be launched is not tried again. */
static void refuse_executor(acs_cuda *self, acs_cuda_executor *executor, CUresult result)
{
    if (acs_cuda_note(self, result))
        return;
    atomic_store_explicit(&executor->refused, true, memory_order_relaxed); /* relaxed: as above */
    acs_log(ACS_LOG_INFO, "cuda: an executor cannot be launched, and its kernels go in other ways: %s",
            acs_cuda_text((int)result));
}

/* The first table whose bundle is complete: few tables stay in the CPU's cache. ACS_RESIDENT_TABLES: there is none. */
static uint32_t free_table(const acs_cuda *self, const acs_resident_lane *lane, int slot)
{
    const uint64_t completed = acs_cuda_completed(self, slot);
    uint32_t index = 0;
    while (index < ACS_RESIDENT_TABLES && lane->ends[index] > completed) /* RES-1 */
        index++;
    return index;
}

bool acs_cuda_resident_issue(acs_cuda *self, acs_cuda_executor *executor, const acs_batch *batch, const acs_dag *dag)
{
    const int slot = batch->items[0].slot;
    acs_resident_bundle bundle = {.batch = batch, .dag = dag, .threads = WARP};
    acs_resident_lane *lane = self->resident->lanes[slot] ? self->resident->lanes[slot] : lane_open(self, slot);
    if (!lane)
        return false;
    const uint32_t index = free_table(self, lane, slot);
    if (index == ACS_RESIDENT_TABLES)
        return false;
    unsigned char *table = lane->tables + (size_t)index * ACS_RESIDENT_TABLE_BYTES;
    if (!acs_resident_table(self, &bundle, table))
        return false;
    bundle.launch.source = (uint64_t)(uintptr_t)table;
    bundle.launch.table = lane->memory;
    bundle.launch.state = lane->memory + ACS_RESIDENT_TABLE_BYTES;
    bundle.launch.word = (uint64_t)(uintptr_t)&self->methods->words[slot].value;
    bundle.launch.first_value = batch->items[0].value;
    CUresult result = launch(self, executor, &bundle, slot);
    if (result != CUDA_SUCCESS) {
        refuse_executor(self, executor, result);
        return false;
    }
    lane->ends[index] = batch->items[0].value + dag->ops - 1;
    atomic_store_explicit(&self->resident->news[slot].ends[lane->turn++ % ACS_RESIDENT_TABLES], lane->ends[index],
                          memory_order_relaxed);
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- end */

uint32_t acs_cuda_resident_marks(acs_cuda *self, int slot, const acs_mark *marks, uint32_t count, uint32_t *first_mark)
{
    uint64_t first = UINT64_MAX;
    uint32_t possible = 0;
    bool told = false; /* the word is the last value of a bundle, whose kernel may not be over: its mark is asked for */
    *first_mark = 0;
    if (!self->resident)
        return count;
    acs_resident_news *news = &self->resident->news[slot];
    const uint64_t word =
        atomic_load_explicit(&self->methods->words[slot].value, memory_order_relaxed); /* relaxed, all: a hint */
    for (uint32_t i = 0; i < ACS_RESIDENT_TABLES; i++) {
        const uint64_t end = atomic_load_explicit(&news->ends[i], memory_order_relaxed);
        first = end > word && end < first ? end : first;
        told |= end == word;
    }
    if (atomic_fetch_add_explicit(&news->looks, 1, memory_order_relaxed) % TUNE_RESIDENT_LOOKS == 0)
        return count;
    while (possible < count && marks[possible].value < first)
        possible++;
    while (*first_mark < possible && marks[*first_mark].value < word + told)
        ++*first_mark;
    return possible - *first_mark;
}

/* --------------------------------------------------------------------------------------------------- open and close */

void acs_cuda_resident_init(acs_cuda *self)
{
    struct acs_cuda_resident *resident = self->methods ? calloc(1, sizeof *resident) : NULL;
    if (!resident)
        return;
    resident->lanes = calloc(self->slots, sizeof(*resident->lanes));
    resident->news = calloc(self->slots, sizeof(*resident->news));
    if (!resident->lanes || !resident->news) {
        free(resident->lanes);
        free(resident->news);
        free(resident);
        return;
    }
    self->resident = resident;
}

void acs_cuda_resident_fini(acs_cuda *self)
{
    struct acs_cuda_resident *resident = self->resident;
    if (!resident)
        return;
    for (uint32_t i = 0; i < self->slots; i++)
        if (resident->lanes[i])
            lane_destroy(self, resident->lanes[i]);
    while (resident->executors) {
        acs_cuda_executor *executor = resident->executors;
        resident->executors = executor->next;
        free(executor);
    }
    free(resident->lanes);
    free(resident->news);
    free(resident);
    self->resident = NULL;
}
