/*
 * What a library is made of beside its core: backends, a batcher, hooks, and what optional parts do while a context opens
 * and closes. Each library has one table, in src/library. That of the core alone has the host backend and nothing else.
 * Functions that are NULL are not called.
 */
#ifndef ACS_PARTS_H
#define ACS_PARTS_H

#include "api/hooks.h"
#include "pool/memory.h"
#include "scheduler/backend.h"

typedef struct acs_parts {
    acs_status (*open_backend)(const acs_backend_config *config, acs_backend **backend);
    const acs_batcher *batcher;
    const acs_op_hooks *hooks;
    /* In this order, each with an error that fails acs_open: before the backend is opened, */
    acs_status (*begin)(acs_context *context);
    /* with it, */
    acs_status (*backend_opened)(acs_context *context);
    /* before the pools are made (the first may change what they are made with), */
    acs_status (*pools)(acs_context *context, acs_memory_config *config);
    /* and with the core, before there are threads. */
    acs_status (*core_opened)(acs_context *context);
    /* acs_close: all has ended, and no other call is under way. */
    void (*drained)(acs_context *context);
    /* What was opened goes: before the core and the pools, and behind them. `keep`: pools may be in use for ever. */
    void (*close)(acs_context *context);
    void (*closed)(acs_context *context, bool keep);
} acs_parts;

extern const acs_parts acs_library_parts;

#endif
