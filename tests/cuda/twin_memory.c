/*
 * The twin's memory: device blocks and pinned ones, copies, fills and host functions. Called through the driver table.
 * Blocks come from a range of addresses that malloc never gives out, as on a GPU; the address sanitizer sees what is
 * outside of them. Memory that it does not know is pageable, and is treated as CUDA treats that: the
 * source of a copy is read when the copy is called, a destination is written before the call returns.
 */
#include "twin_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined __SANITIZE_ADDRESS__
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(from, bytes) ASAN_POISON_MEMORY_REGION(from, bytes)
#define UNPOISON(from, bytes) ASAN_UNPOISON_MEMORY_REGION(from, bytes)
#else
#define POISON(from, bytes) ((void)(from), (void)(bytes))
#define UNPOISON(from, bytes) ((void)(from), (void)(bytes))
#endif

enum { ALIGNMENT = 256, FRESH = 0xcd /* new memory holds no zeros by chance */ };
#define REGION_BYTES ((uint64_t)64 << 20)

static unsigned char *g_region; /* as long as the process */

twin_block *twin_block_find_locked(uint64_t base, uint64_t bytes)
{
    for (uint32_t i = 0; i < g_twin.block_count; i++) {
        twin_block *b = &g_twin.blocks[i];
        if (base < b->base || base >= b->base + b->bytes)
            continue;
        const uint64_t end = b->base + b->bytes;
        if (base + bytes > end && b->mapped && twin_block_find_locked(end, base + bytes - end))
            return b;
        if (base + bytes > end)
            twin_breach_locked("%llu bytes at %#llx reach out of a block of %llu at %#llx", (unsigned long long)bytes,
                               (unsigned long long)base, (unsigned long long)b->bytes, (unsigned long long)b->base);
        return base + bytes > b->base + b->bytes ? NULL : b;
    }
    return NULL;
}

static bool region_make(void)
{
    if (g_region)
        return true;
    void *region = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        return false;
    g_region = region;
    POISON(g_region, REGION_BYTES);
    return true;
}

