/*
 * Between the pools of a context and the ledger of all programs (see admission.h). What a group waited for is a credit,
 * which the next growths draw on; whatever else the pools ask for is taken from the ledger as it is, or not there.
 */
#include "runtime/admission.h"

#include "base/inside.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 2 << 20 }; /* by which devices give memory */

static acs_status left(void *user, uint64_t *bytes)
{
    acs_backend *backend = ((acs_context *)user)->backend;
    char id[64];
    uint64_t total;
    return backend->ops->memory_state(backend, id, &total, bytes);
}

static bool is_lost(const acs_context *context)
{
    /* E, in failures.c */
    return atomic_load_explicit(&context->faulted, memory_order_acquire) != 0;
}

/* Who waits is the one that steps where there are no workers. */
static bool busy(void *user)
{
    acs_context *context = user;
    while (acs_context_unattended(context) && acs_context_step(context))
        continue;
    acs_admission_rest(context);
    return acs_fifo_ready(context->core.fifo) || acs_core_look(&context->core) != ACS_LOAD_NONE;
}

static bool ended(void *user)
{
    return is_lost(user);
}

/* "on", "/name" or "/name:bytes". */
static acs_status parse(const char *text, char name[ACS_OPTION_TEXT_BYTES], uint64_t *most)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *most = UINT64_MAX;
    if (strcmp(text, "on") == 0) {
        memcpy(name, "/acs", 5);
        return ACS_OK;
    }
    if (colon) {
        char *end = NULL;
        *most = strtoull(colon + 1, &end, 10);
        if (end == colon + 1 || *end || colon[1] == '-' || *most == 0)
            return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_LEDGER is \"%s\": '%s' is no number of bytes", text, colon + 1);
    }
    if (*text != '/')
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_LEDGER is \"%s\", not off, on, or /name[:bytes]", text);
    memcpy(name, text, length);
    name[length] = '\0';
    return ACS_OK;
}

acs_status acs_admission_open(acs_context *context)
{
    const char *text = context->options.ledger;
    acs_backend *backend = context->backend;
    char name[ACS_OPTION_TEXT_BYTES], id[64];
    uint64_t total = 0, free_bytes = 0, most = 0;
    if (!*text || strcmp(text, "off") == 0)
        return ACS_OK;
    ACS_TRY(parse(text, name, &most));
    ACS_TRY(backend->ops->memory_state(backend, id, &total, &free_bytes));
    const acs_ledger_config config = {.name = name, .device = id, .total = total < most ? total : most,
                                      .user = context, .left = left, .busy = busy, .ended = ended};
    return acs_ledger_open(&config, &context->ledger);
}

void acs_admission_close(acs_context *context)
{
    acs_ledger_close(context->ledger);
    context->ledger = NULL;
}

/* ------------------------------------------------------------------------------------------------- what the pools ask */

/* As much of the credit as there is, if it is this thread's. */
static uint64_t draw(acs_context *context, uint64_t bytes)
{
    acs_lock_acquire(&context->admission);
    const uint64_t credit = context->credit_owner == acs_thread_number() ? context->credit : 0;
    const uint64_t drawn = bytes < credit ? bytes : credit;
    context->credit -= drawn;
    acs_lock_release(&context->admission);
    return drawn;
}

static acs_status admit(void *user, uint64_t bytes)
{
    acs_context *context = user;
    const uint64_t drawn = draw(context, bytes);
    acs_status status = bytes > drawn ? acs_ledger_take(context->ledger, bytes - drawn) : ACS_OK;
    if (status == ACS_OK)
        return ACS_OK;
    acs_lock_acquire(&context->admission);
    context->credit += drawn;
    acs_lock_release(&context->admission);
    return ACS_NOT_READY;
}

static void came(void *user, uint64_t bytes)
{
    acs_ledger_obtained(((acs_context *)user)->ledger, bytes);
}

static void returned(void *user, uint64_t bytes, uint64_t that_came)
{
    acs_ledger_give(((acs_context *)user)->ledger, bytes, that_came);
}

void acs_admission_config(acs_context *context, acs_memory_config *config)
{
    if (!context->ledger)
        return;
    config->admit = admit;
    config->came = came;
    config->returned = returned;
}

/* -------------------------------------------------------------------------------------------------------------- groups */

static void give_credit(acs_context *context, uint64_t bytes)
{
    acs_lock_acquire(&context->admission);
    context->credit = bytes;
    context->credit_owner = acs_thread_number();
    acs_lock_release(&context->admission);
}

acs_status acs_admission_wait(acs_context *context, uint64_t bytes)
{
    const uint64_t wanted = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    pthread_mutex_lock(&context->admitting);
    acs_status status = acs_ledger_wait(context->ledger, wanted);
    if (status != ACS_OK) {
        pthread_mutex_unlock(&context->admitting);
        return status;
    }
    give_credit(context, wanted);
    return ACS_OK;
}

void acs_admission_end(acs_context *context)
{
    acs_ledger_give(context->ledger, draw(context, UINT64_MAX), 0);
    pthread_mutex_unlock(&context->admitting);
}

void acs_admission_idle(acs_context *context)
{
    if (!context->ledger || is_lost(context)) /* what is given back may wait for an op that never ends */
        return;
    const acs_error before = *acs_error_thread(); /* what is not given back stays: no error of whoever is idle */
    (void)acs_memory_trim(context->memory, ACS_MEMORY_DEVICE, 0);
    *acs_error_thread() = before;
}

void acs_admission_rest(acs_context *context)
{
    if (context->ledger && !acs_fifo_ready(context->core.fifo) && acs_core_look(&context->core) == ACS_LOAD_NONE)
        acs_admission_idle(context);
}
