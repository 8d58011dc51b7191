/*
 * The default context: opened from the environment at first use, closed at exit. Other files only ask for it. It never
 * keeps a failed attempt: the next call tries again.
 */
#include "runtime/context.h"

#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t g_default_mutex = PTHREAD_MUTEX_INITIALIZER; /* taken before all others */
static _Atomic(acs_context *) g_default;
static pid_t g_default_process;

/* In a forked child the context is the parent's; its threads do not exist here. */
static void close_default(void)
{
    /* A: pairs with the store below */
    acs_context *context = atomic_exchange_explicit(&g_default, NULL, memory_order_acquire);
    if (context && getpid() == g_default_process)
        (void)acs_close(context);
}

/*
 * Not taken before the fork instead: it is held while a context opens, which may take seconds, and the GPU's driver may
 * itself fork then. A context that was being opened is not in g_default yet, and is nobody's in the child.
 */
void acs_default_forked(void)
{
    pthread_mutex_init(&g_default_mutex, NULL);
}

acs_context *acs_default(void)
{
    acs_context *context = atomic_load_explicit(&g_default, memory_order_acquire); /* A */
    if (ACS_LIKELY(context != NULL))
        return context;
    pthread_mutex_lock(&g_default_mutex);
    context = atomic_load_explicit(&g_default, memory_order_relaxed); /* written under this lock only */
    if (!context && acs_open(NULL, &context) == ACS_OK) {
        if (!g_default_process)
            (void)atexit(close_default);
        g_default_process = getpid();
        atomic_store_explicit(&g_default, context, memory_order_release); /* A: the open context before its handle */
    }
    pthread_mutex_unlock(&g_default_mutex);
    return context;
}
