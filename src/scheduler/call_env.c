/*
 * Library calls: scratch memory and the program's places (handles), one set per slot, and running a call with them.
 * Owned by a backend; called by it where calls are issued to its streams, by the core where they run as host functions.
 * Never holds its lock while the program's function runs, and never keeps a place beyond the context.
 */
#include "scheduler/backend.h"
#include "base/lock.h"

#include <stdlib.h>

typedef struct call_place {
    const void *key;
    void *value; /* the program's */
    void (*destroy)(void *);
} call_place;

/* Used by one thread at a time: the slot's owner. */
typedef struct call_slot {
    void *scratch;
    size_t scratch_bytes;
    call_place *places;
    uint32_t used, capacity;
    bool busy; /* claimed by a thread; guarded by the lock */
} call_slot;

struct acs_call_slots {
    acs_lock lock; /* rank BACKEND; guards busy */
    acs_cond freed;
    call_slot captured; /* guarded by whoever captures: backend.h */
    uint32_t count;
    call_slot slots[];
};

acs_status acs_call_slots_create(uint32_t slots, acs_call_slots **calls)
{
    acs_call_slots *c = calloc(1, sizeof *c + slots * sizeof c->slots[0]);
    int error;

    if (!c)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the library calls of %u slots", (unsigned)slots);
    c->count = slots;
    error = acs_lock_init(&c->lock, ACS_RANK_BACKEND);
    if (error)
        goto free_calls;
    error = acs_cond_init(&c->freed);
    if (error)
        goto fini_lock;
    *calls = c;
    return ACS_OK;
fini_lock:
    acs_lock_fini(&c->lock);
free_calls:
    free(c);
    return ACS_FAIL(ACS_ERR_MEMORY, error, "no lock for the library calls");
}

/* Places before scratch: a library handle may have been given the scratch block to work in. */
static void slot_destroy(call_slot *slot, acs_backend *backend)
{
    for (uint32_t i = 0; i < slot->used; i++) {
        if (slot->places[i].value && slot->places[i].destroy)
            slot->places[i].destroy(slot->places[i].value);
    }
    free(slot->places);
    if (slot->scratch)
        (void)backend->ops->memory_free(backend, ACS_MEMORY_DEVICE, slot->scratch); /* closing: nobody left to tell */
}

void acs_call_slots_destroy(acs_call_slots *calls, acs_backend *backend)
{
    if (!calls)
        return;
    for (uint32_t i = 0; i < calls->count; i++)
        slot_destroy(&calls->slots[i], backend);
    slot_destroy(&calls->captured, backend);
    acs_cond_fini(&calls->freed);
    acs_lock_fini(&calls->lock);
    free(calls);
}

/* Old contents are not kept: scratch is scratch. So the old block goes first and the two never exist at once. */
static acs_status scratch_reserve(call_slot *slot, acs_backend *backend, size_t bytes)
{
    void *old = slot->scratch;

    if (bytes <= slot->scratch_bytes)
        return ACS_OK;
    slot->scratch = NULL;
    slot->scratch_bytes = 0;
    if (old)
        ACS_TRY(backend->ops->memory_free(backend, ACS_MEMORY_DEVICE, old));
    ACS_TRY(backend->ops->memory_alloc(backend, ACS_MEMORY_DEVICE, bytes, &slot->scratch));
    slot->scratch_bytes = bytes;
    return ACS_OK;
}

/* The slot's place of this key, made where it is new. The address is good until the slot's next call. */
static acs_status place_find(call_slot *slot, const acs_record *op, void ***place)
{
    const void *key = op->u.call.place_key;

    for (uint32_t i = 0; i < slot->used; i++) {
        if (slot->places[i].key == key) {
            *place = &slot->places[i].value;
            return ACS_OK;
        }
    }
    /* Grows by moving, which is why the address of a place is good for one call only. */
    if (slot->used == slot->capacity) {
        uint32_t capacity = slot->capacity ? slot->capacity * 2 : 4;
        call_place *places = realloc(slot->places, capacity * sizeof *places);
        if (!places)
            return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the place of a library call");
        slot->places = places;
        slot->capacity = capacity;
    }
    slot->places[slot->used] = (call_place){key, NULL, op->u.call.place_destroy};
    *place = &slot->places[slot->used++].value;
    return ACS_OK;
}

/*
 * For backends that run calls on any thread: there a slot is only a set of scratch and handles that one call uses at a
 * time. After a wait the search starts over, since any of the slots may be the one that was released.
 */
static int slot_claim(acs_call_slots *calls)
{
    uint32_t i = 0;

    acs_lock_acquire(&calls->lock);
    while (calls->slots[i].busy) {
        if (++i == calls->count) {
            acs_cond_wait(&calls->freed, &calls->lock);
            i = 0;
        }
    }
    calls->slots[i].busy = true;
    acs_lock_release(&calls->lock);
    return (int)i;
}

static void slot_release(acs_call_slots *calls, int slot)
{
    acs_lock_acquire(&calls->lock);
    calls->slots[slot].busy = false;
    acs_cond_signal(&calls->freed);
    acs_lock_release(&calls->lock);
}

/* What can fail for want of memory comes before the program's function, so that ACS_ERR_MEMORY means "did not run". */
static acs_status call_in_slot(call_slot *slot, acs_backend *backend, acs_record *op, acs_call_env *env, int *native)
{
    int code;

    ACS_TRY(scratch_reserve(slot, backend, env->scratch_bytes));
    env->scratch = env->scratch_bytes ? slot->scratch : NULL;
    if (op->u.call.place_key)
        ACS_TRY(place_find(slot, op, &env->place));
    code = op->u.call.function(env, op->u.call.closure);
    if (!code)
        return ACS_OK;
    *native = code;
    return ACS_ERR_HOST;
}

acs_status acs_call_run(acs_call_slots *calls, acs_backend *backend, acs_record *op, int slot, int device, void *stream,
                        int *native)
{
    bool claim = device < 0;
    acs_call_env env = {.stream = stream, .device = device, .slot = slot, .scratch_bytes = op->u.call.scratch_bytes};
    acs_status status;

    if (claim)
        env.slot = slot_claim(calls);
    status = call_in_slot(&calls->slots[env.slot], backend, op, &env, native);
    if (claim)
        slot_release(calls, env.slot);
    return status;
}

acs_status acs_call_scratch(acs_call_slots *calls, acs_backend *backend, uint32_t slot, size_t bytes, void **scratch)
{
    ACS_TRY(scratch_reserve(&calls->slots[slot], backend, bytes));
    *scratch = bytes ? calls->slots[slot].scratch : NULL;
    return ACS_OK;
}

acs_status acs_call_capture(acs_call_slots *calls, acs_record *op, int device, void *stream, void *scratch, int *native)
{
    acs_call_env env = {.stream = stream, .device = device, .slot = -1, .scratch = scratch,
                        .scratch_bytes = op->u.call.scratch_bytes};
    if (op->u.call.place_key)
        ACS_TRY(place_find(&calls->captured, op, &env.place));
    *native = op->u.call.function(&env, op->u.call.closure);
    return *native ? ACS_ERR_HOST : ACS_OK;
}

acs_status acs_backend_call(acs_backend *backend, acs_record *op, int *native)
{
    return acs_call_run(backend->calls, backend, op, 0, -1, NULL, native);
}
