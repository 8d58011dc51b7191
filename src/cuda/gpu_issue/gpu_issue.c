/*
 * GPU-side issue: a bundle becomes a table in pinned memory and one launch of its slot's head graph. From then on the
 * GPU releases the bundle's ops by itself (device_code/gpu_issue.cu). Owns each slot's tables and head; called by
 * graphs/method.c in a scope, and by open and close. It never waits for the GPU, and never issues a part of a bundle.
 */
#include "cuda/gpu_issue/gpu_issue.h"

#include "base/tuning.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- table */

/* A table that is being filled. */
typedef struct filling {
    unsigned char *table;
    uint16_t *followers;
    uint32_t followers_used;
    uint32_t args_at; /* begin of free space; nothing behind it is written */
    bool full;
} filling;

static uint32_t node_place(const acs_gpu_issue_lane *lane, int slot, uint32_t node)
{
    const acs_gpu_issue_cell *cell = lane->cell[node];
    return cell ? cell->place : ACS_GPU_ISSUE_CELLS + (uint32_t)slot * ACS_RELEASE_TREE_ITEMS + node;
}

static uint16_t put_followers(filling *fill, const acs_gpu_issue_lane *lane, int slot,
                              const acs_release_tree_node *node)
{
    uint32_t first = fill->followers_used;
    for (uint32_t i = 0; i < node->out_count; i++)
        fill->followers[fill->followers_used++] =
            (uint16_t)node_place(lane, slot, lane->tree.out[node->first_out + i]);
    return (uint16_t)first;
}

/*
 * Find the changed arguments; all, if the cell's contents are not known. The range has pieces of 16 bytes, since the
 * head reads the host's memory, and smaller pieces would take more trips.
 */
static void update_args(const acs_cuda_contents *contents, const acs_cuda_type *type, acs_gpu_issue_cell *cell,
                        uint32_t *from, uint32_t *to)
{
    acs_cuda_args_update(type, contents, cell->args, from, to);
    if (!cell->known) {
        *from = 0;
        *to = type->arg_bytes;
    }
    *from &= ~15u;
    *to = (*to + 15) & ~15u;
    *to = *to < type->arg_bytes ? *to : type->arg_bytes;
}

/* Write an op's entry, with the grid and arguments that differ from its node's. */
static void put_node(filling *fill, acs_gpu_issue_entry *entry, const acs_cuda_contents *contents,
                     const acs_cuda_type *type, acs_gpu_issue_cell *cell)
{
    const acs_dim3 grid = contents->grid;
    const uint32_t wanted[3] = {grid.x, grid.y, grid.z};
    uint32_t from, to;
    if (!cell->known || memcmp(cell->grid, wanted, sizeof wanted) != 0) {
        memcpy(cell->grid, wanted, sizeof wanted);
        memcpy(entry->grid, wanted, sizeof wanted);
    }
    update_args(contents, type, cell, &from, &to);
    /* Until the bundle is launched the node's contents are not known. */
    cell->known = false;
    entry->node = cell->node;
    entry->cell = (uint64_t)(uintptr_t)contents->cell;
    entry->cell_grid = contents->cell_grid;
    if (to <= from)
        return;
    if (fill->args_at + (to - from) > ACS_GPU_ISSUE_TABLE_BYTES) {
        fill->full = true;
        return;
    }
    entry->args_at = fill->args_at;
    entry->args_first = (uint16_t)from;
    entry->args_bytes = (uint16_t)(to - from);
    memcpy(fill->table + fill->args_at, cell->args + from, to - from);
    fill->args_at += (to - from + 15) & ~15u;
}

static uint64_t cell_node(const void *lane, uint32_t item)
{
    return ((const acs_gpu_issue_lane *)lane)->cell[item]->node;
}

/* Put the op's entry, with what it decides or obeys. */
static void put_op(filling *fill, acs_gpu_issue_entry *entry, const acs_cuda_links *links, const acs_batch *batch,
                   uint32_t item, acs_gpu_issue_lane *lane)
{
    const acs_record *op = batch->items[item].op;
    acs_decision room;
    acs_cuda_contents contents = acs_cuda_contents_of(op);
    if (ACS_UNLIKELY(op->flags & ACS_RECORD_DECISION))
        acs_cuda_links_apply(links, item, op, cell_node, lane, &room, &contents);
    put_node(fill, entry, &contents, lane->type[item]->type, lane->cell[item]);
}

