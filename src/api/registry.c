/*
 * The registry of contexts (registry.h). Owns the lists of open, free and kept contexts and the handle of the default
 * one. Called by open, close and every public call. Never looks into a context, except for the owner of an address.
 */
#include "api/registry.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER; /* rank REGISTRY: taken before all others but the next */
static pthread_mutex_t g_default_mutex = PTHREAD_MUTEX_INITIALIZER; /* rank DEFAULT: taken before all others */
static pthread_cond_t g_unpinned = PTHREAD_COND_INITIALIZER;
static acs_context *g_open; /* guarded by g_mutex, as the next two */
static acs_context *g_free; /* structs of closed contexts, for the next */
static acs_context *g_kept; /* closed contexts that a thread may use for ever */
static _Atomic(acs_context *) g_default;
static pthread_once_t g_fork_once = PTHREAD_ONCE_INIT;
static _Atomic(uint32_t) g_fork_generation = 1;

/* ------------------------------------------------------------------------------------------------------------ forks */

/* The child may open contexts. */
ACS_HELD_OVER_FORKS(&g_mutex)

/*
 * The child makes the lock of the default context again, instead of taking it before the fork. A thread holds that lock
 * while it opens a context, which may take seconds, and the GPU's driver may itself fork then. The child never sees a
 * context that was being opened, since g_default does not name it yet.
 */
static void forked_child(void)
{
    pthread_mutex_unlock(&g_mutex);
    pthread_cond_init(&g_unpinned, NULL); /* threads that waited there are not in this process */
    pthread_mutex_init(&g_default_mutex, NULL);
    atomic_fetch_add_explicit(&g_fork_generation, 1, memory_order_relaxed); /* the child has one thread */
}

static void register_fork_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork, forked_child);
}

void acs_registry_init(void)
{
    pthread_once(&g_fork_once, register_fork_handlers);
}

uint32_t acs_registry_fork_generation(void)
{
    return atomic_load_explicit(&g_fork_generation, memory_order_relaxed); /* changes only while a child has one thread */
}

/* ---------------------------------------------------------------------------------------------------------- structs */

acs_context *acs_registry_take(void)
{
    pthread_mutex_lock(&g_mutex);
    acs_context *context = g_free;
    if (context)
        g_free = context->next;
    pthread_mutex_unlock(&g_mutex);
    if (!context)
        context = aligned_alloc(ACS_CACHE_LINE, sizeof *context);
    if (context)
        memset(context, 0, sizeof *context);
    return context;
}

void acs_registry_give(acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    context->next = g_free;
    g_free = context;
}

void acs_registry_keep(acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    context->next = g_kept;
    g_kept = context;
}

/* ------------------------------------------------------------------------------------------------------- open ones */

void acs_registry_add(acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    context->next = g_open;
    g_open = context;
}

/* Waits while acs_compat_drain has the context pinned. */
void acs_registry_remove(acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    while (context->pins > 0)
        pthread_cond_wait(&g_unpinned, &g_mutex);
    acs_context **at = &g_open;
    while (*at && *at != context)
        at = &(*at)->next;
    if (*at)
        *at = context->next;
}

void acs_registry_visit(void (*visit)(acs_context *context))
{
    ACS_HOLD_MUTEX(&g_mutex);
    for (acs_context *context = g_open; context; context = context->next)
        visit(context);
}

uint32_t acs_registry_pin_all(acs_context **pinned, uint32_t capacity)
{
    uint32_t count = 0;
    ACS_HOLD_MUTEX(&g_mutex);
    for (acs_context *context = g_open; context && count < capacity; context = context->next) {
        if (context->fork_generation != acs_registry_fork_generation())
            continue;
        context->pins++;
        pinned[count++] = context;
    }
    return count;
}

void acs_registry_unpin(acs_context *context)
{
    ACS_HOLD_MUTEX(&g_mutex);
    if (--context->pins == 0)
        pthread_cond_broadcast(&g_unpinned);
}

static bool has_memory_at(const acs_context *context, uint64_t address, acs_block *block)
{
    acs_allocation allocation;
    if (context->pooled)
        return acs_memory_find(context->memory, address, block) != ACS_PLACE_FOREIGN;
    if (!acs_allocations_find(context->allocations, address, &allocation) || allocation.state != ACS_ALLOCATION_LIVE)
        return false;
    *block = acs_allocation_block(&allocation);
    return true;
}

/* A context leaves the list before its memory is freed, so its memory may be looked at under the lock. */
const acs_context *acs_context_other(const acs_context *context, uint64_t address, acs_block *block)
{
    *block = (acs_block){0};
    ACS_HOLD_MUTEX(&g_mutex);
    const acs_context *other = g_open;
    while (other && (other == context || other->fork_generation != context->fork_generation ||
                     !has_memory_at(other, address, block)))
        other = other->next;
    return other;
}

static bool is_open(const acs_context *context)
{
    /* relaxed: the thread that passed the handle on published it; to close it at the same time is the caller's error */
    return ACS_LIKELY(atomic_load_explicit(&context->open, memory_order_relaxed) == 1);
}

bool acs_registry_is_usable(const acs_context *context)
{
    return is_open(context) && context->fork_generation == acs_registry_fork_generation();
}

bool acs_registry_check(const acs_context *context, const char *function)
{
    /* relaxed, both: as in acs_registry_is_usable, which is repeated here without calls */
    if (ACS_LIKELY(atomic_load_explicit(&context->open, memory_order_relaxed) == 1 &&
                   context->fork_generation == atomic_load_explicit(&g_fork_generation, memory_order_relaxed)))
        return true;
    acs_fail(ACS_ERR_STATE, 0, function, "the context %s",
             is_open(context) ? "belongs to the parent of this forked process" : "is closed");
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- default */

void acs_registry_lock_default(void)
{
    pthread_mutex_lock(&g_default_mutex);
}

void acs_registry_unlock_default(void)
{
    pthread_mutex_unlock(&g_default_mutex);
}

/* A: acquire; pairs with acs_registry_set_default. Seeing the handle implies that acs_open's writes are seen. */
acs_context *acs_registry_default(void)
{
    return atomic_load_explicit(&g_default, memory_order_acquire); /* A */
}

void acs_registry_set_default(acs_context *context)
{
    atomic_store_explicit(&g_default, context, memory_order_release); /* A */
}

/*
 * Called while the context is still open: later its struct may serve another context, which must not become the default
 * one by that. Does not take the lock, which a thread that opens another default context may hold for seconds.
 */
bool acs_registry_clear_default(acs_context *context)
{
    /* relaxed: a handle is taken away, and nothing is read through it */
    return atomic_compare_exchange_strong_explicit(&g_default, &context, NULL, memory_order_relaxed, memory_order_relaxed);
}
