/*
 * The twin's virtual memory: spans of addresses, pieces of memory, and which piece is mapped where. Called through the
 * driver table. Addresses without memory cannot be touched; pieces that lie behind each other are one block to copies and
 * kernels.
 */
#include "twin_internal.h"

#include <string.h>
#include <sys/mman.h>

enum { GRANULARITY = 2 << 20, FRESH = 0xcd };

typedef struct twin_piece {
    twin_object base;
    uint64_t bytes, at; /* 0: not mapped */
} twin_piece;

static twin_piece *piece_of(uint32_t object)
{
    twin_object *o = g_twin.objects[object];
    return o->kind == TWIN_PIECE ? (twin_piece *)o : NULL;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

void twin_spans_free(void)
{
    for (uint32_t i = 0; i < g_twin.span_count; i++)
        (void)munmap(pointer(g_twin.spans[i].base), g_twin.spans[i].bytes);
}

static bool whole_pages(uint64_t a, uint64_t b)
{
    if (a % GRANULARITY == 0 && b % GRANULARITY == 0 && b > 0)
        return true;
    twin_breach_locked("%llu bytes at %#llx are no whole pages", (unsigned long long)b, (unsigned long long)a);
    return false;
}

TWIN_DEFINE(cuMemGetAllocationGranularity,
            (size_t *bytes, const CUmemAllocationProp *memory, CUmemAllocationGranularity_flags option),
            (bytes, memory, option))
{
    (void)option;
    if (memory->type != CU_MEM_ALLOCATION_TYPE_PINNED || memory->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        twin_breach_locked("granularity of memory that the twin does not have");
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuMemAddressReserve, (CUdeviceptr * base, size_t bytes, size_t alignment, CUdeviceptr wanted,
                                  unsigned long long flags),
            (base, bytes, alignment, wanted, flags))
{
    if (!whole_pages(0, bytes) || alignment || wanted || flags || g_twin.span_count == TWIN_SPANS)
        return CUDA_ERROR_INVALID_VALUE;
    void *at = mmap(NULL, bytes + GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t mapped = (uint64_t)(uintptr_t)at, first = (mapped + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    if (first > mapped)
        (void)munmap(at, first - mapped);
    if (first < mapped + GRANULARITY)
        (void)munmap(pointer(first + bytes), mapped + GRANULARITY - first);
    g_twin.spans[g_twin.span_count++] = (twin_span){first, bytes, false};
    *base = first;
    return CUDA_SUCCESS;
}

static twin_span *span_at(uint64_t base, uint64_t bytes)
{
    for (uint32_t i = 0; i < g_twin.span_count; i++)
        if (base >= g_twin.spans[i].base && base + bytes <= g_twin.spans[i].base + g_twin.spans[i].bytes)
            return &g_twin.spans[i];
    twin_breach_locked("%llu bytes at %#llx are not reserved", (unsigned long long)bytes, (unsigned long long)base);
    return NULL;
}

static void forgive_span(CUdeviceptr base, size_t bytes)
{
    twin_span *span = span_at(base, bytes);
    if (span)
        span->forgiven = true;
}

TWIN_DEFINE_END(cuMemAddressFree, (CUdeviceptr base, size_t bytes), (base, bytes), forgive_span)
{
    twin_span *span = span_at(base, bytes);
    if (!span || span->base != base || span->bytes != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < g_twin.object_count; i++) {
        twin_piece *piece = piece_of(i);
        if (!piece || piece->at < base || piece->at >= base + bytes)
            continue;
        if (!piece->base.forgiven)
            twin_breach_locked("memory is mapped to the addresses at %#llx", (unsigned long long)piece->at);
        span->forgiven = true; /* stays, so that nothing else gets them */
    }
    if (span->forgiven)
        return CUDA_SUCCESS;
    (void)munmap(pointer(base), bytes);
    *span = g_twin.spans[--g_twin.span_count];
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *memory,
                          unsigned long long flags),
            (handle, bytes, memory, flags))
{
    if (!whole_pages(0, bytes) || flags || memory->location.id != twin_device_locked())
        return CUDA_ERROR_INVALID_VALUE;
    twin_piece *piece = twin_object_new_locked(TWIN_PIECE, memory->location.id, sizeof *piece);
    piece->bytes = bytes;
    *handle = piece->base.handle;
    return CUDA_SUCCESS;
}

static void forgive_piece(CUmemGenericAllocationHandle handle)
{
    twin_piece *piece = twin_find_locked(pointer(handle), TWIN_PIECE);
    if (piece)
        piece->base.forgiven = true;
}

TWIN_DEFINE_END(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), forgive_piece)
{
    twin_piece *piece;
    CUresult result = twin_destroy_locked(pointer(handle), TWIN_PIECE, &piece);
    if (result == CUDA_SUCCESS && piece->at)
        twin_breach_locked("a piece that is mapped at %#llx", (unsigned long long)piece->at);
    return result;
}

TWIN_DEFINE(cuMemMap, (CUdeviceptr base, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags),
            (base, bytes, offset, handle, flags))
{
    twin_piece *piece;
    CUresult result = twin_use_locked(pointer(handle), TWIN_PIECE, &piece);
    if (result != CUDA_SUCCESS)
        return result;
    if (!whole_pages(base, bytes) || !span_at(base, bytes) || offset || flags || bytes != piece->bytes || piece->at) {
        twin_breach_locked("a piece that is mapped already, or not as a whole");
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < g_twin.object_count; i++) {
        const twin_piece *other = piece_of(i);
        if (other && other->at && other->at < base + bytes && base < other->at + other->bytes)
            twin_breach_locked("memory is mapped at %#llx", (unsigned long long)other->at);
    }
    piece->at = base;
    return CUDA_SUCCESS;
}

/* The pieces of a range, all of them whole; NULL in the end, or after a breach. */
static twin_piece *next_piece(uint64_t at, uint64_t end)
{
    for (uint32_t i = 0; at < end && i < g_twin.object_count; i++) {
        twin_piece *piece = piece_of(i);
        if (piece && piece->at == at && at + piece->bytes <= end)
            return piece;
    }
    if (at < end)
        twin_breach_locked("no whole piece is mapped at %#llx", (unsigned long long)at);
    return NULL;
}

TWIN_DEFINE(cuMemSetAccess, (CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t count),
            (base, bytes, access, count))
{
    const uint64_t end = base + bytes;
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    for (const twin_piece *p = next_piece(base, end); p; p = next_piece(p->at + p->bytes, end)) {
        if (g_twin.block_count == TWIN_BLOCKS || mprotect(pointer(p->at), p->bytes, PROT_READ | PROT_WRITE) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memset(pointer(p->at), FRESH, 4096); /* not all of it: it would have to be there */
        g_twin.blocks[g_twin.block_count++] =
            (twin_block){p->at, p->bytes, access->location.id, false, false, TWIN_ORDINARY, true};
    }
    return CUDA_SUCCESS;
}

static twin_block *block_at(uint64_t base)
{
    for (uint32_t i = 0; i < g_twin.block_count; i++)
        if (g_twin.blocks[i].mapped && g_twin.blocks[i].base == base)
            return &g_twin.blocks[i];
    return NULL; /* mapped, but not yet accessible */
}

static void forgive_mapping(CUdeviceptr base, size_t bytes)
{
    const uint64_t end = base + bytes;
    for (twin_piece *p = next_piece(base, end); p; p = next_piece(p->at + p->bytes, end)) {
        twin_block *block = block_at(p->at);
        if (block)
            block->forgiven = true;
        p->base.forgiven = true;
    }
}

TWIN_DEFINE_END(cuMemUnmap, (CUdeviceptr base, size_t bytes), (base, bytes), forgive_mapping)
{
    const uint64_t end = base + bytes;
    if (twin_range_busy_locked(base, bytes))
        twin_breach_locked("%llu bytes at %#llx, which work that has not run uses", (unsigned long long)bytes,
                           (unsigned long long)base);
    for (twin_piece *p = next_piece(base, end), *next; p; p = next) {
        twin_block *block = block_at(p->at);
        if (block)
            *block = g_twin.blocks[--g_twin.block_count];
        if (mmap(pointer(p->at), p->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            return CUDA_ERROR_UNKNOWN;
        next = next_piece(p->at + p->bytes, end);
        p->at = 0;
    }
    return CUDA_SUCCESS;
}
