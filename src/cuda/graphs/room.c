/*
 * Memory of cached graphs: pinned tables, and a little device memory. Rooms are carved from slabs, which are freed
 * with the issue methods. When a graph goes, its room is kept for the next graph. Allocating and freeing such memory
 * takes longer than building a small graph, and may wait for the device. It never touches the contents of a room.
 */
#include "cuda/graphs/graphs.h"

#include "base/tuning.h"

#include <stdlib.h>

enum {
    STATE_BYTES = 8 * (2 + ACS_CUDA_VALUES), /* one value more than needed, since tables hold an even number */
    STATE_STRIDE = (STATE_BYTES + 255) / 256 * 256
};

struct acs_cuda_slab {
    acs_cuda_slab *next;
    unsigned char *tables; /* in pinned host memory, mapped */
    CUdeviceptr states;
    size_t bytes, used;
    uint32_t rooms;        /* rooms carved from it */
};

/* Sizes are powers of two, so that a room fits other graphs of about the same size. */
static size_t round_up(size_t bytes)
{
    size_t rounded = TUNE_ROOM_LEAST;
    while (rounded < bytes)
        rounded *= 2;
    return rounded;
}

static void slab_free(acs_cuda *self, acs_cuda_slab *slab)
{
    CUresult host = slab->tables ? self->cu.cuMemFreeHost(slab->tables) : CUDA_SUCCESS;
    CUresult device = slab->states ? self->cu.cuMemFree(slab->states) : CUDA_SUCCESS;
    if ((host != CUDA_SUCCESS && !acs_cuda_note(self, host)) || (device != CUDA_SUCCESS && !acs_cuda_note(self, device)))
        acs_log(ACS_LOG_WARN, "cuda: memory of kept graphs could not be freed");
    free(slab);
}

static CUresult slab_make(acs_cuda *self, size_t bytes, acs_cuda_slab **out)
{
    acs_cuda_slab *slab = calloc(1, sizeof *slab);
    void *tables = NULL;
    if (!slab)
        return CUDA_ERROR_OUT_OF_MEMORY;
    slab->bytes = bytes > TUNE_ROOM_SLAB ? bytes : TUNE_ROOM_SLAB;
    CUresult result = self->cu.cuMemHostAlloc(&tables, slab->bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    slab->tables = tables;
    if (result == CUDA_SUCCESS)
        result = self->cu.cuMemAlloc(&slab->states, slab->bytes / TUNE_ROOM_LEAST * STATE_STRIDE);
    if (result == CUDA_SUCCESS)
        *out = slab;
    else
        slab_free(self, slab);
    return result;
}

/* Take a used room, or carve one from the latest slab. NULL: the slab is full, or no memory. */
static acs_cuda_room *find_locked(acs_cuda_methods *methods, size_t bytes)
{
    acs_cuda_slab *slab = methods->slabs;
    acs_cuda_room **link = &methods->rooms, *room;
    while (*link && ((*link)->bytes < bytes || (*link)->bytes > 2 * bytes))
        link = &(*link)->next;
    if ((room = *link) != NULL) {
        *link = room->next;
        return room;
    }
    if (!slab || slab->bytes - slab->used < bytes || !(room = calloc(1, sizeof *room)))
        return NULL;
    *room = (acs_cuda_room){.bytes = bytes, .tables = slab->tables + slab->used,
                            .state = slab->states + (CUdeviceptr)slab->rooms * STATE_STRIDE};
    slab->used += bytes;
    slab->rooms++;
    return room;
}

CUresult acs_cuda_room_acquire(acs_cuda *self, size_t bytes, acs_cuda_room **out)
{
    acs_cuda_methods *methods = self->methods;
    acs_cuda_slab *slab = NULL;
    bytes = round_up(bytes);
    acs_lock_acquire(&methods->lock);
    *out = find_locked(methods, bytes);
    acs_lock_release(&methods->lock);
    if (*out)
        return CUDA_SUCCESS;
    CUresult result = slab_make(self, bytes, &slab);
    if (result != CUDA_SUCCESS)
        return result;
    acs_lock_acquire(&methods->lock);
    slab->next = methods->slabs;
    methods->slabs = slab;
    *out = find_locked(methods, bytes);
    acs_lock_release(&methods->lock);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void acs_cuda_room_release(acs_cuda_methods *methods, acs_cuda_room *room)
{
    ACS_HOLD(&methods->lock);
    room->next = methods->rooms;
    methods->rooms = room;
}

void acs_cuda_rooms_free(acs_cuda *self)
{
    acs_cuda_methods *methods = self->methods;
    while (methods->rooms) {
        acs_cuda_room *room = methods->rooms;
        methods->rooms = room->next;
        free(room);
    }
    while (methods->slabs) {
        acs_cuda_slab *slab = methods->slabs;
        methods->slabs = slab->next;
        slab_free(self, slab);
    }
}
