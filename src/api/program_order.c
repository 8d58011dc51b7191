/*
 * Makes and frees the lock of program order (program_order.h), which only contexts that look at each launch have
 * (ACS_MODE_CHECK). Called while a context opens and closes.
 */
#include "api/program_order.h"

#include <stdlib.h>

static int make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error)
        return error;
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); /* fails only for unknown types */
    error = pthread_mutex_init(lock, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return error;
}

acs_status acs_order_open(acs_context *context)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    if (!lock || make_lock(lock)) {
        free(lock);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cannot make the mutex of program order");
    }
    context->order = lock;
    return ACS_OK;
}

void acs_order_close(acs_context *context)
{
    if (context->order)
        (void)pthread_mutex_destroy(context->order);
    free(context->order);
    context->order = NULL;
}
