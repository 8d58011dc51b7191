/*
 * What tests of blocks through the public API share. Included behind cmocka.h.
 */
#ifndef TESTS_MEMORY_FIXTURE_H
#define TESTS_MEMORY_FIXTURE_H

#include "acs.h"

#include <string.h>

/* For the host backend without workers; the rest is the test's to set. */
static inline acs_options host_options(void)
{
    acs_options options;
    assert_int_equal(acs_options_init(&options, sizeof options), ACS_OK);
    options.backend = ACS_BACKEND_HOST;
    options.workers = 0;
    options.executors = 1;
    return options;
}

static inline unsigned char *block_of(acs_context *context, int kind, size_t bytes)
{
    void *block = NULL;
    assert_int_equal(acs_malloc(context, bytes, kind, &block), ACS_OK);
    return block;
}

static inline acs_statistics statistics_of(acs_context *context)
{
    acs_statistics s = {.size = sizeof s};
    assert_int_equal(acs_stats(context, &s), ACS_OK);
    return s;
}

static inline void refused(acs_op op, acs_status status, const char *why)
{
    acs_error error = {.size = sizeof error};
    assert_int_equal(op, 0);
    assert_int_equal(acs_last_error(&error), status);
    if (!strstr(error.text, why))
        fail_msg("'%s' is not in '%s'", why, error.text);
}

static inline uint32_t below(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 33) % n);
}

#endif
