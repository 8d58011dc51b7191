/*
 * What the tests of wrappers on the CPU have in common: prepared calls are run by their own function, on the calling
 * thread, and footprints are compared with lists. For programs of cmocka.
 */
#ifndef HOST_CALL_H
#define HOST_CALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "acs_wrap.h"

#include <string.h>

static inline int host_run(const acs_wrap_call *call)
{
    acs_call_env env = {.device = -1};
    return call->params.function(&env, (void *)(uintptr_t)call->params.closure);
}

/* The call names these segments, in this order. */
static inline void host_uses(const acs_wrap_call *call, size_t count, const acs_segment *wanted)
{
    assert_int_equal(call->params.uses.count, count);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&call->params.uses.segments[i], &wanted[i], sizeof wanted[i]))
            fail_msg("segment %zu is not the one wanted: access %d, base %#llx, %llu bytes", i,
                     call->params.uses.segments[i].access, (unsigned long long)call->params.uses.segments[i].base,
                     (unsigned long long)call->params.uses.segments[i].row_bytes);
}
#define HOST_USES(call, ...)                                                                                           \
    host_uses(call, sizeof((const acs_segment[]){__VA_ARGS__}) / sizeof(acs_segment), (const acs_segment[]){__VA_ARGS__})

/* The call failed with ACS_ERR_ARGUMENT and this text. */
static inline void host_refused(acs_status status, const char *text)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(status, ACS_ERR_ARGUMENT);
    assert_int_equal(acs_wrap_last_error(&error), ACS_ERR_ARGUMENT);
    assert_string_equal(error.text, text);
}

/* A context on CPU threads. */
static inline acs_context *host_open(void)
{
    acs_options options;
    acs_context *context = NULL;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    assert_int_equal(acs_open(&options, &context), ACS_OK);
    return context;
}

#endif
