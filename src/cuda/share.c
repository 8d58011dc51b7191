/*
 * Shares of a GPU: streams of green contexts, whose kernels run on some of its multiprocessors only. Called by submit.c
 * when an op has another share than the op before it in its slot, by launching threads that ask for a share the first
 * time, and by member.c at close. A green context belongs to the primary context, whose kernels, events and memory it uses.
 *
 * The driver splits the multiprocessors into groups of equal size, once. A share is some groups that follow each other, and
 * one green context for each *place* where it can begin. Slots that get a share take the places in turn, so its kernels do
 * not crowd together. Streams stay until close; slots take them and give them back. Green contexts stay until the process
 * ends, for all backends: the driver does not give back the 4 MiB that each takes (bench/experiments, shares-2026-11-27).
 */
#include "cuda/share.h"

#include <pthread.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct green_stream {
    CUstream stream;
    struct green_stream *older;   /* of all streams of the place, for close */
} green_stream;

typedef struct acs_cuda_place {
    CUgreenCtx context;
    CUstream *spare;              /* streams that no slot has; room for `made` */
    uint32_t spares, made, room;
    green_stream *all;
} acs_cuda_place;

/* Shares with the same number of groups. */
typedef struct share_places {
    acs_cuda_place *places;       /* NULL: not made yet */
    uint32_t count, turn;
} share_places;

/* How the driver divides the GPU. */
typedef struct division {
    char reason[128];             /* why the GPU cannot be partitioned; empty: it can */
    CUdevResource *groups;
    uint32_t count, group_sms, sms;
} division;

struct acs_cuda_shares {
    /*
     * G  know: fill `by` under the lock, store `known` with release; know: load acquire before `by` is read without the
     *    lock. Broken: a thread finds no groups on a GPU that has some.
     */
    _Atomic(bool) known;
    division by;
    _Atomic(bool) told;           /* relaxed: a stream that could not be made was logged */
    acs_lock lock;                /* rank POOL; guards what follows, and places. No call of the driver is made under it */
    share_places *shares;                /* [groups of a share - 1] */
};

/* A green context of the process, and what it was made of. */
typedef struct kept_context {
    CUgreenCtx context;
    CUcontext primary;
    int device;
    uint32_t first, parts;        /* groups */
    struct kept_context *next;
} kept_context;

static pthread_mutex_t g_kept_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the next one; nothing is called under it */
static kept_context *g_kept;      /* those that new places get; entries stay */

/* ---------------------------------------------------------------------------------------------------------- division */

static bool has_functions(const acs_cuda_driver *cu)
{
    return cu->cuDeviceGetDevResource && cu->cuDevSmResourceSplitByCount && cu->cuDevResourceGenerateDesc &&
           cu->cuGreenCtxCreate && cu->cuGreenCtxStreamCreate;
}

static void refuse(division *by, const char *what, CUresult result)
{
    snprintf(by->reason, sizeof by->reason, "%s%s%.80s", what, result ? ": " : "", result ? acs_cuda_text((int)result) : "");
}

/* Split the multiprocessors into the smallest groups that the driver makes. */
static void divide(acs_cuda *self, division *by)
{
    CUdevResource all;
    unsigned count = 0;
    if (!has_functions(&self->cu)) {
        refuse(by, "the driver has no green contexts; one for CUDA 12.5 is needed", 0);
        return;
    }
    CUresult result = self->cu.cuDeviceGetDevResource(self->device, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS) /* rounded up to the smallest size */
        result = self->cu.cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 1);
    if (result != CUDA_SUCCESS || count < 2) {
        refuse(by, "the GPU's multiprocessors cannot be divided", result);
        return;
    }
    by->groups = calloc(count, sizeof *by->groups);
    result = by->groups ? self->cu.cuDevSmResourceSplitByCount(by->groups, &count, &all, NULL, 0, 1)
                        : CUDA_ERROR_OUT_OF_MEMORY;
    by->count = count;
    by->sms = all.sm.smCount;
    by->group_sms = result == CUDA_SUCCESS ? by->groups[0].sm.smCount : 0;
    if (!by->group_sms)
        refuse(by, "the GPU's multiprocessors could not be divided", result);
}

