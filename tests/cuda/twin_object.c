/*
 * The twin's objects and contexts: handles, which thread may use which, what is destroyed; the driver's functions for
 * contexts and devices. Called through the driver table and by the other twin*.c files. It never runs work.
 */
#include "twin_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *twin_kind_name(twin_kind kind)
{
    static const char *const names[] = {"object", "stream", "event", "kernel", "function", "context", "graph", "node",
                                        "executable graph", "user object", "library", "piece of memory", "green context"};
    return names[kind];
}

/* ------------------------------------------------------------------------------------------------------------- handles */

void *twin_object_new_locked(twin_kind kind, int device, size_t bytes)
{
    twin_object *object = twin_memory(bytes);
    if (g_twin.object_count == g_twin.object_capacity) {
        g_twin.object_capacity = g_twin.object_capacity ? 2 * g_twin.object_capacity : 64;
        twin_object **grown = realloc(g_twin.objects, g_twin.object_capacity * sizeof *grown);
        if (!grown)
            abort();
        g_twin.objects = grown;
    }
    *object = (twin_object){.kind = kind, .alive = true, .device = device, .number = g_twin.made[kind]++,
                            .handle = g_twin.first_handle + 16 * (uintptr_t)g_twin.object_count};
    g_twin.objects[g_twin.object_count++] = object;
    return object;
}

void *twin_find_locked(const void *handle, twin_kind kind)
{
    uintptr_t offset = (uintptr_t)handle - g_twin.first_handle;
    if (offset % 16 || offset / 16 >= g_twin.object_count) {
        twin_breach_locked("%p is no %s", handle, twin_kind_name(kind));
        return NULL;
    }
    twin_object *object = g_twin.objects[offset / 16];
    if (object->kind != kind) {
        twin_breach_locked("%s %u was given for a%s %s", twin_kind_name(object->kind), object->number,
                           kind == TWIN_EVENT || kind == TWIN_EXEC ? "n" : "", twin_kind_name(kind));
        return NULL;
    }
    if (!object->alive) {
        twin_breach_locked("%s %u was destroyed before", twin_kind_name(kind), object->number);
        return NULL;
    }
    return object;
}

int twin_device_locked(void)
{
    const twin_thread *self = twin_self_locked();
    if (self->depth == 0) {
        twin_breach_locked("no context is current on this thread");
        return -1;
    }
    const twin_object *context = twin_find_locked((void *)self->stack[self->depth - 1], TWIN_CONTEXT);
    return context ? context->device : -1;
}

