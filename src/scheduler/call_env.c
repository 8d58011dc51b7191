/*
 * Library calls: a set of scratch memory and places (the program's handles) for each slot, and the calls themselves.
 * Owned by a backend. Called by it where calls are issued to streams, and by the core where calls run on the host. It
 * never holds its lock while the program's function runs.
 */
#include "scheduler/backend.h"
#include "base/lock.h"

#include <stdlib.h>

typedef struct call_place {
    const void *key;
    void *value; /* owned by the program, until `destroy` */
    void (*destroy)(void *);
} call_place;

/* Used by one thread at a time, the owner of the slot. */
typedef struct call_slot {
    void *scratch;
    size_t scratch_bytes;
    call_place *places;
    uint32_t used, capacity;
    bool busy; /* claimed by a thread; under the lock */
} call_slot;

struct acs_call_slots {
    acs_lock lock; /* rank BACKEND; guards busy */
    acs_cond freed;
    call_slot captured; /* used by the thread that captures, alone: see acs_capture_ops */
    uint32_t count;
    call_slot slots[];
};

acs_status acs_call_slots_create(uint32_t slots, acs_call_slots **calls)
{
    acs_call_slots *c = calloc(1, sizeof *c + slots * sizeof c->slots[0]);
    if (!c)
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "no memory for the library calls of %u slots", (unsigned)slots);
    c->count = slots;
    int error = acs_lock_init(&c->lock, ACS_RANK_BACKEND);
    if (!error && (error = acs_cond_init(&c->freed)) != 0)
        acs_lock_fini(&c->lock);
    if (!error) {
        *calls = c;
        return ACS_OK;
    }
    free(c);
    return ACS_FAIL(ACS_ERR_MEMORY, error, "no lock for the library calls");
}

/* Places before scratch memory: a library handle may have been given the scratch block. */
static void slot_destroy(call_slot *slot, acs_backend *backend)
{
    for (uint32_t i = 0; i < slot->used; i++) {
        if (slot->places[i].value && slot->places[i].destroy)
            slot->places[i].destroy(slot->places[i].value);
    }
    free(slot->places);
    if (slot->scratch)
        /* at close nobody can be told of an error */
        (void)backend->ops->memory_free(backend, ACS_MEMORY_DEVICE, slot->scratch);
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

/* The old contents are not kept, so the old block goes first, and the two never exist at once. */
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

/* Find or make the slot's place of this key. Its address is valid until the slot's next call. */
static acs_status place_find(call_slot *slot, const acs_record *op, void ***place)
{
    const void *key = op->u.call.place_key;

    for (uint32_t i = 0; i < slot->used; i++) {
        if (slot->places[i].key == key) {
            *place = &slot->places[i].value;
            return ACS_OK;
        }
    }
    /* The array moves when it grows, so the address of a place is valid for one call only. */
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
 * For backends that run calls in any thread: claim a slot, which is only a set of scratch memory and handles. After a
 * wait the search starts over, since any slot may be the free one.
 */
static int slot_claim(acs_call_slots *calls)
{
    uint32_t i = 0;

    ACS_HOLD(&calls->lock);
    while (calls->slots[i].busy) {
        if (++i == calls->count) {
            acs_cond_wait(&calls->freed, &calls->lock);
            i = 0;
        }
    }
    calls->slots[i].busy = true;
    return (int)i;
}

static void slot_release(acs_call_slots *calls, int slot)
{
    ACS_HOLD(&calls->lock);
    calls->slots[slot].busy = false;
    acs_cond_signal(&calls->freed);
}

/* Memory is allocated before the program's function is called, so ACS_ERR_MEMORY means that it did not run. */
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

_Atomic(uint32_t) acs_backend_unloads;
pthread_rwlock_t acs_backend_unloading = PTHREAD_RWLOCK_INITIALIZER;

acs_status acs_backend_decide(acs_backend *backend, const acs_record *op)
{
    acs_cell cell;
    if (!backend->ops->read_cell)
        return acs_cell_runs(op->cell) ? ACS_OK : ACS_NOT_READY;
    ACS_TRY(backend->ops->read_cell(backend, op->cell, &cell));
    atomic_fetch_add_explicit(&backend->not_run, !cell.runs, memory_order_relaxed);
    return cell.runs ? ACS_OK : ACS_NOT_READY;
}