/* Learn how the GPU is divided. Two threads may both ask the driver; the first answer is kept. */
static void know(acs_cuda *self)
{
    acs_cuda_shares *shares = self->shares;
    division by = {.count = 0};
    if (atomic_load_explicit(&shares->known, memory_order_acquire)) /* G */
        return;
    divide(self, &by);
    share_places *of = calloc(by.count ? by.count : 1, sizeof *of);
    if (!of)
        refuse(&by, "there is no memory", 0);
    acs_lock_acquire(&shares->lock);
    const bool first = !atomic_load_explicit(&shares->known, memory_order_relaxed); /* relaxed: stored under this lock */
    if (first) {
        shares->by = by;
        shares->shares = of;
        atomic_store_explicit(&shares->known, true, memory_order_release); /* G */
    }
    acs_lock_release(&shares->lock);
    if (!first) {
        free(by.groups);
        free(of);
    }
}

/* Groups of a share. */
static uint32_t parts_of(const acs_cuda_shares *shares, uint32_t percent)
{
    const uint32_t parts = (percent * shares->by.count + 50) / 100;
    return parts ? parts : 1;
}

static uint32_t count_places(const acs_cuda_shares *shares, uint32_t parts)
{
    return (shares->by.count + parts - 1) / parts;
}

/* ------------------------------------------------------------------------------------------------ streams of a place */

static void give_stream(acs_cuda_shares *shares, acs_cuda_place *place, CUstream stream)
{
    ACS_HOLD(&shares->lock);
    place->spare[place->spares++] = stream;
}

/* Keep a new stream, which the caller has. False: no memory. */
static bool keep_stream(acs_cuda_shares *shares, acs_cuda_place *place, CUstream stream)
{
    green_stream *kept = malloc(sizeof *kept);
    acs_lock_acquire(&shares->lock);
    const uint32_t room = place->room ? 2 * place->room : 8;
    CUstream *grown = kept && place->made == place->room ? realloc(place->spare, room * sizeof *grown) : place->spare;
    const bool fits = kept && (grown || place->made < place->room);
    if (fits && place->made == place->room) {
        place->spare = grown;
        place->room = room;
    }
    if (fits) {
        *kept = (green_stream){stream, place->all};
        place->all = kept;
        place->made++;
    }
    acs_lock_release(&shares->lock);
    if (!fits)
        free(kept);
    return fits;
}

/* A stream of the place that no other slot has; NULL: none can be made. */
static CUstream take_stream(acs_cuda *self, acs_cuda_place *place)
{
    acs_cuda_shares *shares = self->shares;
    CUstream stream = NULL;
    acs_lock_acquire(&shares->lock);
    if (place->spares)
        stream = place->spare[--place->spares];
    acs_lock_release(&shares->lock);
    if (stream)
        return stream;
    CUresult result = self->cu.cuGreenCtxStreamCreate(&stream, place->context, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS && keep_stream(shares, place, stream))
        return stream;
    if (result == CUDA_SUCCESS)
        (void)self->cu.cuStreamDestroy(stream); /* idle; the kernel then gets the whole GPU */
    if (!acs_cuda_note(self, result) && !atomic_exchange_explicit(&shares->told, true, memory_order_relaxed))
        acs_log(ACS_LOG_WARN, "cuda: launches with a share get the whole GPU, since a stream could not be made: %s",
                acs_cuda_text((int)result));
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------ places */

static kept_context *find_kept(const acs_cuda *self, uint32_t first, uint32_t parts)
{
    ACS_HOLD_MUTEX(&g_kept_mutex);
    kept_context *kept = g_kept;
    while (kept && (kept->device != self->device || kept->primary != self->context || kept->first != first ||
                    kept->parts != parts))
        kept = kept->next;
    return kept;
}

/* Keep a context for later places. Without memory it serves this one alone. */
static void keep_context(const acs_cuda *self, uint32_t first, uint32_t parts, CUgreenCtx context)
{
    kept_context *kept = malloc(sizeof *kept);
    if (!kept)
        return;
    *kept = (kept_context){context, self->context, self->device, first, parts, NULL};
    ACS_HOLD_MUTEX(&g_kept_mutex);
    kept->next = g_kept;
    g_kept = kept;
}

/* The kept context of a place turned out to be of no use, since the program has reset the device. */
static void forget_context(CUgreenCtx context)
{
    ACS_HOLD_MUTEX(&g_kept_mutex);
    for (kept_context *kept = g_kept; kept; kept = kept->next)
        if (kept->context == context)
            kept->device = -1;
}

/* Make the green context of some groups, from the first one on and around the end. */
static CUresult make_context(acs_cuda *self, uint32_t first, uint32_t parts, CUgreenCtx *context)
{
    const acs_cuda_shares *shares = self->shares;
    const kept_context *kept = find_kept(self, first % shares->by.count, parts);
    CUdevResourceDesc described;
    if (kept) {
        *context = kept->context;
        return CUDA_SUCCESS;
    }
    CUdevResource *wanted = calloc(parts, sizeof *wanted);
    if (!wanted)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < parts; i++)
        wanted[i] = shares->by.groups[(first + i) % shares->by.count];
    CUresult result = self->cu.cuDevResourceGenerateDesc(&described, wanted, parts);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuGreenCtxCreate(context, described, self->device, CU_GREEN_CTX_DEFAULT_STREAM);
    free(wanted);
    if (result == CUDA_SUCCESS)
        keep_context(self, first % shares->by.count, parts, *context);
    return result;
}