/* Write one entry for each node of the release tree. False: the arguments have no room. */
static bool fill_table(const acs_batch *batch, int slot, acs_gpu_issue_lane *lane, unsigned char *table)
{
    const acs_release_tree *tree = &lane->tree;
    acs_gpu_issue_table *header = (acs_gpu_issue_table *)(void *)table;
    acs_gpu_issue_entry *entries = (acs_gpu_issue_entry *)(void *)(header + 1);
    uint32_t followers_at = (uint32_t)(sizeof *header + tree->nodes * sizeof *entries);
    filling fill = {.table = table, .followers = (uint16_t *)(void *)(table + followers_at)};
    uint16_t position = 0;
    acs_cuda_links links;

    acs_cuda_links_of(batch, &links);
    fill.args_at = (uint32_t)(followers_at + (tree->out_used + tree->head.out_count) * sizeof(uint16_t) + 15) & ~15u;
    (void)put_followers(&fill, lane, slot, &tree->head);
    for (uint32_t i = 0; i < tree->nodes; i++) {
        const acs_release_tree_node *node = &tree->node[i];
        acs_gpu_issue_cell *cell = lane->cell[i];
        entries[i] = (acs_gpu_issue_entry){
            .exec = cell ? (uint64_t)(uintptr_t)cell->exec : 0,
            .place = node_place(lane, slot, i),
            .upstream = node->upstream,
            .position = node->kind == ACS_RELEASE_TREE_OP ? position++ : ACS_GPU_ISSUE_NO_POSITION,
            .weight = node->weight,
            .out_count = node->out_count,
            .out_first = put_followers(&fill, lane, slot, node),
        };
        if (node->kind == ACS_RELEASE_TREE_OP)
            put_op(&fill, &entries[i], &links, batch, i, lane);
    }
    *header = (acs_gpu_issue_table){.entries = tree->nodes,
                                 .ops = position,
                                 .roots = tree->head.out_count,
                                 .followers_at = followers_at,
                                 .first_value = batch->items[0].value};
    lane->end = batch->items[0].value + position - 1;
    return !fill.full;
}

/* ---------------------------------------------------------------------------------------------------------- lanes */

static void lane_destroy(acs_cuda *self, acs_gpu_issue_lane *lane)
{
    if (lane->head)
        (void)acs_cuda_note(self, self->cu.cuGraphExecDestroy(lane->head));
    if (lane->graph)
        (void)acs_cuda_note(self, self->cu.cuGraphDestroy(lane->graph));
    for (uint32_t i = 0; i < ACS_GPU_ISSUE_RING; i++)
        if (lane->done[i])
            (void)acs_cuda_note(self, self->cu.cuEventDestroy(lane->done[i]));
    if (lane->made)
        (void)acs_cuda_note(self, self->cu.cuEventDestroy(lane->made));
    if (lane->tables)
        (void)acs_cuda_note(self, self->cu.cuMemFreeHost(lane->tables));
    free(lane);
}

/* Write the slot's state into device memory, before its first head runs there. */
static CUresult lane_state(acs_cuda *self, const acs_gpu_issue_lane *lane, int slot)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    CUdeviceptr at = gi->slots + (size_t)slot * sizeof(acs_gpu_issue_slot);
    acs_gpu_issue_slot state = {
        .tables = (uint64_t)(uintptr_t)lane->tables,
        .places = gi->places,
        .word = (uint64_t)(uintptr_t)&self->methods->words[slot].value,
        .refusal = (uint64_t)(uintptr_t)gi->refusal,
        .index = (uint32_t)slot,
    };
    /* The source is pinned memory with no other use, so no thread has to wait for the copy. */
    unsigned char *copy = lane->tables + (size_t)ACS_GPU_ISSUE_RING * ACS_GPU_ISSUE_TABLE_BYTES;
    memcpy(copy, &state, sizeof state);
    return self->cu.cuMemcpyAsync(at, (CUdeviceptr)(uintptr_t)copy, sizeof state, self->streams[slot]);
}

