/*
 * What the ops of a random program do on a CPU: kernels, host functions and library calls, which note on the way what
 * the library promises them (zeroed shared memory, a place and scratch of their own). Called by the library, and at
 * the end by runner.c.
 */
#include "bodies.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Found by bodies on threads of the library, read after everything ended. Relaxed: acs_sync orders them. */
static atomic_uint g_dirty_shared, g_place_races, g_places_alive, g_bad_slots;

static void note_shared(const acs_grid *grid)
{
    unsigned char *shared = grid->shared;
    for (uint64_t i = 0; i < grid->shared_bytes; i++) {
        if (shared[i])
            atomic_fetch_add_explicit(&g_dirty_shared, 1, memory_order_relaxed);
        shared[i] = 0xa5;
    }
}

void mix_body(const acs_grid *grid, void *const *args)
{
    const mix_head *head = args[0];
    note_shared(grid);
    mix_run(head, (const mix_piece *)(head + 1), (const unsigned char *const *)(args + 1),
            grid->grid.x * grid->grid.y * grid->grid.z);
}

void nothing_body(const acs_grid *grid, void *const *args)
{
    (void)args;
    note_shared(grid);
}

int mix_host(void *closure)
{
    const closure_head *c = closure;
    const unsigned char *extras[MIX_EXTRAS];
    const mix_piece *pieces = (const mix_piece *)(c + 1);
    const unsigned char *bytes = (const unsigned char *)(pieces + c->mix.pieces);
    for (uint32_t j = 0; j < c->mix.extras; j++) {
        extras[j] = bytes;
        bytes += c->mix.extra_bytes[j];
    }
    if (c->fail == 0)
        mix_run(&c->mix, pieces, extras, 1);
    return c->fail;
}

typedef struct place {
    atomic_uint busy;
} place;

void place_destroy(void *p)
{
    free(p);
    atomic_fetch_sub_explicit(&g_places_alive, 1, memory_order_relaxed);
}

/* The slot's place and scratch must be this call's alone while it runs. */
static void use_place(const acs_call_env *env)
{
    if (!*env->place) {
        *env->place = calloc(1, sizeof(place));
        atomic_fetch_add_explicit(&g_places_alive, 1, memory_order_relaxed);
    }
    place *mine = *env->place;
    if (mine && atomic_exchange_explicit(&mine->busy, 1, memory_order_relaxed))
        atomic_fetch_add_explicit(&g_place_races, 1, memory_order_relaxed);
    if (!env->stream && env->scratch)
        memset(env->scratch, 0x5a, env->scratch_bytes); /* a data race here is TSan's to find */
    if (mine)
        atomic_store_explicit(&mine->busy, 0, memory_order_relaxed);
}

int mix_call(const acs_call_env *env, void *closure)
{
    const closure_head *c = closure;
    if (env->slot < 0 || env->slot >= 64)
        atomic_fetch_add_explicit(&g_bad_slots, 1, memory_order_relaxed);
    if (env->place)
        use_place(env);
    if (c->fail || !env->stream)
        return mix_host(closure);
    return gpu_call(env->stream, &c->mix, (const mix_piece *)(c + 1));
}

void bodies_check(verdict *v)
{
    unsigned dirty = atomic_exchange_explicit(&g_dirty_shared, 0, memory_order_relaxed); /* nothing runs any more */
    unsigned races = atomic_exchange_explicit(&g_place_races, 0, memory_order_relaxed);
    unsigned alive = atomic_exchange_explicit(&g_places_alive, 0, memory_order_relaxed);
    unsigned slots = atomic_exchange_explicit(&g_bad_slots, 0, memory_order_relaxed);
    if (dirty || races || alive || slots)
        verdict_fail(v, "%u bytes of shared scratch not zeroed, %u calls at once in one slot, %u places not destroyed, "
                           "%u bad slots", dirty, races, alive, slots);
}

size_t mix_footprint(const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    const mix_head *head = in->args[0];
    const mix_piece *piece = (const mix_piece *)(head + 1);
    uint32_t from = *(const uint32_t *)in->user;
    for (uint32_t i = from; i < head->pieces && i - from < capacity; i++)
        out[i - from] = ACS_TILE_((acs_access)piece[i].access, piece[i].base, piece[i].row_bytes, piece[i].rows,
                                  piece[i].pitch);
    return head->pieces - from;
}
