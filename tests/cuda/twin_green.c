/*
 * The twin's green contexts: the groups of multiprocessors of a device, descriptions of some of them, contexts made of
 * these, and their streams. Called through the driver table. The number of a group is in the padding of a resource, where
 * CUDA's driver keeps what it likes. Kernels run as elsewhere; their body may ask which groups they have (twin_part).
 */
#include "twin_internal.h"

#include <string.h>

enum { GROUP_SMS = 8, GROUPS = TWIN_SMS / GROUP_SMS, MARK = 0x5e, DESCRIPTIONS = 4096 };

/* What stands in the padding. */
typedef struct hidden {
    unsigned char mark, device, group;
} hidden;

typedef struct description {
    int device;
    uint32_t first, count;
} description;

static description g_described[DESCRIPTIONS]; /* of this process: CUDA has no call that frees one */
static uint32_t g_described_used;

static hidden hidden_of(const CUdevResource *resource)
{
    hidden h;
    memcpy(&h, resource->_internal_padding, sizeof h);
    return h;
}

static CUdevResource group_of(int device, uint32_t group)
{
    const hidden h = {MARK, (unsigned char)device, (unsigned char)group};
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};
    memcpy(resource._internal_padding, &h, sizeof h);
    resource.sm.smCount = GROUP_SMS;
    return resource;
}

TWIN_DEFINE(cuDeviceGetDevResource, (CUdevice device, CUdevResource *resource, CUdevResourceType type),
            (device, resource, type))
{
    if (type != CU_DEV_RESOURCE_TYPE_SM || device < 0 || device >= TWIN_DEVICES) {
        twin_breach_locked("resource %d of device %d", (int)type, (int)device);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *resource = group_of(device, GROUPS);
    resource->sm.smCount = TWIN_SMS;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDevSmResourceSplitByCount, (CUdevResource * list, unsigned *count, const CUdevResource *input,
                                          CUdevResource *rest, unsigned flags, unsigned least),
            (list, count, input, rest, flags, least))
{
    const hidden h = hidden_of(input);
    if (h.mark != MARK || h.group != GROUPS || flags || least > GROUP_SMS || rest) {
        twin_breach_locked("a split that the twin does not do");
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned made = list && *count < GROUPS ? *count : GROUPS;
    for (uint32_t i = 0; list && i < made; i++)
        list[i] = group_of(h.device, i);
    *count = made;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDevResourceGenerateDesc, (CUdevResourceDesc * made, CUdevResource *list, unsigned count), (made, list, count))
{
    const hidden first = hidden_of(&list[0]);
    for (uint32_t i = 0; i < count; i++) {
        const hidden h = hidden_of(&list[i]);
        if (h.mark == MARK && h.device == first.device && h.group == (first.group + i) % GROUPS && count <= GROUPS)
            continue;
        twin_breach_locked("resource %u of %u is not the group behind the one before", i, count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    description *d = &g_described[g_described_used++ % DESCRIPTIONS];
    *d = (description){first.device, first.group, count};
    *made = (CUdevResourceDesc)d;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuGreenCtxCreate, (CUgreenCtx * context, CUdevResourceDesc described, CUdevice device, unsigned flags),
            (context, described, device, flags))
{
    const description *d = (const description *)described;
    CUresult result = twin_unsafe_locked();
    if (d < g_described || d >= g_described + DESCRIPTIONS || d->device != device || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
        twin_breach_locked("a description of another device, or flags %u", flags);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return result;
    twin_green *green = twin_object_new_locked(TWIN_GREEN, device, sizeof *green);
    green->first = d->first;
    green->count = d->count;
    *context = (CUgreenCtx)green->base.handle;
    return CUDA_SUCCESS;
}

static void green_forgive(CUgreenCtx handle)
{
    twin_green *green = twin_find_locked(handle, TWIN_GREEN);
    if (green)
        green->base.alive = false;
}

TWIN_DEFINE_END(cuGreenCtxDestroy, (CUgreenCtx handle), (handle), green_forgive)
{
    twin_green *green = NULL;
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_destroy_locked(handle, TWIN_GREEN, &green);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < g_twin.stream_count; i++)
        if (g_twin.streams[i]->base.alive && g_twin.streams[i]->green == green)
            twin_breach_locked("stream %u of the green context is not destroyed", g_twin.streams[i]->base.number);
    return result;
}

TWIN_DEFINE(cuGreenCtxStreamCreate, (CUstream * stream, CUgreenCtx handle, unsigned flags, int priority),
            (stream, handle, flags, priority))
{
    twin_green *green = NULL;
    CUresult result = twin_unsafe_locked();
    if (result == CUDA_SUCCESS)
        result = twin_use_locked(handle, TWIN_GREEN, &green);
    if (result == CUDA_SUCCESS && (flags != CU_STREAM_NON_BLOCKING || priority)) {
        twin_breach_locked("flags %u, priority %d", flags, priority);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return result;
    twin_stream *made = twin_stream_new_locked(green->base.device, false);
    made->green = green;
    *stream = (CUstream)made->base.handle;
    return CUDA_SUCCESS;
}

uint32_t twin_part(uint32_t *first)
{
    const twin_green *green = g_twin.running->green;
    *first = green ? green->first : 0;
    return green ? green->count : 0;
}