/* Offset of free room at or behind `from`; REGION_BYTES: none. Blocks keep a distance, so that overruns show. */
static uint64_t room_behind(uint64_t from, uint64_t bytes)
{
    for (uint32_t i = 0; i < g_twin.block_count && from + bytes <= REGION_BYTES;) {
        const twin_block *b = &g_twin.blocks[i++];
        uint64_t start = b->base - (uint64_t)(uintptr_t)g_region, end = start + b->bytes;
        if (start < from + bytes + ALIGNMENT && from < end + ALIGNMENT) {
            from = (end + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            i = 0;
        }
    }
    return from + bytes <= REGION_BYTES ? from : REGION_BYTES;
}

/* Freed addresses come back at once, or as late as possible: by the seed. */
static void *region_take(uint64_t bytes)
{
    if (g_twin.block_count == TWIN_BLOCKS || bytes > REGION_BYTES || !region_make())
        return NULL;
    uint64_t offset = room_behind(twin_random_locked(2) ? 0 : g_twin.next_room, bytes);
    if (offset == REGION_BYTES)
        offset = room_behind(0, bytes);
    if (offset == REGION_BYTES)
        return NULL;
    g_twin.next_room = (offset + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    UNPOISON(g_region + offset, bytes);
    return memset(g_region + offset, FRESH, bytes);
}

void twin_memory_free_locked(const twin_block *block)
{
    POISON((void *)(uintptr_t)block->base, block->bytes);
}

static CUresult block_new(size_t bytes, bool host, void **memory)
{
    CUresult result = twin_unsafe_locked();
    int device = twin_device_locked();
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes == 0) {
        twin_breach_locked("0 bytes");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return result;
    void *taken = region_take(bytes);
    if (!taken)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = taken;
    g_twin.blocks[g_twin.block_count++] =
        (twin_block){(uint64_t)(uintptr_t)taken, bytes, device, host, false, TWIN_ORDINARY, false};
    return CUDA_SUCCESS;
}

static CUresult block_free(uint64_t base, bool host)
{
    CUresult result = twin_unsafe_locked();
    int device = twin_device_locked();
    twin_block *block = twin_block_find_locked(base, 1);
    if (!block || block->base != base || block->host != host) {
        twin_breach_locked("%#llx is no %s block: never made, or freed before", (unsigned long long)base,
                           host ? "pinned" : "device");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device != block->device) {
        twin_breach_locked("a block of device %d while the context of device %d is current", block->device, device);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result != CUDA_SUCCESS)
        return result;
    if (twin_range_busy_locked(block->base, block->bytes))
        twin_breach_locked("%llu bytes at %#llx, which work that has not run uses", (unsigned long long)block->bytes,
                           (unsigned long long)base);
    twin_memory_free_locked(block);
    *block = g_twin.blocks[--g_twin.block_count];
    return CUDA_SUCCESS;
}

/* Freeing was made to fail: the block stays, and is no leak. */
static void block_forgive(uint64_t base)
{
    twin_block *block = twin_block_find_locked(base, 1);
    if (!block)
        twin_breach_locked("%#llx is no block", (unsigned long long)base);
    else
        block->forgiven = true;
}

TWIN_DEFINE(cuMemAlloc, (CUdeviceptr * memory, size_t bytes), (memory, bytes))
{
    void *block = NULL;
    CUresult result = block_new(bytes, false, &block);
    if (result == CUDA_SUCCESS)
        *memory = (CUdeviceptr)(uintptr_t)block;
    return result;
}

TWIN_DEFINE(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
{
    (void)flags;
    return block_new(bytes, true, memory);
}

static void forgive_device(CUdeviceptr memory)
{
    block_forgive(memory);
}

TWIN_DEFINE_END(cuMemFree, (CUdeviceptr memory), (memory), forgive_device)
{
    return block_free(memory, false);
}

static void forgive_host(void *memory)
{
    block_forgive((uint64_t)(uintptr_t)memory);
}

TWIN_DEFINE_END(cuMemFreeHost, (void *memory), (memory), forgive_host)
{
    return block_free((uint64_t)(uintptr_t)memory, true);
}

TWIN_DEFINE(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr memory),
            (data, attribute, memory))
{
    const twin_block *block = twin_block_find_locked(memory, 1);
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL && block) {
        memcpy(data, &block->device, sizeof block->device);
        return CUDA_SUCCESS;
    }
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
        const int device = twin_device_locked();
        if (device < 0)
            return CUDA_ERROR_INVALID_CONTEXT;
        if (!block || (!block->host && block->device != device && !g_twin.peers[device][block->device]))
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(data, &memory, sizeof memory);
        return CUDA_SUCCESS;
    }
    if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        twin_breach_locked("attribute %d is not known here", (int)attribute);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemorytype type = block->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    memcpy(data, &type, sizeof type);
    return CUDA_SUCCESS;
}

void twin_block_is(const void *memory, twin_trait trait)
{
    pthread_mutex_lock(&g_twin.lock);
    twin_block *block = twin_block_find_locked((uint64_t)(uintptr_t)memory, 1);
    if (block)
        block->trait = trait;
    pthread_mutex_unlock(&g_twin.lock);
}

/* One answer; of memory that CUDA does not know it is zero. False: the attribute is not known here. */
static bool answer(const twin_block *b, CUpointer_attribute attribute, void *data)
{
    CUmemorytype type = !b ? 0 : b->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    uintptr_t context = !b || b->trait == TWIN_OF_A_POOL  ? 0
                        : b->trait == TWIN_OTHER_CONTEXT ? 1
                                                         : g_twin.contexts[b->device]->handle;
    CUdeviceptr start = b ? b->base : 0;
    unsigned managed = b && b->trait == TWIN_MANAGED;
    size_t bytes = b ? b->bytes : 0;
    int device = b ? b->device : 0;
    const int of_malloc = b && !b->host && b->trait != TWIN_OF_A_POOL && !managed;
    const uintptr_t pool = b && b->trait == TWIN_OF_A_POOL;
    const struct {
        CUpointer_attribute attribute;
        const void *value;
        size_t size;
    } known[] = {{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type, sizeof type},
                 {CU_POINTER_ATTRIBUTE_CONTEXT, &context, sizeof context},
                 {CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed, sizeof managed},
                 {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start, sizeof start},
                 {CU_POINTER_ATTRIBUTE_RANGE_SIZE, &bytes, sizeof bytes},
                 {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device, sizeof device},
                 {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, &of_malloc, sizeof of_malloc},
                 {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool, sizeof pool}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].attribute == attribute) {
            memcpy(data, known[i].value, known[i].size);
            return true;
        }
    return false;
}

