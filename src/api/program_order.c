/*
 * Makes and frees the lock of program order (program_order.h), which only contexts that look at each launch have
 * (ACS_MODE_CHECK). Called while a context opens and closes.
 */
#include "api/program_order.h"

#include <stdlib.h>

acs_status acs_order_open(acs_context *context)
{
    acs_lock *lock = malloc(sizeof *lock);
    if (!lock || acs_lock_init_recursive(lock, ACS_RANK_ORDER)) {
        free(lock);
        return ACS_FAIL(ACS_ERR_MEMORY, 0, "cannot make the mutex of program order");
    }
    context->order = lock;
    return ACS_OK;
}

void acs_order_close(acs_context *context)
{
    if (context->order)
        acs_lock_fini(context->order);
    free(context->order);
    context->order = NULL;
}
