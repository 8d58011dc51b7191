/*
 * Entering a context: every public call comes here for the context that it names, or for the default one. Opens the
 * default context from the environment at first use, and closes it at exit. Never remembers that opening failed: the
 * next call tries again.
 */
#include "api/registry.h"

#include "api/failures.h"

#include <stdlib.h>
#include <unistd.h>

static pid_t g_default_process; /* process that opened the default context, 0: none; guarded by that context's lock */

/* In a forked child the context belongs to the parent, and its threads do not exist. */
static void close_default(void)
{
    acs_context *context = acs_registry_default();
    if (context && getpid() == g_default_process && acs_registry_clear_default(context))
        (void)acs_close(context);
}

/* Say once that ops do not run: a program that ignores the results of its launches would not notice. */
static void say_not_opened(void)
{
    static bool said; /* under the lock of the default context */
    if (!said)
        acs_log_always(ACS_LOG_ERROR, "the default context cannot be opened, so its ops do not run: %s",
                       acs_error_thread()->text);
    said = true;
}

acs_context *acs_default(void)
{
    acs_context *context = acs_registry_default();
    if (ACS_LIKELY(context != NULL))
        return context;
    acs_registry_lock_default();
    context = acs_registry_default();
    if (!context && acs_open(NULL, &context) == ACS_OK) {
        if (!g_default_process)
            (void)atexit(close_default);
        g_default_process = getpid();
        acs_registry_set_default(context);
    } else if (!context && !acs_inside()) { /* inside a callback acs_open does not try */
        say_not_opened();
    }
    acs_registry_unlock_default();
    return context;
}

/* ------------------------------------------------------------------------------------------------------------ enter */

acs_context *acs_context_enter_at(acs_context *context, const char *function, const acs_site *site)
{
    if (ACS_UNLIKELY(acs_inside())) {
        acs_fail(ACS_ERR_STATE, 0, function, "ACS was called from inside a callback, host function or footprint function");
        return NULL;
    }
    if (!context)
        context = acs_default();
    if (!context || !acs_registry_check(context, function))
        return NULL;
    /* Relaxed: a call that misses the change is named as the thread's call before. */
    if (ACS_UNLIKELY(atomic_load_explicit(&context->logs, memory_order_relaxed)))
        acs_log_origin(context->number, site);
    return context;
}

/* A refused op leaves a hole in program order, so the context keeps the error for its waits to return. */
void acs_context_refuse_op(acs_context *context, const acs_site *site)
{
    if (site)
        acs_error_at(site);
    if (!acs_inside())
        return; /* the context is closed, another process's or cannot be opened */
    if (!context)
        context = acs_registry_default();
    if (context && acs_registry_is_usable(context))
        (void)acs_failures_refuse(context, site);
}

acs_context *acs_context_enter_op(acs_context *context, const char *function, const acs_site *site)
{
    acs_context *entered = acs_context_enter_at(context, function, site);
    if (ACS_UNLIKELY(!entered))
        acs_context_refuse_op(context, site);
    return entered;
}
