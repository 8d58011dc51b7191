/*
 * Scratch memory of library calls inside captures: blocks that live as long as the graph and what is instantiated from
 * it. Called by capture.c, and by member.c when a backend is opened and closed. It knows neither streams nor captures.
 */
#include "cuda/internal.h"

#include <stdlib.h>

/*
 * A block of scratch memory of captured calls. The graph uses it whenever it runs, so it must live as long as the
 * graph and its instances. A user object reports their end. Its function must not call CUDA, so the block is kept for
 * a later capture.
 */
typedef struct scratch {
    struct scratch *next; /* list of spare blocks */
    acs_cuda_scratches *owner;
    void *memory;
    size_t bytes;
} scratch;

struct acs_cuda_scratches {
    acs_lock lock;
    scratch *spare;
    uint32_t used;  /* blocks that graphs still use */
    bool closed;    /* whether the backend is closed */
};

acs_status acs_cuda_scratches_init(acs_cuda *self)
{
    acs_cuda_scratches *all = calloc(1, sizeof *all);
    if (!all || acs_lock_init(&all->lock, ACS_RANK_POOL)) {
        free(all);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for captured library calls");
    }
    self->scratches = all;
    return ACS_OK;
}

static void scratches_free(acs_cuda_scratches *all)
{
    acs_lock_fini(&all->lock);
    free(all);
}

/* The graph is destroyed; CUDA calls this on any thread. */
static void CUDA_CB scratch_returned(void *argument)
{
    scratch *block = argument;
    acs_cuda_scratches *all = block->owner;
    acs_lock_acquire(&all->lock);
    bool last = --all->used == 0 && all->closed;
    if (all->closed) {
        free(block);
    } else {
        block->next = all->spare;
        all->spare = block;
    }
    acs_lock_release(&all->lock);
    if (last)
        scratches_free(all);
}

void acs_cuda_scratches_fini(acs_cuda *self)
{
    acs_cuda_scratches *all = self->scratches;
    if (!all)
        return;
    acs_lock_acquire(&all->lock);
    scratch *spare = all->spare;
    all->spare = NULL;
    all->closed = true;
    uint32_t used = all->used;
    acs_lock_release(&all->lock);
    while (spare) {
        scratch *next = spare->next;
        /* closing: the error has no receiver */
        (void)self->base.ops->memory_free(&self->base, ACS_MEMORY_DEVICE, spare->memory);
        free(spare);
        spare = next;
    }
    if (used)
        acs_log(ACS_LOG_WARN, "cuda: close: graphs still have the scratch memory of %u library calls; it stays", used);
    else
        scratches_free(all);
}

/* Take the first spare block that is large enough; there are few sizes. */
static scratch *scratch_spare(acs_cuda_scratches *all, size_t bytes)
{
    ACS_HOLD(&all->lock);
    scratch **at = &all->spare;
    while (*at && (*at)->bytes < bytes)
        at = &(*at)->next;
    scratch *block = *at;
    if (block)
        *at = block->next;
    all->used++;
    return block;
}

static acs_status scratch_take(acs_cuda *self, size_t bytes, scratch **taken)
{
    scratch *block = scratch_spare(self->scratches, bytes);
    acs_status status = ACS_OK;
    if (!block) {
        block = calloc(1, sizeof *block);
        status = block ? self->base.ops->memory_alloc(&self->base, ACS_MEMORY_DEVICE, bytes, &block->memory)
                       : ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for a library call");
    }
    if (status != ACS_OK) {
        ACS_HOLD(&self->scratches->lock);
        self->scratches->used--;
        free(block);
        return status;
    }
    block->owner = self->scratches;
    block->bytes = block->bytes ? block->bytes : bytes;
    *taken = block;
    return ACS_OK;
}

acs_status acs_cuda_scratch_give(acs_cuda *self, CUgraph graph, size_t bytes, void **memory)
{
    scratch *block = NULL;
    CUuserObject object = NULL;
    ACS_TRY(scratch_take(self, bytes, &block));
    *memory = block->memory;
    CUresult result =
        self->cu.cuUserObjectCreate(&object, block, scratch_returned, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (result != CUDA_SUCCESS) {
        scratch_returned(block);
    } else {
        result = self->cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
        if (result != CUDA_SUCCESS)
            (void)self->cu.cuUserObjectRelease(object, 1); /* gives the block back */
    }
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    return ACS_CUDA_FAIL(self, ACS_ERR_LAUNCH, result, "the graph cannot keep scratch memory: %s",
                         acs_cuda_text((int)result));
}
