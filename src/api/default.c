/*
 * The default context: opened from the environment at first use, closed at exit or by acs_close. Other files ask for it,
 * and acs_close says that it goes. It never keeps a failed attempt or a closed context: the next call opens another one.
 */
#include "api/context.h"

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

/* Programs that ignore what launches return would compute nothing and say nothing. */
static void say_not_opened(void)
{
    static bool said; /* under g_default_mutex */
    if (!said)
        acs_log_always(ACS_LOG_ERROR, "the default context cannot be opened, so its ops do not run: %s",
                       acs_error_thread()->text);
    said = true;
}

/*
 * Not taken before the fork instead: it is held while a context opens, which may take seconds, and the GPU's driver may
 * itself fork then. A context that was being opened is not in g_default yet, and is nobody's in the child.
 */
void acs_default_forked(void)
{
    pthread_mutex_init(&g_default_mutex, NULL);
}

acs_context *acs_default_opened(void)
{
    return atomic_load_explicit(&g_default, memory_order_acquire); /* A */
}

/*
 * Called while the context is still open: its struct may serve the next context, which must not be taken for the default
 * one. Not under the lock, which a thread that opens another default context may hold for seconds.
 */
void acs_default_closing(acs_context *context)
{
    /* relaxed: a handle is taken away, and nothing is read through it */
    (void)atomic_compare_exchange_strong_explicit(&g_default, &context, NULL, memory_order_relaxed, memory_order_relaxed);
}

acs_context *acs_default(void)
{
    acs_context *context = acs_default_opened();
    if (ACS_LIKELY(context != NULL))
        return context;
    pthread_mutex_lock(&g_default_mutex);
    context = atomic_load_explicit(&g_default, memory_order_relaxed); /* set under this lock only */
    if (!context && acs_open(NULL, &context) == ACS_OK) {
        if (!g_default_process)
            (void)atexit(close_default);
        g_default_process = getpid();
        atomic_store_explicit(&g_default, context, memory_order_release); /* A: the open context before its handle */
    } else if (!context && !acs_inside()) { /* inside a callback it was not tried */
        say_not_opened();
    }
    pthread_mutex_unlock(&g_default_mutex);
    return context;
}