/* Unlike the call for one attribute, this one has no error for pageable memory. */
TWIN_DEFINE(cuPointerGetAttributes,
            (unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr memory),
            (count, attributes, data, memory))
{
    const twin_block *block = twin_block_find_locked(memory, 1);
    if (twin_device_locked() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
            CUdeviceptr seen = !block ? 0 : block->trait == TWIN_MAPPED_ELSEWHERE ? memory + 4096 : memory;
            memcpy(data[i], &seen, sizeof seen);
        } else if (!answer(block, attributes[i], data[i])) {
            twin_breach_locked("attribute %d is not known here", (int)attributes[i]);
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------------------------------------------- work */

static twin_op *op_new(twin_op_kind kind, uint64_t dst, uint64_t src, uint64_t bytes)
{
    twin_op *op = twin_memory(sizeof *op);
    op->kind = kind;
    op->dst = dst;
    op->src = src;
    op->bytes = bytes;
    op->ranges = twin_memory(2 * sizeof *op->ranges);
    op->ranges[op->range_count++] = (twin_range){dst, bytes};
    if (kind == OP_COPY)
        op->ranges[op->range_count++] = (twin_range){src, bytes};
    return op;
}

/* Fit for work, and not chosen to fail. */
static CUresult work_begin(CUstream handle, twin_stream **stream)
{
    CUresult result = twin_stream_use_locked(handle, stream);
    return result == CUDA_SUCCESS ? twin_chance_locked(*stream) : result;
}

TWIN_DEFINE(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream handle), (dst, src, bytes, handle))
{
    twin_stream *stream = NULL;
    CUresult result = work_begin(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    twin_note_locked("copy", stream, NULL);
    uint64_t breaches = g_twin.breaches;
    bool pageable_source = !twin_block_find_locked(src, bytes), pageable_target = !twin_block_find_locked(dst, bytes);
    if (g_twin.breaches != breaches)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing = stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
    twin_op *op = op_new(OP_COPY, dst, src, bytes);
    if (pageable_source && !capturing) { /* read now, whatever the stream has still to do */
        op->staged = twin_memory(bytes);
        memcpy(op->staged, (const void *)(uintptr_t)src, bytes);
        op->range_count = 1;
    }
    twin_push_locked(stream, op);
    if (pageable_target && !capturing)
        twin_need_locked(stream, stream->issued);
    return g_twin.lost;
}

TWIN_DEFINE(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t bytes, CUstream handle),
            (dst, value, bytes, handle))
{
    twin_stream *stream = NULL;
    CUresult result = work_begin(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!twin_block_find_locked(dst, bytes))
        return CUDA_ERROR_INVALID_VALUE; /* of pageable memory: no breach, the backend asks and does it another way */
    twin_note_locked("fill", stream, NULL);
    twin_op *op = op_new(OP_FILL, dst, 0, bytes);
    op->value = value;
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuMemsetD32Async, (CUdeviceptr dst, unsigned value, size_t count, CUstream handle), (dst, value, count, handle))
{
    if (value != (value & 255) * 0x01010101u) {
        twin_breach_locked("value %#x has different bytes, which is not known here", value);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return cuMemsetD8Async_locked(dst, (unsigned char)value, 4 * count, handle);
}

TWIN_DEFINE(cuLaunchHostFunc, (CUstream handle, CUhostFn function, void *argument), (handle, function, argument))
{
    twin_stream *stream = NULL;
    CUresult result = work_begin(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    twin_note_locked("host", stream, NULL);
    twin_op *op = twin_memory(sizeof *op);
    op->kind = OP_HOST;
    op->host = function;
    op->argument = argument;
    twin_push_locked(stream, op);
    return CUDA_SUCCESS;
}