static CUresult lane_head(acs_cuda *self, acs_gpu_issue_lane *lane, int slot)
{
    uint32_t index = (uint32_t)slot;
    void *args[] = {&self->gpu_issue->slots, &index};
    CUgraphNode node;
    const CUDA_KERNEL_NODE_PARAMS params = acs_cuda_node_params(
        self->gpu_issue->head, (acs_dim3){ACS_GPU_ISSUE_BLOCKS, 1, 1}, (acs_dim3){ACS_GPU_ISSUE_THREADS, 1, 1}, 0, args);
    CUresult result = self->cu.cuGraphCreate(&lane->graph, 0);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGraphAddKernelNode(&node, lane->graph, NULL, 0, &params);
    return result == CUDA_SUCCESS ? acs_gpu_issue_instantiate(self, lane->graph, self->streams[slot], &lane->head) : result;
}

/* Make the state of a slot at its first bundle. NULL: not possible now. */
static acs_gpu_issue_lane *lane_open(acs_cuda *self, int slot)
{
    acs_gpu_issue_lane *lane = calloc(1, sizeof *lane);
    void *tables = NULL;
    if (!lane)
        return NULL;
    CUresult result = self->cu.cuMemHostAlloc(
        &tables, (size_t)ACS_GPU_ISSUE_RING * ACS_GPU_ISSUE_TABLE_BYTES + sizeof(acs_gpu_issue_slot),
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        lane->tables = tables;
    for (uint32_t i = 0; i < ACS_GPU_ISSUE_RING && result == CUDA_SUCCESS; i++)
        result = self->cu.cuEventCreate(&lane->done[i], CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuEventCreate(&lane->made, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = lane_head(self, lane, slot);
    /* Last: the copy's source must not be freed before the slot has copied it. */
    if (result == CUDA_SUCCESS)
        result = lane_state(self, lane, slot);
    if (result == CUDA_SUCCESS) {
        ACS_HOLD(&self->gpu_issue->lock);
        return self->gpu_issue->lanes[slot] = lane; /* other slots read it when they look for cells */
    }
    (void)acs_cuda_note(self, result);
    acs_log(ACS_LOG_INFO, "cuda: slot %d: no GPU-side issue: %s", slot, acs_cuda_text((int)result));
    lane_destroy(self, lane);
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------- launch */

/*
 * The bundle was launched or refused. After a refusal cells may still be on their way to the device. The event tells
 * when cells are free; if it cannot be recorded, the slot is waited for. After a launch the contents of nodes are
 * known again.
 */
static void settle_launch(acs_cuda *self, acs_gpu_issue_lane *lane, int slot, bool launched)
{
    CUevent event = launched ? lane->done[lane->turn % ACS_GPU_ISSUE_RING] : lane->made;
    CUresult result = self->cu.cuEventRecord(event, self->streams[slot]);
    if (result != CUDA_SUCCESS && self->cu.cuStreamSynchronize(self->streams[slot]) != CUDA_SUCCESS)
        acs_cuda_lose(self, result);
    for (uint32_t i = 0; launched && i < lane->tree.nodes; i++)
        if (lane->cell[i])
            lane->cell[i]->known = true;
    if (launched)
        acs_cuda_gpu_issue_told(self, slot, lane->turn, lane->end);
    lane->turn += launched;
    ACS_HOLD(&self->gpu_issue->lock);
    lane->latest = event;
    lane->busy = false;
}

/* ---------------------------------------------------------------------------------------------------------- start */

/* Not cleared: a slot's state is set at its first bundle, a place by the head of each bundle that has it. */
static CUresult gpu_issue_memory(acs_cuda *self, acs_cuda_gpu_issue *gi)
{
    size_t places = ACS_GPU_ISSUE_CELLS + (size_t)self->slots * ACS_RELEASE_TREE_ITEMS;
    void *refusal = NULL;
    CUresult result = self->cu.cuMemAlloc(&gi->places, places * sizeof(acs_gpu_issue_place));
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemAlloc(&gi->slots, self->slots * sizeof(acs_gpu_issue_slot));
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemHostAlloc(&refusal, sizeof *gi->refusal,
                                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS)
        return result;
    gi->refusal = refusal;
    *gi->refusal = 0;
    return CUDA_SUCCESS;
}

/* Done at the first bundle, so that programs without one do not pay for it. */
static void gpu_issue_start_locked(acs_cuda *self, acs_cuda_gpu_issue *gi)
{
    int major = 0;
    CUresult result = self->cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self->device);
    gi->overlap = result == CUDA_SUCCESS && major >= 9 && self->cu.cuGraphAddDependencies;
    gi->head = acs_cuda_device_kernel(self, "acs_gpu_issue_head");
    gi->release = acs_cuda_device_kernel(self, "acs_gpu_issue_release");
    if (!gi->head || !gi->release)
        result = CUDA_ERROR_NOT_SUPPORTED;
    else if (result == CUDA_SUCCESS)
        result = gpu_issue_memory(self, gi);
    gi->state = result == CUDA_SUCCESS ? ACS_GPU_ISSUE_ON : ACS_GPU_ISSUE_OFF;
    if (result == CUDA_SUCCESS)
        return;
    (void)acs_cuda_note(self, result);
    acs_log(ACS_LOG_INFO, "cuda: no GPU-side issue: %s", acs_cuda_text((int)result));
}

/* Start GPU-side issue at the first call. @return whether it is available. */
static bool try_start_gpu_issue(acs_cuda *self)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    if (!gi || acs_cuda_fault(self))
        return false;
    acs_lock_acquire(&gi->lock);
    if (gi->state == ACS_GPU_ISSUE_UNTRIED)
        gpu_issue_start_locked(self, gi);
    bool usable = gi->state == ACS_GPU_ISSUE_ON;
    acs_lock_release(&gi->lock);
    return usable;
}

/* ---------------------------------------------------------------------------------------------------------- issue */

static CUresult lane_launch(acs_cuda *self, const acs_gpu_issue_lane *lane, const acs_batch *batch, int slot)
{
    const unsigned watched = acs_cuda_watched(self) ? acs_cuda_watch_bundle(self, batch, ACS_METHOD_GPU) : 0;
    CUresult result = self->cu.cuGraphLaunch(lane->head, self->streams[slot]);
    if (ACS_UNLIKELY(watched))
        acs_cuda_watch_end(watched);
    return result;
}

/*
 * Whether the next table is free: once any op of its bundle has ended, since the head has then, too. The driver is
 * asked only if the slot's word does not tell, since that costs as much as a launch. False: the GPU is far behind.
 */
static bool has_table(acs_cuda *self, const acs_gpu_issue_lane *lane, int slot)
{
    uint32_t next = lane->turn % ACS_GPU_ISSUE_RING;
    if (lane->turn < ACS_GPU_ISSUE_RING || atomic_load_explicit(&self->gpu_issue->news[slot].ends[next],
                                                                memory_order_relaxed) <= acs_cuda_completed(self, slot))
        return true; /* relaxed: written by the thread that submits to the slot */
    return self->cu.cuEventQuery(lane->done[next]) == CUDA_SUCCESS;
}

bool acs_cuda_gpu_issue_issue(acs_cuda *self, const acs_batch *batch, const acs_dag *dag, uint64_t gain_ns)
{
    const int slot = batch->items[0].slot;
    if (!try_start_gpu_issue(self))
        return false;
    acs_gpu_issue_lane *lane = self->gpu_issue->lanes[slot] ? self->gpu_issue->lanes[slot] : lane_open(self, slot);
    if (!lane || !has_table(self, lane, slot))
        return false;
    if (!acs_release_tree_make(dag, &lane->tree))
        return false;
    unsigned char *table = lane->tables + (size_t)(lane->turn % ACS_GPU_ISSUE_RING) * ACS_GPU_ISSUE_TABLE_BYTES;
    bool made = acs_gpu_issue_cells_take(self, batch, slot, lane, gain_ns) && fill_table(batch, slot, lane, table);
    CUresult result = made ? lane_launch(self, lane, batch, slot) : CUDA_SUCCESS;
    settle_launch(self, lane, slot, made && result == CUDA_SUCCESS);
    if (result != CUDA_SUCCESS)
        (void)acs_cuda_note(self, result);
    return made && result == CUDA_SUCCESS;
}

/* Resident executors tell, too. An end that is overwritten only costs a question to the driver. */
void acs_cuda_gpu_issue_told(acs_cuda *self, int slot, uint32_t turn, uint64_t end)
{
    if (self->gpu_issue) /* relaxed: a poll that misses it asks the driver */
        atomic_store_explicit(&self->gpu_issue->news[slot].ends[turn % ACS_GPU_ISSUE_RING], end, memory_order_relaxed);
}

uint32_t acs_cuda_gpu_issue_marks(acs_cuda *self, int slot, const acs_mark *marks, uint32_t count, uint32_t *first_mark)
{
    uint64_t first = UINT64_MAX;
    uint32_t possible = 0;
    /* whether the word is the last value of a bundle: its graph may not be over, so its mark is asked for */
    bool told = false;
    *first_mark = 0;
    if (!self->gpu_issue || !acs_cuda_has_code(self))
        return count;
    acs_gpu_issue_news *news = &self->gpu_issue->news[slot];
    uint64_t word =
        atomic_load_explicit(&self->methods->words[slot].value, memory_order_relaxed); /* relaxed, all: a hint */
    for (uint32_t i = 0; i < ACS_GPU_ISSUE_RING; i++) {
        uint64_t end = atomic_load_explicit(&news->ends[i], memory_order_relaxed);
        first = end > word && end < first ? end : first;
        told |= end == word;
    }
    if (atomic_fetch_add_explicit(&news->looks, 1, memory_order_relaxed) % TUNE_GPU_LOOKS == 0)
        return count;
    while (possible < count && marks[possible].value < first)
        possible++;
    while (*first_mark < possible && marks[*first_mark].value < word + told)
        ++*first_mark;
    return possible - *first_mark;
}

const char *acs_cuda_gpu_issue_refusal(const acs_cuda *self)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    uint64_t word = 0;
    if (!gi)
        return NULL;
    ACS_HOLD(&gi->lock);
    if (gi->refusal)
        word = *(volatile const uint64_t *)gi->refusal;
    return word ? acs_cuda_text((int)(word & UINT32_MAX)) : NULL;
}

/* ------------------------------------------------------------------------------------------------- open and close */

void acs_cuda_gpu_issue_init(acs_cuda *self, uint64_t nodes)
{
    acs_cuda_gpu_issue *gi = self->methods ? calloc(1, sizeof *gi) : NULL;
    if (!gi)
        return;
    gi->lanes = calloc(self->slots, sizeof(*gi->lanes));
    /* Numbers of places have 16 bits. */
    gi->news = calloc(self->slots, sizeof(*gi->news));
    if (!gi->lanes || !gi->news || ACS_GPU_ISSUE_CELLS + (size_t)self->slots * ACS_RELEASE_TREE_ITEMS > UINT16_MAX ||
        acs_lock_init(&gi->lock, ACS_RANK_BACKEND) != 0) {
        free(gi->lanes);
        free(gi->news);
        free(gi);
        return;
    }
    /* A cell has two nodes. */
    gi->cells_most = nodes / 2 < ACS_GPU_ISSUE_CELLS ? (uint32_t)(nodes / 2) : ACS_GPU_ISSUE_CELLS;
    for (uint32_t i = 0; i < ACS_GPU_ISSUE_CELLS; i++)
        gi->free_places[gi->free_places_used++] = (uint16_t)(ACS_GPU_ISSUE_CELLS - 1 - i);
    self->gpu_issue = gi;
}

void acs_cuda_gpu_issue_fini(acs_cuda *self)
{
    acs_cuda_gpu_issue *gi = self->gpu_issue;
    if (!gi)
        return;
    acs_gpu_issue_cells_fini(self);
    for (uint32_t i = 0; gi->lanes && i < self->slots; i++)
        if (gi->lanes[i])
            lane_destroy(self, gi->lanes[i]);
    if (gi->refusal)
        (void)acs_cuda_note(self, self->cu.cuMemFreeHost(gi->refusal));
    if (gi->slots)
        (void)acs_cuda_note(self, self->cu.cuMemFree(gi->slots));
    if (gi->places)
        (void)acs_cuda_note(self, self->cu.cuMemFree(gi->places));
    free(gi->lanes);
    free(gi->news);
    acs_lock_fini(&gi->lock);
    free(gi);
    self->gpu_issue = NULL;
}
