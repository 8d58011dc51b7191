/*
 * GPU-side issue: the kernels that release a bundle's ops without the host. The head sets up all places of the bundle
 * from the host's table and launches the roots. The release kernel, behind each op in the op's own graph, counts down
 * the op's followers and launches those that become free. The host part is gpu_issue/gpu_issue.c. They never touch
 * memory of the program.
 *
 * Order. An op's writes are complete and visible when its release kernel begins (an edge of the graph, or the wait for
 * it). A release kernel fences, then counts down. The one that counts to zero is behind all others that counted; it
 * fences and launches.
 *
 * Launches. A graph is launched as the child of the launching graph, or as a sibling: the child of its parent. An
 * execution has room for 120 children. Siblings are preferred, since a graph ends only when its children have, level
 * by level. Room for all followers of an op is reserved in the parent first, or else in the graph itself, which always
 * has it (RELEASE-1). So no launch is refused for lack of room; any other refusal is a fault of the device.
 */
#include "gpu_issue.h"

#include "cell.h"

#include "../../base/tuning.h"

enum { WARP = 32, SCAN_WORDS = ACS_RELEASE_TREE_ITEMS / 32 };

static_assert(sizeof(acs_gpu_issue_place) == 128, "one line");
static_assert(sizeof(acs_gpu_issue_entry) % 16 == 0 && sizeof(acs_gpu_issue_table) % 16 == 0, "read in vectors");
static_assert(2 * TUNE_RELEASE_MOST > ACS_GPU_ISSUE_LAUNCHES && TUNE_RELEASE_MOST < ACS_GPU_ISSUE_LAUNCHES,
              "room for one release");
static_assert(SCAN_WORDS <= WARP, "a warp looks at all bits at once");

/* As __threadfence(), but without the total order of all such fences, which takes time and orders nothing here. */
static __device__ void fence()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Trap, so that the device is given up: no op of the bundle may complete if a part of it will not run. */
static __device__ void refuse(const acs_gpu_issue_slot *slot, uint32_t place, cudaError_t error)
{
    *reinterpret_cast<volatile uint64_t *>(slot->refusal) =
        static_cast<uint64_t>(place + 1) << 32 | static_cast<uint32_t>(error);
    __threadfence_system();
    __trap();
}

/* Launch the place's graph as a child of the graph whose counter is `env`: the caller's own graph or its parent. */
static __device__ void launch(const acs_gpu_issue_slot *slot, acs_gpu_issue_place *places, uint32_t place, uint32_t *env,
                              bool sibling)
{
    acs_gpu_issue_place *to = places + place;
    to->env = reinterpret_cast<uint64_t>(env);
    fence();
    cudaError_t error = cudaGraphLaunch(reinterpret_cast<cudaGraphExec_t>(to->exec),
                                        sibling ? cudaStreamGraphFireAndForgetAsSibling : cudaStreamGraphFireAndForget);
    if (error != cudaSuccess)
        refuse(slot, place, error);
}

/* ----------------------------------------------------------------------------------------------------------- head */

/* Set the arguments and grid of the place's kernel that differ from its node's. */
static __device__ void set_node(const acs_gpu_issue_slot *slot, const acs_gpu_issue_table *table,
                                const acs_gpu_issue_entry *entry)
{
    cudaGraphDeviceNode_t node = reinterpret_cast<cudaGraphDeviceNode_t>(entry->node);
    cudaError_t error = cudaSuccess;
    if (entry->args_bytes)
        error = cudaGraphKernelNodeSetParam(node, entry->args_first,
                                            reinterpret_cast<const char *>(table) + entry->args_at, entry->args_bytes);
    if (entry->grid[0] && error == cudaSuccess)
        error = cudaGraphKernelNodeSetGridDim(node, dim3(entry->grid[0], entry->grid[1], entry->grid[2]));
    if (error != cudaSuccess)
        refuse(slot, entry->place, error);
    if (entry->cell)
        obey_cell(entry->node, reinterpret_cast<const acs_cell *>(entry->cell), entry->cell_grid != 0);
}

static __device__ void set_place(acs_gpu_issue_slot *slot, const acs_gpu_issue_table *table,
                                 const acs_gpu_issue_entry *entry)
{
    const uint16_t *followers =
        reinterpret_cast<const uint16_t *>(reinterpret_cast<const char *>(table) + table->followers_at) + entry->out_first;
    acs_gpu_issue_place *place = reinterpret_cast<acs_gpu_issue_place *>(slot->places) + entry->place;
    for (uint32_t i = 0; i < entry->out_count; i++) {
        uint32_t *to = i < ACS_GPU_ISSUE_INLINE ? &place->out[i] : &slot->out[entry->out_first + i];
        *to = followers[i];
    }
    place->exec = entry->exec;
    place->slot = slot->index;
    place->upstream = entry->upstream;
    place->used = 0;
    place->position = entry->position;
    place->weight = entry->weight;
    place->out_count = entry->out_count;
    place->out_first = entry->out_first;
    if (entry->node)
        set_node(slot, table, entry);
}