CUresult twin_use_locked(const void *handle, twin_kind kind, void *object)
{
    twin_object *found = twin_find_locked(handle, kind);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    int device = twin_device_locked();
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (found->device >= 0 && found->device != device) {
        twin_breach_locked("%s %u is of device %d, the current context of device %d", twin_kind_name(kind), found->number,
                           found->device, device);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    memcpy(object, &found, sizeof found);
    return CUDA_SUCCESS;
}

CUresult twin_destroy_locked(const void *handle, twin_kind kind, void *object)
{
    twin_object *found = NULL;
    CUresult result = twin_use_locked(handle, kind, &found);
    if (result != CUDA_SUCCESS)
        return result;
    found->alive = false;
    memcpy(object, &found, sizeof found);
    return CUDA_SUCCESS;
}

static void owned_free(twin_owned *owned)
{
    while (owned) {
        twin_owned *next = owned->next;
        free(owned);
        owned = next;
    }
}

static void object_free(twin_object *object)
{
    twin_op *op = NULL;
    if (object->kind == TWIN_STREAM) {
        op = ((twin_stream *)object)->head;
        free(((twin_stream *)object)->behind);
        free(((twin_stream *)object)->ends.list);
    } else if (object->kind == TWIN_GRAPH) {
        op = ((twin_graph *)object)->nodes;
        owned_free(((twin_graph *)object)->owned);
    } else if (object->kind == TWIN_EXEC) {
        op = ((twin_exec *)object)->nodes;
        owned_free(((twin_exec *)object)->owned);
    }
    while (op) {
        twin_op *next = op->next;
        twin_op_free(op);
        op = next;
    }
    free(object);
}

void twin_objects_free(void)
{
    for (uint32_t i = 0; i < g_twin.object_count; i++)
        object_free(g_twin.objects[i]);
    free(g_twin.objects);
    free(g_twin.streams);
    for (uint32_t i = 0; i < g_twin.block_count; i++)
        if (!g_twin.blocks[i].mapped)
            twin_memory_free_locked(&g_twin.blocks[i]);
    twin_spans_free();
}

/* ------------------------------------------------------------------------------------------------------------- capture */

/* By the rules of cuThreadExchangeStreamCaptureMode; the capture is void afterwards, as CUDA has it. */
CUresult twin_unsafe_locked(void)
{
    const twin_thread *self = twin_self_locked();
    if (!g_twin.captures || self->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (uint32_t i = 0; i < g_twin.stream_count; i++) {
        twin_stream *s = g_twin.streams[i];
        bool mine = s->capture_thread == self->number && s->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global = s->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (s->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE || !(mine || global))
            continue;
        s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        twin_breach_locked("stream %u is being captured, and this thread's capture mode forbids the call", s->base.number);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
    twin_thread *self = twin_self_locked();
    CUstreamCaptureMode before = self->mode;
    if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        twin_breach_locked("mode %d does not exist", (int)*mode);
        return CUDA_ERROR_INVALID_VALUE;
    }
    self->mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------------ contexts */

static bool device_exists(CUdevice device)
{
    if (device >= 0 && device < TWIN_DEVICES)
        return true;
    twin_breach_locked("there is no device %d", (int)device);
    return false;
}

uintptr_t twin_context_locked(int device)
{
    if (!g_twin.contexts[device])
        g_twin.contexts[device] = twin_object_new_locked(TWIN_CONTEXT, device, sizeof(twin_object));
    g_twin.contexts[device]->alive = true;
    return g_twin.contexts[device]->handle;
}

CUcontext twin_context(int device)
{
    pthread_mutex_lock(&g_twin.lock);
    CUcontext context = (CUcontext)twin_context_locked(device);
    pthread_mutex_unlock(&g_twin.lock);
    return context;
}

/* Nobody holds it: everything in it is gone, and what the last holder forgot is a leak. */
static void context_end(int device)
{
    if (g_twin.retained[device] || g_twin.runtime_holds[device] || !g_twin.contexts[device])
        return;
    for (uint32_t i = 0; i < g_twin.object_count; i++) {
        twin_object *o = g_twin.objects[i];
        bool made = o->kind == TWIN_STREAM || o->kind == TWIN_EVENT;
        if (!made || !o->alive || o->device != device)
            continue;
        if (o->kind == TWIN_EVENT || !((twin_stream *)o)->builtin)
            twin_breach_locked("the context of device %d ends before its %s %u", device, twin_kind_name(o->kind),
                               o->number);
        o->alive = false;
    }
    g_twin.contexts[device]->alive = false;
}

void twin_device_reset(int device)
{
    pthread_mutex_lock(&g_twin.lock);
    for (uint32_t i = 0; i < g_twin.object_count; i++)
        if ((g_twin.objects[i]->kind == TWIN_STREAM || g_twin.objects[i]->kind == TWIN_EVENT) &&
            g_twin.objects[i]->device == device)
            g_twin.objects[i]->alive = false;
    g_twin.retained[device] = 0;
    g_twin.resets[device]++;
    pthread_mutex_unlock(&g_twin.lock);
}

TWIN_DEFINE(cuCtxGetId, (CUcontext context, unsigned long long *id), (context, id))
{
    const twin_object *o = twin_find_locked(context, TWIN_CONTEXT);
    if (!o)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = 1 + (unsigned long long)o->device + (unsigned long long)TWIN_DEVICES * g_twin.resets[o->device];
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
{
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = twin_unsafe_locked();
    if (result != CUDA_SUCCESS)
        return result;
    *context = (CUcontext)twin_context_locked(device);
    g_twin.retained[device]++;
    return CUDA_SUCCESS;
}

static void release_forgive(CUdevice device)
{
    if (device >= 0 && device < TWIN_DEVICES && g_twin.retained[device])
        g_twin.retained[device]--;
}

TWIN_DEFINE_END(cuDevicePrimaryCtxRelease, (CUdevice device), (device), release_forgive)
{
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!g_twin.retained[device]) {
        twin_breach_locked("the context of device %d is not retained", (int)device);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    g_twin.retained[device]--;
    context_end(device);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active), (device, flags, active))
{
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = g_twin.retained[device] || g_twin.runtime_holds[device];
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device))
{
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    bool grid = attribute >= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X && attribute <= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    bool flag = attribute == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH || attribute == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? TWIN_SHARED_MOST
             : grid                                                            ? TWIN_GRID_MOST
             : flag                                                            ? !g_twin.plain
             : attribute == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS         ? 0
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR       ? (g_twin.plain ? 8 : 9)
                                                                               : TWIN_BLOCK_MOST;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDeviceGetName, (char *name, int bytes, CUdevice device), (name, bytes, device))
{
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(name, (size_t)bytes, "Twin %d", device);
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer))
{
    if (!device_exists(device) || !device_exists(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxEnablePeerAccess, (CUcontext handle, unsigned flags), (handle, flags))
{
    const twin_object *peer = twin_find_locked(handle, TWIN_CONTEXT);
    const int device = twin_device_locked();
    if (!peer || device < 0 || flags != 0 || peer->device == device) {
        twin_breach_locked("flags %u, or no context of another device", flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool again = g_twin.peers[device][peer->device];
    g_twin.peers[device][peer->device] = true;
    return again ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxGetCurrent, (CUcontext * context), (context))
{
    const twin_thread *self = twin_self_locked();
    *context = self->depth ? (CUcontext)self->stack[self->depth - 1] : NULL;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxSetCurrent, (CUcontext context), (context))
{
    twin_thread *self = twin_self_locked();
    if (context && !twin_find_locked(context, TWIN_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    self->depth -= self->depth > 0;
    if (context)
        self->stack[self->depth++] = (uintptr_t)context;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxPushCurrent, (CUcontext context), (context))
{
    twin_thread *self = twin_self_locked();
    if (!twin_find_locked(context, TWIN_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (self->depth == (int)(sizeof self->stack / sizeof self->stack[0])) {
        twin_breach_locked("%d contexts were pushed and not popped", self->depth);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    self->stack[self->depth++] = (uintptr_t)context;
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxPopCurrent, (CUcontext * context), (context))
{
    twin_thread *self = twin_self_locked();
    if (self->depth == 0) {
        twin_breach_locked("no context was pushed");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = (CUcontext)self->stack[--self->depth];
    return CUDA_SUCCESS;
}

TWIN_DEFINE(cuCtxGetStreamPriorityRange, (int *low, int *high), (low, high))
{
    if (twin_device_locked() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *low = 0;
    *high = -5;
    return CUDA_SUCCESS;
}

int twin_thread_depth(void)
{
    pthread_mutex_lock(&g_twin.lock);
    int depth = twin_self_locked()->depth;
    pthread_mutex_unlock(&g_twin.lock);
    return depth;
}

CUstreamCaptureMode twin_thread_mode(void)
{
    pthread_mutex_lock(&g_twin.lock);
    CUstreamCaptureMode mode = twin_self_locked()->mode;
    pthread_mutex_unlock(&g_twin.lock);
    return mode;
}

void twin_thread_set_mode(CUstreamCaptureMode mode)
{
    pthread_mutex_lock(&g_twin.lock);
    twin_self_locked()->mode = mode;
    pthread_mutex_unlock(&g_twin.lock);
}

CUcontext twin_thread_context(void)
{
    pthread_mutex_lock(&g_twin.lock);
    const twin_thread *self = twin_self_locked();
    CUcontext context = self->depth ? (CUcontext)self->stack[self->depth - 1] : NULL;
    pthread_mutex_unlock(&g_twin.lock);
    return context;
}
