/*
 * The parts that a library has beside its core: backends, a batcher, hooks, and functions that optional parts run while
 * a context opens and closes. Each library has one table, in src/library. The table of the core alone has the host
 * backend and nothing else. Functions that are NULL are not called.
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
    /* acs_open calls these four in this order; an error of one fails it. First: before the backend is opened. */
    acs_status (*begin)(acs_context *context);
    /* After the backend was opened. */
    acs_status (*backend_opened)(acs_context *context);
    /* Before the pools are made. May change their configuration. */
    acs_status (*pools)(acs_context *context, acs_memory_config *config);
    /* After the core was opened, before there are threads. */
    acs_status (*core_opened)(acs_context *context);
    /* acs_close: all ops have ended, and no other call is under way. */
    void (*drained)(acs_context *context);
    /* Release what the parts opened: before the core and the pools go. */
    void (*close)(acs_context *context);
    /* The rest, after they went. `keep`: ops may use the pools for ever. */
    void (*closed)(acs_context *context, bool keep);
} acs_parts;

extern const acs_parts acs_library_parts;

#endif