static void destroy_places(acs_cuda *self, acs_cuda_place *places, uint32_t count)
{
    for (uint32_t i = 0; places && i < count; i++) {
        while (places[i].all) {
            green_stream *stream = places[i].all;
            places[i].all = stream->older;
            acs_cuda_close_note(self, "stream of a green context", self->cu.cuStreamDestroy(stream->stream));
            free(stream);
        }
        free(places[i].spare);
    }
    free(places);
}

/* Whether events of the primary context order a stream of the place and our own: then all that slots do works there. */
static CUresult try_place(acs_cuda *self, acs_cuda_place *place)
{
    CUevent event = NULL;
    const CUstream stream = take_stream(self, place);
    CUresult result = stream ? self->cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = self->cu.cuEventRecord(event, stream);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT);
    if (event)
        (void)self->cu.cuEventDestroy(event);
    if (stream)
        give_stream(self->shares, place, stream);
    return result;
}

/*
 * Make the contexts of a share, or find them, outside the lock. Another thread may make the same: then these places are
 * destroyed again. If kept contexts are of no use any more, the next call makes new ones.
 */
static CUresult make_places(acs_cuda *self, uint32_t parts)
{
    acs_cuda_shares *shares = self->shares;
    const uint32_t count = count_places(shares, parts);
    acs_cuda_place *places = calloc(count, sizeof *places);
    CUresult result = places ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = make_context(self, i * parts, parts, &places[i].context);
    if (result == CUDA_SUCCESS)
        result = try_place(self, &places[0]);
    for (uint32_t i = 0; places && i < count && result != CUDA_SUCCESS; i++)
        forget_context(places[i].context);
    share_places *of = &shares->shares[parts - 1];
    acs_lock_acquire(&shares->lock);
    const bool wanted = result == CUDA_SUCCESS && !of->places;
    if (wanted)
        *of = (share_places){places, count, 0};
    acs_lock_release(&shares->lock);
    if (!wanted)
        destroy_places(self, places, count);
    return result;
}

static bool has_places(acs_cuda_shares *shares, uint32_t parts)
{
    ACS_HOLD(&shares->lock);
    return shares->shares[parts - 1].places != NULL;
}

/* The next place of a share, which was made; NULL: it was not. */
static acs_cuda_place *next_place(acs_cuda_shares *shares, uint32_t parts)
{
    share_places *of = &shares->shares[parts - 1];
    ACS_HOLD(&shares->lock);
    return of->places ? &of->places[of->turn++ % of->count] : NULL;
}

/* -------------------------------------------------------------------------------------------------------------- find */

static void fill_info(const acs_cuda *self, uint32_t percent, acs_share_info *info)
{
    const acs_cuda_shares *shares = self->shares;
    const uint32_t parts = shares->by.reason[0] ? 0 : parts_of(shares, percent);
    const bool part = parts && percent < 100;
    info->device_sms = parts ? shares->by.sms : (uint32_t)self->limits.sms;
    info->sms = part ? parts * shares->by.group_sms : info->device_sms;
    info->step_sms = parts ? shares->by.group_sms : 0;
    info->places = part ? count_places(shares, parts) : 1;
    memcpy(info->reason, shares->by.reason, sizeof info->reason);
}

acs_status acs_cuda_share_find(acs_backend *backend, uint32_t device, uint32_t percent, acs_share_info *info)
{
    acs_cuda *self = ((acs_cuda *)backend)->members[device];
    CUresult result = (CUresult)acs_cuda_fault(self);
    if (result != CUDA_SUCCESS)
        return acs_cuda_scope_failed(self, result);
    ACS_CUDA_SCOPE(self);
    if (scope.entered != CUDA_SUCCESS)
        return acs_cuda_scope_failed(self, scope.entered);
    know(self);
    fill_info(self, percent, info);
    if (info->step_sms && percent < 100 && !has_places(self->shares, parts_of(self->shares, percent)))
        result = make_places(self, parts_of(self->shares, percent));
    if (result == CUDA_SUCCESS)
        return ACS_OK;
    if (acs_cuda_note(self, result))
        return ACS_FAIL(ACS_ERR_DEVICE, (int)result, "cuda: a share of the device: %s", acs_cuda_text((int)result));
    info->sms = info->device_sms;
    info->step_sms = 0;
    info->places = 1;
    snprintf(info->reason, sizeof info->reason, "a green context could not be made: %.80s", acs_cuda_text((int)result));
    return ACS_OK;
}