/* Set the bundle's own state; done by the first block. */
static __device__ void set_slot(acs_gpu_issue_slot *slot, const acs_gpu_issue_table *table,
                                const acs_gpu_issue_table *header)
{
    const uint16_t *followers =
        reinterpret_cast<const uint16_t *>(reinterpret_cast<const char *>(table) + header->followers_at);
    for (uint32_t i = threadIdx.x; i < header->roots; i += blockDim.x)
        slot->out[i] = followers[i];
    for (uint32_t i = threadIdx.x; i < SCAN_WORDS; i += blockDim.x)
        slot->done[i] = 0;
    if (threadIdx.x == 0) {
        slot->first_value = header->first_value;
        slot->ops = slot->left = header->ops;
        slot->used = header->roots;
        slot->published = 0;
        slot->publishing = 0;
    }
}

/*
 * One thread for each entry. The block that ends last launches the roots; table and graph are then free for the next
 * bundle.
 */
extern "C" __global__ void acs_gpu_issue_head(acs_gpu_issue_slot *slots, uint32_t index)
{
    __shared__ bool last;
    acs_gpu_issue_slot *slot = slots + index;
    const acs_gpu_issue_table *table = reinterpret_cast<const acs_gpu_issue_table *>(
        slot->tables + static_cast<uint64_t>(slot->turn % ACS_GPU_ISSUE_RING) * ACS_GPU_ISSUE_TABLE_BYTES);
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    /* Both in one trip to the host's memory: entries beyond the last are read too, but not used. */
    const acs_gpu_issue_entry entry = reinterpret_cast<const acs_gpu_issue_entry *>(table + 1)[i];
    const acs_gpu_issue_table header = *table;
    if (i < header.entries)
        set_place(slot, table, &entry);
    if (blockIdx.x == 0)
        set_slot(slot, table, &header);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(&slot->arrived, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    if (threadIdx.x == 0) {
        slot->arrived = 0;
        slot->turn++;
    }
    for (uint32_t r = threadIdx.x; r < header.roots; r += blockDim.x)
        launch(slot, reinterpret_cast<acs_gpu_issue_place *>(slot->places), __ldcg(&slot->out[r]), &slot->used, false);
}

/* -------------------------------------------------------------------------------------------------------- release */

/*
 * Tell the host up to which op all are complete. By a whole warp, one warp at a time: a warp that finds another at it
 * leaves it to a later one.
 */
static __device__ void publish(acs_gpu_issue_slot *slot, uint32_t lane)
{
    uint32_t busy = lane == 0 ? atomicExch(&slot->publishing, 1) : 0;
    if (__shfl_sync(~0u, busy, 0))
        return;
    __syncwarp();
    __threadfence();
    const uint32_t word = lane < SCAN_WORDS ? __ldcg(&slot->done[lane]) : 0;
    /* lanes beyond SCAN_WORDS have a 0 */
    const uint32_t first = __ffs(static_cast<int>(__ballot_sync(~0u, word != ~0u))) - 1;
    const uint32_t bits = __shfl_sync(~0u, word, static_cast<int>(first));
    if (lane == 0) {
        const uint32_t complete = min(first * 32 + __ffs(static_cast<int>(~bits)) - 1, slot->ops);
        if (complete > __ldcg(&slot->published)) {
            slot->published = complete;
            /* The ops' writes to host memory must be there when the host sees the word. */
            __threadfence_system();
            *reinterpret_cast<volatile uint64_t *>(slot->word) = slot->first_value + complete - 1;
        }
        __threadfence();
        atomicExch(&slot->publishing, 0);
    }
}

/*
 * All ops are complete; tell the host at once, since it does not ask the driver until then. By one lane, the last of
 * all.
 */
static __device__ void publish_all(acs_gpu_issue_slot *slot)
{
    while (atomicExch(&slot->publishing, 1)) /* no other warp may write an older value after this one */
        ;
    __threadfence_system();
    slot->published = slot->ops;
    *reinterpret_cast<volatile uint64_t *>(slot->word) = slot->first_value + slot->ops - 1;
    __threadfence();
    atomicExch(&slot->publishing, 0);
}

/* The state of a warp that releases the followers of an op. */
struct release {
    acs_gpu_issue_slot *slot;
    acs_gpu_issue_place *places, *self;
    uint32_t *env; /* counter of the graph whose children all launched graphs become */
    uint64_t exec;  /* graph of this lane's follower among the op's first ones, read early */
    uint32_t follower;
    uint32_t weight, lane;
    uint32_t launched;
    bool sibling;
};

/* Reserve room for all launches of this op: among the parent's children, or else among its own. */
static __device__ void reserve(release *r, uint32_t before)
{
    r->sibling = __shfl_sync(~0u, before, 0) + r->weight <= ACS_GPU_ISSUE_LAUNCHES;
    if (r->sibling)
        return;
    if (r->lane == 0) {
        atomicSub(r->env, r->weight);
        atomicAdd(&r->self->used, r->weight);
        fence();
    }
    __syncwarp();
    r->env = &r->self->used;
}

/* This lane's follower in a part of a list. */
static __device__ uint32_t follower_of(const release *r, const acs_gpu_issue_place *from, uint32_t i, uint64_t *exec)
{
    uint32_t place = i < ACS_GPU_ISSUE_INLINE ? from->out[i] : __ldcg(&r->slot->out[from->out_first + i]);
    *exec = r->places[place].exec;
    return place;
}

/* Count down the followers of a place, launch those that become free, and push joins that are passed onto the stack. */
static __device__ uint32_t release_followers(release *r, const acs_gpu_issue_place *from, uint32_t count, uint32_t *stack,
                                             uint32_t top, uint32_t *before)
{
    for (uint32_t base = 0; base < count; base += WARP) {
        const uint32_t i = base + r->lane;
        uint32_t place = r->follower;
        uint64_t exec = r->exec;
        bool ready = false;
        if (i < count) {
            if (!before || i >= ACS_GPU_ISSUE_INLINE)
                place = follower_of(r, from, i, &exec);
            fence();
            ready = atomicSub(&r->places[place].upstream, 1) == 1;
        }
        if (before) { /* asked for early and used now, so that both trips to memory overlap */
            reserve(r, *before);
            before = nullptr;
        }
        const uint32_t joins = __ballot_sync(~0u, ready && !exec);
        if (ready && !exec)
            stack[top + __popc(joins & ((1u << r->lane) - 1))] = place;
        top += __popc(joins);
        r->launched += __popc(__ballot_sync(~0u, ready && exec));
        if (ready && exec)
            launch(r->slot, r->places, place, r->env, r->sibling);
        __syncwarp();
    }
    return top;
}

/* The release kernel: behind an op, or alone in the graph of a fan. */
extern "C" __global__ void acs_gpu_issue_release(acs_gpu_issue_slot *slots, acs_gpu_issue_place *places, uint32_t index)
{
    __shared__ uint32_t stack[TUNE_RELEASE_MOST + WARP];
    /* The place was written before its graph was launched, so it can be read while the op ends. */
    release r = {};
    r.self = places + index;
    r.places = places;
    r.slot = slots + r.self->slot;
    r.env = reinterpret_cast<uint32_t *>(r.self->env);
    r.weight = r.self->weight;
    r.lane = threadIdx.x;
    const uint32_t position = r.self->position, count = r.self->out_count;
    if (r.lane < min(count, static_cast<uint32_t>(ACS_GPU_ISSUE_INLINE)))
        r.follower = follower_of(&r, r.self, r.lane, &r.exec);
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize(); /* wait for the op; behind a plain edge it is complete already */
#endif
    if (count) {
        uint32_t before = r.lane == 0 ? atomicAdd(r.env, r.weight) : 0;
        uint32_t top = release_followers(&r, r.self, count, stack, 0, &before);
        while (top) { /* all lanes read what one lane stored: __syncwarp() lies between */
            const uint32_t join = stack[--top];
            __syncwarp();
            top = release_followers(&r, places + join, places[join].out_count, stack, top, nullptr);
        }
        if (r.lane == 0 && r.sibling && r.launched < r.weight)
            atomicSub(r.env, r.weight - r.launched);
    }
    if (position == ACS_GPU_ISSUE_NO_POSITION)
        return;
    uint32_t left = 0;
    if (r.lane == 0) {
        atomicOr(&r.slot->done[position / 32], 1u << (position % 32));
        fence();
        left = atomicSub(&r.slot->left, 1) - 1;
        if (left == 0)
            publish_all(r.slot);
    }
    left = __shfl_sync(~0u, left, 0);
    if (left && position % TUNE_GPU_PROGRESS_STEP == TUNE_GPU_PROGRESS_STEP - 1)
        publish(r.slot, r.lane);
}