/* ------------------------------------------------------------------------------------------------------------ change */

/* What goes to the new stream runs behind all that is in the one before. If the driver refuses, wait for it here. */
static void follow_stream(acs_cuda *self, acs_cuda_slot_stream *now, CUstream stream)
{
    if (acs_cuda_fault(self))
        return;
    CUresult result = now->behind ? CUDA_SUCCESS : self->cu.cuEventCreate(&now->behind, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS)
        now->behind = NULL;
    else
        result = self->cu.cuEventRecord(now->behind, now->stream);
    if (result == CUDA_SUCCESS)
        result = self->cu.cuStreamWaitEvent(stream, now->behind, CU_EVENT_WAIT_DEFAULT);
    if (result == CUDA_SUCCESS || acs_cuda_note(self, result))
        return;
    acs_log(ACS_LOG_WARN, "cuda: a slot's new stream could not wait for the one before (%s); waiting on the host",
            acs_cuda_text((int)result));
    result = self->cu.cuStreamSynchronize(now->stream);
    if (result != CUDA_SUCCESS)
        acs_cuda_lose(self, result);
}

/*
 * Make the slot's own stream. It is non-blocking: the program's work in the legacy stream must not serialise ours. Where
 * none can be had, the slot uses the member's first one, which is right, and slower.
 */
static CUstream make_stream(acs_cuda *self, uint32_t slot)
{
    CUstream stream = NULL;
    acs_cuda_gate_begin(&self->members[0]->gate);
    const CUresult result = acs_cuda_fault(self) ? CUDA_SUCCESS : self->cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    acs_cuda_gate_end(&self->members[0]->gate);
    if (result != CUDA_SUCCESS && !acs_cuda_note(self, result))
        acs_log(ACS_LOG_WARN, "cuda: slot %u shares a stream with slot %u, since it could not get one: %s", slot,
                self->member, acs_cuda_text((int)result));
    return result == CUDA_SUCCESS && stream ? stream : self->streams[self->member];
}

void acs_cuda_share_change(acs_cuda *self, uint32_t slot, uint8_t share)
{
    acs_cuda_slot_stream *now = &self->now[slot], before = *now;
    if (!self->streams[slot])
        self->streams[slot] = make_stream(self, slot);
    acs_cuda_place *place = share ? next_place(self->shares, parts_of(self->shares, share)) : NULL;
    CUstream stream = place ? take_stream(self, place) : NULL;
    if (!stream) {
        place = NULL;
        stream = self->streams[slot];
    }
    if (now->stream && stream != now->stream)
        follow_stream(self, now, stream);
    now->stream = stream;
    now->place = place;
    now->share = share;
    if (before.place) /* another slot that takes it comes behind what this one has sent */
        give_stream(self->shares, before.place, before.stream);
}

acs_status acs_cuda_shares_init(acs_cuda *self)
{
    self->shares = calloc(1, sizeof *self->shares);
    if (self->shares && acs_lock_init(&self->shares->lock, ACS_RANK_POOL) == 0)
        return ACS_OK;
    free(self->shares);
    self->shares = NULL;
    return ACS_FAIL(ACS_ERR_MEMORY, 0, "cuda: no memory for shares of the GPU");
}

void acs_cuda_shares_fini(acs_cuda *self)
{
    acs_cuda_shares *shares = self->shares;
    for (uint32_t i = self->member; self->now && i < self->slots; i += self->base.devices) {
        if (self->now[i].behind)
            acs_cuda_close_note(self, "event", self->cu.cuEventDestroy(self->now[i].behind));
        self->now[i] = (acs_cuda_slot_stream){0};
    }
    if (!shares)
        return;
    for (uint32_t i = 0; shares->shares && i < shares->by.count; i++)
        destroy_places(self, shares->shares[i].places, shares->shares[i].count);
    free(shares->shares);
    free(shares->by.groups);
    acs_lock_fini(&shares->lock);
    free(shares);
    self->shares = NULL;
}
